"""Gram matrices, accumulated over blocks of rows, and their Cholesky factors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomona.errors import NumericError
from pomona.leastsquares.arrays import Array, Place, Triangle, cholesky
from pomona.leastsquares.rows import Rows, has_bad_numbers

#: Ridge where none is given, in units of the mean square of a feature.
AUTO_RIDGE = 1e-6
#: How often a ridge may be raised tenfold until the matrix is positive definite.
MAX_RAISES = 12

#: Further columns of some rows: the intercept, earlier predictions.
Border = Callable[[slice], Array]


class RaisedRidgeWarning(UserWarning):
    """The Gram matrix was not positive definite, so that a larger ridge was used."""


@dataclass
class Moments:
    """Σ and the cross term of Algorithm 1, as means over examples, for the columns of the rows and of their border."""

    gram: Array
    cross: Array
    total: float


def moments(
    rows: Rows, residual: Callable[[slice, Array], Array], border: Border, weights: Array | None, width: int, k: int
) -> Moments:
    """One pass: E[x xᵀ] and E[x rᵀ].

    Products of blocks are made in working precision, their sums in float64.
    """
    place = rows.place
    gram, cross = place.zeros(width, width, exact=True), place.zeros(width, k, exact=True)
    d = rows.d
    total = 0.0
    for where, X in rows.blocks():
        R, E = residual(where, X), border(where)
        if weights is None:
            total += where.stop - where.start
        else:
            w = weights[where]
            total += float(place.xp.sum(w))
            root = place.xp.sqrt(w)[:, None]
            X, E, R = scaled(X, root), E * root, R * root
        gram[:d, :d] += dense(X.T @ X)
        gram[d:, :d] += E.T @ X
        gram[d:, d:] += E.T @ E
        cross[:d, :] += X.T @ R
        cross[d:, :] += E.T @ R
    if total <= 0:
        raise NumericError("the sum of the weights must be above 0; got 0: no example counts")
    gram[:d, d:] = gram[d:, :d].T
    gram /= total
    cross /= total
    if not bool(place.xp.all(place.xp.isfinite(cross))):
        blame(rows)
    return Moments(gram, cross, total)


def dense(A: Array) -> Array:
    return A.toarray() if sparse.issparse(A) else A


def scaled(X: Array, factors: Array) -> Array:
    """Each row times its factor."""
    return X.multiply(factors).tocsr() if sparse.issparse(X) else X * factors


def blame(rows: Rows) -> None:
    """Say why a sum over rows is not finite."""
    if any(has_bad_numbers(block, rows.place) for _, block in rows.blocks()):
        raise NumericError("features must be finite numbers; got NaN or infinity: fill or remove those rows")
    raise NumericError("sums of products of features overflow: scale the columns to a few units")


class Metric:
    """The Cholesky factor of scale · Σ + ridge · P, where P leaves the intercept alone."""

    def __init__(self, place: Place, gram: Array, scale: float, ridge: float | None, n_free: int) -> None:
        xp = place.xp
        width = int(gram.shape[0])
        diagonal = xp.linalg.diagonal(gram)
        penalised = diagonal[: width - n_free]
        unit = float(xp.mean(penalised)) if width > n_free else 1.0
        self.ridge = AUTO_RIDGE * max(unit, np.finfo(np.float64).tiny) if ridge is None else float(ridge)
        mask = np.ones((width, 1))
        mask[width - n_free :] = 0.0
        #: 1 for columns that the ridge applies to.
        self.mask = place.put(mask, exact=True)
        asked = self.ridge
        for raises in range(MAX_RAISES + 1):
            matrix = scale * gram
            # A little for the intercept too, once the matrix proved singular.
            added = self.ridge * (self.mask[:, 0] if not raises else self.mask[:, 0] * 0 + 1)
            xp.reshape(matrix, (-1,), copy=False)[:: width + 1] += added
            factor = cholesky(xp, matrix)
            if factor is not None:
                break
            self.ridge = max(self.ridge * 10, float(np.finfo(place.precision).eps) * max(unit, 1e-30))
        else:
            raise NumericError("the Gram matrix is not positive definite with any ridge: scale the columns")
        if raises:
            warnings.warn(
                f"the Gram matrix is not positive definite with a ridge of {asked:.3g}: {self.ridge:.3g} was used;"
                " give a larger ridge, or precision='float64'",
                RaisedRidgeWarning,
                stacklevel=4,
            )
        self._triangle = Triangle(xp, factor)

    def solve(self, B: Array) -> Array:
        return self._triangle.solve(B)
