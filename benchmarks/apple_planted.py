"""How often apple finds interactions that are known to be there.

Generated data with three planted monomials each (see benchmarks/planted.py): degrees 2 to 4, noise, a correlated
distractor for every factor, from 30 dense to 100,000 sparse features; one pass, alpha 1, nothing tuned, the stated
number of examples. A seed counts when all three monomials are among the features of the model. The bar is 95 % of the
seeds, for every case. Also shown: how many of the monomials are named among the 1,000 strongest of all terms (of up to
829,000), and features an example. "auto" is what a user gets who asks for nothing.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np

from benchmarks.apple.methods import HEURISTICS
from benchmarks.contenders import Clock
from benchmarks.options import done_saying, machine, say, table, write_json
from benchmarks.planted import CASES

BAR = 0.95
NAMED = 1000
RULES = {rule: rule for rule in ("auto", "weight", "scaled", "evidence", "ssm")} | {"reach": HEURISTICS["reach"]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="samples of each case (default: 20)")
    parser.add_argument(
        "--heuristics", nargs="+", choices=tuple(RULES), default=("weight", "evidence", "auto"), metavar="H"
    )
    parser.add_argument("--cases", nargs="+", type=int, metavar="I", help=f"cases 0 to {len(CASES) - 1} (default: all)")


def run(args: argparse.Namespace) -> int:
    cases = CASES if args.cases is None else [CASES[i] for i in args.cases]
    written = []
    for case in cases:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in args.heuristics}
        for seed in range(args.seeds):
            X, y, planted = case.sample(seed)
            for name in args.heuristics:
                say(f"{case.name} seed {seed}: {name}")
                found[name].append(search(X, y, planted, RULES[name]))
        done_saying()
        print(table([case.name, *HEADER], [[name, *_cells(runs)] for name, runs in found.items()]), "\n", flush=True)
        written += [{"case": case.name, "heuristic": name, "runs": runs} for name, runs in found.items()]
    write_json(args.results / "apple-planted.json", {"machine": machine(), "cases": written})
    return 0


HEADER = ("seeds", "bar 95 %", "monomials", "among top", "terms", "features", "seconds")


def _cells(runs: list[dict[str, Any]]) -> list[str]:
    mean = {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}
    return [
        f"{mean['all']:.0%}", "pass" if mean["all"] >= BAR else "FAIL", f"{mean['found']:.0%}", f"{mean['named']:.0%}",
        f"{mean['terms']:,.0f}", f"{mean['features']:.0f}", f"{mean['seconds']:.2f}",
    ]  # fmt: skip


def search(X: Any, y: Any, planted: list[tuple[int, ...]], heuristic: Any) -> dict[str, Any]:
    """Learn once and look for the planted monomials among the features, and for their names among the strongest."""
    from pomona import AppleRegressor

    model = AppleRegressor(loss="squared", alpha=1.0, heuristic=heuristic, numeric="raw", passes=1, shuffle=False)
    clock = Clock()
    with clock.running():
        model.fit(X, y)
    learner, summary = model.model_.learner, model.model_.summary
    columns = range(X.shape[1]) if learner.column_rows is None else learner.column_rows.columns().tolist()
    parents = {tuple(sorted(columns[row] for row in m)) for m in learner.parents.monomials}
    # A monomial is a feature when it lacks one factor to be a parent.
    hits = [any(m[:k] + m[k + 1 :] in parents for k in range(len(m))) for m in planted]
    strongest = [_factors(term["feature"]) for term in learner.terms().top(model.model_.task, NAMED)]
    named = [_factors(" · ".join(f"x{f}" for f in m)) in strongest for m in planted]
    return {
        "all": all(hits),
        "found": float(np.mean(hits)),
        "named": float(np.mean(named)),
        "terms": len(learner.terms()),
        "features": summary["features"] / summary["examples"],
        "seconds": clock.seconds,
    }


def _factors(name: str) -> tuple[str, ...]:
    """The factors of a term, whatever their order."""
    return tuple(sorted(name.split(" · ")))
