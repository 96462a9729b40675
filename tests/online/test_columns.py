"""Matrices with very many columns: those that appear get rows, the others cost nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

import pomona.online.learner
import pomona.source.arrays
from pomona import AppleClassifier, AppleRegressor, OnlineClassifier
from pomona._native import NO_ROW, ColumnRows
from pomona.errors import OptionError
from pomona.model import train
from pomona.online.apple import AppleLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.options import LearnOptions
from pomona.source.arrays import ArraySource, ColumnNames
from tests.reference.hashing import mix

WIDE = 2_000_000
WIDEST = 2**31 - 1


class Twin:
    """Rows of columns in a dictionary."""

    def __init__(self, limit: int) -> None:
        self.limit, self.rows = limit, dict[int, int]()

    def insert(self, columns: list[int]) -> tuple[list[int], list[int]]:
        fresh = []
        for position, column in enumerate(columns):
            if column not in self.rows and len(self.rows) < self.limit:
                self.rows[column] = len(self.rows)
                fresh.append(position)
        return self.find(columns), fresh

    def find(self, columns: list[int]) -> list[int]:
        full = len(self.rows) >= self.limit
        return [self.rows.get(c, mix(c) % self.limit if full else NO_ROW) for c in columns]


@pytest.mark.parametrize("widest", [0, 1 << 26], ids=["map", "table"])
@pytest.mark.parametrize("limit", [1, 50, 1 << 20])
def test_columns_get_rows_as_they_appear(monkeypatch: pytest.MonkeyPatch, widest: int, limit: int) -> None:
    monkeypatch.setattr(ColumnRows, "WIDEST", widest)
    rng = np.random.default_rng(limit)
    known, twin = ColumnRows(limit, 100), Twin(limit)
    for top in (100, 100, 5000, 300):  # more columns may come than were announced
        columns = rng.integers(0, top, 200).astype(np.uint32)
        rows, fresh = known.insert(columns)
        assert (rows.tolist(), fresh.tolist()) == twin.insert(columns.tolist())
        asked = rng.integers(0, 10_000, 200).astype(np.uint32)
        assert known.find(asked).tolist() == twin.find(asked.tolist())
    assert known.columns().tolist() == list(twin.rows)


def wide_matrix(seed: int = 0, n: int = 400, width: int = WIDE) -> tuple[sparse.csr_matrix, NDArray[np.bool_]]:
    """Rows with some of 60 columns; two of them decide together."""
    rng = np.random.default_rng(seed)
    columns = np.sort(np.random.default_rng(7).choice(width, 60, replace=False))
    there = rng.random((n, 60)) < 0.2
    rows, which = np.nonzero(there)
    values = rng.uniform(0.5, 1.5, len(rows)).astype(np.float32)
    X = sparse.csr_matrix((values, (rows, columns[which])), shape=(n, width))
    return X, there[:, 3] != there[:, 50]


@pytest.mark.parametrize(
    "estimator",
    [
        OnlineClassifier(random_state=0),
        OnlineClassifier(random_state=0, shuffle=False, passes=2),
        AppleClassifier(random_state=0),
        AppleClassifier(random_state=0, shuffle=False, passes=2),
    ],
    ids=["linear", "linear in order", "apple", "apple in order"],
)
def test_rows_of_columns_change_nothing(monkeypatch: pytest.MonkeyPatch, estimator: Any) -> None:
    X, y = wide_matrix()
    scores, terms = [], []
    for wide in (pomona.online.learner.WIDE, WIDEST):
        monkeypatch.setattr(pomona.online.learner, "WIDE", wide)
        model = clone(estimator).fit(X, y)
        scores.append(model.decision_function(X))
        terms.append([{**t, "feature": set(t["feature"].split(" · "))} for t in model.top_terms(9)])
        sizes = len(model.model_.learner.tables.slots[0])
        assert model.n_features_in_ == WIDE and (sizes <= 1024 if wide < WIDEST else sizes > 1024)
    # In the order of the examples rows are numbered in that order too, and sums may have other last bits.
    assert np.allclose(*scores, rtol=0, atol=0 if estimator.shuffle is not False else 1e-5)
    assert [term["feature"] for term in terms[0]] == [term["feature"] for term in terms[1]]


def test_coefficients_stand_at_their_columns() -> None:
    X, y = wide_matrix()
    model = OnlineClassifier(random_state=0).fit(X, y)
    assert np.allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X)[:, None], atol=1e-5)
    with pytest.raises(AttributeError, match="without a hashed table"):
        _ = (
            AppleClassifier(bits=10, random_state=0)
            .fit(sparse.random(300, 5000, 0.02, "csr", random_state=0), y[:300])
            .coef_
        )


def test_columns_never_learnt_mean_nothing() -> None:
    X, y = wide_matrix()
    model = AppleClassifier(random_state=0).fit(X, y)
    other = X.tolil()
    other[:, 11] = 1.0
    assert np.array_equal(model.decision_function(other.tocsr()), model.decision_function(X))


@pytest.mark.parametrize("learner", ["online", "apple"])
def test_size_of_chunks_does_not_matter(monkeypatch: pytest.MonkeyPatch, learner: str) -> None:
    X, y = wide_matrix()
    raw = []
    for rows in (7, 1 << 14):
        monkeypatch.setattr(pomona.source.arrays, "CHUNK_ROWS", rows)
        model = train(ArraySource(X, y), learn=LearnOptions(learner=learner, passes=2, seed=1))
        raw.append(np.concatenate(list(model.predict(ArraySource(X)))))
    assert np.array_equal(*raw)


@pytest.mark.parametrize("options", [{}, {"bits": 10}], ids=["exact", "shared"])
def test_stopping_and_going_on(tmp_path: Path, options: dict[str, Any]) -> None:
    (X, y), (more, labels) = wide_matrix(), wide_matrix(1)
    more = sparse.hstack([more[:, 100:], more[:, :100]]).tocsr()  # columns that are new
    whole = AppleClassifier(random_state=0, **options).partial_fit(X, y, [False, True]).partial_fit(more, labels)
    first = AppleClassifier(random_state=0, **options).partial_fit(X, y, [False, True])
    first.save(tmp_path / "first.pomona")
    again = AppleClassifier.load(tmp_path / "first.pomona").partial_fit(more, labels)
    assert np.array_equal(again.decision_function(more), whole.decision_function(more))
    assert again.top_terms(9) == whole.top_terms(9)


def test_no_more_rows_than_asked_for() -> None:
    X = sparse.random(3000, 5000, 0.01, "csr", random_state=0, dtype=np.float32)
    y = np.asarray(X[:, :2000].sum(axis=1)).ravel()
    model = AppleRegressor(bits=10, random_state=0, passes=3).fit(X, y)
    assert len(model.model_.learner.tables.slots[0]) <= 1024 and model.score(X, y) > 0.1


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(kind, options) for kind in (OnlineClassifier, AppleClassifier) for options in ({}, {"bits": 10})],
        (OnlineClassifier, {"interactions": "quadratic"}),
    ],
    ids=str,
)
def test_two_billion_columns(tmp_path: Path, kind: Any, options: dict[str, Any]) -> None:
    X, _ = wide_matrix(n=2000, width=WIDEST)
    deciding = int(X.indices.max())
    y = np.asarray((X[:, deciding] != 0).toarray()).ravel()
    model = kind(random_state=0, **options).fit(X, y)
    assert model.score(X, y) > 0.95
    assert f"x{deciding}" in [term["feature"] for term in model.top_terms(3)]
    model.save(tmp_path / "wide.pomona")
    assert os.path.getsize(tmp_path / "wide.pomona") < 3_000_000
    loaded = kind.load(tmp_path / "wide.pomona")
    assert loaded.n_features_in_ == WIDEST
    assert np.array_equal(loaded.decision_function(X[:5]), model.decision_function(X[:5]))
    assert loaded.top_terms(3) == model.top_terms(3)


def test_products_of_named_columns_need_fewer() -> None:
    X, y = wide_matrix()
    message = r"the interaction 'x1\*x2' names the column 'x1', which needs at most 65,536 columns, got 2,000,000"
    with pytest.raises(OptionError, match=message):
        OnlineClassifier(interactions="x1*x2").fit(X, y)
    with pytest.raises(OptionError, match=r"^expand names the column 'x1'"):
        AppleClassifier(expand=("x1",)).fit(X, y)


def test_names_of_columns_are_made_when_asked_for() -> None:
    names = ColumnNames(WIDEST)
    assert len(names) == WIDEST and names[WIDEST - 1] == f"x{WIDEST - 1}" and names[:3] == ["x0", "x1", "x2"]
    with pytest.raises(IndexError):
        _ = names[WIDEST]


def learner_with_a_parent(n_outputs: int) -> AppleLearner:
    """One parent, the column 0, in tables of 1,024 slots, after 3,000 columns have appeared."""
    parameters = OnlineParameters(n_outputs=n_outputs, loss="logistic" if n_outputs == 1 else "softmax")
    learner = AppleLearner(parameters, apple=AppleParameters(bits=10, alpha=0.0, heuristic="weight"))
    learner.plan([3000])
    rng = np.random.default_rng(0)
    for start in range(0, 6000, 500):
        other = 1 + (start + np.arange(500)) % 2999
        labels = rng.integers(0, 2, 500).astype(float)
        matrix = sparse.csr_matrix((500, 3000), dtype=np.float32).tolil()
        matrix[np.arange(500), other] = 0.1
        matrix[np.flatnonzero(labels), 0] = 1.0
        if start == 0:
            matrix[0, 0] = 1.0
        learner.learn(*chunk_of(matrix.tocsr(), labels, n_outputs))
    return learner


def chunk_of(X: sparse.csr_matrix, labels: NDArray[np.float64], n_outputs: int) -> tuple[Any, NDArray[np.float64]]:
    (chunk,) = ArraySource(X).chunks()
    return chunk, labels if n_outputs > 1 else 2 * labels - 1


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_columns_that_share_a_weight_are_still_told_apart(n_outputs: int) -> None:
    learner = learner_with_a_parent(n_outputs)
    assert learner.column_rows is not None and learner.grown.wraps and len(learner.grown.slots[0]) == 1024
    columns = learner.column_rows.columns()
    (parent,) = learner.parents.monomials
    assert columns[parent[0]] == 0 and len(columns) == 3000
    shares = int(columns[parent[0] + 1024])  # stands in the same slot as the parent
    X = sparse.csr_matrix((np.ones(4, np.float32), [0, 7, shares, 7], [0, 2, 4]), shape=(2, 3000))
    (chunk,) = ArraySource(X).chunks()
    indptr, slots, _ = learner.expand(chunk)
    with_parent, without = slots[: indptr[1]], slots[indptr[1] :]
    assert len(with_parent) == 4 + learner.parameters.squares - 1 and len(without) == 2  # x0 x7 and x0^2; no products
    assert set(without) <= set(with_parent)  # and both have the same two weights


@pytest.mark.parametrize(
    "options",
    [
        {"heuristic": "ssm"},
        {"heuristic": "picky-ssm"},
        {"heuristic": "evidence", "products": "residual"},
        {"heuristic": "weight", "l2": 1e-4},
        {"heuristic": "weight", "classes": 3},
        {"heuristic": "weight", "alpha": 0.25},
    ],
    ids=str,
)
def test_shared_weights_and_the_size_of_chunks(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    options = {"alpha": 1.0, **options}
    rng = np.random.default_rng(1)
    X = sparse.random(1200, 3000, 0.005, "csr", random_state=0, dtype=np.float32)
    y = rng.integers(0, options.pop("classes", 2), 1200)
    raw = []
    for rows in (11, 1 << 14):
        monkeypatch.setattr(pomona.source.arrays, "CHUNK_ROWS", rows)
        model = train(ArraySource(X, y), learn=LearnOptions(learner="apple", bits=10, passes=2, **options))
        raw.append(np.concatenate(list(model.predict(ArraySource(X)))))
    assert model.learner.grown.wraps and len(model.learner.parents) and np.array_equal(*raw)
