"""Generalized least squares (Algorithm 1) and its accelerated form (section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pomona.leastsquares.arrays import Array
from pomona.leastsquares.gram import Border, Metric, moments
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
) -> Fit:
    """Minimise E[Φ(Wx) - y·Wx] + λ/2 |W|² by steps W ← W - (LΣ + λ)⁻¹ ∇ (eq. 14, with a ridge).

    L Σ bounds the Hessian from above, so that no step length has to be chosen. The factor of LΣ + λ is made once.
    ``watch`` is told the number of each step and the gain in loss it is sure to make.
    """
    place = problem.rows.place
    xp = place.xp
    losses: list[float] = []

    def residual(where: slice, X: Array, W: Array | None) -> Array:
        U = problem.predictions(where, X, W)
        Y = problem.targets[where]
        if options.track:
            each = link.potential(U) - xp.sum(U * Y, axis=1)
            sums[0] += float(xp.sum(each if problem.weights is None else each * problem.weights[where]))
        return link(U) - Y

    sums = [0.0]
    W = place.zeros(problem.width, problem.targets.k, exact=True) if start is None else place.put(start, exact=True)
    first = None if start is None else place.put(start)
    both = moments(
        problem.rows,
        lambda where, X: residual(where, X, first),
        problem.border,
        problem.weights,
        problem.width,
        problem.targets.k,
    )
    L = link.lipschitz if options.lipschitz is None else options.lipschitz
    metric = Metric(place, both.gram, both.total, L, options.ridge, problem.n_free)
    penalty = metric.penalty
    gradient, V, t = both.cross + penalty * W, W, 1
    one_step = isinstance(link, Identity) and L == 1.0
    for step in range(1, options.max_steps + 1):
        if options.track:
            losses.append(sums[0] / both.total + float(xp.sum(penalty * V * V)) / 2)
        D = metric.solve(gradient)
        gain = float(xp.sum(gradient * D)) / 2
        new = V - D
        if watch is not None:
            watch(step, gain)
        if one_step or gain <= options.tolerance:
            return Fit(new, step, True, metric.ridge, losses)
        if step == options.max_steps:
            break
        # Nesterov's momentum; it starts anew when it points uphill (O'Donoghue and Candès, 2015).
        t = 1 if not options.accelerate or float(xp.sum(gradient * (new - W))) > 0 else t + 1
        V = new + ((t - 1) / (t + 2)) * (new - W)
        W = new
        sums[0] = 0.0
        gradient = _gradient(problem, V, residual) / both.total + penalty * V
    return Fit(new, step, False, metric.ridge, losses)


def _gradient(problem: Problem, V: Array, residual: Callable[[slice, Array, Array], Array]) -> Array:
    """Σ x (g(Vx) - y)ᵀ over one pass."""
    place, d = problem.rows.place, problem.rows.d
    total = place.zeros(problem.width, problem.targets.k, exact=True)
    V = place.put(V)
    for where, X in problem.rows.blocks():
        R = residual(where, X, V)
        if problem.weights is not None:
            R = R * problem.weights[where][:, None]
        total[:d, :] += X.T @ R
        total[d:, :] += problem.border(where).T @ R
    return total
