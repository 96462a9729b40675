"""Columns of a table to features, text to words."""

from __future__ import annotations

import ctypes as c

import numpy as np
from numpy.typing import NDArray

from pomona._buffers import BufferPool
from pomona._native.library import FULL, OK, lib, pointer

RAW, HAT, BINS, RAMP, CODES, STRINGS, ROWS = range(7)
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64, BITS = range(11)
ENCODE_SCRATCH = 264

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

lib.pm_column_width.argtypes = [c.c_int32]
lib.pm_encode.argtypes = [c.c_void_p, c.c_int64, c.c_int64, *[c.c_void_p] * 4, c.c_int64, c.c_void_p]
lib.pm_words.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_uint64, *[c.c_void_p] * 4, c.c_int64]
lib.pm_word_rows.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_uint64, c.c_int32, c.c_int32]
lib.pm_word_rows.argtypes += [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int64, c.c_void_p]

#: indptr, ids, values, fields.
EncodedRows = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint16]]


class BadCellError(ValueError):
    """Row and column of a value that cannot be encoded."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(f"bad value in row {row} of column {column}")
        self.row, self.column = row, column


_buffers = BufferPool()


def column_width(kind: int) -> int:
    return int(lib.pm_column_width(kind))


def encode_columns(columns: NDArray[np.void], n: int, n_row_entries: int = 0) -> EncodedRows:
    """Features of ``n`` rows; ``n_row_entries`` are those of the columns of kind ``ROWS``."""
    width = sum(column_width(kind) for kind in columns["kind"].tolist())
    capacity = width * (n + ENCODE_SCRATCH) + n_row_entries
    indptr = np.zeros(n + 1, np.int64)
    kinds = {"ids": np.uint64, "values": np.float32, "fields": np.uint16}
    room = _buffers.block({name: (capacity, kind) for name, kind in kinds.items()})
    ids, values, fields = (room.array(name, capacity, kind) for name, kind in kinds.items())
    bad = np.zeros(2, np.int64)
    status = lib.pm_encode(
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
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Words of lower-case strings: where those of each string begin, then start, end and id of every word."""
    n = len(offsets) - 1
    capacity = len(data) + 1
    rows = np.zeros(n + 1, np.int64)
    starts, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    ids = np.empty(capacity, np.uint64)
    status = lib.pm_words(
        pointer(data, np.uint8),
        len(data),
        pointer(offsets, np.int64),
        n,
        seed,
        pointer(rows, np.int64),
        pointer(starts, np.int64),
        pointer(ends, np.int64),
        pointer(ids, np.uint64),
        capacity,
    )
    if status != OK:
        raise ValueError("string offsets must rise and stay inside the data")
    count = int(rows[-1])
    return rows, starts[:count], ends[:count], ids[:count]


def text_rows(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int, ngrams: int = 1, skips: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """Words and n-grams of lower-case strings as CSR rows, weighed and scaled to length 1."""
    n = len(offsets) - 1
    rows, done = np.zeros(n + 1, np.int64), np.zeros(1, np.int64)
    capacity = (len(data) // 4 + 64) * ngrams * (skips + 1)
    ids, values = np.empty(capacity, np.uint64), np.empty(capacity, np.float32)
    while (
        status := lib.pm_word_rows(
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
