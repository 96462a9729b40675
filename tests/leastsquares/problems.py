"""Random problems, and the family's pieces put together for them."""

from __future__ import annotations

import numpy as np

from pomona.leastsquares.arrays import Place
from pomona.leastsquares.gls import Problem, intercept, no_border
from pomona.leastsquares.rows import ArrayRows
from pomona.leastsquares.targets import Targets


def classes(n=200, d=6, k=3, seed=0, noise=1.0):
    """X with an ill-conditioned covariance, and one-hot rows of noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(0, -2, d)
    X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    scores = X / X.std(axis=0) @ rng.standard_normal((d, k)) + noise * rng.gumbel(size=(n, k))
    return X, np.eye(k)[scores.argmax(axis=1)]


def problem(X, Y, *, with_intercept=False, weights=None, block_rows=None, precision="float64", place=None):
    place = Place.of(np.empty(0), precision) if place is None else place
    rows = ArrayRows(X, place, block_rows)
    border = intercept(rows) if with_intercept else no_border(rows)
    return Problem(
        rows,
        Targets(Y, place),
        border,
        int(with_intercept),
        n_free=int(with_intercept),
        weights=None if weights is None else place.put(weights),
    )
