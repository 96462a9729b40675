"""The kernels that learn and predict, against their twins."""

from __future__ import annotations

import numpy as np
import pytest

from pomona._native.tuples import Slots, TupleIndex, learn
from pomona.higherorder.coded import Rows
from pomona.higherorder.counts import count_tuples
from pomona.higherorder.discriminative import Discriminative, log_loss, temperature
from pomona.higherorder.judge import worthwhile
from pomona.higherorder.tuples import TupleSet, all_tuples
from tests.reference.higher_order import SoftmaxTwin, adagrad_softmax

SIZES = np.array([5, 4, 7, 3], np.uint32)


def data(n: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size - 1, n) for size in SIZES]).astype(np.uint32)
    labels = (codes[:, 0] + codes[:, 1] * codes[:, 2] + rng.integers(0, 2, n)) % classes
    return codes, labels.astype(np.int32)


def learner(codes: np.ndarray, labels: np.ndarray, order: int, classes: int, **options: bool) -> Discriminative:
    tuples = TupleSet(all_tuples(4, order), SIZES)
    counts = count_tuples(tuples, lambda: [(codes, labels)], np.bincount(labels, minlength=classes), 1 << 30)
    return Discriminative(counts, 4, **options)


def halves(slots: Slots) -> tuple[np.ndarray, np.ndarray]:
    both = slots.raw.view(np.uint32)[:, slots.padded :]
    return (both >> 16).astype(np.uint16), (both & 0xFFFF).astype(np.uint16)


@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize(("classes", "order"), [(3, 2), (4, 1), (5, 3), (8, 2), (11, 2), (26, 2), (40, 1)])
def test_softmax_steps_are_the_twins_bit_for_bit(classes: int, order: int, l2: float) -> None:
    codes, labels = data(150, classes)
    model = learner(codes, labels, order, classes, generative_start=True)
    G, L = halves(model.slots)
    twin = SoftmaxTwin(model.slots.raw[:, : model.slots.padded], G, L, classes)
    bias = len(model.slots.raw) - 1
    for rows, label in zip(model.counts.index.rows(codes), labels, strict=True):
        twin.learn([bias, *rows.tolist()], int(label), 0.1, l2)
    figures = model.learn([(codes, labels)], 0.1, l2)
    assert np.array_equal(model.slots.raw[:, : model.slots.padded], twin.w)
    assert np.array_equal(halves(model.slots)[0], twin.G)
    assert figures == pytest.approx((twin.loss / 150, twin.errors / 150), rel=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_one_logit_is_logistic_regression_by_adagrad(order: int) -> None:
    codes, labels = data(400, 2)
    model = learner(codes, labels, order, 2, scaled=False)
    onehot = np.zeros((400, model.counts.index.n_rows))
    np.put_along_axis(onehot, model.counts.index.rows(codes).astype(np.int64) - 1, 1, axis=1)
    w, G, b, Gb = np.zeros(onehot.shape[1]), np.ones(onehot.shape[1]), float(model.slots.bias[0]), 1.0
    for x, label in zip(onehot, labels, strict=True):
        r = label - 1 / (1 + np.exp(-(w @ x + b)))
        active = x > 0
        G[active] += r * r
        w[active] += 0.1 * r / np.sqrt(G[active])
        Gb += r * r
        b += 0.1 * r / np.sqrt(Gb)
    model.learn([(codes, labels)], 0.1)
    assert np.allclose(model.slots.weights[1:, 0], w, rtol=5e-3, atol=5e-4)
    assert float(model.slots.bias[0]) == pytest.approx(b, rel=5e-3, abs=5e-4)


def test_order_one_without_preconditioner_is_multinomial_logistic_regression() -> None:
    """ALR^1 on plain steps is softmax regression on one-hot attributes."""
    codes, labels = data(400, 3)
    model = learner(codes, labels, 1, 3, scaled=False)
    bias = model.slots.bias.astype(np.float64).copy()
    onehot = np.zeros((400, model.counts.index.n_rows))
    np.put_along_axis(onehot, model.counts.index.rows(codes).astype(np.int64) - 1, 1, axis=1)
    w = adagrad_softmax(onehot, labels, 3, 0.1, bias)
    model.learn([(codes, labels)], 0.1)
    found = model.slots.weights[1:, :3].astype(np.float64)
    # Sums of squares have eight bits here: steps may differ by a few per cent.
    assert np.abs(found - w[:-1]).max() < 0.03 * np.abs(w).max()
    assert np.corrcoef(found.ravel(), w[:-1].ravel())[0, 1] > 0.999


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_size_of_blocks_does_not_matter(classes: int) -> None:
    codes, labels = data(200, classes)
    whole, parts = (learner(codes, labels, 2, classes) for _ in range(2))
    whole.learn([(codes, labels)], 0.05)
    parts.learn([(codes[i : i + 7].copy(), labels[i : i + 7].copy()) for i in range(0, 200, 7)], 0.05)
    assert np.array_equal(whole.slots.raw, parts.slots.raw)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_resetting_begins_anew(classes: int) -> None:
    codes, labels = data(200, classes)
    for start in (False, True):
        model = learner(codes, labels, 2, classes, generative_start=start)
        model.learn([(codes, labels)], 0.05)
        first = model.slots.raw.copy()
        model.reset()
        model.learn([(codes, labels)], 0.05)
        assert np.array_equal(first, model.slots.raw)


@pytest.mark.parametrize("classes", [2, 3, 26])
def test_scores_and_drops(classes: int) -> None:
    codes, labels = data(100, classes)
    model = learner(codes, labels, 2, classes)
    model.learn([(codes, labels)], 0.1)
    rows = model.counts.index.rows(codes)
    w, bias = model.slots.weights[:, : model.slots.outputs].astype(np.float64), model.slots.bias
    expected = w[rows].sum(axis=1) + bias
    found = model.scores(Rows(codes, labels))
    assert np.allclose(found.reshape(100, -1), expected, atol=1e-5)
    drops = model.drops(Rows(codes, labels))
    for t in range(rows.shape[1]):
        without = expected - w[rows[:, t]]
        raw, raw_without = (a[:, 0] if classes == 2 else a for a in (expected, without))
        assert drops[t] == pytest.approx(log_loss(raw_without, labels) - log_loss(raw, labels), abs=2e-5)


def test_cells_that_never_occurred_stay_silent() -> None:
    codes, labels = data(300, 3)
    model = learner(codes[:5], labels[:5], 3, 3, scaled=False)
    model.learn([(codes, labels)], 0.5)
    assert not model.slots.raw[0, :3].any()
    unseen = np.full((1, 4), SIZES - 1, np.uint32)
    assert np.allclose(model.scores(Rows(unseen, labels[:1])), model.slots.bias)


def test_overflow_is_noticed() -> None:
    codes, labels = data(300, 3)
    assert learner(codes, labels, 2, 3).learn([(codes, labels)], 1e35) is None
    codes, labels = data(300, 2)
    assert learner(codes, labels, 2, 2).learn([(codes, labels)], 1e35) is None


def test_slots_of_another_index_are_refused() -> None:
    codes, labels = data(20, 3)
    model = learner(codes, labels, 2, 3)
    other: TupleIndex = learner(codes, labels, 1, 3).counts.index
    with pytest.raises(ValueError, match="expected slots"):
        learn(other, model.slots, codes, labels, 0.1)


def test_temperature() -> None:
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((5000, 3))
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    labels = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1).astype(np.int32)
    assert temperature(raw * 4, labels) == pytest.approx(0.25, rel=0.05)


def test_a_factor_has_to_pay_more_than_its_noise() -> None:
    rng = np.random.default_rng(1)
    raw = rng.standard_normal(3000)
    labels = (rng.random(3000) < 1 / (1 + np.exp(-raw))).astype(np.int32)
    assert worthwhile(raw, labels) == 1.0  # steep as they should be
    assert worthwhile(raw[:60], labels[:60]) == 1.0
    assert worthwhile(raw * 4, labels) == pytest.approx(0.25, rel=0.15)
