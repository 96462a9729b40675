"""k-dependence Bayesian classifiers (KDB) and their selective form (SKDB), as models over tuples.

``P(y) prod_i P(x_i | parents_i, y)`` with M-estimates ``(count(x_i, pa, y) + m/|X_i|) / (count(pa, y) + m)`` is a sum
of logarithms over tuples: one of the attribute with its parents, one of the parents alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.higherorder.coded import CodedData
from pomona.higherorder.counts import TupleCounts, count_tuples
from pomona.higherorder.discriminative import M, TupleModel, log_priors
from pomona.higherorder.options import KDBOptions
from pomona.higherorder.tuples import Members, TupleSet
from pomona.learner import Step

Floats = NDArray[np.float64]
#: Numbers that leave-one-out works on at once.
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Node:
    """An attribute with its parents, the strongest first."""

    attribute: int
    parents: Members

    def with_parents(self, k: int) -> tuple[Members, Members]:
        """The tuples of the attribute and its first k parents, and of the parents alone."""
        parents = tuple(sorted(self.parents[:k]))
        return tuple(sorted((self.attribute, *parents))), parents


def structure(single: TupleCounts, pairs: TupleCounts, k: int) -> list[Node]:
    """Attributes by falling mutual information with the class; parents by conditional mutual information."""
    information = single.mutual_information()
    order = np.argsort(-information, kind="stable").tolist()
    conditional = conditional_information(single, pairs)
    nodes = []
    for place, attribute in enumerate(order):
        before = sorted(order[:place], key=lambda other: -conditional[attribute, other])
        nodes.append(Node(attribute, tuple(before[:k])))
    return nodes


def conditional_information(single: TupleCounts, pairs: TupleCounts) -> Floats:
    """I(X_i; X_j | Y) in nats, a symmetric matrix."""
    n_attributes = len(single.tuples)
    found = np.zeros((n_attributes, n_attributes))
    totals = np.maximum(single.class_counts.astype(np.float64), 1)
    n = totals.sum()
    starts = pairs.starts
    for t, (i, j) in enumerate(pairs.tuples.members):
        sizes = int(pairs.tuples.sizes[j]), int(pairs.tuples.sizes[i])
        cells = np.zeros((sizes[0] * sizes[1], pairs.n_classes))
        cells[_cells(pairs, t)] = pairs.counts[starts[t] : starts[t + 1]]
        table = cells.reshape(*sizes, -1)
        expected = table.sum(axis=0, keepdims=True) * table.sum(axis=1, keepdims=True) / totals
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(table > 0, table * np.log(table / expected), 0.0)
        found[i, j] = found[j, i] = terms.sum() / n
    return found


def _cells(counts: TupleCounts, t: int) -> NDArray[np.int64]:
    """Cells of a tuple that occur, counted from its first."""
    start, stop = int(counts.index.starts[t]), int(counts.index.starts[t + 1])
    words = counts.index.words["bits"][start // 64 : (stop + 63) // 64].copy()
    flags = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(flags[start % 64 : start % 64 + stop - start])


def bayes_model(nodes: list[Node], k: int, counts: TupleCounts, m: float = M) -> TupleModel:
    """The network with k parents as a model over the tuples in ``counts``."""
    places = {members: t for t, members in enumerate(counts.tuples.members)}
    starts, n_classes = counts.starts, counts.n_classes
    weights = np.zeros(counts.counts.shape)
    bias = log_priors(counts.class_counts, m).astype(np.float64)
    for node in nodes:
        family, parents = node.with_parents(k)
        share = m / (float(counts.tuples.sizes[node.attribute]) - 1)
        t = places[family]
        rows = slice(starts[t], starts[t + 1])
        weights[rows] += np.log1p(counts.counts[rows] / share)
        if not parents:
            bias -= np.log(counts.class_counts + m)
            continue
        t = places[parents]
        rows = slice(starts[t], starts[t + 1])
        weights[rows] -= np.log1p(counts.counts[rows] / m)
    if n_classes == 2:
        weights, bias = weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1]
    arrays = np.ascontiguousarray(weights, np.float32), np.ascontiguousarray(bias, np.float32)
    return TupleModel(counts.tuples, counts.index, *arrays, n_classes)


def leave_one_out(data: CodedData, nodes: list[Node], k: int, counts: TupleCounts, m: float = M) -> Floats:
    """Summed squares of 1 - P(y|x) for every number of parents (0 … k) and of attributes (1 … a), in one pass.

    Each row is predicted from the counts of all others: its own class loses one in each of its cells.
    """
    places = {members: t for t, members in enumerate(counts.tuples.members)}
    sums = np.zeros((k + 1, len(nodes)))
    plain = counts.counts.astype(np.float64)
    step = max(1, BLOCK // (len(nodes) * counts.n_classes))
    for codes, labels in data.blocks():
        for start in range(0, len(labels), step):
            part, y = counts.index.rows(codes[start : start + step]), labels[start : start + step]
            own = np.zeros((len(y), counts.n_classes))
            own[np.arange(len(y)), y] = 1
            for parents in range(k + 1):
                scores = np.log(counts.class_counts - own + m / counts.n_classes)
                for i, node in enumerate(nodes):
                    family, above = node.with_parents(parents)
                    share = m / (float(counts.tuples.sizes[node.attribute]) - 1)
                    scores += np.log(plain[part[:, places[family]]] - own + share)
                    below = plain[part[:, places[above]]] if above else counts.class_counts
                    scores -= np.log(below - own + m)
                    sums[parents, i] += _squares(scores, y)
    return sums


def _squares(scores: Floats, labels: NDArray[np.int32]) -> float:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e[np.arange(len(labels)), labels] / e.sum(axis=1)
    return float(((1 - p) ** 2).sum())


def fit_kdb(data: CodedData, options: KDBOptions, report: Callable[[Step], None]) -> tuple[TupleModel, dict[str, Any]]:
    """Two passes for KDB: pairs, then families; a third for SKDB, which chooses k and the attributes."""
    k = min(options.k, max(data.width - 1, 0))
    classes = data.class_counts()
    singles: list[Members] = [(a,) for a in range(data.width)]
    everything: list[Members] = [*singles, *itertools.combinations(range(data.width), 2)]
    both = count_tuples(TupleSet(everything, data.sizes), data.blocks, classes, options.memory)
    single = both.take(list(range(len(singles))))
    pairs = both.take(list(range(len(singles), len(everything)))) if data.width > 1 else single
    nodes = structure(single, pairs, k) if data.width > 1 else [Node(a, ()) for a in range(data.width)]
    report(Step("structure found"))
    numbers = range(k + 1) if options.selective else [k]
    needed = dict.fromkeys(t for node in nodes for n in numbers for t in node.with_parents(n) if t)
    counts = count_tuples(TupleSet(list(needed), data.sizes), data.blocks, classes, options.memory)
    report(Step(f"{counts.index.n_rows:,} features counted"))
    facts: dict[str, Any] = {}
    if options.selective and nodes:
        sums = leave_one_out(data, nodes, k, counts)
        k, last = (int(i) for i in np.unravel_index(int(np.argmin(sums)), sums.shape))
        nodes = nodes[: last + 1]
        facts["leave_one_out_rmse"] = float(np.sqrt(sums.min() / len(data)))
        kept = dict.fromkeys(t for node in nodes for t in node.with_parents(k) if t)
        counts = counts.take([i for i, t in enumerate(counts.tuples.members) if t in kept])
        report(Step(f"{k} parents and {len(nodes)} attributes chosen by leave-one-out"))
    model = bayes_model(nodes, k, counts)
    return model, {**facts, "k": k, "attributes": len(nodes), "parameters": model.n_parameters}
