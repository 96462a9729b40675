"""Examples in memory: fingerprints, equal rows counted together, copies of heavy rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import rows as twin

from pomona import _native
from pomona.model.memory import MOST_COPIES, _copies, _distinct


def hashes(indptr, indices, values, labels=None):
    struct = _native.chunk_struct(indptr, indices, values, labels, None, None, None, False)
    return _native.hash_rows(struct)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("labelled", [True, False])
def test_fingerprints_equal_the_twin(kind, labelled):
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 6, 50))])
    indices = rng.integers(0, np.iinfo(kind).max, indptr[-1], dtype=kind)
    values = rng.choice(np.array([0.0, -0.0, 1.0, -2.5, 1e-40, 3e38], np.float32), indptr[-1])
    labels = rng.choice([0.0, -0.0, 1.0, 7.25], 50) if labelled else None
    assert hashes(indptr, indices, values, labels).tolist() == twin.hash_rows(indptr, indices, values, labels)


def test_fingerprints_do_not_depend_on_zeros_or_on_the_order_of_features():
    indptr = np.array([0, 2, 5, 7])
    indices = np.array([4, 9, 9, 4, 7, 4, 9], np.uint32)
    values = np.array([1, 2, 2, 1, 0, 2, 1], np.float32)
    first, second, swapped = hashes(indptr, indices, values).tolist()
    assert first == second != swapped


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_rows_are_copied_in_order(kind, full):
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 5, 30)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    total = int(indptr[-1])
    indices, values = rng.integers(0, 99, total).astype(kind), rng.random(total).astype(np.float32)
    labels, weights = rng.random(30), rng.random(30) if full else None
    fields = rng.integers(0, 9, total).astype(np.uint16) if full else None
    order = rng.integers(0, 30, 50)
    size = int(lengths[order].sum())
    out = [np.empty(51, np.int64), np.empty(size, kind), np.empty(size, np.float32)]
    out += [np.empty(size, np.uint16) if full else None, np.empty(50), np.empty(50) if full else None]
    struct = _native.chunk_struct(indptr, indices, values, labels, weights, None, fields, False)
    _native.gather_rows(struct, order, *out)
    for array, copied in ((indices, out[1]), (values, out[2]), (fields, out[3])):
        if array is not None:
            pieces = [array[indptr[e] : indptr[e + 1]] for e in order]
            np.testing.assert_array_equal(copied, np.concatenate(pieces))
    np.testing.assert_array_equal(np.diff(out[0]), lengths[order])
    np.testing.assert_array_equal(out[4], labels[order])
    if full:
        np.testing.assert_array_equal(out[5], weights[order])
    with pytest.raises(ValueError, match="order must name examples of the chunk"):
        _native.gather_rows(struct, np.array([30]), np.empty(2, np.int64), *out[1:])
    if size:
        with pytest.raises(ValueError, match="the arrays are too small"):
            _native.gather_rows(struct, order, out[0], out[1][:-1], *out[2:])


def test_equal_rows_are_counted_together_in_the_order_of_their_hashes():
    rows, totals = _distinct(np.array([9, 3, 9, 3, 5], np.uint64), None)
    assert rows.tolist() == [1, 4, 0]
    assert totals.tolist() == [2, 1, 2]
    _, totals = _distinct(np.array([9, 3, 9, 3, 5], np.uint64), np.array([1, 0.5, 2, 4, 8.0]))
    assert totals.tolist() == [4.5, 8, 3]


def test_heavy_rows_become_copies_and_light_ones_keep_their_share():
    copies, single = _copies(np.array([1.0, 3.0, 2.5, 0.5]))
    assert copies.tolist() == [1, 3, 3, 1]
    assert (copies * single).tolist() == [1, 3, 2.5, 0.5]
    copies, single = _copies(np.full(4, 0.25))  # weights that sum to 1
    assert copies.tolist() == [1] * 4 and single.tolist() == [1.0] * 4


@given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=30))
def test_copies_are_bounded_and_keep_the_weights(totals):
    given_ = np.array(totals)
    copies, single = _copies(given_)
    assert copies.min() >= 1 and copies.sum() <= MOST_COPIES
    np.testing.assert_allclose(copies * single * min(1.0, given_.mean()), given_)
