"""How far training is: lines at doubling counts of examples, and a live line on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from pomona.words import count_words, time_words

if TYPE_CHECKING:
    from pomona.model import Progress

#: Seconds between two drawings of the live line.
_REFRESH = 0.1
HEADER = "    examples  examples/s  loss: last   overall  held out   pass      left"


class ProgressDisplay:
    """Called by training after each chunk; prints to standard error.

    ``last`` is the mean progressive loss since the line before, ``overall`` the mean since the beginning.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty()
        self.next_line = 1000
        self.drawn = 0.0
        self.header_shown = False
        self.latest: Progress | None = None
        self.before: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self.latest = progress
        if progress.examples >= self.next_line:
            self._line(progress)
            while self.next_line <= progress.examples:
                self.next_line *= 2
        elif self.live and time.monotonic() - self.drawn > _REFRESH:
            self._header()
            self.stream.write(f"\r{self._row(progress)}\033[K")
            self.stream.flush()
            self.drawn = time.monotonic()

    def close(self) -> None:
        """Print the line of the last example."""
        if self.latest is not None and self.latest is not self.before:
            self._line(self.latest)

    def clear(self) -> None:
        """Remove the live line, so that something else can be said."""
        if self.live:
            self.stream.write("\r\033[K")

    def _header(self) -> None:
        if not self.header_shown:
            self.stream.write(HEADER + "\n")
            self.header_shown = True

    def _line(self, progress: Progress) -> None:
        self.clear()
        self._header()
        self.stream.write(self._row(progress) + "\n")
        self.stream.flush()
        self.before = progress

    def _row(self, progress: Progress) -> str:
        rate = progress.examples / progress.seconds if progress.seconds > 0 else 0.0
        held_out = "" if progress.held_out is None else f"{progress.held_out:.5f}"
        return (
            f"{progress.examples:>12,} {count_words(rate):>11} {self._since(progress):>11.5f}"
            f" {progress.loss:>9.5f} {held_out:>9}"
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
        if progress.fraction is None:
            return ""
        done = (progress.pass_number - 1 + progress.fraction) / progress.passes
        if done <= 0.0:
            return ""
        return time_words(max(progress.seconds * (1.0 - done) / done, 0.0))
