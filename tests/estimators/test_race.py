"""passes="auto" on few rows: apple races numbers of passes and encodings on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from pomona import AppleClassifier, AppleRegressor
from pomona.estimators import base
from pomona.model.race import Race


def rows(n=600, d=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def encoding_of(estimator):
    return estimator.model_.options["encode"]["numeric"]


def test_smooth_products_of_few_rows_are_learnt_from_the_numbers_themselves():
    X = rows()
    y = X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] > 0
    estimator = AppleClassifier().fit(X[:400], y[:400])
    assert encoding_of(estimator) == "standard"
    hats = AppleClassifier(numeric="hat+standard").fit(X[:400], y[:400])
    assert estimator.score(X[400:], y[400:]) > hats.score(X[400:], y[400:])


def test_steps_are_learnt_from_hat_functions():
    X = rows(2000)
    y = np.sin(4 * X[:, 0]) + (np.abs(X[:, 1]) > 1)
    assert encoding_of(AppleRegressor().fit(X, y)) == "hat+standard"


def test_an_encoding_that_is_asked_for_stays():
    X = rows()
    y = X[:, 0] * X[:, 1] > 0
    assert encoding_of(AppleClassifier(numeric="hat").fit(X, y)) == "hat"


def test_numbers_without_hat_functions_are_not_raced(monkeypatch):
    entered = []
    monkeypatch.setattr(Race, "enter", lambda self, contender: entered.append(contender.learn.passes))
    X = rows() > 0
    AppleClassifier().fit(X.astype(bool), X[:, 0])
    assert entered == list(base.FEWER_PASSES)


def test_encodings_of_more_rows_are_not_raced(monkeypatch):
    monkeypatch.setattr(base, "FEWEST_EXAMPLES", 100)
    X = rows()
    assert encoding_of(AppleClassifier().fit(X, X[:, 0] * X[:, 1] > 0)) == "hat+standard"


def test_rules_for_parents_are_raced(monkeypatch):
    rules = []
    start, enter = Race.__init__, Race.enter
    monkeypatch.setattr(Race, "__init__", lambda self, first: (rules.append(rule(first)), start(self, first))[1])
    monkeypatch.setattr(Race, "enter", lambda self, one: (rules.append(rule(one)), enter(self, one))[1])
    X = rows(2500)
    y = X[:, 0] * X[:, 1] > 0
    AppleClassifier().fit(X, y)
    assert rules == ["weight", "weight", "weight", "scaled"]
    rules.clear()
    AppleClassifier(heuristic="ssm").fit(X, y)
    assert rules == ["ssm"] * 3


def rule(contender):
    return contender.model.learner.apple.heuristic


def test_many_rows_are_not_raced(monkeypatch):
    monkeypatch.setattr(base, "FEW_EXAMPLES", 100)
    monkeypatch.setattr(Race, "__init__", lambda self, first: pytest.fail("raced"))
    X = rows()
    assert encoding_of(AppleClassifier().fit(X, X[:, 0] * X[:, 1] > 0)) == "hat+standard"


def test_the_first_wins_against_its_equal_and_learns_nothing_on_trial():
    seen = {}

    class Watched(Race):
        def __init__(self, first):
            super().__init__(first)
            seen["first"] = first
            assert first.model.learner.examples == 0
            self.enter(first.with_passes(first.learn.passes))
            seen["best"] = self.best

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "Race", Watched)
        X = rows()
        AppleClassifier().fit(X, X[:, 0] > 0)
    assert seen["best"] is seen["first"]


def test_rows_of_another_encoding_are_held_out_alike(monkeypatch):
    pairs = []
    enter = Race.enter

    def watching(self, contender):
        pairs.append((self.best.examples, contender.examples))
        enter(self, contender)

    monkeypatch.setattr(Race, "enter", watching)
    X = rows()
    AppleClassifier().fit(X, X[:, 0] * X[:, 1] > 0, sample_weight=np.arange(len(X)) % 3 + 0.5)
    assert len(pairs) >= 3
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours.rows, theirs.rows)
        np.testing.assert_array_equal(ours.copies, theirs.copies)
        np.testing.assert_array_equal(ours.chunk.weights, theirs.chunk.weights)
        np.testing.assert_array_equal(ours.chunk.labels, theirs.chunk.labels)
