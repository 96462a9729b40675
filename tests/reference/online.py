"""The online learner as slow, obvious Python, in the units of the papers: w, G, N for each monomial.

Written from the update of Ross, Mineiro and Langford (2013), with each feature's weight rescaled before predicting,
and less than there (`kept`); regularisation is applied to every weight after every example.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from pomona.online.parameters import OnlineParameters

Monomial = tuple[int, ...]

#: From this e^(yp) on the logistic loss is zero in 32 bits, and nothing is learnt.
SOLVED = 2.0**24


def kept(growth: float) -> float:
    """How much more of a weight is kept, than follows the scale, when a value is ``growth`` times all before."""
    return max(1.0, math.sqrt(min(growth, 16.0 / growth)))


def monomials(
    row: dict[int, float], interactions: tuple[str, ...], squares: bool, fields: dict[int, str]
) -> dict[Monomial, float]:
    """Every monomial of the expansion, by the sorted tuple of its factors."""
    found: dict[Monomial, float] = {(f,): x for f, x in row.items()}

    def add(factors: tuple[int, ...]) -> None:
        if not squares and len(set(factors)) < len(factors):
            return
        found[tuple(sorted(factors))] = math.prod(row[f] for f in factors)

    for term in interactions:
        degrees = {"linear": (), "quadratic": (2,), "cubic": (2, 3)}.get(term)
        if degrees is not None:
            for degree in degrees:
                for factors in itertools.combinations_with_replacement(row, degree):
                    add(factors)
            continue
        names = term.split("*")
        for factors in itertools.product(row, repeat=len(names)):
            if all(fields[f] == name for f, name in zip(factors, names, strict=True)):
                add(factors)
    return found


def loss(name: str, p: float, y: float, tau: float) -> float:
    if name == "squared":
        return (p - y) ** 2
    if name == "logistic":
        return math.log1p(math.exp(-y * p))
    if name == "hinge":
        return max(0.0, 1 - y * p)
    if name == "quantile":
        return tau * (y - p) if y > p else (1 - tau) * (p - y)
    return math.exp(p) - y * p


def derivative(name: str, p: float, y: float, tau: float) -> float:
    if name == "squared":
        return 2 * (p - y)
    if name == "logistic":
        return -y / (1 + math.exp(y * p)) if math.exp(y * p) < SOLVED else 0.0
    if name == "hinge":
        return -y if y * p < 1 else 0.0
    if name == "quantile":
        return -tau if y > p else (1 - tau if y < p else 0.0)
    return math.exp(p) - y


def invariant(name: str, p: float, y: float, H: float, q: float, tau: float) -> float:
    """Follow dp/dt = -q dloss/dp for a time H; the answer is the move of p divided by q."""
    if name == "squared":
        return (y - p) * (1 - math.exp(-2 * H * q)) / q if H * q >= 1e-6 else 2 * (y - p) * H
    if name == "logistic":
        m = y * p
        if math.exp(m) >= SOLVED:
            return 0.0
        if H * q < 1e-6 * (1 + math.exp(m)):
            return y * H / (1 + math.exp(m))
        low, high = m, m + H * q  # bisection on m' + e^m' = m + e^m + Hq
        target = m + math.exp(m) + H * q
        for _ in range(200):
            middle = (low + high) / 2
            below = middle < 700 and middle + math.exp(middle) < target
            low, high = (middle, high) if below else (low, middle)
        return y * (low - m) / q
    if name == "hinge":
        return y * min(H, (1 - y * p) / q) if y * p < 1 else 0.0
    if name == "quantile":
        e = y - p
        return min(tau * H, e / q) if e > 0 else max(-(1 - tau) * H, e / q)
    if H * q * (y + math.exp(p)) < 1e-6:
        return (y - math.exp(p)) * H
    if y * H * q > 700:
        return (math.log(y) - p) / q
    if y > 0:
        return y * H - math.log1p(math.exp(p) * math.expm1(y * H * q) / y) / q
    return -math.log1p(math.exp(p) * H * q) / q


def softmax_flow(scores: list[float], label: int, H: float, q: dict[int, float]) -> list[float]:
    """Steps of all classes, if the others keep their shares of the probability that the label lacks.

    With shares r the gradient is 1 - p for the label and -(1 - p) r for the others, so that the margin of the label
    over the log of the summed exponentials of the others moves as the margin of the logistic loss does, by
    q_label + sum r^2 q a unit.
    """
    others = math.log(sum(math.exp(s) for k, s in enumerate(scores) if k != label))
    shares = [math.exp(s - others) if k != label else 0.0 for k, s in enumerate(scores)]
    moves = q[label] + sum(r * r * q.get(k, 0.0) for k, r in enumerate(shares))
    u = invariant("logistic", scores[label] - others, 1.0, H, moves, 0.5)
    return [u if k == label else -u * r for k, r in enumerate(shares)]


@dataclass
class Weight:
    """One monomial: weights, squared gradients and duals by output, and the largest value seen."""

    w: list[float]
    G: list[float]
    z: list[float]
    N: float = 0.0


@dataclass
class Scales:
    """T and S: sums of h and of h |x|^2, x scaled, over the examples that were learnt from."""

    T: float = 0.0
    S: float = 0.0


@dataclass
class OnlineTwin:
    parameters: OnlineParameters
    fields: dict[int, str] = field(default_factory=dict)
    table: dict[Monomial, Weight] = field(default_factory=dict)
    t: int = 0
    scales: Scales = field(default_factory=Scales)
    low: float = math.inf
    high: float = -math.inf
    loss_sum: float = 0.0

    def scores(self, features: dict[Monomial, float]) -> list[float]:
        return [self.clip(p) for p in self.totals(features)]

    def totals(self, features: dict[Monomial, float]) -> list[float]:
        K = self.parameters.n_outputs
        totals = [0.0] * K
        for key, x in features.items():
            if key in self.table:
                for k in range(K):
                    totals[k] += self.table[key].w[k] * x
        return totals

    def clip(self, p: float) -> float:
        o = self.parameters
        if o.n_outputs > 1 or o.loss in ("logistic", "hinge", "poisson"):
            return min(50.0, max(-50.0, p))
        return min(self.high, max(self.low, p)) if o.bounded and self.t else p

    def is_gentle(self, monomial: Monomial) -> bool:
        return self.parameters.gentle

    def features(self, row: dict[int, float]) -> dict[Monomial, float]:
        o = self.parameters
        found = monomials(row, o.interactions, o.squares, self.fields)
        return {(): 1.0, **found} if o.intercept else found

    def slopes(self, predictions: list[float], y: float) -> tuple[list[float], float]:
        """The derivative of the loss by each output, and the loss."""
        o, K = self.parameters, self.parameters.n_outputs
        if o.loss == "softmax":
            total = sum(math.exp(p) for p in predictions)
            slopes = [math.exp(p) / total for p in predictions]
            slopes[int(y)] = -sum(slope for k, slope in enumerate(slopes) if k != y)  # p - 1 would lose digits
            return slopes, -math.log(math.exp(predictions[int(y)]) / total)
        pairs = [(p, y if K == 1 else (1.0 if k == y else -1.0)) for k, p in enumerate(predictions)]
        slopes = [derivative(o.loss, p, target, o.quantile) for p, target in pairs]
        return slopes, sum(loss(o.loss, p, target, o.quantile) for p, target in pairs)

    def learn(self, row: dict[int, float], y: float, h: float = 1.0) -> list[float]:
        o, K = self.parameters, self.parameters.n_outputs
        features = self.features(row)
        for key, x in features.items():
            slot = self.table.setdefault(key, Weight([0.0] * K, [0.0] * K, [0.0] * K))
            if o.normalized and abs(x) > slot.N:
                if slot.N > 0:
                    ratio = slot.N / abs(x)
                    slot.w = [
                        w * (ratio**2 if not o.adaptive else ratio * kept(1 / ratio) if self.is_gentle(key) else ratio)
                        for w in slot.w
                    ]
                slot.N = abs(x)
        predictions = self.scores(features)
        slopes, loss_now = self.slopes(predictions, y)
        self.loss_sum += h * loss_now
        self.t += 1
        if o.ftrl:
            self._ftrl(features, [h * d for d in slopes])
        else:
            m = self._step(features, predictions, y, h)
            if o.regularized:
                self._shrink(self._eta(), m, h)
        self.low, self.high = min(self.low, y), max(self.high, y)
        return predictions

    def _eta(self) -> float:
        o = self.parameters
        if o.adaptive:
            return o.learning_rate
        return o.learning_rate / (o.l2 * (self.t + 1)) if o.l2 > 0 else o.learning_rate / math.sqrt(self.t)

    def _step(self, features: dict[Monomial, float], predictions: list[float], y: float, h: float) -> float:
        """One step of all features, from these predictions; the answer is m."""
        return self._move(features, predictions, y, h, self.scales)

    def _move(
        self,
        features: dict[Monomial, float],
        predictions: list[float],
        y: float,
        h: float,
        scales: Scales,
        share: float = 1.0,
    ) -> float:
        """One step of the features that share these scales, or a share of it."""
        o = self.parameters
        slopes, _ = self.slopes(predictions, y)
        targets = [y] if o.n_outputs == 1 else [1.0 if k == y else -1.0 for k in range(o.n_outputs)]
        learns = any(h * d * d > 0 for d in slopes)
        if learns and o.normalized:
            scales.T += h
            scales.S += h * sum(x * x / self.table[key].N ** 2 for key, x in features.items() if x)
        ratio = scales.T / scales.S if o.normalized and scales.S > 0 else 1.0
        m = math.sqrt(ratio) if o.adaptive else ratio
        eta = self._eta()
        shared = sum(d * d for d in slopes) / 8 if o.loss == "softmax" else None
        H = eta * h
        outputs: list[tuple[int, dict[Monomial, float], float]] = []  # with rates and what a unit step does
        for k, d in enumerate(slopes):
            square = h * (d * d if shared is None else shared)
            if not square > 0:
                continue
            rates = {}
            for key, x in features.items():
                slot = self.table[key]
                slot.G[k] += square * x * x
                scale = slot.N if o.normalized else 1.0
                if scale == 0 or (o.adaptive and slot.G[k] == 0):
                    rates[key] = 0.0
                else:
                    rates[key] = 1 / (math.sqrt(slot.G[k]) * scale) if o.adaptive else 1 / scale**2
            outputs.append((k, rates, m * sum(rates[key] * x * x for key, x in features.items())))
        for k, rates, q in outputs:
            if not o.invariant or q <= 0:
                u = -slopes[k] * H
            elif o.loss == "softmax":
                u = softmax_flow(predictions, targets.index(1.0), H, {k: q for k, _, q in outputs})[k]
            else:
                u = invariant(o.loss, predictions[k], targets[k], H, q, o.quantile)
            for key, x in features.items():
                self.table[key].w[k] += share * u * m * rates[key] * x
        return m

    def _shrink(self, eta: float, m: float, h: float) -> None:
        """Every weight but the intercept flows down l1 |w| + l2 w^2 / 2, on the scale of features in [-1, 1]."""
        o = self.parameters
        time = eta * m
        if not o.adaptive and o.l2 > 0 and eta * o.l2 < 1:
            time = -math.log(1 - eta * o.l2) / o.l2
        for key, slot in self.table.items():
            if key == ():
                continue
            scale = slot.N if o.normalized else 1.0
            for k, w in enumerate(slot.w):
                if w == 0 or scale == 0:
                    continue
                speed = scale / math.sqrt(slot.G[k]) if o.adaptive else 1.0
                tau, size = h * time * speed, abs(w) * scale
                if o.l2 > 0:
                    size = (size + o.l1 / o.l2) * math.exp(-o.l2 * tau) - o.l1 / o.l2
                else:
                    size -= o.l1 * tau
                slot.w[k] = math.copysign(max(size, 0.0) / scale, w)

    def _ftrl(self, features: dict[Monomial, float], slopes: list[float]) -> None:
        o = self.parameters
        for key, x in features.items():
            slot = self.table[key]
            l1, l2 = (o.l1, o.l2) if key else (0.0, 0.0)
            for k, d in enumerate(slopes):
                g = d * x
                if d == 0:
                    continue
                sigma = (math.sqrt(slot.G[k] + g * g) - math.sqrt(slot.G[k])) / o.learning_rate
                slot.z[k] += g - sigma * slot.w[k]
                slot.G[k] += g * g
                z = slot.z[k]
                if abs(z) <= l1:
                    slot.w[k] = 0.0
                else:
                    slot.w[k] = -(z - math.copysign(l1, z)) / (
                        (o.ftrl_beta + math.sqrt(slot.G[k])) / o.learning_rate + l2
                    )
