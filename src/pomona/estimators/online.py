"""The online learner as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, Real, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets

from pomona.estimators import inputs
from pomona.estimators.base import NO_OPTIONS, OnlineEstimator
from pomona.model import Model
from pomona.task import Task


def _has_probabilities(estimator: OnlineClassifier) -> bool:
    if estimator.loss == "hinge":
        raise AttributeError("the loss 'hinge' gives no probabilities: use loss='logistic', or decision_function")
    return True


class OnlineClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """CLASSIFIER DOC"""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineEstimator._parameter_constraints,
        "loss": [StrOptions({"logistic", "hinge", "squared"})],
        "multiclass": [StrOptions({"softmax", "ovr"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _task = "classification"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        update: str = "adaptive",
        learning_rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        interactions: Any = "linear",
        squares: bool = True,
        numeric: str = "auto",
        bins: int = 16,
        categorical: Any = None,
        text: Any = None,
        ngrams: int = 1,
        bits: int | None = None,
        memory: int = 1 << 30,
        passes: Any = "auto",
        shuffle: bool = True,
        holdout: float = 0.0,
        patience: int = 3,
        multiclass: str = "softmax",
        class_weight: Any = None,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.loss = loss
        self.update = update
        self.learning_rate = learning_rate
        self.l1 = l1
        self.l2 = l2
        self.interactions = interactions
        self.squares = squares
        self.numeric = numeric
        self.bins = bins
        self.categorical = categorical
        self.text = text
        self.ngrams = ngrams
        self.bits = bits
        self.memory = memory
        self.passes = passes
        self.shuffle = shuffle
        self.holdout = holdout
        self.patience = patience
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _own_options(self) -> dict[str, Any]:
        return {"multiclass": self.multiclass}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineClassifier:
        """Fit from the beginning.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            NumPy arrays and lists, SciPy sparse matrices, pandas, polars and pyarrow frames. Columns of frames may hold
            numbers, truth values, strings, categories, dates or text. Missing values are allowed, but not in
            sparse matrices.
        y : array-like of shape (n_samples,)
            Class labels: numbers, strings or truth values.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, a weight of 0 the same as its absence.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, read: Mapping[str, Any] = NO_OPTIONS
    ) -> OnlineClassifier:
        X, y = inputs.checked_pair(self, X, y, reset=True, numeric=False)
        check_classification_targets(y)
        X, y, weights = self._weighted(X, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes; got 1 class, {self.classes_.tolist()[0]!r}")
        weights = self._class_weighted(codes, weights)
        self._learn(X, self._labels(codes), weights, self._new_task(), first=True, read=read)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Go on learning, one pass over these rows.

        Bins and types of columns are learnt in the first call, so its rows should be some hundred and typical.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`.
        classes : array-like of shape (n_classes,), optional
            All labels that may come; needed in the first call.

        Returns
        -------
        self
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once, which partial_fit does not see: give a dict"
            )
        first = not hasattr(self, "model_")
        X, y = inputs.checked_pair(self, X, y, reset=first, numeric=False)
        check_classification_targets(y)
        _check_partial_fit_first_call(self, classes)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes; got 1 class, {self.classes_.tolist()[0]!r}")
        X, y, weights = self._weighted(X, y, sample_weight)
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[codes] != y
        if unknown.any():
            raise ValueError(
                f"y has the class {y[unknown].tolist()[0]!r}, which is not among the classes of the first call to"
                f" partial_fit, {self.classes_.tolist()}: pass all classes there"
            )
        weights = self._class_weighted(codes, weights)
        self._learn(X, self._labels(codes), weights, self._new_task(), first=first, stream=True)
        return self

    def _new_task(self) -> Task:
        return Task("binary" if len(self.classes_) == 2 else "multiclass", self.classes_.tolist())

    def _labels(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers for the learner, as ``Task.encode`` gives them."""
        return 2.0 * codes - 1.0 if len(self.classes_) == 2 else codes.astype(np.float64)

    def _class_weighted(
        self, codes: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            sums = np.bincount(codes, weights, len(self.classes_))
            factors = sums.sum() / (len(sums) * sums)
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        return np.asarray(factors[codes] if weights is None else weights * factors[codes])

    def _adopt(self, model: Model, names: Any) -> None:
        super()._adopt(model, names)
        self.classes_ = np.array(model.task.classes)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: one a row, above 0 for ``classes_[1]``, or one a class.

        Parameters
        ----------
        X : as in :meth:`fit`; or a path, for models fitted by :meth:`fit_source`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._raw(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raw = self._raw(X)
        codes = (raw > 0).astype(np.int64) if raw.ndim == 1 else raw.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        raw = self._raw(X)
        p: NDArray[np.float64] = self.model_.finish(raw)
        return p if p.ndim == 2 else np.column_stack([1 - p, p])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class OnlineRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """REGRESSOR DOC"""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineEstimator._parameter_constraints,
        "loss": [StrOptions({"squared", "quantile", "poisson"})],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
    }
    _task = "regression"

    def __init__(
        self,
        *,
        loss: str = "squared",
        quantile: float = 0.5,
        update: str = "adaptive",
        learning_rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        interactions: Any = "linear",
        squares: bool = True,
        numeric: str = "auto",
        bins: int = 16,
        categorical: Any = None,
        text: Any = None,
        ngrams: int = 1,
        bits: int | None = None,
        memory: int = 1 << 30,
        passes: Any = "auto",
        shuffle: bool = True,
        holdout: float = 0.0,
        patience: int = 3,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.update = update
        self.learning_rate = learning_rate
        self.l1 = l1
        self.l2 = l2
        self.interactions = interactions
        self.squares = squares
        self.numeric = numeric
        self.bins = bins
        self.categorical = categorical
        self.text = text
        self.ngrams = ngrams
        self.bits = bits
        self.memory = memory
        self.passes = passes
        self.shuffle = shuffle
        self.holdout = holdout
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose

    def _own_options(self) -> dict[str, Any]:
        return {"quantile": float(self.quantile)}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Fit from the beginning.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            As in :meth:`OnlineClassifier.fit`.
        y : array-like of shape (n_samples,)
            Numbers.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, a weight of 0 the same as its absence.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, read: Mapping[str, Any] = NO_OPTIONS
    ) -> OnlineRegressor:
        return self._fit_numbers(X, y, sample_weight, first=True, read=read)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Go on learning, one pass over these rows.

        Bins and types of columns, and the scale of y, are learnt in the first call, so its rows should be some
        hundred and typical.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`.

        Returns
        -------
        self
        """
        return self._fit_numbers(X, y, sample_weight, first=not hasattr(self, "model_"), stream=True)

    def _fit_numbers(
        self, X: Any, y: Any, sample_weight: Any, first: bool, **how: Any
    ) -> OnlineRegressor:
        X, y = inputs.checked_pair(self, X, y, reset=first, numeric=True)
        y = y.astype(np.float64)
        if self.loss == "poisson" and (y < 0).any():
            raise ValueError(f"the loss 'poisson' needs y >= 0; got {y.min():g}")
        X, y, weights = self._weighted(X, y, sample_weight)
        self._learn(X, y, weights, Task("regression", []), first=first, **how)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted values.

        Parameters
        ----------
        X : as in :meth:`fit`; or a path, for models fitted by :meth:`fit_source`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raw = self._raw(X)
        return np.asarray(self.model_.finish(raw))
