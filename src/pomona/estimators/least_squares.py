"""What the estimators of least squares share: inputs of any array library, fitting, predicting, files."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar

import array_api_compat as compat
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pomona import _native
from pomona.encode import TableEncoder
from pomona.encode.columns import Column, Part
from pomona.encode.table import MAX_FIELDS
from pomona.estimators.shared import PomonaEstimator
from pomona.learner import Step
from pomona.leastsquares.arrays import Array, Place, is_foreign, to_numpy
from pomona.leastsquares.learner import CalibratedLearner, GLSLearner, LeastSquaresLearner, Scale, StagewiseLearner
from pomona.leastsquares.models import Fitted
from pomona.leastsquares.rows import ArrayRows, has_bad_numbers
from pomona.leastsquares.source import Columns
from pomona.leastsquares.targets import Targets
from pomona.leastsquares.train import Job
from pomona.model import Model
from pomona.task import Task

#: With precision="auto", problems of up to so many numbers are computed in float64.
SMALL = 1 << 22
LEARNERS = {"gls": GLSLearner, "cls": CalibratedLearner, "stagewise": StagewiseLearner}


class LeastSquaresEstimator(PomonaEstimator):
    """Base of the estimators of least squares; not for direct use."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="left"), None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "device": [str, None],
        "memory": [Interval(Integral, 1 << 20, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- inputs ----
    def _checked(self, X: Any, *, reset: bool) -> Array:
        """X as an array of its own library, or as CSR."""
        if not is_foreign(X):
            return validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=reset)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: give one row an example.")
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif int(X.shape[1]) != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
            )
        if X.shape[0] == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        place = Place.of(X)
        if "float" in str(X.dtype) and has_bad_numbers(X, place):
            raise ValueError("Input X contains NaN or infinity: fill or remove those rows.")
        return X

    def _place_for(self, X: Array, width: int) -> Place:
        precision = self.precision
        if precision == "auto":
            small = int(X.shape[0]) * width <= SMALL and "float32" not in str(X.dtype)
            precision = "float64" if small else "float32"
        return Place.of(X, precision, self.device)

    def _checked_weights(self, sample_weight: Any, X: Array) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        if is_foreign(X):
            weights = to_numpy(sample_weight).astype(np.float64)
            if weights.shape != (int(X.shape[0]),):
                raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(int(X.shape[0]),)}!")
        else:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`.")
        if not (weights > 0).any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return np.asarray(weights)

    # ---- fitting ----
    def _options(self) -> Any:
        """Options of the algorithm."""
        raise NotImplementedError

    def _width(self, X: Array) -> int:
        """Features that are computed with at a time, for the choice of precision."""
        return int(X.shape[1])

    def _train(
        self, X: Array, values: Array, kind: str, weights: NDArray[np.float64] | None, n_classes: int | None, **how: Any
    ) -> None:
        """Learn checked rows; codes of classes come with their number."""
        place = self._place_for(X, self._width(X))
        targets = Targets(values, place, n_classes)
        options = self._options()
        job = Job(ArrayRows(X, place), targets, kind, weights, int(self.memory), self._report)
        self.fitted_, self.figures_ = options.train(job, **how)
        self._n_examples = int(X.shape[0])
        self.ridge_ = float(self.figures_["ridge"])

    def _report(self, step: Step) -> None:
        if self.verbose:
            figures = [("loss", step.loss), ("held out", step.held_out)]
            print(", ".join([step.words, *[f"{name} {value:.6g}" for name, value in figures if value is not None]]))

    # ---- predicting ----
    def _raw(self, X: Any) -> tuple[Array, Array]:
        """The checked X, and raw predictions where the model computes."""
        check_is_fitted(self, "fitted_")
        X = self._checked(X, reset=False)
        model: Fitted = self.fitted_
        parts = [model.raw(block) for _, block in ArrayRows(X, model.place).blocks()]
        return X, model.place.xp.concat(parts, axis=0)

    def _staged_raw(self, X: Any) -> Any:
        check_is_fitted(self, "fitted_")
        X = self._checked(X, reset=False)
        model: Fitted = self.fitted_
        runs = [model.staged(block) for _, block in ArrayRows(X, model.place).blocks()]
        for parts in zip(*runs, strict=True):
            yield X, model.place.xp.concat(list(parts), axis=0)

    @staticmethod
    def _like(X: Array, values: Array) -> Array:
        """Values in the library and on the device of X."""
        if not is_foreign(X):
            return to_numpy(values)
        place = Place.of(X)
        if compat.array_namespace(values) is place.xp:
            return compat.to_device(values, place.device)
        return place.xp.asarray(to_numpy(values), device=place.device)

    # ---- files ----
    def to_model(self) -> Model[LeastSquaresLearner]:
        """What was learnt as a :class:`pomona.Model`, which predicts tables with columns of the same names."""
        check_is_fitted(self, "fitted_")
        names = list(self._names())
        task, target = self._task()
        learner = LEARNERS[self.fitted_.algorithm](None, task.kind, len(task.classes))
        learner.model, learner.target = self.fitted_, target
        encoder = None
        learner.columns = Columns(None, len(names), [])
        if len(names) <= MAX_FIELDS:
            parts = [Part.make(_native.RAW, name, (0.0, 1.0)) for name in names]
            encoder = TableEncoder([Column(n, "number", "double", [p]) for n, p in zip(names, parts, strict=True)])
            learner.columns = Columns(np.concatenate([part.ids for part in parts]), len(names), names)
        summary = {key: value for key, value in self.figures_.items() if key != "errors"}
        summary = {"data": "X", "examples": self._n_examples, "passes": 1, **summary}
        return Model(task, learner, encoder, summary=summary)

    def _task(self) -> tuple[Task, Scale]:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which ``pomona predict`` and :func:`pomona.load` read."""
        self.to_model().save(path)
