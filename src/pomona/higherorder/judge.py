"""Choices on the validation rows (D^CV): which of several models is best, and how steep its scores should be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pomona.higherorder.coded import Rows
from pomona.higherorder.discriminative import error_rate, log_loss, log_losses, temperature

K = TypeVar("K", bound=Hashable)
#: Errors that differ by less than this many standard errors count as equal; the loss decides between them.
TOLERANCE = 0.5
#: Below this number of validation rows no factor for the scores is looked for; above, it has to pay by so many
#: standard errors of what it gains on them.
FEWEST_TO_CALIBRATE, WORTH = 50, 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a model does on the validation rows; the loss is that after scaling the scores."""

    error: float
    loss: float
    factor: float = 1.0
    n: int = 0


class Judge:
    """Measures models on the validation rows."""

    def __init__(self, cv: Rows, calibrate: bool = True) -> None:
        self.cv, self.calibrate = cv, calibrate and len(cv) >= FEWEST_TO_CALIBRATE

    def __len__(self) -> int:
        return len(self.cv)

    def verdict(self, raw: NDArray[np.float64]) -> Verdict:
        labels = self.cv.labels
        if not len(labels) or not np.isfinite(raw).all():
            return Verdict(1.0, float("inf"))
        factor = worthwhile(raw, labels) if self.calibrate else 1.0
        return Verdict(error_rate(raw, labels), log_loss(raw * factor, labels), factor, len(labels))


def worthwhile(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """The best factor for the scores, or 1 where what it gains may be the luck of these rows."""
    factor = temperature(raw, labels)
    gains = log_losses(raw, labels) - log_losses(raw * factor, labels)
    return factor if gains.mean() > WORTH * gains.std() / len(gains) ** 0.5 else 1.0


def best(verdicts: Mapping[K, Verdict]) -> K:
    """The one with the least error; among those that are as good as equal, the one with the least loss."""
    least = min(v.error for v in verdicts.values())
    n = max(max(v.n for v in verdicts.values()), 1)
    tolerance = TOLERANCE * (least * (1 - least) / n) ** 0.5
    good = [key for key, v in verdicts.items() if v.error <= least + tolerance]
    return min(good, key=lambda key: verdicts[key].loss)


# ---- the initial step size ----

#: Powers of ten, by halves, between which it is searched, and where the search begins.
LOWEST, HIGHEST, FIRST = -10, 2, -4


def climb(evaluate: Callable[[float], Verdict]) -> tuple[float, Verdict]:
    """The best step size on a grid of half powers of ten, looking only at neighbours of the best so far."""
    seen = {FIRST: evaluate(10 ** (FIRST / 2))}
    while True:
        top = best(seen)
        fresh = [k for k in (top - 1, top + 1) if LOWEST <= k <= HIGHEST and k not in seen]
        if not fresh:
            return 10 ** (top / 2), seen[top]
        for k in fresh:
            seen[k] = evaluate(10 ** (k / 2))


def recursive(evaluate: Callable[[float], float], epsilon: float = 0.01, scale: int = 10) -> float:
    """Algorithms 4 and 5: a grid from 10^-6 to 10^6, and again between the neighbours of its best point.

    ``evaluate`` gives the error (RMSE) reached with a step size. Read as: evaluate first, then compare the neighbours;
    the ends of the grid are their own neighbours; and the best point of the last grid is returned.
    """
    low, high = -6.0, 6.0
    while True:
        grid = np.linspace(low, high, scale + 1)
        errors = [evaluate(10.0**point) for point in grid.tolist()]
        j = int(np.argmin(errors))
        left, right = max(j - 1, 0), min(j + 1, scale)
        if abs(errors[left] - errors[right]) <= epsilon or high - low < 0.05:
            return float(10.0 ** grid[j])
        low, high = float(grid[left]), float(grid[right])


def rmse(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """Root of the mean of (1 - P(y|x))^2."""
    if not np.isfinite(raw).all():
        return float("inf")
    scores = np.column_stack([np.zeros(len(raw)), raw]) if raw.ndim == 1 else raw
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e[np.arange(len(labels)), labels] / e.sum(axis=1)
    return float(np.sqrt(np.mean((1 - p) ** 2))) if len(labels) else 0.0
