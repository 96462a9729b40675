"""A race between ways to learn the same examples, judged on every fifth of them, which is held out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Source
from pomona.learner import State
from pomona.model.memory import Examples, MemoryTrainer
from pomona.model.pipeline import Model
from pomona.model.train import ProgressCallback
from pomona.online.learner import OnlineLearner
from pomona.options import LearnOptions

#: Share of the examples that judge.
JUDGES = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A model that has learnt nothing yet, how it would learn, and the examples in its terms."""

    model: Model[OnlineLearner]
    learn: LearnOptions
    examples: Examples
    source: Source

    def judged_as(self, other: Contender) -> Contender:
        """With equal rows counted, and rows held out, as for another contender, whose encoding may differ."""
        rows = other.examples
        chunk = replace(self.examples.chunk, weights=rows.chunk.weights)
        return replace(self, examples=Examples(chunk, rows.rows, rows.copies))

    def with_passes(self, passes: int, decay: bool | None = None) -> Contender:
        """With another number of passes, and maybe another way of the learning rate from pass to pass."""
        decay = self.learn.decay if decay is None else decay
        return replace(self, learn=replace(self.learn, passes=passes, decay=decay))

    def trainer(self, progress: ProgressCallback | None = None) -> MemoryTrainer:
        """What teaches the model all examples."""
        return MemoryTrainer(self.model, self.learn, self.examples, self.source, progress)

    def losses(self) -> NDArray[np.float64]:
        """Learn the examples that do not judge, and predict those that do; the model stays as it is."""
        learnt, judges = self.examples.split(JUDGES)
        start = self.model.learner.state()
        arrays = {name: array.copy() for name, array in start.arrays.items()}
        learner = type(self.model.learner).from_state(State(start.header, arrays))
        trial = Model(self.model.task, learner, target=self.model.target)
        MemoryTrainer(trial, replace(self.learn, polish=False), learnt, self.source).run_passes()
        return judges.losses(trial.learner)


class Race:
    """Finds the contender with the smallest loss; the first wins unless another is better by two standard errors."""

    def __init__(self, first: Contender) -> None:
        self.best = first
        _, judges = first.examples.split(JUDGES)
        self._weights = judges.weights()
        self._losses = first.losses() if len(self._weights) else np.empty(0)
        self._gain = 0.0

    def enter(self, contender: Contender) -> None:
        """Let another one run."""
        if not len(self._weights):
            return
        gains = self._losses - contender.losses()
        gain = float(np.average(gains, weights=self._weights))
        if gain > max(self._gain, 2 * float(gains.std()) / math.sqrt(len(gains))):
            self.best, self._gain = contender, gain
