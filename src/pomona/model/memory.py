"""Learning from examples that are all in memory: each pass takes them in an order of its own.

Equal examples are counted together, and the order of learning follows from what the examples are and from the seed,
not from where they stood. So a weight of 2 is the same as the example twice, to the bit, a weight of 0 is the same as
its absence, and the model does not depend on how the rows were sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk, Source, concatenate
from pomona.model.pipeline import Model, TargetScale
from pomona.model.train import ProgressCallback, Trainer
from pomona.online.learner import OnlineLearner
from pomona.options import LearnOptions

if TYPE_CHECKING:
    from pomona.encode import TableEncoder

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Heavy examples are learnt as several lighter ones, in all at most this many (or twice the number of examples).
MOST_COPIES = 1 << 17
#: Examples learnt in one call; between calls Ctrl-C is heard.
CALL_EXAMPLES = 1 << 18
NO_LABELS = np.empty(0)


@dataclass(frozen=True, slots=True)
class Examples:
    """All examples, and how a pass goes through them."""

    #: All rows; weights are those of one copy.
    chunk: RowChunk
    #: The rows to learn, one of each kind.
    rows: Integers
    #: How often each of ``rows`` is learnt in a pass.
    copies: Integers

    def __len__(self) -> int:
        """Examples of one pass."""
        return int(self.copies.sum())

    def split(self, share: float) -> tuple[Examples, Examples]:
        """What to learn, and what to hold out."""
        held = np.zeros(len(self.rows), np.bool_)
        if share:
            every = max(2, round(1 / share))
            held[every - 1 :: every] = True
        return tuple(replace(self, rows=self.rows[k], copies=self.copies[k]) for k in (~held, held))  # type: ignore[return-value]

    def order(self) -> Integers:
        """The rows of one pass, before shuffling."""
        return self.rows if len(self) == len(self.rows) else np.repeat(self.rows, self.copies)

    def weights(self) -> Floats:
        """Weights of ``rows``, all copies together."""
        single = np.ones(len(self.rows)) if self.chunk.weights is None else self.chunk.weights[self.rows]
        return single * self.copies


class MemoryTrainer(Trainer):
    """The training loop over examples in memory."""

    def __init__(
        self,
        model: Model,
        learn: LearnOptions,
        examples: Examples,
        source: Source,
        progress: ProgressCallback | None = None,
    ) -> None:
        super().__init__(model, learn, NO_LABELS, source, progress)
        self._learnt, self._kept_back = examples.split(learn.holdout)

    def run_passes(self) -> None:
        """All passes; stops early when the held-out loss stops falling."""
        self.run(lambda: [self._learnt.chunk])

    def _buffers(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        yield from chunks

    def _learn(self, chunk: Chunk, rng: np.random.Generator) -> None:
        assert chunk.labels is not None
        order = self._learnt.order()
        if self.shuffle:
            order = rng.permutation(order)
        for start in range(0, len(order), CALL_EXAMPLES):
            self.model.learner.learn(chunk, chunk.labels, order[start : start + CALL_EXAMPLES])
        self._hold_out(chunk, self._kept_back.rows, self._kept_back.weights())
        self._seen += len(order)


def collect(
    model: Model, chunks: Iterable[Chunk], labels: Floats, weights: Floats | None, *, shuffle: bool
) -> Examples:
    """All examples in the learner's own terms.

    Parameters
    ----------
    model : whose learner is to learn them; notes new features.
    chunks : the examples, without labels and weights.
    labels : as the learner needs them, one an example; regression targets as they are.
    weights : above 0, one an example.
    shuffle : whether the order of the examples has no meaning, so that equal ones can be counted together.
    """
    numbering = _Numbering(model.learner, model.encoder, shuffle)
    named_fields = any("*" in term for term in model.learner.parameters.interactions)
    parts, hashes, done = [], [], 0
    for chunk in chunks:
        if shuffle:
            hashes.append(_fingerprints(chunk, labels[done : done + len(chunk)]))
        done += len(chunk)
        prepared = numbering.prepare(chunk if named_fields else replace(chunk, fields=None))
        parts.append(replace(prepared, names=None))
    whole = concatenate(parts)
    rows, copies = np.arange(done), np.ones(done, np.int64)
    if shuffle:
        rows, totals = _distinct(np.concatenate(hashes), weights)
        copies, single = _copies(totals)
        weights = None
        if (single != 1.0).any():
            weights = np.ones(done)
            weights[rows] = single
    whole = replace(whole, indices=numbering.final(whole.indices), labels=labels, weights=weights)
    assert isinstance(whole, RowChunk)
    return Examples(whole, rows, copies)


def scale_targets(model: Model, examples: Examples) -> Examples:
    """Regression: the scale of the targets, from the examples, and the examples with targets in that scale."""
    labels = examples.chunk.labels
    assert labels is not None
    if model.learner.examples == 0:
        known = labels[examples.rows]
        model.target = TargetScale.fit(known, model.learner.parameters.loss, examples.weights())
    scaled = (labels - model.target.shift) / model.target.scale
    return replace(examples, chunk=replace(examples.chunk, labels=scaled))


def _fingerprints(chunk: Chunk, labels: Floats) -> NDArray[np.uint64]:
    indptr, labels = np.ascontiguousarray(chunk.indptr), np.ascontiguousarray(labels)
    struct = _native.chunk_struct(indptr, chunk.indices, chunk.values, labels, None, None, None, False)
    return _native.hash_rows(struct)


def _distinct(hashes: NDArray[np.uint64], weights: Floats | None) -> tuple[Integers, Floats]:
    """One row of each kind, in the order of their hashes, and the sum of the weights of its kind."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if weights is None:
        return order[first], np.diff(first, append=len(order)).astype(np.float64)
    return order[first], np.add.reduceat(weights[order], first)


def _copies(totals: Floats) -> tuple[Integers, Floats]:
    """How often to learn each example in a pass, and the weight of one copy.

    A heavy example is better learnt as several of weight 1 than at once, which would make the others forgotten. Weights
    below 1 on average, as those that sum to 1, are scaled up to 1: their unit has no meaning.
    """
    totals = totals / min(1.0, float(totals.mean()))
    room = max(MOST_COPIES, 2 * len(totals)) - len(totals)
    unit = max(1.0, float(totals.sum()) / max(room, 1))
    copies = np.ceil(totals / unit)
    return copies.astype(np.int64), totals / copies


class _Numbering:
    """Gives features their rows in the tables, in an order that does not depend on the order of the examples.

    Products of features are summed in the order of their rows, so rows have to be the same for sums to be. The features
    that the encoder knows come first, column by column; the others follow in the order of their ids.
    """

    def __init__(self, learner: OnlineLearner, encoder: TableEncoder | None, sort: bool) -> None:
        self._learner = learner
        self._map: _native.IdMap | None = None
        self._names: list[str] = []
        if encoder is None or learner.parameters.bits is not None:
            return
        self._map = _native.IdMap() if sort else None
        ids = [part.ids for column in encoder.columns for part in column.parts]
        known = [name for column in encoder.columns for part in column.parts for name in part.names]
        if ids:
            self._register(np.concatenate(ids), known)

    def prepare(self, chunk: Chunk) -> RowChunk:
        if self._map is None:
            return self._learner.prepare(chunk)
        rows, fresh = self._map.insert(chunk.indices)  # type: ignore[arg-type]
        self._names += chunk.names(fresh) if chunk.names is not None else [""] * len(fresh)
        return RowChunk(chunk.indptr, rows, chunk.values, fields=chunk.fields, offsets=chunk.offsets)

    def final(self, rows: NDArray[np.uint32] | NDArray[np.uint64]) -> NDArray[np.uint32] | NDArray[np.uint64]:
        """Rows in the learner's tables."""
        if self._map is None:
            return rows
        ids = self._map.ids()
        order = np.argsort(ids)
        place = np.empty(len(ids), np.uint32)
        place[order] = self._register(ids[order], [self._names[i] for i in order])
        return np.take(place, rows)

    def _register(self, ids: NDArray[np.uint64], names: list[str]) -> NDArray[np.uint32]:
        def lookup(positions: Integers) -> list[str]:
            return [names[i] for i in positions]

        chunk = Chunk(np.array([0, len(ids)]), ids, np.zeros(len(ids), np.float32), names=lookup)
        return self._learner.prepare(chunk).indices  # type: ignore[return-value]
