"""What learns: the interface that every family of pomona implements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk, Source
from pomona.task import Task


@dataclass(frozen=True, slots=True)
class State:
    """Everything a learner knows, ready for a file: plain JSON values and arrays."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Learner(Protocol):
    """Predicts from chunks, explains itself, and goes to a file.

    The laws: the size of the chunks does not matter; ``predict`` changes nothing; a learner made from
    ``state()`` predicts the same bits and goes on exactly where the old one stopped.
    """

    #: Name of the family: in model files and, as a rule, on the command line.
    family: ClassVar[str]

    def predict(self, chunk: Chunk) -> NDArray[np.float64]:
        """Raw predictions: margins or values (n,) or, for several outputs, (n, outputs)."""
        ...

    def finish(self, raw: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
        """Raw predictions to probabilities (of the second class, or of all) or to values."""
        ...

    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        """What there is to see inside, as plain JSON values.

        ``facts`` says it in words, by heading, for people; ``top`` lists the strongest features, each with ``feature``
        (its name), ``weight``, ``scale`` and, with several classes, ``class``; ``ranked_by`` says what makes them so.
        """
        ...

    def state(self) -> State:
        """Everything needed to predict, or to go on, elsewhere."""
        ...

    @classmethod
    def from_state(cls, state: State) -> Learner:
        """The learner that ``state`` described."""
        ...


class StreamLearner(Learner, Protocol):
    """Learns from chunks as they come, in order."""

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


@dataclass(frozen=True, slots=True)
class Step:
    """How far a learner is that goes through the data in its own way."""

    #: What was just done, in a few words: "stage 3", "pass 2: counting".
    words: str
    loss: float | None = None
    held_out: float | None = None
    #: Share of the work that is done, where that is known.
    fraction: float | None = None


class BatchLearner(Learner, Protocol):
    """Learns from a source in passes of its own choice."""

    @classmethod
    def from_options(cls, options: Any, task: Task, fields: list[str]) -> BatchLearner:
        """A learner that has learnt nothing, from the options of its family."""
        ...

    def fit(self, source: Source, report: Callable[[Step], None]) -> dict[str, Any]:
        """Learn; every call of ``source.chunks()`` is a pass over the data.

        Labels of the chunks are numbers: the code of the class, or the target. Returns what the summary of the model
        should say besides the name of the data and the time: at least ``examples`` and ``passes``.
        """
        ...
