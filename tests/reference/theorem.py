"""The setting of Theorem 1: a known distribution, all monomials up to a degree, and Algorithm 1 by plain SGD on it.

The objective is f(w) = E[l(<w, x y>)] + lambda |w|^2 / 2 with y = -1 or 1, over finitely many x, so that f, its
gradient and its minimisers over any feature set are exact.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tests.reference.online import Monomial

#: Loss of a margin, its first and second derivative, and the largest second derivative.
LOSSES = {
    "logistic": (
        lambda z: np.logaddexp(0, -z),
        lambda z: -1 / (1 + np.exp(z)),
        lambda z: 1 / (2 + np.exp(z) + np.exp(-z)),
        0.25,
    ),
    "squared": (lambda z: (1 - z) ** 2, lambda z: -2 * (1 - z), lambda z: np.full_like(z, 2.0), 2.0),
}


@dataclass(frozen=True)
class Problem:
    """Points with equal chances, and the chance that y = 1 at each."""

    points: np.ndarray
    chance: np.ndarray
    loss: str
    lam: float
    degree: int = 3

    @classmethod
    def random(cls, loss: str, lam: float, d: int = 4, n: int = 40) -> Problem:
        rng = np.random.default_rng(5)
        points = rng.uniform(-0.6, 0.6, (n, d))
        return cls(points, 1 / (1 + np.exp(-60 * points[:, 0] * points[:, 1] - 30 * points[:, 2])), loss, lam)

    @cached_property
    def monomials(self) -> list[Monomial]:
        d = self.points.shape[1]
        return [m for k in range(1, self.degree + 1) for m in itertools.combinations_with_replacement(range(d), k)]

    @cached_property
    def features(self) -> np.ndarray:
        return np.array([[math.prod(x[list(m)]) for m in self.monomials] for x in self.points])

    def value(self, w: np.ndarray) -> float:
        loss, *_ = LOSSES[self.loss]
        z = self.features @ w
        return float(np.mean(self.chance * loss(z) + (1 - self.chance) * loss(-z)) + self.lam * w @ w / 2)

    def minimiser(self, support: np.ndarray) -> np.ndarray:
        """The best w over some of the monomials, by Newton's method."""
        _, first, second, _ = LOSSES[self.loss]
        phi, p, w = self.features[:, support], self.chance, np.zeros(int(support.sum()))
        for _ in range(50):
            z = phi @ w
            g = phi.T @ (p * first(z) - (1 - p) * first(-z)) / len(p) + self.lam * w
            h = p * second(z) + (1 - p) * second(-z)
            w = w - np.linalg.solve((phi.T * h) @ phi / len(p) + self.lam * np.eye(len(w)), g)
        full = np.zeros(len(self.monomials))
        full[support] = w
        return full

    def bound(self, T: int, D: float) -> float:
        """Theorem 1's right-hand side, with |l'| and l'' as large as they get within D."""
        X = float(np.linalg.norm(self.features, axis=1).max())
        slope = 1.0 if self.loss == "logistic" else 2 * (1 + X * D)
        beta, G = X**2 * LOSSES[self.loss][3] + self.lam, X * slope + self.lam * D
        return beta * G**2 / (2 * self.lam**2) / (T + 1)


@dataclass
class Path:
    """What a run left behind: feature sets by epoch, the norm of the largest weights, and the last weights."""

    supports: list[np.ndarray]
    largest: float
    last: np.ndarray


def sample(problem: Problem, T: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which point each example is, and its label."""
    rng = np.random.default_rng(seed)
    which = rng.integers(len(problem.points), size=T)
    return which, np.where(rng.random(T) < problem.chance[which], 1.0, -1.0)


def algorithm_1(problem: Problem, T: int, schedule: list[int], size: int, seed: int) -> Path:
    """Lines 1 to 10 of Algorithm 1 with the step 1/(lambda (t + 1)), ``size`` parents a round."""
    which, y = sample(problem, T, seed)
    first = LOSSES[problem.loss][1]
    monomials, phi = problem.monomials, problem.features
    place = {m: i for i, m in enumerate(monomials)}
    w, support, parents = np.zeros(len(monomials)), np.array([len(m) == 1 for m in monomials]), set()
    supports, largest = [support.copy()], 0.0
    for t in range(1, T + 1):
        x = phi[which[t - 1]] * y[t - 1]
        g = x * first(np.array(w @ x)) + problem.lam * w
        w = w - np.where(support, g, 0.0) / (problem.lam * (t + 1))
        largest = max(largest, float(np.linalg.norm(w)))
        if t in schedule:
            order = np.argsort(-np.abs(w), kind="stable")
            new = [m for m in (monomials[i] for i in order if support[i]) if m not in parents][:size]
            parents.update(new)
            for m in new:
                for i in range(problem.points.shape[1]):
                    child = tuple(sorted((*m, i)))
                    if child in place:
                        support[place[child]] = True
            supports.append(support.copy())
    return Path(supports, largest, w)


def average_comparator(values: list[float], schedule: list[int], T: int) -> float:
    """sum (t + 2) f(u_t) / sum (t + 2) for comparators that change at the rounds alone."""
    epoch = np.searchsorted(schedule, np.arange(1, T + 1), side="left")
    weights = np.arange(1, T + 1) + 2.0
    return float(weights @ np.array(values)[epoch] / weights.sum())
