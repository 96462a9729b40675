"""Rows, counts and information of tuples against dictionaries, pandas and scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from pomona._native.tuples import CELLS, HASHED, RANKED
from pomona.errors import OptionError
from pomona.higherorder.counts import TupleCounts, count_tuples
from pomona.higherorder.tuples import TupleSet, all_tuples, grown, row_cells, row_starts
from tests.reference.higher_order import feature_counts

SIZES = np.array([4, 3, 6, 5], np.uint32)


def rows(n: int, seed: int = 0, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size - 1, n) for size in SIZES]).astype(np.uint32)
    return codes, rng.integers(0, classes, n).astype(np.int32)


def counted(
    members: list[tuple[int, ...]], n: int = 200, memory: int = 1 << 30
) -> tuple[TupleCounts, np.ndarray, np.ndarray]:
    codes, labels = rows(n)
    counts = count_tuples(TupleSet(members, SIZES), lambda: [(codes, labels)], np.bincount(labels), memory)
    return counts, codes, labels


MIXED = [(0,), (2,), (0, 1), (1, 3), (0, 2, 3)]


@pytest.mark.parametrize("memory", [1 << 30, 40_000])  # one pass over all cells, and exploration before counting
@pytest.mark.parametrize("members", [all_tuples(4, 1), all_tuples(4, 2), all_tuples(4, 3), all_tuples(4, 4), MIXED])
def test_counts_are_those_of_a_dictionary(members: list[tuple[int, ...]], memory: int) -> None:
    counts, codes, labels = counted(members, memory=memory)
    twin = feature_counts(codes, labels, members)
    assert counts.index.n_rows == sum(len(t) for t in twin)
    found = counts.index.rows(codes)
    assert found.min() >= 1
    for i, code in enumerate(codes):
        for t, members_of in enumerate(members):
            expected = twin[t][tuple(int(code[a]) for a in members_of)]
            assert counts.counts[found[i, t]].tolist() == [expected[k] for k in range(3)]


def test_counts_are_those_of_pandas() -> None:
    counts, codes, labels = counted(all_tuples(4, 3))
    frame = pd.DataFrame(codes, columns=list("abcd")).assign(y=labels)
    sizes = [len(frame.groupby([*names])) for names in itertools.combinations("abcd", 3)]
    assert np.diff(counts.starts).tolist() == sizes
    by_class = frame.groupby([*"abc", "y"]).size().unstack(fill_value=0)
    first = counts.counts[counts.starts[0] : counts.starts[1]]
    assert sorted(map(tuple, first.tolist())) == sorted(map(tuple, by_class.to_numpy().tolist()))


def test_mutual_information_is_that_of_scikit_learn() -> None:
    counts, codes, labels = counted(MIXED)
    for t, value in zip(MIXED, counts.mutual_information(), strict=True):
        together = np.ravel_multi_index(codes[:, list(t)].T.astype(np.int64), [int(SIZES[a]) for a in t])
        assert value == pytest.approx(mutual_info_score(together, labels), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 599), min_size=1, max_size=300, unique=True))
def test_ranks_are_those_of_a_sorted_list(cells: list[int]) -> None:
    sizes = np.array([20, 30], np.uint32)
    flags = np.zeros(640, np.uint8)
    flags[cells] = 1
    index = TupleSet([(0, 1)], sizes).index(bits=np.packbits(flags, bitorder="little").view(np.uint64))
    order = {cell: i + 1 for i, cell in enumerate(sorted(cells))}
    every = np.array(list(itertools.product(range(20), range(30))), np.uint32)
    expected = [order.get(int(a) + 20 * int(b), 0) for a, b in every]
    assert index.rows(every)[:, 0].tolist() == expected
    assert row_cells(index, sorted(order.values())) == sorted(cells)
    assert row_starts(index).tolist() == [1, len(cells) + 1]


def test_tuples_grow_from_those_whose_parts_were_kept() -> None:
    kept = [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert grown(kept, 4) == [(0, 1, 2)]
    assert grown(all_tuples(4, 2), 4) == all_tuples(4, 3)


def test_a_feature_needs_its_parts() -> None:
    codes, labels = rows(300)
    pairs = count_tuples(TupleSet(all_tuples(4, 2), SIZES), lambda: [(codes, labels)], np.bincount(labels), 1 << 30)
    wanted = pairs.counts.sum(axis=1) > 20
    kept = pairs.keep(wanted)
    triples = TupleSet(all_tuples(4, 3), SIZES)
    found = count_tuples(triples, lambda: [(codes, labels)], np.bincount(labels), 1 << 30, lower=kept)
    whole = feature_counts(codes, labels, triples.members)
    parts = feature_counts(codes, labels, all_tuples(4, 2))
    often = [{v for v, c in part.items() if sum(c.values()) > 20} for part in parts]
    expected = 0
    for t, values in zip(triples.members, whole, strict=True):
        for value in values:
            by_attribute = dict(zip(t, value, strict=True))
            expected += all(
                tuple(by_attribute[a] for a in pair) in often[all_tuples(4, 2).index(pair)]
                for pair in itertools.combinations(t, 2)
            )
    assert 0 < expected == found.index.n_rows < sum(len(v) for v in whole)


def test_taking_tuples_counts_nothing_anew() -> None:
    counts, codes, _ = counted(all_tuples(4, 2))
    part = counts.take([1, 4])
    again, _, _ = counted([all_tuples(4, 2)[1], all_tuples(4, 2)[4]])
    assert np.array_equal(part.counts, again.counts)
    assert np.array_equal(part.index.rows(codes), again.index.rows(codes))


def test_unchecked_hashing_stays_in_its_table() -> None:
    codes, _ = rows(100)
    index = TupleSet(all_tuples(4, 3), SIZES).index(HASHED, n_rows=64)
    found = index.rows(codes)
    assert found.min() >= 1
    assert found.max() <= 64
    assert len(np.unique(found)) > 32


def test_what_does_not_fit_together_is_refused() -> None:
    codes, labels = rows(10)
    tuples = TupleSet(all_tuples(4, 2), SIZES)
    with pytest.raises(ValueError, match="outside their range"):
        tuples.index(CELLS).rows(codes + np.uint32(9))
    index = tuples.index(CELLS)
    with pytest.raises(ValueError, match="outside their range"):
        index.count(codes, labels + np.int32(3), np.zeros((index.n_rows + 1, 3), np.uint32))
    with pytest.raises(ValueError, match="expected codes of 4 attributes"):
        tuples.index(RANKED).explore(codes[:, :3].copy())
    broken = tuples.index(RANKED)
    broken.columns[0, 0] = 7
    with pytest.raises(ValueError, match="do not fit together"):
        broken.rows(codes)


def test_the_memory_limit_names_the_options() -> None:
    tuples = TupleSet(all_tuples(3, 2), np.array([100_000, 90_000, 50], np.uint32))
    with pytest.raises(OptionError, match=r"9,009,500,000 value combinations .*feature_selection=True.*raise memory"):
        count_tuples(tuples, list, np.array([1, 1]), 1 << 30)
