"""Test error of pomona and of the peer on every data set in --data.

Both get the same split (80/20 by seed, or the official test part), the same loss and the same grid of
learning rates, which is made longer where the best stands at its end. The rate is chosen by progressive
validation loss on the training part of the first seed, for each contender on its own. pomona encodes the
columns by its defaults. The peer gets what its users do: numbers scaled to [0, 1], one-hot categories, counts of
words, as VW text; all products up to the degree of the method (`-q ::`, and `-q :: --cubic :::`), one against
all for several classes, and a roomy table.

Errors are the share of wrong answers, and 1 - R^2 for regression (target scaled to [0, 1] for both). A cell
that would keep the peer busy for more than --cell-seconds is cut to fewer rows for both; the table says so.

Every finished run is one line of accuracy.jsonl: a stopped benchmark goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import module
from benchmarks.datasets import SPECS, Dataset, Parts, load, split
from benchmarks.fitters import Fitter, Method, fitter
from benchmarks.onehot import OneHot, features_per_row
from benchmarks.options import Log, done_saying, machine, say, table, write_json

METHODS = ("linear", "quadratic", "cubic")
RATES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
#: How far the grid is made longer where the best rate stands at its end.
LOWEST, HIGHEST = 1e-3, 200.0
OURS, PEER, CONSTANT = "pomona", "vw", "zeros"
#: Features a second of the peer, pessimistic, to know beforehand what a cell will cost.
PEER_RATE = {"linear": 30e6, "quadratic": 60e6, "cubic": 40e6}
#: A cell with fewer training rows than this says nothing and is left out.
FEWEST_ROWS = 300


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=tuple(SPECS),
        default=tuple(SPECS),
        metavar="SET",
        help=f"data sets (default: all): {', '.join(SPECS)}",
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="default: all three")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="number of seeds (default: 5)")
    parser.add_argument(
        "--loss",
        choices=("logistic", "squared", "hinge"),
        default="logistic",
        help="loss of classification, for both (default: logistic)",
    )
    parser.add_argument(
        "--cell-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="most seconds the peer may need for tuning and one run (default: 60)",
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument("--report-only", action="store_true", help="print the table of the runs that are there")


@dataclass(frozen=True)
class Cell:
    """One data set with one method: what is run for every contender and seed."""

    dataset: Dataset
    interactions: str
    #: Training rows, and whether that is fewer than there are.
    rows: int
    cut: bool
    loss: str

    @property
    def key(self) -> dict[str, Any]:
        return {"set": self.dataset.name, "method": self.interactions, "loss": self.loss, "rows": self.rows}


def run(args: argparse.Namespace) -> int:
    log = Log(args.results / "accuracy.jsonl", args.fresh)
    contenders = [name for name in (CONSTANT, PEER, OURS) if not _is_missing(name)]
    shown: list[dict[str, Any]] = []
    for name in args.sets:
        dataset = unit_target(load(args.data, name))
        cells = []
        for cell in _cells(dataset, args):
            if cell.cut and cell.rows < FEWEST_ROWS:
                print(f"left out: {name} {cell.interactions}: time for {cell.rows} rows only")
            else:
                cells.append(cell)
        if not args.report_only:
            _run_set(cells, contenders, args, log)
        shown += [{**cell.key, "task": dataset.task, "cut": cell.cut} for cell in cells]
        shutil.rmtree(args.scratch / "accuracy" / name, ignore_errors=True)
    done_saying()
    report(shown, args, log)
    return 0


def _is_missing(name: str) -> bool:
    reason = module(name).missing()
    if reason:
        print(f"left out: {name}: {reason}")
    return bool(reason)


def unit_target(dataset: Dataset) -> Dataset:
    if dataset.task != "regression":
        return dataset
    low, high = dataset.y.min(), dataset.y.max()
    return replace(dataset, y=(dataset.y - low) / (high - low))


def _cells(dataset: Dataset, args: argparse.Namespace) -> Iterator[Cell]:
    train = split(dataset, 0).train
    sample = train.take(np.arange(min(len(train), 5000)))
    X = OneHot.fit(sample).encode(sample)
    outputs = len(np.unique(dataset.y)) if dataset.task == "multiclass" else 1
    for interactions in args.methods:
        a_row = features_per_row(X, interactions) * outputs / PEER_RATE[interactions]
        rows = int(args.cell_seconds / (len(RATES) + 1) / a_row)
        loss = "squared" if dataset.task == "regression" else args.loss
        yield Cell(dataset, interactions, min(rows, len(train)), rows < len(train), loss)


def _parts(cell: Cell, seed: int) -> Parts:
    parts = split(cell.dataset, seed)
    if not cell.cut:
        return parts
    # The test part is cut in proportion: predicting costs what learning does.
    share = cell.rows / len(parts.train)
    test_rows = max(math.ceil(len(parts.test) * share), min(len(parts.test), 2000))
    return Parts(parts.train.take(np.arange(cell.rows)), parts.test.take(np.arange(test_rows)))


def _run_set(cells: list[Cell], contenders: list[str], args: argparse.Namespace, log: Log) -> None:
    """All runs of one data set; methods that use the same rows share what a contender made of them."""
    for seed in range(args.seeds):
        for contender in contenders:
            fitters: dict[int, Fitter] = {}
            for cell in cells:
                key = {**cell.key, "contender": contender}
                if log.find(kind="run", seed=seed, **key):
                    continue
                say(f"{cell.dataset.name} {cell.interactions} seed {seed}: {contender}")
                try:
                    log.add(kind="run", seed=seed, **key, **_run_one(cell, seed, contender, fitters, args, log))
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"[:300]
                    log.add(kind="run", seed=seed, **key, error=None, failure=reason)
                    print(f"failed: {cell.dataset.name} {cell.interactions} {contender}: {reason}")


def _run_one(
    cell: Cell, seed: int, contender: str, fitters: dict[int, Fitter], args: argparse.Namespace, log: Log
) -> dict[str, Any]:
    if cell.rows not in fitters:
        scratch = args.scratch / "accuracy" / cell.dataset.name / f"{contender}{cell.rows}"
        fitters[cell.rows] = fitter(contender, _parts(cell, seed), scratch)
    one = fitters[cell.rows]
    rate = _tuned_rate(one, contender, cell, seed, log)
    fit = one.fit(Method(cell.interactions, rate, cell.loss), True)
    error = test_error(one.parts.test, fit.predictions)
    return {
        "rate": rate,
        "seconds": fit.seconds,
        "cut": cell.cut,
        "progressive_loss": fit.progressive_loss,
        "error": error,
    }


def _tuned_rate(one: Fitter, contender: str, cell: Cell, seed: int, log: Log) -> float:
    if contender == CONSTANT:
        return 0.0
    key = {**cell.key, "contender": contender}
    known = log.find(kind="tuning", **key)
    if known is None:

        def loss_at(rate: float) -> float:
            say(f"{cell.dataset.name} {cell.interactions} {contender}: tuning, rate {rate}")
            return one.fit(Method(cell.interactions, rate, cell.loss), False).progressive_loss

        rate, losses = best_rate(loss_at)
        known = log.add(kind="tuning", seed=seed, **key, rate=rate, losses=losses)
    return float(known["rate"])


def best_rate(loss_at: Callable[[float], float]) -> tuple[float, dict[float, float]]:
    """The best rate of the grid, which is made longer as long as the best stands at its end; and all losses."""

    def loss(rate: float) -> float:
        found = loss_at(rate)
        return found if math.isfinite(found) else math.inf

    losses = {rate: loss(rate) for rate in RATES}
    while True:
        best = min(losses, key=lambda rate: losses[rate])
        if losses[best] == math.inf:
            raise RuntimeError("no learning rate gave a finite progressive loss")
        further = best * 2 if best == max(losses) else best / 2 if best == min(losses) else None
        if further is None or not LOWEST <= further <= HIGHEST:
            return best, losses
        losses[further] = loss(further)


def test_error(test: Dataset, predictions: NDArray[Any] | None) -> float:
    """Share of wrong answers, or 1 - R^2."""
    assert predictions is not None and len(predictions) == len(test)
    if test.task == "regression":
        return float(np.mean((predictions - test.y) ** 2) / np.var(test.y))
    return float(np.mean(predictions != test.y))


@dataclass(frozen=True)
class Verdict:
    """How two lists of errors, paired by seed, compare."""

    word: str
    #: Mean of ours minus the peer's, and its standard error.
    difference: float
    error: float
    #: Standard error of that difference if the seeds of the two had nothing in common.
    unpaired_error: float

    @property
    def is_apart(self) -> bool:
        """Whether we are worse by two standard errors of the means themselves."""
        return self.difference > 2 * self.unpaired_error

    @classmethod
    def of(cls, ours: list[float], peer: list[float]) -> Verdict:
        differences = [a - b for a, b in zip(ours, peer, strict=True)]
        mean = statistics.fmean(differences)
        error = standard_error(differences)
        if mean < 0:
            word = "better*" if mean < -2 * error else "better"
        elif mean == 0:
            word = "equal"
        else:
            word = "no worse" if mean <= 2 * error else "WORSE"
        return cls(word, mean, error, math.hypot(standard_error(ours), standard_error(peer)))


def standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def report(cells: list[dict[str, Any]], args: argparse.Namespace, log: Log) -> None:
    """Print the table of the cells and the count, and write both."""
    rows, words, written, apart = [], [], [], 0
    for cell in cells:
        key = {k: cell[k] for k in ("set", "method", "loss", "rows")}
        errors = {who: _errors(log, who, key, args.seeds) for who in (CONSTANT, PEER, OURS)}
        verdict = None
        if errors[PEER] and len(errors[PEER]) == len(errors[OURS]):
            verdict = Verdict.of(errors[OURS], errors[PEER])
            words.append(verdict.word)
            apart += verdict.is_apart
        rows.append(
            [
                cell["set"],
                cell["method"],
                f"{cell['rows']:,}" + (" cut" if cell["cut"] else ""),
                _shown(errors[CONSTANT], False),
                _shown(errors[PEER]),
                _shown(errors[OURS]),
                _rate(log, PEER, key),
                _rate(log, OURS, key),
                verdict.word if verdict else "-",
            ]
        )
        written.append({**cell, "errors": errors, "verdict": verdict.word if verdict else None})
    print(table(["set", "method", "rows", "constant", "peer", "pomona", "rate", "rate", "verdict"], rows))
    print(count(words))
    print("better*: by more than two standard errors of the paired difference; WORSE: likewise.")
    print(f"worse by more than two standard errors of the means themselves: {apart}")
    write_json(args.results / "accuracy.json", {"machine": machine(), "count": count(words), "cells": written})


def count(words: list[str]) -> str:
    """The bar: nowhere worse, and better on at least half."""
    worse, better = words.count("WORSE"), sum(word.startswith("better") for word in words)
    mark = "pass" if words and worse == 0 and 2 * better >= len(words) else "FAIL"
    return (
        f"{len(words)} cells: better {better} (by two s.e. {words.count('better*')}),"
        f" equal {words.count('equal')},"
        f" no worse {words.count('no worse')}, worse {worse}: {mark} (bar: worse 0, better on at least half)"
    )


def _errors(log: Log, contender: str, key: dict[str, Any], seeds: int) -> list[float]:
    found = [log.find(kind="run", contender=contender, seed=seed, **key) for seed in range(seeds)]
    return [record["error"] for record in found if record and record["error"] is not None]


def _shown(errors: list[float], with_error: bool = True) -> str:
    if not errors:
        return "-"
    mean = f"{statistics.fmean(errors):.4f}"
    return f"{mean} ± {standard_error(errors):.4f}" if with_error else mean


def _rate(log: Log, contender: str, key: dict[str, Any]) -> str:
    record = log.find(kind="run", contender=contender, **key)
    return f"{record['rate']:g}" if record and record.get("rate") is not None else "-"
