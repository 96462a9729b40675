"""Examples in another order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk

#: Features, about, and examples, at least, that are copied at once: few enough to stay in a core's cache.
COPIED, MIN_COPIED = 1 << 18, 1 << 8


def native_chunk(chunk: Chunk, labels: NDArray[np.float64]) -> _native.ChunkStruct:
    """What the native core needs of a chunk."""
    return _native.chunk_struct(
        chunk.indptr, chunk.indices, chunk.values, labels, chunk.weights, None, chunk.fields, False
    )


def in_order(chunk: Chunk, order: NDArray[np.int64]) -> Iterator[RowChunk]:
    """The examples in order, some at a time, copied: so that a learner does not wait for memory at each of them."""
    assert chunk.labels is not None
    struct = native_chunk(chunk, chunk.labels)
    rows = max(MIN_COPIED, COPIED * len(chunk) // max(chunk.nnz, 1))
    for start in range(0, len(order), rows):
        some = order[start : start + rows]
        size, n = int((chunk.indptr[some + 1] - chunk.indptr[some]).sum()), len(some)
        indptr, labels = np.empty(n + 1, np.int64), np.empty(n)
        indices, values = np.empty(size, chunk.indices.dtype), np.empty(size, np.float32)
        fields = None if chunk.fields is None else np.empty(size, np.uint16)
        weights = None if chunk.weights is None else np.empty(n)
        _native.gather_rows(struct, some, indptr, indices, values, fields, labels, weights)
        offsets = None if chunk.offsets is None else chunk.offsets[some]
        yield RowChunk(indptr, indices, values, labels=labels, weights=weights, fields=fields, offsets=offsets)
