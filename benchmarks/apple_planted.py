"""How often apple finds interactions that are known to be there.

Generated data with three planted monomials each (see benchmarks/planted.py): degrees 2 to 4, noise, a correlated
distractor for every factor, from 30 dense to 100,000 sparse features; one pass, alpha 1, nothing tuned, the stated
number of examples. A seed counts when all three monomials are among the terms of the model, by name. The bar is 95 % of
the seeds, for every case. Also shown: the mean rank of the planted among all terms by |weight| * scale, and features
an example.
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
RULES = {"weight": "weight", "scaled": "scaled", "evidence": "evidence", "ssm": "ssm", "reach": HEURISTICS["reach"]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="samples of each case (default: 20)")
    parser.add_argument(
        "--heuristics", nargs="+", choices=tuple(RULES), default=("weight", "evidence", "reach"), metavar="H"
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


HEADER = ("seeds", "bar 95 %", "monomials", "rank", "terms", "features", "seconds")


def _cells(runs: list[dict[str, Any]]) -> list[str]:
    mean = {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}
    return [
        f"{mean['all']:.0%}", "pass" if mean["all"] >= BAR else "FAIL", f"{mean['found']:.0%}", f"{mean['rank']:.0f}",
        f"{mean['terms']:,.0f}", f"{mean['features']:.0f}", f"{mean['seconds']:.2f}",
    ]  # fmt: skip


def search(X: Any, y: Any, planted: list[tuple[int, ...]], heuristic: Any) -> dict[str, Any]:
    """Learn once and look for the planted monomials among the names of the terms."""
    from pomona import AppleRegressor

    model = AppleRegressor(loss="squared", alpha=1.0, heuristic=heuristic, numeric="raw", passes=1, shuffle=False)
    clock = Clock()
    with clock.running():
        model.fit(X, y)
    names = model.terms_["name"]
    ranks = {_factors(name): rank for rank, name in enumerate(names.tolist(), start=1)}
    hits = [ranks.get(_factors(" · ".join(f"x{f}" for f in m))) for m in planted]
    summary = model.model_.summary
    return {
        "all": all(hit is not None for hit in hits),
        "found": float(np.mean([hit is not None for hit in hits])),
        "rank": float(np.mean([hit if hit is not None else len(names) for hit in hits])),
        "terms": len(names),
        "features": summary["features"] / summary["examples"],
        "seconds": clock.seconds,
    }


def _factors(name: str) -> tuple[str, ...]:
    """The factors of a term, whatever their order."""
    return tuple(sorted(name.split(" · ")))
