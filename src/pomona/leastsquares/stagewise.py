"""Stagewise regression (Algorithm 3): one block of generated features after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.errors import OptionError
from pomona.leastsquares import streams
from pomona.leastsquares.arrays import Array, Place, to_numpy
from pomona.leastsquares.cls import Calibration
from pomona.leastsquares.generators import View
from pomona.leastsquares.generators.columns import blocks_in_pass
from pomona.leastsquares.gls import Fit, Problem, StepOptions, gls, intercept
from pomona.leastsquares.links import Identity, Link, Logistic, Softmax
from pomona.leastsquares.rows import GeneratedRows, Rows
from pomona.leastsquares.targets import Predictions, Targets

INNER = ("linear", "calibrated", "logistic")
#: "We typically use m ≈ 1000" (section 2.4).
BLOCK = 1024
MIN_BLOCK = 64
#: Stages of generators that never run out of features.
STAGES = 10
#: Gram matrix, its shifted copy and the sum of a block, in float64.
GRAM_COPIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StagewiseOptions:
    """What a user may ask of stagewise regression."""

    inner: str = "linear"
    #: Features of a stage; None: about a thousand, fewer where examples, columns or memory are few.
    block_size: int | None = None
    #: Stages; None: one pass over the columns (two in gradient order), or 10 of random features.
    n_stages: int | None = None
    #: Strength λ of the penalty λ/2 |W|² on each stage, beside the mean loss; None: chosen from the features' size.
    ridge: float | None = None
    #: Steps of Algorithm 1 in a logistic stage.
    inner_steps: int = 10
    #: Functions of the earlier predictions that a calibrated stage takes as features.
    calibration: Sequence[str | Callable[[Array], Array]] = ("y",)
    #: Bytes for features that are kept between passes, and for Gram matrices.
    memory: int = 1 << 30
    #: Share of the examples held out to stop early; 0: none.
    holdout: float = 0.0
    #: Stages without gain on the held-out examples after which to stop.
    patience: int = 3

    def check(self) -> None:
        if self.inner not in INNER:
            raise OptionError(f"the inner step must be one of {', '.join(INNER)}; got {self.inner!r}")
        if not 0 <= self.holdout < 1:
            raise OptionError(f"the held-out share must be in [0, 1); got {self.holdout}")
        Calibration(self.calibration)

    def size(self, n: int, d: int, columns_only: bool) -> int:
        """Features of a stage."""
        if self.block_size is not None:
            return min(self.block_size, d) if columns_only else self.block_size
        fits = int((self.memory / (4 * GRAM_COPIES * 8)) ** 0.5)
        most = min(BLOCK, max(MIN_BLOCK, fits))
        return min(most, d) if columns_only else min(most, max(MIN_BLOCK, n))

    def stages(self, d: int, size: int, kind: str) -> int:
        if self.n_stages is not None:
            return self.n_stages
        passes = {"sample": 1, "gradient": 2}.get(kind)
        return STAGES if passes is None else passes * blocks_in_pass(d, size)


@dataclass
class StageReport:
    """How a stage went."""

    stage: int
    n_stages: int
    features: int
    steps: int
    ridge: float
    #: Mean loss (squared error, or log-loss of a logistic model) and share of wrong classes.
    loss: float
    error: float | None
    held_out: float | None
    held_out_error: float | None
    seconds: float


@dataclass
class Stage:
    """The weights of one block of features, then of its border; the features come from the generator."""

    number: int
    size: int
    W: Array
    features: Any = None


@dataclass
class Stagewise:
    """A model of stages that predicts by generating the features again."""

    generator: Any
    inner: str
    #: Of the targets: "classes", "labels" or "values".
    kind: str
    d: int
    k: int
    place: Place
    calibration: Calibration = field(default_factory=lambda: Calibration(("y",)))
    stages: list[Stage] = field(default_factory=list)
    reports: list[StageReport] = field(default_factory=list)

    @property
    def link(self) -> Link:
        """Turns predictions into means: logits into probabilities, or nothing."""
        if self.inner != "logistic":
            return Identity()
        return Softmax() if self.kind == "classes" else Logistic()

    def border(self, U: Array) -> Array:
        """Columns beside the features: earlier predictions of a calibrated stage, and the intercept."""
        ones = self.place.ones(int(U.shape[0]), 1)
        if self.inner != "calibrated":
            return ones
        return self.place.xp.concat([self.calibration(self.place, U), ones], axis=1)

    @property
    def n_border(self) -> int:
        return 1 + (self.k * len(self.calibration) if self.inner == "calibrated" else 0)

    def view(self) -> View:
        return View(self.place, self.d)

    def features(self, stage: Stage) -> Any:
        if stage.features is None:
            stage.features = self.generator.generate(stage.number, stage.size, self.view())
        return stage.features

    def staged(self, X: Array) -> Iterator[Array]:
        """Predictions of a block after each stage."""
        reduce = self.generator.reduction(self.view())
        X = X if reduce is None else reduce(X)
        U = self.place.zeros(int(X.shape[0]), self.k)
        for stage in self.stages:
            Z = self.features(stage)(X)
            d = int(Z.shape[1])
            W = self.place.put(stage.W)
            U = U + Z @ W[:d, :] + self.border(U) @ W[d:, :]
            yield U

    def raw(self, X: Array) -> Array:
        """Predictions of a block of rows that are at this place."""
        U = self.place.zeros(int(X.shape[0]), self.k)
        for U in self.staged(X):  # noqa: B007 (only the last is wanted)
            pass
        return U

    def __getstate__(self) -> dict[str, Any]:
        """Without features that the generator makes again."""
        stages = [Stage(stage.number, stage.size, stage.W) for stage in self.stages]
        return {**self.__dict__, "stages": stages}


class StagewiseFit:
    """The loop of Algorithm 3."""

    def __init__(
        self,
        rows: Rows,
        targets: Targets,
        kind: str,
        generator: Any,
        options: StagewiseOptions,
        weights: NDArray[np.float64] | None = None,
        progress: Callable[[StageReport], None] | None = None,
        first_stage: int = 0,
    ) -> None:
        options.check()
        self.rows, self.targets, self.options, self.progress = rows, targets, options, progress
        self.first_stage = first_stage
        place = rows.place
        if options.inner == "logistic" and kind == "values":
            raise OptionError("the inner step 'logistic' needs classes or labels: use 'linear' for regression")
        self.model = Stagewise(
            generator, options.inner, kind, rows.d, targets.k, place, Calibration(options.calibration)
        )
        self.held = held_out_rows(rows.n, options.holdout)
        if self.held is not None:
            weights = (np.ones(rows.n) if weights is None else weights) * ~self.held
        self._train_weights = weights
        self._weights = None if weights is None else place.put(weights)
        self.U = Predictions(rows.n, targets.k, place, options.memory // 4)
        self.start = time.perf_counter()

    def run(self) -> Stagewise:
        model, options, rows = self.model, self.options, self.rows
        view = View(rows.place, rows.d, rows, self._train_weights, self._gradient)
        reduce = model.generator.reduction(view)
        base = rows if reduce is None else GeneratedRows(rows, reduce, 0, rows.place.room(options.memory // 2))
        columns_only = getattr(model.generator, "kind", "") in ("sample", "gradient")
        size = options.size(rows.n, rows.d, columns_only)
        n_stages = options.stages(rows.d, size, getattr(model.generator, "kind", ""))
        best, best_count = np.inf, 0
        for t in range(n_stages):
            number = self.first_stage + t
            stage = Stage(number, size, None, model.generator.generate(number, size, view))
            report = self._fit_stage(stage, base, n_stages)
            model.stages.append(stage)
            model.reports.append(report)
            if self.progress is not None:
                self.progress(report)
            if report.held_out is None:
                continue
            if report.held_out < best:
                best, best_count = report.held_out, t + 1
            elif t + 1 - best_count >= options.patience:
                break
        if best_count:
            del model.stages[best_count:]
        return model

    def _fit_stage(self, stage: Stage, base: Rows, n_stages: int) -> StageReport:
        model, options, place = self.model, self.options, self.rows.place
        width = self._width(stage, base)
        spare = options.memory // 2 - GRAM_COPIES * 8 * width * width
        rows = GeneratedRows(base, stage.features, width, place.room(max(0, spare)))
        problem = Problem(
            rows,
            self.targets,
            (lambda where: model.border(self.U[where])) if model.inner == "calibrated" else intercept(rows),
            model.n_border,
            weights=self._weights,
            offset=self.U,
        )
        steps = StepOptions(ridge=options.ridge, max_steps=options.inner_steps if model.inner == "logistic" else 1)
        fit = gls(problem, model.link, steps)
        stage.W = fit.W
        return self._update(problem, fit, n_stages)

    def _width(self, stage: Stage, base: Rows) -> int:
        for _, block in base.blocks():
            return int(stage.features(block[:1, :]).shape[1])
        raise OptionError("stagewise regression needs at least one example; got none")

    def _update(self, problem: Problem, fit: Fit, n_stages: int) -> StageReport:
        """Add the stage to all predictions, and measure them."""
        place = self.rows.place
        xp = place.xp
        W = place.put(fit.W)
        sums = np.zeros((2, 3))  # train and held out: weight, loss, mistakes
        for where, X in problem.rows.blocks():
            U = problem.predictions(where, X, W)
            self.U[where] = U
            Y = self.targets[where]
            if self.model.inner == "logistic":
                losses = self.model.link.potential(U) - xp.sum(U * Y, axis=1)
            else:
                losses = xp.sum((U - Y) ** 2, axis=1)
            each = [losses]
            if self.model.kind == "classes":
                each.append(xp.astype(xp.argmax(U, axis=1) != xp.argmax(Y, axis=1), losses.dtype))
            for part, w in enumerate(self._parts(where)):
                if w is not None:
                    sums[part, 0] += float(xp.sum(w))
                    sums[part, 1 : 1 + len(each)] += [float(xp.sum(e * w)) for e in each]
        means = sums[:, 1:] / np.maximum(sums[:, :1], 1e-300)
        classes, held = self.model.kind == "classes", self.held is not None
        return StageReport(
            stage=len(self.model.stages) + 1,
            n_stages=n_stages,
            features=problem.rows.d,
            steps=fit.steps,
            ridge=fit.ridge,
            loss=float(means[0, 0]),
            error=float(means[0, 1]) if classes else None,
            held_out=float(means[1, 0]) if held else None,
            held_out_error=float(means[1, 1]) if held and classes else None,
            seconds=time.perf_counter() - self.start,
        )

    def _parts(self, where: slice) -> tuple[Array, Array | None]:
        """Weights of the rows that are learnt from, and of those held out."""
        place = self.rows.place
        train = place.ones(where.stop - where.start) if self._weights is None else self._weights[where]
        return train, None if self.held is None else place.put(self.held[where].astype(np.float32))

    def _gradient(self) -> NDArray[np.float64]:
        """Length of Σ (ŷ - y) x for each column of the rows (appendix A.2.2)."""
        place = self.rows.place
        total = place.zeros(self.rows.d, self.targets.k, exact=True)
        for where, X in self.rows.blocks():
            R = self.model.link(self.U[where]) - self.targets[where]
            total += X.T @ (R if self._weights is None else R * self._weights[where][:, None])
        return np.asarray(np.sqrt((to_numpy(total) ** 2).sum(axis=1)))


def held_out_rows(n: int, share: float) -> NDArray[np.bool_] | None:
    """Rows drawn at random, the same for the same number of rows; None: none.

    Not every so many-th row: data may come in a rhythm.
    """
    if share <= 0 or n < 2:
        return None
    draw = streams.uniform((n,), 0, 0, "hold-out")
    return np.asarray(draw <= np.sort(draw)[max(1, min(n - 1, round(n * share))) - 1])
