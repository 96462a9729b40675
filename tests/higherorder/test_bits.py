"""Bitmaps against arrays of flags."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomona.higherorder import bits
from pomona.higherorder.bits import concatenated, packed, thinned

flags = st.lists(st.booleans(), max_size=300).map(lambda values: np.array(values, np.uint8))


def unpacked(words: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:n]


@given(st.data())
def test_pieces_are_put_together(data: st.DataObject) -> None:
    pieces, expected = [], []
    for values in data.draw(st.lists(flags, max_size=5)):
        start = data.draw(st.integers(0, len(values)))
        stop = data.draw(st.integers(start, len(values)))
        pieces.append((packed(values), start, stop))
        expected += values[start:stop].tolist()
    words = concatenated(pieces)
    assert len(words) == (len(expected) + 63) // 64
    assert unpacked(words, 64 * len(words)).tolist() == expected + [0] * (64 * len(words) - len(expected))


@pytest.mark.parametrize("block", [1, 2, 1 << 15])
@given(values=flags, data=st.data())
def test_set_bits_are_thinned_out(block: int, values: np.ndarray, data: st.DataObject) -> None:
    n = int(values.sum())
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_)
    before, bits.BLOCK = bits.BLOCK, block
    try:
        found = unpacked(thinned(packed(values), wanted), len(values))
    finally:
        bits.BLOCK = before
    expected = values.copy()
    expected[np.flatnonzero(values)] = wanted
    assert found.tolist() == expected.tolist()
