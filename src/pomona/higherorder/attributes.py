"""Attributes: what a column of a table becomes, a small whole number for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona import _native
from pomona._native.tuples import Codes, bin_codes
from pomona.chunk import PackedNames
from pomona.encode import columns as col
from pomona.encode.bins import Floats, number_name

Kind = Literal["number", "category", "group"]
#: Code of a level that training never saw: it has no parameters.
UNSEEN = _native.NO_ROW


@dataclass(frozen=True, slots=True)
class NumberAttribute:
    """A number: its bin; the last code is "missing"."""

    name: str
    column: str
    #: Which number of a date; empty: the column itself.
    of: str
    cuts: Floats
    kind: Kind = "number"

    @property
    def columns(self) -> list[str]:
        return [self.column]

    def code(self, arrays: Sequence[pa.Array], codes: Codes, column: int) -> None:
        bin_codes(np.ascontiguousarray(col.plain_numbers(arrays[0], self.of), np.float64), self.cuts, codes, column)

    def level(self, code: int) -> str:
        if code > len(self.cuts):
            return f"{self.name} is missing"
        if not len(self.cuts):
            return f"{self.name} is there"
        if code == 0:
            return f"{self.name} ≤ {number_name(self.cuts[0])}"
        if code == len(self.cuts):
            return f"{self.name} > {number_name(self.cuts[-1])}"
        return f"{self.name} ∈ ({number_name(self.cuts[code - 1])}, {number_name(self.cuts[code])}]"


@dataclass(slots=True)
class Levels:
    """Texts numbered in the order of their first appearance."""

    ids: _native.IdMap = field(default_factory=_native.IdMap)
    names: list[PackedNames] = field(default_factory=list)
    missing: int = 0

    def learn(self, array: pa.Array) -> None:
        """Take the texts of a column."""
        indices, present, dictionary = _coded(array)
        self.missing += len(present) - int(present.sum())
        used = np.unique(indices[present])
        texts = dictionary.take(pa.array(used))
        _, fresh = self.ids.insert(_text_ids(texts))
        if len(fresh):
            self.names.append(_packed(texts.take(pa.array(fresh))))

    def find(self, array: pa.Array, missing_code: int) -> NDArray[np.uint32]:
        """Number of each row's text; ``UNSEEN`` for new ones."""
        indices, present, dictionary = _coded(array)
        known = np.append(self.ids.find(_text_ids(dictionary)), np.uint32(missing_code))
        return np.asarray(known[np.where(present, indices, len(known) - 1)])

    def packed(self) -> PackedNames:
        return PackedNames.join(self.names)


@dataclass(frozen=True, slots=True)
class CategoryAttribute:
    """A text: its number; missing ones come after the last level, if training saw any."""

    name: str
    levels: Levels
    names: PackedNames
    has_missing: bool
    kind: Kind = "category"

    @property
    def columns(self) -> list[str]:
        return [self.name]

    @property
    def missing_code(self) -> int:
        return len(self.names) if self.has_missing else UNSEEN

    def code(self, arrays: Sequence[pa.Array], codes: Codes, column: int) -> None:
        codes[:, column] = self.levels.find(arrays[0], self.missing_code)

    def level(self, code: int) -> str:
        return f"{self.name} = {self.names[code]}" if code < len(self.names) else f"{self.name} is missing"


@dataclass(frozen=True, slots=True)
class GroupAttribute:
    """Columns of which exactly one is 1 in every row of the training data: one attribute with a level each."""

    name: str
    columns: list[str]
    kind: Kind = "group"

    def code(self, arrays: Sequence[pa.Array], codes: Codes, column: int) -> None:
        numbers = np.column_stack([col.plain_numbers(array) for array in arrays])
        single = (numbers == 1).sum(axis=1) == 1
        single &= ((numbers == 0) | (numbers == 1)).all(axis=1)
        codes[:, column] = np.where(single, (numbers == 1).argmax(axis=1), UNSEEN)

    def level(self, code: int) -> str:
        return f"{self.name} = {self.columns[code][len(self.name) :].lstrip('_.- ') or self.columns[code]}"


#: One attribute of a row: a column, a part of a date, or a group of columns of which one is 1. ``code`` writes the
#: codes of a batch into one column, ``level`` gives a code in words.
Attribute = NumberAttribute | CategoryAttribute | GroupAttribute


def header_of(attribute: Attribute) -> dict[str, Any]:
    """What a file needs besides the arrays."""
    header: dict[str, Any] = {"kind": attribute.kind, "name": attribute.name, "columns": list(attribute.columns)}
    if isinstance(attribute, NumberAttribute):
        return {**header, "of": attribute.of, "cuts": len(attribute.cuts)}
    if isinstance(attribute, CategoryAttribute):
        names = attribute.names
        return {**header, "levels": len(names), "bytes": len(names.text), "has_missing": attribute.has_missing}
    return header


def known_levels(names: PackedNames) -> Levels:
    """Levels as they were when these names were collected."""
    ends = np.concatenate([np.zeros(1, np.int64), names.ends])
    levels = Levels(names=[names])
    rows, _ = levels.ids.insert(_native.hash_strings(np.ascontiguousarray(names.text), ends, 0))
    if len(rows) and int(rows[-1]) + 1 != len(rows):
        raise ValueError("a level stands twice")
    return levels


def _coded(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_], pa.Array]:
    """A column of texts as positions in a dictionary; an empty text is missing."""
    texts = col.texts_of(col.without_views(array))
    coded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    dictionary = col.without_views(coded.dictionary)
    present = np.asarray(coded.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    indices = np.where(present, coded.indices.fill_null(0).to_numpy(zero_copy_only=False), 0).astype(np.int64)
    _, offsets = col.string_buffers(dictionary)
    empty = np.diff(offsets) == 0
    if empty.any():
        present &= ~empty[indices]
    return indices, present, dictionary


def _text_ids(texts: pa.Array) -> NDArray[np.uint64]:
    data, offsets = col.string_buffers(texts)
    return _native.hash_strings(data, offsets, 0)


def _packed(texts: pa.Array) -> PackedNames:
    data, offsets = col.string_buffers(texts)
    return PackedNames(data[offsets[0] : offsets[-1]].copy(), offsets[1:] - offsets[0])
