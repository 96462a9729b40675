"""Memory that is used again.

Fresh memory costs a page fault for every 4 KiB, which is a fifth of the time that parsing text into it takes.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 64
#: Memory of up to so many times the size is given out: an array may be kept for long.
MOST = 4
#: Tables from this size on lie in huge pages.
HUGE = 1 << 21


def zeros(shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Zeros in memory that is taken as it is touched, in huge pages: random access then misses fewer addresses."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)


class Block:
    """Room for several arrays, one behind another; it goes back to its pool when the last view of it is gone."""

    __slots__ = ("bytes", "places")

    def __init__(self, bytes: NDArray[np.uint8], places: dict[str, int]) -> None:
        self.bytes = bytes
        #: Where each array begins.
        self.places = places

    def array(self, name: str, n: int, kind: Any) -> NDArray[Any]:
        """The first ``n`` numbers of an array, with anything in them."""
        start = self.places[name]
        return self.bytes[start : start + n * np.dtype(kind).itemsize].view(kind)


class BufferPool:
    """Gives memory out and takes it back when nothing uses it any more."""

    def __init__(self, keep: int = 16) -> None:
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=keep)

    def block(self, wanted: Mapping[str, tuple[int, Any]]) -> Block:
        """Room for arrays of these lengths and types."""
        places, total = {}, 0
        for name, (n, kind) in wanted.items():
            places[name] = total
            total += -(-n * np.dtype(kind).itemsize // _ALIGNMENT) * _ALIGNMENT
        memory = self._take(total)
        base = np.frombuffer(memory.data, np.uint8)
        weakref.finalize(base, self._free.append, memory).atexit = False
        return Block(base, places)

    def array(self, n: int, kind: Any) -> NDArray[Any]:
        """An array of this length and type, with anything in it."""
        return self.block({"": (n, kind)}).array("", n, kind)

    def _take(self, size: int) -> NDArray[np.uint8]:
        """Memory that fits, the one used last if there are several: its bytes may still be in a cache."""
        for _ in range(len(self._free)):
            try:
                memory = self._free.pop()
            except IndexError:  # another thread took it
                break
            if size <= len(memory) <= MOST * size:
                return memory
            self._free.appendleft(memory)
        return np.empty(size + size // 8, np.uint8)
