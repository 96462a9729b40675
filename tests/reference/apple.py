"""Adaptive polynomial expansion (Algorithm 1 of Agarwal et al. 2014) as slow, obvious Python, in dictionaries.

The rules, where the paper leaves them open:

**Monomials.** A monomial is the sorted tuple of the ids of its base features, with repetition: ``(3, 3, 7)`` is
x3^2 x7. Whatever the path to it, it is one feature. Without ``squares`` no factor is repeated. Values of zero are
dropped before anything else. The intercept ``()`` is a feature of every example, and nothing more: it is not counted
in s, is no parent and no factor.

**Feature set.** S_k is never written down. It holds every base feature and every x_i m with m a parent. An example has
those of its monomials whose factors it all has. A monomial has *appeared* when an example that was learnt had it.

**Epochs.** ``schedule`` holds the numbers of examples tau_1 < tau_2 < … at which epochs end. The round takes place
right after example tau_k was learnt, whatever the chunks and the passes; examples are counted over all passes, each
as one, whatever its weight. :func:`equal_epochs` makes the paper's: n examples in 6 epochs give rounds at ceil(n/6),
2 ceil(n/6) … 5 ceil(n/6).

**How many.** s is the mean number of non-zero base features of the examples learnt so far (of the fields in
``expand`` alone, where some are named). A round marks s_k = floor(s^alpha) new parents: at least one, and fewer
where candidates run out.

**Which.** The candidates of a round are the monomials that have appeared, are in S_k, are no parents, have a degree
below ``degree`` (the cap on the degree of their products) and, where ``expand`` names fields, no factor of another
field. They are ordered by score from high to low, then by degree from low to high, then by the tuple of ids (in a
learner by the rows of its table: the column, or the order of first appearance in the data). Scores are rounded to
single
precision before they are compared: monomials that were seen in one and the same example have equal scores, and
the last bits of sums must not decide between them. Candidates with a score of zero, or none (NaN), are not chosen.
Parents are kept in the order in which they were chosen.

**Scores.** With w_k the weight of output k for the feature as it is in the data, N its scale (largest magnitude seen; 1
when the update is not normalised), h the weight of an example, r_k the derivative of the loss by the raw
prediction of output k, taken at the (clipped) prediction made just before learning, r^2 = sum_k r_k^2, and sums over
the examples of the *current epoch*, as r belongs to the current predictor; those with r = 0 count in the denominator:

* ``weight``: sum_k |w_k|;
* ``scaled``: N sum_k |w_k|;
* ``evidence``: N sum_k |w_k| sqrt(sum_k G_k / N^2), with G_k the sum of squared gradients since the monomial first
  appeared, by which the update divides its steps; the same as ``scaled`` when the update is not adaptive;
* ``ssm``: sum h r^2 m^2 / sum h m^2;
* a function of :class:`Statistics`, which gives one score a candidate.

All sums start at zero again after each round.

**Picky.** ``picky-weight`` and ``picky-ssm`` test a product before it joins S. Parents are chosen as by ``weight``
and ``ssm``. The products of parents are not features at first but *on trial*: in every epoch the learner sums their
moments and nothing else; they take no part in predictions and have no weight. At the end of an epoch, after the
parents were chosen from S_k (so that a product on trial is never chosen), the s_k products on trial with the best
score join S, where they start with the weight zero. The order is that of parents, and a score of zero never joins.
The scores are

* ``picky-weight``: sum_k |sum h r_k m| / sum h m^2, the weight of the least-squares fit of the derivative by m alone
  (the 1-sparse regression of section 2.3);
* ``picky-ssm``: sum h r^2 m^2 / sum h m^2.

Products of the parents of a round are on trial from the next example on; the first of them join one epoch later.

**Fall-back** (section 2.4). Of the s_k parents of a round, s_k - 1 are chosen by score. The last is, of the candidates
left over, one of the smallest degree: the one with the best score there, then by the tuple of ids; its score may be
zero.

**Residual.** Products may learn apart: the base features, the intercept among them, make their step as if there were
no products, from what they predict by themselves; the products make theirs from what the base features predict plus
what they themselves would add in full. Their weights are half of that, so that half of the step goes to them. Both have
their own m. Examples without products are learnt as ever.

How much products count is found out on the way, as in Hedge. Every fourth example, counted from 0, that has products
and was not learnt in an earlier pass adds its losses without products, with half of them and with all to three sums L.
The prediction is that of the base features plus ``gain`` times what the halved weights add, where ``gain`` is the mean
of 0, 1 and 2 with weights exp(-L). With several outputs it is the mean of 0 and 1.

The update, the losses and several outputs are those of :class:`tests.reference.online.OnlineTwin`; but weights of
products follow the scale in full. Parents are shared by all outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.reference.online import Monomial, OnlineTwin, Scales


@dataclass(frozen=True)
class Statistics:
    """What a heuristic of one's own may look at: an entry a candidate, by degree and then by the tuple of ids."""

    #: Weights of the features as they are in the data: (n,), or (n, outputs).
    weight: np.ndarray
    #: Largest magnitude of the feature; 1 when the update is not normalised.
    scale: np.ndarray
    degree: np.ndarray
    #: Sum over the outputs of the squared gradients of the scaled feature; 0 when the update is not adaptive.
    evidence: np.ndarray
    #: Examples that had the feature, sum of h m^2 and sum of h r^2 m^2, all in this epoch.
    count: np.ndarray
    moment: np.ndarray
    error_moment: np.ndarray


Heuristic = str | Callable[[Statistics], np.ndarray]


@dataclass
class Sums:
    """Moments of a monomial in the current epoch."""

    count: int = 0
    moment: float = 0.0
    error_moment: float = 0.0
    #: Sum of h r_k m, by output.
    gradient: list[float] = field(default_factory=list)


def equal_epochs(n: int, epochs: int = 6) -> list[int]:
    """Ends of all epochs but the last, n examples in equal parts."""
    length = -(-n // epochs)
    return [length * k for k in range(1, epochs)]


@dataclass
class AppleTwin(OnlineTwin):
    alpha: float = 1.0
    heuristic: Heuristic = "weight"
    schedule: list[int] = field(default_factory=list)
    degree: int | None = None
    fallback: bool = False
    #: Fields whose features may be multiplied; none: all.
    expand: tuple[str, ...] = ()
    #: Whether products learn what the base features leave.
    residual: bool = False
    product_scales: Scales = field(default_factory=Scales)
    gain: float = 1.0
    #: Whether examples are learnt for the first time.
    fresh: bool = True
    #: Losses without products, with half of them, with all.
    judged: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    parents: list[Monomial] = field(default_factory=list)
    #: Products that have joined S, where they are tested before; None: all of them do.
    joined: set[Monomial] | None = None
    sums: dict[Monomial, Sums] = field(default_factory=dict)
    #: Non-zero base features of all examples learnt.
    nonzeros: int = 0

    def __post_init__(self) -> None:
        if self.heuristic in ("picky-weight", "picky-ssm"):
            self.joined = set()

    # ---- what an example has ----
    def expandable(self, row: dict[int, float]) -> dict[int, float]:
        return {f: x for f, x in row.items() if x != 0 and (not self.expand or self.fields[f] in self.expand)}

    def products(self, row: dict[int, float]) -> dict[Monomial, float]:
        """Every x_i m of this example with m a parent."""
        present = self.expandable(row)
        found: dict[Monomial, float] = {}
        for parent in self.parents:
            if all(f in present for f in parent):
                for i in present:
                    if i in parent and not self.parameters.squares:
                        continue
                    factors = tuple(sorted((*parent, i)))
                    found[factors] = math.prod(present[f] for f in factors)
        return found

    def is_gentle(self, monomial: Monomial) -> bool:
        return self.parameters.gentle and len(monomial) == 1

    def features(self, row: dict[int, float]) -> dict[Monomial, float]:
        base = {(f,): x for f, x in row.items() if x != 0}
        products = self.products(row)
        if self.joined is not None:
            products = {m: x for m, x in products.items() if m in self.joined}
        intercept = {(): 1.0} if self.parameters.intercept else {}
        return {**intercept, **base, **products}

    def apart(self, features: dict[Monomial, float]) -> tuple[list[float], list[float]]:
        """What base features and products add to the scores."""
        base = {m: x for m, x in features.items() if len(m) < 2}
        return self.totals(base), self.totals({m: x for m, x in features.items() if len(m) > 1})

    def scores(self, features: dict[Monomial, float]) -> list[float]:
        if not self.residual:
            return super().scores(features)
        return [self.clip(a + self.gain * b) for a, b in zip(*self.apart(features), strict=True)]

    # ---- learning ----
    def learn(self, row: dict[int, float], y: float, h: float = 1.0) -> list[float]:
        predictions = super().learn(row, y, h)
        slopes, _ = self.slopes(predictions, y)
        for m, x in {**self.features(row), **self.products(row)}.items():
            sums = self.sums.setdefault(m, Sums(gradient=[0.0] * len(slopes)))
            sums.count += 1
            sums.moment += h * x * x
            sums.error_moment += h * sum(r * r for r in slopes) * x * x
            sums.gradient = [total + h * r * x for total, r in zip(sums.gradient, slopes, strict=True)]
        self.nonzeros += len(self.expandable(row))
        if self.t in self.schedule:
            self.end_epoch()
        return predictions

    def _step(self, features: dict[Monomial, float], predictions: list[float], y: float, h: float) -> float:
        base = {m: x for m, x in features.items() if len(m) < 2}
        products = {m: x for m, x in features.items() if len(m) > 1}
        if not self.residual or not products:
            return super()._step(features, predictions, y, h)
        alone, added = self.apart(features)
        ways = [[self.clip(a + gain * b) for a, b in zip(alone, added, strict=True)] for gain in (0, 1, 2)]
        if self.fresh and (self.t - 1) % 4 == 0:
            self.judged = [L + h * self.slopes(way, y)[1] for L, way in zip(self.judged, ways, strict=True)]
            if self.parameters.n_outputs > 1:
                self.judged[2] = math.inf
            weights = [math.exp(min(self.judged) - L) for L in self.judged]
            self.gain = (weights[1] + 2 * weights[2]) / sum(weights)
        in_full = ways[2]
        self._move(products, in_full, y, h, self.product_scales, share=0.5)
        return self._move(base, [self.clip(a) for a in alone], y, h, self.scales)

    # ---- rounds ----
    def expansion_size(self) -> int:
        return max(1, math.floor((self.nonzeros / self.t) ** self.alpha))

    def candidates(self) -> list[Monomial]:
        """Monomials that may become parents, by degree and then by ids."""
        known = set(self.parents)

        def may(m: Monomial) -> bool:
            small = self.degree is None or len(m) < self.degree
            allowed = not self.expand or all(self.fields[f] in self.expand for f in m)
            return bool(m) and m not in known and small and allowed

        return sorted(filter(may, self.table), key=lambda m: (len(m), m))

    def statistics(self, monomials: list[Monomial]) -> Statistics:
        slots = [self.table[m] for m in monomials]
        sums = [self.sums.get(m, Sums()) for m in monomials]
        weight = np.array([slot.w for slot in slots]).reshape(len(slots), self.parameters.n_outputs)
        if self.residual:  # products are scored as if they counted in full
            weight *= np.array([[2.0 if len(m) > 1 else 1.0] for m in monomials])
        scale = np.array([slot.N if self.parameters.normalized else 1.0 for slot in slots])
        squares = np.array([sum(slot.G) if self.parameters.adaptive else 0.0 for slot in slots])
        return Statistics(
            weight=weight[:, 0] if self.parameters.n_outputs == 1 else weight,
            scale=scale,
            degree=np.array([len(m) for m in monomials]),
            evidence=squares / scale**2,
            count=np.array([s.count for s in sums]),
            moment=np.array([s.moment for s in sums]),
            error_moment=np.array([s.error_moment for s in sums]),
        )

    def parent_scores(self, monomials: list[Monomial]) -> list[float]:
        known = self.statistics(monomials)
        if callable(self.heuristic):
            return [float(score) for score in self.heuristic(known)]
        if self.heuristic.endswith("ssm"):
            return [_ratio(e, m) for e, m in zip(known.error_moment, known.moment, strict=True)]
        sizes = np.abs(known.weight.reshape(len(monomials), self.parameters.n_outputs)).sum(axis=1)
        if self.heuristic in ("scaled", "evidence"):
            sizes = sizes * known.scale
        if self.heuristic == "evidence" and self.parameters.adaptive:
            sizes = sizes * np.sqrt(known.evidence)
        return [float(size) for size in sizes]

    def end_epoch(self) -> None:
        size = self.expansion_size()
        chosen = self.choose_parents(size)
        if self.joined is not None:
            on_trial = [m for m in self.sums if len(m) > 1 and m not in self.joined]
            self.joined.update(best(on_trial, [self.trial_score(m) for m in on_trial], size))
        self.parents += chosen
        self.sums.clear()

    def choose_parents(self, size: int) -> list[Monomial]:
        candidates = self.candidates()
        scores = dict(zip(candidates, self.parent_scores(candidates), strict=True))
        chosen = best(candidates, list(scores.values()), size - 1 if self.fallback else size)
        left = [m for m in candidates if m not in chosen]
        if self.fallback and left:
            chosen.append(min(left, key=lambda m: (len(m), -_finite(scores[m]), m)))
        return chosen

    def trial_score(self, m: Monomial) -> float:
        sums = self.sums[m]
        if self.heuristic == "picky-ssm":
            return _ratio(sums.error_moment, sums.moment)
        return _ratio(sum(abs(g) for g in sums.gradient), sums.moment)


def best(monomials: list[Monomial], scores: list[float], size: int) -> list[Monomial]:
    """The ``size`` monomials with the highest scores above zero."""
    ranked = sorted((-np.float32(s), len(m), m) for m, s in zip(monomials, scores, strict=True) if s > 0)
    return [m for _, _, m in ranked[:size]]


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.nan


def _finite(score: float) -> float:
    return float(np.float32(score)) if score > 0 else 0.0
