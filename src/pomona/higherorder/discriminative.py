"""Discriminative passes (Algorithm 2): AdaGrad on the softmax loss, over the features of a set of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import Codes, Labels, Slots, TupleIndex, learn
from pomona.errors import DataFormatError
from pomona.higherorder.bits import concatenated
from pomona.higherorder.coded import Rows
from pomona.higherorder.counts import BLOCK, TupleCounts
from pomona.higherorder.tuples import TupleSet

#: Weight of the Dirichlet prior in P(F|y).
M = 0.1
#: What AdaGrad's sums begin with.
G0 = 1.0

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TupleModel:
    """What predicts: scores are ``bias + sum over tuples of weights[row]``."""

    tuples: TupleSet
    index: TupleIndex
    #: (features + 1, outputs); one output with two classes.
    weights: Floats32
    bias: Floats32
    n_classes: int

    @property
    def n_parameters(self) -> int:
        """One a feature and class, as the paper counts."""
        return self.index.n_rows * self.n_classes

    def scores(self, codes: Codes) -> NDArray[np.float64]:
        """Raw scores (n,) or (n, classes); codes never seen add nothing."""
        if codes.shape[1] != len(self.tuples.sizes):
            raise DataFormatError(f"expected {len(self.tuples.sizes)} attributes, got {codes.shape[1]}")
        known = np.ascontiguousarray(np.minimum(codes, self.tuples.sizes - np.uint32(1)), np.uint32)
        raw = self.index.predict(known, self.weights, self.bias).astype(np.float64)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def scores_of(self, rows: Rows) -> NDArray[np.float64]:
        return scores_of(rows, self.index, self.weights, self.bias)

    def scaled(self, factor: float) -> TupleModel:
        """All scores multiplied: probabilities sharper or flatter, the order of classes the same."""
        weights, bias = self.weights * np.float32(factor), self.bias * np.float32(factor)
        return TupleModel(self.tuples, self.index, weights, bias, self.n_classes)


def averaged(models: Sequence[TupleModel], columns: Sequence[Sequence[int]], sizes: NDArray[np.uint32]) -> TupleModel:
    """The mean of the scores of several models as one model; ``columns`` are the attributes each of them knows."""
    members = [
        tuple(own[a] for a in t) for model, own in zip(models, columns, strict=True) for t in model.tuples.members
    ]
    tuples, share = TupleSet(members, sizes), np.float32(1 / len(models))
    bits = concatenated((model.index.words["bits"], 0, model.index.n_cells) for model in models)
    weights = np.concatenate([models[0].weights[:1], *[model.weights[1:] for model in models]]) * share
    bias = np.stack([model.bias for model in models]).mean(axis=0, dtype=np.float32)
    return TupleModel(tuples, tuples.index(bits=bits), weights, np.asarray(bias), models[0].n_classes)


def scores_of(rows: Rows, index: TupleIndex, weights: Floats32, bias: Floats32) -> NDArray[np.float64]:
    """Raw scores of coded rows."""
    outputs = len(bias)
    parts = [index.predict(codes, weights, bias) for codes, _ in rows.blocks()]
    raw = np.concatenate(parts).astype(np.float64) if parts else np.empty((0, outputs))
    return raw[:, 0] if outputs == 1 else raw


def two_columns(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of all classes, also where there is one logit."""
    return np.column_stack([np.zeros(len(raw)), raw]) if raw.ndim == 1 else raw


def log_losses(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """-log P(y|x) of each row."""
    scores = two_columns(raw)
    top = scores.max(axis=1)
    total = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    return np.asarray(total - scores[np.arange(len(labels)), labels])


def log_loss(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """Mean of -log P(y|x)."""
    return float(log_losses(raw, labels).mean())


def error_rate(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """Share of rows whose class does not have the highest score."""
    return float(np.mean(two_columns(raw).argmax(axis=1) != labels))


def temperature(raw: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """Factor for the scores that makes the loss on these rows least, by golden section on its logarithm."""
    low, high, ratio = -4.0, 2.0, (5**0.5 - 1) / 2

    def loss(log_factor: float) -> float:
        return log_loss(raw * float(np.exp(log_factor)), labels)

    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = loss(a), loss(b)
    for _ in range(20):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = loss(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = loss(b)
    return float(np.exp((low + high) / 2))


def tuple_share(n_attributes: int, tuples: TupleSet) -> float:
    """AnJE's weight of a tuple: 1/C(a-1, n-1), so that each attribute counts once; a/(n T) after selection of T."""
    sizes = np.array([len(t) for t in tuples.members], np.float64)
    if n_attributes and len(tuples) == comb(n_attributes, tuples.order):
        return 1.0 / comb(n_attributes - 1, tuples.order - 1)
    return n_attributes / float(sizes.sum()) if len(sizes) else 1.0


def log_priors(class_counts: NDArray[np.int64], m: float = M) -> Floats32:
    """log P(y) by M-estimates."""
    n = class_counts.sum()
    return np.asarray(np.log((class_counts + m / len(class_counts)) / (n + m)), np.float32)


def generative_model(counts: TupleCounts, n_attributes: int, m: float = M) -> TupleModel:
    """AnJE: log P(y) plus the share of log P(F|y) of each tuple; naive Bayes where tuples are single attributes."""
    share = tuple_share(n_attributes, counts.tuples)
    weights = counts.log_probabilities(m) * np.float32(share)
    bias = log_priors(counts.class_counts, m)
    if counts.n_classes == 2:
        weights = np.ascontiguousarray(weights[:, 1:] - weights[:, :1])
        bias = bias[1:] - bias[:1]
    return TupleModel(counts.tuples, counts.index, weights, bias, counts.n_classes)


class Discriminative:
    """Parameters while they are learnt.

    Parameters
    ----------
    counts : features and their class counts.
    n_attributes : of the data, selected or not.
    generative_start : whether weights begin at AnJE's, else at 0.
    scaled : whether steps are multiplied by |log P(F|y)|, the generative preconditioner.
    """

    def __init__(
        self,
        counts: TupleCounts,
        n_attributes: int,
        *,
        generative_start: bool = False,
        scaled: bool = True,
        m: float = M,
        g0: float = G0,
    ) -> None:
        self.counts, self.n_attributes, self.m, self.g0 = counts, n_attributes, m, g0
        self.generative_start, self.scaled = generative_start, scaled
        self.n_classes = counts.n_classes
        self.slots = Slots(counts.index.n_rows, self.n_classes)
        self._extra = np.repeat(m / counts.tuples.cardinalities(), np.diff(counts.starts)).astype(np.float32)
        self._filled = False
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        n_rows = self.counts.index.n_rows
        for start in range(1, n_rows + 1, BLOCK):
            rows = slice(start, min(start + BLOCK, n_rows + 1))
            if self._filled and not self.generative_start:
                self.slots.restart(rows, self.g0)
            else:
                self._fill(rows)
        self._filled = True
        priors = log_priors(self.counts.class_counts, self.m)
        self.slots.fill(slice(0, 1), 0.0, self.g0, 0.0)
        bias = priors[1:] - priors[:1] if self.n_classes == 2 else priors
        self.slots.fill(slice(n_rows + 1, None), bias, self.g0, 1.0)
        self.slots.examples = 0

    def _fill(self, rows: slice) -> None:
        """Start values of features, from their counts."""
        if not self.scaled and not self.generative_start:
            self.slots.fill(rows, 0.0, self.g0, 1.0)
            return
        share = np.float32(tuple_share(self.n_attributes, self.counts.tuples) if self.generative_start else 0.0)
        part = self.counts.counts[rows] + self._extra[rows.start - 1 : rows.stop - 1, None]
        log_p = np.log(part, dtype=np.float32) - np.log(self.counts.class_counts + self.m).astype(np.float32)
        two = self.n_classes == 2
        w = share * (log_p[:, 1:] - log_p[:, :1] if two else log_p)
        scale = -log_p.sum(axis=1, keepdims=True) if two else -log_p
        self.slots.fill(rows, w, self.g0, scale if self.scaled else 1.0)

    def learn(self, blocks: Iterable[tuple[Codes, Labels]], eta: float, l2: float = 0.0) -> tuple[float, float] | None:
        """One pass; the progressive loss and error, or None where a score overflows."""
        loss = errors = n = 0.0
        for codes, labels in blocks:
            found = learn(self.counts.index, self.slots, codes, labels, eta, l2)
            if found is None:
                return None
            loss, errors, n = loss + found[0], errors + found[1], n + len(labels)
        return loss / max(n, 1), errors / max(n, 1)

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        return scores_of(rows, self.counts.index, self.slots.weights, self.slots.bias)

    def drops(self, rows: Rows) -> NDArray[np.float64]:
        """CVScore of each tuple: how much the mean loss on these rows grows when the tuple is taken away."""
        sums = np.zeros(self.counts.index.n_tuples)
        for codes, labels in rows.blocks():
            self.counts.index.drop(codes, labels, self.slots.weights, self.slots.bias, sums)
        return sums / max(len(rows), 1)

    def weights(self) -> tuple[Floats32, Floats32]:
        """Copies of the weights and the intercept."""
        return self.slots.weights[:, : self.slots.outputs].copy(), self.slots.bias.copy()

    def model(self, weights: tuple[Floats32, Floats32] | None = None) -> TupleModel:
        """What was learnt, or the weights that were set aside."""
        w, bias = self.weights() if weights is None else weights
        return TupleModel(self.counts.tuples, self.counts.index, w, bias, self.n_classes)
