"""Higher-order logistic regression and its generative relatives as scikit-learn classifiers."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from pomona.estimators.higher_order_base import ORDER, POSITIVE, SHARED_CONSTRAINTS, TupleClassifier
from pomona.higherorder.options import MEMORY, SEARCHES, STARTS, ALROptions, AnJEOptions, KDBOptions
from pomona.options import EncodeOptions


class ALRClassifier(TupleClassifier):
    """Higher-order logistic regression over tuples of discretised attributes: ALR^n, sALR^n, hsALR^n.

    Numbers are cut into bins by description length, and every value combination of ``order`` attributes that occurs is
    a feature with a weight for each class: ``P(y|x) ∝ exp(b_y + sum over tuples T of w[T, x_T, y])``. The loss
    ``-sum log P(y|x)`` is minimised by a few passes of AdaGrad whose steps are scaled by the generative
    probabilities ``|log P(x_T|y)|``. Step size, start, calibration and (on demand) order, selection and penalty are
    chosen on rows that are held out, so that nothing needs tuning.

    Parameters
    ----------
    order : int or "auto", default=2
        Attributes of a tuple.
    selection : {"mi", "cvscore"} or None, default=None
        Keep the tuples with the highest mutual information with the class, or those whose removal costs most on
        the held-out rows.
    threshold : float, int or "auto", default="auto"
        Share or number of the tuples to keep (with ``feature_selection``: of the features).
    hierarchical : bool, default=False
        Build tuples level by level, each from those selected at the level below.
    feature_selection : bool, default=False
        Select single value combinations instead of tuples, level by level: for attributes with very many levels.
    start : {"auto", "zero", "generative"}, default="auto"
        Where weights begin: at zero, or at those of :class:`AnJEClassifier`.
    preconditioner : bool, default=True
        Whether steps are scaled by the generative probabilities.
    learning_rate : float or None, default=None
        AdaGrad's step size; None: searched.
    line_search : {"sample", "recursive"}, default="sample"
        Search it by short training on a quarter of the rows, or by the paper's recursive search on held-out rows alone.
    passes : int or "auto", default=5
        Discriminative passes; ``"auto"``: until the held-out rows gain no more.
    early_stop : bool, default=True
        Whether the pass that did best on the held-out rows is kept, or the last.
    l2 : float or "auto", default=0
        Pull of weights to zero.
    calibrate : bool, default=True
        Scale the scores so that the loss on the held-out rows is least.
    min_count : int, default=1
        Features that occur less often are left out.
    n_models : int, default=1
        Models whose scores are averaged: the first cuts numbers as ``discretize`` says, the others into 15, 20, 25 …
        bins of equal frequency. Where the borders of bins matter this is worth more than a higher order.
    discretize : {"mdl", "frequency"}, default="mdl"
        Cuts by Fayyad and Irani's rule, or into ``bins`` of equal frequency.
    bins : int or None, default=None
        Bins of equal frequency; None: 10.
    categorical : list of str or int, optional
        Columns (names or numbers) that hold categories though their type is numeric.
    memory : int, default=2**32
        Bytes that maps, counts and parameters may take.
    random_state : int, RandomState or None, default=0
        Seed of the held-out rows and of the order of rows.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : pomona.Model
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a frame with names.
    n_passes_ : int
        Passes made over the rows, as given or coded.
    n_parameters_ : int
        Features times classes.
    order_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import ALRClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 4, (4000, 5))
    >>> y = (X[:, 0] + X[:, 1]) % 2 ^ (X[:, 2] > 1)       # no pair of attributes says it all
    >>> ALRClassifier(order=3).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
    1.0
    """

    _family = "alr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_CONSTRAINTS,
        "order": ORDER,
        "selection": [StrOptions({"mi", "cvscore"}), None],
        "threshold": [
            Interval(Real, 0, 1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "hierarchical": ["boolean"],
        "feature_selection": ["boolean"],
        "start": [StrOptions(set(STARTS))],
        "preconditioner": ["boolean"],
        "learning_rate": [POSITIVE, None],
        "line_search": [StrOptions(set(SEARCHES))],
        "passes": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "early_stop": ["boolean"],
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "calibrate": ["boolean"],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "n_models": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        order: Any = 2,
        selection: str | None = None,
        threshold: Any = "auto",
        hierarchical: bool = False,
        feature_selection: bool = False,
        start: str = "auto",
        preconditioner: bool = True,
        learning_rate: float | None = None,
        line_search: str = "sample",
        passes: Any = 5,
        early_stop: bool = True,
        l2: Any = 0.0,
        calibrate: bool = True,
        min_count: int = 1,
        n_models: int = 1,
        discretize: str = "mdl",
        bins: int | None = None,
        categorical: Any = None,
        memory: int = MEMORY,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.order = order
        self.selection = selection
        self.threshold = threshold
        self.hierarchical = hierarchical
        self.feature_selection = feature_selection
        self.start = start
        self.preconditioner = preconditioner
        self.learning_rate = learning_rate
        self.line_search = line_search
        self.passes = passes
        self.early_stop = early_stop
        self.l2 = l2
        self.calibrate = calibrate
        self.min_count = min_count
        self.n_models = n_models
        self.discretize = discretize
        self.bins = bins
        self.categorical = categorical
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def _encode_options(self) -> EncodeOptions:
        return replace(super()._encode_options(), cuttings=int(self.n_models))

    def _learn_options(self) -> ALROptions:
        threshold = self.threshold
        if not isinstance(threshold, str):
            threshold = int(threshold) if isinstance(threshold, Integral) else float(threshold)
        return ALROptions(
            task="classification",
            order=_whole(self.order),
            selection=self.selection or "none",
            threshold=threshold,
            hierarchical=bool(self.hierarchical),
            feature_selection=bool(self.feature_selection),
            start=self.start,
            preconditioner=bool(self.preconditioner),
            learning_rate=None if self.learning_rate is None else float(self.learning_rate),
            line_search=self.line_search,
            passes=_whole(self.passes),
            early_stop=bool(self.early_stop),
            l2="auto" if self.l2 == "auto" else float(self.l2),
            calibrate=bool(self.calibrate),
            min_count=int(self.min_count),
            memory=int(self.memory),
            seed=self._seed(),
        )


class AnJEClassifier(TupleClassifier):
    """Averaged n-join estimators, the generative twin of :class:`ALRClassifier`; naive Bayes at ``order=1``.

    ``log P(y) + 1/C(a-1, n-1) * sum over tuples T of log P(x_T|y)`` with M-estimates of the probabilities, from one
    or two passes of counting.

    Parameters
    ----------
    order : int or "auto", default=2
        Attributes of a tuple; ``"auto"``: raised while the error on held-out rows falls.
    discretize, bins, categorical, memory, random_state, verbose : as in :class:`ALRClassifier`.

    Attributes
    ----------
    classes_, model_, n_features_in_, feature_names_in_, n_passes_, n_parameters_, order_ : as there.

    Examples
    --------
    >>> from pomona import AnJEClassifier
    >>> weather = [["sun", "warm"], ["sun", "cold"], ["rain", "warm"], ["rain", "cold"]] * 5
    >>> AnJEClassifier(order=1).fit(weather, ["out", "out", "in", "in"] * 5).predict([["sun", "cold"]]).tolist()
    ['out']
    """

    _family = "anje"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**SHARED_CONSTRAINTS, "order": ORDER}

    def __init__(
        self,
        *,
        order: Any = 2,
        discretize: str = "mdl",
        bins: int | None = None,
        categorical: Any = None,
        memory: int = MEMORY,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.order = order
        self.discretize = discretize
        self.bins = bins
        self.categorical = categorical
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def _learn_options(self) -> AnJEOptions:
        return AnJEOptions(task="classification", order=_whole(self.order), memory=int(self.memory), seed=self._seed())


class KDBClassifier(TupleClassifier):
    """k-dependence Bayesian classifier, and its selective form (SKDB).

    Each attribute depends on the class and on up to ``k`` attributes with which it shares most information given the
    class: ``P(y) prod_i P(x_i | parents_i, y)``.

    Parameters
    ----------
    k : int, default=2
        Parents, at most.
    selective : bool, default=True
        Choose ``k`` and the number of attributes by leave-one-out loss, in a third pass.
    discretize, bins, categorical, memory, random_state, verbose : as in :class:`ALRClassifier`.

    Attributes
    ----------
    classes_, model_, n_features_in_, feature_names_in_, n_passes_, n_parameters_, order_ : as there.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import KDBClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (1000, 3))
    >>> KDBClassifier(k=1).fit(X, X[:, 0] ^ X[:, 1]).score(X, X[:, 0] ^ X[:, 1])
    1.0
    """

    _family = "kdb"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_CONSTRAINTS,
        "k": [Interval(Integral, 0, 7, closed="both")],
        "selective": ["boolean"],
    }

    def __init__(
        self,
        *,
        k: int = 2,
        selective: bool = True,
        discretize: str = "mdl",
        bins: int | None = None,
        categorical: Any = None,
        memory: int = MEMORY,
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.k = k
        self.selective = selective
        self.discretize = discretize
        self.bins = bins
        self.categorical = categorical
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def _learn_options(self) -> KDBOptions:
        return KDBOptions(
            task="classification",
            k=int(self.k),
            selective=bool(self.selective),
            memory=int(self.memory),
            seed=self._seed(),
        )


def _whole(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)
