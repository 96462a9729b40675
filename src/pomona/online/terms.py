"""Which feature a weight belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.online.tables import slots_needed
from pomona.task import Task

if TYPE_CHECKING:
    from pomona.online.learner import OnlineLearner

#: Products in a hashed table are found by trying all but the last factor; beyond this many trials they have no name.
MAX_TRIALS = 1 << 30


@dataclass(frozen=True)
class Terms:
    """All weights of a learner, with names on demand.

    ``weights`` belong to the features as they are in the data; ``scales`` are the largest values seen, so that
    ``|weight| * scale`` says how much a feature can move a prediction. The intercept is not among them.

    ``evidence`` is the root of the sum of squared gradients of the scaled features. Its inverse is about the standard
    error of a weight, so a weight times it says how sure it is that there is something: rare features often have large
    weights by chance.
    """

    learner: OnlineLearner
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    evidence: NDArray[np.float64]
    #: Table and slot of each weight.
    tables: NDArray[np.int64]
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, learner: OnlineLearner) -> Terms:
        weights, scales, evidence, tables, slots = [], [], [], [], []
        for i in range(len(learner.tables.slots)):
            w, s = learner.weights_of(i)
            w = w * learner.product_gain if i else w
            used = np.flatnonzero(w != 0 if w.ndim == 1 else (w != 0).any(axis=1))
            scale = np.where(s[used] > 0, 1 / np.where(s[used] > 0, s[used], 1.0), 1.0)
            if not learner.parameters.normalized:
                scale = np.ones(len(used))
            weights.append(w[used] / scale.reshape([-1] + [1] * (w.ndim - 1)))
            scales.append(scale)
            known = learner.parameters.keeps_sums
            evidence.append(np.sqrt(learner.tables.evidence(i, used)) if known else np.ones(len(used)))
            tables.append(np.full(len(used), i))
            slots.append(used)
        return cls(learner, *(np.concatenate(parts) for parts in (weights, scales, evidence, tables, slots)))

    def __len__(self) -> int:
        return len(self.scales)

    @property
    def ranked_by(self) -> str:
        """What makes a feature strong, for people."""
        return "|weight| · √(sum of squared gradients)" if self.learner.parameters.keeps_sums else "|weight| · scale"

    def strengths(self) -> NDArray[np.float64]:
        """How much each feature can move a prediction, (terms, outputs)."""
        weights = self.weights.reshape(len(self), self.learner.parameters.n_outputs)
        return np.asarray(np.abs(weights) * self.scales[:, None])

    def sureness(self) -> NDArray[np.float64]:
        """How sure it is that a feature says something: the strongest are those of which it is."""
        return np.asarray(self.strengths().max(axis=1, initial=0.0) * self.evidence)

    def names(self, rows: NDArray[np.int64]) -> list[str]:
        """Names of these terms; products as ``a · b``, unknown ones as the number of their slot."""
        known = self.learner.names
        place = {row: i for i, row in enumerate(known.rows[known.plain :].tolist(), known.plain)}
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
        weights, strength, best = self.weights.reshape(len(self), task.n_outputs), self.strengths(), self.sureness()
        count = min(count, len(self))
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
    rows = np.sort(learner.names.rows)
    mask = len(learner.tables.slots[i]) - 1
    if i == 0:
        hashed = rows if learner.names.named else _native.mix(rows) & np.uint64(mask)
        place = dict(zip(reversed(hashed.tolist()), reversed(rows.tolist()), strict=True))  # the first of several stays
        return {slot: (place[slot],) for slot in slots if slot in place}
    if len(rows) ** i * len(slots) > MAX_TRIALS:
        return {}
    keys = _native.mix(rows) & np.uint64(mask)
    found = {slot: _hashed_factors(slot, i + 1, rows, keys, mask) for slot in slots}
    return {slot: parts for slot, parts in found.items() if parts}


def _hashed_factors(
    slot: int, degree: int, rows: NDArray[np.uint64], keys: NDArray[np.uint64], mask: int
) -> tuple[int, ...]:
    """Falling rows whose product has this slot of a hashed table; of several the first, none where there are none.

    The slot is the sum of the last row and of the keys of the others, so the others tell the last.
    """
    if degree == 2:
        last = (np.uint64(slot & mask) - keys) & np.uint64(mask)
        hits = np.flatnonzero((last <= rows) & np.isin(last, rows))
        return (int(rows[hits[0]]), int(last[hits[0]])) if len(hits) else ()
    for n in range(1, len(rows) + 1):
        rest = _hashed_factors(slot - int(keys[n - 1]), degree - 1, rows[:n], keys[:n], mask)
        if rest:
            return (int(rows[n - 1]), *rest)
    return ()


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
