"""Stagewise least squares as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_y, check_consistent_length

from pomona.estimators.least_squares import LeastSquaresEstimator
from pomona.estimators.least_squares_classifiers import stagewise_options, stagewise_width
from pomona.leastsquares.arrays import Array, is_foreign, to_numpy
from pomona.leastsquares.learner import Scale
from pomona.leastsquares.train import StagewiseTraining
from pomona.task import Task


class StagewiseRegressor(RegressorMixin, LeastSquaresEstimator):
    """Stagewise regression: least squares on one block of generated features after the other.

    As :class:`StagewiseClassifier`, for one target or several. Targets are centred and scaled inside.

    Parameters
    ----------
    generator, generator_options, block_size, n_stages, ridge, calibration, holdout, patience, n_models, precision, \
device, memory, random_state, verbose : as in :class:`StagewiseClassifier`.
    inner : {"linear", "calibrated"}, default="linear"

    Attributes
    ----------
    stages_ : list of StageReport
        Loss and time of each stage, also held out, in units of the scaled target.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import StagewiseRegressor
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = StagewiseRegressor().fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresEstimator._parameter_constraints,
        "generator": [str, callable, HasMethods("generate")],
        "generator_options": [dict, None],
        "inner": [StrOptions({"linear", "calibrated"})],
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_stages": [Interval(Integral, 1, None, closed="left"), None],
        "calibration": ["array-like"],
        "holdout": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "n_models": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        generator: Any = "fourier",
        generator_options: Any = None,
        inner: str = "linear",
        block_size: int | None = None,
        n_stages: int | None = None,
        ridge: float | None = None,
        calibration: Any = ("y",),
        holdout: float = 0.0,
        patience: int = 3,
        n_models: int = 1,
        precision: str = "auto",
        device: str | None = None,
        memory: int = 1 << 30,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.generator = generator
        self.generator_options = generator_options
        self.inner = inner
        self.block_size = block_size
        self.n_stages = n_stages
        self.ridge = ridge
        self.calibration = calibration
        self.holdout = holdout
        self.patience = patience
        self.n_models = n_models
        self.precision = precision
        self.device = device
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _options(self) -> StagewiseTraining:
        return stagewise_options(self, self.inner, 1)

    def _width(self, X: Array) -> int:
        return stagewise_width(self, X)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StagewiseRegressor:
        """Fit from the beginning.

        Parameters
        ----------
        X, sample_weight : as in :meth:`StagewiseClassifier.fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        X = self._checked(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = to_numpy(y) if is_foreign(y) else y
        y = _check_y(y, multi_output=True, y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(np.empty((int(X.shape[0]), 0)), y)
        weights = self._checked_weights(sample_weight, X)
        self._one_target = y.ndim == 1
        columns = y.reshape(len(y), -1)
        self._targets = [Scale.fit(column, weights) for column in columns.T]
        shift, scale = self._shift_and_scale()
        self._train(X, (columns - shift) / scale, "values", weights, None)
        self.stages_ = self.fitted_.reports
        self.n_iter_ = self.figures_["stages"]
        return self

    def _shift_and_scale(self) -> tuple[Array, Array]:
        return np.array([t.shift for t in self._targets]), np.array([t.scale for t in self._targets])

    def _task(self) -> tuple[Task, Scale]:
        if len(self._targets) > 1:
            raise ValueError("a model file holds one target: save a model of several with pickle or joblib instead")
        return Task("regression", []), self._targets[0]

    def predict(self, X: Any) -> Array:
        """Predicted values, in the shape of y."""
        X, U = self._raw(X)
        return self._values(X, U)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions of the first stage, of the first two, and so on."""
        for checked, U in self._staged_raw(X):
            yield self._values(checked, U)

    def _values(self, X: Array, U: Array) -> Array:
        shift, scale = self._shift_and_scale()
        values = to_numpy(U).astype(np.float64) * scale + shift
        return self._like(X, values[:, 0] if self._one_target else values)
