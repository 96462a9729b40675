"""Exploration and counting: which features occur, and how often with each class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import CELLS, RANKED, Codes, Labels, TupleIndex
from pomona.errors import OptionError
from pomona.higherorder.bits import concatenated, packed, thinned
from pomona.higherorder.tuples import CELL_BYTES, TupleSet, row_starts
from pomona.words import byte_words

Counts = NDArray[np.uint32]
Blocks = Callable[[], Iterable[tuple[Codes, Labels]]]
#: Bytes of a feature and class while learning: its count, its slot, and a copy of its weight.
FEATURE_BYTES = 16
#: Rows of counts that are worked on at once.
BLOCK = 1 << 18


@dataclass(eq=False)
class TupleCounts:
    """Features of a set of tuples, with their class counts (row 0: cells that are no features)."""

    tuples: TupleSet
    index: TupleIndex
    counts: Counts
    class_counts: NDArray[np.int64]

    @property
    def n_classes(self) -> int:
        return int(self.counts.shape[1])

    @property
    def starts(self) -> NDArray[np.int64]:
        return row_starts(self.index)

    def take(self, places: list[int]) -> TupleCounts:
        """Some tuples only; nothing is counted again."""
        starts = self.starts
        rows = [np.arange(starts[i], starts[i + 1]) for i in places]
        cells = self.index.starts.astype(np.int64)
        bits = concatenated((self.index.words["bits"], int(cells[i]), int(cells[i + 1])) for i in places)
        tuples = self.tuples.take(places)
        kept = np.concatenate([np.zeros(1, np.int64), *rows])
        counts = self.counts[kept]
        counts[0] = 0
        return TupleCounts(tuples, tuples.index(bits=bits), counts, self.class_counts)

    def keep(self, wanted: NDArray[np.bool_]) -> TupleCounts:
        """Some features only: ``wanted`` has an entry for each row, 0 included."""
        bits = thinned(self.index.words["bits"], wanted[1:])
        keep = wanted.copy()
        keep[0] = True
        counts = self.counts[keep]
        counts[0] = 0
        return TupleCounts(self.tuples, self.tuples.index(bits=bits), counts, self.class_counts)

    def log_probabilities(self, m: float) -> NDArray[np.float32]:
        """log P(F|y), shape (features + 1, classes): M-estimates ``(count + m/|F|) / (count(y) + m)``; row 0 is 0."""
        extra = np.repeat(m / self.tuples.cardinalities(), np.diff(self.starts))
        totals = np.log(self.class_counts + m).astype(np.float32)
        found = np.zeros(self.counts.shape, np.float32)
        for start in range(1, len(self.counts), BLOCK):
            rows = slice(start, min(start + BLOCK, len(self.counts)))
            part = self.counts[rows] + extra[rows.start - 1 : rows.stop - 1, None].astype(np.float32)
            found[rows] = np.log(part, dtype=np.float32) - totals
        return found

    def mutual_information(self) -> NDArray[np.float64]:
        """MI(T; Y) of each tuple in nats, from plain shares."""
        return _sum_by_tuple(self.feature_information(), self.starts)

    def feature_information(self) -> NDArray[np.float64]:
        """What each feature adds to the mutual information of its tuple; entry 0 is 0."""
        n = float(self.class_counts.sum())
        share = self.class_counts / n
        found = np.zeros(len(self.counts))
        for start in range(1, len(self.counts), BLOCK):
            part = self.counts[start : start + BLOCK].astype(np.float64)
            expected = part.sum(axis=1, keepdims=True) * share
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(part > 0, part * np.log(part / expected), 0.0)
            found[start : start + BLOCK] = terms.sum(axis=1) / n
        return found


def joined(parts: list[TupleCounts]) -> TupleCounts:
    """The features of several sets of tuples over the same attributes as one."""
    members = [t for part in parts for t in part.tuples.members]
    tuples = TupleSet(members, parts[0].tuples.sizes)
    bits = concatenated((part.index.words["bits"], 0, part.index.n_cells) for part in parts)
    counts = np.concatenate([parts[0].counts[:1], *[part.counts[1:] for part in parts]])
    return TupleCounts(tuples, tuples.index(bits=bits), counts, parts[0].class_counts)


def _sum_by_tuple(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    sums = np.concatenate([np.zeros(1), np.cumsum(values)])
    return np.asarray(sums[starts[1:]] - sums[starts[:-1]])


def count_tuples(
    tuples: TupleSet,
    blocks: Blocks,
    class_counts: NDArray[np.int64],
    memory: int,
    *,
    lower: TupleCounts | None = None,
    min_count: int = 1,
) -> TupleCounts:
    """Explore and count: one pass where a table of all cells fits an eighth of ``memory``, else two.

    With ``lower``, a feature counts only if all its parts are features there.
    """
    n_classes, cells = len(class_counts), tuples.n_cells
    check_cells(tuples, memory)
    if lower is None and 4 * n_classes * (cells + 1) <= memory // 8:
        counted = _count_dense(tuples, blocks, class_counts)
    else:
        counted = _count_ranked(tuples, blocks, class_counts, memory, lower)
    if min_count > 1:
        counted = counted.keep(counted.counts.sum(axis=1) >= min_count)
    return counted


def _count_dense(tuples: TupleSet, blocks: Blocks, class_counts: NDArray[np.int64]) -> TupleCounts:
    index = tuples.index(CELLS)
    counts = np.zeros((index.n_rows + 1, len(class_counts)), np.uint32)
    for codes, labels in blocks():
        index.count(codes, labels, counts)
    present: NDArray[np.bool_] = np.asarray(counts.any(axis=1))
    ranked = tuples.index(RANKED, bits=packed(present[1:].astype(np.uint8)))
    present[0] = True
    return TupleCounts(tuples, ranked, counts[present], class_counts)


def _count_ranked(
    tuples: TupleSet, blocks: Blocks, class_counts: NDArray[np.int64], memory: int, lower: TupleCounts | None
) -> TupleCounts:
    index = tuples.index(RANKED)
    parents = None if lower is None else tuples.parents(lower.tuples)
    for codes, _ in blocks():
        index.explore(codes, None if lower is None else lower.index, parents)
    index.rank()
    check_features(index.n_rows, len(class_counts), memory)
    counts = np.zeros((index.n_rows + 1, len(class_counts)), np.uint32)
    for codes, labels in blocks():
        index.count(codes, labels, counts)
    counts[0] = 0
    return TupleCounts(tuples, index, counts, class_counts)


OPTIONS = (
    "ask for a lower order, select features (feature_selection=True, --select-features) or tuples level by level"
    " (hierarchical=True with selection='mi', --hierarchical --select mi), ignore the columns with the most levels, or"
    " raise memory"
)


def check_cells(tuples: TupleSet, memory: int) -> None:
    """Refuse tuples whose bitmap alone is beyond the memory limit."""
    needed = tuples.n_cells * CELL_BYTES
    if needed > memory:
        sizes = [int(size) - 1 for size in tuples.sizes]
        raise OptionError(
            f"the order-{tuples.order} model would need {byte_words(int(needed))} for the map of its"
            f" {tuples.n_cells:,} value combinations (the largest attribute has {max(sizes):,} levels), and the memory"
            f" limit is {byte_words(memory)}: {OPTIONS}"
        )


def check_features(features: int, n_classes: int, memory: int) -> None:
    """Refuse features whose parameters are beyond the memory limit."""
    needed = FEATURE_BYTES * max(n_classes, 3) * features
    if needed > memory:
        raise OptionError(
            f"the model would have {features:,} features, which need {byte_words(needed)} while learning, and the"
            f" memory limit is {byte_words(memory)}: {OPTIONS}"
        )
