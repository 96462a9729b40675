"""Cuts of numeric attributes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pomona import MDLDiscretizer
from pomona._native.tuples import bin_codes, mdl_cuts
from pomona.higherorder.values import ValueCounts, choose_cuts, equal_frequency, mdl
from tests.reference.higher_order import mdl_cut_places


def table(values: np.ndarray, labels: np.ndarray) -> ValueCounts:
    counts = ValueCounts()
    counts.add(np.asarray(values, np.float64), np.asarray(labels, np.int32))
    return counts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 120), st.integers(2, 4), st.integers(2, 30))
@example(2797788, 94, 2, 19)  # two cuts are equally good
def test_cuts_are_those_of_the_direct_transcription(seed: int, n: int, classes: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, n).astype(float)
    # Classes that follow the value, with noise, so that there is something to cut.
    labels = np.where(rng.random(n) < 0.3, rng.integers(0, classes, n), (values * classes // levels).astype(int))
    assert mdl_cuts(table(values, labels).table()[1]).tolist() == mdl_cut_places(values.tolist(), labels.tolist())


@pytest.mark.data
@pytest.mark.parametrize("name", ["letter", "adult", "higgs_sample"])
def test_cuts_of_real_columns(data_dir: Path, name: str) -> None:
    frame = pq.read_table(data_dir / f"{name}.parquet").slice(0, 1500).to_pandas()
    labels = np.unique(frame["label"].astype(str), return_inverse=True)[1]
    numeric = [c for c in frame.columns if c != "label" and frame[c].dtype.kind in "if"][:4]
    assert numeric
    for column in numeric:
        values = frame[column].to_numpy(np.float64)
        assert mdl_cuts(table(values, labels).table()[1]).tolist() == mdl_cut_places(values.tolist(), labels.tolist())


def test_bins_end_at_their_cuts() -> None:
    cuts = np.array([1.0, 2.5])
    codes = np.zeros((6, 2), np.uint32)
    bin_codes(np.array([0.0, 1.0, 1.1, 2.5, 9.0, np.nan]), cuts, codes, 1)
    assert codes[:, 1].tolist() == [0, 0, 1, 1, 2, 3]
    assert not codes[:, 0].any()


def test_counts_do_not_depend_on_how_rows_come() -> None:
    rng = np.random.default_rng(0)
    values, labels = rng.integers(0, 50, 1000).astype(float), rng.integers(0, 3, 1000).astype(np.int32)
    values[::17] = np.nan
    whole = table(values, labels)
    parts = [ValueCounts() for _ in range(2)]
    for start in range(0, 1000, 100):
        parts[start // 100 % 2].add(values[start : start + 100], labels[start : start + 100])
    parts[0].merge(parts[1])
    assert parts[0].missing == whole.missing == np.isnan(values).sum()
    for a, b in zip(parts[0].table(), whole.table(), strict=True):
        assert np.array_equal(a, b)


def test_too_many_values_are_put_together() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(20_000)
    labels = (values > 0.37).astype(np.int32)
    small = ValueCounts(limit=256)
    for start in range(0, len(values), 1000):
        small.add(values[start : start + 1000], labels[start : start + 1000])
        small._count()
    found, counts = small.table()
    assert len(found) <= 256
    assert not small.exact
    assert counts.sum() == 20_000
    assert mdl(found, counts)[0] == pytest.approx(0.37, abs=0.02)


def test_columns_where_no_cut_pays() -> None:
    values = np.tile(np.arange(4.0), 50)
    assert len(choose_cuts(table(values, np.repeat([0, 1], 100)), "mdl", None)) == 3
    many = np.tile(np.arange(100.0), 2)
    assert choose_cuts(table(many, np.repeat([0, 1], 100)), "mdl", None).tolist() == [49.5]


def test_equal_frequency() -> None:
    counts = table(np.arange(100.0), np.zeros(100, np.int32)).table()
    cuts = equal_frequency(*counts, 4)
    assert np.bincount(np.searchsorted(cuts, np.arange(100.0))).tolist() == [25, 25, 25, 25]


def test_the_transformer_keeps_every_column() -> None:
    X = np.column_stack([np.arange(60.0), np.ones(60), np.tile([0.0, 1.0], 30)])
    found = MDLDiscretizer().fit(X, X[:, 0] > 20)
    codes = found.transform(X)
    assert codes.shape == X.shape
    assert [len(c) for c in found.cuts_] == [1, 0, 1]
    assert found.transform([[np.nan, 1.0, 0.0]]).tolist() == [[2, 0, 0]]
    assert list(found.get_feature_names_out()) == ["x0", "x1", "x2"]
