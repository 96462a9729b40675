"""Who takes part: one module a contender, all with the same tiny contract.

``missing()``
    The reason why it cannot run here, or None.
``prepare(job)``
    Makes what the job needs before the clock runs (a cache of parsed examples). Called once a job, in a
    process of its own. May be left out.
``run(job)``
    Does the work and returns an :class:`Outcome`. Called in a fresh process each time, so that peak memory
    is the job's own; only the work itself is timed, not the start of the interpreter and the imports.

To add a contender, add a module here and its name to :data:`NAMES`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = ("pomona", "vw", "sgd", "zeros", "pyarrow")


@dataclass(frozen=True)
class Job:
    """One piece of work that can be given to several contenders."""

    data: str
    #: vw, svmlight, csv, parquet or npz (a CSR matrix that is loaded before the clock runs).
    format: str
    #: "train", "predict" or "parse" (read every example and learn nothing).
    work: str = "train"
    #: "linear", "quadratic" or "cubic" (all degrees up to 3).
    interactions: str = "linear"
    #: Read parsed examples from a cache that ``prepare`` made.
    cached: bool = False
    passes: int = 1
    loss: str = "logistic"
    learning_rate: float = 0.5
    #: log2 of the slots of the weight table; None: the contender's default.
    bits: int | None = None
    target: str = "label"
    #: Processor cores the process may use; 0: all.
    cores: int = 0
    #: Folder for caches.
    scratch: str = ""
    #: Anything one contender alone understands.
    extra: dict[str, Any] = field(default_factory=dict)

    def cache_path(self, contender: str) -> Path:
        stem = Path(self.data).name.replace(".", "_")
        return Path(self.scratch) / f"{stem}.{contender}-cache"


@dataclass
class Outcome:
    """What a contender did: the seconds are of the work alone."""

    seconds: float
    cpu_seconds: float
    #: Mean progressive loss, where the contender knows it.
    loss: float | None = None
    examples: int | None = None
    #: Features generated in all, products and the constant counted, where the contender knows it.
    features: int | None = None
    #: Most memory the process held, and what it held before the work began, in MB.
    peak_mb: float = 0.0
    start_mb: float = 0.0


class Clock:
    """Wall and processor seconds of the work inside ``with clock.running():``."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.seconds += time.perf_counter() - wall
        self.cpu_seconds += time.process_time() - cpu

    def outcome(self, **known: Any) -> Outcome:
        return Outcome(self.seconds, self.cpu_seconds, **known)


def module(name: str) -> Any:
    """The module of a contender."""
    if name not in NAMES:
        raise ValueError(f"a contender is one of {', '.join(NAMES)}; got {name!r}")
    return import_module(f"benchmarks.contenders.{name}")


def to_json(job: Job) -> dict[str, Any]:
    return asdict(job)
