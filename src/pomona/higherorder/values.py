"""Distinct values of a numeric attribute with their class counts, and the cuts made from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import mdl_cuts
from pomona.encode.bins import Floats, between, edges

Counts = NDArray[np.uint32]
Labels = NDArray[np.int32]

#: Rows that are collected before they are counted.
BUFFER_ROWS = 1 << 20
#: A column without a cut that pays may still matter together with others: if it has no more values than this, each is
#: a level, and else it is cut into so many bins of equal frequency. (More of them cost more than they gave on higgs.)
FEW_VALUES, FALLBACK_BINS = 32, 2


class ValueCounts:
    """Class counts of the distinct values of a column, collected in bounded memory; two of them can be merged.

    Exact as long as there are at most ``limit`` distinct values. Beyond it, neighbours are put together into
    ``limit / 2`` groups of about equal mass, each standing at its largest value: a value is then misplaced by at most
    one such group in each of the (few) compressions.
    """

    def __init__(self, limit: int = 1 << 20) -> None:
        self.limit = max(limit, 16)
        self.values: Floats = np.empty(0)
        self.counts: Counts = np.empty((0, 1), np.uint32)
        self.missing = 0
        self.exact = True
        self._waiting: list[tuple[Floats, Labels]] = []
        self._n_waiting = 0

    def add(self, values: Floats, labels: Labels) -> None:
        """Take rows; NaN is missing, and infinite values lie at the ends."""
        absent = np.isnan(values)
        if absent.any():
            self.missing += int(absent.sum())
            values, labels = values[~absent], labels[~absent]
        self._waiting.append((values, labels))
        self._n_waiting += len(values)
        if self._n_waiting >= BUFFER_ROWS:
            self._count()

    def merge(self, other: ValueCounts) -> None:
        """Take what another has counted."""
        other._count()
        self._count()
        self._join(other.values, other.counts)
        self.missing += other.missing
        self.exact = self.exact and other.exact

    def table(self) -> tuple[Floats, Counts]:
        """Distinct values, rising, and their counts (values, classes)."""
        self._count()
        return self.values, self.counts

    def _count(self) -> None:
        if not self._n_waiting:
            return
        values = np.concatenate([part[0] for part in self._waiting])
        labels = np.concatenate([part[1] for part in self._waiting]).astype(np.int64)
        self._waiting, self._n_waiting = [], 0
        distinct, places = np.unique(values, return_inverse=True)
        classes = int(labels.max()) + 1
        flat = np.bincount(places.reshape(-1) * classes + labels, minlength=len(distinct) * classes)
        self._join(distinct, flat.reshape(len(distinct), classes).astype(np.uint32))

    def _join(self, values: Floats, counts: Counts) -> None:
        if len(self.values):
            merged = np.union1d(self.values, values)
            total = np.zeros((len(merged), max(counts.shape[1], self.counts.shape[1])), np.uint32)
            for v, n in ((self.values, self.counts), (values, counts)):
                total[np.searchsorted(merged, v), : n.shape[1]] += n
            values, counts = merged, total
        if len(values) > self.limit:
            mass = counts.sum(axis=1, dtype=np.float64)
            group = np.minimum((np.cumsum(mass) - mass / 2) / mass.sum() * (self.limit // 2), self.limit // 2 - 1)
            starts = np.flatnonzero(np.diff(group.astype(np.int64), prepend=-1))
            counts = np.add.reduceat(counts, starts, axis=0).astype(np.uint32)
            values = values[np.append(starts[1:], len(values)) - 1]
            self.exact = False
        self.values, self.counts = values, counts


def mdl(values: Floats, counts: Counts) -> Floats:
    """Cuts that Fayyad and Irani's minimum description length accepts, rising."""
    places = mdl_cuts(np.ascontiguousarray(counts))
    return between(values[places], values[places + 1])


def equal_frequency(values: Floats, counts: Counts, bins: int) -> Floats:
    """Cuts between bins of about equal mass."""
    return edges(values, counts.sum(axis=1, dtype=np.float64), bins)


def choose_cuts(found: ValueCounts, method: str, bins: int | None) -> Floats:
    """Cuts of a column by ``"mdl"`` or ``"frequency"``; by values or frequency where no cut pays."""
    values, counts = found.table()
    if len(values) < 2:
        return np.empty(0)
    if method == "frequency":
        return equal_frequency(values, counts, bins or 10)
    cuts = mdl(values, counts)
    if len(cuts):
        return cuts
    if len(values) <= FEW_VALUES:
        return between(values[:-1], values[1:])
    return equal_frequency(values, counts, FALLBACK_BINS)
