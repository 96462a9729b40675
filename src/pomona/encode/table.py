"""Columns of a table to features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk
from pomona.encode import columns as col
from pomona.encode.columns import Column, Part
from pomona.encode.labels import labels_of, weights_of
from pomona.encode.text import encode_text, gram_names
from pomona.errors import DataFormatError, OptionError
from pomona.learner import State
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.table import TableSource, missing_column, numpy_of

MAX_FIELDS = 1 << 16
DEFAULT_READ, DEFAULT_ENCODE = ReadOptions(), EncodeOptions()


@dataclass(frozen=True, slots=True)
class _Levels:
    """Ids of the texts of a dictionary, kept while batches share it."""

    dictionary: pa.Array
    ids: NDArray[np.uint64]


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
            raise OptionError(
                f"a table may have {MAX_FIELDS} columns of features, got {len(columns)}: ignore some"
            )
        self.columns = list(columns)
        self.target, self.weight, self.dropped = target, weight, list(dropped)
        self.ngrams, self.skips = ngrams, skips
        self._whole_target = whole_target
        self._levels: dict[str, _Levels] = {}
        parts = [part for column in columns for part in column.parts]
        self._names = {i: n for part in parts for i, n in zip(part.ids.tolist(), part.names, strict=True)}
        self._names |= {c.missing_id: c.missing_name for c in columns}
        self._template = self._build_template()

    @property
    def fields(self) -> list[str]:
        """Names of the columns that ``Chunk.fields`` numbers."""
        return [column.name for column in self.columns]

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
        if encode.bins < 2 or encode.sample_rows < 1:
            raise OptionError(
                f"bins must be 2 or more and sample_rows 1 or more; got {encode.bins}, {encode.sample_rows}"
            )
        if not 1 <= read.ngrams <= 8 or not 0 <= read.skips <= 8:
            raise OptionError(f"ngrams must be 1 to 8 and skips 0 to 8; got {read.ngrams} and {read.skips}")
        _check_roles(source, read)
        sample = source.head(encode.sample_rows)
        if not sample:
            raise DataFormatError("the table has no rows: there is nothing to learn from", file=source.name)
        table = pa.Table.from_batches(sample)
        used = [name for name in table.column_names if name not in {read.target, read.weight, *read.ignore}]
        plan = _Plan(read, words, encode.bins, source.name, weights, keep_constant)
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
        arrays = self._arrays(batch, file)
        entries = self._template.copy()
        keep: list[Any] = []
        row_entries = 0
        position = 0
        for column, array in zip(self.columns, arrays, strict=True):
            if column.kind == "text":
                rows, ids, values = encode_text(array, column.seed, self.ngrams, self.skips)
                entry = entries[position]
                entry["offsets"], entry["ids"], entry["values"] = (
                    rows.ctypes.data,
                    ids.ctypes.data,
                    values.ctypes.data,
                )
                row_entries += len(ids)
                keep.append((rows, ids, values))
                position += 1
            elif column.kind == "category":
                keep.append(self._point_at_levels(entries[position], column, array))
                position += 1
            else:
                for part in column.parts:
                    numbers = col.numbers_of(array, part.of)
                    col.fill_numbers(entries[position], numbers)
                    keep.append(numbers)
                    position += 1
        try:
            indptr, ids, values, fields = _native.encode_columns(entries, len(batch), row_entries)
        except _native.BadCellError as error:
            raise self._bad_cell(error, entries, arrays, first_row, file) from None
        target = None if self.target is None else _find(batch, self.target)
        weight = None if self.weight is None else _find(batch, self.weight)
        return Chunk(
            indptr=indptr,
            indices=ids,
            values=values,
            labels=None if target is None else labels_of(target, self._whole_target),
            weights=None if weight is None else weights_of(weight, str(self.weight), file, first_row),
            fields=fields,
            names=_Namer(self, arrays, indptr, ids, fields),
            first_line=first_row,
            file=file,
        )

    def _build_template(self) -> NDArray[np.void]:
        """Native columns without their data."""
        entries = []
        for number, column in enumerate(self.columns):
            common = {"field": number, "missing": column.missing_id, "seed": column.seed}
            if column.kind == "text":
                entries.append({"kind": _native.ROWS, **common})
            elif column.kind == "category":
                entries.append({"kind": _native.STRINGS, **common})
            for place, part in enumerate(column.parts):
                pointers = {"points": part.points.ctypes.data, "ids": part.ids.ctypes.data}
                sizes = {"n_points": len(part.points), "n_ids": len(part.ids)}
                entries.append(
                    {"kind": part.kind, "marks_missing": place == 0, **common, **pointers, **sizes}
                )
        template = np.zeros(len(entries), _native.COLUMN)
        for position, values in enumerate(entries):
            for key, value in values.items():
                template[position][key] = value
        return template

    def _arrays(self, batch: pa.RecordBatch, file: str) -> list[pa.Array]:
        arrays = []
        for column in self.columns:
            array = _find(batch, column.name)
            if array is None:
                raise missing_column(
                    column.name, batch.schema.names, "model, which was trained with it", file
                )
            _check_kind(column, array, file)
            arrays.append(array)
        return arrays

    def _point_at_levels(self, entry: Any, column: Column, array: pa.Array) -> Any:
        texts = col.texts_of(array)
        if not pa.types.is_dictionary(texts.type):
            col.fill_strings(entry, texts)
            return texts
        levels = self._dictionary_levels(column, texts.dictionary)
        col.fill_numbers(entry, texts.indices)
        entry["kind"], entry["ids"], entry["n_ids"] = _native.CODES, levels.ids.ctypes.data, len(levels.ids)
        return texts, levels

    def _dictionary_levels(self, column: Column, dictionary: pa.Array) -> _Levels:
        known = self._levels.get(column.name)
        if known is not None and (known.dictionary is dictionary or known.dictionary.equals(dictionary)):
            return known
        data, offsets = col.string_buffers(col.texts_of(dictionary))
        ids = _native.hash_strings(data, offsets, column.seed)
        ids[np.diff(offsets) == 0] = column.missing_id
        levels = self._levels[column.name] = _Levels(dictionary, ids)
        return levels

    def _bad_cell(
        self,
        error: _native.BadCellError,
        entries: NDArray[np.void],
        arrays: list[pa.Array],
        first_row: int,
        file: str,
    ) -> DataFormatError:
        column = self.columns[int(entries[error.column]["field"])]
        line = first_row + error.row if first_row else 0
        if column.kind == "category":
            return DataFormatError(
                f"column {column.name!r} is damaged: a text lies outside its data", file=file, line=line
            )
        value = arrays[int(entries[error.column]["field"])][error.row].as_py()
        return DataFormatError(
            f"expected a finite number in column {column.name!r}, got {value}:"
            " leave it empty if it is unknown, or use the numeric encoding hat",
            file=file,
            line=line,
        )

    # ---- names ----

    def known_name(self, id_: int) -> str | None:
        """Name of a feature that does not depend on the data, such as a knot."""
        return self._names.get(id_)

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
        rest = {
            key: state.header[key]
            for key in ("target", "weight", "whole_target", "dropped", "ngrams", "skips")
        }
        return cls(columns, **rest)


class _Namer:
    """Looks up the names of features of one chunk; holds on to the columns they came from."""

    def __init__(
        self,
        encoder: TableEncoder,
        arrays: list[pa.Array],
        indptr: NDArray[np.int64],
        ids: NDArray[np.uint64],
        fields: NDArray[np.uint16],
    ) -> None:
        self._encoder, self._arrays = encoder, arrays
        self._indptr, self._ids, self._fields = indptr, ids, fields

    def __call__(self, positions: NDArray[np.int64]) -> list[str]:
        rows = (np.searchsorted(self._indptr, positions, side="right") - 1).tolist()
        grams: dict[tuple[int, int], dict[int, str]] = {}
        names = []
        for position, row in zip(np.asarray(positions).tolist(), rows, strict=True):
            id_, number = int(self._ids[position]), int(self._fields[position])
            name = self._encoder.known_name(id_)
            if name is None:
                name = self._from_data(number, row, id_, grams)
            names.append(name)
        return names

    def _from_data(
        self, number: int, row: int, id_: int, grams: dict[tuple[int, int], dict[int, str]]
    ) -> str:
        column = self._encoder.columns[number]
        if column.kind == "text":
            if (number, row) not in grams:
                text = self._arrays[number].slice(row, 1)
                grams[number, row] = gram_names(text, column.seed, self._encoder.ngrams, self._encoder.skips)
            return f"{column.name}:{grams[number, row][id_]}"
        level = col.texts_of(self._arrays[number].slice(row, 1))[0].as_py()
        return f"{column.name}={level.decode('utf-8', 'replace') if isinstance(level, bytes) else level}"


def _find(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    position = batch.schema.get_field_index(name)
    return None if position < 0 else batch.column(position)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.unify_dictionaries().combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


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
    if target.null_count == len(target):
        raise DataFormatError(
            f"the target {name!r} is missing in all of the first {len(target)} rows", file=file
        )
    if not pa.types.is_floating(target.type):
        return False
    values = numpy_of(_combined(target.drop_null()))
    values = values[~np.isnan(values)]
    if not len(values):
        raise DataFormatError(
            f"the target {name!r} is missing in all of the first {len(target)} rows", file=file
        )
    return bool(np.all((values == np.floor(values)) & (np.abs(values) < 2.0**53)))


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
            raise DataFormatError(
                f"column {name!r} was said to be text, but it holds {array.type}", file=file
            )
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


def _check_kind(column: Column, array: pa.Array, file: str) -> None:
    """Refuse a column whose type has changed since training."""
    if pa.types.is_null(array.type) or column.kind in ("category",):
        return
    found = col.kind_of(array.type)
    wanted = "category" if column.kind == "text" else column.kind
    if found == wanted or {found, wanted} == {"number", "boolean"}:
        return
    words = {"number": "numbers", "boolean": "true or false", "date": "dates", "category": "text"}
    raise DataFormatError(
        f"column {column.name!r} held {words[wanted]} in training, but is {array.type} here:"
        " give the column the type it had",
        file=file,
    )


def _type_from_name(name: str) -> pa.DataType:
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return pa.timestamp("ns", tz="UTC")
