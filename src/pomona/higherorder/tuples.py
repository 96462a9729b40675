"""Tuples of attributes: enumeration, growing by an order, and their cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import CELLS, HASHED, RANKED, TupleIndex
from pomona.errors import OptionError

Members = tuple[int, ...]
#: Bytes of the bitmap for a cell: a bit, and a rank of 64 bits for 64 cells.
CELL_BYTES = 0.25


def all_tuples(n_attributes: int, order: int) -> list[Members]:
    """All sets of so many attributes, in the order of their numbers; all of them together where they are fewer."""
    order = min(order, n_attributes)
    return [] if order == 0 else list(itertools.combinations(range(n_attributes), order))


def grown(selected: Iterable[Members], n_attributes: int) -> list[Members]:
    """Tuples of the next order whose parts were all selected: what hsALR builds at each level."""
    known = set(selected)
    order = len(next(iter(known))) if known else 0
    found = {
        tuple(sorted((*members, extra))) for members in known for extra in range(n_attributes) if extra not in members
    }
    return sorted(t for t in found if all(part in known for part in itertools.combinations(t, order)))


@dataclass(frozen=True, eq=False)
class TupleSet:
    """Tuples over attributes of given sizes.

    ``sizes`` counts codes, the one of unseen levels included; all tuples may have different orders.
    """

    members: list[Members]
    sizes: NDArray[np.uint32]

    @property
    def order(self) -> int:
        return max((len(t) for t in self.members), default=1)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def n_cells(self) -> int:
        return sum(self.cells(t) for t in self.members)

    def cells(self, members: Members) -> int:
        """Value combinations, those with unseen levels included."""
        return math.prod(int(self.sizes[a]) for a in members)

    def cardinalities(self) -> NDArray[np.float64]:
        """|F| of each tuple: its value combinations, seen together or not."""
        return np.array([math.prod(max(float(self.sizes[a]) - 1, 1) for a in t) for t in self.members])

    def take(self, places: Sequence[int]) -> TupleSet:
        return TupleSet([self.members[i] for i in places], self.sizes)

    def index(self, kind: int = RANKED, *, bits: NDArray[np.uint64] | None = None, n_rows: int = 0) -> TupleIndex:
        """Where the parameters of the cells are; ``bits`` marks those that occur."""
        order, n = self.order, len(self.members)
        columns, strides = np.zeros((order, n), np.int32), np.zeros((order, n), np.uint32)
        starts = np.zeros(n + 1, np.uint64)
        for i, members in enumerate(self.members):
            stride = 1
            for p, attribute in enumerate(members):
                columns[p, i] = attribute
                strides[p, i] = stride
                stride *= int(self.sizes[attribute])
            if stride >= 1 << 32:
                raise OptionError(
                    f"a tuple may have 2^32 value combinations, but the attributes {members} have {stride:,}: ask for a"
                    " lower order, or select features (feature_selection=True, --select-features)"
                )
            starts[i + 1] = starts[i] + np.uint64(stride)
        return TupleIndex(columns, strides, starts, self.sizes, kind, bits=bits, n_rows=n_rows)

    def parents(self, lower: TupleSet) -> NDArray[np.int32]:
        """Number in ``lower`` of each tuple without one of its attributes; -1 where it is not there."""
        places = {members: i for i, members in enumerate(lower.members)}
        found = np.full((self.order, len(self.members)), -1, np.int32)
        for i, members in enumerate(self.members):
            for p in range(len(members)):
                found[p, i] = places.get(members[:p] + members[p + 1 :], -1)
        return found


def row_starts(index: TupleIndex) -> NDArray[np.int64]:
    """First row of each tuple's features, and the end of the last; rows begin at 1."""
    found = []
    for start in index.starts.tolist():
        word, bit = divmod(start, 64)
        if word == len(index.words):
            found.append(index.n_rows + 1)
            continue
        entry = index.words[word]
        below = int(entry["bits"]) & ((1 << bit) - 1)
        found.append(int(entry["rank"]) + below.bit_count() + 1)
    return np.array(found, np.int64)


def row_cells(index: TupleIndex, rows: Sequence[int]) -> list[int]:
    """Cells of rows: the inverse of the rank."""
    below = np.asarray(rows, np.uint64) - np.uint64(1)
    words = np.searchsorted(index.words["rank"], below, side="right") - 1
    entries = index.words[words]
    bits = np.unpackbits(entries["bits"].copy().view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    # The bit of a row is the first by which as many are set as its rank in the word says.
    places = (bits.cumsum(axis=1) > (below - entries["rank"])[:, None]).argmax(axis=1)
    return [int(cell) for cell in 64 * words + places]


__all__ = ["CELLS", "HASHED", "RANKED", "Members", "TupleSet", "all_tuples", "grown", "row_cells", "row_starts"]
