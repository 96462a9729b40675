"""The step of softmax is the flow of its gradient, for as long as the wrong classes keep their shares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pomona.online.learner import OnlineLearner
from pomona.online.parameters import OnlineParameters
from tests.online.streams import as_chunk, random_labels, random_rows
from tests.reference.online import softmax_flow


def integrated(scores: list[float], label: int, H: float, q: float, steps: int = 20_000) -> list[float]:
    """How far following the gradient in small steps, each class at speed q, moves the weights."""
    s, total = np.array(scores), np.zeros(len(scores))
    for _ in range(steps):
        p = np.exp(s - s.max())
        gradient = p / p.sum()
        gradient[label] -= 1
        total -= H / steps * gradient
        s -= H / steps * q * gradient
    return list(total)


@pytest.mark.parametrize("H", [0.1, 1.0, 20.0])
def test_with_two_classes_it_is_exact(H: float) -> None:
    assert softmax_flow([0.3, -0.4], 1, H, {0: 0.7, 1: 0.7}) == pytest.approx(
        integrated([0.3, -0.4], 1, H, 0.7), rel=1e-3
    )


@pytest.mark.parametrize("H", [0.1, 1.0, 20.0])
def test_with_several_it_is_near(H: float) -> None:
    scores = [0.5, -1.0, 0.0, 1.5, 0.2]
    actual = softmax_flow(scores, 2, H, dict.fromkeys(range(5), 0.6))
    expected = integrated(scores, 2, H, 0.6)
    assert actual[2] == pytest.approx(expected[2], rel=0.05)
    assert sum(actual) == pytest.approx(0.0, abs=1e-12)
    assert float(np.abs(np.subtract(actual, expected)).max()) < 0.25 * actual[2]


def test_a_heavy_example_is_learnt_and_not_overshot() -> None:
    """Its class gets a probability near 1, as a logarithm of the weight would have it, and nothing overflows."""
    rows = random_rows(1, 5, 1.0, seed=1)
    for weight in (1e2, 1e6, 1e12):
        learner = OnlineLearner(OnlineParameters(loss="softmax", n_outputs=4))
        learner.learn(as_chunk(rows, ids=False, weights=np.array([weight])), np.array([2.0]))
        scores = learner.predict(as_chunk(rows, ids=False))[0]
        others = math.log(np.exp(np.delete(scores, 2)).sum())
        assert 0 < scores[2] - others < 2 + math.log(weight)


def test_two_halves_of_an_example_are_nearly_the_whole() -> None:
    """The sums of squared gradients see both halves; but for that, flows compose."""
    rows = random_rows(300, 6, 0.6, seed=2)
    labels = random_labels(rows, "class", seed=3)
    scores = []
    for times in (1, 2):
        learner = OnlineLearner(OnlineParameters(loss="softmax", n_outputs=3, learning_rate=0.05))
        twice = [row for row in rows for _ in range(times)]
        weights = np.full(300 * times, 2.0 / times)
        learner.learn(as_chunk(twice, ids=False, weights=weights), np.repeat(labels, times))
        scores.append(learner.predict(as_chunk(rows, ids=False)))
    assert np.mean(scores[0].argmax(1) == scores[1].argmax(1)) > 0.95
