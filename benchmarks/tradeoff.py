"""Test error against training time: what is the most accurate model in so many seconds?

pomona's families, at several numbers of passes and orders, against scikit-learn's linear models, forests and boosted
trees, and Vowpal Wabbit: the same 80/20 split, defaults everywhere, nothing tuned. Seconds are from columns in memory
to the fitted model, encoding included, on all cores; Vowpal Wabbit reads its binary cache, made before the clock runs.
Numbers are as they are, but standardised for the linear models of scikit-learn, which converge badly without. Each
fits the first 1,000 rows before the clock runs, so that nothing is imported while it does.

Every finished run is one line of tradeoff.jsonl: a stopped benchmark goes on where it stopped. In the picture a line
leads from each second to the best model of a family that was ready by then, and only these are named.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.accuracy import test_error
from benchmarks.contenders import Clock, module
from benchmarks.datasets import Parts, load, split
from benchmarks.onehot import OneHot
from benchmarks.options import Log, done_saying, machine, table, write_json

SETS = ("adult", "connect4", "covtype")
#: Rows that are fitted before the clock runs.
WARM_UP = 1000


@dataclass(frozen=True)
class Entry:
    """One model: who makes it, what it is called in the picture, and how it is fitted (one of the methods below)."""

    family: str
    label: str
    fit: Callable[[Parts], tuple[float, Any]]


def _ours(name: str, **options: Any) -> Callable[[Parts], tuple[float, Any]]:
    def fit(parts: Parts) -> tuple[float, Any]:
        import pomona

        return _timed(getattr(pomona, name)(random_state=0, **options), parts.train.X, parts.train.y, parts.test.X)

    return fit


def _sklearn(path: str, standardised: bool = False, **options: Any) -> Callable[[Parts], tuple[float, Any]]:
    def fit(parts: Parts) -> tuple[float, Any]:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        package, name = path.rsplit(".", 1)
        encoder = OneHot.fit(parts.train)
        X, X_test = (encoder.encode(part).toarray() for part in (parts.train, parts.test))
        model = getattr(import_module(f"sklearn.{package}"), name)(random_state=0, **options)
        model = make_pipeline(StandardScaler(), model) if standardised else model
        return _timed(model, X, parts.train.y, X_test)

    return fit


def _timed(model: Any, X: Any, y: Any, X_test: Any) -> tuple[float, Any]:
    from sklearn.base import clone

    clone(model).fit(X[:WARM_UP], y[:WARM_UP])
    clock = Clock()
    with clock.running():
        model.fit(X, y)
    return clock.seconds, model.predict(X_test)


def _vw(interactions: str) -> Callable[[Parts], tuple[float, Any]]:
    def fit(parts: Parts) -> tuple[float, Any]:
        from benchmarks.fitters import Method
        from benchmarks.fitters.vw import Fitter

        if reason := module("vw").missing():
            raise ImportError(reason)
        with tempfile.TemporaryDirectory() as scratch:
            done = Fitter(parts, Path(scratch)).fit(Method(interactions), predict=True)
        return done.seconds, done.predictions

    return fit


def entries() -> list[Entry]:
    """All models, the quick ones of each family first."""
    forest, boosted = "ensemble.RandomForestClassifier", "ensemble.HistGradientBoostingClassifier"
    online = [Entry("pomona", f"linear, {p}", _ours("OnlineClassifier", passes=p)) for p in (1, 4)]
    apple = [Entry("pomona", f"apple, {p}", _ours("AppleClassifier", passes=p)) for p in (1, 2, 4, 20)]
    tuples = [Entry("pomona", f"ALR^{n}", _ours("ALRClassifier", order=n)) for n in (2, 3)]
    four = Entry("pomona", "4 × ALR^3", _ours("ALRClassifier", order=3, n_models=4))
    return [
        *online,
        *apple,
        *tuples,
        four,
        *[Entry("Vowpal Wabbit", name, _vw(name)) for name in ("linear", "quadratic")],
        Entry("scikit-learn", "SGD", _sklearn("linear_model.SGDClassifier", True, loss="log_loss")),
        Entry("scikit-learn", "logistic", _sklearn("linear_model.LogisticRegression", True, max_iter=1000)),
        *[Entry("scikit-learn", f"forest, {n}", _sklearn(forest, n_estimators=n, n_jobs=-1)) for n in (3, 10, 30, 100)],
        *[Entry("scikit-learn", f"boosted, {n}", _sklearn(boosted, max_iter=n)) for n in (10, 30, 100)],
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(SETS)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET", help=f"with classes as target: {names}")
    parser.add_argument("--most-rows", type=int, metavar="N", help="the first training rows of longer sets")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="default: tradeoff.svg with the results")


def run(args: argparse.Namespace) -> int:
    log = Log(args.results / "tradeoff.jsonl", args.fresh)
    panels: dict[str, list[dict[str, Any]]] = {}
    for name in args.sets:
        parts = split(load(args.data, name), 0).first(args.most_rows)
        if parts.train.task == "regression":
            print(f"error: {name} has a quantity as its target: give a set with classes")
            return 2
        points = _points(name, parts, log)
        title = f"{name}, {len(parts.train):,} rows"
        rows = [[f"{p['family']}: {p['learner']}", f"{p['seconds']:.2f}", f"{p['error']:.4f}"] for p in points]
        print(table([title, "seconds", "test error"], rows), "\n")
        panels[title] = points
    write_json(args.results / "tradeoff.json", {"machine": machine(), "sets": panels})
    draw(panels, args.picture or args.results / "tradeoff.svg")
    return 0


def _points(name: str, parts: Parts, log: Log) -> list[dict[str, Any]]:
    """The finished runs; those that are not in the log are made."""
    points = []
    for entry in entries():
        key = {"set": name, "rows": len(parts.train), "family": entry.family, "learner": entry.label}
        log.once(key, lambda e=entry: _figures(parts, e))
        found = log.find(**key)
        points += [found] if found and "error" in found else []
    done_saying()
    return points


def _figures(parts: Parts, entry: Entry) -> dict[str, Any]:
    seconds, answers = entry.fit(parts)
    return {"seconds": seconds, "error": test_error(parts.test, answers)}


COLOURS = {"pomona": "#2a7f62", "scikit-learn": "#b5442e", "Vowpal Wabbit": "#3b5bab"}


def draw(panels: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """A panel a set."""
    try:
        import matplotlib
    except ImportError:
        print('no picture: matplotlib is not installed: pip install "matplotlib>=3.8"')
        return
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pomona"  # the same picture from the same figures
    from matplotlib import pyplot as plt

    figure, row = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.8), layout="constrained", squeeze=False)
    for axes, (title, points) in zip(row[0], panels.items(), strict=True):
        _draw_panel(axes, points)
        axes.set_title(title, loc="left", fontsize=11)
    row[0, 0].set_ylabel("test error")
    row[0, 0].legend(frameon=False, loc="lower left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    print(f"written: {path}")


def _draw_panel(axes: Any, points: list[dict[str, Any]]) -> None:
    """Points by family, with a line along the best model of each family so far."""
    for family, colour in COLOURS.items():
        own = [p for p in points if p["family"] == family]
        if not own:
            continue
        axes.scatter([p["seconds"] for p in own], [p["error"] for p in own], color=colour, s=24, label=family, zorder=3)
        best = frontier(own)
        axes.step([p["seconds"] for p in best], [p["error"] for p in best], where="post", color=colour, alpha=0.5)
        for point in best:
            place = (point["seconds"], point["error"])
            axes.annotate(point["learner"], place, xytext=(4, 4), textcoords="offset points", fontsize=7, color=colour)
    axes.set(xscale="log", yscale="log", xlabel="seconds of training")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:.2g}")
    axes.margins(x=0.14, y=0.08)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def frontier(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points than which none is both quicker and better, by rising time."""
    best: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda p: (p["seconds"], p["error"])):
        if not best or point["error"] < best[-1]["error"]:
            best.append(point)
    return best
