"""Higher-order logistic regression: the tables and figures of the paper on the sets at hand, and the bars to clear.

Parts: ``errors`` (every method on every set, two rounds of two folds, one fold of the large sets), ``kernel``
(nanoseconds an update, exact index against unchecked hashing), ``tables`` (the paper's Tables 1 to 3), ``figures`` (its
Figures 2 to 7, on covtype and higgs), ``memory`` (an attribute with a million levels). Cuts, steps, starts, tuples
and passes are chosen on the training part alone.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks import higher_order_figures as figures
from benchmarks import higher_order_kernel as kernel
from benchmarks import higher_order_sets as sets
from benchmarks.higher_order_methods import fit
from benchmarks.options import Log, done_saying, machine, say, table, write_json

PARTS = ("errors", "kernel", "tables", "figures", "memory")
BESIDE = ("NB", "SKDB", "LR", "RF", "RF-bins", "LightGBM")
OURS = {
    "covtype": ("ALR2", "ALR3", "sALR3-mi", "sALR3-cvscore", "sALR4-cvscore", "hsALR3-mi-0.9", "sALR3-cvscore*4"),
    "higgs": ("ALR1", "ALR2", "ALR3", "ALR2*4"),
    "kddcup99": ("ALR1",),
}
DEFAULT = ("ALR1", "ALR2", "ALR2*4")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=list(sets.SETS), metavar="SET")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="these methods only, such as ALR2 sALR3-mi-0.6 RF")
    parser.add_argument("--quick", action="store_true", help="20,000 rows and one fold of each set, no order above 3")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")


def run(args: argparse.Namespace) -> int:
    name = "higher-order-quick" if args.quick else "higher-order"
    log = Log(args.results / f"{name}.jsonl", args.fresh)
    report: dict[str, Any] = {"machine": machine()}
    if "kernel" in args.parts:
        report["kernel"] = kernel.measure(args.data, args.quick)
    if "errors" in args.parts:
        report["errors"] = errors(args, log)
    if "tables" in args.parts:
        report["tables"] = figures.tables(args, log)
    if "figures" in args.parts:
        figures.draw(args, log, args.results)
    if "memory" in args.parts:
        report["memory"] = kernel.million_levels(args.scratch, args.quick)
    write_json(args.results / f"{name}.json", report)
    return 0


def errors(args: argparse.Namespace, log: Log) -> list[dict[str, Any]]:
    """Mean error, log-loss and time of every method on every set, beside the bars."""
    found = []
    for name in args.sets:
        methods = args.methods or [*OURS.get(name, DEFAULT), *BESIDE]
        if args.quick:
            methods = [method for method in methods if "4" not in method]
        rows = measure(args, log, name, methods)
        found += rows
        print(f"\n{name}")
        print(table(["method", "error", "log-loss", "cpu s", "s", "parameters", "bar"], map(_cells, rows)))
        for line in _beside({row["method"]: row for row in rows}):
            print(line)
    return found


def _beside(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Our best log-loss against logistic regression's on the same bins, and our times against the random forest's."""
    ours, lines = [row for name, row in rows.items() if "ALR" in name], []
    if "LR" in rows and ours:
        best, bar = min(ours, key=lambda row: row["log_loss"]), rows["LR"]["log_loss"]
        verdict = "holds" if best["log_loss"] <= bar else "MISSED"
        lines.append(f"log-loss: {best['method']} {best['log_loss']:.4f}, logistic regression {bar:.4f}: {verdict}")
    if "RF" in rows:
        times = [f"{row['method']} {row['wall'] / rows['RF']['wall']:.2f}" for row in ours]
        lines.append(f"training time over RandomForest(100)'s on two cores: {', '.join(times)}")
    return lines


def measure(args: argparse.Namespace, log: Log, name: str, methods: list[str]) -> list[dict[str, Any]]:
    """One row a method, means over folds; finished runs are taken from the log."""
    rounds, folds = sets.plan(name, args.quick)
    X, y = sets.read(args.data, name, 20_000 if args.quick else None)
    rows = []
    for method in methods:
        runs = []
        for number, fold, part in sets.halves(X, y, rounds, folds):
            key = {"set": name, "method": method, "round": number, "fold": fold}
            record = log.find(**key)
            if record is None:
                say(f"{name}: {method}, round {number + 1}, fold {fold + 1}")
                record = log.add(**key, **one(method, part))
            runs.append(record)
        rows.append(_mean(name, method, runs))
    done_saying()
    return rows


def one(method: str, part: sets.Part) -> dict[str, Any]:
    """Figures of one run."""
    fitted = fit(method, part.X, part.y, part.X_test)
    wrong = fitted.classes[fitted.probabilities.argmax(axis=1)] != part.y_test
    places = np.searchsorted(fitted.classes, part.y_test).clip(max=len(fitted.classes) - 1)
    p = fitted.probabilities[np.arange(len(places)), places]
    p = np.where(fitted.classes[places] == part.y_test, p, 0)  # a class that training never saw
    return {
        "error": float(wrong.mean()),
        "log_loss": float(-np.log(p.clip(min=1e-7)).mean()),
        "cpu": fitted.cpu,
        "wall": fitted.wall,
        "parameters": fitted.parameters,
        "facts": fitted.facts,
    }


def _mean(name: str, method: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    means = {key: float(np.mean([run[key] for run in runs])) for key in ("error", "log_loss", "cpu", "wall")}
    parameters = runs[0]["parameters"]
    return {"set": name, "method": method, **means, "parameters": parameters, "runs": len(runs)}


def _cells(row: dict[str, Any]) -> list[str]:
    bar = sets.BARS.get((row["set"], row["method"]))
    verdict = "" if bar is None else f"{bar:g} {'holds' if row['error'] <= bar else 'MISSED'}"
    parameters = "" if row["parameters"] is None else f"{row['parameters']:,}"
    return [
        row["method"],
        f"{row['error']:.4f}",
        f"{row['log_loss']:.4f}",
        f"{row['cpu']:.1f}",
        f"{row['wall']:.1f}",
        parameters,
        verdict,
    ]
