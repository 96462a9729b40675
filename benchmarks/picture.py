"""The one picture of ``speed``: how far each figure is from its bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw_speed(verdicts: list[dict[str, Any]], path: Path) -> None:
    """Each figure as a multiple of its bar, on a logarithmic axis: right of the line is cleared."""
    try:
        import matplotlib
    except ImportError:
        print('no picture: matplotlib is not installed: pip install "matplotlib>=3.8"')
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = list(reversed(verdicts))
    margins = [v["value"] / v["bar"] if v["at_least"] else v["bar"] / v["value"] for v in shown]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.32 * len(shown)), layout="constrained")
    colours = ["#2a7f62" if v["pass"] else "#b5442e" for v in shown]
    axes.barh(range(len(shown)), [m - 1 for m in margins], left=1, color=colours, height=0.62)
    axes.set_xscale("log", base=2)
    axes.axvline(1, color="black", linewidth=1)
    low, high = min([*margins, 1]) / 1.6, max([*margins, 1]) * 2.2
    axes.set_xlim(low, high)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(range(len(shown)), [v["text"] for v in shown], fontsize=9)
    for row, (verdict, margin) in enumerate(zip(shown, margins, strict=True)):
        sign = "≥" if verdict["at_least"] else "≤"
        note = f" {verdict['value']:.3g} {verdict['unit']} ({sign} {verdict['bar']:g})"
        axes.text(max(margin, 1), row, note, va="center", fontsize=8)
    axes.set_xlabel("figure as a multiple of its bar (1: just cleared; further right is better)")
    axes.set_title("pomona against its bars", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"written: {path}")
