"""Time to the same test error: stagewise regression against the solvers of the paper's Figure 2 and newer ones."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

from benchmarks.leastsquares import Setting, figure_and_axes, plain_log, save_figure
from benchmarks.leastsquares.contender import STAGEWISE, scikit_learn
from benchmarks.measure import ROOT
from benchmarks.options import say, table

BAR = 10.0
#: Random features that the contenders get.
SIZE, QUICK_SIZE = 2000, 500
ROWS, QUICK_ROWS = 60_000, 6000


def speed(setting: Setting) -> bool:
    rows, size = (QUICK_ROWS, QUICK_SIZE) if setting.quick else (ROWS, SIZE)
    found = {name: _run(setting, name, rows, size) for name in [*STAGEWISE, *scikit_learn(), "Vowpal Wabbit"]}
    curves = {name: found[name]["curve"] for name in STAGEWISE if "curve" in found[name]}
    lines, ratios = [], {}
    for name, one in found.items():
        if name in STAGEWISE:
            continue
        if "error" not in one:
            lines.append([name, one["failed"], "", "", ""])
            continue
        ours = min((s for curve in curves.values() for s, error in curve if error <= one["error"]), default=None)
        if ours is not None:
            ratios[name] = one["seconds"] / ours
        lines.append(
            [
                name,
                f"{one['seconds']:.1f}",
                f"{one['error']:.2f}",
                "never" if ours is None else f"{ours:.2f}",
                "" if ours is None else f"{ratios[name]:.1f}",
            ]
        )
    print(table([f"MNIST, {size} features", "seconds", "error %", "stagewise to it", "times as fast"], lines))
    _draw(setting, curves, found)
    if not ratios:
        return False
    closest = min(ratios, key=lambda name: ratios[name])
    print(
        f"closest: {closest}, {ratios[closest]:.1f} times as fast (bar: {BAR:g})"
        + ("" if ratios[closest] >= BAR else " NO")
    )
    return ratios[closest] >= BAR


def _run(setting: Setting, name: str, rows: int, size: int) -> dict[str, Any]:
    key = {"part": "speed", "name": name, "rows": rows, "size": size}
    known = setting.log.find(**key)
    if known is not None:
        return known
    say(name)
    command = [sys.executable, "-m", "benchmarks.leastsquares.contender", name]
    command += ["--data", str(setting.data), "--rows", str(rows), "--size", str(size)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=setting.limit, check=False)
    except subprocess.TimeoutExpired:
        return setting.log.add(**key, failed=f"over {setting.limit:g} s")
    if done.returncode:
        return setting.log.add(**key, failed=(done.stderr.strip().splitlines() or ["stopped"])[-1][:60])
    return setting.log.add(**key, **json.loads(done.stdout.strip().splitlines()[-1]))


def _draw(setting: Setting, curves: dict[str, Any], found: dict[str, Any]) -> None:
    made = figure_and_axes()
    if made is None:
        return
    figure, axes = made
    for name, curve in curves.items():
        axes.plot(*zip(*curve, strict=True), marker=".", label=name)
    others = [(name, one) for name, one in found.items() if "error" in one]
    for (name, one), marker in zip(others, itertools.cycle("Xs^vDPd"), strict=False):
        axes.plot(one["seconds"], one["error"], marker, color="black", markersize=5, label=name)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="seconds, features included",
        ylabel="test error in percent",
        title="MNIST: stagewise against other solvers (the paper's Figure 2)",
    )
    plain_log(axes.yaxis, (1.5, 2, 3, 4, 6, 8))
    plain_log(axes.xaxis, (0.5, 1, 2, 5, 10, 20, 50, 100, 200))
    axes.legend(fontsize=7)
    save_figure(figure, setting.results / "least_squares_speed.png")
