"""A source of chunks made of a table and an encoder, read and encoded ahead on other threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona.chunk import Chunk, LookUp
from pomona.encode.table import TableEncoder
from pomona.errors import DataFormatError
from pomona.source.blocks import OrderedMap, available_cores
from pomona.source.table import TableSource

#: Rows of a chunk, at most and at least.
CHUNK_ROWS, MIN_ROWS = 1 << 13, 1 << 8
#: Features of a chunk, about: memory of this size is used again, more of it would be given back and cleared.
CHUNK_ENTRIES = 1 << 18
#: Bytes of a word of text, about, and how many numbers take as long as a word.
WORD_BYTES, WORD_COST = 6, 4
#: Chunks a thread may be ahead of the learner.
AHEAD = 3


class EncodedSource:
    """Chunks of an encoded table.

    Parameters
    ----------
    table : where the batches come from.
    encoder : what turns them into features.
    y, weights : targets and weights of all rows, where they are not columns of the table.
    need_labels : whether a missing target is an error (training) or not (prediction).
    """

    def __init__(
        self,
        table: TableSource,
        encoder: TableEncoder,
        *,
        y: NDArray[Any] | None = None,
        weights: NDArray[np.float64] | None = None,
        need_labels: bool = True,
    ) -> None:
        self.table, self.encoder = table, encoder
        self.look_up: LookUp | None = None
        self._y, self._weights, self._need_labels = y, weights, need_labels
        types = encoder.types()
        for extra in (encoder.target, encoder.weight):
            position = -1 if extra is None else table.schema.get_field_index(extra)
            if extra is not None and position >= 0:
                types[extra] = table.schema.field(position).type
        table.select(types)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def fields(self) -> list[str]:
        return self.encoder.fields

    @property
    def n_examples(self) -> int | None:
        return self.table.n_rows

    def guess_examples(self) -> int | None:
        """About how many examples there are, where the table cannot say but its files tell."""
        guess = getattr(self.table, "guess_rows", None)
        return None if guess is None else guess()

    @property
    def reads_cheaply(self) -> bool:
        return self.table.reads_cheaply

    @property
    def rewinds(self) -> bool:
        return self.table.rewinds

    @property
    def n_skipped(self) -> int:
        """Malformed rows left out in the running or last pass."""
        return self.table.n_skipped

    @property
    def first_skipped(self) -> DataFormatError | None:
        """Where and why the first of them."""
        return self.table.first_skipped

    def fraction_read(self) -> float | None:
        return self.table.fraction_read()

    def first_labels(self, rows: int) -> NDArray[Any] | None:
        """Targets of the first rows, without encoding them; None where one is missing."""
        if self._y is not None:
            return self._y[:rows]
        found = [self.encoder.labels(batch) for batch in self.table.head(rows)]
        known = [labels for labels in found if labels is not None and labels.dtype != object]
        return np.concatenate(known) if found and len(known) == len(found) else None

    def chunks(self) -> Iterator[Chunk]:
        threads = available_cores()
        ahead = OrderedMap(self._parts(), lambda part: part(), threads, AHEAD * threads)
        with contextlib.closing(iter(ahead)) as found:
            yield from found

    def _parts(self) -> Iterator[Callable[[], Chunk]]:
        row = 0
        for batch in self.table.batches():
            if len(batch) == 0:
                continue
            rows = min(CHUNK_ROWS, max(MIN_ROWS, CHUNK_ENTRIES // max(self._width(batch), 1)))
            for number, part in enumerate(self.encoder.parts(batch, rows, self.table.place)):
                yield partial(self._finished, part, row + number * rows)
            row += len(batch)

    def _width(self, batch: pa.RecordBatch) -> int:
        """Features that a row of the batch has, about, words of running text counting for several."""
        names = [column.name for column in self.encoder.columns if column.kind == "text"]
        texts = [batch.column(name) for name in names if name in batch.schema.names]
        words = sum(int(text.nbytes) for text in texts) // (WORD_BYTES * len(batch))
        return self.encoder.width + WORD_COST * words

    def _finished(self, part: Callable[[], Chunk], row: int) -> Chunk:
        chunk = self._with_labels(part(), row)
        ids: Any = chunk.indices
        found = None if self.look_up is None or ids.dtype != np.uint64 else self.look_up(ids)
        return chunk if found is None else replace(chunk, rows=found)

    def _with_labels(self, chunk: Chunk, row: int) -> Chunk:
        rows = slice(row, row + len(chunk))
        if self._y is not None:
            chunk = replace(chunk, labels=self._y[rows])
        if self._weights is not None:
            chunk = replace(chunk, weights=np.ascontiguousarray(self._weights[rows], np.float64))
        if chunk.labels is None or chunk.labels.dtype != object:
            return chunk
        if not self._need_labels:
            return replace(chunk, labels=None)
        missing = next(i for i, label in enumerate(chunk.labels) if label is None)
        raise DataFormatError(
            f"the target {self.encoder.target!r} is missing: remove the row, or give it a value",
            file=chunk.file,
            line=chunk.first_line + missing if chunk.first_line else 0,
        )
