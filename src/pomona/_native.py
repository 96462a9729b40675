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


_lib.pm_mark_new.restype = c.c_int64
_lib.pm_mark_new.argtypes = [c.c_void_p, c.c_uint64, c.c_void_p, c.c_int64, c.c_void_p]


def mark_new(seen: NDArray[np.bool_], ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions of ids whose place in ``seen`` (modulo its length, a power of two) was unmarked; marks them."""
    fresh = np.empty(len(ids) + 1, np.int64)
    count = _lib.pm_mark_new(
        pointer(seen, np.bool_), len(seen), pointer(ids, np.uint64), len(ids), pointer(fresh, np.int64)
    )
    return fresh[:count].copy()


# ---- chunks and the online learner ----
class ChunkStruct(c.Structure):
    _fields_ = [
        ("n", c.c_int64),
        ("indptr", c.c_void_p),
        ("indices", c.c_void_p),
        ("values", c.c_void_p),
        ("labels", c.c_void_p),
        ("weights", c.c_void_p),
        ("offsets", c.c_void_p),
        ("fields", c.c_void_p),
        ("wide", c.c_int32),
        ("column_fields", c.c_int32),
    ]


class RegionStruct(c.Structure):
    _fields_ = [
        ("slots", c.c_void_p),
        ("touched", c.c_void_p),
        ("n_slots", c.c_uint64),
        ("hashed", c.c_int64),
    ]


class OnlineStruct(c.Structure):
    _fields_ = [
        ("regions", RegionStruct * 3),
        ("intercept", c.c_void_p),
        ("products", c.c_void_p),
        ("n_products", c.c_int64),
        *[
            (name, c.c_int32)
            for name in (
                "squares n_outputs stride real_bytes loss adaptive normalized invariant ftrl peer_order bounded reserved"
            ).split()
        ],
        *[(name, c.c_double) for name in "learning_rate l1 l2 quantile ftrl_beta".split()],
        *[
            (name, c.c_double)
            for name in "examples weight_sum scale_sum clock lowest highest loss_sum loss_weight".split()
        ],
        ("features", c.c_uint64),
    ]


_lib.pm_online_scratch_bytes.restype = c.c_int64
_lib.pm_online_scratch_bytes.argtypes = [c.POINTER(OnlineStruct), c.POINTER(ChunkStruct)]
_lib.pm_online_learn.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_void_p,
]
_lib.pm_online_predict.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
]
_lib.pm_online_rehash.argtypes = [c.POINTER(OnlineStruct), c.c_int32, c.c_int64, c.POINTER(RegionStruct)]


def chunk_struct(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint64] | NDArray[np.uint32],
    values: NDArray[np.float32],
    labels: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    offsets: NDArray[np.float64] | None,
    fields: NDArray[np.uint16] | None,
    column_fields: bool,
) -> ChunkStruct:
    """A view of the arrays of a chunk; they must outlive it."""
    n = len(indptr) - 1
    if n < 0 or indptr[0] < 0 or indptr[-1] > len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError("indptr must rise from 0 or more to at most the number of indices")
    for array in (labels, weights, offsets):
        if array is not None and len(array) != n:
            raise ValueError(f"expected {n} labels, weights and offsets, got {len(array)}")
    if len(values) != len(indices) or (fields is not None and len(fields) != len(indices)):
        raise ValueError("indices, values and fields must be of equal length")
    wide = indices.dtype == np.uint64
    return ChunkStruct(
        n,
        pointer(indptr, np.int64),
        pointer(indices, np.uint64 if wide else np.uint32),
        pointer(values, np.float32),
        pointer(labels, np.float64),
        pointer(weights, np.float64),
        pointer(offsets, np.float64),
        pointer(fields, np.uint16),
        wide,
        column_fields,
    )


def online_scratch_bytes(model: OnlineStruct, chunk: ChunkStruct) -> int:
    return int(_lib.pm_online_scratch_bytes(c.byref(model), c.byref(chunk)))


def online_learn(
    model: OnlineStruct,
    chunk: ChunkStruct,
    order: NDArray[np.int64] | None,
    done: int,
    scratch: NDArray[np.uint8],
    predictions: NDArray[np.float64],
) -> tuple[int, int]:
    """Learn from example ``order[done]`` on; returns the status and how far it came."""
    if order is not None and len(order) and not (0 <= order.min() and order.max() < chunk.n):
        raise ValueError("order must name examples of the chunk")
    if predictions.size < chunk.n * model.n_outputs:
        raise ValueError("predictions must have room for every example")
    reached = c.c_int64(done)
    status = _lib.pm_online_learn(
        c.byref(model),
        c.byref(chunk),
        pointer(order, np.int64),
        chunk.n if order is None else len(order),
        pointer(scratch, np.uint8),
        len(scratch),
        pointer(predictions, np.float64),
        c.byref(reached),
    )
    return int(status), reached.value


def online_predict(
    model: OnlineStruct, chunk: ChunkStruct, scratch: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> int:
    if predictions.size < chunk.n * model.n_outputs:
        raise ValueError("predictions must have room for every example")
    return int(
        _lib.pm_online_predict(
            c.byref(model),
            c.byref(chunk),
            pointer(scratch, np.uint8),
            len(scratch),
            pointer(predictions, np.float64),
        )
    )


def online_rehash(model: OnlineStruct, degree: int, n_rows: int, to: RegionStruct) -> int:
    return int(_lib.pm_online_rehash(c.byref(model), degree, n_rows, c.byref(to)))
