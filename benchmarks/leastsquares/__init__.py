"""Parts of ``python -m benchmarks least-squares``: each has ``run(setting)``, which prints what it found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import Log


@dataclass(frozen=True)
class Setting:
    """Where data and results are, and whether a first look is enough."""

    data: Path
    results: Path
    log: Log
    quick: bool
    #: Seconds after which a contender is stopped.
    limit: float
    #: Where table-1 computes: a torch device such as "cuda"; None: here.
    device: str | None = None


@dataclass(frozen=True)
class Images:
    """Training and test images as rows of float32, with their classes."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]

    def error(self, predicted: NDArray[Any]) -> float:
        """Test error in percent."""
        return 100 * float(np.mean(predicted != self.y_test))


def images(setting: Setting, name: str, quick_rows: int) -> Images:
    path = setting.data / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{name} needs {path}: give its folder with --data")
    with np.load(path) as saved:
        parts = []
        for part in ("train", "test"):
            X = saved[f"x_{part}"]
            parts += [X.reshape(len(X), -1).astype(np.float32) / 255, saved[f"y_{part}"].ravel().astype(np.int64)]
    X, y, X_test, y_test = parts
    n = quick_rows if setting.quick else len(y)
    return Images(X[:n], y[:n], X_test, y_test)


class Clock:
    seconds = 0.0


@contextmanager
def timed() -> Any:
    """Seconds of wall-clock time."""
    clock = Clock()
    start = time.perf_counter()
    try:
        yield clock
    finally:
        clock.seconds = time.perf_counter() - start


def figure_and_axes(columns: int = 1) -> Any:
    """An empty picture, or None where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print('no picture: matplotlib is not installed: pip install "matplotlib>=3.8"')
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt.subplots(1, columns, figsize=(6.5 * columns, 4.5), layout="constrained")


def plain_log(axis: Any, ticks: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers."""
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def save_figure(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"written: {path}")
