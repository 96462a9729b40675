"""Contenders of the accuracy benchmarks: one module each.

Each has ``fitter(parts, scratch)``: an object that keeps what several fits share, with ``parts`` and
``fit(method, predict)``, which trains on ``parts.train`` and returns a :class:`Fit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from benchmarks.datasets import Parts


@dataclass(frozen=True)
class Method:
    """How to learn, in words that every contender knows."""

    interactions: str = "linear"
    learning_rate: float = 0.5
    #: Loss of classification; regression is always by squares.
    loss: str = "logistic"


@dataclass(frozen=True)
class Fit:
    """A trained model's progressive validation loss, and its answers for the test part where asked."""

    progressive_loss: float
    #: Class labels, or values.
    predictions: NDArray[Any] | None
    seconds: float


class Fitter(Protocol):
    parts: Parts

    def fit(self, method: Method, predict: bool) -> Fit: ...


def fitter(contender: str, parts: Parts, scratch: Path) -> Fitter:
    """The fitter of a contender for one split of a data set."""
    made: Fitter = import_module(f"benchmarks.fitters.{contender}").fitter(parts, scratch)
    return made
