"""Random numbers that stay the same in every version of NumPy, for models that store seeds instead of matrices.

NumPy keeps the raw bits of its generators fixed, but not what its distributions make of them.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
from numpy.typing import NDArray


def bits(count: int, seed: int, stage: int, purpose: str) -> NDArray[np.uint64]:
    """Raw 64-bit numbers; each seed, stage and purpose has a stream of its own."""
    source = np.random.SeedSequence([seed, stage, zlib.crc32(purpose.encode())])
    return np.asarray(np.random.Philox(source).random_raw(count), np.uint64)


def uniform(shape: tuple[int, ...], seed: int, stage: int, purpose: str) -> NDArray[np.float64]:
    """Uniform on [0, 1)."""
    raw = bits(math.prod(shape), seed, stage, purpose)
    return np.asarray((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def normal(shape: tuple[int, ...], seed: int, stage: int, purpose: str) -> NDArray[np.float32]:
    """Standard normal, by the method of Box and Muller: each raw number gives a radius and an angle."""
    count = math.prod(shape)
    raw = bits((count + 1) // 2, seed, stage, purpose)
    radius = ((raw >> np.uint64(32)).astype(np.float32) + np.float32(1)) * np.float32(2.0**-32)
    angle = (raw & np.uint64(0xFFFFFFFF)).astype(np.float32) * np.float32(2 * math.pi * 2.0**-32)
    radius = np.sqrt(np.float32(-2) * np.log(np.minimum(radius, np.float32(1))))
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return both[:count].reshape(shape)


def permutation(n: int, seed: int, stage: int, purpose: str) -> NDArray[np.int64]:
    """The numbers 0 … n-1 in random order."""
    return np.argsort(bits(n, seed, stage, purpose), kind="stable")
