"""Figures 1 to 7 of the paper, drawn from our runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apple.methods import Method
from benchmarks.apple.results import SetResults, curves, method_of, present, shown_methods

COLOURS = {
    "lin": "#444444", "quad": "#8a6d3b", "cubic": "#b5442e", "apple": "#2a7f62", "ssm": "#3b5bab",
    "apple-best": "#2a7f62", "ssm-best": "#3b5bab",
}  # fmt: skip
ALPHA_COLOURS = ("#d5ead9", "#a8d5b5", "#76ba8d", "#46996b", "#1d6b49")
#: Relative errors beyond this are drawn at the edge.
WIDEST = 3.0


def draw_all(results: list[SetResults], folder: Path) -> list[Path]:
    """Draw what can be drawn; returns the paths."""
    try:
        import matplotlib
    except ImportError:
        print('no pictures: matplotlib is not installed: pip install "matplotlib>=3.8"')
        return []
    matplotlib.use("Agg")
    slow_quad = [r for r in results if (r.relative_time(Method("quad")) or 0) >= 2]
    top = sorted(results, key=lambda r: -r.nonzeros)[:6]
    drawn = [
        _tradeoff(results, folder / "figure1.png"),
        _distributions(results, folder / "figure2.png", f"Figure 2: {len(results)} sets"),
        _distributions(slow_quad, folder / "figure3.png", f"Figure 3: {len(slow_quad)} sets with quad ≥ 2 lin"),
        _bars(top, folder / "figure4.png", "Figure 4: the sets with most non-zeros", (_error, _time)),
        _bars(results, folder / "figure5.png", "Figure 5: relative error", (_error,)),
        _bars(results, folder / "figure6.png", "Figure 6: relative time", (_time,)),
        _bars(results, folder / "figure7.png", "Figure 7: features an example", (_width,)),
    ]
    return [path for path in drawn if path is not None]


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _colour(method: Method) -> str:
    if method.alpha is None:
        return COLOURS[method.name]
    return ALPHA_COLOURS[[m.alpha for m in shown_methods() if m.alpha is not None].index(method.alpha)]


def _tradeoff(results: list[SetResults], path: Path) -> Path | None:
    """Medians of relative error and relative time, with bars to the quartiles."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    any_drawn = False
    for method in shown_methods():
        pairs = [(r.relative_error(method), r.relative_time(method)) for r in results]
        known = np.array([(e, t) for e, t in pairs if e is not None and t is not None])
        if not len(known):
            continue
        any_drawn = True
        (e0, t0), (e, t), (e1, t1) = np.quantile(known, [0.25, 0.5, 0.75], axis=0)
        axes.errorbar(
            e, t, xerr=[[e - e0], [e1 - e]], yerr=[[t - t0], [t1 - t]], fmt="o", capsize=3, color=_colour(method),
            markeredgecolor="black", label=method.label,
        )  # fmt: skip
    if not any_drawn:
        plt.close(figure)
        return None
    axes.set(yscale="log", xlabel="relative error", ylabel="relative time")
    axes.set_title("Figure 1: medians over the sets, bars to the quartiles", loc="left", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return _save(figure, path)


def _distributions(results: list[SetResults], path: Path, title: str) -> Path | None:
    """Number of sets below each relative error and each relative time."""
    from matplotlib import pyplot as plt

    if not results:
        return None
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for curve in curves():
        methods = [(r, method_of(r, curve)) for r in results]
        errors = present(r.relative_error(m) for r, m in methods if m)
        times = present(r.relative_time(m) for r, m in methods if m)
        style = {"color": COLOURS[curve], "linestyle": "--" if curve.endswith("-best") else "-", "label": curve}
        for axes, values in ((left, errors), (right, times)):
            axes.step([-10, *sorted(values), 1e6], [*range(len(values) + 1), len(values)], where="post", **style)
    left.set(xlim=(-1, 1.5), xlabel="relative error", ylabel="number of sets")
    right.set(xlim=(0.5, 1000), xscale="log", xlabel="relative time")
    left.legend(fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return _save(figure, path)


def _error(results: SetResults, method: Method) -> float | None:
    value = results.relative_error(method)
    return None if value is None else float(np.clip(value, -WIDEST, WIDEST))


def _time(results: SetResults, method: Method) -> float | None:
    return results.relative_time(method)


def _width(results: SetResults, method: Method) -> float | None:
    return results.cells[method].width if results.ran(method) else None


LABELS = {_error: "relative error", _time: "relative time", _width: "features an example"}


def _bars(
    results: list[SetResults], path: Path, title: str, figures: tuple[Callable[..., float | None], ...]
) -> Path | None:
    """A group of bars a set, a panel a figure."""
    from matplotlib import pyplot as plt

    if not results:
        return None
    methods = shown_methods()
    figure, panels = plt.subplots(
        len(figures),
        1,
        figsize=(max(7.0, 0.62 * len(results)), 3.6 * len(figures)),
        squeeze=False,
        layout="constrained",
    )
    places = np.arange(len(results))
    for axes, value in zip(panels[:, 0], figures, strict=True):
        for k, method in enumerate(methods):
            heights = [value(r, method) for r in results]
            known = [(x, h) for x, h in zip(places, heights, strict=True) if h is not None]
            if known:
                x, h = np.array(known).T
                axes.bar(x + (k - 3.5) * 0.1, h, 0.1, color=_colour(method), label=method.label)
        axes.set_xticks(places, [r.name for r in results], rotation=60, ha="right", fontsize=8)
        axes.set_ylabel(LABELS[value])
        if value is not _error:
            axes.set_yscale("log")
        else:
            axes.axhline(0, color="black", linewidth=0.6)
    panels[0, 0].set_title(title, loc="left", fontsize=10)
    panels[0, 0].legend(fontsize=7, ncols=4)
    return _save(figure, path)
