"""Generalized least squares (Algorithm 1) and its accelerated form (section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pomona.leastsquares.arrays import Array
from pomona.leastsquares.gram import AUTO_LOGISTIC, AUTO_SQUARED, Border, Metric, Moments, moments
from pomona.leastsquares.links import Identity, Link
from pomona.leastsquares.rows import Rows
from pomona.leastsquares.targets import Predictions, Targets

#: Gain in loss that the next step is sure to make, at which to stop.
TOLERANCE = 1e-7
MAX_STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How far to go in Algorithm 1."""

    #: Strength λ of the penalty λ/2 |W|² beside the mean loss; None: chosen by :class:`Metric`.
    ridge: float | None = None
    tolerance: float = TOLERANCE
    max_steps: int = MAX_STEPS
    accelerate: bool = True
    #: Lipschitz constant L in place of the link's own.
    lipschitz: float | None = None
    #: Whether to note the loss at each step, at the price of evaluating Φ.
    track: bool = False


@dataclass
class Fit:
    """What a run of Algorithm 1 found: weights of features, then those of the border (float64)."""

    W: Array
    steps: int
    converged: bool
    #: The ridge that was used, which may be larger than the one asked for.
    ridge: float
    #: Mean loss plus penalty at the point of each gradient, where ``track`` was set.
    losses: list[float] = field(default_factory=list)


@dataclass
class Problem:
    """Rows with a border, targets, weights, and predictions to start from."""

    rows: Rows
    targets: Targets
    border: Border
    n_border: int
    #: Columns at the end of the border that no penalty applies to.
    n_free: int = 1
    weights: Array | None = None
    offset: Predictions | None = None

    @property
    def width(self) -> int:
        return self.rows.d + self.n_border

    def predictions(self, where: slice, X: Array, W: Array | None) -> Array:
        """offset + W x for a block; W in working precision, or None for zero."""
        if W is None:
            place = self.rows.place
            return place.zeros(int(X.shape[0]), self.targets.k) if self.offset is None else self.offset[where]
        d = self.rows.d
        U = X @ W[:d, :] + self.border(where) @ W[d:, :]
        return U if self.offset is None else U + self.offset[where]


def intercept(rows: Rows) -> Border:
    """A border of ones."""

    def ones(where: slice) -> Array:
        return rows.place.ones(where.stop - where.start, 1)

    return ones


def no_border(rows: Rows) -> Border:
    def nothing(where: slice) -> Array:
        return rows.place.ones(where.stop - where.start, 0)

    return nothing


def gls(
    problem: Problem,
    link: Link,
    options: StepOptions,
    start: Array | None = None,
    watch: Callable[[int, float], None] | None = None,
    both: Moments | None = None,
) -> Fit:
    """Minimise E[Φ(Wx) - y·Wx] + λ/2 |W|² by steps W ← W - (LΣ + λ)⁻¹ ∇ (eq. 14, with a ridge).

    L Σ bounds the Hessian from above, so that no step length has to be chosen. The factor of LΣ + λ is made once.
    ``watch`` is told the number of each step and the gain in loss it is sure to make. ``both``, of
    :func:`moments_at`, serves several ridges.
    """
    place, k = problem.rows.place, problem.targets.k
    slope = Slope(problem, link, options.track)
    W = place.zeros(problem.width, k, exact=True) if start is None else place.put(start, exact=True)
    both = both or moments_at(slope, start)
    L = link.lipschitz if options.lipschitz is None else options.lipschitz
    strength = AUTO_SQUARED if isinstance(link, Identity) else AUTO_LOGISTIC
    metric = Metric(place, both.gram, both.total, L, options.ridge, problem.n_free, strength)
    slope.total, slope.penalty = both.total, metric.penalty
    slope.note(W)
    one_step = isinstance(link, Identity) and L == 1.0
    W, step, converged = _descend(slope, metric, W, both.cross + metric.penalty * W, options, one_step, watch)
    return Fit(W, step, converged, metric.ridge, slope.losses)


def moments_at(slope: Slope, start: Array | None) -> Moments:
    """Σ, and the gradient at the start but for its penalty: both do without the ridge."""
    problem = slope.problem
    first = None if start is None else problem.rows.place.put(start)

    def residual(where: slice, X: Array) -> Array:
        return slope.residual(where, X, first)

    return moments(problem.rows, residual, problem.border, problem.weights, problem.width, problem.targets.k)


def _descend(
    slope: Slope,
    metric: Metric,
    W: Array,
    gradient: Array,
    options: StepOptions,
    one_step: bool,
    watch: Callable[[int, float], None] | None,
) -> tuple[Array, int, bool]:
    """Steps from W, where the gradient is known: the weights, the number of steps, and whether they came to rest."""
    xp = slope.problem.rows.place.xp
    V, t = W, 1
    for step in range(1, options.max_steps + 1):
        D = metric.solve(gradient)
        gain = float(xp.sum(gradient * D)) / 2
        new = V - D
        if watch is not None:
            watch(step, gain)
        if one_step or gain <= options.tolerance:
            return new, step, True
        if step == options.max_steps:
            break
        # Nesterov's momentum; it starts anew when it points uphill (O'Donoghue and Candès, 2015).
        t = 1 if not options.accelerate or float(xp.sum(gradient * (new - W))) > 0 else t + 1
        V = new + ((t - 1) / (t + 2)) * (new - W)
        W = new
        gradient = slope.gradient(V)
    return new, step, False


class Slope:
    """The gradient of a problem and, where it is tracked, its loss."""

    def __init__(self, problem: Problem, link: Link, track: bool = False) -> None:
        self.problem, self.losses = problem, list[float]()
        self._link, self._track, self._sum = link, track, 0.0
        self.total = 1.0
        self.penalty: Array = 0.0

    def residual(self, where: slice, X: Array, W: Array | None) -> Array:
        """g(Wx) - y for a block."""
        xp = self.problem.rows.place.xp
        U, Y = self.problem.predictions(where, X, W), self.problem.targets[where]
        if self._track:
            each = self._link.potential(U) - xp.sum(U * Y, axis=1)
            weights = self.problem.weights
            self._sum += float(xp.sum(each if weights is None else each * weights[where]))
        return self._link(U) - Y

    def note(self, V: Array) -> None:
        """Keep the loss at V, whose residuals were just computed."""
        if self._track:
            penalty = float(self.problem.rows.place.xp.sum(self.penalty * V * V)) / 2
            self.losses.append(self._sum / self.total + penalty)
            self._sum = 0.0

    def gradient(self, V: Array) -> Array:
        """E[x (g(Vx) - y)ᵀ] + λV, in one pass."""
        problem = self.problem
        place, d = problem.rows.place, problem.rows.d
        sums = place.zeros(problem.width, problem.targets.k, exact=True)
        low = place.put(V)
        for where, X in problem.rows.blocks():
            R = self.residual(where, X, low)
            if problem.weights is not None:
                R = R * problem.weights[where][:, None]
            sums[:d, :] += X.T @ R
            sums[d:, :] += problem.border(where).T @ R
        self.note(V)
        return sums / self.total + self.penalty * V
