"""Examples as blocks of rows that can be read again and again: in memory, from files, or generated on the fly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.leastsquares.arrays import Array, Place


class Rows(Protocol):
    """n examples, some thousand at a time."""

    @property
    def n(self) -> int: ...

    @property
    def d(self) -> int: ...

    @property
    def place(self) -> Place: ...

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """One pass: which rows, and their features as a dense array at :attr:`place` or as CSR."""
        ...


class ArrayRows:
    """Rows of an array or of a CSR matrix that lie in memory."""

    def __init__(self, X: Array, place: Place, block_rows: int | None = None) -> None:
        self._X = X.tocsr() if sparse.issparse(X) else X
        self.place = place
        self.n, self.d = int(X.shape[0]), int(X.shape[1])
        self._block_rows = block_rows or place.block_rows(self.d)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n, self._block_rows):
            where = slice(start, min(start + self._block_rows, self.n))
            yield where, ready(self._X[where, :], self.place)


def ready(block: Array, place: Place) -> Array:
    """A block at its place; sparse ones stay sparse where SciPy computes."""
    if not sparse.issparse(block):
        return place.put(block)
    if place.is_numpy:
        return block.astype(np.dtype(place.precision), copy=False)
    return place.put(block.toarray())


class GeneratedRows:
    """Features made from other rows; blocks that fit into ``memory`` are kept for the next pass."""

    def __init__(self, rows: Rows, features: Callable[[Array], Array], width: int, memory: int) -> None:
        self._rows, self._features, self._memory = rows, features, memory
        self.n, self.d, self.place = rows.n, width, rows.place
        self._kept: dict[int, Array] = {}

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        if sum(len_of(block) for block in self._kept.values()) == self.n:
            for start, block in self._kept.items():
                yield slice(start, start + len_of(block)), block
            return
        for where, block in self._rows.blocks():
            made = self._kept.get(where.start)
            if made is None:
                made = self._features(block)
                self._keep(where.start, made)
            yield where, made

    def _keep(self, start: int, block: Array) -> None:
        size = bytes_of(block)
        if size <= self._memory:
            self._kept[start] = block
            self._memory -= size


def len_of(block: Array) -> int:
    return int(block.shape[0])


def bytes_of(block: Array) -> int:
    if sparse.issparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    return int(block.shape[0]) * int(block.shape[1]) * (8 if "64" in str(block.dtype) else 4)


def spread(n: int, weights: NDArray[np.float64] | None, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most so many row numbers, evenly spread over the total weight, and the weight of each.

    All rows with their own weights where they are few, so that a weight of 2 is the same as the row twice.
    """
    w = np.ones(n) if weights is None else weights
    present = np.flatnonzero(w > 0)
    if len(present) <= most:
        return present, w[present]
    ends = np.cumsum(w[present])
    wanted = (np.arange(most) + 0.5) * (ends[-1] / most)
    chosen, counts = np.unique(np.searchsorted(ends, wanted), return_counts=True)
    return present[chosen], counts.astype(np.float64)


def gather(rows: Rows, numbers: NDArray[np.int64]) -> Array:
    """Some rows, in rising order of their numbers, as one dense or sparse block."""
    parts = []
    for where, block in rows.blocks():
        inside = numbers[np.searchsorted(numbers, where.start) : np.searchsorted(numbers, where.stop)] - where.start
        if not len(inside):
            continue
        if sparse.issparse(block):
            parts.append(block[inside])
        else:
            parts.append(rows.place.xp.take(block, rows.place.integers(inside), axis=0))
        if numbers[-1] < where.stop:
            break
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else rows.place.xp.concat(parts, axis=0)


def has_bad_numbers(block: Array, place: Place) -> bool:
    """Whether a block holds NaN or infinity."""
    if sparse.issparse(block):
        return not bool(np.isfinite(block.data).all())
    return not bool(place.xp.all(place.xp.isfinite(block)))
