"""Gram matrices, accumulated over blocks of rows, and their Cholesky factors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomona.errors import NumericError
from pomona.leastsquares.arrays import Array, Place, Triangle, cholesky, to_numpy
from pomona.leastsquares.rows import Rows, has_bad_numbers

#: Ridge where none is given, in units of a column's mean square: this times features over examples, within bounds.
#: Logistic losses curve less than squared ones, and need less.
AUTO_SQUARED, AUTO_LOGISTIC = 1e-1, 1e-2
AUTO_LEAST, AUTO_MOST = 1e-6, 1.0
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
    sums = float(place.xp.sum(cross)) + float(place.xp.sum(place.xp.linalg.diagonal(gram)))
    if not math.isfinite(sums):
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
    """The Cholesky factor of scale · Σ + penalty, with a penalty for each column but the last ``n_free``.

    A ridge that is given is the penalty of every column. Without one the penalty of a column is its own mean square
    times ``strength`` · width / total: the same whatever the units of the columns, and less the more examples there
    are.
    """

    def __init__(
        self,
        place: Place,
        gram: Array,
        total: float,
        scale: float,
        ridge: float | None,
        n_free: int = 0,
        strength: float = AUTO_SQUARED,
    ) -> None:
        xp = place.xp
        width = int(gram.shape[0])
        squares = to_numpy(xp.linalg.diagonal(gram)).astype(np.float64)
        largest = max(float(squares.max(initial=0.0)), np.finfo(np.float64).tiny)
        if ridge is None:
            factor = min(max(strength * width / total, AUTO_LEAST), AUTO_MOST)
            penalty = factor * np.maximum(squares, np.finfo(np.float32).eps * largest)
        else:
            penalty = np.full(width, float(ridge))
        penalty[width - n_free :] = 0.0
        for raises in range(MAX_RAISES + 1):
            matrix = scale * gram
            xp.reshape(matrix, (-1,), copy=False)[:: width + 1] += place.put(penalty, exact=True)
            triangle = cholesky(xp, matrix)
            if triangle is not None:
                break
            # Rounding in the products is relative to the largest element; the intercept needs a little too.
            penalty = np.maximum(penalty * 10, float(np.finfo(place.precision).eps) * largest * 10**raises)
        else:
            raise NumericError("the Gram matrix is not positive definite with any ridge: scale the columns")
        #: Mean penalty of a column.
        self.ridge = float(penalty[: width - n_free].mean()) if width > n_free else 0.0
        if raises:
            given = "the automatic ridge" if ridge is None else f"a ridge of {ridge:.3g}"
            warnings.warn(
                f"the Gram matrix is not positive definite with {given}: {self.ridge:.3g} was used;"
                " give a larger ridge, or precision='float64'",
                RaisedRidgeWarning,
                stacklevel=4,
            )
        self.penalty = place.put(penalty[:, None], exact=True)
        self._triangle = Triangle(xp, triangle)

    def solve(self, B: Array) -> Array:
        return self._triangle.solve(B)
