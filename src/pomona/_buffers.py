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
HUGE = 1 << 22


def zeros(shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Zeros in memory that is taken as it is touched, in huge pages: random access then misses fewer addresses."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)


class BufferPool:
    """Gives arrays out and takes their memory back when the last of them is gone."""

    def __init__(self, keep: int = 16) -> None:
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=keep)

    def arrays(self, wanted: Mapping[str, tuple[int, Any]]) -> dict[str, NDArray[Any]]:
        """Arrays of these lengths and types, with anything in them."""
        sizes = {name: n * np.dtype(kind).itemsize for name, (n, kind) in wanted.items()}
        places, total = {}, 0
        for name, size in sizes.items():
            places[name] = total
            total += -(-size // _ALIGNMENT) * _ALIGNMENT
        memory = self._take(total)
        base = np.frombuffer(memory.data, np.uint8)
        weakref.finalize(base, self._free.append, memory).atexit = False
        return {name: base[places[name] : places[name] + sizes[name]].view(kind) for name, (_, kind) in wanted.items()}

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
