"""Learning from examples that are all in memory: each pass takes them in an order of its own.

Equal examples are counted together, and the order of learning follows from what the examples are and from the seed,
not from where they stood. So a weight of 2 is the same as the example twice, to the bit, a weight of 0 is the same as
its absence, and the model does not depend on how the rows were sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk, Source
from pomona.model.order import native_chunk
from pomona.model.pipeline import Model, TargetScale
from pomona.model.train import ProgressCallback, Trainer, take
from pomona.online.learner import OnlineLearner
from pomona.online.losses import losses as example_losses
from pomona.options import LearnOptions

if TYPE_CHECKING:
    from pomona.encode import TableEncoder

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Heavy examples are learnt as several lighter ones, in all at most this many (or twice the number of examples).
MOST_COPIES = 1 << 17
#: Rows renumbered at once, few enough to stay in a core's cache.
RENUMBERED = 1 << 16
NO_LABELS = np.empty(0)
#: Rows expanded at once when weights are refitted.
POLISHED_ROWS = 1 << 14


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

    def losses(self, learner: OnlineLearner) -> Floats:
        """The loss of each of ``rows``."""
        assert self.chunk.labels is not None
        raw = learner.predict(take(self.chunk, self.rows))
        return example_losses(learner.parameters, raw, self.chunk.labels[self.rows])

    def weights(self) -> Floats:
        """Weights of ``rows``, all copies together."""
        single = np.ones(len(self.rows)) if self.chunk.weights is None else self.chunk.weights[self.rows]
        return single * self.copies


class MemoryTrainer(Trainer):
    """The training loop over examples in memory."""

    def __init__(
        self,
        model: Model[OnlineLearner],
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

    def _polishing(self, one_pass: Callable[[], Iterable[Chunk]]) -> Iterable[Chunk]:
        chunk, rows, weights = self._learnt.chunk, self._learnt.rows, self._learnt.weights()
        assert chunk.labels is not None
        for start in range(0, len(rows), POLISHED_ROWS):
            some = slice(start, start + POLISHED_ROWS)
            yield replace(take(chunk, rows[some]), labels=chunk.labels[rows[some]], weights=weights[some])

    def _expected(self) -> int | None:
        return len(self._learnt)

    def _learn(self, chunk: Chunk, rng: np.random.Generator | None) -> None:
        assert chunk.labels is not None
        order = self._learnt.order()
        self._learn_rows(chunk, order if rng is None else rng.permutation(order))
        self._hold_out(chunk, self._kept_back.rows, self._kept_back.weights())
        self._seen += len(order)


def collect(
    model: Model[OnlineLearner], chunks: Iterable[Chunk], labels: Floats, weights: Floats | None, *, shuffle: bool
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
    named_fields = model.learner.uses_fields
    n = len(labels)
    store, hashes, done = _Store(n), np.empty(n if shuffle else 0, np.uint64), 0
    for chunk in chunks:
        rows = slice(done, done + len(chunk))
        if shuffle:
            hashes[rows] = _native.hash_rows(native_chunk(chunk, labels[rows]))
        done += len(chunk)
        store.add(numbering.prepare(chunk if named_fields else replace(chunk, fields=None)))
    learnt, copies = np.arange(n), np.ones(n, np.int64)
    if shuffle:
        learnt, totals = _distinct(hashes, weights)
        copies, single = _copies(totals)
        weights = None
        if (single != 1.0).any():
            weights = np.ones(n)
            weights[learnt] = single
    whole = store.whole()
    numbering.finish(whole.indices)
    return Examples(replace(whole, labels=labels, weights=weights), learnt, copies)


def scale_targets(model: Model[OnlineLearner], examples: Examples) -> Examples:
    """Regression: the scale of the targets, from the examples, and the examples with targets in that scale."""
    labels = examples.chunk.labels
    assert labels is not None
    if model.learner.examples == 0:
        known = labels[examples.rows]
        model.target = TargetScale.fit(known, model.learner.parameters.loss, examples.weights())
    scaled = (labels - model.target.shift) / model.target.scale
    return replace(examples, chunk=replace(examples.chunk, labels=scaled))


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
    copies = np.maximum(np.ceil(totals / unit * (1 - 1e-9)), 1.0)  # a rounding error is not worth a copy
    return copies.astype(np.int64), totals / copies


class _Store:
    """Puts chunks one after the other, in arrays that are made once where the first chunk is typical."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._only: RowChunk | None = None
        self._indptr = np.zeros(n + 1, np.int64)
        self._rows = self._used = 0
        self._arrays: list[NDArray[Any]] = []

    def add(self, chunk: RowChunk) -> None:
        if len(chunk) == self._n:
            self._only = chunk
            return
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        parts: list[NDArray[Any]] = [chunk.indices, chunk.values, *([] if chunk.fields is None else [chunk.fields])]
        stop = self._used + last - first
        self._reserve(parts, stop, len(chunk))
        for array, part in zip(self._arrays, parts, strict=True):
            array[self._used : stop] = part[first:last]
        self._indptr[self._rows + 1 : self._rows + len(chunk) + 1] = chunk.indptr[1:] + (self._used - first)
        self._rows, self._used = self._rows + len(chunk), stop

    def _reserve(self, parts: list[NDArray[Any]], stop: int, rows: int) -> None:
        have = len(self._arrays[0]) if self._arrays else 0
        if stop <= have:
            return
        # What is reserved and not used costs address space only, so the guess may be generous.
        expected = int(1.1 * stop / (self._rows + rows) * self._n)
        room = max(expected, stop, 3 * have // 2)
        grown = [np.empty(room, part.dtype) for part in parts]
        for new, old in zip(grown, self._arrays, strict=False):
            new[: self._used] = old[: self._used]
        self._arrays = grown

    def whole(self) -> RowChunk:
        if self._only is not None:
            return self._only
        indices, values, *fields = (array[: self._used] for array in self._arrays)
        return RowChunk(self._indptr, indices, values, fields=fields[0] if fields else None)


class _Numbering:
    """Gives features their rows in the tables, in an order that does not depend on the order of the examples.

    Products of features are summed in the order of their rows, so rows have to be the same for sums to be. The features
    that the encoder knows come first, column by column; the others follow in the order of their ids.
    """

    def __init__(self, learner: OnlineLearner, encoder: TableEncoder | None, sort: bool) -> None:
        self._learner, self._sort = learner, sort
        self._map: _native.IdMap | None = None
        self._names: list[str] = []
        if encoder is None or learner.parameters.hashes_features:
            return
        parts = [part for column in encoder.columns for part in column.parts]
        ids = np.concatenate([part.ids for part in parts]) if parts else np.empty(0, np.uint64)
        self._names = [name for part in parts for name in part.names]
        self._register(ids, self._names)
        if sort:
            self._map = _native.IdMap()
            self._map.insert(ids)
        self._known = len(ids)

    def prepare(self, chunk: Chunk) -> RowChunk:
        """The chunk with rows in place of ids, which :meth:`finish` makes final."""
        if self._map is None:
            if self._sort and self._learner.numbers_columns(chunk):
                self._learner.prepare(_columns_of(chunk))
            return self._learner.prepare(chunk)
        rows, fresh = self._map.insert(chunk.indices)  # type: ignore[arg-type]
        found = chunk.names(fresh) if chunk.names is not None else [""] * len(fresh)
        self._names += [found[i] for i in range(len(found))]
        return RowChunk(chunk.indptr, rows, chunk.values, fields=chunk.fields)

    def finish(self, rows: NDArray[Any]) -> None:
        """Make the rows of all chunks those of the learner's tables, in place."""
        if self._map is None:
            return
        ids = self._map.ids()
        order = np.concatenate([np.arange(self._known), self._known + np.argsort(ids[self._known :])])
        place = np.empty(len(ids), np.uint32)
        place[order] = self._register(ids[order], [self._names[i] for i in order])
        if np.array_equal(place, np.arange(len(ids))):
            return
        for start in range(0, len(rows), RENUMBERED):
            part = rows[start : start + RENUMBERED]
            part[:] = place[part]

    def _register(self, ids: NDArray[np.uint64], names: list[str]) -> NDArray[np.uint32]:
        """Rows of the ids in the learner's tables, new ones in the order given."""

        def lookup(positions: Integers) -> list[str]:
            return [names[i] for i in positions]

        chunk = Chunk(np.array([0, len(ids)]), ids, np.zeros(len(ids), np.float32), names=lookup)
        return self._learner.prepare(chunk).indices  # type: ignore[return-value]


def _columns_of(chunk: Chunk) -> Chunk:
    """Each column that a matrix has anything in, in order, as one example."""
    first, names = int(chunk.indptr[0]), chunk.names
    indices: NDArray[Any] = chunk.indices[first : int(chunk.indptr[-1])]
    places: Integers | None = None
    if names is not None or chunk.width > _native.ColumnRows.WIDEST:
        columns, places = np.unique(indices, return_index=True)
    else:  # a tenth of the time
        met = np.zeros(chunk.width, np.bool_)
        met[indices] = True
        columns = np.flatnonzero(met).astype(np.uint32)
    return Chunk(
        np.array([0, len(columns)]),
        columns,
        np.zeros(len(columns), np.float32),
        names=None if names is None or places is None else lambda positions: names(places[positions] + first),
        width=chunk.width,
    )
