"""How far training is: lines at doubling counts of examples, and a live line on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from pomona.words import count_words, loss_words, task_words, time_words

if TYPE_CHECKING:
    from pomona.learner import Step
    from pomona.model import Progress

#: Seconds between two drawings of the live line.
_REFRESH = 0.1
HEADER = "    examples  examples/s  loss: last   overall  held out   pass      left"


class ProgressDisplay:
    """Called by training after each chunk; prints to standard error.

    ``last`` is the mean progressive loss since the line before, ``overall`` the mean since the beginning.

    Parameters
    ----------
    wanted_task : the task that was asked for; None when it is found from the data, and so must be said.
    """

    def __init__(self, wanted_task: str | None = None, stream: TextIO | None = None) -> None:
        self.wanted_task = wanted_task
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty()
        self.next_line = 1000
        self.started = time.monotonic()
        self.drawn = 0.0
        self.header_shown = False
        self.latest: Progress | None = None
        self.before: Progress | None = None

    def __call__(self, progress: Progress | Step) -> None:
        from pomona.learner import Step  # needs numpy, which --help does not

        if isinstance(progress, Step):
            return self._step(progress)
        self.latest = progress
        if progress.examples >= self.next_line:
            self._line(progress)
            while self.next_line <= progress.examples:
                self.next_line *= 2
        elif self.live and time.monotonic() - self.drawn > _REFRESH:
            self._header(progress)
            self.stream.write(f"\r{self._row(progress)}\033[K")
            self.stream.flush()
            self.drawn = time.monotonic()

    def _step(self, step: Step) -> None:
        """A line for each step of a learner that goes through the data in its own way."""
        figures = [(step.loss, "loss"), (step.held_out, "held out")]
        words = [f"{name} {loss_words(value)}" for value, name in figures if value is not None]
        seconds = time.monotonic() - self.started
        if step.fraction:
            words.append(f"{time_words(max(seconds * (1.0 - step.fraction) / step.fraction, 0.0))} left")
        self.stream.write(f"{time_words(seconds):>9}  {', '.join([step.words, *words])}\n")
        self.stream.flush()

    def close(self) -> None:
        """Print the line of the last example."""
        if self.latest is not None and self.latest is not self.before:
            self._line(self.latest)

    def clear(self) -> None:
        """Remove the live line, so that something else can be said."""
        if self.live:
            self.stream.write("\r\033[K")

    def _header(self, progress: Progress) -> None:
        if not self.header_shown:
            self.stream.write(f"{self._task(progress)}\n{HEADER}\n")
            self.header_shown = True

    def _task(self, progress: Progress) -> str:
        words = f"task: {task_words(progress.task.kind, progress.task.classes)}"
        if self.wanted_task:
            return words
        rows = "row" if progress.sample == 1 else f"{progress.sample:,} rows"
        return f"{words} (found from the first {rows}; --task overrides)"

    def _line(self, progress: Progress) -> None:
        self.clear()
        self._header(progress)
        self.stream.write(self._row(progress) + "\n")
        self.stream.flush()
        self.before = progress

    def _row(self, progress: Progress) -> str:
        rate = progress.examples / progress.seconds if progress.seconds > 0 else 0.0
        held_out = "" if progress.held_out is None else loss_words(progress.held_out)
        return (
            f"{progress.examples:>12,} {count_words(rate):>11} {loss_words(self._since(progress)):>11}"
            f" {loss_words(progress.loss):>9} {held_out:>9}"
            f" {f'{progress.pass_number}/{progress.passes}':>6} {self._left(progress):>9}"
        ).rstrip()

    def _since(self, progress: Progress) -> float:
        """Mean loss of the examples since the line before."""
        before = self.before
        if before is None:
            return progress.loss
        count = progress.examples - before.examples
        if count <= 0:
            return progress.loss_last
        return (progress.loss * progress.examples - before.loss * before.examples) / count

    @staticmethod
    def _left(progress: Progress) -> str:
        done = progress.fraction
        return time_words(max(progress.seconds * (1.0 - done) / done, 0.0)) if done else ""
