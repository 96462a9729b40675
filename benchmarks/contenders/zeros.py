"""Does nothing: its time and memory are what the harness itself costs."""

from __future__ import annotations

from benchmarks.contenders import Clock, Job, Outcome


def missing() -> str | None:
    return None


def run(job: Job) -> Outcome:
    clock = Clock()
    with clock.running():
        pass
    return clock.outcome()
