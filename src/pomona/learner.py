"""What learns: the one interface that every family of pomona implements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk


@dataclass(frozen=True, slots=True)
class State:
    """Everything a learner knows, ready for a file: plain JSON values and arrays."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Learner(Protocol):
    """Learns from chunks, in order, and predicts.

    The laws: the size of the chunks does not matter; ``predict`` changes nothing; a learner made from
    ``state()`` goes on exactly where the old one stopped.
    """

    def prepare(self, chunk: Chunk) -> Chunk:
        """The chunk in the learner's own terms, for use in ``learn`` now or in later passes; notes new features.

        ``learn`` prepares what was not prepared. Training that keeps chunks (to shuffle them, to cache them) keeps
        prepared ones.
        """
        ...

    def learn(
        self, chunk: Chunk, labels: NDArray[np.float64], order: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Learn the examples one after the other (in ``order``, where given).

        Returns the raw prediction for each example made just before learning it (progressive validation), one
        column a class for multi-class tasks; rows that ``order`` leaves out are NaN.
        """
        ...

    def end_pass(self) -> None:
        """The data has been seen once more."""
        ...

    def predict(self, chunk: Chunk) -> NDArray[np.float64]:
        """Raw predictions: margins (n,) or, for multi-class tasks, (n, classes)."""
        ...

    def state(self) -> State:
        """Everything needed to predict, or to go on, elsewhere."""
        ...
