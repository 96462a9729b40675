"""What the two online estimators share: options, fitting, predicting, looking inside, files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from pomona.encode import EncodedSource, TableEncoder
from pomona.errors import ModelFileError
from pomona.estimators import inputs
from pomona.estimators.linear import linear_weights
from pomona.estimators.shared import PomonaEstimator
from pomona.model import Model, Progress, load, train
from pomona.model.inspect import top_features
from pomona.model.memory import collect, scale_targets
from pomona.model.pipeline import TargetScale
from pomona.model.race import Contender, Race
from pomona.model.start import plain_options
from pomona.model.train import Trainer, check_fields, names_fields, suited
from pomona.online.apple import new_learner, plan_rounds
from pomona.online.heuristics import Heuristic
from pomona.online.parameters import UPDATES, OnlineParameters, check, degree_of
from pomona.options import EncodeOptions, LearnOptions, ReadOptions
from pomona.source import open_source
from pomona.source.files import is_path
from pomona.source.table import is_frame
from pomona.task import Task

#: With passes="auto": as many passes as make so many examples, up to a limit. With products of features the learning
#: rate falls from pass to pass; all of them together begin to overfit sooner than those that apple chooses.
AUTO_EXAMPLES = 2_000_000
AUTO_PASSES = {1: 20, 2: 5, 3: 5}
APPLE_PASSES = 20
#: Up to so many examples apple compares some numbers of passes: small data is soon learnt by heart.
FEW_EXAMPLES, FEWER_PASSES = 10_000, (2, 5)
#: Up to so many it also tries numbers as they are: there is little from which to learn a weight a knot of a column.
FEWEST_EXAMPLES, MORE_PASSES = 2_000, 60
#: Files smaller than this are read once more to count their rows, which the number of passes depends on.
COUNTED_BYTES = 1 << 26
#: Bytes of one feature of a row that is kept.
ENTRY_BYTES = 8
NO_OPTIONS: Mapping[str, Any] = {}


class OnlineEstimator(PomonaEstimator):
    """Base of the online estimators; not for direct use."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "update": [StrOptions(set(UPDATES))],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "interactions": [str, list, tuple],
        "squares": ["boolean"],
        "numeric": [str],
        "bins": [Interval(Integral, 2, None, closed="left"), None],
        "categorical": ["array-like", None],
        "text": ["array-like", None],
        "ngrams": [Interval(Integral, 1, 8, closed="both")],
        "bits": [Interval(Integral, 10, 30, closed="both"), None],
        "memory": [Interval(Integral, 1 << 20, None, closed="left")],
        "passes": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "shuffle": ["boolean"],
        "holdout": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    #: Wish for the task, as in ``LearnOptions.task``.
    _task: ClassVar[str]

    # ---- options ----
    def _learn_options(self, **changes: Any) -> LearnOptions:
        options = LearnOptions(
            loss=self.loss,
            update=self.update,
            learning_rate=float(self.learning_rate),
            l1=float(self.l1),
            l2=float(self.l2),
            interactions=self.interactions if isinstance(self.interactions, str) else tuple(self.interactions),
            squares=bool(self.squares),
            bits=None if self.bits is None else int(self.bits),
            memory=int(self.memory),
            passes=1 if self.passes == "auto" else int(self.passes),
            shuffle=bool(self.shuffle),
            holdout=float(self.holdout),
            patience=int(self.patience),
            seed=self._seed(),
            task=self._task,
        )
        options = replace(options, **{**self._own_options(), **changes})
        check(options)
        return options

    def _own_options(self) -> dict[str, Any]:
        """Options that only the classifier or the regressor has."""
        raise NotImplementedError

    def _encode_options(self) -> EncodeOptions:
        given = EncodeOptions(numeric=self.numeric, bins=None if self.bins is None else int(self.bins))
        return suited(given, self._learn_options())

    def _read_options(self, names: Sequence[str], **given: Any) -> ReadOptions:
        own = {
            "categorical": inputs.column_names(self.categorical, names, "categorical"),
            "text": inputs.column_names(self.text, names, "text"),
            "ngrams": int(self.ngrams),
        }
        return ReadOptions(**{**own, **given})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    # ---- fitting ----
    def _learn(
        self,
        X: inputs.Rows,
        labels: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        task: Task,
        *,
        first: bool,
        stream: bool = False,
        read: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        """Learn checked rows, all of weight above 0.

        ``first`` starts anew, otherwise learning goes on; a ``stream`` is learnt in one pass.
        """
        start = time.perf_counter()
        learn = self._learn_options(**({"passes": 1, "holdout": 0.0, "polish": False} if stream else {}))
        if first:
            encode = self._encode_options()
            self.model_ = self._start(X, weights, task, learn, encode, keep_constant=stream, read=read)
            if stream:  # how long, nobody knows
                plan_rounds(self.model_.learner, learn, None)
        auto = self.passes == "auto" and not stream
        if self._is_large(X):
            learn = with_passes(learn, len(labels)) if auto else learn
            trainer = self._run_large(X, labels, weights, learn)
        else:
            contender = self._contender(self.model_, learn, X, labels, weights)
            few = len(contender.examples) <= FEW_EXAMPLES and not learn.holdout
            if auto:
                contender = replace(contender, learn=with_passes(learn, len(contender.examples)))
            if auto and few and learn.learner == "apple":

                def other(numeric: str, heuristic: str | Heuristic = learn.heuristic) -> Contender:
                    again = replace(self._encode_options(), numeric=numeric)
                    chosen = replace(learn, heuristic=heuristic)
                    model = self._start(X, weights, task, chosen, again, keep_constant=stream, read=read)
                    return self._contender(model, contender.learn, X, labels, weights).judged_as(contender)

                contender = self._best(contender, other)
            self.model_ = contender.model
            trainer = contender.trainer(self._report)
            trainer.run_passes()
        self.n_iter_ = trainer.passes_done
        self.model_.summary = trainer.summary("X", time.perf_counter() - start)

    def _contender(
        self,
        model: Model[Any],
        learn: LearnOptions,
        X: inputs.Rows,
        labels: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> Contender:
        """The model with all rows in its terms."""
        source = inputs.source_of(X, self._names(), model.encoder)
        examples = collect(model, inputs.training_chunks(source), labels, weights, shuffle=bool(learn.shuffle))
        if model.task.kind == "regression":
            examples = scale_targets(model, examples)
        return Contender(model, learn, examples, source)

    def _best(self, usual: Contender, other: Callable[..., Contender]) -> Contender:
        """Of the ways to learn few examples, the one that held-out examples prefer."""
        encoder, fewest = usual.model.encoder, len(usual.examples) <= FEWEST_EXAMPLES
        hats = self.numeric == "auto" and encoder is not None and encoder.has_hats
        # Products of numbers as they are, which every row has, are soon learnt by heart: other parents come first.
        first = other("auto", "weight") if hats and usual.learn.heuristic == "auto" else usual
        race = Race(first)
        for passes in FEWER_PASSES:
            race.enter(first.with_passes(passes))
        if first is not usual:
            race.enter(usual)
        if hats and fewest:
            # Products of smooth numbers take longer to learn, and numbers of classes a rate that does not fall.
            smooth = other("standard").with_passes(usual.learn.passes, usual.model.task.kind == "regression")
            race.enter(smooth)
            if race.best is smooth:
                race.enter(smooth.with_passes(MORE_PASSES))
        return race.best

    def _is_large(self, X: inputs.Rows) -> bool:
        """Whether the encoded rows would take more than ``memory``; sparse matrices are not encoded."""
        encoder: TableEncoder | None = self.model_.encoder
        return encoder is not None and X.shape[0] * encoder.width * ENTRY_BYTES > self.memory

    def _run_large(
        self, X: inputs.Rows, labels: NDArray[np.float64], weights: NDArray[np.float64] | None, learn: LearnOptions
    ) -> Trainer:
        """Encode rows as they are learnt, in an order drawn once and shuffled further in each pass."""
        model: Model[Any] = self.model_
        assert model.encoder is not None
        order = np.arange(len(labels))
        if learn.shuffle:
            order = np.random.default_rng(learn.seed).permutation(order)
        if model.task.kind == "regression":
            if model.learner.examples == 0:
                model.target = TargetScale.fit(labels, model.learner.parameters.loss, weights)
            y = labels
        else:
            codes = labels if model.task.kind == "multiclass" else (labels + 1) / 2
            y = np.array(model.task.classes)[codes.astype(np.int64)]
        if weights is not None:
            weights = weights[order] / min(1.0, float(weights.mean()))
        table = inputs.ShuffledTable(X, self._names(), order)
        source: Any = EncodedSource(table, model.encoder, y=y[order], weights=weights)
        trainer = Trainer(model, learn, y[:0], source, self._report)
        trainer.run_chunks(source.chunks())
        return trainer

    def _start(
        self,
        X: inputs.Rows,
        weights: NDArray[np.float64] | None,
        task: Task,
        learn: LearnOptions,
        encode: EncodeOptions,
        *,
        keep_constant: bool,
        read: Mapping[str, Any],
    ) -> Model[Any]:
        """A model that has learnt nothing but how to encode the columns."""
        names = self._names()
        reading = self._read_options(names, **read)
        encoder = None
        if not hasattr(X, "tocsr"):
            rows = inputs.sample(X, encode.sample_rows)
            few = X if len(rows) == X.shape[0] else inputs.take(X, rows)
            encoder = TableEncoder.fit(
                inputs.table_of(few, names),
                reading,
                encode,
                weights=None if weights is None else weights[rows],
                keep_constant=keep_constant,
            )
        options = plain_options(reading, encode, learn)
        parameters = OnlineParameters.from_options(learn, task)
        check_fields(learn, names if encoder is None else encoder.fields)
        fields = encoder.fields if encoder is not None else list(names) if names_fields(learn) else []
        text = encoder is not None and encoder.has_text
        learner = new_learner(parameters, fields, learn, None if encoder is None else encode.numeric, text)
        return Model(task, learner, encoder, options=options)

    def _report(self, progress: Progress) -> None:
        if self.verbose:
            held = "" if progress.held_out is None else f", held out {progress.held_out:.6g}"
            print(
                f"pass {progress.pass_number} of {progress.passes}: {progress.examples:,} examples,"
                f" progressive loss {progress.loss_last:.6g}{held}, {progress.seconds:.1f} s"
            )

    @staticmethod
    def _weighted(
        X: inputs.Rows, y: NDArray[Any], sample_weight: Any
    ) -> tuple[inputs.Rows, NDArray[Any], NDArray[np.float64] | None]:
        """Rows, targets and weights without the rows of weight 0."""
        if sample_weight is None:
            return X, y, None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`.")
        present = weights > 0
        if present.all():
            return X, y, weights
        if not present.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return inputs.take(X, present), y[present], weights[present]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_source(self, data: Any, target: str | None = None, **read: Any) -> Any:
        """Fit out of core: from files larger than memory, or from a frame that holds the target.

        Parameters
        ----------
        data : str, path, list of these, frame or array
            A path, a pattern such as ``"clicks/*.parquet"``, a folder, ``"-"`` for standard input (VW, svmlight, CSV,
            TSV, Parquet, Arrow; plain or compressed), a frame, or an iterator of Arrow record batches.
        target : str or None
            Column to predict; text formats such as VW carry their own.
        **read
            Further fields of :class:`pomona.options.ReadOptions`: ``format``, ``weight``, ``ignore``, ``categorical``,
            ``text``, ``header``, ``on_error``, ``threads``, ``ngrams``, ``skips``.

        Returns
        -------
        self
        """
        if is_frame(data) and not hasattr(data, "__next__") and target is not None:
            return self._fit_frame(data, target, **read)
        options = self._read_options([], target=target, **read)
        source: Any = open_source(data, options)
        columns: list[str] = list(source.schema.names) if hasattr(source, "batches") else []
        options = self._read_options(columns, target=target, **read)
        learn = self._learn_options(class_weight=getattr(self, "class_weight", None))
        if self.passes == "auto":
            rows = source.n_rows if hasattr(source, "batches") else source.n_examples
            rows = _count(data, source, options) if rows is None else rows
            learn = with_passes(learn, rows)
        model = train(source, read=options, encode=self._encode_options(), learn=learn, progress=self._report)
        self._adopt(model, [name for name in columns if name not in {target, options.weight, *options.ignore}])
        return self

    def _fit_frame(self, data: Any, target: str, **read: Any) -> Any:
        table = inputs.whole_table(data)
        weight, ignore = read.pop("weight", None), read.pop("ignore", ())
        y = inputs.column(table, target, "target")
        sample_weight = None if weight is None else inputs.column(table, weight, "weight")
        X = table.drop_columns([name for name in (target, weight, *ignore) if name is not None])
        return self._fit(X, y, sample_weight, read)

    def _fit(self, X: Any, y: Any, sample_weight: Any, read: Mapping[str, Any] = NO_OPTIONS) -> Any:
        """Fit from the beginning."""
        raise NotImplementedError

    def _adopt(self, model: Model[Any], names: Sequence[str]) -> None:
        """Become the estimator of a model that was trained elsewhere."""
        self.model_ = model
        self.n_iter_ = model.summary.get("passes", 1)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        if names:
            self.feature_names_in_ = np.array(names, object)
            self.n_features_in_ = len(names)
        elif model.encoder is None and model.learner.n_columns:
            self.n_features_in_ = model.learner.n_columns

    # ---- predicting ----
    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Raw predictions, one row or number an example."""
        check_is_fitted(self, "model_")
        model: Model[Any] = self.model_
        if is_path(X) or hasattr(X, "chunks"):
            chunks = model.chunks(X)
        else:
            rows = inputs.checked(self, X, reset=False)
            names = self._names() if hasattr(self, "n_features_in_") else []
            chunks = inputs.chunks_of(rows, names, model.encoder)
        parts = [model.raw_predict(chunk) for chunk in chunks]
        if not parts:
            outputs = model.task.n_outputs
            return np.empty((0,) if outputs == 1 else (0, outputs))
        return np.concatenate(parts)

    # ---- looking inside ----
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the single features that the columns were encoded to, products left out.

        Parameters
        ----------
        input_features : array-like of str or None
            Ignored but for a check that they are the columns of the training data.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self, "model_")
        if input_features is not None and hasattr(self, "n_features_in_"):
            if list(input_features) != list(self._names()):
                raise ValueError("input_features is not equal to feature_names_in_")
        known = self.model_.learner.names
        pairs = zip(known.names, known.rows.tolist(), strict=True)
        return np.array([name or known.default(row) for name, row in pairs], object)

    def top_terms(self, k: int = 20) -> list[dict[str, Any]]:
        """The ``k`` strongest features, products included: by ``|weight|`` times the root of the squared gradients.

        That is about the weight over its standard error: rare features often have large weights by chance.

        Returns
        -------
        list of dict
            ``feature`` (its name), ``weight``, ``scale`` (the largest value seen); with several classes also ``class``
            (the one the weight is for) and ``weights`` (one a class).
        """
        check_is_fitted(self, "model_")
        return top_features(self.model_, k)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the columns of X, where the model is linear in them (``numeric="raw"``, or sparse X)."""
        return self._linear()[0]

    @property
    def intercept_(self) -> Any:
        """What is added to ``X @ coef_.T``; there where ``coef_`` is."""
        return self._linear()[1]

    def _linear(self) -> tuple[NDArray[np.float64], Any]:
        if not hasattr(self, "model_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return linear_weights(self.model_, self._names() if hasattr(self, "n_features_in_") else [])

    # ---- files ----
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which ``pomona predict``, :func:`pomona.load` and :meth:`load` read."""
        check_is_fitted(self, "model_")
        model: Model[Any] = self.model_
        own: dict[str, Any] = {
            "feature_names": list(getattr(self, "feature_names_in_", [])),
            "n_features": getattr(self, "n_features_in_", None),
            "parameters": _plain(self.get_params(deep=False)),
        }
        model.options = {**model.options, "estimator": own}
        model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """An estimator from a model file, whoever wrote it; nothing in the file is executed."""
        model = load(path)
        classifies = model.task.kind != "regression"
        if classifies != (cls._task == "classification"):
            what = "classifies" if classifies else "predicts numbers"
            right = "OnlineClassifier" if classifies else "OnlineRegressor"
            raise ModelFileError(f"{os.fspath(path)}: the model {what}; load it by {right}.load")
        own = model.options.get("estimator", {})
        known = cls().get_params(deep=False)
        estimator = cls(**{name: value for name, value in own.get("parameters", {}).items() if name in known})
        estimator._adopt(model, own.get("feature_names", []))
        if own.get("n_features") is not None:
            estimator.n_features_in_ = int(own["n_features"])
        return estimator


def with_passes(learn: LearnOptions, examples: int | None) -> LearnOptions:
    """As many passes as let small data converge, while large data is read not more often than needed."""
    degree = degree_of(learn)
    most = APPLE_PASSES if learn.learner == "apple" else AUTO_PASSES[degree]
    passes = 1 if examples is None else max(1, min(AUTO_EXAMPLES // max(examples, 1), most))
    return replace(learn, passes=passes, decay=degree > 1 and passes > 1)


def _count(data: Any, source: Any, read: ReadOptions) -> int | None:
    """Rows of files that do not say; None where counting is not worth it."""
    from pomona.source.files import find_files

    if not source.rewinds or sum(os.path.getsize(path) for path in find_files(data)) > COUNTED_BYTES:
        return None
    counted: Any = open_source(data, read)
    return sum(len(part) for part in (counted.batches() if hasattr(counted, "batches") else counted.chunks()))


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that a JSON header can hold."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, (list, tuple, np.ndarray)):
            value = list(value)
        if value is None or isinstance(value, (bool, int, float, str, list)):
            plain[name] = value
    return plain
