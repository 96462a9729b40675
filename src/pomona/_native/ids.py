"""Names to ids, ids to rows, and labels to codes."""

from __future__ import annotations

import ctypes as c

import numpy as np
from numpy.typing import NDArray

from pomona._buffers import BufferPool, zeros
from pomona._native.library import FULL, address, lib, pointer, quick

NO_ROW = 0xFFFFFFFF

lib.pm_instruction_set.restype = c.c_char_p
quick.pm_hash.restype = c.c_uint64
quick.pm_hash.argtypes = [c.c_char_p, c.c_int64, c.c_uint64]
lib.pm_hash_strings.argtypes = [c.c_void_p, c.c_void_p, c.c_int64, c.c_uint64, c.c_void_p]
lib.pm_take_strings.argtypes = [*[c.c_void_p] * 3, c.c_int64, *[c.c_void_p] * 2]
lib.pm_column_keys.argtypes = [c.c_void_p, c.c_int64, c.c_void_p]
lib.pm_mix.argtypes = lib.pm_unmix.argtypes = [c.c_void_p, c.c_int64, c.c_void_p]


def instruction_set() -> str:
    return str(lib.pm_instruction_set().decode())


def hash_name(name: bytes, seed: int = 0) -> int:
    return int(quick.pm_hash(name, len(name), seed))


def hash_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Ids of strings laid out as in Arrow: string i is ``data[offsets[i]:offsets[i + 1]]``."""
    ids = np.empty(_n_strings(data, offsets), np.uint64)
    lib.pm_hash_strings(pointer(data, np.uint8), pointer(offsets, np.int64), len(ids), seed, pointer(ids, np.uint64))
    return ids


def take_strings(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], numbers: NDArray[np.uint32]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Some of such strings, one after the other, and where each ends."""
    n = _n_strings(data, offsets)
    if len(numbers) and int(numbers.max()) >= n:
        raise ValueError(f"there are {n} strings, but number {int(numbers.max())} was asked for")
    out = np.empty(int(np.diff(offsets)[numbers].sum()), np.uint8)
    ends = np.empty(len(numbers), np.int64)
    lib.pm_take_strings(
        pointer(data, np.uint8),
        pointer(offsets, np.int64),
        pointer(numbers, np.uint32),
        len(numbers),
        pointer(out, np.uint8),
        pointer(ends, np.int64),
    )
    return out, ends


def _n_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> int:
    """How many strings there are, once their places are known to be sound."""
    n = len(offsets) - 1
    if n > 0 and (offsets[0] < 0 or offsets[-1] > len(data) or (np.diff(offsets) < 0).any()):
        raise ValueError("string offsets must rise and stay inside the data")
    return max(n, 0)


def mix(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bijective mixing of column numbers into ids."""
    ids = np.empty_like(columns)
    lib.pm_mix(pointer(columns, np.uint64), len(columns), pointer(ids, np.uint64))
    return ids


def column_keys(columns: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Lower halves of the ids of columns, by which a hashed table finds them."""
    keys = _buffers.array(len(columns), np.uint32)
    lib.pm_column_keys(pointer(columns, np.uint32), len(columns), pointer(keys, np.uint32))
    return keys


def unmix(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The column numbers that :func:`mix` turned into these ids."""
    columns = np.empty_like(ids)
    lib.pm_unmix(pointer(ids, np.uint64), len(ids), pointer(columns, np.uint64))
    return columns


quick.pm_label_codes.restype = c.c_int64
quick.pm_label_codes.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_double, c.c_double, c.c_void_p]


def label_codes(
    labels: NDArray[np.float64], classes: NDArray[np.float64], first: float, step: float
) -> NDArray[np.float64] | None:
    """``first + step * k`` for labels that are ``classes[k]``; None where one is no class."""
    n, codes = len(labels), np.empty(len(labels))
    places = pointer(labels, np.float64), n, pointer(classes, np.float64), len(classes)
    return codes if quick.pm_label_codes(*places, first, step, pointer(codes, np.float64)) == n else None


class _Map(c.Structure):
    _fields_ = [
        ("entries", c.c_void_p),
        ("capacity", c.c_uint64),
        ("count", c.c_uint64),
        ("limit", c.c_uint64),
        ("kept", c.c_uint64),
    ]


lib.pm_map_insert.argtypes = [c.POINTER(_Map), c.c_void_p, c.c_int64, c.c_int32, *[c.c_void_p] * 4]
lib.pm_map_find.argtypes = [c.POINTER(_Map), c.c_void_p, c.c_int64, c.c_void_p]
lib.pm_map_rehash.argtypes = [c.POINTER(_Map), c.POINTER(_Map)]


_buffers = BufferPool()


class IdMap:
    """Numbers 64-bit ids 0, 1, 2 … in the order of their first appearance.

    From ``limit`` rows on, new ids share the rows of old ones, as in a hashed table. Ids whose last ``bits`` are the
    same are the same. One thread may insert while others find.
    """

    def __init__(self, limit: int = NO_ROW - 1, bits: int | None = None) -> None:
        self._map = _Map(None, 0, 0, limit, 2 ** (64 if bits is None else bits) - 1)
        self._allocate(1024)

    def _allocate(self, capacity: int) -> None:
        entries = zeros((capacity, 2), np.uint64)  # id, row + 1
        grown = _Map(entries.ctypes.data, capacity, 0, self._map.limit, self._map.kept)
        if self._map.capacity:
            lib.pm_map_rehash(c.byref(self._map), c.byref(grown))
        # What :meth:`find` uses, replaced as a whole.
        self._map, self._entries, self._current = grown, entries, (grown, entries)

    def __len__(self) -> int:
        return int(self._map.count)

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes

    def insert(
        self, ids: NDArray[np.uint64], found: NDArray[np.uint32] | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Rows of the ids, and the positions at which ids never met before stand.

        ``found`` is what :meth:`find` said before, and is completed.
        """
        rows = np.empty(len(ids), np.uint32) if found is None else found
        if len(rows) != len(ids):
            raise ValueError("expected one row an id")
        fresh = _buffers.array(len(ids), np.int64)
        n_fresh, done = c.c_int64(0), c.c_int64(0)
        while (
            lib.pm_map_insert(
                c.byref(self._map),
                pointer(ids, np.uint64),
                len(ids),
                found is not None,
                pointer(rows, np.uint32),
                pointer(fresh, np.int64),
                c.byref(n_fresh),
                c.byref(done),
            )
            == FULL
        ):
            self._allocate(2 * int(self._map.capacity))
        return rows, fresh[: n_fresh.value].copy()

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Rows of the ids, ``NO_ROW`` for those never inserted."""
        rows = _buffers.array(len(ids), np.uint32)
        current, entries = self._current
        lib.pm_map_find(c.byref(current), pointer(ids, np.uint64), len(ids), pointer(rows, np.uint32))
        del entries  # held as long as the core looks at them
        return rows

    def ids(self) -> NDArray[np.uint64]:
        """All ids, by row."""
        used = self._entries[self._entries[:, 1] > 0]
        ordered = np.empty(len(self), np.uint64)
        ordered[used[:, 1] - np.uint64(1)] = used[:, 0]
        return ordered


class _Columns(c.Structure):
    _fields_ = [("row_plus_one", c.c_void_p), *[(name, c.c_uint64) for name in ("n_columns", "count", "limit")]]


lib.pm_columns_insert.argtypes = [c.POINTER(_Columns), c.c_void_p, c.c_int64, *[c.c_void_p] * 4]
lib.pm_columns_find.argtypes = [c.POINTER(_Columns), c.c_void_p, c.c_int64, c.c_void_p]


class ColumnRows:
    """Numbers the columns of a wide matrix 0, 1, 2 … in the order of their first appearance.

    From ``limit`` rows on, new columns share the rows of old ones, as ids do in an :class:`IdMap`. Up to ``WIDEST``
    columns are looked up in a table, which takes a quarter of the time; of more most never appear.
    """

    WIDEST = 1 << 26

    def __init__(self, limit: int, width: int) -> None:
        self._ids = IdMap(limit) if width > self.WIDEST else None
        self._table = _Columns(None, 0, 0, limit)
        self._row_plus_one = np.zeros(0, np.uint32)
        self._widen(0 if self._ids else width)
        #: Columns that have a row of their own, by row, in pieces.
        self._pieces: list[NDArray[np.uint32]] = []

    def _widen(self, width: int) -> None:
        wide = zeros((1, width), np.uint32)[0]
        wide[: len(self._row_plus_one)] = self._row_plus_one
        self._row_plus_one = wide
        self._table.row_plus_one, self._table.n_columns = address(wide), width

    def insert(self, columns: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Rows of the columns, and the positions at which columns that just got a row of their own stand."""
        rows, fresh = self._insert(columns) if self._ids is None else self._ids.insert(mix(columns.astype(np.uint64)))
        self._pieces.append(columns[fresh])
        return rows, fresh

    def _insert(self, columns: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        rows, fresh = _buffers.array(len(columns), np.uint32), _buffers.array(len(columns), np.int64)
        n_fresh, done = c.c_int64(0), c.c_int64(0)
        while (
            lib.pm_columns_insert(
                c.byref(self._table),
                pointer(columns, np.uint32),
                len(columns),
                pointer(rows, np.uint32),
                pointer(fresh, np.int64),
                c.byref(n_fresh),
                c.byref(done),
            )
            == FULL
        ):
            self._widen(max(int(columns[done.value]) + 1, 2 * len(self._row_plus_one)))
        return rows, fresh[: n_fresh.value].copy()

    def find(self, columns: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Rows of the columns, ``NO_ROW`` for those never inserted."""
        if self._ids is not None:
            return self._ids.find(mix(columns.astype(np.uint64)))
        rows = _buffers.array(len(columns), np.uint32)
        lib.pm_columns_find(c.byref(self._table), pointer(columns, np.uint32), len(columns), pointer(rows, np.uint32))
        return rows

    def columns(self) -> NDArray[np.uint32]:
        """The columns that have a row of their own, by row."""
        if len(self._pieces) != 1:
            self._pieces = [np.concatenate([np.zeros(0, np.uint32), *self._pieces])]
        return self._pieces[0]


lib.pm_mark_new.restype = c.c_int64
lib.pm_mark_new.argtypes = [c.c_void_p, c.c_uint64, c.c_void_p, c.c_int32, c.c_int64, c.c_void_p]


class Marks:
    """Which of ``n`` places (a power of two) were met, as bits: those of a usual table stay in the nearest cache."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._bits = np.zeros((n + 63) // 64, np.uint64)

    def __len__(self) -> int:
        return self._n

    def meet(self, indices: NDArray[np.uint64] | NDArray[np.uint32]) -> NDArray[np.int64]:
        """Positions of ids or columns whose place (modulo ``n``) has no mark yet; all get one."""
        wide = indices.dtype == np.uint64
        fresh = _buffers.array(len(indices) + 1, np.int64)
        count = lib.pm_mark_new(
            pointer(self._bits, np.uint64),
            self._n,
            pointer(indices, np.uint64 if wide else np.uint32),
            wide,
            len(indices),
            pointer(fresh, np.int64),
        )
        return fresh[:count].copy()
