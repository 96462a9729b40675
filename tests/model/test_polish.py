"""The second-order finish: features from the online learner, weights from least squares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from tests.online.streams import FIELDS, as_chunk, random_labels, random_rows
from tests.reference.online import OnlineTwin

from pomona import AppleClassifier, AppleRegressor
from pomona.model import polish as module
from pomona.model import train
from pomona.model.polish import polish
from pomona.online.apple import AppleLearner
from pomona.online.learner import OnlineLearner
from pomona.online.losses import losses
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.options import LearnOptions

ROWS = random_rows(500, 9, 0.5, seed=3)


def labelled(kind: str):
    y = random_labels(ROWS, kind, seed=4)
    chunk = as_chunk(ROWS, ids=True)
    return chunk, y


def prepared(learner: OnlineLearner, chunk, y):
    from dataclasses import replace

    return replace(learner.prepare(chunk), labels=y)


@pytest.mark.parametrize("interactions", ["linear", "quadratic", "cubic"])
@pytest.mark.parametrize("bits", [None, 18])
def test_the_expansion_is_that_of_the_twin(interactions: str, bits: int | None) -> None:
    parameters = OnlineParameters(interactions=(interactions,), bits=bits)
    learner, twin = OnlineLearner(parameters, FIELDS), OnlineTwin(parameters)
    chunk, y = labelled("sign")
    learner.learn(chunk, y)
    indptr, columns, values = learner.expand(chunk)
    for i, row in enumerate(ROWS[:50]):
        mine = sorted(values[indptr[i] : indptr[i + 1]].tolist())
        features = [x for monomial, x in twin.features(row).items() if monomial]
        np.testing.assert_allclose(mine, sorted(features), rtol=1e-5)
        assert bits or len(set(columns[indptr[i] : indptr[i + 1]].tolist())) == len(mine)


def test_apple_expands_to_what_it_predicts_with() -> None:
    learner = AppleLearner(OnlineParameters(loss="squared"), FIELDS, AppleParameters())
    learner.plan([100, 200, 300])
    chunk, y = labelled("value")
    learner.learn(chunk, y)
    indptr, columns, values = learner.expand(chunk)
    weights, inverse = (np.concatenate(parts) for parts in zip(*map(learner.weights_of, (0, 1)), strict=True))
    tables = (columns >= len(learner.tables.slots[0])).astype(np.int64)
    # Products of examples before the first round may be larger than those that were learnt.
    scaled = learner.scaled(values, inverse[columns], tables)
    X = sparse.csr_matrix((scaled, columns.astype(np.int64), indptr), (500, len(weights)))
    np.testing.assert_allclose(X @ weights + learner.intercepts(), learner.predict(chunk), rtol=1e-3, atol=1e-3)


def test_squares_are_fitted_as_by_ridge_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RIDGES", (1e-3,))
    learner = OnlineLearner(OnlineParameters(loss="squared"), FIELDS)
    chunk, y = labelled("value")
    learner.learn(chunk, y)
    _, inverse = learner.weights_of(0)
    polish(learner, [prepared(learner, chunk, y)])
    indptr, columns, values = learner.expand(chunk)
    X = sparse.csr_matrix((values * inverse[columns], columns.astype(np.int64), indptr), (500, len(inverse))).toarray()
    reference = Ridge(alpha=1e-3 * 500).fit(X[:, :9], y)
    np.testing.assert_allclose(learner.weights_of(0)[0][:9], reference.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(learner.intercepts(), reference.intercept_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("loss", "kind"), [("logistic", "sign"), ("softmax", "class")])
def test_the_loss_comes_near_its_minimum(loss: str, kind: str) -> None:
    parameters = OnlineParameters(loss=loss, n_outputs=1 if kind == "sign" else 3, learning_rate=0.1)
    learner = OnlineLearner(parameters, FIELDS)
    chunk, y = labelled(kind)
    learner.learn(chunk, y)
    before = losses(learner.parameters, learner.predict(chunk), y).mean()
    done = polish(learner, [prepared(learner, chunk, y)])
    assert done is not None and done.features == 9 and done.examples == 500
    after = losses(learner.parameters, learner.predict(chunk), y).mean()
    _, inverse = learner.weights_of(0)
    indptr, columns, values = learner.expand(chunk)
    X = sparse.csr_matrix((values * inverse[columns], columns.astype(np.int64), indptr), (500, len(inverse))).toarray()
    reference = LogisticRegression(C=1 / (done.ridge * 500), max_iter=10_000, tol=1e-8).fit(X[:, :9], y)
    best = -np.log(reference.predict_proba(X[:, :9])[np.arange(500), np.searchsorted(reference.classes_, y)]).mean()
    assert after < before
    assert after < best + 2e-3


def test_losses_without_such_a_fit_are_left_alone() -> None:
    learner = OnlineLearner(OnlineParameters(loss="hinge"), FIELDS)
    chunk, y = labelled("sign")
    learner.learn(chunk, y)
    before = learner.predict(chunk)
    assert polish(learner, [prepared(learner, chunk, y)]) is None
    assert learner.predict(chunk).tobytes() == before.tobytes()


def test_only_the_strongest_features_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FEATURES", 5)
    monkeypatch.setattr(module, "MOST_ENTRIES", 300)
    learner = OnlineLearner(OnlineParameters(loss="logistic"), FIELDS)
    chunk, y = labelled("sign")
    learner.learn(chunk, y)
    terms = learner.terms()
    strongest = terms.slots[np.argsort(-terms.sureness())[:5]]
    done = polish(learner, [prepared(learner, chunk, y)])
    assert done is not None and done.features == 5 and done.examples < 500
    assert np.flatnonzero(learner.weights_of(0)[0]).tolist() == sorted(strongest.tolist())


def test_without_room_dense_blocks_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk, y = labelled("sign")
    weights = []
    for room in (module.MOST_KEPT, 0):
        monkeypatch.setattr(module, "MOST_KEPT", room)
        learner = OnlineLearner(OnlineParameters(loss="logistic"), FIELDS)
        learner.learn(chunk, y)
        polish(learner, [prepared(learner, chunk, y)])
        weights.append(learner.weights_of(0)[0])
    np.testing.assert_array_equal(*weights)


def test_estimators_and_files_are_polished(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * X[:, 2]
    plain = AppleRegressor(numeric="raw", passes=1).fit(X, y)
    polished = AppleRegressor(numeric="raw", passes=1, polish=True).fit(X, y)
    assert polished.score(X, y) > max(0.999, plain.score(X, y))
    assert polished.model_.summary["polished"]["examples"] == 1500
    assert AppleClassifier(numeric="raw", passes=1, polish=True).fit(X, y > 0).score(X, y > 0) > 0.97
    lines = [
        f"{int(t > 0) * 2 - 1} | {' '.join(f'x{i}:{v}' for i, v in enumerate(x))}\n" for x, t in zip(X, y, strict=True)
    ]
    (tmp_path / "a.vw").write_text("".join(lines))
    model = train(tmp_path / "a.vw", learn=LearnOptions(learner="apple", polish=True))
    assert model.summary["polished"]["held_out"] < 0.2
