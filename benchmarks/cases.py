"""What ``speed`` times: for each group the cases, who takes part, and the bars."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import Job
from benchmarks.datasets import Dataset, load, split
from benchmarks.measure import Timing
from benchmarks.onehot import OneHot, features_per_row
from benchmarks.synthetic import DENSE_ROWS, SPARSE_ROWS, Stream, file, read_npz
from benchmarks.text import write_vw

#: The peer's own default, given to pomona too where like is to be compared with like.
PEER_BITS = 18


@dataclass(frozen=True)
class Entry:
    """One contender with its job."""

    label: str
    contender: str
    job: Job
    #: Size of the text behind the job, for MB/s; 0 where that says nothing.
    bytes: int = 0
    learns: bool = True


Seconds = Callable[[dict[str, Timing]], float]


@dataclass(frozen=True)
class Bar:
    """A figure made of the timings of a case, and what it must reach."""

    text: str
    needs: tuple[str, ...]
    figure: Seconds
    bar: float
    unit: str = "x"
    at_least: bool = True


@dataclass(frozen=True)
class Case:
    title: str
    entries: list[Entry]
    #: Features of one pass over the data.
    features: float
    bars: list[Bar] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """The timings of a case by the labels of its entries."""

    case: Case
    timings: dict[str, Timing]

    def verdicts(self) -> list[dict[str, Any]]:
        verdicts = []
        for bar in self.case.bars:
            if not all(self.timings[label].outcomes for label in bar.needs):
                continue
            value = bar.figure(self.timings)
            good = value >= bar.bar if bar.at_least else value <= bar.bar
            verdicts.append(
                {
                    "text": bar.text,
                    "value": value,
                    "bar": bar.bar,
                    "unit": bar.unit,
                    "at_least": bar.at_least,
                    "pass": good,
                }
            )
        return verdicts

    def to_json(self) -> dict[str, Any]:
        timings = {label: timing.to_json() for label, timing in self.timings.items()}
        return {"title": self.case.title, "features": self.case.features, "timings": timings}


def times_faster(text: str, ours: str, peer: str, bar: float) -> Bar:
    """The peer's seconds over ours."""
    return Bar(text, (ours, peer), lambda timings: timings[peer].seconds / timings[ours].seconds, bar)


def _streams(args: argparse.Namespace) -> tuple[Stream, Stream]:
    if args.quick:
        return Stream("sparse", 20_000), Stream("dense", 50_000)
    return Stream("sparse", SPARSE_ROWS), Stream("dense", DENSE_ROWS)


def _quadratic_streams(args: argparse.Namespace) -> tuple[Stream, Stream]:
    if args.quick:
        return Stream("sparse", 2_000), Stream("dense", 20_000)
    return Stream("sparse", 40_000), Stream("dense", 300_000)


def _features(args: argparse.Namespace, stream: Stream, interactions: str = "linear") -> float:
    X, _ = read_npz(file(args.scratch, stream, "npz"))
    return features_per_row(X, interactions) * int(X.shape[0])


def _job(path: Path, form: str, args: argparse.Namespace, **more: Any) -> Job:
    return Job(str(path), form, scratch=str(args.scratch), **more)


def text_cases(args: argparse.Namespace) -> Iterator[Case]:
    for stream in _streams(args):
        path = file(args.scratch, stream, "vw")
        size = path.stat().st_size
        title = f"VW text, linear, {stream.kind}"
        job = _job(path, "vw", args)
        yield Case(
            title,
            [
                Entry("pomona", "pomona", job, size),
                Entry("pomona, 18 bits", "pomona", _job(path, "vw", args, bits=PEER_BITS), size),
                Entry("vw", "vw", job, size),
                Entry("vw, one core", "vw", _job(path, "vw", args, cores=1), size),
            ],
            _features(args, stream),
            [
                times_faster(f"{title}, defaults", "pomona", "vw", 4),
                times_faster(f"{title}, 18 bits", "pomona, 18 bits", "vw", 4),
            ],
        )


def cache_cases(args: argparse.Namespace) -> Iterator[Case]:
    for stream in _streams(args):
        path, matrix = file(args.scratch, stream, "vw"), file(args.scratch, stream, "npz")
        size = path.stat().st_size
        title = f"parsed, linear, {stream.kind}"
        yield Case(
            title,
            [
                Entry("pomona, cache", "pomona", _job(path, "vw", args, cached=True), size),
                Entry("pomona, memory", "pomona", _job(matrix, "npz", args)),
                Entry("pomona, cache, 18 bits", "pomona", _job(path, "vw", args, cached=True, bits=PEER_BITS), size),
                Entry("pomona, memory, 18 bits", "pomona", _job(matrix, "npz", args, bits=PEER_BITS)),
                Entry("vw, cache", "vw", _job(path, "vw", args, cached=True), size),
            ],
            _features(args, stream),
            [
                times_faster(f"{title}: cache", "pomona, cache", "vw, cache", 4),
                times_faster(f"{title}: memory", "pomona, memory", "vw, cache", 4),
                times_faster(f"{title}: cache, 18 bits", "pomona, cache, 18 bits", "vw, cache", 4),
                times_faster(f"{title}: memory, 18 bits", "pomona, memory, 18 bits", "vw, cache", 4),
            ],
        )


def quadratic_cases(args: argparse.Namespace) -> Iterator[Case]:
    for stream in _quadratic_streams(args):
        path, matrix = file(args.scratch, stream, "vw"), file(args.scratch, stream, "npz")
        title = f"VW text, quadratic, {stream.kind}"
        bar = 2 if stream.kind == "sparse" else 4
        job = _job(path, "vw", args, interactions="quadratic")
        entries = [
            Entry("pomona", "pomona", job),
            Entry("pomona, 18 bits", "pomona", _job(path, "vw", args, interactions="quadratic", bits=PEER_BITS)),
            Entry("vw", "vw", job),
        ]
        if stream.kind == "dense":
            entries.append(
                Entry(
                    "sgd + PolynomialFeatures, memory",
                    "sgd",
                    _job(matrix, "npz", args, interactions="quadratic"),
                )
            )
        yield Case(
            title,
            entries,
            _features(args, stream, "quadratic"),
            [
                times_faster(f"{title}, defaults", "pomona", "vw", bar),
                times_faster(f"{title}, 18 bits", "pomona, 18 bits", "vw", bar),
            ],
        )


def parse_cases(args: argparse.Namespace) -> Iterator[Case]:
    for stream in _streams(args):
        for suffix, form in (("vw", "vw"), ("svm", "svmlight")):
            path = file(args.scratch, stream, suffix)
            size = path.stat().st_size
            title = f"parse {form}, {stream.kind}"
            job = _job(path, form, args, work="parse", cores=1)
            peer = Entry("vw --noop", "vw", job, size, False) if form == "vw" else None
            peer = peer or Entry("scikit-learn", "sgd", job, size, False)
            yield Case(
                title,
                [Entry("pomona", "pomona", job, size, False), peer],
                _features(args, stream),
                [_rate_bar(title, size)],
            )
    stream = _streams(args)[1]
    path = file(args.scratch, stream, "csv")
    job = _job(path, "csv", args, work="parse", cores=1)
    size = path.stat().st_size
    # No bar here: pyarrow does this work, and the tables below have theirs.
    yield Case(
        "parse csv, dense",
        [Entry("pomona", "pomona", job, size, False), Entry("pyarrow", "pyarrow", job, size, False)],
        _features(args, stream),
    )


def _rate_bar(title: str, size: int) -> Bar:
    return Bar(title, ("pomona",), lambda timings: size / timings["pomona"].seconds / 1e6, 600, "MB/s")


def table_cases(args: argparse.Namespace) -> Iterator[Case]:
    stream = _streams(args)[1]
    for form in ("csv", "parquet"):
        path = file(args.scratch, stream, form)
        size = path.stat().st_size
        job = _job(path, form, args)
        raw = _job(path, form, args, extra={"numeric": "raw"})
        entries = [
            Entry("pomona", "pomona", job, size),
            Entry("pomona, raw", "pomona", raw, size),
            Entry("pomona, learning alone", "pomona", _job(path, form, args, work="learn")),
            Entry(
                "pomona, raw, learning alone",
                "pomona",
                _job(path, form, args, work="learn", extra={"numeric": "raw"}),
            ),
            Entry("pyarrow stream", "pyarrow", job, size, False),
            Entry("pyarrow whole", "pyarrow", _job(path, form, args, extra={"whole": True}), size, False),
            Entry("sgd", "sgd", job, size),
        ]
        bars = [
            _table_bar(f"{form}, {what} / ({reader} + learning)", what, f"{what}, learning alone", reader)
            for what in ("pomona", "pomona, raw")
            for reader in ("pyarrow stream", "pyarrow whole")
        ]
        yield Case(f"{form} to model, dense", entries, _features(args, stream), bars)


def _table_bar(text: str, ours: str, learning: str, reader: str) -> Bar:
    def figure(timings: dict[str, Timing]) -> float:
        return timings[ours].seconds / (timings[reader].seconds + timings[learning].seconds)

    return Bar(text, (ours, learning, reader), figure, 1.5, at_least=False)


def sgd_cases(args: argparse.Namespace) -> Iterator[Case]:
    # SGDClassifier shuffles every pass, so pomona does too.
    for stream in _streams(args):
        path = file(args.scratch, stream, "npz")
        title = f"a pass over CSR, {stream.kind}"
        entries = [
            Entry(
                f"{contender}, {passes} pass" + ("es" if passes > 1 else ""),
                contender,
                _job(path, "npz", args, passes=passes, extra={"shuffle": True}),
            )
            for passes in (1, 11)
            for contender in ("pomona", "sgd")
        ]
        bar = Bar(title, tuple(entry.label for entry in entries), _pass_ratio, 1)
        yield Case(title, entries, _features(args, stream), [bar])


def _pass_ratio(timings: dict[str, Timing]) -> float:
    def a_pass(contender: str) -> float:
        return timings[f"{contender}, 11 passes"].seconds - timings[f"{contender}, 1 pass"].seconds

    return a_pass("sgd") / a_pass("pomona")


REAL = ("covtype_binary", "bio", "kddcup99")


def real_cases(args: argparse.Namespace) -> Iterator[Case]:
    for name in REAL:
        train = split(load(args.data, name), 0).train
        if args.quick:
            train = train.take(np.arange(20_000))
        stem = f"{name}{'-quick' if args.quick else ''}"
        vw, parquet = args.scratch / f"{stem}.vw", args.scratch / f"{stem}.parquet"
        X = OneHot.fit(train).encode(train)
        codes = _codes(train)
        if not vw.exists():
            write_vw(vw, X, codes.tolist())
        if not parquet.exists():
            train.X.assign(label=codes).to_parquet(parquet)
        reduction = f"--oaa {int(codes.max())}" if train.task == "multiclass" else ""
        classes = np.unique(codes).tolist()
        job = _job(vw, "vw", args, extra={"vw": reduction})
        tables = _job(parquet, "parquet", args, extra={"classes": classes})
        size = vw.stat().st_size
        entries = [
            Entry("pomona, VW text", "pomona", job, size),
            Entry("pomona, Parquet", "pomona", tables, parquet.stat().st_size),
            Entry("vw, VW text", "vw", job, size),
        ]
        if not train.categorical:
            entries.append(Entry("sgd, Parquet", "sgd", tables, parquet.stat().st_size))
        yield Case(f"{name}, {len(train):,} rows", entries, features_per_row(X, "linear") * X.shape[0])


def _codes(train: Dataset) -> NDArray[np.int64]:
    """-1 and 1, or 1 to K: what the peer takes as labels."""
    codes = np.unique(train.y, return_inverse=True)[1].astype(np.int64)
    return codes + 1 if train.task == "multiclass" else 2 * codes - 1


GROUPS: dict[str, Callable[[argparse.Namespace], Iterator[Case]]] = {
    "text": text_cases,
    "cache": cache_cases,
    "quadratic": quadratic_cases,
    "parse": parse_cases,
    "tables": table_cases,
    "sgd": sgd_cases,
    "real": real_cases,
}
