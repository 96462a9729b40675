"""Training time and generated features a second of apple against the peer's --stage_poly.

On covtype, bio, activity, ijcnn1, adult and w8a from --data (the training part of one split, numbers as they are,
categories one-hot) and on the synthetic sparse and dense streams: the same rows, tables of 18 bits for both, 6 epochs
for both (--batch_sz ceil(n/6) --batch_sz_no_doubling), the same alpha, logistic loss. Training is over parsed data, a
matrix in memory for pomona and the binary cache for the peer, which reads it natively, and from the same VW text. Runs
are interleaved, each in a fresh process; times are medians. Processor seconds stand beside them for machines that are
shared.

Bars, over parsed data: 8 times the peer's generated features a second, on every set and in the median, and 5 times
shorter training on every set, at both alphas. Over parsed data and from text: the median over the sets of time / time
of our linear learner at most 2.7 at alpha 1 and 1.5 at alpha 0.25 (the paper timed whole runs, where reading is the
larger part of a linear learner's time).

--all takes every set of the apple benchmark instead, without the peer, for these last bars alone (squared loss where a
quantity is predicted).

The peer makes two features of a monomial that it reaches on two paths, pomona one: so its features a second count
double work as work, and the shorter time is the stricter bar. "exact" is pomona's default table, without collisions.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apple.methods import Method
from benchmarks.apple.sets import SETS, Examples, read, splits
from benchmarks.contenders import Job
from benchmarks.measure import Timing, compare
from benchmarks.options import done_saying, machine, say, table, write_json
from benchmarks.speed import print_verdicts
from benchmarks.synthetic import Stream, load
from benchmarks.text import write_vw

REAL = ("covtype", "bio", "activity", "ijcnn1", "adult", "w8a")
#: The dense stream is cut: the peer needs more than a minute for all of it.
STREAMS = {"sparse": Stream("sparse", 200_000), "dense": Stream("dense", 100_000)}
ALPHAS = (1.0, 0.25)
BITS = 18
QUICK_ROWS = 10_000
FASTER, SHORTER = 8.0, 5.0
#: Most times the time of the linear learner, by alpha.
COMPARABLE = {1.0: 2.7, 0.25: 1.5}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = (*REAL, *STREAMS)
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=(*names, *SETS),
        metavar="SET",
        help=f"default: {', '.join(names)}; with --all: all",
    )
    parser.add_argument("--all", action="store_true", help="all sets, against our own linear learner only")
    parser.add_argument("--alphas", nargs="+", type=float, default=ALPHAS, metavar="A", help="default: 1 and 0.25")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default: 3)")
    parser.add_argument("--most-rows", type=int, metavar="N", help="the first rows of longer sets")
    parser.add_argument("--quick", action="store_true", help="10,000 rows and two runs: a look, not a result")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="most seconds a run (default: 300)")
    parser.add_argument(
        "--heuristic", default="scaled", help="how pomona chooses parents (default: scaled, the rule of the peer)"
    )


@dataclass(frozen=True)
class Entry:
    """One contender on one set."""

    label: str
    contender: str
    job: Job


def run(args: argparse.Namespace) -> int:
    repeat, rows = (2, QUICK_ROWS) if args.quick else (args.repeat, args.most_rows)
    measured: dict[str, dict[str, Timing]] = {}
    for name in args.sets or (SETS if args.all else (*REAL, *STREAMS)):
        say(f"making the files of {name}")
        try:
            entries = list(_entries(name, rows, args))
        except FileNotFoundError as error:
            print(f"left out: {name}: {error}")
            continue
        jobs = [(entry.contender, entry.job) for entry in entries]
        timings = compare(jobs, repeat, lambda text, name=name: say(f"{name}: {text}"), args.timeout)
        done_saying()
        measured[name] = {entry.label: timing for entry, timing in zip(entries, timings, strict=True)}
        _show(name, measured[name])
    verdicts = bars(measured, tuple(args.alphas))
    print_verdicts(verdicts)
    cases = {name: {label: t.to_json() for label, t in timings.items()} for name, timings in measured.items()}
    stem = "apple-speed" + ("-all" if args.all else "") + ("-quick" if args.quick else "")
    content = {"machine": machine(), "repeat": repeat, "rows": rows, "cases": cases, "bars": verdicts}
    write_json(args.results / f"{stem}.json", content)
    return 0


def _entries(name: str, rows: int | None, args: argparse.Namespace) -> Iterator[Entry]:
    stem = args.scratch / f"apple-{name}{'' if rows is None else rows}"
    text, matrix = stem.with_suffix(".vw"), stem.with_suffix(".npz")
    if not (text.exists() and matrix.exists()):
        _write(_examples(name, args.data).first(rows or 1 << 62), text, matrix)
    made = np.load(matrix)
    n, quantity = int(made["shape"][0]), made["y"].dtype != np.int8
    common = {"scratch": str(args.scratch), "bits": BITS, "loss": "squared" if quantity else "logistic"}

    def ours(label: str, method: Method, bits: int | None = BITS) -> Entry:
        learn = method.options()
        interactions = learn.pop("interactions", "linear")
        if method.alpha is not None:
            learn["heuristic"] = args.heuristic
        job = Job(str(matrix), "npz", interactions=interactions, extra={"learn": learn}, **{**common, "bits": bits})
        return Entry(label, "pomona", job)

    def from_text(label: str, method: Method) -> Entry:
        entry = ours(label, method)
        return Entry(label, "pomona", replace(entry.job, data=str(text), format="vw"))

    def peer(label: str, method: Method, cached: bool = True) -> Entry:
        extra = {"vw": method.peer_options(n), "count": True}
        return Entry(label, "vw", Job(str(text), "vw", cached=cached, extra=extra, **common))

    yield ours("pomona lin", Method("lin"))
    yield from_text("pomona lin, text", Method("lin"))
    for alpha in args.alphas:
        yield ours(f"pomona apple({alpha:g})", Method("apple", alpha))
        yield from_text(f"pomona apple({alpha:g}), text", Method("apple", alpha))
    if args.all:
        return
    yield peer("vw lin", Method("vw-lin"))
    yield peer("vw lin, text", Method("vw-lin"), cached=False)
    for alpha in args.alphas:
        yield ours(f"pomona apple({alpha:g}), exact", Method("apple", alpha), None)
        yield peer(f"vw apple({alpha:g})", Method("vw-apple", alpha))
        yield peer(f"vw apple({alpha:g}), text", Method("vw-apple", alpha), cached=False)


def _examples(name: str, data: Path) -> Examples:
    if name in STREAMS:
        X, y = load(STREAMS[name])
        return Examples(X, y.astype(np.float64))
    return splits(read(data, name), 0, scaled=False).train


def _write(examples: Examples, text: Path, matrix: Path) -> None:
    text.parent.mkdir(parents=True, exist_ok=True)
    y = examples.y if (np.abs(examples.y) != 1).any() else examples.y.astype(np.int8)
    write_vw(text, examples.X, y.tolist())
    X = examples.X.copy()
    X.sum_duplicates()  # sorted, as matrices usually are: otherwise each run would sort it first
    with open(matrix, "wb") as out:
        np.savez(out, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)


def features_a_second(timing: Timing) -> float:
    return (timing.outcomes[0].features or 0) / timing.seconds


def _show(name: str, timings: dict[str, Timing]) -> None:
    rows = []
    for label, timing in timings.items():
        if timing.error is not None or not timing.outcomes:
            print(f"  failed: {label}: {timing.error}")
            continue
        outcome = timing.outcomes[0]
        width = (outcome.features or 0) / max(outcome.examples or 1, 1)
        base = timings[_linear_of(label)]
        relative = f"{timing.seconds / base.seconds:.2f}" if base.outcomes else "-"
        cells = [
            f"{timing.seconds:.3f}",
            f"{100 * timing.spread:.0f} %",
            f"{timing.cpu_seconds:.3f}",
            f"{features_a_second(timing) / 1e6:.1f}",
        ]
        rows.append([label, *cells, f"{width:.0f}", relative, f"{outcome.loss:.4f}", f"{timing.peak_mb:.0f}"])
    print(table([name, "seconds", "spread", "cpu s", "Mf/s", "features", "/ lin", "loss", "peak MB"], rows), "\n")


def _linear_of(label: str) -> str:
    """The linear run that a run is compared with: by the same contender, from the same kind of data."""
    by = label.split()[0]
    return f"{by} lin, text" if label.endswith("text") else f"{by} lin"


def bars(measured: dict[str, dict[str, Timing]], alphas: tuple[float, ...]) -> list[dict[str, Any]]:
    """The figures of the bars, those of every set and then the medians."""
    verdicts = []
    for alpha in alphas:
        speeds = []
        for name, timings in measured.items():
            ours, peer = timings[f"pomona apple({alpha:g})"], timings.get(f"vw apple({alpha:g})")
            if peer and ours.outcomes and peer.outcomes:
                speeds.append(features_a_second(ours) / features_a_second(peer))
                verdicts.append(_verdict(f"{name}, alpha {alpha:g}: features a second", speeds[-1], FASTER))
                verdicts.append(_verdict(f"{name}, alpha {alpha:g}: time", peer.seconds / ours.seconds, SHORTER))
        if len(speeds) > 1:
            text = f"median features a second at alpha {alpha:g}, {len(speeds)} sets"
            verdicts.append(_verdict(text, statistics.median(speeds), FASTER))
    for alpha in [a for a in alphas if a in COMPARABLE]:
        for suffix, words in (("", "parsed data"), (", text", "from text")):
            ratios = _ratios(measured, f"pomona apple({alpha:g}){suffix}")
            if ratios:
                text = f"median time / linear at alpha {alpha:g}, {words}, {len(ratios)} sets"
                verdicts.append(_verdict(text, statistics.median(ratios), COMPARABLE[alpha], at_least=False))
    return verdicts


def _ratios(measured: dict[str, dict[str, Timing]], label: str) -> list[float]:
    """Times as multiples of the linear ones, by set; without end where a run took too long."""
    pairs = [(timings[label], timings[_linear_of(label)]) for timings in measured.values()]
    return [t.seconds / linear.seconds if t.outcomes else math.inf for t, linear in pairs if linear.outcomes]


def _verdict(text: str, value: float, bar: float, at_least: bool = True) -> dict[str, Any]:
    good = value >= bar if at_least else value <= bar
    return {"text": text, "value": value, "bar": bar, "unit": "x", "at_least": at_least, "pass": good}
