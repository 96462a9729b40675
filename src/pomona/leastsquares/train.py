"""From rows and targets to a model: the same for arrays in memory and for files of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.errors import OptionError
from pomona.learner import Step
from pomona.leastsquares.arrays import Array
from pomona.leastsquares.cls import DEFAULT, MAX_ROUNDS, Calibration, RoundOptions, cls
from pomona.leastsquares.cls import TOLERANCE as ROUND_TOLERANCE
from pomona.leastsquares.generators import generator_of
from pomona.leastsquares.gls import MAX_STEPS, TOLERANCE, Problem, StepOptions, gls, intercept, no_border
from pomona.leastsquares.links import Link, link_named
from pomona.leastsquares.models import AveragedModel, CalibratedModel, Fitted, LinearModel
from pomona.leastsquares.rows import Rows
from pomona.leastsquares.stagewise import StageReport, StagewiseFit, StagewiseOptions
from pomona.leastsquares.targets import Targets

Report = Callable[[Step], None]


@dataclass
class Job:
    """Examples to learn from: ``kind`` is that of the targets, "classes", "labels" or "values"."""

    rows: Rows
    targets: Targets
    kind: str
    weights: NDArray[np.float64] | None
    memory: int
    report: Report

    def problem(self, fit_intercept: bool = True) -> Problem:
        place = self.rows.place
        weights = None if self.weights is None else place.put(self.weights)
        border = intercept(self.rows) if fit_intercept else no_border(self.rows)
        n_border = int(fit_intercept)
        return Problem(self.rows, self.targets, border, n_border, n_free=n_border, weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class GLSOptions:
    """Generalized least squares (Algorithm 1)."""

    #: identity, softmax, logistic, or an object like :class:`pomona.leastsquares.links.Link`; None: by the targets.
    link: str | Link | None = None
    ridge: float | None = None
    tolerance: float = TOLERANCE
    max_steps: int = MAX_STEPS
    accelerate: bool = True
    fit_intercept: bool = True

    def train(self, job: Job, start: Array | None = None) -> tuple[LinearModel, dict[str, Any]]:
        link = self.found_link(job.kind)
        if not getattr(link, "lipschitz", 0) > 0:
            raise OptionError("a link needs its Lipschitz constant, lipschitz > 0 (eq. 16 of the paper)")
        options = StepOptions(
            ridge=self.ridge, tolerance=self.tolerance, max_steps=self.max_steps, accelerate=self.accelerate
        )

        def watch(step: int, gain: float) -> None:
            job.report(Step(f"step {step}, sure gain {gain:.3g}"))

        fit = gls(job.problem(self.fit_intercept), link, options, start, watch)
        model = LinearModel(fit.W, link, job.kind, job.rows.place, self.fit_intercept)
        return model, {"steps": fit.steps, "converged": fit.converged, "ridge": fit.ridge}

    def found_link(self, kind: str) -> Link:
        if self.link is None:
            return link_named({"classes": "softmax", "labels": "logistic", "values": "identity"}[kind])
        return link_named(self.link) if isinstance(self.link, str) else self.link


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedOptions:
    """Calibrated least squares (Algorithm 2)."""

    calibration: Sequence[Any] = DEFAULT
    ridge: float | None = None
    tolerance: float = ROUND_TOLERANCE
    max_rounds: int = MAX_ROUNDS

    def train(self, job: Job) -> tuple[CalibratedModel, dict[str, Any]]:
        calibration = Calibration(self.calibration)
        options = RoundOptions(ridge=self.ridge, tolerance=self.tolerance, max_rounds=self.max_rounds)

        def watch(number: int, error: float) -> None:
            job.report(Step(f"round {number}", loss=error))

        fit = cls(job.problem(), job.kind, calibration, options, job.memory // 4, watch)
        model = CalibratedModel(fit.rounds, calibration, job.kind, job.rows.place)
        return model, {"rounds": len(fit.rounds), "loss": fit.errors[-1], "ridge": fit.ridge, "errors": fit.errors}


@dataclass(frozen=True, slots=True, kw_only=True)
class StagewiseTraining(StagewiseOptions):
    """Stagewise regression (Algorithm 3), perhaps several times for a mean (section 3.2)."""

    generator: Any = "fourier"
    #: Options of the generator, where it is given by name.
    generator_options: Any = None
    n_models: int = 1
    seed: int = 0

    def train(self, job: Job) -> tuple[AveragedModel, dict[str, Any]]:
        if self.n_models < 1:
            raise OptionError(f"the number of models must be 1 or more; got {self.n_models}")
        generator = generator_of(self.generator, self.seed, self.generator_options)
        models, reports = [], []
        first = 0
        for m in range(self.n_models):
            prefix = f"model {m + 1}, " if self.n_models > 1 else ""
            options = StagewiseOptions(**{f.name: getattr(self, f.name) for f in fields(StagewiseOptions)})
            show = _shown(job.report, prefix, m, self.n_models)
            fit = StagewiseFit(job.rows, job.targets, job.kind, generator, options, job.weights, show, first)
            model = fit.run()
            first += len(model.reports)
            models.append(model)
            reports += model.reports
        best = models[-1].reports[len(models[-1].stages) - 1]
        figures = {
            "stages": sum(len(model.stages) for model in models),
            "loss": best.loss,
            "error": best.error,
            "held_out": best.held_out,
            "ridge": best.ridge,
        }
        return AveragedModel(models, reports), figures


def _shown(report: Report, prefix: str, m: int, n_models: int) -> Callable[[StageReport], None]:
    def show(stage: StageReport) -> None:
        error = "" if stage.error is None else f", error {100 * stage.error:.2f} %"
        held = "" if stage.held_out_error is None else f" ({100 * stage.held_out_error:.2f} % held out)"
        words = f"{prefix}stage {stage.stage} of {stage.n_stages}{error}{held}"
        done = (m + stage.stage / stage.n_stages) / n_models
        report(Step(words, loss=stage.loss, held_out=stage.held_out, fraction=done))

    return show


def train(options: Any, job: Job) -> tuple[Fitted, dict[str, Any]]:
    """The model and figures about its training, as plain JSON values."""
    found: tuple[Fitted, dict[str, Any]] = options.train(job)
    return found
