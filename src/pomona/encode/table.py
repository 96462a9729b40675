"""Columns of a table to features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk
from pomona.encode import columns as col
from pomona.encode.batch import BatchEncoder
from pomona.encode.columns import Column, Part
from pomona.encode.labels import labels_of, weights_of
from pomona.errors import DataFormatError, OptionError
from pomona.learner import State
from pomona.options import BINS, EncodeOptions, ReadOptions
from pomona.source.table import Place, TableSource, missing_column, numpy_of, strings_of

MAX_FIELDS = 1 << 16
DEFAULT_READ, DEFAULT_ENCODE = ReadOptions(), EncodeOptions()


class TableEncoder:
    """Turns record batches into chunks.

    Kinds, bins and scales of columns are learnt from the first rows by :meth:`fit` and never change later.
    The id of a feature is the hash of its part or level, seeded with the hash of the column's name, so that a
    category never met before has an id too.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        target: str | None = None,
        weight: str | None = None,
        whole_target: bool = False,
        dropped: Sequence[str] = (),
        ngrams: int = 1,
        skips: int = 0,
    ) -> None:
        if len(columns) > MAX_FIELDS:
            raise OptionError(f"a table may have {MAX_FIELDS} columns of features, got {len(columns)}: ignore some")
        self.columns = list(columns)
        self.target, self.weight, self.dropped = target, weight, list(dropped)
        self.ngrams, self.skips = ngrams, skips
        self._whole_target = whole_target
        self._batches = BatchEncoder(columns, ngrams, skips)

    @property
    def fields(self) -> list[str]:
        """Names of the columns that ``Chunk.fields`` numbers."""
        return [column.name for column in self.columns]

    @property
    def has_text(self) -> bool:
        """Whether there are columns of running text."""
        return any(column.kind == "text" for column in self.columns)

    @property
    def has_hats(self) -> bool:
        """Whether there are numbers that became piecewise-linear functions."""
        return any(part.kind == _native.HAT for column in self.columns for part in column.parts)

    # ---- learning ----

    @classmethod
    def fit(
        cls,
        source: TableSource,
        read: ReadOptions = DEFAULT_READ,
        encode: EncodeOptions = DEFAULT_ENCODE,
        *,
        weights: NDArray[np.float64] | None = None,
        keep_constant: bool = False,
    ) -> TableEncoder:
        """Learn kinds, bins and scales from the first ``encode.sample_rows`` rows of a table.

        Parameters
        ----------
        weights : of those rows, all above 0; a row of weight 2 counts as two rows.
        keep_constant : whether columns that do not change in those rows may change later, and so are kept.
        """
        words = col.numeric_words(encode.numeric)
        bins = BINS[1] if encode.bins is None else encode.bins
        if bins < 2 or encode.sample_rows < 1:
            raise OptionError(f"bins must be 2 or more and sample_rows 1 or more; got {bins}, {encode.sample_rows}")
        if not 1 <= read.ngrams <= 8 or not 0 <= read.skips <= 8:
            raise OptionError(f"ngrams must be 1 to 8 and skips 0 to 8; got {read.ngrams} and {read.skips}")
        _check_roles(source, read)
        sample = source.head(encode.sample_rows)
        if not sample:
            raise DataFormatError("the table has no rows: there is nothing to learn from", file=source.name)
        table = pa.Table.from_batches(sample)
        used = [name for name in table.column_names if name not in {read.target, read.weight, *read.ignore}]
        plan = _Plan(read, words, bins, source.name, weights, keep_constant)
        found = [_learn_column(name, _combined(table[name]), plan) for name in used]
        return cls(
            [column for column in found if column is not None],
            target=read.target,
            weight=read.weight,
            whole_target=_is_whole(table[read.target], source.name, read.target) if read.target else False,
            dropped=[name for name, column in zip(used, found, strict=True) if column is None],
            ngrams=read.ngrams,
            skips=read.skips,
        )

    def types(self) -> dict[str, pa.DataType]:
        """Columns the encoder reads, with the types it wants where the format leaves a choice."""
        return {column.name: _type_from_name(column.type) for column in self.columns}

    # ---- encoding ----

    def encode(self, batch: pa.RecordBatch, first_row: int = 0, *, file: str = "") -> Chunk:
        """The features of a batch; ``first_row`` is the line of its first row, for messages."""
        (part,) = self.parts(batch, max(len(batch), 1), Place(file, first_row))
        return part()

    def labels(self, batch: pa.RecordBatch) -> NDArray[Any] | None:
        """The targets of a batch, where it has any."""
        target = None if self.target is None else _find(batch, self.target)
        return None if target is None else labels_of(target, self._whole_target)

    def parts(self, batch: pa.RecordBatch, rows: int, place: Place) -> Iterator[Callable[[], Chunk]]:
        """The same in parts of at most ``rows`` rows (one part, if there are none), each ready to be encoded.

        Parts may be encoded on several threads.
        """
        prepared = self._batches.prepare(batch, place)
        labels = self.labels(batch)
        weight = None if self.weight is None else _find(batch, self.weight)
        weights = None if weight is None else weights_of(weight, str(self.weight), place.file, place.line)

        def encode(start: int, stop: int) -> Chunk:
            (indptr, ids, values, fields), names = prepared.rows(start, stop)
            return Chunk(
                indptr=indptr,
                indices=ids,
                values=values,
                labels=None if labels is None else labels[start:stop],
                weights=None if weights is None else weights[start:stop],
                fields=fields,
                names=names,
                first_line=place.line + start if place.line else 0,
                file=place.file,
            )

        for start in range(0, max(len(batch), 1), rows):
            yield partial(encode, start, min(start + rows, len(batch)))

    @property
    def width(self) -> int:
        """Features that a row may have, about."""
        return self._batches.width

    # ---- saving ----

    def state(self) -> State:
        points = [part.points for column in self.columns for part in column.parts]
        header = {
            "columns": [column.header() for column in self.columns],
            "target": self.target,
            "weight": self.weight,
            "whole_target": self._whole_target,
            "dropped": self.dropped,
            "ngrams": self.ngrams,
            "skips": self.skips,
        }
        return State(header, {"points": np.concatenate(points) if points else np.empty(0, np.float64)})

    @classmethod
    def from_state(cls, state: State) -> TableEncoder:
        columns, used = [], 0
        for saved in state.header["columns"]:
            parts = []
            for part in saved["parts"]:
                points = state.arrays["points"][used : used + part["points"]]
                used += part["points"]
                parts.append(Part.make(part["kind"], saved["name"], points.copy(), part["of"]))
            columns.append(Column(saved["name"], saved["kind"], saved["type"], parts))
        rest = {key: state.header[key] for key in ("target", "weight", "whole_target", "dropped", "ngrams", "skips")}
        return cls(columns, **rest)


def _find(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    position = batch.schema.get_field_index(name)
    return None if position < 0 else col.without_views(batch.column(position))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks > 1:
        column = column.unify_dictionaries().combine_chunks()
    return col.without_views(column.chunk(0) if isinstance(column, pa.ChunkedArray) else column)


def _check_roles(source: TableSource, read: ReadOptions) -> None:
    names = source.schema.names
    roles: list[tuple[str, Sequence[str]]]
    roles = [
        ("target", [read.target] if read.target else []),
        ("weight", [read.weight] if read.weight else []),
    ]
    roles += [
        ("option ignore", read.ignore),
        ("option categorical", read.categorical),
        ("option text", read.text),
    ]
    for role, wanted in roles:
        for name in wanted:
            if name not in names:
                raise missing_column(name, names, role, source.name)


def _is_whole(target: pa.ChunkedArray, file: str, name: str) -> bool:
    """Whether a target of numbers takes whole values only, and so may be a class."""
    array = _combined(target.drop_null())
    values = numpy_of(array) if pa.types.is_floating(array.type) else None
    if values is not None:
        values = values[~np.isnan(values)]
    empty = pa.types.is_string(array.type) and len(array) and not any(strings_of(array.unique()))
    if empty or len(array if values is None else values) == 0:
        raise DataFormatError(f"the target {name!r} is missing in all of the first {len(target)} rows", file=file)
    return values is not None and bool(np.all((values == np.floor(values)) & (np.abs(values) < 2.0**53)))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How columns are learnt from the first rows."""

    read: ReadOptions
    words: Sequence[str]
    bins: int
    file: str
    weights: NDArray[np.float64] | None
    keep_constant: bool


def _learn_column(name: str, array: pa.Array, plan: _Plan) -> Column | None:
    """What to do with one column; None drops it."""
    kind = col.kind_of(array.type)
    read, words, file = plan.read, plan.words, plan.file
    if kind is None:
        raise DataFormatError(
            f"column {name!r} has the type {array.type}, which cannot become features: use --ignore {name}",
            file=file,
        )
    if array.null_count == len(array):
        return None
    if name in read.text or (kind == "category" and name not in read.categorical and col.is_prose(array)):
        if kind != "category":
            raise DataFormatError(f"column {name!r} was said to be text, but it holds {array.type}", file=file)
        return Column(name, "text", "string")
    if kind == "category" or name in read.categorical:
        changes = plan.keep_constant or len(col.texts_of(array).unique()) > 1
        return Column(name, "category", "string") if changes else None
    if kind == "date":
        parts = col.learn_date(name, array, words, plan.bins, plan.weights)
        return Column(name, "date", str(array.type), parts) if parts else None
    if kind == "boolean":
        changes = plan.keep_constant or pc.count_distinct(array, mode="all").as_py() > 1
        parts = [Part.make(_native.RAMP, name, (0.0, 1.0))] if changes else []
    else:
        parts = col.learn_numbers(name, col.plain_numbers(array), words, plan.bins, weights=plan.weights)
        if not parts and plan.keep_constant:
            parts = [Part.make(_native.RAW, name, (0.0, 1.0))]
    return Column(name, kind, "bool" if kind == "boolean" else "double", parts) if parts else None


def _type_from_name(name: str) -> pa.DataType:
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return pa.timestamp("ns", tz="UTC")
