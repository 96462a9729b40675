"""Least squares as scikit-learn classifiers: generalized, calibrated and stagewise."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import Tags, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from pomona.estimators.least_squares import LeastSquaresEstimator
from pomona.leastsquares.arrays import Array, is_foreign, to_numpy
from pomona.leastsquares.learner import Scale
from pomona.leastsquares.links import LINKS
from pomona.leastsquares.stagewise import INNER
from pomona.leastsquares.train import CalibratedOptions, GLSOptions, StagewiseTraining
from pomona.task import Task


class LeastSquaresClassifier(ClassifierMixin, LeastSquaresEstimator):
    """What the three classifiers share; not for direct use."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit from the beginning.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Numbers. Arrays of torch or CuPy are computed with where they lie.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes of any type, or the zeros and ones of a multi-label indicator.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, a weight of 0 the same as its absence.

        Returns
        -------
        self
        """
        X = self._checked(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = to_numpy(y) if is_foreign(y) else y
        self._multilabel = str(type_of_target(y)).startswith("multilabel")
        weights = self._checked_weights(sample_weight, X)
        if self._multilabel:
            labels = _check_y(y.toarray() if hasattr(y, "toarray") else y, multi_output=True)
            check_consistent_length(np.empty((int(X.shape[0]), 0)), labels)
            self.classes_ = np.arange(labels.shape[1])
            self._fit_targets(X, labels.astype(np.float64), "labels", weights, None)
            return self
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        check_consistent_length(np.empty((int(X.shape[0]), 0)), y)
        if weights is not None and (weights == 0).any():
            present = np.unique(y[weights > 0])
        else:
            present = np.unique(y)
        self.classes_ = present
        codes = np.minimum(np.searchsorted(present, y), len(present) - 1)
        self._fit_targets(X, codes, "classes", weights, len(present))
        return self

    def _fit_targets(
        self, X: Array, values: Array, kind: str, weights: NDArray[np.float64] | None, n_classes: int | None
    ) -> None:
        self._train(X, values, kind, weights, n_classes)

    def _task(self) -> tuple[Task, Scale]:
        if self._multilabel:
            raise ValueError("a model file holds one target: save a multi-label model with pickle or joblib instead")
        kind: Any = "binary" if len(self.classes_) == 2 else "multiclass"
        return Task(kind, self.classes_.tolist()), Scale()

    # ---- predicting ----
    def decision_function(self, X: Any) -> Array:
        """Scores: logits of a logistic model, shares otherwise.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes: above 0 is the second one
        """
        X, U = self._raw(X)
        if not self._multilabel and len(self.classes_) == 2:
            U = U[:, 1] - U[:, 0]
        elif not self._multilabel and len(self.classes_) == 1:
            U = U[:, 0]
        return self._like(X, U)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of all classes, or of all labels.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        X, U = self._raw(X)
        return self._like(X, self._probabilities(U))

    def _probabilities(self, U: Array) -> Array:
        means = self.fitted_.means(U)
        if not self._multilabel:
            return means
        # scikit-learn wants probabilities of labels strictly between 0 and 1.
        xp = self.fitted_.place.xp
        least = float(xp.finfo(means.dtype).eps)
        return xp.clip(means, min=least, max=1 - least)

    def predict(self, X: Any) -> Array:
        """The most probable class of each row, or an indicator of the labels with a probability above one half."""
        X, U = self._raw(X)
        return self._decide(X, U)

    def _decide(self, X: Array, U: Array) -> Array:
        xp = self.fitted_.place.xp
        if self._multilabel:
            found: Array = to_numpy(xp.astype(self.fitted_.means(U) > 0.5, xp.int64))
        else:
            found = self.classes_[to_numpy(xp.argmax(U, axis=1))]
        if is_foreign(X) and found.dtype.kind in "iufb":
            return self._like(X, found)
        return found


class StagedClassifier(LeastSquaresClassifier):
    """A classifier whose predictions are made in stages, or rounds, of which any number may be looked at."""

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions of the first stage, of the first two, and so on."""
        for checked, U in self._staged_raw(X):
            yield self._decide(checked, U)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Probabilities of the first stage, of the first two, and so on."""
        check_is_fitted(self, "fitted_")
        for checked, U in self._staged_raw(X):
            yield self._like(checked, self._probabilities(U))


class GLSClassifier(LeastSquaresClassifier):
    """Generalized least squares: logistic regression by steps of least squares, with nothing to tune.

    Minimises the mean of Φ(Wx) - y·Wx plus ``ridge``/2 · |W|², where ∇Φ is the link (softmax: logistic regression), by
    steps W ← W - (LΣ + ridge)⁻¹ ∇ (Algorithm 1 and eq. 14 of Agarwal et al., 2014). One matrix of second moments Σ
    and its Cholesky factor serve all steps, so that ill-conditioned columns cost nothing extra.

    Parameters
    ----------
    link : {"softmax", "logistic", "identity"} or object, optional
        By default softmax, or logistic for multi-label y. The identity is plain least squares, in one step. An object
        of your own has ``lipschitz``, ``__call__(U)`` and ``potential(U)``.
    ridge : float or None, default=None
        None: a little for each column, in its own unit. With ``ridge=1 / (C * n_samples)`` the optimum is that of
        scikit-learn's ``LogisticRegression(C=C)``.
    tol : float, default=1e-7
        Stops when the next step is sure to gain no more than this in mean loss.
    max_iter : int, default=200
    accelerate : bool, default=True
        Nesterov's momentum in the metric of Σ (section 4).
    fit_intercept : bool, default=True
    warm_start : bool, default=False
        Whether ``fit`` goes on from the weights of the last fit.
    precision : {"auto", "float32", "float64"}, default="auto"
        Of products; sums are float64. Auto: float64 for small problems, float32 for large ones and for float32 X.
    device : str or None, default=None
        A torch device such as ``"cuda"`` to compute on; None: where X lies.
    memory : int, default=2**30
        Bytes for what is kept beside X.
    verbose : int, default=0
        Above 0, a line is printed after each step.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    classes_ : ndarray
    n_iter_ : int
    ridge_ : float
        Mean penalty that was used; larger than ``ridge`` where Σ was not positive definite, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import GLSClassifier
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = GLSClassifier(ridge=0.01).fit(X, ["a", "a", "b", "b"])
    >>> print(model.predict([[0.2], [2.8]]), f"{model.predict_proba([[1.5]])[0, 0]:.2f}")
    ['a' 'b'] 0.50
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresEstimator._parameter_constraints,
        "link": [StrOptions(set(LINKS)), callable, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "accelerate": ["boolean"],
        "fit_intercept": ["boolean"],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        link: Any = None,
        ridge: float | None = None,
        tol: float = 1e-7,
        max_iter: int = 200,
        accelerate: bool = True,
        fit_intercept: bool = True,
        warm_start: bool = False,
        precision: str = "auto",
        device: str | None = None,
        memory: int = 1 << 30,
        verbose: Any = 0,
    ) -> None:
        self.link = link
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.precision = precision
        self.device = device
        self.memory = memory
        self.verbose = verbose

    def _options(self) -> GLSOptions:
        return GLSOptions(
            link=self.link,
            ridge=self.ridge,
            tolerance=float(self.tol),
            max_steps=int(self.max_iter),
            accelerate=bool(self.accelerate),
            fit_intercept=bool(self.fit_intercept),
        )

    def _fit_targets(
        self, X: Array, values: Array, kind: str, weights: NDArray[np.float64] | None, n_classes: int | None
    ) -> None:
        start = None
        if self.warm_start and hasattr(self, "fitted_"):
            # Weights of other shapes belong to other data.
            shape = (self.n_features_in_ + int(self.fit_intercept), len(self.classes_))
            start = self.fitted_.W if tuple(self.fitted_.W.shape) == shape else None
        self._train(X, values, kind, weights, n_classes, start=start)
        W = to_numpy(self.fitted_.W)
        d = self.n_features_in_
        self.coef_ = np.ascontiguousarray(W[:d].T)
        self.intercept_ = W[d] if self.fit_intercept else np.zeros(W.shape[1])
        self.n_iter_ = self.figures_["steps"]


class CalibratedLSClassifier(StagedClassifier):
    """Calibrated least squares: learns the weights and the link in turn (Algorithm 2 of Agarwal et al., 2014).

    Each round fits the residual y - ŷ by least squares, then fits y by functions G of the predictions, and projects
    the result onto probabilities. No round increases the squared error of the training data; many rounds can overfit,
    which :meth:`staged_predict` shows on other data. Predictions replay the rounds.

    Parameters
    ----------
    calibration : sequence of {"y", "y2", "y3"} or callables, default=("y", "y2", "y3")
        The functions G, of arrays of predictions.
    ridge : float or None, default=None
        Penalty of each residual fit; None: a little for each column, in its own unit.
    tol : float, default=1e-4
        Stops when a round lowers the squared error by less than this share.
    max_iter : int, default=100
        Rounds.
    precision, device, memory, verbose : as in :class:`GLSClassifier`.

    Attributes
    ----------
    classes_ : ndarray
    n_iter_ : int
        Rounds made.
    errors_ : ndarray
        Mean squared error before the first round, then after each residual fit and each calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import CalibratedLSClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> model = CalibratedLSClassifier().fit(X, X[:, 0] > 0.5)
    >>> print(f"{model.score(X, X[:, 0] > 0.5):.2f}")
    1.00
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresEstimator._parameter_constraints,
        "calibration": ["array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        calibration: Any = ("y", "y2", "y3"),
        ridge: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        precision: str = "auto",
        device: str | None = None,
        memory: int = 1 << 30,
        verbose: Any = 0,
    ) -> None:
        self.calibration = calibration
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.device = device
        self.memory = memory
        self.verbose = verbose

    def _options(self) -> CalibratedOptions:
        return CalibratedOptions(
            calibration=tuple(self.calibration),
            ridge=self.ridge,
            tolerance=float(self.tol),
            max_rounds=int(self.max_iter),
        )

    def _fit_targets(self, *args: Any) -> None:
        super()._fit_targets(*args)
        self.n_iter_ = self.figures_["rounds"]
        self.errors_ = np.array(self.figures_["errors"])


class StagewiseClassifier(StagedClassifier):
    """Stagewise regression: least squares on one block of generated features after the other.

    Each stage generates ``block_size`` features, fits what the earlier stages left, and adds its predictions
    (Algorithm 3 of Agarwal et al., 2014). The model stores seeds and weights; features are generated again to predict.

    Parameters
    ----------
    generator : str, object or callable, default="fourier"
        ``"fourier"`` (random Fourier features, bandwidth by the median distance), ``"logits"`` (random neurons),
        ``"polynomials"`` (powers of random projections), ``"convolution"`` (images), ``"sample"`` (columns of X in
        random order), ``"gradient"`` (columns of X by the size of the gradient, for text); an object with a method
        ``generate(stage, size, view)``; or a function ``f(stage, size, rng)`` that returns a function of rows.
    generator_options : dict or None, default=None
        Options of a generator that is given by name: ``{"pca": 50, "emphasis": 0.7, "scale": 1.0}`` (and
        ``"standardize": True``) for random projections, ``{"shape": (32, 32, 3), "masks": "kmeans"}`` for convolution.
    inner : {"linear", "calibrated", "logistic"}, default="linear"
        What a stage does: least squares on the residual; the same with the earlier predictions as features; or steps
        of logistic regression from the earlier predictions.
    block_size : int or None, default=None
        Features of a stage; None: 1024, or less where rows, columns or memory are few.
    n_stages : int or None, default=None
        None: 10 of random features, one pass over the columns of ``"sample"``, two of ``"gradient"``.
    ridge : float or None, default=None
        Penalty ridge/2 · |W|² of each stage, beside the mean loss; None: chosen from the features and their number.
    inner_steps : int, default=10
        Steps of a logistic stage.
    calibration : sequence, default=("y",)
        Functions of the earlier predictions that a calibrated stage takes as features; see
        :class:`CalibratedLSClassifier`.
    holdout : float, default=0
        Share of the rows held out to stop early.
    patience : int, default=3
        Stages without gain on the held-out rows after which to stop.
    n_models : int, default=1
        Models over disjoint features whose predictions are averaged (section 3.2).
    precision, device, memory : as in :class:`GLSClassifier`; features that fit ``memory`` are kept between passes.
    random_state : int, RandomState or None, default=0
        Seed of the features.
    verbose : int, default=0
        Above 0, a line is printed after each stage.

    Attributes
    ----------
    classes_ : ndarray
    stages_ : list of StageReport
        Loss, error and time of each stage, also held out.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import StagewiseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> y = (X**2).sum(axis=1) > 1.4                       # a circle
    >>> model = StagewiseClassifier().fit(X[:500], y[:500])
    >>> print(f"{model.score(X[500:], y[500:]):.2f}")
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquaresEstimator._parameter_constraints,
        "generator": [str, callable, HasMethods("generate")],
        "generator_options": [dict, None],
        "inner": [StrOptions(set(INNER))],
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_stages": [Interval(Integral, 1, None, closed="left"), None],
        "inner_steps": [Interval(Integral, 1, None, closed="left")],
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
        inner_steps: int = 10,
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
        self.inner_steps = inner_steps
        self.calibration = calibration
        self.holdout = holdout
        self.patience = patience
        self.n_models = n_models
        self.precision = precision
        self.device = device
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def _options(self) -> StagewiseTraining:
        return stagewise_options(self, self.inner, int(self.inner_steps))

    def _width(self, X: Array) -> int:
        return stagewise_width(self, X)

    def _fit_targets(self, *args: Any) -> None:
        super()._fit_targets(*args)
        self.stages_ = self.fitted_.reports
        self.n_iter_ = self.figures_["stages"]


def stagewise_options(estimator: Any, inner: str, inner_steps: int) -> StagewiseTraining:
    """The options of a stagewise estimator."""

    def whole(value: Any) -> int | None:
        return None if value is None else int(value)

    return StagewiseTraining(
        generator=estimator.generator,
        generator_options=estimator.generator_options,
        inner=inner,
        block_size=whole(estimator.block_size),
        n_stages=whole(estimator.n_stages),
        ridge=estimator.ridge,
        inner_steps=inner_steps,
        calibration=tuple(estimator.calibration),
        memory=int(estimator.memory),
        holdout=float(estimator.holdout),
        patience=int(estimator.patience),
        n_models=int(estimator.n_models),
        seed=estimator._seed(),
    )


def stagewise_width(estimator: Any, X: Array) -> int:
    """Features of a stage, about."""
    options = estimator._options()
    return int(options.size(int(X.shape[0]), int(X.shape[1]), estimator.generator in ("sample", "gradient")))
