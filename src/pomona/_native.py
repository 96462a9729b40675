"""The only file that knows ctypes: checks type, shape and contiguity, then calls the compiled core."""

from __future__ import annotations

import ctypes as c
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
    for path in (Path(folder) / name for folder in pomona.__path__ for name in names):
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


# ---- columns of a table to features, text to words ----

RAW, HAT, BINS, RAMP, CODES, STRINGS, ROWS = range(7)
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64, BITS = range(11)
ENCODE_BLOCK = 256

#: One ``pm_column``; the addresses are those of arrays that the caller keeps alive.
COLUMN = np.dtype(
    [
        *[(name, np.int32) for name in ("kind", "type")],
        *[(name, np.int64) for name in ("first", "n_bytes", "n_points", "n_ids")],
        *[(name, np.uint64) for name in ("data", "offsets", "valid", "points", "ids", "values")],
        *[(name, np.uint64) for name in ("missing", "seed")],
        *[(name, np.int32) for name in ("marks_missing", "field")],
    ],
    align=True,
)

_lib.pm_column_width.argtypes = [c.c_int32]
_lib.pm_encode.argtypes = [c.c_void_p, c.c_int64, c.c_int64, *[c.c_void_p] * 4, c.c_int64, c.c_void_p]
_lib.pm_words.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, *[c.c_void_p] * 3, c.c_int64]
_lib.pm_text_rows.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_uint64, c.c_int32, c.c_int32]
_lib.pm_text_rows.argtypes += [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int64, c.c_void_p]

#: indptr, ids, values, fields.
EncodedRows = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint16]]


class BadCellError(ValueError):
    """Row and column of a value that cannot be encoded."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(f"bad value in row {row} of column {column}")
        self.row, self.column = row, column


def column_width(kind: int) -> int:
    return int(_lib.pm_column_width(kind))


def encode_columns(columns: NDArray[np.void], n: int, n_row_entries: int = 0) -> EncodedRows:
    """Features of ``n`` rows; ``n_row_entries`` are those of the columns of kind ``ROWS``."""
    width = sum(column_width(kind) for kind in columns["kind"].tolist())
    capacity = width * (n + ENCODE_BLOCK) + n_row_entries
    indptr = np.zeros(n + 1, np.int64)
    ids, values = np.empty(capacity, np.uint64), np.empty(capacity, np.float32)
    fields, bad = np.empty(capacity, np.uint16), np.zeros(2, np.int64)
    status = _lib.pm_encode(
        pointer(columns, COLUMN),
        len(columns),
        n,
        pointer(indptr, np.int64),
        pointer(ids, np.uint64),
        pointer(values, np.float32),
        pointer(fields, np.uint16),
        capacity,
        pointer(bad, np.int64),
    )
    if status != OK:
        raise BadCellError(int(bad[0]), int(bad[1]))
    count = int(indptr[-1])
    return indptr, ids[:count], values[:count], fields[:count]


def words(
    data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Words of lower-case strings: where those of each string begin, then start and end of every word."""
    n = len(offsets) - 1
    capacity = (int(offsets[-1] - offsets[0]) if n > 0 else 0) + 1
    rows = np.zeros(n + 1, np.int64)
    starts, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    status = _lib.pm_words(
        pointer(data, np.uint8),
        len(data),
        pointer(offsets, np.int64),
        n,
        pointer(rows, np.int64),
        pointer(starts, np.int64),
        pointer(ends, np.int64),
        capacity,
    )
    if status != OK:
        raise ValueError("string offsets must rise and stay inside the data")
    return rows, starts[: rows[-1]], ends[: rows[-1]]


def text_rows(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int, ngrams: int = 1, skips: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """Words and n-grams of lower-case strings as CSR rows, weighed and scaled to length 1."""
    n = len(offsets) - 1
    rows, done = np.zeros(n + 1, np.int64), np.zeros(1, np.int64)
    capacity = (len(data) // 4 + 64) * ngrams * (skips + 1)
    ids, values = np.empty(capacity, np.uint64), np.empty(capacity, np.float32)
    while (
        status := _lib.pm_text_rows(
            pointer(data, np.uint8),
            len(data),
            pointer(offsets, np.int64),
            n,
            seed,
            ngrams,
            skips,
            pointer(rows, np.int64),
            pointer(ids, np.uint64),
            pointer(values, np.float32),
            len(ids),
            pointer(done, np.int64),
        )
    ) == FULL:
        ids, values = np.resize(ids, 2 * len(ids)), np.resize(values, 2 * len(values))
    if status != OK:
        raise ValueError("string offsets must rise and stay inside the data")
    return rows, ids[: rows[-1]], values[: rows[-1]]
