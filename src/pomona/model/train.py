"""Training: passes over a source, shuffling, hold-out, progress."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import FEW_FEATURES, Chunk, Source, concatenate
from pomona.errors import DataFormatError, OptionError
from pomona.learner import State
from pomona.model.families import family
from pomona.model.keep import KeptChunks
from pomona.model.order import in_order
from pomona.model.pipeline import Model, TargetScale
from pomona.model.start import (
    class_factors,
    expected_examples,
    find_task,
    known,
    looking_up,
    open_data,
    peek,
    plain_options,
)
from pomona.online.apple import AppleLearner, new_learner, plan_rounds
from pomona.online.learner import OnlineLearner
from pomona.online.losses import losses
from pomona.online.parameters import OnlineParameters, check, degree_of
from pomona.options import BINS, EncodeOptions, LearnOptions, ReadOptions
from pomona.source.blocks import OrderedMap
from pomona.task import Task

if TYPE_CHECKING:
    from pomona.encode import TableEncoder
    from pomona.model.polish import Polish

DEFAULT_READ, DEFAULT_ENCODE, DEFAULT_LEARN = ReadOptions(), EncodeOptions(), LearnOptions()

#: Columns that are told apart where products of some of them are wanted.
MOST_FIELDS = 1 << 16
#: apple multiplies what it finds: beside the hat functions, the numbers themselves make short work of smooth surfaces.
APPLE_NUMERIC = "hat+standard"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training stands; losses are progressive (each example is predicted before it is learnt)."""

    examples: int
    features: int
    pass_number: int
    passes: int
    loss_last: float
    loss: float
    seconds: float
    #: Share of all passes that is done, where the size is known.
    fraction: float | None
    #: Mean loss on held-out examples in this pass.
    held_out: float | None
    #: What is learnt, and the number of first examples it was found from.
    task: Task
    sample: int


ProgressCallback = Callable[[Progress], None]


def train(
    data: Any,
    *,
    read: ReadOptions = DEFAULT_READ,
    encode: EncodeOptions = DEFAULT_ENCODE,
    learn: Any = DEFAULT_LEARN,
    progress: Callable[[Any], None] | None = None,
) -> Model[Any]:
    """Learn a model from anything :func:`pomona.source.open_source` reads, in bounded memory.

    Parameters
    ----------
    data : path, glob, list of paths, folder, ``"-"``, array, frame, or a Source.
    read, encode, learn : what to read, how to encode columns, how to learn; the kind of ``learn`` chooses the family.
    progress : called after each chunk with a :class:`Progress`; by families that choose their own passes with a
        :class:`pomona.learner.Step`.
    """
    if not isinstance(learn, LearnOptions):
        from pomona.model.batch import train_batch

        return train_batch(data, read, encode, learn, progress)
    check(learn)
    start = time.perf_counter()
    source, encoder = open_data(data, read, suited(encode, learn), family(learn.learner))
    options = plain_options(read, encode, learn)
    labels, chunks = peek(source, encode.sample_rows)
    numeric = None if encoder is None else suited(encode, learn).numeric
    model = _start(source, labels, encoder, learn, options, numeric)
    trainer = Trainer(model, learn, labels, source, progress)
    with looking_up(source, model.learner):
        trainer.run_chunks(chunks)
    model.summary = trainer.summary(source.name, time.perf_counter() - start)
    return model


def suited(encode: EncodeOptions, learn: LearnOptions) -> EncodeOptions:
    """The encoding of numbers that suits the learner, where none is given."""
    numeric = APPLE_NUMERIC if encode.numeric == "auto" and learn.learner == "apple" else encode.numeric
    return replace(encode, numeric=numeric, bins=BINS[degree_of(learn)] if encode.bins is None else encode.bins)


def _start(
    source: Source,
    labels: NDArray[Any],
    encoder: TableEncoder | None,
    learn: LearnOptions,
    options: dict[str, Any],
    numeric: str | None,
) -> Model[OnlineLearner]:
    """An untrained model for the task that the first labels show."""
    task = find_task(source, labels, learn.task)
    parameters = OnlineParameters.from_options(learn, task)
    if encoder is not None:  # namespaces of a text may still come
        check_fields(learn, source.fields)
    target = TargetScale()
    if task.kind == "regression":
        target = TargetScale.fit(task.encode(known(labels), file=source.name), parameters.loss)
    text = encoder is not None and encoder.has_text
    learner = new_learner(parameters, source.fields, learn, numeric, text)
    return Model(task, learner, encoder, target, options=options)


def _named_fields(learn: LearnOptions) -> list[tuple[str, str]]:
    """The columns that options name, each with what names it."""
    terms = (learn.interactions,) if isinstance(learn.interactions, str) else learn.interactions
    named = [(f"the interaction {term!r}", name) for term in terms if "*" in term for name in term.split("*")]
    return [*named, *(("expand", name) for name in learn.expand)]


def names_fields(learn: LearnOptions) -> bool:
    """Whether it matters which column a feature belongs to."""
    return bool(_named_fields(learn))


def check_fields(learn: LearnOptions, fields: Sequence[str]) -> None:
    """Refuse an option that names a column which is not there."""
    for what, name in _named_fields(learn):
        if len(fields) > MOST_FIELDS:
            raise OptionError(
                f"{what} names the column {name!r}, which needs at most {MOST_FIELDS:,} columns, got {len(fields):,}:"
                " name no columns, or leave some out"
            )
        if name not in fields:
            shown = ", ".join(fields[:8]) + (", …" if len(fields) > 8 else "")
            raise OptionError(f"{what} names the column {name!r}, which is not among {shown}")


class Trainer:
    """The loop over passes, buffers and chunks, and the figures it collects."""

    def __init__(
        self,
        model: Model[OnlineLearner],
        learn: LearnOptions,
        first_labels: NDArray[Any],
        source: Source,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.model, self.learn, self.source, self.progress = model, learn, source, progress
        # Sparse text comes as a stream, in the order of time; tables come in any order, often sorted.
        several = learn.passes > 1 or model.encoder is not None
        self.shuffle = several if learn.shuffle is None else learn.shuffle
        self.start = time.perf_counter()
        self.passes_done = 0
        self.held_out: float | None = None
        self.polished: Polish | None = None
        self._seen = 0  # examples of this pass, held-out ones included
        self._n_examples = source.n_examples
        self._held = [0.0, 0.0]
        self._best: tuple[float, State] | None = None
        self._last = (0.0, 0.0)
        loss, scale = model.learner.parameters.loss, model.target.scale
        self._unit = scale**2 if loss == "squared" else scale if loss == "quantile" else 1.0
        self._factors = class_factors(model.task, learn.class_weight, first_labels)
        self._sample = len(first_labels)

    # ---- passes ----
    def run_chunks(self, chunks: Iterable[Chunk]) -> None:
        """All passes over chunks that come once; they are kept for further passes."""
        with contextlib.closing(self._made_ready(iter(chunks))) as ready:
            buffers = self._buffers(ready)
            if self.learn.passes == 1 and not self.learn.polish:
                self.run(lambda: buffers)
                return
            with KeptChunks(buffers, self.learn.memory) as kept:
                self.run(kept.chunks)

    def _made_ready(self, chunks: Iterator[Chunk]) -> Generator[Chunk, None, None]:
        """Chunks made ready by another thread while others are learnt, unless there is too little for it to do."""
        first = next(chunks, None)
        if first is None:
            return
        chunks = itertools.chain([first], chunks)
        n, features = self.source.n_examples, int(first.indptr[-1] - first.indptr[0])
        if n is not None and n * features <= FEW_FEATURES * len(first):
            yield from map(self.ready, chunks)
        else:
            yield from OrderedMap(chunks, self.ready, threads=1, ahead=2)

    def run(self, one_pass: Callable[[], Iterable[Chunk]]) -> None:
        """All passes over what ``one_pass`` gives; stops early when the held-out loss stops falling."""
        stale, expected = 0, self._expected()
        plan_rounds(self.model.learner, self.learn, expected)
        for number in range(self.learn.passes):
            self._seen, self._held = 0, [0.0, 0.0]
            # None without shuffling: to import random numbers takes as long as to learn a small file.
            rng = np.random.default_rng([self.learn.seed, number]) if self.shuffle else None
            self.model.learner.start_pass(number)
            if self.learn.decay:
                self.model.learner.scale_rate(1 - number / self.learn.passes)
            for buffer in one_pass():
                self._learn(buffer, rng)
                self._report(number)
            self.model.learner.end_pass()
            if number == 0 and self.learn.grow == "first" and isinstance(self.model.learner, AppleLearner):
                self.model.learner.freeze()
            self.passes_done, self._n_examples = number + 1, self._seen
            if not self.learn.holdout:
                continue
            self.held_out = _mean((self._held[0], self._held[1]))
            if self._best is None or self.held_out < self._best[0]:
                self._best, stale = (self.held_out, self._copy()), 0
            elif (stale := stale + 1) >= self.learn.patience:
                break
        self.model.learner.scale_rate(1.0)
        if self._best is not None and stale:
            self.held_out = self._best[0]
            self.model.learner = type(self.model.learner).from_state(self._best[1])
        if self.learn.polish:
            from pomona.model.polish import polish  # needs scipy, which online learning does not

            self.polished = polish(self.model.learner, self._polishing(one_pass))

    def _polishing(self, one_pass: Callable[[], Iterable[Chunk]]) -> Iterable[Chunk]:
        """The examples from which weights are refitted."""
        return one_pass()

    def _expected(self) -> int | None:
        """Examples that a pass learns, as far as is known."""
        expected = expected_examples(self.source)
        return None if expected is None else round(expected * (1 - self.learn.holdout))

    def _copy(self) -> State:
        if self.learn.passes == 1:
            return State({})
        state = self.model.learner.state()
        return State(state.header, {name: array.copy() for name, array in state.arrays.items()})

    def _buffers(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Chunks as they come or, for shuffling, buffers of a fixed number of examples whatever the chunks."""
        if not self.shuffle:
            yield from chunks
            return
        waiting: list[Chunk] = []
        room = self.learn.shuffle_buffer
        for chunk in chunks:
            while len(chunk) >= room:
                yield concatenate([*waiting, chunk.slice(0, room)])
                chunk, waiting, room = chunk.slice(room, len(chunk)), [], self.learn.shuffle_buffer
            if len(chunk):
                waiting.append(chunk)
                room -= len(chunk)
        if waiting:
            yield concatenate(waiting)

    # ---- chunks ----
    def ready(self, chunk: Chunk) -> Chunk:
        """The chunk with labels as numbers, class weights applied, and features in the learner's own terms."""
        if chunk.labels is None:
            raise DataFormatError("the target is missing", file=chunk.file, line=chunk.first_line)
        labels = self.model.task.encode(chunk.labels, file=chunk.file, first_line=chunk.first_line)
        weights = chunk.weights
        if self._factors is not None:
            codes = (labels if self.model.task.kind == "multiclass" else (labels + 1) / 2).astype(np.int64)
            factors = np.append(self._factors, 1.0)[np.minimum(codes, len(self._factors))]
            weights = factors if weights is None else weights * factors
        if self.model.task.kind == "regression":
            self._check_counts(labels, chunk)
            labels = (labels - self.model.target.shift) / self.model.target.scale
        learner = self.model.learner
        ready = learner.arranged(learner.prepare(replace(chunk, labels=labels, weights=weights)))
        return ready if self.shuffle else learner.with_keys(ready)  # shuffled examples are copied, without keys

    def _check_counts(self, labels: NDArray[np.float64], chunk: Chunk) -> None:
        if self.model.learner.parameters.loss != "poisson" or not (labels < 0).any():
            return
        bad = int(np.argmax(labels < 0))
        raise DataFormatError(
            f"the poisson loss needs targets >= 0, got {labels[bad]:g}",
            file=chunk.file,
            line=chunk.first_line + bad if chunk.first_line else 0,
        )

    def _learn(self, chunk: Chunk, rng: np.random.Generator | None) -> None:
        assert chunk.labels is not None
        n = len(chunk)
        order: NDArray[np.int64] | None = None if rng is None else rng.permutation(n)
        if self.learn.holdout:
            every = max(2, round(1 / self.learn.holdout))
            held = (np.arange(self._seen, self._seen + n) % every) == every - 1
            order = np.arange(n) if order is None else order
            self._learn_rows(chunk, order[~held[order]])
            rows = np.flatnonzero(held)
            self._hold_out(chunk, rows, np.ones(len(rows)) if chunk.weights is None else chunk.weights[rows])
        else:
            self._learn_rows(chunk, order)
        self._seen += n

    def _learn_rows(self, chunk: Chunk, order: NDArray[np.int64] | None) -> None:
        """Learn these rows, in this order; shuffled ones are brought together first."""
        assert chunk.labels is not None
        if order is None or not self.shuffle:
            self.model.learner.learn(chunk, chunk.labels, order)
            return
        for part in in_order(chunk, order):
            assert part.labels is not None
            self.model.learner.learn(part, part.labels)

    def _hold_out(self, chunk: Chunk, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        if not len(rows):
            return
        assert chunk.labels is not None
        raw = self.model.learner.predict(take(chunk, rows))
        each = losses(self.model.learner.parameters, raw, chunk.labels[rows])
        self._held[0] += float(weights @ each) * self._unit
        self._held[1] += float(weights.sum())

    # ---- figures ----
    def _report(self, number: int) -> None:
        if self.progress is None:
            return
        learner = self.model.learner
        total, weight = learner.loss_sums
        last = (total - self._last[0], weight - self._last[1])
        self._last = (total, weight)
        part = self.source.fraction_read() if number == 0 else self._seen / max(self._n_examples or 1, 1)
        self.progress(
            Progress(
                examples=learner.examples,
                features=learner.features,
                pass_number=number + 1,
                passes=self.learn.passes,
                loss_last=_mean(last) * self._unit,
                loss=_mean((total, weight)) * self._unit,
                seconds=time.perf_counter() - self.start,
                fraction=None if part is None else (number + part) / self.learn.passes,
                held_out=_mean((self._held[0], self._held[1])) if self._held[1] else None,
                task=self.model.task,
                sample=self._sample,
            )
        )

    def summary(self, name: str, seconds: float) -> dict[str, Any]:
        """How training went, as plain JSON values."""
        learner, weight = self.model.learner, self.model.learner.loss_sums[1]
        judged = self.model.task.kind != "regression" and weight > 0 and not math.isnan(learner.mistakes)
        return {
            "data": name,
            "examples": learner.examples,
            "features": learner.features,
            "passes": self.passes_done,
            "loss_name": learner.parameters.loss,
            "loss": _mean(learner.loss_sums) * self._unit,
            "error": learner.mistakes / weight if judged else None,
            "held_out": self.held_out,
            "polished": None if self.polished is None else asdict(self.polished),
            "weights": learner.tables.used,
            "seconds": seconds,
        }


def _mean(sums: tuple[float, float]) -> float:
    return sums[0] / sums[1] if sums[1] > 0 else math.nan


def take(chunk: Chunk, rows: NDArray[np.int64]) -> Chunk:
    """Some examples of a chunk, copied."""
    starts, stops = chunk.indptr[rows], chunk.indptr[rows + 1]
    lengths = stops - starts
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    flat = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    return type(chunk)(
        indptr,
        chunk.indices[flat],
        chunk.values[flat],
        fields=None if chunk.fields is None else chunk.fields[flat],
        offsets=None if chunk.offsets is None else chunk.offsets[rows],
    )
