"""The finished runs of the experiment as figures by set and method, with the paper's beside them."""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.apple.methods import ALPHAS, BASELINES, HEURISTICS, PEER, Method
from benchmarks.apple.sets import PUBLISHED
from benchmarks.options import Log


@dataclass
class Cell:
    """One method on one set, over the seeds."""

    errors: dict[int, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    features: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def error(self) -> float:
        return statistics.fmean(self.errors.values())

    @property
    def time(self) -> float:
        return statistics.median(self.seconds)

    @property
    def width(self) -> float:
        """Features of an example."""
        return statistics.fmean(self.features)


@dataclass
class SetResults:
    """All methods on one set."""

    name: str
    task: str
    rows: int
    d: int
    nonzeros: float
    cells: dict[Method, Cell] = field(default_factory=dict)

    def ran(self, method: Method) -> bool:
        return method in self.cells and bool(self.cells[method].errors)

    def relative_error(self, method: Method) -> float | None:
        """Equation 2, over the baselines that ran; None where they do not differ."""
        baselines = [self.cells[b].error for b in map(Method, BASELINES) if self.ran(b)]
        if not self.ran(method) or len(baselines) < 2 or max(baselines) == min(baselines):
            return None
        return (self.cells[method].error - min(baselines)) / (max(baselines) - min(baselines))

    def relative_time(self, method: Method) -> float | None:
        if not self.ran(method) or not self.ran(Method("lin")):
            return None
        return self.cells[method].time / self.cells[Method("lin")].time

    def best(self, name: str) -> Method | None:
        """The alpha with the smallest test error, as the paper chooses it."""
        tried = [m for m in self.cells if m.name == name and m.alpha is not None and self.ran(m)]
        return min(tried, key=lambda m: self.cells[m].error, default=None)

    @property
    def complete(self) -> bool:
        return all(self.ran(Method(name)) for name in BASELINES)


def collect(log: Log, args: argparse.Namespace) -> list[SetResults]:
    """The runs that match the arguments, in the order of the sets asked for."""
    found: dict[str, SetResults] = {}
    for record in log.records:
        if record.get("kind") != "run" or record["set"] not in args.sets or record["scaled"] != args.scaled:
            continue
        if record["task"] != "regression" and record["loss"] != args.loss:
            continue
        if args.most_rows is not None and record["rows"] > args.most_rows:
            continue
        known = found.get(record["set"])
        if known is None or (args.most_rows is None and record["rows"] > known.rows):
            names = ("task", "rows", "d", "nonzeros")
            known = found[record["set"]] = SetResults(record["set"], *(record[name] for name in names))
        if record["rows"] == known.rows and record["seed"] < args.seeds:
            _add(known.cells.setdefault(Method(record["method"], record["alpha"]), Cell()), record)
    return [found[name] for name in args.sets if name in found]


def _add(cell: Cell, record: dict[str, Any]) -> None:
    cell.note = record.get("left_out") or record.get("failure") or cell.note
    if "error" in record:
        cell.errors[record["seed"]] = record["error"]
        cell.seconds.append(record["seconds"])
        cell.features.append(record["features"])


def published() -> dict[str, dict[str, tuple[float, float]]]:
    """Error and seconds by the paper's name of a set and by the label of a method, from Tables 2 and 3.

    The printed headings of the expansions are mirrored (their cost rises as the alpha above them falls); the file has
    them the right way round.
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with open(Path(__file__).parent / "published.csv") as lines:
        for row in csv.DictReader(lines):
            name, _, alpha = row["method"].partition("_")
            label = Method(name, float(alpha) if alpha else None).label
            found.setdefault(row["set"], {})[label] = (float(row["error"]), float(row["seconds"]))
    return found


def published_for(name: str) -> dict[str, tuple[float, float]]:
    """The paper's figures for one of our sets; empty where it has none."""
    theirs = PUBLISHED.get(name)
    return published()[theirs[0]] if theirs else {}


def present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def curves() -> list[str]:
    """The methods of Figures 2 and 3."""
    return [*BASELINES, "apple", "ssm", "apple-best", "ssm-best"]


def method_of(results: SetResults, curve: str) -> Method | None:
    """The method behind a curve: alpha = 1 is the default, -best takes the best alpha of each set."""
    if curve.endswith("-best"):
        return results.best(curve.removesuffix("-best"))
    return Method(curve, 1.0 if curve in (*HEURISTICS, PEER) else None)


def shown_methods() -> list[Method]:
    """The columns of Tables 2 and 3 and the bars of Figures 4 to 7."""
    return [Method(name) for name in BASELINES] + [Method("apple", alpha) for alpha in ALPHAS]
