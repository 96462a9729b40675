"""Chunks and the online learner."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona._native.library import FULL, OK, address, lib, pointer, quick


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
        ("keys", c.c_void_p),
    ]


class RegionStruct(c.Structure):
    _fields_ = [
        ("slots", c.c_void_p),
        ("touched", c.c_void_p),
        ("n_slots", c.c_uint64),
        ("hashed", c.c_int64),
    ]


#: Rows are first looked for by so many bits.
NEAR_ROWS = 8192
#: Residual learning: how much products count.
PRODUCT_SHARE = 0.5


class ParentsStruct(c.Structure):
    _fields_ = [
        *[(name, c.c_int64) for name in "n n_rows n_factors".split()],
        *[(name, c.c_void_p) for name in "factor_of_row near_rows single children child_factor child excluded".split()],
        ("words", c.c_int64),
        ("block", c.c_int64),
        ("keys", c.c_void_p),
        ("owners", c.c_void_p),
        *[(name, c.c_uint64) for name in "used limit room".split()],
        ("joined", c.c_void_p),
        ("fields", c.c_void_p),
        ("n_fields", c.c_int64),
    ]


class OnlineStruct(c.Structure):
    _fields_ = [
        ("regions", RegionStruct * 3),
        ("intercept", c.c_void_p),
        ("products", c.c_void_p),
        ("n_products", c.c_int64),
        ("parents", c.POINTER(ParentsStruct)),
        ("moments", c.c_void_p * 2),
        *[
            (name, c.c_int32)
            for name in (
                "squares n_outputs shared stride real_bytes loss adaptive normalized invariant ftrl peer_order bounded"
                " gentle residual fresh"
            ).split()
        ],
        *[(name, c.c_double) for name in "learning_rate l1 l2 quantile ftrl_beta pause_at".split()],
        *[
            (name, c.c_double)
            for name in (
                "examples weight_sum scale_sum clock lowest highest product_weight_sum product_scale_sum product_gain"
                " without halved with_all loss_sum loss_weight mistakes"
            ).split()
        ],
        ("features", c.c_uint64),
        ("nonzeros", c.c_uint64),
    ]


quick.pm_online_scratch_bytes.restype = c.c_int64
quick.pm_online_scratch_bytes.argtypes = [c.POINTER(OnlineStruct), c.POINTER(ChunkStruct)]
lib.pm_online_learn.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_void_p,
]
lib.pm_online_predict.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
]
lib.pm_online_expand.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    *[c.c_void_p] * 3,
    c.c_int64,
    c.c_void_p,
]
lib.pm_online_rehash.argtypes = [c.POINTER(OnlineStruct), c.c_int32, c.c_int64, c.POINTER(RegionStruct)]


quick.pm_starts_rise.argtypes = [c.c_void_p, c.c_int64]


def chunk_struct(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint64] | NDArray[np.uint32],
    values: NDArray[np.float32],
    labels: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    offsets: NDArray[np.float64] | None,
    fields: NDArray[np.uint16] | None,
    column_fields: bool,
    keys: NDArray[np.uint32] | None = None,
) -> ChunkStruct:
    """A view of the arrays of a chunk; they must outlive it."""
    n = len(indptr) - 1
    if n < 0 or indptr[-1] > len(indices) or not quick.pm_starts_rise(pointer(indptr, np.int64), n):
        raise ValueError("indptr must rise from 0 or more to at most the number of indices")
    for array in (labels, weights, offsets):
        if array is not None and len(array) != n:
            raise ValueError(f"expected {n} labels, weights and offsets, got {len(array)}")
    if any(array is not None and len(array) != len(indices) for array in (values, fields, keys)):
        raise ValueError("indices, values, fields and keys must be of equal length")
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
        pointer(keys, np.uint32),
    )


def online_scratch_bytes(model: OnlineStruct, chunk: ChunkStruct) -> int:
    return int(quick.pm_online_scratch_bytes(c.byref(model), c.byref(chunk)))


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
    status = lib.pm_online_learn(
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
        lib.pm_online_predict(
            c.byref(model),
            c.byref(chunk),
            pointer(scratch, np.uint8),
            len(scratch),
            pointer(predictions, np.float64),
        )
    )


def online_expand(
    model: OnlineStruct, chunk: ChunkStruct, scratch: NDArray[np.uint8], capacity: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
    """The features of all examples, expanded, as CSR arrays; ``capacity`` is a guess at how many there are."""
    indptr, done = np.zeros(chunk.n + 1, np.int64), c.c_int64(0)
    columns, values = np.empty(capacity, np.uint32), np.empty(capacity, np.float32)
    while True:
        status = lib.pm_online_expand(
            c.byref(model),
            c.byref(chunk),
            pointer(scratch, np.uint8),
            len(scratch),
            pointer(indptr, np.int64),
            pointer(columns, np.uint32),
            pointer(values, np.float32),
            len(columns),
            c.byref(done),
        )
        if status != FULL:
            break
        columns, values = (np.concatenate([a, np.empty(len(a) + (1 << 20), a.dtype)]) for a in (columns, values))
    if status != OK:
        raise ValueError("the kernel refused to expand a chunk")
    return indptr, columns[: indptr[-1]], values[: indptr[-1]]


def online_rehash(model: OnlineStruct, degree: int, n_rows: int, to: RegionStruct) -> int:
    return int(lib.pm_online_rehash(c.byref(model), degree, n_rows, c.byref(to)))


def parents_pointer(parents: ParentsStruct) -> Any:
    """The address of the struct, which must outlive its use."""
    return c.pointer(parents)


lib.pm_move_products.argtypes = [
    c.POINTER(RegionStruct),
    c.POINTER(ParentsStruct),
    c.c_void_p,
    *[c.c_int64] * 3,
    c.POINTER(RegionStruct),
    *[c.c_void_p] * 2,
]


def move_products(
    slots: NDArray[Any],
    parents: ParentsStruct,
    used: NDArray[np.int64],
    to: NDArray[Any],
    owners: NDArray[np.uint32],
    tag: int,
    hashed: bool = False,
) -> NDArray[np.uint32]:
    """Move products from these slots to an empty table, found by key or hashed; the answer: their new slots.

    ``tag`` is the number of a slot that holds the tag; ``owners`` of the new table are filled in.
    """
    places = np.empty(len(used), np.uint32)
    status = lib.pm_move_products(
        RegionStruct(slots.ctypes.data, None, len(slots), False),
        parents,
        pointer(used, np.int64),
        len(used),
        slots.strides[0],
        tag * slots.itemsize,
        RegionStruct(to.ctypes.data, None, len(to), hashed),
        pointer(owners, np.uint32),
        pointer(places, np.uint32),
    )
    if status:
        raise ValueError(f"{len(used)} products do not go into {len(to)} slots")
    return places


lib.pm_best_slots.restype = c.c_int64
lib.pm_best_slots.argtypes = [
    c.POINTER(OnlineStruct),
    *[c.c_int32] * 2,
    c.c_int64,
    c.c_void_p,
    c.c_int64,
    *[c.c_void_p] * 3,
    c.c_int64,
]

#: Scores that the core knows, by the numbers of pm_score.
SCORES = ("weight", "scaled", "evidence")


def best_slots(
    model: OnlineStruct,
    table: int,
    score: str,
    wanted: int,
    excluded: NDArray[np.int64],
    complete: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The slots with the ``wanted`` best scores above zero, and all that tie with the last, and these scores.

    Slots rise. The ``excluded`` ones, which rise too, are left out, and the products of ``complete`` parents.
    """
    room = 2 * wanted + 64
    while True:
        slots, scores = np.empty(room, np.int64), np.empty(room, np.float32)
        found = lib.pm_best_slots(
            model,
            table,
            SCORES.index(score),
            wanted,
            address(excluded),
            len(excluded),
            None if complete is None else address(complete),
            address(slots),
            address(scores),
            room,
        )
        if found <= room:
            return slots[:found], scores[:found]
        room = found


quick.pm_link_parents.argtypes = [*[c.c_void_p] * 3, c.c_int64, c.POINTER(ParentsStruct)]

#: What of a ParentsStruct says how to find the parents of an example: name, type, and how many numbers there are.
_LINKED: dict[str, tuple[type, Callable[[ParentsStruct], int]]] = {
    "factor_of_row": (np.uint32, lambda p: p.n_rows + 1),
    "near_rows": (np.uint64, lambda p: NEAR_ROWS // 64),
    "single": (np.uint32, lambda p: p.n_factors),
    "children": (np.int64, lambda p: p.n + 1),
    "child_factor": (np.uint32, lambda p: p.n),
    "child": (np.uint32, lambda p: p.n),
    "excluded": (np.uint64, lambda p: p.n * p.words),
}


def link_parents(
    struct: ParentsStruct, links: NDArray[np.int64], factors: NDArray[np.int64], barred: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Describe parents by their links (parent, row), the rows in them, and parents and rows (2, n) left to others.

    The answer is what the struct points at, and must outlive it.
    """
    struct.n, struct.n_factors, struct.n_rows = len(links), len(factors), int(factors[-1]) + 1
    struct.words = -(-len(factors) // 64)
    arrays: dict[str, NDArray[Any]] = {name: np.zeros(size(struct), dtype) for name, (dtype, size) in _LINKED.items()}
    for name, array in arrays.items():
        setattr(struct, name, address(array))
    pairs = [pointer(array, np.int64) for array in (links, factors, barred)]
    if quick.pm_link_parents(*pairs, barred.shape[1], struct) != OK:
        raise ValueError("a parent grows from a later one, or has a row that is no factor")
    return arrays


lib.pm_find_products.argtypes = [
    c.POINTER(RegionStruct),
    *[c.c_int64] * 2,
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
]


def find_products(slots: NDArray[Any], keys: NDArray[np.uint64], tag: int) -> NDArray[np.int64]:
    """Where products with these keys stand in a table where they are found by key; -1: nowhere."""
    places = np.empty(len(keys), np.int64)
    lib.pm_find_products(
        RegionStruct(slots.ctypes.data, None, len(slots), False),
        slots.strides[0],
        tag * slots.itemsize,
        pointer(keys, np.uint64),
        len(keys),
        pointer(places, np.int64),
    )
    return places


lib.pm_hash_rows.argtypes = [c.POINTER(ChunkStruct), c.c_void_p]


lib.pm_gather_rows.argtypes = [c.POINTER(ChunkStruct), c.c_void_p, c.c_int64, *[c.c_void_p] * 6]


def gather_rows(
    chunk: ChunkStruct,
    order: NDArray[np.int64],
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    values: NDArray[np.float32],
    fields: NDArray[np.uint16] | None,
    labels: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> None:
    """Copy the examples in order to the arrays that follow, which must have just the right sizes."""
    if len(order) and not (0 <= order.min() and order.max() < chunk.n):
        raise ValueError("order must name examples of the chunk")
    if not chunk.labels or bool(chunk.weights) != (weights is not None) or bool(chunk.fields) != (fields is not None):
        raise ValueError("labels, weights and fields must be there where the chunk has them")
    starts = np.ctypeslib.as_array(c.cast(chunk.indptr, c.POINTER(c.c_int64)), (chunk.n + 1,))
    total = int((starts[order + 1] - starts[order]).sum())
    sizes = [len(a) for a in (indices, values, fields) if a is not None]
    if len(indptr) != len(order) + 1 or any(size < total for size in sizes):
        raise ValueError("the arrays are too small for the examples")
    if any(a is not None and len(a) != len(order) for a in (labels, weights)):
        raise ValueError("expected room for one label and one weight an example")
    lib.pm_gather_rows(
        c.byref(chunk),
        pointer(order, np.int64),
        len(order),
        pointer(indptr, np.int64),
        pointer(indices, np.uint64 if chunk.wide else np.uint32),
        pointer(values, np.float32),
        pointer(fields, np.uint16),
        pointer(labels, np.float64),
        pointer(weights, np.float64),
    )


lib.pm_rows_rise.argtypes = [c.POINTER(ChunkStruct)]
lib.pm_sort_rows.argtypes = [c.POINTER(ChunkStruct), *[c.c_void_p] * 3]


def sorted_rows(
    chunk: ChunkStruct, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.uint16] | None] | None:
    """Indices, values and fields of the ``size`` features, those of each example by rising index; None: they are."""
    if chunk.wide:
        raise TypeError("expected indices of 32 bits")
    if lib.pm_rows_rise(c.byref(chunk)):
        return None
    indices, values = np.empty(size, np.uint32), np.empty(size, np.float32)
    fields = np.empty(size, np.uint16) if chunk.fields else None
    arrays = pointer(indices, np.uint32), pointer(values, np.float32), pointer(fields, np.uint16)
    if lib.pm_sort_rows(c.byref(chunk), *arrays) != OK:
        raise ValueError("an example has too many features")
    return indices, values, fields


def hash_rows(chunk: ChunkStruct) -> NDArray[np.uint64]:
    """Hash of the features and the label of each example."""
    hashes = np.empty(chunk.n, np.uint64)
    lib.pm_hash_rows(c.byref(chunk), pointer(hashes, np.uint64))
    return hashes
