"""Examples in another order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk
from pomona.source.blocks import OrderedMap

#: Features, about, and examples, at least, that are copied at once: few enough to stay in a core's cache.
COPIED, MIN_COPIED = 1 << 18, 1 << 8


def native_chunk(chunk: Chunk, labels: NDArray[np.float64]) -> _native.ChunkStruct:
    """What the native core needs of a chunk."""
    return _native.chunk_struct(
        chunk.indptr, chunk.indices, chunk.values, labels, chunk.weights, None, chunk.fields, False
    )


def in_order(chunk: Chunk, order: NDArray[np.int64]) -> Iterator[RowChunk]:
    """The examples in order, some at a time, copied: so that a learner does not wait for memory at each of them.

    They are copied on another thread, while the learner is busy with those before.
    """
    assert chunk.labels is not None
    struct = native_chunk(chunk, chunk.labels)
    rows = max(MIN_COPIED, COPIED * len(chunk) // max(chunk.nnz, 1))
    some = (order[start : start + rows] for start in range(0, len(order), rows))
    if len(order) <= rows:
        yield from (_copied(chunk, struct, part) for part in some)
        return
    with contextlib.closing(iter(OrderedMap(some, lambda part: _copied(chunk, struct, part), 1, 2))) as copied:
        yield from copied


def _copied(chunk: Chunk, struct: _native.ChunkStruct, rows: NDArray[np.int64]) -> RowChunk:
    size, n = int((chunk.indptr[rows + 1] - chunk.indptr[rows]).sum()), len(rows)
    indptr, labels = np.empty(n + 1, np.int64), np.empty(n)
    indices, values = np.empty(size, chunk.indices.dtype), np.empty(size, np.float32)
    fields = None if chunk.fields is None else np.empty(size, np.uint16)
    weights = None if chunk.weights is None else np.empty(n)
    _native.gather_rows(struct, rows, indptr, indices, values, fields, labels, weights)
    offsets = None if chunk.offsets is None else chunk.offsets[rows]
    return RowChunk(indptr, indices, values, labels=labels, weights=weights, fields=fields, offsets=offsets)
