"""The online learner as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
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


class OnlineClassifier(ClassifierMixin, OnlineEstimator):
    """Online classifier: one pass, or a few, over rows of any kind, with interactions generated on the fly.

    Minimises the sum over rows of ``weight * loss(label, w . f(x)) + l1 |w|_1 + l2/2 |w|^2`` by steps of stochastic
    gradient, where ``f(x)`` are the encoded columns and, on demand, their products.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared"}, default="logistic"
    update : {"adaptive", "adagrad", "sgd", "ftrl"}, default="adaptive"
        Adaptive means: a step size for each weight, features scaled by their largest value, and steps that are right
        for any sample weight.
    learning_rate : float, default=0.5
    l1, l2 : float, default=0
        Strength of the penalty on each weight.
    interactions : str or list of str, default="linear"
        ``"linear"``, ``"quadratic"``, ``"cubic"`` (products of two or three features), or products of chosen columns:
        ``["age*job", "age*job*town"]``. Products are generated while learning, never stored.
    squares : bool, default=True
        Whether a feature may be multiplied with itself.
    numeric : str, default="auto"
        What numeric columns become: ``"hat"`` (piecewise-linear functions on knots that follow the mass), ``"onehot"``
        (bins), ``"standard"``, ``"raw"``, or some of them joined by ``+``. Sparse matrices are taken as they are.
    bins : int or None, default=None
        Knots or bins of a numeric column, at most; None: 16, or 8 with pairs and 6 with triples of features.
    categorical : list of str or int, optional
        Columns (names or numbers) that hold categories though their type is numeric.
    text : list of str or int, optional
        Columns that hold text: each word is a feature. Columns of sentences are recognised.
    ngrams : int, default=1
        Up to so many words of a text make a feature.
    bits : int, optional
        At most 2**bits weights for single features, for pairs and for triples each; beyond that they are shared by
        hashing. By default every feature has a weight of its own while that fits ``memory``.
    memory : int, default=2**30
        Bytes the weights may take, and again the encoded rows that are kept: beyond that, rows are encoded as they are
        learnt and kept in a temporary file between passes.
    passes : int or "auto", default="auto"
        How often to go through the data. ``"auto"`` makes two million examples of it, but at most 20 passes, or 5 with
        products of features. On twelve public tables of 592 to 34,189 rows the loss after 20 linear passes was
        within 8 % of the best of 1, 2, 5, 10, 20 and 50; with products the best was between 2 and 5 passes on
        six of nine tables, and later ones overfitted.
    shuffle : bool, default=True
        Whether the order of the rows has no meaning: each pass takes them in an order of its own, and equal rows count
        together (while encoded rows fit ``memory``). If not, rows are learnt as they come, as a stream.
    holdout : float, default=0
        Share of the rows held out to stop early.
    patience : int, default=3
        Passes without gain on the held-out rows after which to stop.
    multiclass : {"softmax", "ovr"}, default="softmax"
        One model of all classes, or one against the rest for each.
    class_weight : dict or "balanced", optional
        Factor for the weights of the rows of each class; ``"balanced"`` makes the classes weigh the same.
    random_state : int, RandomState or None, default=0
        Seed of the shuffling. The same seed and data give the same model, bit for bit.
    verbose : int, default=0
        Above 0, a line is printed after each pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : pomona.Model
        What was learnt; see also :meth:`top_terms` and :meth:`save`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a frame with names.
    n_iter_ : int
        Passes made.
    coef_, intercept_ : ndarray
        Where the model is linear in the columns of X: ``numeric="raw"`` or ``"standard"``, or sparse X.

    Examples
    --------
    >>> import pandas as pd
    >>> from pomona import OnlineClassifier
    >>> people = pd.DataFrame({"age": [22, 38, 26, 35, 54, 2], "job": ["cook", "nurse", "cook", None, "nurse", None]})
    >>> learner = OnlineClassifier().fit(people, ["no", "yes", "no", "yes", "yes", "no"])
    >>> learner.predict(people).tolist()
    ['no', 'yes', 'no', 'yes', 'yes', 'no']
    >>> learner.score(people, ["no", "yes", "no", "yes", "yes", "no"])
    1.0
    """

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
        bins: int | None = None,
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

    def _fit(self, X: Any, y: Any, sample_weight: Any, read: Mapping[str, Any] = NO_OPTIONS) -> OnlineClassifier:
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
        labels = self._labels(codes if first else self._model_codes()[codes])
        self._learn(X, labels, weights, self._new_task(), first=first, stream=True)
        return self

    def _new_task(self) -> Task:
        return Task("binary" if len(self.classes_) == 2 else "multiclass", self.classes_.tolist())

    def _labels(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers for the learner, as ``Task.encode`` gives them."""
        numbers: NDArray[np.float64] = codes.astype(np.float64)
        return 2.0 * numbers - 1.0 if len(self.classes_) == 2 else numbers

    def _class_weighted(
        self, codes: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            sums = np.bincount(codes, weights, len(self.classes_)).astype(np.float64)
            factors = sums.sum() / (len(sums) * sums)
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        each: NDArray[np.float64] = np.asarray(factors, np.float64)[codes]
        return each if weights is None else weights * each

    def _adopt(self, model: Model[Any], names: Any) -> None:
        super()._adopt(model, names)
        self.classes_ = np.unique(np.array(model.task.classes))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Raw predictions, one column a class in the order of ``classes_``."""
        raw = self._raw(X)
        return raw if raw.ndim == 1 else raw[:, self._model_codes()]

    def _model_codes(self) -> NDArray[np.int64]:
        """Codes in the model of ``classes_``: a class first met late in a file has a late code."""
        return np.argsort(np.array(self.model_.task.classes), kind="stable")

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: one a row, above 0 for ``classes_[1]``, or one a class.

        Parameters
        ----------
        X : as in :meth:`fit`; or a path, for models fitted by :meth:`fit_source`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raw = self._scores(X)
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
        raw = self._scores(X)
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
