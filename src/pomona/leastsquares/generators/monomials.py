"""Products of columns that somebody chose, such as the monomials that apple found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from pomona.errors import OptionError
from pomona.leastsquares.arrays import Array
from pomona.leastsquares.generators.base import Features, SeededGenerator, View
from pomona.leastsquares.generators.columns import blocks_in_pass


@dataclass
class Monomials(SeededGenerator):
    """Monomials in the given order, a block a stage, and from the beginning when they are all used.

    Parameters
    ----------
    terms : the columns whose product each monomial is: ``[(0,), (0, 1), (2, 2, 5)]``.
    """

    terms: Sequence[Sequence[int]] = ((0,),)
    kind: ClassVar[str] = "monomials"

    def __post_init__(self) -> None:
        if not self.terms or min(map(len, self.terms)) < 1 or min(map(min, self.terms)) < 0:
            raise OptionError("the terms of monomials are lists of columns, such as [(0,), (0, 1)]; got an empty one")

    def generate(self, stage: int, size: int, view: View) -> Features:
        most = max(map(max, self.terms))
        if most >= view.d:
            raise OptionError(f"the monomials use column {most}, but the data has {view.d} columns")
        block = stage % blocks_in_pass(len(self.terms), size)
        terms = self.terms[block * size : (block + 1) * size]
        degree = max(map(len, terms))
        # The column after the last is 1, which shorter monomials are filled up with.
        padded = np.array([[*term, *[view.d] * (degree - len(term))] for term in terms], np.int64)
        place, xp = view.place, view.place.xp
        factors = [place.integers(column) for column in padded.T]

        def features(X: Array) -> Array:
            X = place.put(X.toarray()) if sparse.issparse(X) else X
            X = xp.concat([X, place.ones(int(X.shape[0]), 1)], axis=1)
            Z = xp.take(X, factors[0], axis=1)
            for factor in factors[1:]:
                Z = Z * xp.take(X, factor, axis=1)
            return Z

        return features
