"""The report of the experiment: Tables 2 and 3 as Markdown and JSON, the counts of the text, and the pictures."""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.accuracy import Verdict
from benchmarks.apple.methods import ALPHAS, BASELINES, HEURISTICS, PEER, PEER_BASELINES, Method
from benchmarks.apple.pictures import draw_all
from benchmarks.apple.results import (
    SetResults,
    collect,
    curves,
    method_of,
    present,
    published,
    published_for,
    shown_methods,
)
from benchmarks.apple.sets import PUBLISHED
from benchmarks.options import Log, machine, write_json

#: Rules whose errors are set against each other.
PAIRS = (("apple", "ssm"), ("scaled", "apple"), ("evidence", "scaled"), ("reach", "evidence"))


def write_report(log: Log, args: argparse.Namespace) -> None:
    """Write everything, and print the counts."""
    results = collect(log, args)
    if not results:
        print("no finished runs: there is nothing to report")
        return
    stem = "apple" if args.loss == "squared" else "apple-logistic"
    stem += "-scaled" if args.scaled else ""
    folder = args.results / f"{stem}-figures"
    pictures = draw_all(results, folder)
    peer = peer_rows(results)
    facts = summary(results, peer)
    text = _markdown(results, peer, facts, args, [path.relative_to(args.results) for path in pictures])
    path = args.results / f"{stem}.md"
    path.write_text(text)
    print("\n".join(facts))
    print(f"written: {path}")
    content = {"machine": machine(), "loss": args.loss, "scaled": args.scaled, "facts": facts}
    write_json(args.results / f"{stem}.json", {**content, "sets": [_as_json(r) for r in results], "peer": peer})


# ---- figures ----
def summary(results: list[SetResults], peer: list[dict[str, Any]]) -> list[str]:
    """The counts and medians that the text of the paper gives, ours and theirs, for the methods that ran."""
    facts = [f"sets: {len(results)}, with all three baselines {sum(r.complete for r in results)}"]
    for name in (*HEURISTICS, PEER):
        for label, pick in (
            (f"{name}(1)", lambda r, n=name: Method(n, 1.0)),
            (f"{name}-best", lambda r, n=name: r.best(n)),
        ):
            facts += _counts(results, label, pick)
    facts.append("  published: apple(1) below 0.5 on 26 of 30, below 0 on 12; apple-best below 0.5 on 27")
    theirs = _published_times()
    for method in [Method(name) for name in BASELINES[1:]] + [Method("apple", alpha) for alpha in ALPHAS]:
        times = present(r.relative_time(method) for r in results)
        errors = present(r.relative_error(method) for r in results)
        if times and errors:
            facts.append(
                f"median relative time of {method.label}: {statistics.median(times):.2f} (published"
                f" {theirs[method.label]:.2f}); median relative error {statistics.median(errors):.2f}"
            )
    facts += [fact for pair in PAIRS for fact in _dominance(results, *pair)]
    for name in HEURISTICS:
        for label, words in (
            ("all alphas", [row["verdict"] for row in peer if row["method"] == name]),
            ("alpha 1", [row["verdict"] for row in peer if row["method"] == name and row["alpha"] == 1]),
        ):
            if not words:
                continue
            better, worse = sum(word.startswith("better") for word in words), words.count("WORSE")
            facts.append(
                f"{name} against {PEER}, {label}, {len(words)} cells: better {better}, equal {words.count('equal')},"
                f" no worse {words.count('no worse')}, worse by two s.e. {worse}"
            )
    return facts


def _counts(results: list[SetResults], label: str, pick: Callable[[SetResults], Method | None]) -> list[str]:
    known = [(r, pick(r)) for r in results]
    errors = present(r.relative_error(m) for r, m in known if m)
    if not errors:
        return []
    half, none, n = sum(e < 0.5 for e in errors), sum(e < 0 for e in errors), len(errors)
    return [
        f"{label}: relative error below 0.5 on {half} of {n} sets ({half / n:.0%}), below 0 on {none} ({none / n:.0%})"
    ]


def _published_times() -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for figures in published().values():
        for label, (_, seconds) in figures.items():
            ratios.setdefault(label, []).append(seconds / figures["lin"][1])
    return {label: statistics.median(values) for label, values in ratios.items()}


def _dominance(results: list[SetResults], one: str, other: str) -> list[str]:
    """How often one heuristic has the smaller error at the same alpha, and which sets go the other way at alpha = 1."""
    lower = higher = cells = 0
    against = []
    for r in results:
        for alpha in ALPHAS:
            a, b = Method(one, alpha), Method(other, alpha)
            if r.ran(a) and r.ran(b):
                cells += 1
                difference = r.cells[a].error - r.cells[b].error
                lower, higher = lower + (difference < 0), higher + (difference > 0)
                if difference > 0 and alpha == 1:
                    against.append(r.name)
    if not cells:
        return []
    where = ", ".join(against) or "none"
    return [f"{one} against {other}: smaller error in {lower} cells, larger in {higher}; larger at alpha 1 on: {where}"]


def peer_rows(results: list[SetResults]) -> list[dict[str, Any]]:
    """Our heuristics and Vowpal Wabbit at the same alpha, paired by seed."""
    rows = []
    for r, alpha, name in itertools.product(results, ALPHAS, HEURISTICS):
        ours, theirs = Method(name, alpha), Method(PEER, alpha)
        if not (r.ran(ours) and r.ran(theirs)):
            continue
        mine, other = r.cells[ours], r.cells[theirs]
        seeds = sorted(set(mine.errors) & set(other.errors))
        verdict = Verdict.of([mine.errors[s] for s in seeds], [other.errors[s] for s in seeds])
        rows.append({
            "set": r.name, "alpha": alpha, "method": name, "ours": mine.error, "peer": other.error,
            "difference": verdict.difference, "standard_error": verdict.error, "verdict": verdict.word,
            "seconds": mine.time, "peer_seconds": other.time,
        })  # fmt: skip
    return rows


# ---- text ----
def _markdown(
    results: list[SetResults],
    peer: list[dict[str, Any]],
    facts: list[str],
    args: argparse.Namespace,
    pictures: list[Any],
) -> str:
    parts = [
        f"# Adaptive polynomial expansion: the paper's experiment, {args.loss} loss",
        "Made by `python -m benchmarks apple`; what each figure means is in its `--help`. Errors are 0-1 errors, or"
        " mean squared errors of a target in [0, 1]; seconds are of training over parsed data.",
        "\n".join(f"- {fact.strip()}" for fact in facts),
        "## Tables 2 and 3",
        _table_23(results),
        "## Other methods, mean test error",
        _others(results),
        "## The peer's --stage_poly at the same alpha",
        _peer_table(peer),
        "## Relative error and time of the curves of Figure 2",
        _curves_table(results),
        "## Figures",
        "\n\n".join(f"![{path.stem}]({path})" for path in pictures) or "none drawn",
    ]
    return "\n\n".join(parts) + "\n"


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(r: SetResults, method: Method, figure: str) -> str:
    if method not in r.cells:
        return "-"
    if not r.ran(method):
        return "left out" if r.cells[method].note.startswith("about") else "failed"
    return f"{getattr(r.cells[method], figure):.4g}"


def _table_23(results: list[SetResults]) -> str:
    methods = shown_methods()
    rows = []
    for r in results:
        note = PUBLISHED.get(r.name, ("", ""))[1]
        theirs = published_for(r.name)
        for figure, k in (("error", 0), ("time", 1)):
            word = {"error": "error", "time": "seconds"}[figure]
            rows.append(
                [f"{r.name} ({r.rows:,} × {r.d:,})" if k == 0 else "", word, *[_cell(r, m, figure) for m in methods]]
            )
            if theirs:
                label = f"{word}, published" + (f" ({note})" if note and k == 0 else "")
                rows.append(["", label, *[f"{theirs[m.label][k]:.4g}" for m in methods]])
    return _rows(["set", "", *[m.label for m in methods]], rows)


def _others(results: list[SetResults]) -> str:
    methods = [Method(name, alpha) for name in HEURISTICS if name != "apple" for alpha in ALPHAS]
    methods += [Method(name) for name in PEER_BASELINES]
    rows = [[r.name, *[_cell(r, m, "error") for m in methods]] for r in results]
    return _rows(["set", *[m.label for m in methods]], rows)


def _peer_table(peer: list[dict[str, Any]]) -> str:
    cells: dict[tuple[str, float], dict[str, dict[str, Any]]] = {}
    for row in peer:
        cells.setdefault((row["set"], row["alpha"]), {})[row["method"]] = row
    rows = []
    for (name, alpha), methods in cells.items():
        first = next(iter(methods.values()))
        shown = [f"{m['ours']:.4f} {m['verdict']}" if (m := methods.get(h)) else "-" for h in HEURISTICS]
        ratio = f"{first['peer_seconds'] / first['seconds']:.1f}×"
        rows.append([name, f"{alpha:g}", f"{first['peer']:.4f}", *shown, ratio])
    return _rows(["set", "alpha", "peer", *HEURISTICS, "peer's time / apple's"], rows)


def _curves_table(results: list[SetResults]) -> str:
    rows = []
    for r in results:
        cells = []
        for curve in curves():
            method = method_of(r, curve)
            error = r.relative_error(method) if method else None
            time = r.relative_time(method) if method else None
            cells.append("-" if error is None or time is None else f"{error:.2f} ({time:.1f}×)")
        rows.append([r.name, *cells])
    return _rows(["set", *curves()], rows)


def _as_json(r: SetResults) -> dict[str, Any]:
    cells = {}
    for method, cell in r.cells.items():
        figures: dict[str, Any] = {"note": cell.note}
        if cell.errors:
            figures = {
                "error": cell.error, "errors": cell.errors, "seconds": cell.time, "features": cell.width,
                "relative_error": r.relative_error(method), "relative_time": r.relative_time(method),
            }  # fmt: skip
        theirs = published_for(r.name).get(method.label)
        if theirs:
            figures |= {"published_error": theirs[0], "published_seconds": theirs[1]}
        cells[method.label] = figures
    return {"set": r.name, "task": r.task, "rows": r.rows, "d": r.d, "nonzeros": r.nonzeros, "methods": cells}
