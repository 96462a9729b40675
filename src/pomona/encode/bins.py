"""Bins and knots that follow the mass of a numeric column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _heavy(counts: Floats, bins: int) -> NDArray[np.bool_]:
    """Which values hold at least 1/bins of the mass; each of them earns a place of its own."""
    return np.asarray(counts * bins >= counts.sum())


def _even_cuts(counts: Floats, parts: int) -> NDArray[np.int64]:
    """Positions that end each of so many parts of nearly equal mass; none is empty."""
    reached = np.cumsum(counts)
    goals = reached[-1] * np.arange(1, parts + 1) / parts
    return np.unique(np.searchsorted(reached, goals * (1 - 1e-12)).clip(max=len(counts) - 1))


def knots(values: Floats, counts: Floats, bins: int) -> Floats:
    """Rising knots, at most ``bins``: all values if few, else the heavy ones, both ends and even quantiles.

    Parameters
    ----------
    values : the distinct values, rising.
    counts : how often each occurs.
    """
    if len(values) <= bins:
        return values
    heavy = _heavy(counts, bins)
    heavy[[0, -1]] = True
    light, light_counts = values[~heavy], counts[~heavy]
    room = bins - int(heavy.sum())
    if room <= 0:
        return values[heavy]
    # Knots at the middle of the mass of each part: every hat covers about the same number of examples.
    reached = np.cumsum(light_counts)
    goals = reached[-1] * (np.arange(room) + 0.5) / room
    chosen = light[np.searchsorted(reached, goals).clip(max=len(light) - 1)]
    return np.unique(np.concatenate([values[heavy], chosen]))


def edges(values: Floats, counts: Floats, bins: int) -> Floats:
    """Rising upper edges of about ``bins`` bins (the last has none).

    A heavy value has a bin of its own, and so may cut one of the others in two.
    """
    last = np.ones(len(values), np.bool_)  # whether a bin ends after this value
    if len(values) > bins:
        heavy = _heavy(counts, bins)
        last = heavy.copy()
        last[:-1] |= heavy[1:]
        light = np.flatnonzero(~heavy)
        room = bins - int(heavy.sum())
        last[light[_even_cuts(counts[light], max(room, 1))]] = True
    ends = np.flatnonzero(last[:-1])
    return between(values[ends], values[ends + 1])


def between(low: Floats, high: Floats) -> Floats:
    """The shortest number near the middle of two neighbours: a new value falls on the nearer side."""
    found = []
    for bottom, top in zip(low.tolist(), high.tolist(), strict=True):
        middle = 0.5 * bottom + 0.5 * top
        tries = (float(f"{middle:.{digits}g}") for digits in range(2, 18))
        found.append(next((t for t in tries if bottom <= t < top), bottom))
    return np.array(found, np.float64)


def number_name(value: float) -> str:
    """The shortest text that gives the number back."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value)).removesuffix(".0")


def bin_names(column: str, points: Floats) -> list[str]:
    """``age ≤ 30``, ``age in (30, 35]``, ``age > 35``."""
    text = [number_name(point) for point in points]
    if not text:
        return [column]
    inner = [f"{column} in ({low}, {high}]" for low, high in zip(text, text[1:], strict=False)]
    return [f"{column} ≤ {text[0]}", *inner, f"{column} > {text[-1]}"]
