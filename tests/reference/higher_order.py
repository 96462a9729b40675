"""Slow, obvious twins of the kernels for tuples and cuts, written from the papers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

# ---- Fayyad and Irani (1993) ----


def entropy(labels: Sequence[int]) -> float:
    n = len(labels)
    return -sum(c / n * math.log2(c / n) for c in Counter(labels).values())


def mdl_cut_places(values: Sequence[float], labels: Sequence[int]) -> list[int]:
    """After which distinct value (counted from 0) cuts lie: recursive, over all boundaries between distinct values."""
    rows = sorted(zip(values, labels, strict=True))
    distinct = sorted(set(values))
    place = {v: i for i, v in enumerate(distinct)}

    def cut(part: list[tuple[float, int]]) -> list[int]:
        n = len(part)
        inside = sorted({v for v, _ in part})
        whole = [y for _, y in part]
        found: tuple[float, float] | None = None
        for v in inside[:-1]:
            left, right = [y for x, y in part if x <= v], [y for x, y in part if x > v]
            both = (len(left) * entropy(left) + len(right) * entropy(right)) / n
            if found is None or both < found[0] - 1e-12:
                found = (both, v)
        if found is None:
            return []
        both, v = found
        left, right = [y for x, y in part if x <= v], [y for x, y in part if x > v]
        k, k1, k2 = len(set(whole)), len(set(left)), len(set(right))
        delta = math.log2(3**k - 2) - (k * entropy(whole) - k1 * entropy(left) - k2 * entropy(right))
        if entropy(whole) - both <= (math.log2(n - 1) + delta) / n:
            return []
        return [*cut([r for r in part if r[0] <= v]), place[v], *cut([r for r in part if r[0] > v])]

    return cut(rows)


# ---- tuples ----


def feature_counts(
    codes: np.ndarray, labels: np.ndarray, members: Sequence[tuple[int, ...]]
) -> list[dict[tuple[int, ...], Counter[int]]]:
    """For each tuple: class counts by value combination."""
    found = []
    for t in members:
        counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for row, label in zip(codes, labels, strict=True):
            counts[tuple(int(row[a]) for a in t)][int(label)] += 1
        found.append(dict(counts))
    return found


F = np.float32
MASK = (1 << 64) - 1


def mix(z: int) -> int:
    """The finaliser of splitmix64."""
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def rounding(example: int, lanes: int) -> np.ndarray:
    """Sixteen random bits for each lane."""
    bits = [mix((example * 2 + k // 4) & MASK) >> (16 * (k % 4)) & 0xFFFF for k in range(lanes)]
    return np.array(bits, np.uint32)


def over_root(a: np.ndarray, L: np.ndarray, x: np.ndarray) -> np.ndarray:
    """a L / sqrt(x) but for the factor 0.7, by one step of Newton's method with Kadlec's constants."""
    bits = np.int32(0x5F1FFFF9) - (x.view(np.int32) >> 1)
    y = bits.view(F)
    return (a * y) * ((F(2.38924456) - x * y * y) * L)


def exp_negative(x: np.ndarray) -> np.ndarray:
    """exp by the polynomial of Cephes."""
    x = np.where(x > F(-87), x, F(-87)).astype(F)
    n = (x * F(1.44269504) - F(0.5)).astype(np.int32)
    whole = n.astype(F)
    f = (x - whole * F(0.693359375)) + whole * F(2.12194440e-4)
    e = F(1.98756915e-4) * f + F(1.39819995e-3)
    for c in (8.33345191e-3, 4.16657960e-2, 1.66666655e-1, 0.5):
        e = e * f + F(c)
    e = e * f * f + f + F(1)
    return (e.view(np.int32) + (n << 23)).view(F)


def widened(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << np.uint32(16)).view(F)


class SoftmaxTwin:
    """One row at a time: w, G and L by feature; G and L with sixteen bits."""

    def __init__(self, w: np.ndarray, G: np.ndarray, L: np.ndarray, n_classes: int) -> None:
        self.w, self.G, self.L, self.n_classes = w.copy(), G.copy(), L.copy(), n_classes
        self.examples, self.loss, self.errors = 0, 0.0, 0

    def learn(self, rows: Sequence[int], label: int, eta: float, l2: float = 0.0) -> None:
        """``rows`` are the rows of the features, the intercept's first."""
        bias, *features = rows
        even, odd = self.w[bias].copy(), np.zeros_like(self.w[bias])
        for i, row in enumerate(features):
            if i % 2 == 0:
                even = even + self.w[row]
            else:
                odd = odd + self.w[row]
        s = even + odd
        r = self.residual(s, label)
        lanes = 4 if self.w.shape[1] == 4 else 8
        random = np.tile(rounding(self.examples, lanes), self.w.shape[1] // lanes)
        for row in rows:
            g = r if l2 == 0 else r - F(l2) * self.w[row]
            G = widened(self.G[row]) + g * g
            self.w[row] = self.w[row] + over_root(F(0.703952253) * F(eta) * g, widened(self.L[row]), G)
            self.G[row] = ((G.view(np.uint32) + random) >> np.uint32(16)).astype(np.uint16)
        self.examples += 1

    def residual(self, s: np.ndarray, label: int) -> np.ndarray:
        top = s[: self.n_classes].max()
        e = exp_negative(s - top)
        others = F(0)
        for k in range(self.n_classes):
            others = others + (F(0) if k == label else e[k])
        share = F(1) / (others + e[label])
        r = np.zeros_like(s)
        for k in range(self.n_classes):
            p = e[k] * share
            r[k] = F(0) if p < F(1e-18) else -p
        r[label] = F(0) if others * share < F(1e-18) else others * share
        self.loss += math.log(float(others + e[label])) - float(s[label] - top)
        self.errors += bool(s[label] < top)
        return r


def adagrad_softmax(X: np.ndarray, y: np.ndarray, n_classes: int, eta: float, bias: np.ndarray) -> np.ndarray:
    """Multinomial logistic regression on one-hot rows by AdaGrad, in double precision; G begins at 1."""
    w, G = np.zeros((X.shape[1] + 1, n_classes)), np.ones((X.shape[1] + 1, n_classes))
    w[-1] = bias
    for x, label in zip(X, y, strict=True):
        active = np.append(np.flatnonzero(x), X.shape[1])
        s = w[active].sum(axis=0)
        p = np.exp(s - s.max())
        r = -p / p.sum()
        r[label] += 1
        G[active] += r**2
        w[active] += eta * r / np.sqrt(G[active])
    return w


# ---- Bayesian networks ----


def kdb_scores(
    codes: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    nodes: Sequence[Any],
    k: int,
    sizes: Sequence[int],
    m: float,
) -> np.ndarray:
    """log P(y) + sum_i log P(x_i | parents, y) by counting rows that agree."""
    classes = range(int(labels.max()) + 1)
    scores = np.zeros((len(rows), len(classes)))
    for i, x in enumerate(rows):
        for y in classes:
            mine = codes[labels == y]
            score = math.log((len(mine) + m / len(classes)) / (len(codes) + m))
            for node in nodes:
                agree = np.ones(len(mine), bool)
                for parent in node.parents[:k]:
                    agree &= mine[:, parent] == x[parent]
                both = agree & (mine[:, node.attribute] == x[node.attribute])
                score += math.log((both.sum() + m / sizes[node.attribute]) / (agree.sum() + m))
            scores[i, y] = score
    return scores
