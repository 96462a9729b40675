"""Generated data with planted monomials: which interactions are there is known, so finding them can be counted.

The target is a sum of monomials, a little of single features, and noise::

    y = sum_m (prod_{f in m} x_f + 0.1 x_m) + noise        with x_m the first factor of m

Features are not negative, as counts and indicators are: then a part of a product says something about the whole
(section 2.3 of the paper), and a greedy search can work at all. Every factor of a planted monomial has a *distractor*:
a feature that goes along with it and has no part in the target.

* ``dense``: every feature in every example, uniform on [0, 1].
* ``binary``: indicators with one chance, as in section 2.3.
* ``sparse``: indicators of a large vocabulary with the frequencies of words; the factors of a planted monomial are
  frequent alone and often together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: How often a distractor goes along with its factor.
FOLLOWS = 0.7
ZIPF = 1.05


@dataclass(frozen=True)
class Planted:
    """A kind of data; ``n`` is the sample size at which all planted monomials are expected to be found."""

    kind: str
    n: int
    d: int
    degree: int
    terms: int = 3
    #: Standard deviation of the noise, where the coefficients of planted monomials are 1.
    noise: float = 0.2
    #: Non-zeros of an example of the sparse kind, without those of planted monomials.
    nonzeros: int = 30

    @property
    def name(self) -> str:
        return f"{self.kind} d={self.d:,} degree {self.degree} n={self.n:,}"

    def factors(self) -> list[tuple[int, ...]]:
        """The planted monomials: features 0, 2, 4 … in order; the one after each is its distractor."""
        return [tuple(range(2 * t * self.degree, 2 * (t + 1) * self.degree, 2)) for t in range(self.terms)]

    def sample(self, seed: int) -> tuple[sparse.csr_matrix, NDArray[np.float64], list[tuple[int, ...]]]:
        """Rows, targets, and the planted monomials as columns of the rows."""
        rng = np.random.default_rng(seed)
        if 2 * self.degree * self.terms > self.d:
            raise ValueError(f"{self.terms} monomials of degree {self.degree} and their distractors need more columns")
        place = rng.permutation(self.d)
        X = _sparse(self, rng, place) if self.kind == "sparse" else _dense(self, rng, place)
        planted = [tuple(sorted(int(place[f]) for f in m)) for m in self.factors()]
        y = self.noise * rng.standard_normal(self.n)
        columns = X.tocsc()
        for m in planted:
            factors = [columns[:, f].toarray().ravel().astype(np.float64) for f in m]
            y += np.prod(factors, axis=0) + 0.1 * factors[0]
        return X, y, planted


def _dense(case: Planted, rng: np.random.Generator, place: NDArray[np.int64]) -> sparse.csr_matrix:
    x = rng.random((case.n, case.d))
    if case.kind == "binary":
        x = (x < 0.5).astype(np.float64)
    for f in [f for m in case.factors() for f in m]:
        follows = rng.random(case.n) < FOLLOWS
        x[follows, f + 1] = x[follows, f]
    moved = np.empty_like(x, dtype=np.float32)
    moved[:, place] = x
    return sparse.csr_matrix(moved)


def _sparse(case: Planted, rng: np.random.Generator, place: NDArray[np.int64]) -> sparse.csr_matrix:
    rows, columns = zip(*_entries(case, rng), strict=True)
    where = np.concatenate(rows), place[np.concatenate(columns)]
    X = sparse.csr_matrix((np.ones(len(where[0]), np.float32), where), shape=(case.n, case.d))
    X.data[:] = 1  # a word that was drawn twice is there once
    return X


def _entries(case: Planted, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns (before they are moved) of what is present."""
    first = 2 * case.degree * case.terms
    mass = np.arange(1, case.d - first + 1, dtype=np.float64) ** -ZIPF
    counts = rng.poisson(case.nonzeros, case.n)
    ranks = np.searchsorted(np.cumsum(mass / mass.sum()), rng.random(counts.sum()))
    yield np.repeat(np.arange(case.n), counts), first + np.minimum(ranks, case.d - first - 1)
    for m in case.factors():
        together = rng.random(case.n) < 0.15
        for f in m:
            present = together | (rng.random(case.n) < 0.2)
            yield np.flatnonzero(present), np.full(int(present.sum()), f)
            follows = (present & (rng.random(case.n) < FOLLOWS)) | (rng.random(case.n) < 0.05)
            yield np.flatnonzero(follows), np.full(int(follows.sum()), f + 1)


CASES = (
    Planted("dense", 10_000, 30, 2),
    Planted("dense", 40_000, 30, 3),
    Planted("binary", 10_000, 50, 2),
    Planted("binary", 20_000, 50, 3),
    Planted("binary", 60_000, 50, 4),
    Planted("sparse", 40_000, 1_000, 2),
    Planted("sparse", 60_000, 100_000, 2),
    Planted("sparse", 60_000, 100_000, 3),
    Planted("sparse", 100_000, 100_000, 4),
)
