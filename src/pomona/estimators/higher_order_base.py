"""What the classifiers over tuples share: fitting, predicting, looking inside, files."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pomona.encode import EncodedSource
from pomona.errors import ModelFileError
from pomona.estimators import inputs
from pomona.estimators.shared import PomonaEstimator
from pomona.higherorder.coder import AttributeCoder
from pomona.learner import Step
from pomona.model import Model, load, train
from pomona.model.families import family
from pomona.model.inspect import top_features
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import open_source
from pomona.source.files import is_path
from pomona.task import Task

DISCRETIZE = {"mdl": "auto", "frequency": "onehot"}
#: Constraints of the parameters that all these estimators have.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "discretize": [StrOptions(set(DISCRETIZE))],
    "bins": [Interval(Integral, 2, None, closed="left"), None],
    "categorical": ["array-like", None],
    "memory": [Interval(Integral, 1 << 16, None, closed="left")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
ORDER = [Interval(Integral, 1, 8, closed="both"), StrOptions({"auto"})]
POSITIVE = Interval(Real, 0, None, closed="neither")


def dense(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as an array or an Arrow table; sparse matrices are refused in scikit-learn's words."""
    if hasattr(X, "tocsr"):
        validate_data(estimator, X, reset=reset, accept_sparse=False)
    return inputs.checked(estimator, X, reset=reset)


class TupleClassifier(ClassifierMixin, PomonaEstimator):
    """Base of the classifiers over tuples; not for direct use."""

    #: Name of the family of learners.
    _family: ClassVar[str]

    def _learn_options(self) -> Any:
        """The options of the family."""
        raise NotImplementedError

    def _encode_options(self) -> EncodeOptions:
        bins = None if self.bins is None else int(self.bins)
        return EncodeOptions(numeric=DISCRETIZE[self.discretize], bins=bins)

    def _read_options(self, names: Sequence[str], **given: Any) -> ReadOptions:
        own = {"categorical": inputs.column_names(self.categorical, names, "categorical")}
        return ReadOptions(**{**own, **given})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ---- fitting ----
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Fit from the beginning.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            NumPy arrays and lists, pandas, polars and pyarrow frames. Columns may hold numbers, truth values, strings,
            categories or dates; missing values are a level of their own.
        y : array-like of shape (n_samples,)
            Class labels: numbers, strings or truth values.

        Returns
        -------
        self
        """
        start = time.perf_counter()
        if hasattr(X, "tocsr"):
            dense(self, X, reset=True)
        X, y = inputs.checked_pair(self, X, y, reset=True, numeric=False)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes; got 1 class, {self.classes_.tolist()[0]!r}")
        names = self._names()
        read, encode, learn = self._read_options(names), self._encode_options(), self._learn_options()
        coder: Any = AttributeCoder.fit(inputs.table_of(X, names), read, encode, labels=codes.astype(np.int32))
        source: Any = EncodedSource(inputs.table_of(X, names), coder, y=codes.astype(np.float64))
        task = Task("binary" if len(self.classes_) == 2 else "multiclass", self.classes_.tolist())
        learner = family(self._family).learner_class().from_options(learn, task, coder.fields)
        summary = learner.fit(source, self._report)
        options = {name: asdict(group) for name, group in (("read", read), ("encode", encode), ("learn", learn))}
        figures = {"data": "X", "loss_name": None, "loss": None, "error": None, "held_out": None}
        summary = {**figures, **summary, "seconds": time.perf_counter() - start}
        self.model_ = Model(task, learner, coder, summary=summary, options=options)
        self._remember()
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_source(self, data: Any, target: str | None = None, **read: Any) -> Any:
        """Fit out of core: from files larger than memory, or from a frame that holds the target.

        The source is read twice: once to learn cuts and levels, once to code the rows compactly; all further passes
        go over the coded rows.

        Parameters
        ----------
        data : str, path, list of these or frame
            A path, a pattern such as ``"clicks/*.parquet"``, a folder (CSV, TSV, Parquet, Arrow; plain or compressed),
            or a frame.
        target : str
            Column to predict.
        **read
            Further fields of :class:`pomona.options.ReadOptions`: ``format``, ``ignore``, ``categorical``, ``header``,
            ``on_error``, ``threads``.

        Returns
        -------
        self
        """
        source: Any = open_source(data, ReadOptions(target=target, **read))
        columns = list(source.schema.names) if hasattr(source, "batches") else []
        options = self._read_options(columns, target=target, **read)
        self.model_ = train(
            source, read=options, encode=self._encode_options(), learn=self._learn_options(), progress=self._report
        )
        self._adopt([name for name in columns if name not in {target, *options.ignore}])
        return self

    def _adopt(self, names: Sequence[str]) -> None:
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, attribute):
                delattr(self, attribute)
        if names:
            self.feature_names_in_ = np.array(names, object)
            self.n_features_in_ = len(names)
        self.classes_ = np.unique(np.array(self.model_.task.classes))
        self._remember()

    def _remember(self) -> None:
        """What the user may want to look at."""
        summary = self.model_.summary
        self.n_passes_ = int(summary["passes"])
        self.n_parameters_ = int(self.model_.learner.model.n_parameters)
        self.order_ = int(self.model_.learner.model.tuples.order)

    def _report(self, step: Step) -> None:
        if self.verbose:
            held = "" if step.held_out is None else f", held out {step.held_out:.6g}"
            loss = "" if step.loss is None else f" loss {step.loss:.6g}"
            print(f"{step.words}{loss}{held}")

    # ---- predicting ----
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: one a row, above 0 for ``classes_[1]``, or one a class.

        Parameters
        ----------
        X : as in :meth:`fit`; or a path, for models fitted by :meth:`fit_source`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self, "model_")
        model: Model[Any] = self.model_
        if is_path(X):
            chunks = model.chunks(X)
        else:
            chunks = inputs.chunks_of(dense(self, X, reset=False), self._names(), model.encoder)
        parts = [model.raw_predict(chunk) for chunk in chunks]
        outputs = model.task.n_outputs
        raw = np.concatenate(parts) if parts else np.empty((0,) if outputs == 1 else (0, outputs))
        return raw if raw.ndim == 1 else raw[:, np.argsort(np.array(model.task.classes), kind="stable")]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raw = self.decision_function(X)
        codes = (raw > 0).astype(np.int64) if raw.ndim == 1 else raw.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class.

        Parameters
        ----------
        X : as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        raw = self.decision_function(X)
        p: NDArray[np.float64] = self.model_.finish(raw)
        return p if p.ndim == 2 else np.column_stack([1 - p, p])

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

    # ---- looking inside, files ----
    def top_terms(self, k: int = 20) -> list[dict[str, Any]]:
        """The ``k`` features that move scores most, at most 1000: ``feature`` in words, ``weight``, ``class``."""
        check_is_fitted(self, "model_")
        return top_features(self.model_, k)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which ``pomona predict``, :func:`pomona.load` and :meth:`load` read."""
        check_is_fitted(self, "model_")
        model: Model[Any] = self.model_
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        model.options = {**model.options, "estimator": {"feature_names": names, "n_features": self.n_features_in_}}
        model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """An estimator from a model file of its family; nothing in the file is executed."""
        model = load(path)
        if model.learner.family != cls._family:
            raise ModelFileError(
                f"{os.fspath(path)}: the model was made by the learner {model.learner.family!r}, but"
                f" {cls.__name__} needs {cls._family!r}"
            )
        estimator = cls()
        estimator.model_ = model
        own = model.options.get("estimator", {})
        estimator._adopt(own.get("feature_names", []))
        if own.get("n_features") is not None:
            estimator.n_features_in_ = int(own["n_features"])
        return estimator
