"""Random nonlinear functions of random projections: Fourier features, logits, polynomials (appendix A.2.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import array_api_compat as compat
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from pomona.errors import OptionError
from pomona.leastsquares import streams
from pomona.leastsquares.arrays import Array, Place, to_numpy
from pomona.leastsquares.generators.base import Features, SeededGenerator, View

#: Rows whose pairwise distances the median is taken of.
DISTANCE_ROWS = 1000


def overwrite(xp: Any, name: str, A: Array) -> Array:
    """A function of each element, in place where the library can."""
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp) or compat.is_cupy_namespace(xp):
        return getattr(xp, name)(A, out=A)
    return getattr(xp, name)(A)


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The smallest value with at least half of the weight at or below it."""
    if weights.min() == weights.max():
        return float(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2)])


def median_distance(X: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Median distance of two different points; 1 where all are equal."""
    squares = np.einsum("ij,ij->i", X, X)
    D = np.maximum(squares[:, None] + squares[None, :] - 2 * X @ X.T, 0.0)
    pairs = weights[:, None] * weights[None, :]
    # Rounding leaves equal points a little apart.
    apart = D > 1e-10 * max(float(squares.max(initial=0.0)), 1e-300)
    return math.sqrt(weighted_median(D[apart], pairs[apart])) if apart.any() else 1.0


@dataclass
class RandomProjections(SeededGenerator):
    """Base: rows are centred, scaled to a typical distance of 1, perhaps reduced by PCA, and projected at random.

    Parameters
    ----------
    scale : factor of the typical distance: larger makes smoother features.
    pca : how many principal components to keep first; None: all columns as they are.
    emphasis : power of its standard deviation that each principal component is multiplied by: 0 keeps distances, above
        0 lets the components that vary most count most (good for images), -1 makes all alike.
    standardize : whether columns are brought to variance 1 first, for columns in different units.
    """

    scale: float = 1.0
    pca: int | None = None
    emphasis: float = 0.0
    standardize: bool = False

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise OptionError(f"the scale of a generator must be above 0; got {self.scale}")
        if self.pca is not None and self.pca < 1:
            raise OptionError(f"pca must be at least 1 component, or None; got {self.pca}")
        if not -1 <= self.emphasis <= 2:
            raise OptionError(f"the emphasis of a generator must be between -1 and 2; got {self.emphasis}")

    # ---- what is done once to each row ----
    def reduction(self, view: View) -> Features | None:
        """Rows in few dimensions, with a 1 at the end: shifts of projections are part of the product."""
        if "distance" not in self.learnt:
            self._learn(view)
        place, xp = view.place, view.place.xp
        distance = float(self.learnt["distance"][0])
        shift = self.learnt["mean"].astype(np.float64)
        if "basis" in self.learnt:
            basis = self.learnt["basis"].astype(np.float64) / distance
            M, m = place.put(basis), place.put((shift @ basis)[None, :])
            return lambda X: with_one(X @ M - m, place)
        factors = self.learnt["factors"].astype(np.float64) / distance
        f, m = place.put(factors[None, :]), place.put((shift * factors)[None, :])

        def reduce(X: Array) -> Array:
            return with_one(xp.asarray(X.toarray() if sparse.issparse(X) else X) * f - m, place)

        return reduce

    def _learn(self, view: View) -> None:
        sampled, weights = view.sample()
        X = np.asarray(sampled.toarray() if sparse.issparse(sampled) else to_numpy(sampled))
        share = (weights / weights.sum()).astype(X.dtype)
        mean = share @ X
        X = X - mean
        factors = np.ones(view.d)
        if self.standardize:
            deviation = np.sqrt(share @ (X * X))
            factors = np.divide(1.0, deviation, out=np.zeros(view.d), where=deviation > 0)
            X = X * factors
        self.learnt["mean"] = mean
        kept = min(self.pca or view.d, view.d)
        if kept < view.d or self.emphasis:
            basis = principal_components(X, share, kept, self.emphasis)
            X = X @ basis
            self.learnt["basis"] = factors[:, None] * basis
        else:
            self.learnt["factors"] = factors
        few = np.arange(len(X)) if len(X) <= DISTANCE_ROWS else np.linspace(0, len(X) - 1, DISTANCE_ROWS).astype(int)
        self.learnt["distance"] = np.array([median_distance(X[few].astype(np.float64), weights[few])])

    # ---- what is done at each stage ----
    def _projection(self, stage: int, size: int, view: View, shifts: NDArray[Any]) -> Array:
        """Random directions, and below them what is added to each projection."""
        q = self.learnt["basis"].shape[1] if "basis" in self.learnt else view.d
        Omega = streams.normal((q, size), self.seed, stage, "projection")
        return view.place.put(np.concatenate([Omega * np.float32(1 / self.scale), shifts]))


def with_one(X: Array, place: Place) -> Array:
    return place.xp.concat([X, place.ones(int(X.shape[0]), 1)], axis=1)


def principal_components(X: NDArray[Any], share: NDArray[Any], count: int, emphasis: float) -> NDArray[np.float64]:
    """The first eigenvectors of the covariance of centred rows, with the largest element of each positive.

    Each is as long as the deviation along it to the power ``emphasis``; none where there is no deviation.
    """
    rooted = X * np.sqrt(share)[:, None]
    covariance = (rooted.T @ rooted).astype(np.float64)
    d = len(covariance)
    variances, vectors = linalg.eigh(covariance, subset_by_index=[d - count, d - 1], check_finite=False)
    basis = vectors[:, ::-1]
    signs = np.sign(basis[np.argmax(np.abs(basis), axis=0), np.arange(basis.shape[1])])
    if not emphasis:
        return np.asarray(basis * signs)
    varies = variances > 1e-12 * variances[-1]  # the rest is rounding, which whitening would blow up
    lengths = np.power(variances, emphasis / 2, out=np.zeros(count), where=varies)
    return np.asarray(basis * (signs * lengths[::-1]))


@dataclass
class FourierFeatures(RandomProjections):
    """cos(ω·x + b), which approximates the Gaussian kernel exp(-|x - x'|²/(2s²)) (Rahimi and Recht, 2007).

    s is the median distance of two rows (the "median trick") times ``scale``.
    """

    kind: ClassVar[str] = "fourier"

    def generate(self, stage: int, size: int, view: View) -> Features:
        phase = streams.uniform((1, size), self.seed, stage, "phase") * (2 * math.pi)
        Omega, xp = self._projection(stage, size, view, phase), view.place.xp
        return lambda X: overwrite(xp, "cos", X @ Omega)


@dataclass
class RandomLogits(RandomProjections):
    """tanh(ω·x + b): a random neuron."""

    kind: ClassVar[str] = "logits"

    def generate(self, stage: int, size: int, view: View) -> Features:
        shifts = streams.normal((1, size), self.seed, stage, "phase")
        Omega, xp = self._projection(stage, size, view, shifts), view.place.xp
        return lambda X: overwrite(xp, "tanh", X @ Omega)


@dataclass
class RandomPolynomials(RandomProjections):
    """(ω·x + b)^2 and (ω·x + b)^3, in equal numbers, up to ``degree``."""

    degree: int = 3
    kind: ClassVar[str] = "polynomials"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.degree <= 6:
            raise OptionError(f"the degree of random polynomials must be 2 to 6; got {self.degree}")

    def generate(self, stage: int, size: int, view: View) -> Features:
        shifts = streams.normal((1, size), self.seed, stage, "phase")
        Omega, xp = self._projection(stage, size, view, shifts), view.place.xp
        bounds = np.linspace(0, size, self.degree).astype(int).tolist()

        def features(X: Array) -> Array:
            P = X @ Omega
            parts = [P[:, a:z] ** power for power, (a, z) in enumerate(zip(bounds, bounds[1:], strict=False), start=2)]
            return xp.concat(parts, axis=1)

        return features
