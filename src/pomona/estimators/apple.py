"""apple, adaptive polynomial expansion, as scikit-learn estimators."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pomona.estimators.base import OnlineEstimator
from pomona.estimators.classifier import OnlineClassifier
from pomona.estimators.regressor import OnlineRegressor
from pomona.online.heuristics import RULES
from pomona.online.parameters import PRODUCTS, SCHEDULES

_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, 4, closed="both"), StrOptions({"auto"})],
    "heuristic": [StrOptions({"auto", *RULES}), callable],
    "epochs": [Interval(Integral, 1, None, closed="left")],
    "schedule": [StrOptions(set(SCHEDULES))],
    "products": [StrOptions(set(PRODUCTS))],
    "grow": [StrOptions({"all", "first"})],
    "degree": [Interval(Integral, 1, None, closed="left"), None],
    "fallback": ["boolean"],
    "expand": ["array-like", None],
    "polish": ["boolean"],
    "update": [StrOptions({"adaptive", "adagrad", "sgd"})],
}


class AppleEstimator(OnlineEstimator):
    """What the two apple estimators share; not for direct use."""

    def _own_options(self) -> dict[str, Any]:
        return {
            **super()._own_options(),
            "learner": "apple",
            "alpha": self.alpha if isinstance(self.alpha, str) else float(self.alpha),
            "heuristic": self.heuristic,
            "epochs": int(self.epochs),
            "schedule": self.schedule,
            "products": self.products,
            "grow": self.grow,
            "degree": None if self.degree is None else int(self.degree),
            "fallback": bool(self.fallback),
            "expand": () if self.expand is None else tuple(self.expand),
            "polish": bool(self.polish),
        }

    @property
    def interactions(self) -> str:
        """apple makes products of its own."""
        return "linear"

    @property
    def terms_(self) -> dict[str, NDArray[Any]]:
        """All features that have a weight, the strongest first: columns ``name``, ``degree``, ``weight``, ``scale``.

        The strongest are those with the largest ``|weight|`` times the root of the squared gradients, which is about a
        weight over its standard error; ``|weight| * scale`` is how far a feature can move a prediction. With several
        classes ``weight`` has a column a class. ``pandas.DataFrame(terms_)`` makes a frame of it where there is one
        weight a feature.
        """
        check_is_fitted(self, "model_")
        terms = self.model_.learner.terms()
        order = np.argsort(-terms.sureness(), kind="stable")
        return {
            "name": np.array(terms.names(order), object),
            "degree": self.model_.learner.degrees_of(terms.tables, terms.slots)[order],
            "weight": terms.weights[order],
            "scale": terms.scales[order],
        }


class AppleClassifier(AppleEstimator, OnlineClassifier):
    """Classifier whose features grow while it learns: adaptive polynomial expansion.

    It learns online. After each of ``epochs`` parts of the data but the last, the ``s ** alpha`` monomials that
    matter most become parents, s being the mean number of features of a row, and from then on the products of parents
    with all features are features too. So the degree can rise by one with each part, at a cost near that of
    linear learning (Agarwal, Beygelzimer, Hsu, Langford and Telgarsky, 2014).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        New parents in a round: ``s ** alpha``. The cost rises with it; 0.25 suits sparse data of high dimension.
        ``"auto"`` is 1, but a round adds at most 16,384 products to a row: from 128 features a row on it makes fewer.
    heuristic : {"auto", "weight", "scaled", "evidence", "ssm", "picky-weight", "picky-ssm"} or callable, default="auto"
        What makes a monomial matter: the magnitude of its weight, that times its scale, that times the root of its
        squared gradients, or the mean of squared error times squared value over the mean of squared value;
        ``"auto"`` is scaled, the second, for weights of numbers depend on their unit, but evidence, the third, for
        columns of text and short sparse rows whose products learn what the others leave, and maybe weight for few rows
        (see ``passes``). The picky ones test each product before it joins the features. A function takes
        :class:`pomona.online.heuristics.Statistics` and gives a score a monomial.
    epochs : int, default=6
    schedule : {"auto", "early", "equal"}, default="auto"
        Whether epoch k ends after the share ``(k / epochs) ** 1.5`` of the data, so that products have more to learn
        from, or all are equally long, as in the paper; ``"auto"`` is early in one pass, equal over several.
    products : {"auto", "joint", "residual"}, default="auto"
        Whether all weights follow the error of the whole prediction, as in the paper, or base features learn as if
        alone and products what these leave, which count as much as they have earned on examples before these were
        learnt; ``"auto"`` is residual where base features are many and rare, as words.
    grow : {"all", "first"}, default="all"
        Whether the epochs extend over all passes, or over the first alone, after which the features stay.
    degree : int or None, default=None
        Most factors of a monomial; None: as many as ``epochs``.
    fallback : bool, default=False
        Whether each round also takes a monomial of the smallest degree that is left, whatever its weight. With it apple
        is consistent.
    expand : list of str, optional
        Columns whose features are multiplied; by default all are.
    polish : bool, default=False
        Whether the weights of the strongest features, up to 3,000, are refitted by generalized least squares in the
        end, with a ridge that is chosen on every tenth row.
    numeric : str, default="auto"
        As in :class:`OnlineClassifier`; ``"auto"`` is ``"hat+standard"``, for what is multiplied may as well be smooth,
        or ``"standard"`` for few rows that are then predicted better (see ``passes``).
    passes : int or "auto", default="auto"
        ``"auto"`` makes two million examples of the data, but at most 20 passes, and the learning rate falls from pass
        to pass. Up to 10,000 examples in memory it chooses parents of hat functions by weight, and takes 2 or 5 passes
        or chooses by scaled weight instead, up to 2,000 also standardised numbers without hat functions and 20 or 60
        passes, if every fifth example, held out, is then predicted better.
    loss, update, learning_rate, l1, l2, squares, bins, categorical, text, ngrams, bits, memory, shuffle, holdout, \
patience, multiclass, class_weight, random_state, verbose
        As in :class:`OnlineClassifier`.

    Attributes
    ----------
    terms_ : dict of ndarray
        Names, degrees, weights and scales of all features with a weight, products included.
    classes_, model_, n_features_in_, feature_names_in_, n_iter_
        As in :class:`OnlineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import AppleClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (2000, 4))
    >>> learner = AppleClassifier(numeric="raw").fit(X, X[:, 0] * X[:, 2] > 0)
    >>> str(learner.terms_["name"][0])
    'x0 · x2'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in OnlineClassifier._parameter_constraints.items() if name != "interactions"},
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        alpha: Any = "auto",
        heuristic: Any = "auto",
        epochs: int = 6,
        schedule: str = "auto",
        products: str = "auto",
        grow: str = "all",
        degree: int | None = None,
        fallback: bool = False,
        expand: Any = None,
        polish: bool = False,
        loss: str = "logistic",
        update: str = "adaptive",
        learning_rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
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
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)


class AppleRegressor(AppleEstimator, OnlineRegressor):
    """Regressor whose features grow while it learns: adaptive polynomial expansion.

    See :class:`AppleClassifier` for what it does.

    Parameters
    ----------
    alpha, heuristic, epochs, schedule, products, grow, degree, fallback, expand, polish, numeric, passes
        As in :class:`AppleClassifier`.
    loss, quantile, update, learning_rate, l1, l2, squares, bins, categorical, text, ngrams, bits, memory, shuffle, \
holdout, patience, random_state, verbose
        As in :class:`OnlineRegressor`.

    Attributes
    ----------
    terms_ : dict of ndarray
        Names, degrees, weights and scales of all features with a weight, products included.
    model_, n_features_in_, feature_names_in_, n_iter_
        As in :class:`OnlineRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import AppleRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 5))
    >>> learner = AppleRegressor(numeric="raw").fit(X, X[:, 1] * X[:, 3] + 0.5 * X[:, 4])
    >>> sorted(map(str, learner.terms_["name"][:2]))
    ['x1 · x3', 'x4']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in OnlineRegressor._parameter_constraints.items() if name != "interactions"},
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        alpha: Any = "auto",
        heuristic: Any = "auto",
        epochs: int = 6,
        schedule: str = "auto",
        products: str = "auto",
        grow: str = "all",
        degree: int | None = None,
        fallback: bool = False,
        expand: Any = None,
        polish: bool = False,
        loss: str = "squared",
        quantile: float = 0.5,
        update: str = "adaptive",
        learning_rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
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
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)
