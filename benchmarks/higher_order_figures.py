"""The paper's Tables 1 to 3 and Figures 2 to 7 on the sets at hand, its published values beside ours."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from benchmarks import higher_order as command
from benchmarks import higher_order_sets as sets
from benchmarks.options import Log, table

#: Tables 1 to 3 as published (error; parameters in thousands).
PUBLISHED_SETS = {
    "covtype": (581_012, 13, 333, 7),
    "higgs": (11_000_000, 18, 527, 2),
    "activity": (3_850_505, 54, 64_574, 19),
}
PUBLISHED = {
    ("higgs", "ALR2"): (258, 0.2629),
    ("higgs", "sALR2-mi-0.9"): (243, 0.2620),
    ("higgs", "hsALR2-mi-0.9"): (121, 0.2600),
    ("activity", "NB"): (1200, 0.092),
    ("activity", "ALR1"): (1200, 0.0115),
    ("activity", "ALR2"): (250_000, 0.0012),
    ("activity", "sALR2-mi-0.2"): (136_000, 0.0011),
    ("activity", "hsALR2-mi-0.9"): (111_000, 0.0030),
    ("activity", "hsALR2(*)-0.5"): (101_000, 0.0045),
    ("avazu", "NB"): (20_000, 0.3004),
    ("avazu", "ALR1"): (20_000, 0.1732),
    ("avazu", "hsALR2(*)-0.1"): (280_000, 0.1219),
}
THRESHOLDS = (0.2, 0.4, 0.6, 0.8, 0.9)


def tables(args: argparse.Namespace, log: Log) -> dict[str, Any]:
    """Print the three tables; the paper's sets of other sizes are named as such."""
    found: dict[str, Any] = {"sets": _details(args)}
    rows = []
    for name, title in (("higgs", "Table 2"), ("activity", "Table 3"), ("avazu", "Table 3")):
        methods = [method for of, method in PUBLISHED if of == name]
        print(f"\n{title}: {name} (the paper's is larger: not comparable but in order)")
        measured = command.measure(args, log, name, methods) if name != "avazu" else _avazu(args, log, methods)
        body = []
        for row in measured:
            thousands, error = PUBLISHED[name, row["method"]]
            cells = [row["method"], f"{row['parameters']:,}", f"{row['wall']:.1f}", f"{row['error']:.4f}"]
            body.append([*cells, f"{thousands:,} k", f"{error:.4f}"])
        print(table(["method", "parameters", "s", "error", "published", "error"], body))
        rows += measured
    found["errors"] = rows
    return found


def _details(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Table 1: attributes and values after discretisation of the whole set, as the paper seems to have done."""
    import numpy as np

    from pomona.higherorder.attributes import CategoryAttribute, NumberAttribute
    from pomona.higherorder.coder import AttributeCoder
    from pomona.options import ReadOptions
    from pomona.source.table import open_frame

    found = []
    for name in sets.SETS:
        X, y = sets.read(args.data, name, 20_000 if args.quick else None)
        classes, codes = np.unique(y, return_inverse=True)
        coder = AttributeCoder.fit(open_frame(X), ReadOptions(), labels=codes.astype(np.int32))
        values = 0
        for attribute in coder.attributes:
            if isinstance(attribute, NumberAttribute):
                values += len(attribute.cuts) + 1
            else:
                values += len(attribute.names if isinstance(attribute, CategoryAttribute) else attribute.columns)
        row = {
            "set": name,
            "rows": len(y),
            "attributes": len(coder.attributes),
            "values": values,
            "classes": len(classes),
        }
        found.append(row)
    print("\nTable 1: sets after discretisation (published: rows, attributes with the class, values, classes)")
    body = [
        [
            row["set"],
            *[f"{row[key]:,}" for key in ("rows", "attributes", "values", "classes")],
            str(PUBLISHED_SETS.get(row["set"], "")),
        ]
        for row in found
    ]
    print(table(["set", "rows", "attributes", "values", "classes", "published"], body))
    return found


def _avazu(args: argparse.Namespace, log: Log, methods: list[str]) -> list[dict[str, Any]]:
    """The paper's split of avazu into 80 and 20 per cent, on 8,999 rows."""
    X, y = sets.read(args.data, "avazu")
    part = sets.split_80_20(X, y)
    rows = []
    for method in methods:
        key = {"set": "avazu", "method": method, "round": 0, "fold": 0}
        record = log.find(**key) or log.add(**key, **command.one(method, part))
        rows.append({"set": "avazu", **record})
    return rows


def draw(args: argparse.Namespace, log: Log, folder: Path) -> None:
    """Figures 2 to 7 as pictures."""
    try:
        import matplotlib
    except ImportError:
        print('no pictures: matplotlib is not installed: pip install "matplotlib>=3.8"')
        return
    matplotlib.use("Agg")
    top = 2 if args.quick else 3
    for name in ("covtype", "higgs"):
        _orders(args, log, folder, name, top)
        _thresholds(args, log, folder, name, [2] if name == "higgs" else list(range(2, top + 1)))
    _hierarchies(args, log, folder, top)
    _preconditioned(args, log, folder, top)
    _sizes(log, folder, top)


def _errors(args: argparse.Namespace, log: Log, name: str, methods: list[str]) -> dict[str, dict[str, Any]]:
    return {row["method"]: row for row in command.measure(args, log, name, methods)}


def _orders(args: argparse.Namespace, log: Log, folder: Path, name: str, top: int) -> None:
    """Figure 2: error by order of sALR, KDB and AnJE, with naive Bayes and the random forest."""
    from matplotlib import pyplot as plt

    orders = list(range(1, top + 1))
    ours, anje = [f"ALR{n}" for n in orders], ["NB", *[f"A{n}JE" for n in orders[1:]]]
    kdb = ["NB", *[f"KDB{n - 1}" for n in orders[1:]]]
    selective = ["NB", *[f"SKDB{n - 1}" for n in orders[1:]]]
    rows = _errors(args, log, name, [*dict.fromkeys([*ours, *anje, *kdb, *selective, "SKDB", "RF"])])
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for label, methods in (
        ("ALR^n", ours),
        ("KDB, K = n - 1", kdb),
        ("selective KDB, K < n", selective),
        ("AnJE", anje),
    ):
        axes.plot(orders, [rows[m]["error"] for m in methods], marker="o", label=label)
    for label, method in (("selective KDB, K < 5", "SKDB"), ("RandomForest", "RF")):
        axes.axhline(rows[method]["error"], linestyle=":", color="grey")
        axes.text(orders[0], rows[method]["error"], label, fontsize=8, va="bottom")
    axes.set_xticks(orders)
    axes.set_xlabel("order n")
    axes.set_ylabel("error")
    axes.legend()
    axes.set_title(f"Figure 2: {name}")
    _save(figure, folder / f"higher-order-figure-2-{name}.png")


def _thresholds(args: argparse.Namespace, log: Log, folder: Path, name: str, orders: list[int]) -> None:
    """Figures 3 and 4: error by share of tuples kept."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for number, order in enumerate(orders):
        for selection, style in (("mi", "-"), ("cvscore", "--")):
            methods = [f"sALR{order}-{selection}-{t}" for t in THRESHOLDS]
            rows = _errors(args, log, name, methods)
            values = [rows[m]["error"] for m in methods]
            axes.plot(THRESHOLDS, values, style, marker="o", color=f"C{number}", label=f"sALR^{order} {selection}")
        whole = _errors(args, log, name, [f"ALR{order}"])[f"ALR{order}"]["error"]
        axes.axhline(whole, color=f"C{number}", linestyle=":")
    axes.axhline(_errors(args, log, name, ["RF"])["RF"]["error"], color="green", linestyle=":")
    axes.set_xlabel("share of tuples kept (dotted: all; green: RandomForest)")
    axes.set_ylabel("error")
    axes.legend(fontsize=8)
    number = 3 if name == "covtype" else 4
    axes.set_title(f"Figure {number}: {name}")
    _save(figure, folder / f"higher-order-figure-{number}-{name}.png")


def _hierarchies(args: argparse.Namespace, log: Log, folder: Path, order: int) -> None:
    """Figures 5 to 7: parameters, time and error of ALR, sALR and hsALR on covtype."""
    from matplotlib import pyplot as plt

    shares = (0.6, 0.8, 0.9)
    groups = {
        "ALR": [f"ALR{order}"] * len(shares),
        "sALR": [f"sALR{order}-mi-{t}" for t in shares],
        "hsALR": [f"hsALR{order}-mi-{t}" for t in shares],
    }
    rows = _errors(args, log, "covtype", list(dict.fromkeys(m for methods in groups.values() for m in methods)))
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axes, (key, title) in zip(
        panels,
        (("parameters", "Figure 5: parameters"), ("cpu", "Figure 6: CPU seconds"), ("error", "Figure 7: error")),
        strict=True,
    ):
        for number, (label, methods) in enumerate(groups.items()):
            places = [i + 0.25 * number for i in range(len(shares))]
            axes.bar(places, [rows[m][key] for m in methods], width=0.25, label=f"{label}^{order}")
        axes.set_xticks([i + 0.25 for i in range(len(shares))], [f"t = {t}" for t in shares])
        axes.set_title(title)
    panels[0].legend()
    _save(figure, folder / f"higher-order-figures-5-7-order-{order}.png")
    body = [[m, f"{r['parameters']:,}", f"{r['cpu']:.1f}", f"{r['error']:.4f}"] for m, r in rows.items()]
    print("\nFigures 5 to 7: covtype")
    print(table(["method", "parameters", "cpu s", "error"], body))


def _preconditioned(args: argparse.Namespace, log: Log, folder: Path, order: int) -> None:
    """Error after each pass with and without the generative preconditioner, both from zero."""
    from matplotlib import pyplot as plt

    passes = range(1, 6)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    print("\nPreconditioning: covtype, error after each pass")
    body = []
    for label, word in (("generative preconditioner", "zero"), ("plain AdaGrad", "plain")):
        methods = [f"ALR{order}-{word}@{number}" for number in passes]
        rows = _errors(args, log, "covtype", methods)
        errors = [rows[m]["error"] for m in methods]
        axes.plot(passes, errors, marker="o", label=label)
        body.append([label, *[f"{error:.4f}" for error in errors]])
    print(table([f"ALR^{order}", *[f"pass {number}" for number in passes]], body))
    axes.set_xticks(list(passes))
    axes.set_xlabel("passes")
    axes.set_ylabel("error")
    axes.legend()
    axes.set_title(f"Preconditioning of ALR^{order}: covtype")
    _save(figure, folder / f"higher-order-preconditioner-order-{order}.png")


def _sizes(log: Log, folder: Path, order: int) -> None:
    """The paper's open question of equal size: error against parameters for every variant that was run on covtype."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for label, start in (
        ("ALR", f"ALR{order}"),
        ("sALR, mi", f"sALR{order}-mi-"),
        ("sALR, cvscore", f"sALR{order}-cvscore-"),
        ("hsALR, mi", f"hsALR{order}-mi-"),
    ):
        chosen = re.compile(re.escape(start) + (r"[\d.]+" if start.endswith("-") else ""))
        rows = [r for r in log.records if r["set"] == "covtype" and chosen.fullmatch(r["method"])]
        rows.sort(key=lambda row: row["parameters"])
        if rows:
            axes.plot(
                [r["parameters"] for r in rows], [r["error"] for r in rows], marker="o", label=f"{label}, order {order}"
            )
    axes.set_xscale("log")
    axes.set_xlabel("parameters")
    axes.set_ylabel("error")
    axes.legend(fontsize=8)
    axes.set_title("Variants at equal size: covtype")
    _save(figure, folder / f"higher-order-equal-size-order-{order}.png")


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"written: {path}")
