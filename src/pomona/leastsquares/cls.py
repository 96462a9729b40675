"""Calibrated least squares (Algorithm 2): fits the residual and the link in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomona.errors import OptionError
from pomona.leastsquares.arrays import Array, Place
from pomona.leastsquares.gls import Problem
from pomona.leastsquares.gram import Metric, moments
from pomona.leastsquares.projections import PROJECTIONS
from pomona.leastsquares.targets import Predictions


def identity(y: Array) -> Array:
    return y


def square(y: Array) -> Array:
    return y * y


def cube(y: Array) -> Array:
    return y * y * y


#: Functions by name; a user's own are callables that work on arrays of any shape.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {"y": identity, "y2": square, "y3": cube}
#: G of the paper's experiments.
DEFAULT = ("y", "y2", "y3")
#: Relative fall of the squared error in a round, below which to stop.
TOLERANCE = 1e-4
MAX_ROUNDS = 100
#: Pull of the calibration towards leaving predictions alone: y, y² and y³ are the same where y is 0 or 1.
PULL = 1e-6
#: Mean squared error at which nothing is left to learn.
NO_ERROR = 1e-12


class Calibration:
    """G of Algorithm 2: functions of predictions, side by side."""

    def __init__(self, functions: Sequence[str | Callable[[Array], Array]] = DEFAULT, pull: float = PULL) -> None:
        if not functions:
            raise OptionError("the calibration needs at least one function; got none")
        self.given, self.pull = tuple(functions), pull
        self.functions = [self._find(function) for function in functions]

    @staticmethod
    def _find(function: Any) -> Callable[[Array], Array]:
        if callable(function):
            own: Callable[[Array], Array] = function
            return own
        if function not in FUNCTIONS:
            raise OptionError(
                f"a calibration function is one of {', '.join(FUNCTIONS)}, or a callable; got {function!r}"
            )
        return FUNCTIONS[function]

    def __len__(self) -> int:
        return len(self.functions)

    def __call__(self, place: Place, Y: Array) -> Array:
        return place.xp.concat([function(Y) for function in self.functions], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """How far to go in Algorithm 2."""

    ridge: float | None = None
    tolerance: float = TOLERANCE
    max_rounds: int = MAX_ROUNDS


@dataclass
class CalibratedFit:
    """Weights of each round: of the features (and their border), and of the calibration."""

    rounds: list[tuple[Array, Array]]
    ridge: float
    #: Mean squared error before the first round, then after each residual fit and each calibration.
    errors: list[float] = field(default_factory=list)


def cls(
    problem: Problem,
    kind: str,
    calibration: Calibration,
    options: RoundOptions,
    memory: int,
    watch: Callable[[int, float], None] | None = None,
) -> CalibratedFit:
    """Rounds of eq. 18 (fit the residual) and eq. 19 (calibrate, then project) until the squared error rests.

    ``kind`` is that of the targets and says what to project onto. One Gram matrix serves all rounds.
    """
    place, k = problem.rows.place, problem.targets.k
    predictions = Predictions(problem.rows.n, k, place, memory)
    clip = PROJECTIONS[kind]
    both = moments(
        problem.rows,
        lambda where, _: problem.targets[where] - predictions[where],
        problem.border,
        problem.weights,
        problem.width,
        k,
    )
    metric = Metric(place, both.gram, both.total, 1.0, options.ridge, problem.n_free)
    cross = both.cross
    fit = CalibratedFit([], metric.ridge, [_error(problem, predictions) / both.total])
    for number in range(1, options.max_rounds + 1):
        W = metric.solve(cross)
        _add(problem, predictions, W)
        fitted = _error(problem, predictions) / both.total
        C = _calibrate(problem, predictions, calibration, place)
        cross = place.zeros(problem.width, k, exact=True)
        d, error = problem.rows.d, 0.0
        # The calibrated predictions and the next cross term in one pass over the rows.
        for where, X in problem.rows.blocks():
            clipped = clip(calibration(place, predictions[where]) @ place.put(C))
            predictions[where] = clipped
            R = problem.targets[where] - clipped
            error += _squares(problem, where, R)
            R = R if problem.weights is None else R * problem.weights[where][:, None]
            cross[:d, :] += X.T @ R
            cross[d:, :] += problem.border(where).T @ R
        cross = cross / both.total
        fit.rounds.append((W, C))
        before = fit.errors[-1]
        fit.errors += [fitted, error / both.total]
        if watch is not None:
            watch(number, fit.errors[-1])
        if before - fit.errors[-1] <= options.tolerance * before or fit.errors[-1] < NO_ERROR:
            break
    return fit


def _add(problem: Problem, predictions: Predictions, W: Array) -> None:
    place, d = problem.rows.place, problem.rows.d
    W = place.put(W)
    for where, X in problem.rows.blocks():
        predictions[where] = predictions[where] + X @ W[:d, :] + problem.border(where) @ W[d:, :]


def _squares(problem: Problem, where: slice, R: Array) -> float:
    xp = problem.rows.place.xp
    each = xp.sum(R * R, axis=1)
    return float(xp.sum(each if problem.weights is None else each * problem.weights[where], dtype=xp.float64))


def _slices(problem: Problem) -> list[slice]:
    rows = problem.rows.place.block_rows(problem.targets.k)
    return [slice(start, min(start + rows, problem.rows.n)) for start in range(0, problem.rows.n, rows)]


def _error(problem: Problem, predictions: Predictions) -> float:
    return sum(_squares(problem, where, problem.targets[where] - predictions[where]) for where in _slices(problem))


def _calibrate(problem: Problem, predictions: Predictions, calibration: Calibration, place: Place) -> Array:
    """argmin |y - C G(ỹ)|²: the weights of eq. 19."""
    k = problem.targets.k
    width = k * len(calibration)
    gram, cross = place.zeros(width, width, exact=True), place.zeros(width, k, exact=True)
    for where in _slices(problem):
        G = place.put(calibration(place, predictions[where]), exact=True)
        Y = place.put(problem.targets[where], exact=True)
        H = G if problem.weights is None else G * place.put(problem.weights[where], exact=True)[:, None]
        gram += H.T @ G
        cross += H.T @ Y
    ridge = calibration.pull * max(float(place.xp.mean(place.xp.linalg.diagonal(gram))), 1e-300)
    # Pulled towards the identity, not towards zero, the squared error cannot rise.
    pull = np.concatenate([np.eye(k) * (function is identity) for function in calibration.functions])
    return Metric(place, gram, 1.0, 1.0, ridge).solve(cross + ridge * place.put(pull, exact=True))
