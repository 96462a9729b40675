"""Least squares as learners of models: from chunks of any source, with files and inspection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk, Source
from pomona.errors import DataFormatError
from pomona.learner import State, Step
from pomona.leastsquares.arrays import Place, to_numpy
from pomona.leastsquares.models import MODELS, AveragedModel, Fitted, LinearModel
from pomona.leastsquares.rows import GeneratedRows, Rows
from pomona.leastsquares.source import Columns, SourceRows, Survey
from pomona.leastsquares.spectrum import Spectrum, spectrum
from pomona.leastsquares.targets import Targets
from pomona.leastsquares.train import CalibratedOptions, GLSOptions, Job, StagewiseTraining, train
from pomona.task import Task


@dataclass(frozen=True, kw_only=True)
class GLSLearnOptions(GLSOptions):
    """``--learner gls``."""

    learner: str = "gls"
    task: str | None = None
    memory: int = 1 << 30
    class_weight: Any = None
    precision: str = "float32"
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class CalibratedLearnOptions(CalibratedOptions):
    """``--learner cls``."""

    learner: str = "cls"
    task: str | None = None
    memory: int = 1 << 30
    class_weight: Any = None
    precision: str = "float32"
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class StagewiseLearnOptions(StagewiseTraining):
    """``--learner stagewise``."""

    learner: str = "stagewise"
    task: str | None = None
    class_weight: Any = None
    precision: str = "float32"
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Targets of regression are learnt as (y - shift) / scale, which float32 can hold."""

    shift: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> Scale:
        shift = float(np.average(y, weights=weights))
        scale = float(np.sqrt(np.average((y - shift) ** 2, weights=weights)))
        return cls(shift, scale if np.isfinite(scale) and scale > 0 else 1.0)


class LeastSquaresLearner:
    """One of the three algorithms, learning from a source in passes of its own."""

    family: ClassVar[str]

    def __init__(self, options: Any, task_kind: str, n_classes: int) -> None:
        self.options, self.task_kind, self.n_classes = options, task_kind, n_classes
        self.model: Fitted
        self.columns: Columns
        self.target = Scale()
        self.spectrum: Spectrum | None = None

    # ---- learning ----
    @classmethod
    def from_options(cls, options: Any, task: Task, fields: list[str]) -> LeastSquaresLearner:
        return cls(options, task.kind, len(task.classes))

    def fit(self, source: Source, report: Callable[[Step], None]) -> dict[str, Any]:
        survey = Survey(source)
        if survey.columns.d == 0:
            raise DataFormatError("the data has no features: there is nothing to learn from", file=source.name)
        place = Place.of(None, self.options.precision, self.options.device)
        self.columns = survey.columns
        rows: Rows = SourceRows(source, survey, place)
        rows = GeneratedRows(rows, lambda block: block, rows.d, self.options.memory // 4)
        report(Step(f"read {survey.n:,} examples with {rows.d:,} columns"))
        # Classes may have been met only after the first rows.
        self.n_classes = max(self.n_classes, int(survey.labels.max()) + 1 if self.task_kind != "regression" else 0)
        job = Job(rows, self._targets(survey, place), self._kind(), survey.weights, self.options.memory, report)
        self.model, figures = train(self.options, job)
        self.spectrum = spectrum(self._first_features(rows), survey.weights)
        figures.pop("errors", None)
        passes = getattr(source, "count", 1)
        return {"examples": survey.n, "passes": passes, "weights": self._n_weights(), **self._loss(figures), **figures}

    def _kind(self) -> str:
        return "values" if self.task_kind == "regression" else "classes"

    def _targets(self, survey: Survey, place: Place) -> Targets:
        if self.task_kind == "regression":
            self.target = Scale.fit(survey.labels, survey.weights)
            return Targets(((survey.labels - self.target.shift) / self.target.scale)[:, None], place)
        return Targets(survey.labels, place, self.n_classes)

    def _loss(self, figures: dict[str, Any]) -> dict[str, Any]:
        logistic = isinstance(self.model, AveragedModel) and self.model.models[0].inner == "logistic"
        if "loss" not in figures:
            return {}
        return {"loss_name": "logistic" if logistic else "squared", "loss_when": "on the training data"}

    def _first_features(self, rows: Rows) -> Rows:
        """What the solver works on: the columns, or the features of the first stage."""
        if not isinstance(self.model, AveragedModel):
            return rows
        model = self.model.models[0]
        reduce = model.generator.reduction(model.view())
        features = model.features(model.stages[0])
        return GeneratedRows(rows, features if reduce is None else (lambda X: features(reduce(X))), 0, 0)

    def _n_weights(self) -> int:
        return sum(int(np.prod(array.shape)) for name, array in self.model.state().arrays.items() if name[0] in "Wr")

    # ---- predicting ----
    def predict(self, chunk: Chunk) -> NDArray[np.float64]:
        if not len(chunk):
            return np.empty((0,) if self.task_kind != "multiclass" else (0, self.n_classes))
        U = to_numpy(self.model.raw(self.columns.block(chunk, self.model.place))).astype(np.float64)
        if self.task_kind == "regression":
            return U[:, 0]
        return U if self.task_kind == "multiclass" else U[:, 1] - U[:, 0]

    def finish(self, raw: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
        if self.task_kind == "regression":
            return np.asarray(raw * self.target.scale + self.target.shift)
        if self.task_kind == "multiclass":
            return np.asarray(self.model.means(raw))
        # Two logits, or two shares, are told by their difference.
        both = np.stack([-raw / 2, raw / 2], axis=1) + (0.5 if not self._is_logistic() else 0.0)
        return np.asarray(self.model.means(both)[:, 1])

    def _is_logistic(self) -> bool:
        if isinstance(self.model, AveragedModel):
            return self.model.models[0].inner == "logistic"
        return isinstance(self.model, LinearModel) and getattr(self.model.link, "name", "") != "identity"

    # ---- looking inside ----
    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        facts = {"algorithm": self._words()}
        details: dict[str, Any] = {}
        if isinstance(self.model, AveragedModel) and self.model.reports:
            curve = [report.held_out if report.held_out is not None else report.loss for report in self.model.reports]
            what = "held-out" if self.model.reports[0].held_out is not None else "training"
            facts["stages"] = f"{what} loss " + ", ".join(f"{value:.4g}" for value in curve)
            details["stages"] = [vars(report) for report in self.model.reports]
        if self.spectrum is not None:
            s = self.spectrum
            facts["condition"] = f"singular value 2 over {s.rank}: {s.condition:.3g}; {s.advice()}"
            details["spectrum"] = s.header()
        if not isinstance(self.model, LinearModel):
            details["no_top"] = "features are generated and have no names"
        return {"facts": facts, "top": self._top(task, top), **details}

    def _words(self) -> str:
        if isinstance(self.model, LinearModel):
            return f"generalized least squares with the link {getattr(self.model.link, 'name', 'of your own')}"
        if not isinstance(self.model, AveragedModel):
            return f"calibrated least squares, {len(self.model.rounds)} rounds"
        first = self.model.models[0]
        counts = ", ".join(str(len(model.stages)) for model in self.model.models)
        many = f", mean of {len(self.model.models)} models" if len(self.model.models) > 1 else ""
        size = first.stages[0].size if first.stages else 0
        return f"stagewise, {first.inner} steps on {first.generator.describe()}, {counts} stages of {size}{many}"

    def _top(self, task: Task, top: int) -> list[dict[str, Any]]:
        """The strongest columns of a linear model; features of the others have no names."""
        if not isinstance(self.model, LinearModel):
            return []
        W = to_numpy(self.model.W)[: self.model.d]
        W = W if task.kind != "binary" else W[:, 1:] - W[:, :1]
        order = np.argsort(-np.abs(W).max(axis=1), kind="stable")[:top]
        found = []
        for j in order.tolist():
            best = int(np.abs(W[j]).argmax())
            name = self.columns.names[j] if self.columns.names else ""
            entry: dict[str, Any] = {"feature": name or f"x{j}", "weight": float(W[j, best]), "scale": 1.0}
            if task.kind == "multiclass":
                entry |= {"class": task.classes[best], "weights": W[j].tolist()}
            found.append(entry)
        return found

    # ---- files ----
    def state(self) -> State:
        inner = self.model.state()
        header = {
            "model": inner.header,
            "task": self.task_kind,
            "n_classes": self.n_classes,
            "d": self.columns.d,
            "names": self.columns.names,
            "target": [self.target.shift, self.target.scale],
            "spectrum": None if self.spectrum is None else self.spectrum.header(),
        }
        arrays = {f"model.{name}": np.ascontiguousarray(value) for name, value in inner.arrays.items()}
        if self.columns.ids is not None:
            arrays |= {"ids": self.columns.ids, "places": self.columns.places}
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State) -> LeastSquaresLearner:
        h = state.header
        learner = cls(None, h["task"], h["n_classes"])
        inner = {name[len("model.") :]: a for name, a in state.arrays.items() if name.startswith("model.")}
        learner.model = MODELS[cls.family].from_state(State(h["model"], inner))
        learner.columns = Columns(state.arrays.get("ids"), h["d"], h["names"], state.arrays.get("places"))
        learner.target = Scale(*h["target"])
        learner.spectrum = None if h["spectrum"] is None else Spectrum(**h["spectrum"])
        return learner


class GLSLearner(LeastSquaresLearner):
    """Generalized least squares."""

    family = "gls"


class CalibratedLearner(LeastSquaresLearner):
    """Calibrated least squares."""

    family = "cls"


class StagewiseLearner(LeastSquaresLearner):
    """Stagewise regression."""

    family = "stagewise"
