"""Memory that is used again."""

from __future__ import annotations

import numpy as np

from pomona._buffers import BufferPool


def test_each_request_gets_the_memory_that_fits() -> None:
    pool = BufferPool()
    small, large = (pool.arrays({"a": (n, np.float64)})["a"] for n in (1000, 9000))
    places = {small.ctypes.data, large.ctypes.data}
    for _ in range(3):  # whatever was given back last
        del small, large
        large = pool.arrays({"a": (9000, np.float64)})["a"]
        small = pool.arrays({"a": (1000, np.float64)})["a"]
        assert {small.ctypes.data, large.ctypes.data} == places


def test_arrays_in_use_do_not_share_memory() -> None:
    pool = BufferPool()
    arrays = [pool.arrays({"a": (100, np.int64), "b": (3, np.uint8)}) for _ in range(5)]
    for number, each in enumerate(arrays):
        each["a"][:], each["b"][:] = number, number
    assert all((each["a"] == number).all() and (each["b"] == number).all() for number, each in enumerate(arrays))
