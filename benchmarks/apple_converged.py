"""apple after many passes against converged solvers, and on high-dimensional text.

poly2: on the sets where scikit-learn's PolynomialFeatures(2) with a converged solver is feasible, and on the others
with a converged linear model: the rows of the split with seed 0 (the official parts where there are some), the
original classes. AppleClassifier and AppleRegressor learn with passes="auto", nothing tuned, from the
columns by their own encoding (--numeric), which their time includes. linear and poly2 are run here too (standardised
numbers, one-hot categories, LogisticRegression or least squares, package defaults but max_iter=1000; their time is of
the solver alone), where their matrix has at most 20 million entries; beside them stand the
figures of one run of established learners under the same protocol. Errors are 0-1 errors or 1 - R^2. Bars, against
those figures: no worse than poly2 on 80 % of the sets where it ran, no worse than linear on every set. Where a test
part has fewer than 1,000 rows, where one row more or less decides, all are run on ten random splits, and the means
compared. On sets of 10,000 rows or more apple also makes 1, 2, 5 and 10 passes: the fewest that are no worse than
poly2, by test error, say how soon it is.

text: 20 newsgroups and Reuters-21578 as hashed unigrams, one class against the rest and all classes, one pass. Bars:
apple(0.25) within twice the time of linear from the documents to the model, error below linear (see apple_text.py).

Every finished run is one line of apple-converged.jsonl: a stopped benchmark goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import apple_text
from benchmarks.accuracy import test_error
from benchmarks.contenders import Clock
from benchmarks.datasets import Parts, load, split
from benchmarks.onehot import OneHot
from benchmarks.options import Log, done_saying, machine, table, write_json

#: Rows from which on time matters: of larger sets, and of the largest. Passes that may be enough.
LARGER, LARGEST = 10_000, 20_000
FEW_PASSES = (1, 2, 5, 10)
#: Test parts with fewer rows say little alone: so many random splits are made instead.
FEW_TEST_ROWS, SPLITS = 1000, 10
#: Entries of the expanded training matrix beyond which a peer is not run here.
MOST_ENTRIES = 20_000_000


def known_peers() -> dict[str, dict[str, tuple[float, float]]]:
    """Error and processor seconds by set and learner."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with open(Path(__file__).parent / "apple" / "peers.csv") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["set"], {})[row["learner"]] = (float(row["error"]), float(row["cpu_seconds"]))
    return found


#: Split otherwise for the peers' figures (by its source), so that only what is run here can be compared.
SPLIT_OTHERWISE = ("ipinyou_sample",)
#: Names of the peers' figures that are not ours.
NAMES = {"kddcup99_10pct": "kddcup99"}


def converged_sets() -> list[str]:
    """Sets with a figure for linear, those with poly2 first."""
    known = known_peers()
    names = sorted(known, key=lambda name: "poly2" not in known[name])
    return [NAMES.get(name, name) for name in names if "linear" in known[name] and name not in apple_text.SETS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=("poly2", "text"), default=("poly2", "text"), help="default: both")
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help=f"of {', '.join([*converged_sets(), *apple_text.SETS])}"
    )
    parser.add_argument(
        "--alpha", type=lambda a: a if a == "auto" else float(a), default="auto", help="of these runs (default: auto)"
    )
    parser.add_argument("--heuristic", default="auto", help="how parents are chosen (default: auto)")
    parser.add_argument("--numeric", default="auto", help="encoding of numeric columns (default: auto)")
    parser.add_argument("--polish", action="store_true", help="refit the strongest weights by least squares in the end")
    parser.add_argument("--most-rows", type=int, metavar="N", help="the first training rows of longer sets")
    parser.add_argument("--quick", action="store_true", help="at most 3,000 training rows: a look, not a result")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument("--report-only", action="store_true", help="show the runs that are there")


def run(args: argparse.Namespace) -> int:
    log = Log(args.results / "apple-converged.jsonl", args.fresh)
    args.most_rows = args.most_rows or (3000 if args.quick else None)
    for group, names, job in (
        ("poly2", converged_sets(), _converged),
        ("text", list(apple_text.SETS), apple_text.learn),
    ):
        for name in [n for n in names if group in args.only and (args.sets is None or n in args.sets)]:
            if args.report_only:
                break
            try:
                job(name, args, log)
            except FileNotFoundError as error:
                print(f"left out: {error}")
    done_saying()
    facts = [*_report_converged(args, log), *apple_text.report(args, log)]
    print("\n".join(facts))
    write_json(args.results / "apple-converged.json", {"machine": machine(), "facts": facts, "runs": log.records})
    return 0


def _splits(name: str, args: argparse.Namespace) -> list[Parts]:
    """The training and test rows: of one split, or of several where the test part is small and none is official."""
    data = load(args.data, name)
    parts = split(data, 0)
    several = len(parts.test) < FEW_TEST_ROWS and data.is_train is None
    found = [parts, *(split(data, seed) for seed in range(1, SPLITS) if several)]
    return [p.first(args.most_rows) for p in found]


# ---- poly2 ----
def _choices(args: argparse.Namespace) -> dict[str, Any]:
    """What is chosen for apple on the command line: options of the estimator, and part of the key of a run."""
    return {name: getattr(args, name) for name in ("alpha", "heuristic", "numeric", "polish")}


def _converged(name: str, args: argparse.Namespace, log: Log) -> None:
    ours = _choices(args)
    for seed, parts in enumerate(_splits(name, args)):
        key = {"kind": "converged", "set": name, "rows": len(parts.train), "seed": seed}
        log.once({**key, "learner": "apple", **ours}, lambda p=parts: _apple(p, args))
        for learner, degree in (("linear", 1), ("poly2", 2)):
            log.once({**key, "learner": learner}, lambda p=parts, degree=degree: _solver(p, degree))
        if len(parts.train) >= LARGER and _mean_of(log, "poly2", name, rows=len(parts.train)):
            for passes in FEW_PASSES:
                run = {**key, "learner": f"apple, {passes}", **ours}
                log.once(run, lambda p=parts, passes=passes: _apple(p, args, passes=passes))


def _apple(parts: Parts, args: argparse.Namespace, **more: Any) -> dict[str, Any]:
    from pomona import AppleClassifier, AppleRegressor

    regression = parts.train.task == "regression"
    options = {**_choices(args), "random_state": 0, **more}
    model = AppleRegressor(**options) if regression else AppleClassifier(**options)
    clock = Clock()
    with clock.running():
        model.fit(parts.train.X, parts.train.y)
    error = test_error(parts.test, model.predict(parts.test.X))
    seconds = {"seconds": clock.seconds, "cpu_seconds": clock.cpu_seconds}
    test_figures = {"task": parts.test.task, "test_rows": len(parts.test)}
    return {"error": error, **seconds, "passes": model.n_iter_, **test_figures}


def _solver(parts: Parts, degree: int) -> dict[str, Any]:
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler

    encoder = OneHot.fit(parts.train)
    X, X_test = encoder.encode(parts.train), encoder.encode(parts.test)
    used = np.flatnonzero(X.getnnz(axis=0))  # marks of missing values, where none is missing, are empty columns
    X, X_test = X[:, used], X_test[:, used]
    n, d = X.shape
    wide = d * (d + 3) // 2
    if degree == 2 and n * wide > MOST_ENTRIES:
        return {"left_out": f"{n:,} rows of {wide:,} products"}
    if X.nnz > MOST_ENTRIES:
        return {"left_out": f"{X.nnz:,} numbers"}
    few = d <= 1000 and n * d <= MOST_ENTRIES
    steps: list[Any] = [StandardScaler() if few else MaxAbsScaler()]
    if few:
        X, X_test = X.toarray().astype(np.float64), X_test.toarray().astype(np.float64)
    if degree == 2:
        steps += [PolynomialFeatures(2, include_bias=False)]
    regression = parts.train.task == "regression"
    steps += [LinearRegression() if regression else LogisticRegression(max_iter=1000)]
    model = make_pipeline(*steps)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, parts.train.y)
    seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    return {"error": test_error(parts.test, model.predict(X_test)), **seconds}


def _report_converged(args: argparse.Namespace, log: Log) -> list[str]:
    known, rows = known_peers(), []
    wins: dict[str, list[tuple[bool, bool]]] = {"linear": [], "poly2": []}
    times: list[tuple[int, bool, bool]] = []  # rows, whether quicker than poly2, whether sooner as good
    back = {ours: theirs for theirs, ours in NAMES.items()}
    for name in converged_sets():
        ours = _mean_of(log, "apple", name, **_choices(args))
        if ours is None:
            continue
        theirs = known[back.get(name, name)]
        here = {learner: _mean_of(log, learner, name, rows=ours["rows"]) for learner in ("linear", "poly2")}
        error = ours["error"]
        # Two standard errors of a share of wrong answers; nothing is known of the spread of 1 - R^2.
        slack = 0.0 if ours["task"] == "regression" else 2 * math.sqrt(error * (1 - error) / ours["test_rows"])
        comparable = ours["splits"] == 1 and name not in SPLIT_OTHERWISE
        for learner, won in wins.items():
            other = here[learner]
            bar = theirs[learner][0] if learner in theirs and comparable else other["error"] if other else None
            if bar is not None:
                won.append((error <= bar + 5e-5, error <= bar + slack + 5e-5))
        if here["poly2"] and ours["rows"] >= LARGER:
            there = [ours["seconds"]] if error <= here["poly2"]["error"] else []
            for passes in FEW_PASSES:
                few = _mean_of(log, f"apple, {passes}", name, rows=ours["rows"], **_choices(args))
                there += [few["seconds"]] if few and few["error"] <= here["poly2"]["error"] else []
            theirs_takes = here["poly2"]["seconds"]
            times.append((ours["rows"], ours["seconds"] < theirs_takes, min(there, default=math.inf) < theirs_takes))
        cells = [f"{ours['error']:.4f} ({ours['seconds']:.2f} s, {ours['passes']:.0f})"]
        cells += [f"{h['error']:.4f} ({h['seconds']:.2f} s)" if h else "-" for h in here.values()]
        cells += [f"{theirs[p][0]:.4f}" if p in theirs else "-" for p in ("linear", "poly2", "vw-apple", "lgbm500")]
        rows.append([name, f"{ours['rows']:,}", f"{ours['splits']}", *cells])
    if rows:
        header = [
            "set",
            "rows",
            "splits",
            "apple (time, passes)",
            "linear here",
            "poly2 here",
            "linear",
            "poly2",
            "vw-apple",
            "lgbm500",
        ]
        print(table(header, rows), "\n")
    facts = []
    for learner, won in wins.items():
        if won:
            strictly, nearly = (sum(column) for column in zip(*won, strict=True))
            facts.append(
                f"no worse than {learner}: {strictly} of {len(won)} sets ({strictly / len(won):.0%});"
                f" within two standard errors of the test part {nearly}"
            )
    for least in (LARGER, LARGEST):
        if large := [(quicker, sooner) for n, quicker, sooner in times if n >= least]:
            quicker, sooner = (sum(column) for column in zip(*large, strict=True))
            facts.append(
                f"quicker than poly2 with {least:,} rows or more: {quicker} of {len(large)}; no worse than poly2 here,"
                f" after as many passes as that takes, and sooner: {sooner}"
            )
    return facts


def _mean_of(log: Log, learner: str, name: str, **wanted: Any) -> dict[str, Any] | None:
    """The run on most rows; of several splits the mean figures, and the rows of all test parts."""
    found = [
        r
        for r in log.records
        if r["kind"] == "converged" and r["set"] == name and r["learner"] == learner and "error" in r
        and all(r.get(k) == v for k, v in wanted.items())
    ]  # fmt: skip
    if not found:
        return None
    most = max(r["rows"] for r in found)
    runs = [r for r in found if r["rows"] == most]
    mean = {
        figure: float(np.mean([r[figure] for r in runs]))
        for figure in ("error", "seconds", "passes")
        if figure in runs[0]
    }
    return {**runs[0], **mean, "splits": len(runs), "test_rows": sum(r.get("test_rows", 0) for r in runs)}
