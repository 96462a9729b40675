"""Which encoding of numeric columns is the best default: pomona's linear learner, every encoding, every set.

For each data set with numeric columns, and each encoding and number of bins, the learning rate is chosen by
progressive validation loss and the test error is measured over the seeds. The table shows the error of each
encoding as a ratio to that of raw columns, and in the last row the geometric mean over the sets: less is
better.

Every finished run is one line of encodings.jsonl: a stopped benchmark goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
import statistics

import numpy as np

from benchmarks.accuracy import best_rate, test_error, unit_target
from benchmarks.datasets import SPECS, Dataset, Parts, load, split
from benchmarks.fitters import Fitter, Method
from benchmarks.fitters.pomona import Fitter as PomonaFitter
from benchmarks.options import Log, done_saying, machine, say, table, write_json

BINNED = ("hat", "onehot", "hat+raw")
PLAIN = ("raw", "standard")
BINS = (8, 16, 32, 64)
#: Added to errors before a ratio is taken, so that a set that is solved does not decide everything.
FLOOR = 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    tables = tuple(name for name, spec in SPECS.items() if spec.suffix == "parquet")
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=tables,
        default=tables,
        metavar="SET",
        help="data sets (default: every table with numeric columns)",
    )
    parser.add_argument(
        "--numeric",
        nargs="+",
        default=[*PLAIN, *BINNED],
        metavar="ENCODING",
        help=f"encodings (default: {' '.join([*PLAIN, *BINNED])})",
    )
    parser.add_argument("--bins", nargs="+", type=int, default=BINS, help="numbers of bins (default: 8 16 32 64)")
    parser.add_argument("--interactions", choices=("linear", "quadratic"), default="linear", help="default: linear")
    parser.add_argument("--rows", type=int, default=50_000, help="training rows at most (default: 50000)")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="number of seeds (default: 2)")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")


def run(args: argparse.Namespace) -> int:
    log = Log(args.results / "encodings.jsonl", args.fresh)
    configurations = [(numeric, bins) for numeric in args.numeric for bins in _bins(numeric, args.bins)]
    if ("raw", 0) not in configurations:
        configurations.insert(0, ("raw", 0))
    names = []
    for name in args.sets:
        dataset = unit_target(load(args.data, name))
        if len(dataset.X.columns) == len(dataset.categorical) + len(dataset.text):
            continue
        names.append(name)
        for seed in range(args.seeds):
            parts = _cut(split(dataset, seed), args.rows)
            for numeric, bins in configurations:
                say(f"{name} seed {seed}: {numeric} {bins or ''}")
                _run_one(parts, numeric, bins, seed, args, log)
    done_saying()
    _report(names, configurations, args, log)
    return 0


def _bins(numeric: str, bins: list[int]) -> list[int]:
    return [0] if numeric in PLAIN else list(bins)


def _cut(parts: Parts, rows: int) -> Parts:
    def first(dataset: Dataset, n: int) -> Dataset:
        return dataset.take(np.arange(min(n, len(dataset))))

    return Parts(first(parts.train, rows), first(parts.test, rows))


def _run_one(parts: Parts, numeric: str, bins: int, seed: int, args: argparse.Namespace, log: Log) -> None:
    key = {
        "set": parts.train.name,
        "numeric": numeric,
        "bins": bins,
        "interactions": args.interactions,
        "rows": len(parts.train),
    }
    if log.find(seed=seed, **key):
        return
    more = {"bins": bins} if bins else {}
    try:
        fitter = PomonaFitter(parts, numeric=numeric, **more)
        tuned = log.find(seed=0, **key)
        rate = tuned["rate"] if tuned and tuned["rate"] else _best_rate(fitter, args.interactions)
        fit = fitter.fit(Method(args.interactions, rate), True)
        log.add(seed=seed, **key, rate=rate, seconds=fit.seconds, error=test_error(parts.test, fit.predictions))
    except Exception as error:
        log.add(seed=seed, **key, rate=None, error=None, failure=f"{type(error).__name__}: {error}"[:300])
        print(f"failed: {parts.train.name} {numeric} {bins or ''}: {error}")


def _best_rate(fitter: Fitter, interactions: str) -> float:
    return best_rate(lambda rate: fitter.fit(Method(interactions, rate), False).progressive_loss)[0]


def _report(names: list[str], configurations: list[tuple[str, int]], args: argparse.Namespace, log: Log) -> None:
    found: dict[tuple[str, str, int], list[float]] = {}
    for record in log.records:
        if record["interactions"] == args.interactions and record["error"] is not None:
            found.setdefault((record["set"], record["numeric"], record["bins"]), []).append(record["error"])
    errors = {key: statistics.fmean(values) for key, values in found.items()}
    header = [
        "set",
        "raw error",
        *[f"{numeric} {bins or ''}".strip() for numeric, bins in configurations[1:]],
    ]
    rows, ratios = [], {configuration: [] for configuration in configurations}  # type: ignore[var-annotated]
    for name in names:
        raw = errors.get((name, "raw", 0))
        row = [name, "-" if raw is None else f"{raw:.4f}"]
        for configuration in configurations[1:]:
            error = errors.get((name, *configuration))
            if raw is None or error is None:
                row.append("-")
                continue
            ratio = (error + FLOOR) / (raw + FLOOR)
            ratios[configuration].append(ratio)
            row.append(f"{ratio:.3f}")
        rows.append(row)
    means = {c: math.exp(statistics.fmean(map(math.log, r))) for c, r in ratios.items() if r}
    rows.append(["geometric mean", "1", *[f"{means[c]:.3f}" if c in means else "-" for c in configurations[1:]]])
    print(table(header, rows))
    if means:
        best = min(means, key=lambda configuration: means[configuration])
        print(f"best: {best[0]} {best[1] or ''}: {means[best]:.3f} of the error of raw, {len(names)} sets")
    summary = {f"{numeric} {bins or ''}".strip(): mean for (numeric, bins), mean in means.items()}
    write_json(args.results / "encodings.json", {"machine": machine(), "means": summary, "sets": names})
