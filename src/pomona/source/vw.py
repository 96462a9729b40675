"""VW text: ``[label [importance [base]]] ['tag] |namespace[:weight] name[:value] … |namespace …``

What the format leaves open is read so:

* the last word before the first bar is a tag if it begins with ``'`` or touches the bar, as in Vowpal Wabbit;
* a line without a label has the label NaN; a blank line is passed over;
* a value is multiplied by the weight of its namespace, a feature of value zero is left out, and the values of
  a feature that is repeated in a line are added;
* names are bytes up to a blank, ``|`` or ``:``; a feature's id is the hash of its name, seeded with the hash
  of its namespace;
* n-grams are made of neighbours inside one namespace of a line; their value is the product of their words'.

Features are named ``namespace:name``, ``name`` in the namespace without a name; the words of an n-gram are
joined by blanks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, NameLookup, PackedNames
from pomona.errors import DataFormatError, OptionError
from pomona.options import ReadOptions
from pomona.source.blocks import BLOCK_BYTES, TextSource

#: Features that n-grams may make of one word, at most.
MAX_GROWTH = 1000
_MIN_BLOCK_BYTES = 1 << 14


def open_vw(paths: Sequence[str], options: ReadOptions) -> TextSource:
    """Source of the examples in VW text files."""
    return TextSource(paths, VwParser(options), options)


class VwParser:
    """Turns blocks of VW text into chunks; numbers the namespaces in the order of their first appearance."""

    def __init__(self, options: ReadOptions) -> None:
        if options.ngrams < 1 or options.skips < 0:
            raise OptionError(
                f"ngrams must be at least 1 and skips at least 0, got {options.ngrams} and {options.skips}"
            )
        small = options.ngrams + options.skips <= 16
        growth = _native.gram_growth(options.ngrams, options.skips) if small else MAX_GROWTH + 1
        if growth > MAX_GROWTH:
            raise OptionError(
                f"{options.ngrams}-grams with {options.skips} skips make more than {MAX_GROWTH} features of a"
                " word: ask for fewer"
            )
        self.fields: list[str] = []
        self.plain_labels = True
        self.block_bytes = max(BLOCK_BYTES // growth, _MIN_BLOCK_BYTES)
        self._options = options
        self._gram_namespaces = [name.encode() for name in options.ngram_namespaces]
        self._numbers: dict[bytes, int] = {}

    def parse(self, text: NDArray[np.uint8]) -> _native.TextRows | _native.TextError:
        return _native.parse_text(
            text,
            "vw",
            skip_bad=self._options.on_error == "skip",
            ngrams=self._options.ngrams,
            skips=self._options.skips,
            gram_namespaces=self._gram_namespaces,
        )

    def chunk(self, text: NDArray[np.uint8], rows: _native.TextRows, file: str, first_line: int) -> Chunk:
        assert rows.namespaces is not None
        numbers = self._number(text, rows.namespaces, file)
        fields = rows.fields
        if fields is None and len(self.fields) > 1:
            fields = np.repeat(numbers, len(rows.ids))  # of one namespace, or without features
        elif fields is not None and not np.array_equal(numbers, np.arange(len(numbers))):
            fields = numbers[fields]
        return Chunk(
            indptr=rows.indptr,
            indices=rows.ids,
            values=rows.values,
            labels=rows.labels,
            weights=rows.weights,
            fields=fields,
            offsets=rows.offsets,
            names=_name_lookup(text, rows),
            tags=_tags(text, rows.spans) if rows.has_tags else None,
            first_line=first_line,
            file=file,
        )

    def _number(self, text: NDArray[np.uint8], spans: NDArray[np.uint32], file: str) -> NDArray[np.uint16]:
        numbers = np.empty(len(spans), np.uint16)
        for i, (start, size) in enumerate(spans.tolist()):
            name = text[start : start + size].tobytes()
            number = self._numbers.setdefault(name, len(self._numbers))
            if number == len(self.fields):
                if number == _native.MAX_NAMESPACES:
                    raise DataFormatError(f"expected at most {_native.MAX_NAMESPACES} namespaces in all", file=file)
                self.fields.append(decode(name))
            numbers[i] = number
        return numbers


def decode(name: bytes) -> str:
    """A name for people: UTF-8, with bytes that are not shown as ``\\xff``."""
    return name.decode("utf-8", "backslashreplace")


def _tags(text: NDArray[np.uint8], spans: NDArray[np.uint32]) -> list[str]:
    return [decode(text[start : start + size].tobytes()) for start, size in spans.tolist()]


def _name_lookup(text: NDArray[np.uint8], rows: _native.TextRows) -> NameLookup:
    def names(positions: NDArray[np.int64]) -> PackedNames:
        return PackedNames(*_native.vw_names(text, rows, np.ascontiguousarray(positions)))

    return names
