"""The native side of encoding: points the core at the buffers of a batch, and finds names afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona import _native
from pomona.encode import columns as col
from pomona.encode.columns import Column
from pomona.encode.text import encode_text, gram_names
from pomona.errors import DataFormatError
from pomona.source.table import Place, missing_column, strings_of, wrap

#: Words that a text is thought to have, where the size of chunks is chosen.
WORDS = 64


@dataclass(frozen=True, slots=True)
class _Levels:
    """Ids of the texts of a dictionary, kept while batches share it."""

    dictionary: pa.Array
    ids: NDArray[np.uint64]


class BatchEncoder:
    """Encodes batches by fixed columns; what does not depend on a batch is made once."""

    def __init__(self, columns: Sequence[Column], ngrams: int, skips: int) -> None:
        self.columns, self.ngrams, self.skips = list(columns), ngrams, skips
        self._levels: dict[str, _Levels] = {}
        self._schema: pa.Schema | None = None
        self._positions: list[int] = []
        self._template = self._build_template()
        parts = [part for column in columns for part in column.parts]
        self.names = {i: n for part in parts for i, n in zip(part.ids.tolist(), part.names, strict=True)}
        self.names |= {column.missing_id: column.missing_name for column in columns}
        widths = [_native.column_width(kind) or WORDS for kind in self._template["kind"].tolist()]
        #: Features a row may have, about.
        self.width = sum(widths)

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
                entries.append({"kind": part.kind, "marks_missing": place == 0, **common, **pointers, **sizes})
        template = np.zeros(len(entries), _native.COLUMN)
        for position, values in enumerate(entries):
            for key, value in values.items():
                template[position][key] = value
        return template

    def prepare(self, batch: pa.RecordBatch, place: Place) -> PreparedBatch:
        """Point the native columns at a batch."""
        if self._schema is None or not batch.schema.equals(self._schema):
            self._positions = self._find_columns(batch.schema, place.file)
            self._schema = batch.schema
        arrays = [col.without_views(batch.column(position)) for position in self._positions]
        entries, keep, position = self._template.copy(), [], 0
        for column, array in zip(self.columns, arrays, strict=True):
            if column.kind == "text":
                position += 1
            elif column.kind == "category":
                keep.append(self._point_at_levels(entries[position], column, array))
                position += 1
            for part in column.parts:
                numbers = col.numbers_of(array, part.of)
                col.fill_numbers(entries[position], numbers)
                keep.append(numbers)
                position += 1
        return PreparedBatch(self, arrays, entries, keep, place)

    def _find_columns(self, schema: pa.Schema, file: str) -> list[int]:
        positions = []
        for column in self.columns:
            position = schema.get_field_index(column.name)
            if position < 0:
                raise missing_column(column.name, schema.names, "model, which was trained with it", file)
            _check_kind(column, schema.field(position).type, file)
            positions.append(position)
        return positions

    def _point_at_levels(self, entry: Any, column: Column, array: pa.Array) -> Any:
        texts = col.texts_of(array)
        if not pa.types.is_dictionary(texts.type):
            col.fill_strings(entry, texts)
            return texts
        levels, codes = self._dictionary_levels(column, texts.dictionary), texts.indices
        col.fill_numbers(entry, codes)
        entry["kind"], entry["ids"], entry["n_ids"] = _native.CODES, levels.ids.ctypes.data, len(levels.ids)
        return codes, levels

    def _dictionary_levels(self, column: Column, dictionary: pa.Array) -> _Levels:
        known = self._levels.get(column.name)
        if known is not None and known.dictionary.equals(dictionary):
            return known
        data, offsets = col.string_buffers(col.texts_of(dictionary))
        ids = _native.hash_strings(data, offsets, column.seed)
        ids[np.diff(offsets) == 0] = column.missing_id
        levels = self._levels[column.name] = _Levels(dictionary, ids)
        return levels


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that the native core can read, and where it begins."""

    encoder: BatchEncoder
    arrays: list[pa.Array]
    entries: NDArray[np.void]
    #: Arrays that the addresses in ``entries`` belong to.
    keep: list[Any]
    place: Place

    def rows(self, start: int, stop: int) -> tuple[_native.EncodedRows, NameFinder]:
        """Features of some rows, and what finds their names."""
        entries = self.entries.copy()
        entries["first"] += start
        texts = []
        for entry in entries[entries["kind"] == _native.ROWS]:
            column = self.encoder.columns[int(entry["field"])]
            part = self.arrays[int(entry["field"])].slice(start, stop - start)
            texts.append(encode_text(part, column.seed, self.encoder.ngrams, self.encoder.skips))
        for name, number in (("offsets", 0), ("ids", 1), ("values", 2)):
            entries[name][entries["kind"] == _native.ROWS] = [text[number].ctypes.data for text in texts]
        try:
            found = _native.encode_columns(entries, stop - start, sum(len(text[1]) for text in texts))
        except _native.BadCellError as error:
            raise self._bad_cell(int(entries[error.column]["field"]), start + error.row) from None
        return found, NameFinder(self.encoder, self.arrays, start, found)

    def _bad_cell(self, number: int, row: int) -> DataFormatError:
        column, place = self.encoder.columns[number], self.place
        line = place.line + row if place.line else 0
        if column.kind == "category":
            message = f"column {column.name!r} is damaged: a text lies outside its data"
        else:
            message = (
                f"expected a finite number in column {column.name!r}, got {self.arrays[number][row].as_py()}:"
                " leave it empty if it is unknown, or use the numeric encoding hat"
            )
        return DataFormatError(message, file=place.file, line=line)


class NameFinder:
    """Looks up the names of features of one chunk; holds on to the columns they came from."""

    def __init__(self, encoder: BatchEncoder, arrays: list[pa.Array], start: int, rows: _native.EncodedRows) -> None:
        self._encoder, self._arrays, self._start = encoder, arrays, start
        self._indptr, self._ids, _, self._fields = rows

    def __call__(self, positions: NDArray[np.int64]) -> Sequence[str]:
        positions = np.asarray(positions)
        ids, numbers = self._ids[positions], self._fields[positions]
        names = [self._encoder.names.get(id_) for id_ in ids.tolist()]
        unknown = np.array([i for i, name in enumerate(names) if name is None], np.int64)
        for number in np.unique(numbers[unknown]).tolist():
            chosen = unknown[numbers[unknown] == number]
            rows = np.searchsorted(self._indptr, positions[chosen], side="right") - 1 + self._start
            found = self._from_data(number, rows, ids[chosen])
            if len(chosen) == len(names):
                return found
            for i, name in zip(chosen.tolist(), found, strict=True):
                names[i] = name
        return [str(name) for name in names]

    def _from_data(self, number: int, rows: NDArray[np.int64], ids: NDArray[np.uint64]) -> Sequence[str]:
        """Names of features of one column that stand in the given rows."""
        column = self._encoder.columns[number]
        if column.kind == "text":
            texts = self._arrays[number].take(wrap(np.unique(rows)))
            return gram_names(texts, ids, f"{column.name}:", column.seed, self._encoder.ngrams, self._encoder.skips)
        levels = strings_of(col.texts_of(self._arrays[number].take(wrap(rows))))
        return [f"{column.name}={level}" for level in levels]


def _check_kind(column: Column, type_: pa.DataType, file: str) -> None:
    """Refuse a column whose type has changed since training."""
    found = col.kind_of(type_)
    wanted = "category" if column.kind == "text" else column.kind
    if pa.types.is_null(type_) or found == wanted or {found, wanted} == {"number", "boolean"}:
        return
    if column.kind == "category" and found is not None:  # any value has a text
        return
    words = {"number": "numbers", "boolean": "true or false", "date": "dates", "category": "text"}
    raise DataFormatError(
        f"column {column.name!r} held {words[wanted]} in training, but is {type_} here:"
        " give the column the type it had",
        file=file,
    )
