"""Names of features, and which places of a table were met."""

from __future__ import annotations

import numpy as np
import pytest

from pomona._native import Marks, take_strings
from pomona.chunk import Chunk
from pomona.online.names import FeatureNames


@pytest.mark.parametrize("kind", [np.uint64, np.uint32])
@pytest.mark.parametrize("n", [1, 4, 256, 4096])
def test_places_are_new_once(kind: type, n: int) -> None:
    rng = np.random.default_rng(n)
    marks, met = Marks(n), set[int]()
    for size in (0, 1, 7, 8, 9, 500):
        indices = rng.integers(0, 1 << 31, size).astype(kind)
        expected = []
        for position, place in enumerate((indices % n).tolist()):
            if place not in met:
                expected.append(position)
            met.add(place)
        assert marks.meet(indices).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 300])
def test_strings_are_taken_in_any_order(n: int) -> None:
    rng = np.random.default_rng(n)
    strings = [rng.bytes(size) for size in rng.integers(0, 40, n)]
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    data = np.frombuffer(b"".join(strings) + b"behind", np.uint8)
    for numbers in (rng.integers(0, n, 3 * n).astype(np.uint32), np.zeros(0, np.uint32)):
        taken, ends = take_strings(data, offsets, numbers)
        starts = [0, *ends.tolist()]
        found = [taken[a:b].tobytes() for a, b in zip(starts, ends.tolist(), strict=False)]
        assert found == [strings[i] for i in numbers] and starts[-1] == len(taken)
    with pytest.raises(ValueError, match=f"there are {n} strings, but number {n} was asked for"):
        take_strings(data, offsets, np.array([n], np.uint32))


def columns_of(columns: list[int], named: bool) -> Chunk:
    indices = np.array(columns, np.uint32)
    names = (lambda positions: [f"c{indices[p]}" for p in positions]) if named else None
    return Chunk(np.array([0, len(indices)]), indices, np.ones(len(indices), np.float32), names=names)


def test_columns_without_names_are_all_up_to_the_last() -> None:
    known = FeatureNames()
    known.note_columns(columns_of([2, 4], named=False), 5)
    known.note_columns(columns_of([1, 6], named=False), 7)
    assert known.rows.tolist() == list(range(7)) and list(known.names) == [""] * 7


def test_columns_with_and_without_names() -> None:
    known = FeatureNames()
    known.note_columns(columns_of([2, 4], named=True), 5)
    known.note_columns(columns_of([1, 4, 6], named=False), 7)
    known.note_columns(columns_of([0, 6], named=True), 7)
    assert known.rows.tolist() == [2, 4, 1, 6, 0] and list(known.names) == ["c2", "c4", "", "", "c0"]
