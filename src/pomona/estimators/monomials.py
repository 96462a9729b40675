"""What apple found, as features for least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from pomona.leastsquares.generators.monomials import Monomials


def monomials_of(estimator: Any, count: int = 1000) -> Monomials:
    """Monomials of a fitted :class:`AppleClassifier` or regressor for a stagewise estimator.

    Those that can move a prediction most come first: by ``|weight| * scale``.

    Parameters
    ----------
    estimator : fitted with ``numeric="raw"``, or on a sparse matrix, so that its features are columns.
    count : how many monomials, at most.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import AppleClassifier, StagewiseClassifier
    >>> from pomona.estimators.monomials import monomials_of
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 4))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> apple = AppleClassifier(numeric="raw").fit(X, y)
    >>> monomials = monomials_of(apple, 20)
    >>> tuple(monomials.terms[0])
    (0, 1)
    >>> model = StagewiseClassifier(generator=monomials, n_stages=1).fit(X, y)
    >>> print(f"{model.score(X, y):.1f}")
    1.0
    """
    numeric = estimator.model_.options["encode"]["numeric"]
    if estimator.model_.encoder is not None and numeric != "raw":
        raise ValueError(
            f"monomials of columns are needed; got a model of {numeric} numbers: fit apple with numeric='raw'"
        )
    columns = {name: number for number, name in enumerate(estimator._names())}
    terms = []
    found = estimator.model_.learner.terms()
    order = np.argsort(-found.strengths().max(axis=1, initial=0.0), kind="stable")
    for name in found.names(order[:count]):
        factors = name.split(" · ")
        if not all(factor in columns for factor in factors):
            raise ValueError(f"monomials of columns are needed; got the feature {name!r}: fit apple with numeric='raw'")
        terms.append([columns[factor] for factor in factors])
    return Monomials(terms=terms)
