"""Bitmaps of cells, 64 a word: cut, put together and thinned out without a byte for every cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
#: Words that are unpacked at once.
BLOCK = 1 << 15


def packed(flags: NDArray[np.uint8]) -> Words:
    """Flags as bits; the last word is filled with zeros."""
    padded = np.zeros((len(flags) + 63) // 64 * 64, np.uint8)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


def concatenated(pieces: Iterable[tuple[Words, int, int]]) -> Words:
    """Bits ``start`` to ``stop`` of each piece, one after the other."""
    found = list(pieces)
    total = sum(stop - start for _, start, stop in found)
    words = np.zeros((total + 63) // 64 + 1, np.uint64)
    at = 0
    for bits, start, stop in found:
        part = _aligned(bits, start, stop)
        word, shift = divmod(at, 64)
        words[word : word + len(part)] |= part << np.uint64(shift)
        if shift:
            words[word + 1 : word + 1 + len(part)] |= part >> np.uint64(64 - shift)
        at += stop - start
    return words[:-1]


def _aligned(bits: Words, start: int, stop: int) -> Words:
    """Bits ``start`` to ``stop``, moved to the beginning of a word; zeros behind."""
    n = (stop - start + 63) // 64
    word, shift = divmod(start, 64)
    part = bits[word : word + n] >> np.uint64(shift)
    if shift:
        upper = bits[word + 1 : word + 1 + n] << np.uint64(64 - shift)
        part[: len(upper)] |= upper
    if (stop - start) % 64:
        part[-1] &= np.uint64((1 << (stop - start) % 64) - 1)
    return part


def thinned(bits: Words, wanted: NDArray[np.bool_]) -> Words:
    """Only those set bits, in their order, that are wanted."""
    kept, seen = np.array(bits, np.uint64), 0
    for start in range(0, len(kept), BLOCK):
        block = kept[start : start + BLOCK]
        flags = np.unpackbits(block.view(np.uint8), bitorder="little")
        present = np.flatnonzero(flags)
        flags[present] = wanted[seen : seen + len(present)]
        seen += len(present)
        kept[start : start + BLOCK] = np.packbits(flags, bitorder="little").view(np.uint64)
    return kept
