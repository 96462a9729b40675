"""Times jobs in fresh processes, round-robin over the contenders, so that a noisy moment hits them all."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders import Job, Outcome, module, to_json

ROOT = Path(__file__).resolve().parent.parent


class ContenderError(Exception):
    """A contender failed, or cannot run here."""


def in_child(contender: str, job: Job, step: str = "run", timeout: float | None = None) -> Outcome | None:
    """Run one step of a job in a fresh process."""
    request = json.dumps({"contender": contender, "job": to_json(job), "step": step})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.contenders.child"],
            input=request,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise ContenderError(f"{contender}: took longer than {timeout:.0f} s") from None
    if done.returncode != 0 or not done.stdout:
        raise ContenderError(f"{contender}: ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ContenderError(f"{contender}: {answer['error']}")
    return Outcome(**answer) if step == "run" else None


@dataclass
class Timing:
    """The repeated runs of one contender on one job."""

    contender: str
    job: Job
    outcomes: list[Outcome] = field(default_factory=list)
    error: str | None = None

    @property
    def seconds(self) -> float:
        return statistics.median(outcome.seconds for outcome in self.outcomes)

    @property
    def cpu_seconds(self) -> float:
        return statistics.median(outcome.cpu_seconds for outcome in self.outcomes)

    @property
    def spread(self) -> float:
        """Half the range between the quartiles, as a share of the median."""
        times = [outcome.seconds for outcome in self.outcomes]
        if len(times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        return (high - low) / 2 / self.seconds

    @property
    def peak_mb(self) -> float:
        return statistics.median(outcome.peak_mb for outcome in self.outcomes)

    @property
    def loss(self) -> float | None:
        return self.outcomes[0].loss if self.outcomes else None

    def to_json(self) -> dict[str, Any]:
        return {
            "contender": self.contender,
            "job": asdict(self.job),
            "error": self.error,
            "runs": [asdict(outcome) for outcome in self.outcomes],
        }


def compare(
    entries: Sequence[tuple[str, Job]],
    repeat: int,
    say: Callable[[str], None] = lambda text: None,
    timeout: float | None = None,
) -> list[Timing]:
    """Time every (contender, job), interleaved: one run of each, then the next round."""
    timings = [Timing(contender, job) for contender, job in entries]
    for timing in timings:
        reason = module(timing.contender).missing()
        try:
            if reason:
                raise ContenderError(f"{timing.contender} is not installed: {reason}")
            in_child(timing.contender, timing.job, "prepare", timeout)
        except ContenderError as error:
            timing.error = str(error)
    for turn in range(repeat):
        for timing in timings:
            if timing.error is not None:
                continue
            say(f"round {turn + 1}/{repeat}: {timing.contender}")
            try:
                outcome = in_child(timing.contender, timing.job, "run", timeout)
            except ContenderError as error:
                timing.error = str(error)
                continue
            assert outcome is not None
            timing.outcomes.append(outcome)
    return timings
