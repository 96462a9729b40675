"""The kernel equals the transcription of Algorithm 1: the same parents in the same order, predictions to 1e-6."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomona.online import products
from pomona.online.apple import AppleLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from tests.online.streams import FIELDS, as_chunk, field_of, random_labels, random_rows
from tests.reference.apple import AppleTwin, Statistics, equal_epochs

HEURISTICS = ("weight", "scaled", "evidence", "ssm", "picky-weight", "picky-ssm")
LOSSES = {"squared": "value", "logistic": "sign", "hinge": "sign", "quantile": "value", "poisson": "count"}
UPDATES: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "adaptive, not normalized": {"normalized": False, "learning_rate": 0.1},
    "normalized alone": {"adaptive": False},
    "adagrad": {"normalized": False, "invariant": False, "learning_rate": 0.01},
    "sgd": {"adaptive": False, "normalized": False, "invariant": False, "learning_rate": 1e-3},
}
#: Dense and sparse streams: examples, features, share that an example has.
STREAMS = {"dense": (150, 5, 1.0), "half": (150, 8, 0.5), "sparse": (300, 30, 0.12)}
D = 30


def gentle_rows(n: int, d: int, density: float, seed: int) -> list[dict[int, float]]:
    """Values about 1, so that products of six factors stay within reason."""
    rows = random_rows(n, d, density, seed)
    return [{f: float(np.float32(np.tanh(x) + 0.1)) for f, x in row.items()} for row in rows]


def table_rows(rows: list[dict[int, float]], ids: bool) -> dict[int, int]:
    """The row of each feature in the learner's table: the column, or the order of first appearance."""
    if not ids:
        return {f: f for f in range(D)}
    seen = dict.fromkeys(f for row in rows for f in row)
    return {f: place for place, f in enumerate([*seen, *(f for f in range(D) if f not in seen)])}


def compare(
    parameters: OnlineParameters, kind: str, stream: str, *, ids: bool = False, seed: int = 1, tolerance: float = 1e-6,
    chunk_rows: int = 70, weights: bool = True, bits: int | None = None, residual: bool = False, **apple: Any,
) -> tuple[AppleTwin, AppleLearner]:  # fmt: skip
    n, d, density = STREAMS[stream]
    rows = gentle_rows(n, d, density, seed)
    labels = random_labels(rows, kind, seed=seed + 1)
    h = np.random.default_rng(3).choice([0.5, 1.0, 2.0], n) if weights else np.ones(n)
    schedule = equal_epochs(n)
    made = AppleParameters(bits=bits, products="residual" if residual else "joint", **apple)
    place = table_rows(rows, ids)

    def placed(row: dict[int, float]) -> dict[int, float]:
        return {place[f]: x for f, x in row.items()}

    fields = {place[f]: field_of(f) for f in range(D)}
    twin = AppleTwin(parameters, fields, schedule=schedule, residual=residual, **{**apple, "degree": made.most_factors})
    expected = np.array([twin.learn(placed(row), y, w) for row, y, w in zip(rows, labels, h, strict=True)])
    learner = AppleLearner(parameters, FIELDS, made)
    learner.plan(schedule)
    chunk = as_chunk(rows, ids=ids, weights=h)
    parts = [slice(i, min(i + chunk_rows, n)) for i in range(0, n, chunk_rows)]
    predictions = np.concatenate([learner.learn(chunk.slice(p.start, p.stop), labels[p]) for p in parts])
    assert learner.parents.monomials == twin.parents
    scale = np.abs(expected).max()
    np.testing.assert_allclose(predictions.reshape(n, -1), expected, rtol=tolerance, atol=tolerance * scale)
    assert learner.loss_sums[0] == pytest.approx(twin.loss_sum, rel=tolerance)
    small = [{f: x / 1e2 for f, x in row.items()} for row in gentle_rows(20, d, density, seed=4)]
    expected = np.array([twin.scores(twin.features(placed(row))) for row in small])
    actual = learner.predict(as_chunk(small, ids=ids)).reshape(len(small), -1)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)
    return twin, learner


def squared(**more: Any) -> OnlineParameters:
    return OnlineParameters(**{"loss": "squared", "bounded": True, "float64": True, **more})


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_heuristic_and_loss(heuristic: str, stream: str, loss: str) -> None:
    parameters = squared(loss=loss, bounded=loss in ("squared", "quantile"), quantile=0.3)
    twin, _ = compare(parameters, LOSSES[loss], stream, heuristic=heuristic)
    assert len(twin.parents) >= 5 * (1 if stream == "sparse" else 2)


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("bits", [None, 18])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_columns_names_and_limited_tables(heuristic: str, stream: str, bits: int | None, ids: bool) -> None:
    compare(squared(), "value", stream, ids=ids, bits=bits, heuristic=heuristic, alpha=0.75)


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_hashed_products(heuristic: str, stream: str, outputs: int, ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table with so much room that no two products share a slot."""
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 0)
    several = {"loss": "softmax", "n_outputs": outputs, "bounded": False} if outputs > 1 else {}
    kind = "class" if outputs > 1 else "value"
    twin, learner = compare(squared(**several), kind, stream, ids=ids, bits=20, heuristic=heuristic, alpha=0.75)
    assert learner.grown.hashed == [False, True]
    assert learner.grown.owners_known().sum() >= len([m for m in twin.table if len(m) > 1])


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_products_that_learn_what_is_left(loss: str, stream: str) -> None:
    parameters = squared(loss=loss, bounded=loss in ("squared", "quantile"), quantile=0.3)
    together, _ = compare(parameters, LOSSES[loss], stream, ids=True)
    apart, _ = compare(parameters, LOSSES[loss], stream, ids=True, residual=True)
    assert apart.loss_sum != together.loss_sum


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_what_is_left_with_every_heuristic(heuristic: str) -> None:
    compare(squared(), "value", "half", heuristic=heuristic, alpha=0.75, residual=True)


@pytest.mark.parametrize("update", UPDATES)
def test_what_is_left_with_every_update(update: str) -> None:
    compare(squared(**UPDATES[update]), "value", "half", alpha=0.75, residual=True)
    compare(squared(**UPDATES[update], l2=1e-2), "value", "sparse", alpha=0.75, residual=True)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "squared"])
def test_what_is_left_of_several_classes(loss: str) -> None:
    parameters = squared(loss=loss, bounded=False, n_outputs=3)
    for penalty in ({}, {"l1": 1e-3, "l2": 1e-2}):
        compare(replace(parameters, **penalty), "class", "half", ids=True, alpha=0.6, residual=True)


@pytest.mark.parametrize("outputs", [1, 3])
def test_what_is_left_in_single_precision(outputs: int) -> None:
    """Where features are gathered eight at once."""
    several = {"loss": "softmax", "n_outputs": outputs, "bounded": False} if outputs > 1 else {}
    kind = "class" if outputs > 1 else "value"
    compare(squared(float64=False, **several), kind, "half", alpha=0.75, residual=True, tolerance=2e-3, heuristic="ssm")


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_every_update(heuristic: str, update: str) -> None:
    for stream in ("half", "sparse"):
        compare(squared(**UPDATES[update]), "value", stream, heuristic=heuristic, alpha=0.75)


@pytest.mark.parametrize("penalty", [{"l1": 1e-3}, {"l2": 1e-2}, {"l1": 1e-3, "l2": 1e-2}], ids=str)
@pytest.mark.parametrize("outputs", [1, 3])
def test_regularised(penalty: dict[str, float], outputs: int) -> None:
    loss, kind = ("squared", "value") if outputs == 1 else ("softmax", "class")
    parameters = squared(loss=loss, bounded=outputs == 1, n_outputs=outputs, **penalty)
    compare(parameters, kind, "sparse", ids=True, alpha=0.75)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "squared"])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_several_classes(heuristic: str, stream: str, loss: str) -> None:
    parameters = squared(loss=loss, bounded=False, n_outputs=3)
    compare(parameters, "class", stream, ids=True, heuristic=heuristic, alpha=0.6)


@pytest.mark.parametrize("alpha", [0.0, 0.125, 0.25, 0.5, 1.0, 1.3])
@pytest.mark.parametrize("stream", STREAMS)
def test_every_alpha(stream: str, alpha: float) -> None:
    compare(squared(), "value", stream, alpha=alpha)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_fall_back_degree_and_fields(heuristic: str) -> None:
    compare(squared(), "value", "half", heuristic=heuristic, fallback=True, alpha=0.5)
    compare(squared(), "value", "sparse", ids=True, heuristic=heuristic, fallback=True, alpha=1.0)
    compare(squared(), "value", "half", heuristic=heuristic, degree=2)
    compare(squared(), "value", "half", heuristic=heuristic, degree=3)
    compare(squared(), "value", "half", heuristic=heuristic, expand=("a", "c"))
    compare(squared(), "value", "sparse", ids=True, heuristic=heuristic, expand=("b",))


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_without_squares_and_without_intercept(heuristic: str) -> None:
    compare(squared(squares=False), "value", "half", heuristic=heuristic)
    compare(squared(intercept=False), "value", "sparse", ids=True, heuristic=heuristic)


def test_a_heuristic_of_ones_own_sees_the_same_statistics() -> None:
    seen: dict[str, list[dict[str, np.ndarray]]] = {"twin": [], "learner": []}

    def spy(who: str) -> Any:
        def score(known: Statistics) -> np.ndarray:
            names = ("weight", "scale", "degree", "evidence", "count", "moment", "error_moment")
            seen[who].append({name: np.asarray(getattr(known, name), np.float64) for name in names})
            return np.abs(known.weight) * np.sqrt(known.count) / known.degree

        return score

    n, d, density = STREAMS["half"]
    rows = gentle_rows(n, d, density, 1)
    labels = random_labels(rows, "value", 2)
    twin = AppleTwin(squared(), schedule=equal_epochs(n), heuristic=spy("twin"), degree=6)
    for row, y in zip(rows, labels, strict=True):
        twin.learn(row, y)
    learner = AppleLearner(squared(), FIELDS, AppleParameters(heuristic=spy("learner")))
    learner.plan(equal_epochs(n))
    learner.learn(as_chunk(rows, ids=False), labels)
    assert learner.parents.monomials == twin.parents
    for theirs, ours in zip(seen["twin"], seen["learner"], strict=True):
        for name in theirs:  # in whatever order
            np.testing.assert_allclose(np.sort(ours[name]), np.sort(theirs[name]), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_the_size_of_chunks_does_not_matter(chunk_rows: int) -> None:
    compare(squared(), "value", "half", chunk_rows=chunk_rows)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_ones_tie_and_the_order_of_ids_decides(heuristic: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{f: 1.0 for f in range(6) if rng.random() < 0.6} for _ in range(200)]
    labels = np.array([float(0 in row and 1 in row) + 0.1 * rng.standard_normal() for row in rows])
    twin = AppleTwin(squared(), schedule=equal_epochs(200), heuristic=heuristic, degree=6)
    for row, y in zip(rows, labels, strict=True):
        twin.learn(row, y)
    learner = AppleLearner(squared(), FIELDS, AppleParameters(heuristic=heuristic))
    learner.plan(equal_epochs(200))
    learner.learn(as_chunk(rows, ids=False), labels)
    assert learner.parents.monomials == twin.parents


def test_single_precision_follows() -> None:
    compare(squared(float64=False), "value", "half", tolerance=2e-3, alpha=0.5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_stream_and_any_choices(seed: int) -> None:
    """Indicators, zeros, rounds at any time, several outputs, penalties, odd chunks: all at once."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, D + 1)), int(rng.integers(20, 120))
    values = {"real": lambda: np.tanh(rng.standard_normal()) + 0.1, "one": lambda: 1.0,
              "zero": lambda: rng.random() * rng.integers(0, 2)}[str(rng.choice(["real", "one", "zero"]))]  # fmt: skip
    present = rng.random((n, d)) < min(rng.choice([0.1, 0.4, 1.0]), 6 / d)
    rows = [{int(f): float(np.float32(values())) for f in rng.permutation(np.flatnonzero(p))} for p in present]
    outputs = int(rng.choice([1, 3]))
    loss, kind = ("squared", "value") if outputs == 1 else ("softmax", "class")
    parameters = squared(
        loss=loss, bounded=outputs == 1, n_outputs=outputs, squares=bool(rng.integers(2)),
        intercept=bool(rng.integers(2)), l2=float(rng.choice([0.0, 0.01])), l1=float(rng.choice([0.0, 1e-3])),
    )  # fmt: skip
    apple = {
        "alpha": float(rng.choice([0.0, 0.5, 1.0, 1.4])), "heuristic": str(rng.choice(HEURISTICS)),
        "fallback": bool(rng.integers(2)), "expand": [(), ("a", "b")][int(rng.integers(2))],
    }  # fmt: skip
    schedule = sorted({int(t) for t in rng.integers(1, n, size=5)})
    ids = bool(rng.integers(2))
    place = table_rows(rows, ids)
    twin = AppleTwin(parameters, {place[f]: field_of(f) for f in range(D)}, schedule=schedule, degree=6, **apple)
    labels = random_labels(rows, kind, seed)
    expected = [twin.learn({place[f]: x for f, x in row.items()}, y) for row, y in zip(rows, labels, strict=True)]
    learner = AppleLearner(parameters, FIELDS, AppleParameters(**apple))
    learner.plan(schedule)
    chunk, step = as_chunk(rows, ids=ids), int(rng.integers(1, n + 1))
    parts = [learner.learn(chunk.slice(i, min(i + step, n)), labels[i : i + step]) for i in range(0, n, step)]
    assert learner.parents.monomials == twin.parents
    size = np.abs(expected).max() + 1e-9
    np.testing.assert_allclose(np.concatenate(parts).reshape(n, -1), expected, rtol=1e-6, atol=1e-6 * size)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_single_precision_makes_every_product_once(seed: int) -> None:
    """By its definition: all distinct monomials m and m x_i of the parents m that a row has."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.choice([3, 8, 40, 64, 65, 130, 200])), 30
    density, squares = float(rng.choice([0.2, 0.7, 1.0])), bool(rng.integers(2))
    present = rng.random((n, d)) < density
    order = rng.permutation if rng.integers(2) else np.sort
    rows = [{int(f): float(np.float32(0.5 + rng.random())) for f in order(np.flatnonzero(p))} for p in present]
    learner = AppleLearner(squared(float64=False, squares=squares), FIELDS, AppleParameters(alpha=0.9))
    learner.plan([8, 16, 24])
    chunk = as_chunk(rows, ids=False)
    learner.learn(chunk, rng.standard_normal(n))
    indptr, _, values = learner.expand(chunk)
    for row, first, last in zip(rows, indptr[:-1], indptr[1:], strict=True):
        parents = [m for m in learner.parents.monomials if all(f in row for f in m)]
        products = {tuple(sorted((*m, f))) for m in parents for f in row if squares or f not in m}
        expected = [*row.values(), *(math.prod(row[f] for f in m) for m in products)]
        np.testing.assert_allclose(np.sort(values[first:last]), np.sort(expected), rtol=1e-5)
