"""Which feature a weight belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pomona.online.learner import OnlineLearner
from pomona.online.tables import slots_needed

#: Pairs and triples in a hashed table are found by trying all; beyond this many trials they stay without a name.
MAX_TRIALS = 1 << 32


@dataclass(frozen=True)
class Terms:
    """All weights of a learner, with names on demand.

    ``weights`` belong to the features as they are in the data; ``scales`` are the largest values seen, so that
    ``|weight| * scale`` says how much a feature can move a prediction. The intercept is not among them.
    """

    learner: OnlineLearner
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    #: Table and slot of each weight.
    tables: NDArray[np.int64]
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, learner: OnlineLearner) -> Terms:
        weights, scales, tables, slots = [], [], [], []
        for i, table in enumerate(learner.tables.slots):
            w, s = learner.weights_of(i)
            used = np.flatnonzero((w != 0).reshape(len(table), -1).any(axis=1))
            scale = np.where(s[used] > 0, 1 / np.where(s[used] > 0, s[used], 1.0), 1.0)
            if not learner.parameters.normalized:
                scale = np.ones(len(used))
            weights.append(w[used] / scale.reshape([-1] + [1] * (w.ndim - 1)))
            scales.append(scale)
            tables.append(np.full(len(used), i))
            slots.append(used)
        return cls(learner, *(np.concatenate(parts) for parts in (weights, scales, tables, slots)))

    def __len__(self) -> int:
        return len(self.scales)

    def names(self, rows: NDArray[np.int64]) -> list[str]:
        """Names of these terms; products as ``a · b``, unknown ones as the number of their slot."""
        singles = dict(zip(self.learner.names.rows, self.learner.names.names, strict=True))
        found: dict[tuple[int, int], str] = {}
        for i, hashed in enumerate(self.learner.tables.hashed):
            slots = self.slots[rows][self.tables[rows] == i]
            if hashed:
                named = self._hashed_names(i, slots, singles)
            else:
                named = {slot: self._joined(factors(i + 1, slot), singles) for slot in slots.tolist()}
            found |= {(i, slot): name for slot, name in named.items()}
        places = zip(self.tables[rows].tolist(), self.slots[rows].tolist(), strict=True)
        return [found.get((i, slot), f"slot {slot}") for i, slot in places]

    @staticmethod
    def _joined(rows: tuple[int, ...], singles: dict[int, str]) -> str:
        return " · ".join(singles.get(row) or f"feature {row}" for row in sorted(rows))

    def _hashed_names(self, i: int, slots: NDArray[np.int64], singles: dict[int, str]) -> dict[int, str]:
        known = self.learner.names
        shared = self.learner.parameters.bits is not None  # one table for all degrees
        mask = np.uint32(len(self.learner.tables.slots[i]) - 1)
        keys = np.array(known.keys, np.uint64).astype(np.uint32)
        found: dict[int, str] = {}
        if shared:
            for key, name in zip((keys & mask).tolist(), known.names, strict=True):
                found.setdefault(key, name)
        wanted = [slot for slot in slots.tolist() if slot not in found]
        degree = self.learner.parameters.degree if shared else i + 1
        if not wanted or degree == 1:
            return found
        searched = np.zeros(int(mask) + 1, np.bool_)
        searched[wanted] = True
        for size in (2, 3) if shared else (degree,):
            if size <= degree and len(keys) ** size < MAX_TRIALS * (1, 2, 6)[size - 1]:
                _search(keys, mask, searched, size, known.names, found)
        return found


def _search(
    keys: NDArray[np.uint32],
    mask: np.uint32,
    searched: NDArray[np.bool_],
    size: int,
    names: list[str],
    found: dict[int, str],
) -> None:
    """Try all products of ``size`` features; the first that hits a wanted slot names it."""
    for i in range(len(keys)):
        for j in range(i + 1) if size == 3 else (None,):
            base = keys[i] if j is None else keys[i] + keys[j]
            partners = keys[: (i if j is None else j) + 1]
            slots = (base + partners) & mask
            for hit in np.flatnonzero(searched[slots]).tolist():
                parts = [names[hit], *([] if j is None else [names[j]]), names[i]]
                found.setdefault(int(slots[hit]), " · ".join(parts))


def factors(degree: int, slot: int) -> tuple[int, ...]:
    """The rows whose product stands in this slot of an exact table."""
    if degree == 1:
        return (slot,)
    low, high = 0, 2
    while slots_needed(degree, high) <= slot:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slots_needed(degree, middle) <= slot else (low, middle)
    return (low, *factors(degree - 1, slot - slots_needed(degree, low)))
