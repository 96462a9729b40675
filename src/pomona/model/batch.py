"""Training of the families that go through the data in passes of their own choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pomona.chunk import Chunk, Source
from pomona.errors import DataFormatError
from pomona.learner import BatchLearner, Step
from pomona.model.families import family
from pomona.model.keep import KeptChunks
from pomona.model.pipeline import Model
from pomona.model.start import class_factors, find_task, open_data, peek, plain_options
from pomona.options import EncodeOptions, ReadOptions

StepCallback = Callable[[Step], None]


def train_batch(
    data: Any, read: ReadOptions, encode: EncodeOptions, learn: Any, progress: StepCallback | None
) -> Model[BatchLearner]:
    """Learn a model of the family that ``learn`` belongs to, in bounded memory."""
    start = time.perf_counter()
    made_by = family(learn.learner)
    source, encoder = open_data(data, read, encode, made_by)
    labels, chunks = peek(source, encode.sample_rows)
    task = find_task(source, labels, learn.task)
    factors = class_factors(task, getattr(learn, "class_weight", None), labels)
    learner: BatchLearner = made_by.learner_class().from_options(learn, task, source.fields)
    options = plain_options(read, encode, learn)

    def ready(chunk: Chunk) -> Chunk:
        """The chunk with labels as codes or numbers, and class weights applied."""
        if chunk.labels is None:
            raise DataFormatError("the target is missing", file=chunk.file, line=chunk.first_line)
        codes = task.encode(chunk.labels, file=chunk.file, first_line=chunk.first_line)
        if task.kind == "binary":
            codes = (codes + 1) / 2
        weights = chunk.weights
        if factors is not None:
            each = factors[codes.astype(np.int64)]
            weights = each if weights is None else weights * each
        return replace(chunk, labels=codes, weights=weights)

    with Passes(source, map(ready, chunks), ready, learn.memory) as passes:
        summary = learner.fit(passes, progress or _ignore)
    summary = {"data": source.name, "loss_name": None, "loss": None, "error": None, "held_out": None, **summary}
    summary["seconds"] = time.perf_counter() - start
    return Model(task, learner, encoder, summary=summary, options=options)


def _ignore(step: Step) -> None:
    """Nobody watches."""


class Passes:
    """A source that can be gone through again and again, whatever it comes from.

    What reads cheaply is read again; what does not (text, standard input) is kept from the first pass, in memory or in
    a file.
    """

    reads_cheaply = rewinds = True

    def __init__(self, source: Source, first: Iterator[Chunk], ready: Callable[[Chunk], Chunk], memory: int) -> None:
        self.name, self.fields, self.n_examples = source.name, source.fields, source.n_examples
        self._source, self._ready = source, ready
        self._first: Iterator[Chunk] | None = first
        again = source.rewinds and source.reads_cheaply
        self._kept = None if again else KeptChunks(first, memory)
        #: Passes begun so far.
        self.count = 0

    def chunks(self) -> Iterator[Chunk]:
        """One pass."""
        self.count += 1
        if self._kept is not None:
            return self._kept.chunks()
        first, self._first = self._first, None
        return map(self._ready, self._source.chunks()) if first is None else first

    def fraction_read(self) -> float | None:
        """Share of the pass that is done, where that is known."""
        return self._source.fraction_read()

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._kept is not None:
            self._kept.close()
