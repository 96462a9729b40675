"""Coded rows: split, shuffled, in memory or on disk."""

from __future__ import annotations

import numpy as np
import pytest

from pomona.chunk import Chunk
from pomona.errors import DataFormatError, OptionError
from pomona.higherorder.coded import CodedData, chunk_codes, collect


class Numbers:
    """A source of coded chunks."""

    name = "numbers"

    def __init__(self, codes: np.ndarray, labels: np.ndarray, rows: int = 1000) -> None:
        self.codes, self.labels, self.rows, self.passes = codes, labels, rows, 0

    def chunks(self):
        self.passes += 1
        for start in range(0, len(self.labels), self.rows):
            part = self.codes[start : start + self.rows]
            indptr = np.arange(len(part) + 1, dtype=np.int64) * part.shape[1]
            values = np.ones(part.size, np.float32)
            yield Chunk(indptr, part.reshape(-1), values, labels=self.labels[start : start + self.rows])


def numbers(n: int = 20_000, rows: int = 1000) -> Numbers:
    rng = np.random.default_rng(0)
    codes = np.column_stack([np.arange(n), rng.integers(0, 9, n), rng.integers(0, 300, n)]).astype(np.uint32)
    return Numbers(codes, rng.choice([0, 1, 2], n, p=[0.7, 0.29, 0.01]).astype(np.float64), rows)


def everything(data: CodedData) -> np.ndarray:
    parts = [np.column_stack([codes, labels]) for codes, labels in [*data.blocks(), *data.cv.blocks()]]
    return np.concatenate(parts)


@pytest.mark.parametrize("memory", [1 << 30, 100_000])
def test_every_row_is_in_one_part(memory: int) -> None:
    source = numbers()
    with collect(source, 3, memory, 0) as data:
        assert bool(data._buckets) == (memory < 1 << 20)
        found = everything(data)
        order = np.argsort(found[:, 0])
        assert np.array_equal(found[order, :3], source.codes)
        assert np.array_equal(found[order, 3], source.labels)
        assert data.sizes.tolist() == [20_001, 10, 301]
        assert source.passes == 1
        assert data.class_counts().sum() == len(data)


@pytest.mark.parametrize("memory", [1 << 30, 100_000])
def test_validation_rows_keep_the_shares_of_the_classes(memory: int) -> None:
    source = numbers()
    with collect(source, 3, memory, 0) as data:
        whole = np.bincount(source.labels.astype(int))
        held = np.bincount(data.cv.labels, minlength=3)
        assert np.abs(held - 0.05 * whole).max() <= (0.5 if memory > 1 << 20 else 40)
        assert held[2] >= 1


@pytest.mark.parametrize("memory", [1 << 30, 100_000])
def test_order_is_random_and_fixed_by_the_seed(memory: int) -> None:
    def first(seed: int) -> np.ndarray:
        with collect(numbers(), 3, memory, seed) as data:
            sample = data.sample(2000)
            return np.asarray(sample.codes[:, 0])

    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))
    assert abs(first(1).mean() - 10_000) < 700


def test_the_size_of_chunks_does_not_matter() -> None:
    with collect(numbers(rows=1000), 3, 1 << 30, 0) as one, collect(numbers(rows=77), 3, 1 << 30, 0) as other:
        assert np.array_equal(everything(one), everything(other))


def test_passes_are_counted_and_differ() -> None:
    with collect(numbers(), 3, 1 << 30, 0) as data:
        a = np.concatenate([codes[:, 0] for codes, _ in data.blocks(np.random.default_rng(1))])
        b = np.concatenate([codes[:, 0] for codes, _ in data.blocks(np.random.default_rng(2))])
        assert data.passes == 2
        assert sorted(a) == sorted(b)
        assert not np.array_equal(a, b)


def test_a_class_with_one_example_stays_in_training() -> None:
    codes = np.zeros((100, 1), np.uint32)
    labels = np.array([0.0] * 99 + [1.0])
    with collect(Numbers(codes, labels), 2, 1 << 30, 0) as data:
        assert data.class_counts()[1] == 1


def test_what_is_not_coded_is_refused() -> None:
    with pytest.raises(DataFormatError, match="no examples"):
        collect(Numbers(np.zeros((0, 1), np.uint32), np.zeros(0)), 2, 1 << 30, 0)
    text = Chunk(np.array([0, 1]), np.array([7], np.uint64), np.ones(1, np.float32))
    with pytest.raises(OptionError, match="needs a table of columns"):
        chunk_codes(text)
