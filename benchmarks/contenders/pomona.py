"""pomona itself, through the same doors as its users."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.contenders import Clock, Job, Outcome
from benchmarks.synthetic import read_npz


def missing() -> str | None:
    return None if find_spec("pomona") else "pip install ."


def _options(job: Job) -> dict[str, Any]:
    from pomona.options import EncodeOptions, LearnOptions, ReadOptions

    table = job.format in ("csv", "parquet")
    encode = {name: job.extra[name] for name in ("numeric", "bins") if name in job.extra}
    return {
        "read": ReadOptions(
            format=None if job.format == "npz" or job.cached else job.format,
            target=job.target if table else None,
            threads=job.cores or None,
        ),
        "encode": EncodeOptions(**encode),
        "learn": LearnOptions(
            loss=None if "classes" in job.extra or "--oaa" in job.extra.get("vw", "") else job.loss,
            interactions=job.interactions,
            learning_rate=job.learning_rate,
            bits=job.bits,
            passes=job.passes,
            # In the order of the data, as the peer learns, unless a case says otherwise.
            shuffle=job.extra.get("shuffle", False),
            **job.extra.get("learn", {}),
        ),
    }


def prepare(job: Job) -> None:
    if not job.cached:
        return
    from pomona.source import open_source
    from pomona.source.cache import write_cache

    cache = job.cache_path("pomona").with_suffix(".arrow")
    if not cache.exists():
        source: Any = open_source(job.data, _options(job)["read"])
        write_cache(source, str(cache))


#: What pomona imports when a format is first used: loaded before the clock runs, as for every contender.
IMPORTS = {
    "vw": ("pomona.source.vw", "pomona.source.cache", "pomona.source.parquet"),
    "svmlight": ("pomona.source.svmlight",),
    "csv": ("pomona.source.csv", "pyarrow.csv"),
    "parquet": ("pomona.source.parquet", "pyarrow.parquet", "pyarrow.dataset"),
    "npz": ("pomona.source.arrays",),
}


def run(job: Job) -> Outcome:
    for name in ("pomona.model", "pomona.encode", *IMPORTS[job.format]):
        import_module(name)
    work = {"train": _train, "parse": _parse, "learn": _learn_alone}[job.work]
    return work(job)


def _matrix(job: Job) -> Any:
    from pomona.source.arrays import ArraySource

    return ArraySource(*read_npz(Path(job.data)))


def _train(job: Job) -> Outcome:
    from pomona.model import train

    data: Any = job.data
    if job.format == "npz":
        data = _matrix(job)
    elif job.cached:
        data = str(job.cache_path("pomona").with_suffix(".arrow"))
    clock = Clock()
    with clock.running():
        model = train(data, **_options(job))
    return _outcome(clock, model)


def _outcome(clock: Clock, model: Any) -> Outcome:
    return clock.outcome(**{name: model.summary[name] for name in ("loss", "examples", "features")})


def _parse(job: Job) -> Outcome:
    from pomona.source import open_source

    clock = Clock()
    with clock.running():
        source = open_source(job.data, _options(job)["read"])
        parts = source.chunks() if hasattr(source, "chunks") else source.batches()
        examples = sum(_rows(part) for part in parts)
    return clock.outcome(examples=examples)


def _rows(part: Any) -> int:
    return int(part.num_rows) if hasattr(part, "num_rows") else len(part)


class InMemory:
    """Encoded chunks as a source, so that learning can be timed alone."""

    def __init__(self, source: Any) -> None:
        self.kept = list(source.chunks())
        self.name = source.name
        self.fields = source.fields
        self.n_examples = sum(len(chunk) for chunk in self.kept)
        self.reads_cheaply = True
        self.rewinds = True

    def first(self, rows: int) -> InMemory:
        """The first examples."""
        part = copy.copy(self)
        part.kept, left = [], rows
        for chunk in self.kept:
            if left > 0:
                part.kept.append(chunk.slice(0, min(len(chunk), left)))
                left -= len(chunk)
        part.n_examples = min(rows, self.n_examples)
        return part

    def pick(self, rows: Iterable[int]) -> InMemory:
        """Some of the examples."""
        from pomona.chunk import concatenate

        whole, part = concatenate(self.kept), copy.copy(self)
        part.kept = [concatenate([whole.slice(i, i + 1) for i in rows])]
        part.n_examples = len(part.kept[0])
        return part

    def chunks(self) -> Iterator[Any]:
        yield from self.kept

    def fraction_read(self) -> float | None:
        return None


def _learn_alone(job: Job) -> Outcome:
    from pomona.encode import EncodedSource, TableEncoder
    from pomona.model import train
    from pomona.source import open_source

    options = _options(job)
    tables: Any = open_source(job.data, options["read"])
    encoder = TableEncoder.fit(tables, options["read"], options["encode"])
    source = InMemory(EncodedSource(tables, encoder))
    clock = Clock()
    with clock.running():
        model = train(source, learn=options["learn"])
    return _outcome(clock, model)
