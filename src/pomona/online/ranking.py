"""The best of many scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The smallest score above zero.
TINY = np.nextafter(np.float32(0), np.float32(1))


def highest(scores: NDArray[np.float32], size: int, least: np.float32 = TINY) -> tuple[NDArray[np.int64], np.float32]:
    """Places of the ``size`` highest scores from ``least`` on, with all that tie with the last, and that last score.

    With fewer of them it is ``least``.
    """
    good = np.flatnonzero(scores >= least)
    if len(good) <= size:
        return good, least
    if size <= 0:
        return good[:0], least
    high = scores[good]
    least = -np.partition(-high, size - 1)[size - 1]
    return good[high >= least], least


def without(rising: NDArray[np.int64], some: Any) -> NDArray[np.int64]:
    """Rising numbers, but for some of them."""
    if not len(some):
        return rising
    places = np.searchsorted(rising, some)
    found = places[rising[np.minimum(places, len(rising) - 1)] == some] if len(rising) else places[:0]
    kept = np.ones(len(rising), np.bool_)
    kept[found] = False
    return rising[kept]
