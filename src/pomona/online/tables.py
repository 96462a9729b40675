"""The weight tables of the online learner: who owns the memory that the kernel works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona._buffers import HUGE, zeros
from pomona.online.parameters import OnlineParameters
from pomona.words import byte_words

#: How much more than a table needs is set aside where that is more than its limit.
BEYOND = 8


def slots_needed(degree: int, rows: int) -> int:
    """Multisets of ``degree`` out of ``rows`` features."""
    return rows if degree == 1 else rows * (rows + 1) // 2 if degree == 2 else rows * (rows + 1) * (rows + 2) // 6


class Tables:
    """One table a degree, addressed exactly while that fits its limit; without products also hashed from the start.

    In an exact table the products of rows i >= j >= k stand in the order of the combinatorial number system, so the
    table grows at its end as new features appear, and features that occur together lie together. An exact table
    of products that would outgrow its limit, 2**bits slots or its share of memory, becomes a hashed one.
    """

    def __init__(self, parameters: OnlineParameters) -> None:
        self.parameters = parameters
        self.degree = parameters.degree
        self.slots: list[NDArray[Any]] = []
        self.touched: list[NDArray[np.float64]] = []
        self.hashed: list[bool] = []
        self._reserved: dict[int, NDArray[Any]] = {}
        self.intercept = np.zeros(parameters.stride, parameters.real)
        for _ in range(self.degree):
            self.slots.append(self._empty(self.row_limit if parameters.hashes_features else 0))
            self.touched.append(self._clocks(len(self.slots[-1])))
            self.hashed.append(parameters.hashes_features)

    def _empty(self, n_slots: int) -> NDArray[Any]:
        return zeros((n_slots, self.parameters.stride), self.parameters.real)

    def _clocks(self, n_slots: int) -> NDArray[np.float64]:
        return np.zeros(n_slots if self.parameters.regularized else 0)

    @property
    def slot_bytes(self) -> int:
        return self.parameters.stride * self.parameters.real_bytes + 8 * self.parameters.regularized

    @property
    def row_limit(self) -> int:
        """Rows that the table of single features may have: half of the memory, with 32 bytes a row for finding them."""
        if self.parameters.bits is not None:
            return 1 << self.parameters.bits
        return min(self.parameters.memory // 2 // (self.slot_bytes + 32), _native.NO_ROW - 1)

    @property
    def product_limit(self) -> int:
        """Slots that a table of products may have: an eighth of the memory, since access slows down with size."""
        if self.parameters.bits is not None:
            return 1 << self.parameters.bits
        return self.parameters.memory // 8 // self.slot_bytes

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.slots, *self.touched, self.intercept))

    @property
    def used(self) -> int:
        """Slots that have learnt something."""
        if self.parameters.shared:  # all that have a weight have a sum of squared gradients
            return sum(int(np.count_nonzero(slots[:, 2])) for slots in self.slots)
        if self.parameters.n_outputs > 1:
            return sum(int(np.count_nonzero(slots[:, 2:].any(axis=1))) for slots in self.slots)
        # Weight and sum as one number, so that they are looked at once.
        pair = np.complex128 if self.parameters.float64 else np.uint64
        return sum(int(np.count_nonzero(slots.view(pair)[:, 0])) for slots in self.slots)

    def evidence(self, table: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sums of squared gradients, over all outputs."""
        sums = self.slots[table][places, self.parameters.sums].sum(axis=1, dtype=np.float64)
        return np.asarray(sums * self.parameters.n_outputs if self.parameters.shared else sums)

    def describe(self, model: _native.OnlineStruct) -> None:
        """Point the kernel's struct at the tables."""
        for i in range(3):
            if i >= self.degree:
                model.regions[i] = _native.RegionStruct(None, None, 0, False)
                continue
            model.regions[i] = region(self.slots[i], self.touched[i], self.hashed[i])
        model.intercept = _native.address(self.intercept) if self.parameters.intercept else None

    def grow(self, model: _native.OnlineStruct, n_rows: int) -> None:
        """Make room for products of rows 0 … n_rows - 1."""
        for i in range(self.degree):
            if self.hashed[i]:
                continue
            needed = slots_needed(i + 1, n_rows)
            if needed <= len(self.slots[i]):
                continue
            most = self.product_limit if i else self.row_limit
            if i and needed > most:
                self._to_hashed(model, i, most)
            else:
                self._extend(i, max(needed, min(2 * len(self.slots[i]), most), 1024))
        self.describe(model)

    def _extend(self, i: int, n_slots: int) -> None:
        clocks = self._clocks(n_slots)
        reserved = self._reserved.get(i)
        if reserved is None or len(reserved) < n_slots or reserved.ctypes.data != self.slots[i].ctypes.data:
            # Addresses for all that it may ever need, so that it is copied no more; memory is taken as it is touched.
            # Columns by number may lie beyond the limit, and nobody knows how far.
            most = self.product_limit if i else self.row_limit
            most = most if n_slots <= most else BEYOND * n_slots
            whole = most if n_slots * self.slot_bytes >= HUGE else n_slots
            try:
                self._reserved[i] = self._empty(max(whole, n_slots))
            except OSError:
                self._reserved[i] = self._empty(n_slots)
            self._reserved[i][: len(self.slots[i])] = self.slots[i]
        grown = self._reserved[i][:n_slots]
        clocks[: len(self.touched[i])] = self.touched[i]
        self.slots[i], self.touched[i] = grown, clocks

    def _to_hashed(self, model: _native.OnlineStruct, i: int, most: int) -> None:
        n_slots = 1 << min(max(most.bit_length() - 1, 10), 30)
        slots, touched = self._empty(n_slots), self._clocks(n_slots)
        to = region(slots, touched, hashed=True)
        n_rows = 0
        while slots_needed(i + 1, n_rows + 1) <= len(self.slots[i]):
            n_rows += 1
        self.describe(model)
        _native.online_rehash(model, i + 1, n_rows, to)
        self.slots[i], self.touched[i], self.hashed[i] = slots, touched, True

    def widen(self, parameters: OnlineParameters) -> None:
        """More outputs: the weights of the new classes start at zero."""
        old = self.parameters
        self.parameters = parameters
        self._reserved.clear()
        self.slots = [_widened(table, old, parameters) for table in self.slots]
        self.intercept = _widened(self.intercept[None], old, parameters)[0]


def region(slots: NDArray[Any], touched: NDArray[np.float64], hashed: bool) -> _native.RegionStruct:
    """A table as the kernel sees it."""
    clocks = _native.address(touched) if len(touched) else None
    return _native.RegionStruct(_native.address(slots), clocks, len(slots), hashed)


def _widened(table: NDArray[Any], old: OnlineParameters, new: OnlineParameters) -> NDArray[Any]:
    wide = np.zeros((len(table), new.stride), new.real)
    wide[:, :4] = table[:, :4]
    for block in range(3 if new.ftrl else 1 if new.shared else 2):
        from_, to = 4 + block * old.padded_outputs, 4 + block * new.padded_outputs
        wide[:, to : to + old.n_outputs] = table[:, from_ : from_ + old.n_outputs]
    return wide


def taken(array: NDArray[Any], places: NDArray[np.int64] | None) -> NDArray[Any]:
    """Some rows of an array, or all. (Indexing takes ten times as long.)"""
    return array if places is None else array.take(places, axis=0)


def table_words(table: dict[str, Any], classes: int) -> str:
    """How full the tables are, for a report."""
    kind = "hashed to" if table["hashed"] else "exact, room for"
    full = 100 * table["used"] / max(table["slots"], 1)
    each = f" × {classes} classes" if classes > 2 else ""
    size = byte_words(table["bytes"])
    return f"{table['used']:,}{each} ({kind} {table['slots']:,}, {full:.0f} % full, {size})"
