"""The slow, obvious twin of native/rows.cpp."""

from __future__ import annotations

import struct

import numpy as np

MASK = (1 << 64) - 1


def mix(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def fold_multiply(a: int, b: int) -> int:
    product = a * b
    return (product & MASK) ^ (product >> 64)


def hash_rows(indptr, indices, values, labels=None) -> list[int]:
    hashes = []
    for e in range(len(indptr) - 1):
        total = 0
        for k in range(indptr[e], indptr[e + 1]):
            if values[k] == 0:
                continue
            bits = struct.unpack("<I", struct.pack("<f", np.float32(values[k])))[0]
            spread = ((bits * 0x9E3779B97F4A7C15) & MASK) ^ 0x8BB84B93962EACC9
            total = (total + fold_multiply(int(indices[k]) ^ 0x2D358DCCAA6C78A5, spread)) & MASK
        if labels is not None:
            bits = struct.unpack("<Q", struct.pack("<d", float(labels[e]) + 0.0))[0]
            total = mix(total) ^ bits
        hashes.append(mix(total))
    return hashes
