"""The coder: learns in one pass how the columns of a table become codes, and codes batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona.chunk import Chunk, PackedNames
from pomona.encode import columns as col
from pomona.encode.labels import labels_of
from pomona.errors import DataFormatError, OptionError
from pomona.higherorder.attributes import (
    Attribute,
    CategoryAttribute,
    GroupAttribute,
    Levels,
    NumberAttribute,
    header_of,
    known_levels,
)
from pomona.higherorder.values import ValueCounts, choose_cuts
from pomona.learner import State
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.table import Place, TableSource, missing_column

DEFAULT_READ, DEFAULT_ENCODE = ReadOptions(), EncodeOptions()
#: Bytes that the distinct values of all numeric columns may take together while cuts are learnt.
SURVEY_BYTES = 1 << 30
#: Columns that share a name but for a number, and of which one is 1, are one attribute from so many on.
GROUP_COLUMNS = 3
_STEM = re.compile(r"^(.*?[^\d_.\- ])[_.\- ]*\d+$")


#: Equal-frequency bins of the second way to cut a number, and how many more each further way has.
SECOND_BINS, MORE_BINS = 15, 5


class Fields(list[str]):
    """Names of the attributes, which also know their levels.

    ``groups`` are the attributes of each model, where there are several over other cuts.
    """

    def __init__(self, attributes: Sequence[Attribute], groups: Sequence[Sequence[int]] | None = None) -> None:
        super().__init__(attribute.name for attribute in attributes)
        self._attributes = list(attributes)
        self.groups = [list(group) for group in groups or [range(len(self))]]

    def level(self, attribute: int, code: int) -> str:
        """A level in words."""
        return self._attributes[attribute].level(code)


class AttributeCoder:
    """Turns record batches into chunks of codes: row i of a chunk holds one code an attribute.

    Parameters
    ----------
    attributes : what columns become, in order.
    target, weight : columns that are not attributes.
    types : Arrow type of each column that is read, by its name.
    whole_target : whether numbers in the target are whole, and so names of classes.
    dropped : columns without information: one value, or all missing.
    groups : the attributes of each model that is to be learnt; all of them belong to one by default.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        types: dict[str, str],
        *,
        target: str | None = None,
        weight: str | None = None,
        whole_target: bool = False,
        dropped: Sequence[str] = (),
        groups: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.attributes = list(attributes)
        self.target, self.weight, self.dropped = target, weight, list(dropped)
        self._types, self._whole_target = types, whole_target
        self.fields = Fields(attributes, groups)

    @property
    def columns(self) -> list[Attribute]:
        """The attributes of the first model, each with ``name`` and ``kind``."""
        return [self.attributes[number] for number in self.fields.groups[0]]

    @property
    def width(self) -> int:
        return max(len(self.attributes), 1)

    @classmethod
    def fit(
        cls,
        source: TableSource,
        read: ReadOptions = DEFAULT_READ,
        encode: EncodeOptions = DEFAULT_ENCODE,
        *,
        labels: NDArray[np.int32] | None = None,
        every_column: bool = False,
    ) -> AttributeCoder:
        """Learn cuts and levels in one pass over the whole table.

        Parameters
        ----------
        source : the table.
        read : which columns play which part.
        encode : ``numeric="auto"`` cuts numbers by Fayyad and Irani's rule, ``"onehot"`` into ``bins`` of equal
            frequency; with ``cuttings`` above 1 they are also cut into more and more bins of equal frequency.
        labels : class codes of the rows, where they are not a column of the table.
        every_column : whether each column is to be an attribute of its own, whether it says anything or not.
        """
        method, bins = _method(encode)
        _check_roles(source, read, need_target=labels is None)
        survey = _Survey(source, read, every_column)
        row = 0
        for batch in source.batches():
            if len(batch) == 0:
                continue
            given = None if labels is None else labels[row : row + len(batch)]
            survey.add(batch, given, source.place)
            row += len(batch)
        if row == 0:
            raise DataFormatError("the table has no rows: there is nothing to learn from", file=source.name)
        attributes, dropped = survey.attributes(method, bins)
        attributes, groups = survey.cut_again(attributes, encode.cuttings)
        types = {name: str(source.schema.field(name).type) for a in attributes for name in a.columns}
        types |= {a.name: "string" for a in attributes if a.kind == "category"}
        return cls(
            attributes,
            types,
            target=read.target,
            weight=read.weight,
            whole_target=survey.whole_target,
            dropped=dropped,
            groups=groups,
        )

    def types(self) -> dict[str, pa.DataType]:
        """Columns the coder reads, with the types it wants where the format leaves a choice."""
        return {name: _type(name_of_type) for name, name_of_type in self._types.items()}

    # ---- coding ----
    def encode(self, batch: pa.RecordBatch, first_row: int = 0, *, file: str = "") -> Chunk:
        """The codes of a batch."""
        (part,) = self.parts(batch, max(len(batch), 1), Place(file, first_row))
        return part()

    def labels(self, batch: pa.RecordBatch) -> NDArray[Any] | None:
        """The targets of a batch, where it has any."""
        target = -1 if self.target is None else batch.schema.get_field_index(self.target)
        return None if target < 0 else labels_of(col.without_views(batch.column(target)), self._whole_target)

    def parts(self, batch: pa.RecordBatch, rows: int, place: Place) -> Iterator[Callable[[], Chunk]]:
        """The same in parts of at most ``rows`` rows, each ready to be coded on any thread."""
        used = {name for attribute in self.attributes for name in attribute.columns}
        arrays = {name: _column(batch, name, place) for name in used}
        labels = self.labels(batch)

        def encode(start: int, stop: int) -> Chunk:
            codes = np.empty((stop - start, len(self.attributes)), np.uint32)
            for number, attribute in enumerate(self.attributes):
                attribute.code([arrays[name].slice(start, stop - start) for name in attribute.columns], codes, number)
            return Chunk(
                indptr=np.arange(stop - start + 1, dtype=np.int64) * codes.shape[1],
                indices=codes.reshape(-1),
                values=np.broadcast_to(np.float32(1), codes.size),
                labels=None if labels is None else labels[start:stop],
                first_line=place.line + start if place.line else 0,
                file=place.file,
            )

        for start in range(0, max(len(batch), 1), rows):
            yield partial(encode, start, min(start + rows, len(batch)))

    # ---- files ----
    def state(self) -> State:
        header = {
            "attributes": [header_of(attribute) for attribute in self.attributes],
            "types": self._types,
            "target": self.target,
            "weight": self.weight,
            "whole_target": self._whole_target,
            "dropped": self.dropped,
            "groups": self.fields.groups,
        }
        cuts = [a.cuts for a in self.attributes if isinstance(a, NumberAttribute)]
        names = PackedNames.join([a.names for a in self.attributes if isinstance(a, CategoryAttribute)])
        arrays = {"cuts": np.concatenate([np.empty(0), *cuts]), "level_text": names.text, "level_ends": names.ends}
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State) -> AttributeCoder:
        header, arrays = state.header, state.arrays
        attributes: list[Attribute] = []
        cuts, text, ends = 0, 0, 0
        for saved in header["attributes"]:
            if saved["kind"] == "number":
                part = arrays["cuts"][cuts : cuts + saved["cuts"]].copy()
                attributes.append(NumberAttribute(saved["name"], saved["columns"][0], saved["of"], part))
                cuts += saved["cuts"]
            elif saved["kind"] == "group":
                attributes.append(GroupAttribute(saved["name"], list(saved["columns"])))
            else:
                last = ends + saved["levels"]
                packed = arrays["level_text"][text : text + saved["bytes"]]
                names = PackedNames(packed.copy(), arrays["level_ends"][ends:last] - text)
                text, ends = text + saved["bytes"], last
                attributes.append(CategoryAttribute(saved["name"], known_levels(names), names, saved["has_missing"]))
        rest = {key: header[key] for key in ("target", "weight", "whole_target", "dropped")}
        return cls(attributes, header["types"], groups=header.get("groups"), **rest)


class _Survey:
    """What one pass over a table collects of each column."""

    def __init__(self, source: TableSource, read: ReadOptions, every_column: bool) -> None:
        self.file, self.read, self.every_column = source.name, read, every_column
        self.whole_target = True
        self._classes: dict[Any, int] = {}
        self.numbers: dict[tuple[str, str], ValueCounts] = {}
        self.levels: dict[str, Levels] = {}
        self.order: list[tuple[str, str]] = []
        used = [name for name in source.schema.names if name not in {read.target, read.weight, *read.ignore}]
        for name in used:
            self._plan(name, source.schema.field(name).type)
        limit = SURVEY_BYTES // (64 * max(len(self.numbers), 1))
        for counts in self.numbers.values():
            counts.limit = max(limit, 1 << 12)
        self.groups = {} if every_column else _stems([name for name, of in self.numbers if not of])

    def _plan(self, name: str, type_: pa.DataType) -> None:
        kind = col.kind_of(type_)
        if kind is None or name in self.read.text:
            what = f"has the type {type_}, which" if kind is None else "is text, which"
            raise DataFormatError(f"column {name!r} {what} cannot become an attribute: ignore it", file=self.file)
        if kind == "category" or name in self.read.categorical:
            self.levels[name] = Levels()
            self.order.append((name, ""))
            return
        for of in col.DATE_PARTS if kind == "date" else ("",):
            self.numbers[name, of] = ValueCounts()
            self.order.append((name, of))

    def add(self, batch: pa.RecordBatch, labels: NDArray[np.int32] | None, place: Place) -> None:
        codes = self._class_codes(batch, place) if labels is None else labels
        for name, levels in self.levels.items():
            levels.learn(_column(batch, name, place))
        columns: dict[str, NDArray[np.float64]] = {}
        for (name, of), counts in self.numbers.items():
            values = col.plain_numbers(_column(batch, name, place), of)
            _refuse_infinite(values, name, place)
            counts.add(values, codes)
            if not of:
                columns[name] = values
        for stem, names in list(self.groups.items()):
            table = np.column_stack([columns[name] for name in names])
            if not (((table == 0) | (table == 1)).all() and (table.sum(axis=1) == 1).all()):
                del self.groups[stem]

    def _class_codes(self, batch: pa.RecordBatch, place: Place) -> NDArray[np.int32]:
        target = col.without_views(_column(batch, str(self.read.target), place))
        raw = labels_of(target, False)
        if raw.dtype.kind == "f":
            there = raw[~np.isnan(raw)]
            self.whole_target &= bool(np.all((there == np.floor(there)) & (np.abs(there) < 2.0**53)))
        if raw.dtype == object:  # a missing one is refused, with its place, when it is to be learnt
            raw = np.array(["" if label is None else str(label) for label in raw])
        distinct, places = np.unique(raw, return_inverse=True)
        codes = [self._classes.setdefault(label, len(self._classes)) for label in distinct.tolist()]
        return np.array(codes, np.int32)[places.reshape(-1)]

    def attributes(self, method: str, bins: int | None) -> tuple[list[Attribute], list[str]]:
        """What the columns become, and those that say nothing."""
        found: list[Attribute] = []
        dropped: list[str] = []
        grouped = {name: stem for stem, names in self.groups.items() for name in names}
        made: set[str] = set()
        for name, of in self.order:
            if name in grouped:
                if grouped[name] not in made:
                    made.add(grouped[name])
                    found.append(GroupAttribute(grouped[name], self.groups[grouped[name]]))
                continue
            attribute: Attribute | None
            attribute = self._category(name) if name in self.levels else self._number(name, of, method, bins)
            if attribute is not None:
                found.append(attribute)
            else:
                dropped.append(f"{name}.{of}" if of else name)
        return found, dropped

    def cut_again(self, attributes: list[Attribute], ways: int) -> tuple[list[Attribute], list[list[int]]]:
        """The attributes with their numbers cut in so many ways, and which of them belong together."""
        found, groups = list(attributes), [list(range(len(attributes)))]
        if not any(isinstance(attribute, NumberAttribute) for attribute in attributes):
            return found, groups
        for way in range(ways - 1):
            shared = [i for i, attribute in enumerate(attributes) if not isinstance(attribute, NumberAttribute)]
            first = len(found)
            for attribute in attributes:
                if isinstance(attribute, NumberAttribute):
                    counts = self.numbers[attribute.column, attribute.of]
                    cuts = choose_cuts(counts, "frequency", SECOND_BINS + MORE_BINS * way)
                    found.append(replace(attribute, cuts=cuts))
            groups.append([*shared, *range(first, len(found))])
        return found, groups

    def _category(self, name: str) -> CategoryAttribute | None:
        levels = self.levels[name]
        names = levels.packed()
        if len(names) + (levels.missing > 0) < 2 and not self.every_column:
            return None
        return CategoryAttribute(name, levels, names, levels.missing > 0)

    def _number(self, name: str, of: str, method: str, bins: int | None) -> NumberAttribute | None:
        counts = self.numbers[name, of]
        cuts = choose_cuts(counts, method, bins)
        if not len(cuts) and not (counts.missing and len(counts.table()[0])) and not self.every_column:
            return None
        return NumberAttribute(f"{name}.{of}" if of else name, name, of, cuts)


def _method(encode: EncodeOptions) -> tuple[str, int | None]:
    methods = {"auto": "mdl", "onehot": "frequency"}
    if encode.numeric not in methods:
        raise OptionError(
            f"numbers become bins here, by MDL (numeric='auto') or of equal frequency (numeric='onehot'); got"
            f" {encode.numeric!r}"
        )
    if encode.bins is not None and encode.bins < 2:
        raise OptionError(f"bins must be 2 or more; got {encode.bins}")
    if encode.cuttings < 1:
        raise OptionError(f"there must be 1 model or more; got {encode.cuttings}")
    return methods[encode.numeric], encode.bins


def _check_roles(source: TableSource, read: ReadOptions, *, need_target: bool) -> None:
    names = source.schema.names
    if need_target and read.target is None:
        raise DataFormatError("the data has no target: name the column to predict", file=source.name)
    if read.weight is not None:
        raise OptionError("this learner takes no weights of rows: leave the option weight out")
    for role, wanted in (
        ("target", [] if read.target is None else [read.target]),
        ("option ignore", read.ignore),
        ("option categorical", read.categorical),
    ):
        for name in wanted:
            if name not in names:
                raise missing_column(name, names, role, source.name)


def _column(batch: pa.RecordBatch, name: str, place: Place) -> pa.Array:
    position = batch.schema.get_field_index(name)
    if position < 0:
        raise missing_column(name, batch.schema.names, "model", place.file)
    return col.without_views(batch.column(position))


def _refuse_infinite(values: NDArray[np.float64], name: str, place: Place) -> None:
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        line = place.line + int(bad[0]) if place.line else 0
        message = f"expected a finite number in column {name!r}, got {values[bad[0]]}: mend it, or leave it empty"
        raise DataFormatError(message, file=place.file, line=line)


def _stems(names: Sequence[str]) -> dict[str, list[str]]:
    """Columns that differ in a number at the end of their names, by what they share."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if match := _STEM.match(name):
            groups.setdefault(match[1], []).append(name)
    taken = set(names)
    return {stem: group for stem, group in groups.items() if len(group) >= GROUP_COLUMNS and stem not in taken}


def _type(name: str) -> pa.DataType:
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return pa.timestamp("ns", tz="UTC") if name.startswith("timestamp") else pa.string()
