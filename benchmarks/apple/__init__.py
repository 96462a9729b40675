"""The experiment of the paper on adaptive polynomial expansions (Agarwal et al. 2014), on the sets in --data.

For every set: 80/20 random splits by seed, sets of several classes as their largest class against the rest, squared
loss (--loss logistic: the second table), 0-1 or squared error on the test part. Methods: lin, quad, cubic (all degrees
up to 3); apple at five values of alpha (6 equal epochs, parents by |w|); ssm likewise; and, with epochs and learning of
products as pomona has them by itself, scaled (parents by |w| times the scale of the feature, which is the peer's rule);
evidence (that times the root of the sum of squared gradients); reach (scaled times the root of the number of examples
that had the feature); default (what a user gets who asks for nothing, with pomona's own encoding of columns, unlike all
others). And the peer: Vowpal Wabbit's --stage_poly with the same number of rounds, and its baselines. The others get
the same rows of the same features: numbers as they are (--scaled: moved to [0, 1]), categories one-hot, word counts.

The learning rate is tuned for each method by progressive validation loss on the first seed's training part: on all of
it, or on as many rows as half of --cell-seconds allows. A method that would take more than --cell-seconds to
learn a set once is left out there, and the tables say so; relative errors then stand on the baselines that ran.

Relative error = (error - best baseline) / (worst baseline - best baseline); relative time = seconds / seconds of lin
(equation 2). Seconds are medians over the seeds of training over parsed data, in memory (pomona) or from the
binary cache (the peer). For times to quote use apple-speed, which interleaves contenders in fresh processes.

Every finished run is one line of apple.jsonl: a stopped benchmark goes on where it stopped. The report is apple.md
and apple.json (Tables 2 and 3 beside the published figures) with Figures 1 to 7 as pictures beside them.
"""

from __future__ import annotations

import argparse
import math
import shutil
from typing import Any

from benchmarks.apple.contenders import Ours, Peer
from benchmarks.apple.methods import (
    ALPHAS,
    BASELINES,
    HEURISTICS,
    PEER,
    PEER_BASELINES,
    Method,
    all_methods,
    seconds_a_row,
)
from benchmarks.apple.report import write_report
from benchmarks.apple.sets import SETS, Split, read, splits
from benchmarks.contenders import module
from benchmarks.datasets import Dataset
from benchmarks.options import Log, done_saying, say

RATES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
QUICK_SETS = ("titanic", "abalone", "mushroom", "ijcnn1", "spambase", "letter")
QUICK_ROWS = 6000
FEWEST_TUNING_ROWS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sets",
        nargs="+",
        metavar="SET",
        help=f"data sets (default: all): {', '.join(SETS)}, or the name of a Parquet file in --data",
    )
    parser.add_argument(
        "--alphas", nargs="+", type=float, default=ALPHAS, metavar="A", help="default: the paper's five"
    )
    names = [*BASELINES, *HEURISTICS, *PEER_BASELINES, PEER]
    parser.add_argument(
        "--methods", nargs="+", choices=names, default=names, metavar="M", help=f"default: all of {', '.join(names)}"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of splits (default: 5; with --quick: 1)")
    parser.add_argument(
        "--rates", nargs="+", type=float, default=RATES, metavar="R", help=f"learning rates to try (default: {RATES})"
    )
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared", help="default: squared")
    parser.add_argument("--scaled", action="store_true", help="numbers moved to [0, 1]")
    parser.add_argument("--no-peer", action="store_true", help="leave Vowpal Wabbit out")
    parser.add_argument(
        "--cell-seconds", type=float, default=60.0, metavar="S", help="most seconds a run (default: 60)"
    )
    parser.add_argument("--most-rows", type=int, metavar="N", help="a random part of larger sets (default: all rows)")
    parser.add_argument(
        "--quick", action="store_true", help="six small sets, few rows, one split: a look, not a result"
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument("--report-only", action="store_true", help="write the report of the runs that are there")


def run(args: argparse.Namespace) -> int:
    if args.quick:
        args.sets, args.seeds = args.sets or QUICK_SETS, args.seeds or 1
        args.most_rows, args.rates = (
            args.most_rows or QUICK_ROWS,
            args.rates if args.rates != RATES else (0.25, 0.5, 1.0),
        )
    args.sets, args.seeds = args.sets or SETS, args.seeds or 5
    log = Log(args.results / "apple.jsonl", args.fresh)
    peer = not args.no_peer
    if peer and (reason := module("vw").missing()):
        print(f"left out: vw: {reason}")
        peer = False
    if not args.report_only:
        for number, name in enumerate(args.sets, start=1):
            say(f"set {number} of {len(args.sets)}: {name}")
            try:
                dataset = read(args.data, name, args.most_rows)
            except FileNotFoundError as error:
                print(f"left out: {error}")
                continue
            methods = [m for m in all_methods(peer, tuple(args.alphas)) if m.name in args.methods]
            Runner(dataset, methods, args, log).run()
    done_saying()
    write_report(log, args)
    return 0


class Runner:
    """All runs of one set."""

    def __init__(self, dataset: Dataset, methods: list[Method], args: argparse.Namespace, log: Log) -> None:
        self.dataset, self.methods, self.args, self.log = dataset, methods, args, log
        loss = "squared" if dataset.task == "regression" else args.loss
        self.key: dict[str, Any] = {
            "set": dataset.name, "loss": loss, "scaled": args.scaled, "rows": len(dataset),
        }  # fmt: skip

    def _key(self, method: Method) -> dict[str, Any]:
        return {**self.key, "method": method.name, "alpha": method.alpha}

    def run(self) -> None:
        for seed in range(self.args.seeds):
            done = {"kind": "run", "seed": seed, "failure": None}  # what failed is tried again
            waiting = [m for m in self.methods if not self.log.find(**done, **self._key(m))]
            if waiting:
                self._run_split(splits(self.dataset, seed, self.args.scaled), seed, waiting)

    def _run_split(self, split: Split, seed: int, methods: list[Method]) -> None:
        ours, peer = Ours(split, self.args.loss), None
        scratch = self.args.scratch / "apple" / split.name
        for method in methods:
            say(f"{split.name} seed {seed}: {method.label}")
            if method.by_peer and peer is None:
                peer = Peer(split, self.args.loss, scratch)
            record = {"kind": "run", "seed": seed, **self._key(method), "task": split.task}
            record |= {"d": split.train.X.shape[1], "nonzeros": split.nonzeros, "train_rows": len(split.train)}
            record |= self._outcome(split, peer if method.by_peer and peer else ours, method)
            self.log.add(**record)
            if "failure" in record:
                print(f"failed: {split.name} {method.label}: {record['failure']}")
        shutil.rmtree(scratch, ignore_errors=True)

    def _outcome(self, split: Split, contender: Ours | Peer, method: Method) -> dict[str, Any]:
        expected = seconds_a_row(method, split.train.X) * len(split.train)
        if expected > self.args.cell_seconds:
            return {"left_out": f"about {expected:.0f} s"}
        try:
            rate = self._tuned_rate(split, contender, method)
            fit = contender.fit(method, rate, len(split.train), True)
            assert fit.predictions is not None
            error = split.error(fit.predictions)
        except Exception as error_met:
            return {"failure": f"{type(error_met).__name__}: {error_met}"[:300]}
        return {"rate": rate, "error": error, "seconds": fit.seconds, "features": fit.features, "loss_seen": fit.loss}

    def _tuned_rate(self, split: Split, contender: Ours | Peer, method: Method) -> float:
        known = self.log.find(kind="tuning", **self._key(method))
        if known is None:
            budget = self.args.cell_seconds / 2 / len(self.args.rates)
            rows = int(max(budget / seconds_a_row(method, split.train.X), FEWEST_TUNING_ROWS))
            losses: dict[str, float] = {}
            for rate in self.args.rates:
                say(f"{split.name} {method.label}: tuning, rate {rate}")
                losses[str(rate)] = _loss(contender, method, rate, rows)
            tuned = min(rows, len(split.train))
            known = self.log.add(kind="tuning", **self._key(method), losses=losses, tuning_rows=tuned)
        finite = {rate: loss for rate, loss in known["losses"].items() if math.isfinite(loss)}
        if not finite:
            raise RuntimeError("no learning rate gave a finite progressive loss")
        return float(min(finite, key=lambda rate: finite[rate]))


def _loss(contender: Ours | Peer, method: Method, rate: float, rows: int) -> float:
    """The progressive loss; infinite where the rate makes predictions overflow."""
    from pomona.errors import NumericError

    try:
        return contender.fit(method, rate, rows, False).loss
    except NumericError:
        return math.inf
