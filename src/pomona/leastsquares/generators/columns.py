"""Blocks of the original features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.leastsquares import streams
from pomona.leastsquares.arrays import Array, Place
from pomona.leastsquares.generators.base import Features, SeededGenerator, View


def columns(numbers: NDArray[np.int64], place: Place) -> Features:
    """The given columns of a block; of a sparse one, sparse."""
    index = place.integers(numbers)

    def features(X: Array) -> Array:
        return X[:, numbers] if sparse.issparse(X) else place.xp.take(X, index, axis=1)

    return features


def blocks_in_pass(d: int, size: int) -> int:
    return max(1, -(-d // size))


@dataclass
class SampledColumns(SeededGenerator):
    """Columns drawn without replacement; when all were drawn, a new pass begins in a new order."""

    kind: ClassVar[str] = "sample"

    def generate(self, stage: int, size: int, view: View) -> Features:
        number, block = divmod(stage, blocks_in_pass(view.d, size))
        order = streams.permutation(view.d, self.seed, number, "columns")
        return columns(np.sort(order[block * size : (block + 1) * size]), view.place)


@dataclass
class GradientOrder(SeededGenerator):
    """Columns in falling order of the gradient's length (the text recipe of appendix A.2.2).

    The order is found anew at the beginning of each pass over the columns, or (``every_stage``) at each stage among
    the columns that the pass has not used yet.
    """

    every_stage: bool = False
    kind: ClassVar[str] = "gradient"

    def generate(self, stage: int, size: int, view: View) -> Features:
        name = f"columns_{stage}"
        if name not in self.learnt:
            self.learnt[name] = self._choose(stage, size, view)
        return columns(self.learnt[name].astype(np.int64), view.place)

    def _choose(self, stage: int, size: int, view: View) -> NDArray[np.int32]:
        assert view.gradient is not None
        block = stage % blocks_in_pass(view.d, size)
        if block and not self.every_stage:
            return self.learnt["order"][block * size : (block + 1) * size]
        strength = view.gradient()
        for used in range(stage - block, stage):
            strength[self.learnt[f"columns_{used}"]] = -1.0
        order = np.argsort(-strength, kind="stable").astype(np.int32)
        self.learnt["order"] = order
        return np.asarray(order[:size][strength[order[:size]] >= 0])
