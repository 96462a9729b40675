"""The only file that knows ctypes: checks type, shape and contiguity, then calls the compiled core."""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pomona

INTERFACE_VERSION = 1
OK, FULL, BAD_INPUT, NOT_FINITE = range(4)
NO_ROW = 0xFFFFFFFF


def _load() -> c.CDLL:
    # An editable installation has two places: the sources and where the compiled files were put.
    names = ["_pomona" + suffix for suffix in (".so", ".dylib", ".dll")]
    places = [Path(folder) / name for folder in pomona.__path__ for name in names]
    # A core built with other flags, for tests under sanitizers.
    if other := os.environ.get("POMONA_CORE"):
        places = [Path(other)]
    for path in places:
        if path.exists():
            library = c.CDLL(str(path))
            break
    else:
        raise ImportError("the compiled core of pomona is missing: reinstall it with 'pip install .'")
    library.pm_interface_version.restype = c.c_int32
    if (found := library.pm_interface_version()) != INTERFACE_VERSION:
        raise ImportError(
            f"the compiled core of pomona has interface {found}, but {INTERFACE_VERSION} is needed: reinstall it"
        )
    return library


_lib = _load()


def pointer(array: NDArray[Any] | None, dtype: Any) -> c.c_void_p:
    """Address of a contiguous array of exactly this type; None gives a null pointer."""
    if array is None:
        return c.c_void_p(None)
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {np.dtype(dtype)}, got {array.dtype}")
    return c.c_void_p(array.ctypes.data)


_lib.pm_instruction_set.restype = c.c_char_p
_lib.pm_hash.restype = c.c_uint64
_lib.pm_hash.argtypes = [c.c_char_p, c.c_int64, c.c_uint64]
_lib.pm_hash_strings.argtypes = [c.c_void_p, c.c_void_p, c.c_int64, c.c_uint64, c.c_void_p]
_lib.pm_mix.argtypes = _lib.pm_unmix.argtypes = [c.c_void_p, c.c_int64, c.c_void_p]


def instruction_set() -> str:
    return str(_lib.pm_instruction_set().decode())


def hash_name(name: bytes, seed: int = 0) -> int:
    return int(_lib.pm_hash(name, len(name), seed))


def hash_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Ids of strings laid out as in Arrow: string i is ``data[offsets[i]:offsets[i + 1]]``."""
    n = len(offsets) - 1
    if n > 0 and (offsets[0] < 0 or offsets[-1] > len(data) or (np.diff(offsets) < 0).any()):
        raise ValueError("string offsets must rise and stay inside the data")
    ids = np.empty(max(n, 0), np.uint64)
    _lib.pm_hash_strings(
        pointer(data, np.uint8), pointer(offsets, np.int64), len(ids), seed, pointer(ids, np.uint64)
    )
    return ids


def mix(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bijective mixing of column numbers into ids."""
    ids = np.empty_like(columns)
    _lib.pm_mix(pointer(columns, np.uint64), len(columns), pointer(ids, np.uint64))
    return ids


def unmix(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The column numbers that :func:`mix` turned into these ids."""
    columns = np.empty_like(ids)
    _lib.pm_unmix(pointer(ids, np.uint64), len(ids), pointer(columns, np.uint64))
    return columns


class _Map(c.Structure):
    _fields_ = [
        ("keys", c.c_void_p),
        ("rows", c.c_void_p),
        ("capacity", c.c_uint64),
        ("count", c.c_uint64),
        ("limit", c.c_uint64),
    ]


_lib.pm_map_insert.argtypes = [c.POINTER(_Map), *[c.c_void_p], c.c_int64, *[c.c_void_p] * 4]
_lib.pm_map_find.argtypes = [c.POINTER(_Map), c.c_void_p, c.c_int64, c.c_void_p]
_lib.pm_map_rehash.argtypes = [c.POINTER(_Map), c.POINTER(_Map)]


class IdMap:
    """Numbers 64-bit ids 0, 1, 2 … in the order of their first appearance.

    From ``limit`` rows on, new ids share the rows of old ones, as in a hashed table.
    """

    def __init__(self, limit: int = NO_ROW - 1) -> None:
        self._map = _Map(None, None, 0, 0, limit)
        self._allocate(1024)

    def _allocate(self, capacity: int) -> None:
        keys = np.zeros(capacity, np.uint64)
        rows = np.full(capacity, NO_ROW, np.uint32)
        fresh = _Map(keys.ctypes.data, rows.ctypes.data, capacity, 0, self._map.limit)
        if self._map.capacity:
            _lib.pm_map_rehash(c.byref(self._map), c.byref(fresh))
        self._map, self._keys, self._rows = fresh, keys, rows

    def __len__(self) -> int:
        return int(self._map.count)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._rows.nbytes

    def insert(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Rows of the ids, and the positions at which ids never met before stand."""
        rows = np.empty(len(ids), np.uint32)
        fresh = np.empty(len(ids), np.int64)
        n_fresh, done = c.c_int64(0), c.c_int64(0)
        while (
            _lib.pm_map_insert(
                c.byref(self._map),
                pointer(ids, np.uint64),
                len(ids),
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
        rows = np.empty(len(ids), np.uint32)
        _lib.pm_map_find(
            c.byref(self._map), pointer(ids, np.uint64), len(ids), pointer(rows, np.uint32)
        )
        return rows

    def ids(self) -> NDArray[np.uint64]:
        """All ids, by row."""
        used = self._rows != NO_ROW
        ordered = np.empty(len(self), np.uint64)
        ordered[self._rows[used]] = self._keys[used]
        return ordered
