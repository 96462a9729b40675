"""Memory that is used again."""

from __future__ import annotations

import numpy as np

from pomona._buffers import BufferPool


def test_each_request_gets_the_memory_that_fits() -> None:
    pool = BufferPool()
    small, large = (pool.array(n, np.float64) for n in (1000, 9000))
    places = {small.ctypes.data, large.ctypes.data}
    for _ in range(3):  # whatever was given back last
        del small, large
        large = pool.array(9000, np.float64)
        small = pool.array(1000, np.float64)
        assert {small.ctypes.data, large.ctypes.data} == places


def test_arrays_in_use_do_not_share_memory() -> None:
    pool = BufferPool()
    blocks = [pool.block({"a": (100, np.int64), "b": (3, np.uint8)}) for _ in range(5)]
    arrays = [(block.array("a", 100, np.int64), block.array("b", 3, np.uint8)) for block in blocks]
    for number, (a, b) in enumerate(arrays):
        a[:], b[:] = number, number
    assert all((a == number).all() and (b == number).all() for number, (a, b) in enumerate(arrays))
