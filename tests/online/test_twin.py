"""The kernel equals its Python twin, for every loss, update and expansion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pomona.online.learner import OnlineLearner
from pomona.online.parameters import OnlineParameters
from tests.online.streams import FIELDS, as_chunk, field_of, random_labels, random_rows
from tests.reference.online import OnlineTwin

UPDATES = {
    "adaptive": {},
    "adaptive, not invariant": {"invariant": False},
    "adaptive, not gentle": {"gentle": False},
    "adaptive, not normalized": {"normalized": False, "learning_rate": 0.1},
    "normalized alone": {"adaptive": False},
    "adagrad": {"normalized": False, "invariant": False, "learning_rate": 0.01},
    "sgd": {"adaptive": False, "normalized": False, "invariant": False, "learning_rate": 1e-5},
    "ftrl": {"ftrl": True, "adaptive": False, "normalized": False, "invariant": False, "learning_rate": 0.05},
}
LOSSES = {"squared": "value", "logistic": "sign", "hinge": "sign", "quantile": "value", "poisson": "count"}
EXPANSIONS = [("linear",), ("quadratic",), ("cubic",), ("a*b", "b*b*c"), ("quadratic", "a*b", "a*b*c")]
PENALTIES = [{}, {"l1": 1e-3}, {"l2": 1e-2}, {"l1": 1e-3, "l2": 1e-2}]


#: Columns whose products do not fit 2^18 slots, so that their table is hashed: neighbours, and others.
HASHED = [{"first": 5000}, {"step": 1000}]


def compare(
    parameters: OnlineParameters, kind: str, *, ids: bool, density: float = 0.5, n: int = 60, **columns: int
) -> None:
    rows = random_rows(n, 7, density, seed=1)
    if kind == "count" and not parameters.normalized:
        # Exponentials of raw products overflow their bounds, and then the last bit of a sum decides everything.
        rows = [{f: float(np.float32(x / 100)) for f, x in row.items()} for row in rows]
    labels = random_labels(rows, kind, seed=2)
    weights = np.random.default_rng(3).choice([0.5, 1.0, 2.0], n)
    twin = OnlineTwin(parameters, {f: field_of(f) for f in range(7)})
    expected = [twin.learn(row, y, h) for row, y, h in zip(rows, labels, weights, strict=True)]
    learner = OnlineLearner(parameters, FIELDS)
    predictions = learner.learn(as_chunk(rows, ids=ids, weights=weights, **columns), labels)
    tolerance = 1e-6 if parameters.float64 else 2e-3
    scale = np.abs(expected).max()
    np.testing.assert_allclose(predictions.reshape(n, -1), expected, rtol=tolerance, atol=tolerance * scale)
    assert learner.loss_sums[0] == pytest.approx(twin.loss_sum, rel=tolerance)
    fresh = random_rows(20, 7, density, seed=4)
    small = [{f: x / 1e4 for f, x in row.items()} for row in fresh]  # within the range seen, where both agree
    expected = [twin.scores(twin.features(row)) for row in small]
    actual = learner.predict(as_chunk(small, ids=ids, **columns)).reshape(len(small), -1)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("expansion", EXPANSIONS, ids="+".join)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_update_and_expansion(loss: str, update: str, expansion: tuple[str, ...]) -> None:
    cases: list[tuple[bool, int | None, dict[str, int]]] = [
        *((ids, bits, {}) for ids in (False, True) for bits in (None, 18)),
        *((False, 18, columns) for columns in HASHED),
    ]
    for (ids, bits, columns), squares in itertools.product(cases, (True, False)):
        parameters = OnlineParameters(
            loss=loss, bounded=loss in ("squared", "quantile"), interactions=expansion, squares=squares, bits=bits,
            quantile=0.3, float64=True, **{"learning_rate": 0.5, **UPDATES[update]},
        )  # fmt: skip
        compare(parameters, LOSSES[loss], ids=ids, **columns)


@pytest.mark.parametrize("penalty", PENALTIES[1:], ids=str)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_lazy_regularisation_is_exact_on_sparse_streams(update: str, penalty: dict[str, float], outputs: int) -> None:
    parameters = OnlineParameters(
        loss="logistic" if outputs == 1 else "softmax", n_outputs=outputs, interactions=("quadratic",), float64=True,
        **{**UPDATES[update], **penalty},
    )  # fmt: skip
    compare(parameters, "sign" if outputs == 1 else "class", ids=True, density=0.2)


@pytest.mark.parametrize("expansion", EXPANSIONS, ids="+".join)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "squared"])
def test_several_classes(loss: str, update: str, expansion: tuple[str, ...]) -> None:
    for bits in (None, 18):
        parameters = OnlineParameters(
            loss=loss, n_outputs=3, interactions=expansion, bits=bits, float64=True, **UPDATES[update]
        )
        compare(parameters, "class", ids=True)
    for columns in HASHED:
        compare(parameters, "class", ids=False, **columns)


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_follows(loss: str) -> None:
    parameters = OnlineParameters(loss=loss, bounded=loss in ("squared", "quantile"), interactions=("quadratic",))
    compare(parameters, LOSSES[loss], ids=True, n=40)


@pytest.mark.parametrize("expansion", [("quadratic",), ("cubic",), ("quadratic", "a*b*c")], ids="+".join)
@pytest.mark.parametrize("outputs", [1, 3])
def test_dense_examples(expansion: tuple[str, ...], outputs: int) -> None:
    loss = "logistic" if outputs == 1 else "softmax"
    parameters = OnlineParameters(loss=loss, n_outputs=outputs, interactions=expansion, float64=True)
    compare(parameters, "sign" if outputs == 1 else "class", ids=False, density=1.0)


def test_without_intercept() -> None:
    compare(OnlineParameters(loss="logistic", intercept=False, float64=True), "sign", ids=False)
