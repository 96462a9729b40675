"""Which feature a weight belongs to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pomona.online.tables import slots_needed
from pomona.task import Task

if TYPE_CHECKING:
    from pomona.online.learner import OnlineLearner

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
        for i in range(len(learner.tables.slots)):
            w, s = learner.weights_of(i)
            used = np.flatnonzero(w != 0 if w.ndim == 1 else (w != 0).any(axis=1))
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
        known = self.learner.names
        place = {row: i for i, row in enumerate(known.rows.tolist())}
        packed = known.names

        def single(row: int) -> str:
            return (packed[place[row]] if row in place else "") or known.default(row)

        found: dict[tuple[int, int], str] = {}
        for i in range(len(self.learner.tables.slots)):
            slots = self.slots[rows][self.tables[rows] == i].tolist()
            for slot, parts in self.learner.factors_at(i, slots).items():
                found[i, slot] = " · ".join(single(row) for row in sorted(parts, key=lambda row: place.get(row, row)))
        places = zip(self.tables[rows].tolist(), self.slots[rows].tolist(), strict=True)
        return [found.get((i, slot), f"slot {slot}") for i, slot in places]

    def top(self, task: Task, count: int) -> list[dict[str, Any]]:
        """The strongest features, each with name, weight and scale.

        With several classes ``weights`` has one number a class, and ``class`` and ``weight`` are those of the
        strongest.
        """
        weights = self.weights.reshape(len(self), task.n_outputs)
        strength = np.abs(weights) * self.scales[:, None]
        best = strength.max(axis=1, initial=0.0)
        count = min(count, int(np.count_nonzero(best)))
        # A partial sort, for there may be many millions. Ties are broken by row, so that reports are stable.
        chosen = np.argpartition(-best, count - 1)[:count] if count else np.empty(0, np.int64)
        chosen = chosen[np.lexsort((chosen, -best[chosen]))]
        result = []
        for row, name in zip(chosen.tolist(), self.names(chosen), strict=True):
            strongest = int(strength[row].argmax())
            entry: dict[str, Any] = {
                "feature": name,
                "weight": float(weights[row, strongest]),
                "scale": float(self.scales[row]),
            }
            if weights.shape[1] > 1:
                entry |= {"class": task.classes[strongest], "weights": weights[row].tolist()}
            result.append(entry)
        return result


def factors_at(learner: OnlineLearner, i: int, slots: list[int]) -> dict[int, tuple[int, ...]]:
    """The rows whose product stands in each of these slots of table ``i``; of a hashed one as far as they are found."""
    if not learner.tables.hashed[i]:
        return {slot: factors(i + 1, slot) for slot in slots}
    known, parameters = learner.names, learner.parameters
    shared = parameters.bits is not None  # one table for all degrees
    mask = np.uint32(len(learner.tables.slots[i]) - 1)
    keys, rows = known.keys.astype(np.uint32), known.rows.tolist()
    found: dict[int, tuple[int, ...]] = {}  # of several candidates the simplest
    searched = np.zeros(int(mask) + 1, np.bool_)
    searched[slots] = True
    for degree in range(1, parameters.degree + 1) if shared else (i + 1,):
        if len(keys) ** degree > MAX_TRIALS or not searched.any():
            break
        for slot, positions in _hits(keys, mask, searched, degree):
            found.setdefault(slot, tuple(rows[position] for position in positions))
        searched[list(found)] = False
    return found


def _hits(
    keys: NDArray[np.uint32], mask: np.uint32, searched: NDArray[np.bool_], degree: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Products of ``degree`` features that fall into a searched slot."""
    if degree == 1:
        prefixes: Iterable[tuple[int, ...]] = [()]
    else:
        prefixes = itertools.combinations_with_replacement(range(len(keys)), degree - 1)
    for prefix in prefixes:
        partners = keys if not prefix else keys[: prefix[0] + 1]
        base = np.uint32(sum(int(keys[p]) for p in prefix) & 0xFFFFFFFF)
        slots = (base + partners) & mask
        for hit in np.flatnonzero(searched[slots]).tolist():
            yield int(slots[hit]), (*prefix, hit)


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
