"""A second-order finish: the weights of the features that online learning found, by generalized least squares.

One pass makes features, many passes make weights. Where the features are few enough for their Gram matrix, Newton-like
steps in its metric find the optimum at once (``pomona.leastsquares.gls``): online learning chooses, least squares fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.chunk import Chunk
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.gls import Problem, Slope, StepOptions, gls, intercept, moments_at
from pomona.leastsquares.links import Identity, Link, Logistic, Softmax
from pomona.leastsquares.rows import ArrayRows, GeneratedRows
from pomona.leastsquares.targets import Targets
from pomona.online.learner import OnlineLearner
from pomona.online.losses import losses

#: Features whose weights are polished, at most: the strongest.
MOST_FEATURES = 3000
#: Features of all examples together that are kept in memory; beyond that, every second, third … example is used.
MOST_ENTRIES = 1 << 27
#: Bytes of them that are kept as dense blocks; further ones are made anew in each step.
MOST_KEPT = 1 << 29
#: Strengths of the penalty that are tried on every tenth example.
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)
HELD_OUT = 10
STEPS = 30


@dataclass(frozen=True, slots=True)
class Polish:
    """What polishing did."""

    features: int
    examples: int
    ridge: float
    #: Mean loss on every tenth example, of a fit to the others.
    held_out: float


def polish(learner: OnlineLearner, chunks: Iterable[Chunk]) -> Polish | None:
    """Refit the weights of the strongest features; None, and nothing done, where the loss has no such fit.

    Parameters
    ----------
    learner : what has learnt; its weights are replaced.
    chunks : the examples, prepared, with labels as the learner takes them.
    """
    link = _link(learner)
    if link is None:
        return None
    tables, places = _strongest(learner)
    X, y, weights = _examples(learner, chunks, tables, places)
    held = np.arange(len(y)) % HELD_OUT == HELD_OUT - 1
    start = _weights(learner, tables, places)
    if held.any():
        fits = _fits(link, learner, X[~held], y[~held], weights[~held], start, RIDGES)
        tried = []
        for W, ridge in zip(fits, RIDGES, strict=True):
            each = losses(learner.parameters, _raw(learner, X[held], W), y[held])
            tried.append((float(np.average(each, weights=weights[held])), ridge))
        best, ridge = min(tried)
    else:
        best, ridge = np.nan, RIDGES[1]
    (W,) = _fits(link, learner, X, y, weights, start, [ridge])
    for table in range(len(learner.tables.slots)):
        own = tables == table
        learner.set_weights(table, places[own], W[:-1][own])
    learner.set_intercepts(W[-1] if learner.parameters.intercept else np.zeros(W.shape[1]))
    return Polish(len(places), len(y), ridge, best)


def _link(learner: OnlineLearner) -> Link | None:
    links: dict[str, Link] = {"squared": Identity(), "logistic": Logistic(), "softmax": Softmax()}
    several = learner.parameters.n_outputs > 1 and learner.parameters.loss != "softmax"
    return None if several or learner.parameters.ftrl else links.get(learner.parameters.loss)


def _strongest(learner: OnlineLearner) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tables and places of the strongest features, in the order of their columns."""
    terms = learner.terms()
    chosen = np.arange(len(terms))
    if len(terms) > MOST_FEATURES:
        chosen = np.sort(np.argpartition(-terms.sureness(), MOST_FEATURES)[:MOST_FEATURES])
    return terms.tables[chosen], terms.slots[chosen]


def _weights(learner: OnlineLearner, tables: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The weights of these features, and below them the intercepts."""
    W = np.zeros((len(places) + 1, learner.parameters.n_outputs))
    for table in range(len(learner.tables.slots)):
        own = np.flatnonzero(tables == table)
        W[own] = learner.weights_of(table, places[own])[0].reshape(len(own), -1)
    W[-1] = learner.intercepts()
    return W


def _examples(
    learner: OnlineLearner, chunks: Iterable[Chunk], tables: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[sparse.csr_matrix, NDArray[np.float64], NDArray[np.float64]]:
    """Scaled values of these features, labels and weights of the examples."""
    starts = np.cumsum([0] + [len(slots) for slots in learner.tables.slots])
    number = np.full(starts[-1], -1, np.int32)
    number[starts[tables] + places] = np.arange(len(places))
    inverse = np.ones(len(places), np.float32)
    if learner.parameters.normalized:
        for table in range(len(learner.tables.slots)):
            own = tables == table
            inverse[own] = learner.weights_of(table, places[own])[1]
    parts: list[sparse.csr_matrix] = []
    labels: list[NDArray[np.float64]] = []
    weights: list[NDArray[np.float64]] = []
    entries = 0
    for chunk in chunks:
        assert chunk.labels is not None
        indptr, columns, values = learner.expand(chunk)
        known = number[columns]
        kept = known >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[indptr]
        scaled = learner.scaled(values[kept], inverse[known[kept]], tables[known[kept]])
        part = sparse.csr_matrix((scaled, known[kept], ends), (len(chunk), len(places)))
        rows = np.flatnonzero(~np.isnan(chunk.labels))
        parts.append(part[rows])
        labels.append(chunk.labels[rows])
        weights.append(np.ones(len(rows)) if chunk.weights is None else chunk.weights[rows])
        entries += part.nnz
        if entries > MOST_ENTRIES:  # thin out what is there and what comes
            parts = [p[::2] for p in parts]
            labels, weights = [a[::2] for a in labels], [a[::2] for a in weights]
            entries = sum(p.nnz for p in parts)
    return sparse.vstack(parts, format="csr"), np.concatenate(labels), np.concatenate(weights)


def _fits(
    link: Link,
    learner: OnlineLearner,
    X: sparse.csr_matrix,
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    ridges: Sequence[float],
) -> Iterator[NDArray[np.float64]]:
    """The weights by each ridge; the Gram matrix is made once."""
    place = Place.of(X)
    # Dense blocks, for most of the work is their Gram matrix.
    rows = GeneratedRows(ArrayRows(X, place), lambda block: block.toarray(), X.shape[1], MOST_KEPT)
    if isinstance(link, Softmax):
        targets = Targets(y.astype(np.int64), place, learner.parameters.n_outputs)
    else:
        targets = Targets(((y + 1) / 2 if isinstance(link, Logistic) else y)[:, None], place)
    problem = Problem(rows, targets, intercept(rows), 1, weights=None if (weights == 1).all() else place.put(weights))
    both = moments_at(Slope(problem, link), start)
    for ridge in ridges:
        fit = gls(problem, link, StepOptions(ridge=ridge, max_steps=STEPS), start, both=both)
        yield np.asarray(fit.W, np.float64)


def _raw(learner: OnlineLearner, X: sparse.csr_matrix, W: NDArray[np.float64]) -> NDArray[np.float64]:
    raw = X @ W[:-1] + W[-1]
    return np.asarray(raw if learner.parameters.n_outputs > 1 else raw[:, 0])
