"""What makes features (GEN in Algorithm 3): small objects that are stored by their seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pomona.leastsquares.arrays import Array, Place
from pomona.leastsquares.rows import Rows, gather, spread

#: Turns a block of rows into its features.
Features = Callable[[Array], Array]

#: Rows that statistics of the data are learnt from.
SAMPLE_ROWS = 10_000


@dataclass
class View:
    """What a generator may see: where to compute, how many columns there are and, while learning, the data."""

    place: Place
    d: int
    rows: Rows | None = None
    weights: NDArray[np.float64] | None = None
    #: Length of the gradient of the squared error for each column, at the present predictions.
    gradient: Callable[[], NDArray[np.float64]] | None = None

    def sample(self, most: int = SAMPLE_ROWS) -> tuple[Array, NDArray[np.float64]]:
        """Some rows, evenly spread, and their weights."""
        assert self.rows is not None
        numbers, weights = spread(self.rows.n, self.weights, most)
        return gather(self.rows, numbers), weights


class Generator(Protocol):
    """The one method that Algorithm 3 calls; a function with the same arguments will do as well."""

    def generate(self, stage: int, size: int, view: View) -> Features:
        """At most ``size`` features for a stage, counted from 0.

        Called again with the same stage it must give the same features, also when ``view`` has no data any more:
        what is learnt from data is kept.
        """
        ...


@dataclass
class SeededGenerator:
    """Base of the generators here: parameters that fit into JSON, and arrays learnt from data."""

    kind: ClassVar[str]
    seed: int = 0
    #: What was learnt from data, by name.
    learnt: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, kw_only=True)

    def parameters(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "learnt"}

    def reduction(self, view: View) -> Features | None:
        """What is done once to each row, before all stages; None: nothing."""
        return None

    def generate(self, stage: int, size: int, view: View) -> Features:
        raise NotImplementedError

    def describe(self) -> str:
        own = {k: v for k, v in self.parameters().items() if k != "seed" and v is not None}
        return self.kind + (f" ({', '.join(f'{k} {v}' for k, v in own.items())})" if own else "")


@dataclass
class OwnGenerator:
    """A user's function ``f(stage, size, rng)`` that returns a function of rows."""

    function: Callable[..., Features]
    seed: int = 0
    kind: ClassVar[str] = "own"

    def reduction(self, view: View) -> Features | None:
        return None

    def generate(self, stage: int, size: int, view: View) -> Features:
        made = self.function(stage, size, np.random.default_rng([self.seed, stage]))

        def features(X: Array) -> Array:
            return view.place.put(made(X))

        return features

    def describe(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)
