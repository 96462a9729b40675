"""svmlight and libsvm text: ``label[,label…] [qid:n] index:value … # comment``

What the format leaves open is read so:

* indices are names, taken as written, 0 to 2^64 - 1, in any order; values of a repeated index are added, and
  a value of zero is left out;
* a line that begins with a blank, or with its first feature, has no label: NaN;
* ``qid`` is checked and left out;
* where a label in the first 64 KiB is a list (``1,3``), all labels are given as text, each list sorted, ""
  for none. A list that comes later, in data that began without, is an error; the format
  ``svmlight-multilabel`` gives text always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, NameLookup
from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source.blocks import BLOCK_BYTES, TextSource
from pomona.source.files import InputFile

MULTILABEL = "svmlight-multilabel"


def open_svmlight(paths: Sequence[str], options: ReadOptions) -> TextSource:
    """Source of the examples in svmlight text files."""
    multilabel = options.format == MULTILABEL or _has_label_lists(InputFile(paths[0]).head())
    return TextSource(paths, SvmlightParser(options, multilabel), options)


def _has_label_lists(head: bytes) -> bool:
    lines = head[: head.rfind(b"\n") + 1]
    text = np.frombuffer(lines, np.uint8)
    rows = _native.parse_text(text, "svmlight", skip_bad=True) if lines else None
    return isinstance(rows, _native.TextRows) and rows.has_label_lists


class SvmlightParser:
    """Turns blocks of svmlight text into chunks."""

    def __init__(self, options: ReadOptions, multilabel: bool = False) -> None:
        self.fields = [""]
        self.plain_labels = not multilabel
        self.block_bytes = BLOCK_BYTES
        self._skip_bad = options.on_error == "skip"
        self._multilabel = multilabel

    def parse(self, text: NDArray[np.uint8]) -> _native.TextRows | _native.TextError:
        return _native.parse_text(text, "svmlight", skip_bad=self._skip_bad)

    def chunk(self, text: NDArray[np.uint8], rows: _native.TextRows, file: str, first_line: int) -> Chunk:
        labels: NDArray[Any] = rows.labels
        if rows.has_label_lists or self._multilabel:
            lists = [text[start : start + size].tobytes() for start, size in rows.spans.tolist()]
            if not self._multilabel:
                row = next(i for i, label in enumerate(lists) if b"," in label)
                raise DataFormatError(
                    f"expected one number as the label, as in the lines before, got {lists[row].decode()!r}:"
                    f" name the format '{MULTILABEL}'",
                    file=file,
                    line=first_line + row,
                )
            labels = np.array([_label(label) for label in lists])
        return Chunk(
            indptr=rows.indptr,
            indices=rows.ids,
            values=rows.values,
            labels=labels,
            names=_name_lookup(rows.ids),
            first_line=first_line,
            file=file,
        )


def _label(text: bytes) -> str:
    return ",".join(sorted(text.decode("ascii").split(","), key=float)) if text else ""


def _name_lookup(ids: NDArray[np.uint64]) -> NameLookup:
    def names(positions: NDArray[np.int64]) -> list[str]:
        return [str(index) for index in _native.unmix(ids[positions]).tolist()]

    return names
