"""Before the first example is learnt: open the data, look at its first labels, find the task."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk, Source
from pomona.errors import DataFormatError, OptionError
from pomona.model.families import Family
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import open_source
from pomona.task import Task


def open_data(data: Any, read: ReadOptions, encode: EncodeOptions, made_by: Family) -> tuple[Source, Any]:
    """The data as chunks for this family, and the encoder where it is a table."""
    source: Any = data if hasattr(data, "chunks") or hasattr(data, "batches") else open_source(data, read)
    if not hasattr(source, "batches"):
        return source, None
    from pomona.encode import EncodedSource  # needs pyarrow, which sparse text does not

    encoder = made_by.encoder_class().fit(source, read, encode)
    return EncodedSource(source, encoder), encoder


def plain_options(read: ReadOptions, encode: EncodeOptions, learn: Any) -> dict[str, dict[str, Any]]:
    """The options by group, as a file can hold them: a function is known by its name alone."""
    groups = {
        name: {field.name: getattr(group, field.name) for field in fields(group)}
        for name, group in (("read", read), ("encode", encode), ("learn", learn))
    }
    for values in groups.values():
        values.update({name: getattr(v, "__name__", repr(v)) for name, v in values.items() if callable(v)})
    return groups


def peek(source: Source, rows: int) -> tuple[NDArray[Any], Iterator[Chunk]]:
    """The labels of exactly the first ``rows`` examples, and all chunks from the beginning."""
    first_labels = getattr(source, "first_labels", None)
    found = None if first_labels is None else first_labels(rows)
    # One class alone, and a mistake in the data is likely: whatever is wrong there is reported first.
    if found is not None and len(found) and (found != found[0]).any():
        return found, source.chunks()
    chunks = source.chunks()
    seen: list[Chunk] = []
    n = 0
    for chunk in chunks:
        if chunk.labels is None:
            raise DataFormatError("the data has no target: name the column to predict", file=chunk.file or source.name)
        seen.append(chunk)
        n += len(chunk)
        if n >= rows:
            break
    if n == 0:
        raise DataFormatError("the data has no examples", file=source.name)
    labels = np.concatenate([chunk.labels for chunk in seen if chunk.labels is not None])[:rows]
    return labels, itertools.chain(seen, chunks)


@contextlib.contextmanager
def looking_up(source: Any, learner: Any) -> Iterator[None]:
    """While a source that can is asked to find the learner's rows on its own threads."""
    if not hasattr(source, "look_up") or not hasattr(learner, "look_up"):
        yield
        return
    source.look_up = learner.look_up
    try:
        yield
    finally:
        source.look_up = None


def expected_examples(source: Source) -> int | None:
    """Examples of a pass: as the source says, or as good a guess as can be had without reading it."""
    if source.n_examples is not None:
        return source.n_examples
    guess = getattr(source, "guess_examples", None)
    return None if guess is None else guess()


def find_task(source: Source, labels: NDArray[Any], wanted: str | None) -> Task:
    """The task that the first labels show."""
    labels = known(labels)
    if not len(labels):
        raise DataFormatError("no example has a label: there is nothing to learn from", file=source.name)
    task = Task.infer(labels, wanted)
    if task.kind != "regression" and len(task.classes) < 2:
        raise DataFormatError(
            f"the target has the single value {task.classes[0]!r} in the first {len(labels):,} rows: there is nothing"
            " to tell apart; shuffle the data, or give the task regression",
            file=source.name,
        )
    return task


def known(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that are there."""
    return labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels


def class_factors(
    task: Task, wanted: Mapping[Any, float] | str | None, first_labels: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Factor for the weight of each class, by code; None when all are 1."""
    if wanted is None or task.kind == "regression":
        return None
    if isinstance(wanted, str):  # "balanced"
        counts = np.array([np.count_nonzero(first_labels == label) for label in task.classes], np.float64)
        return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1.0)))
    unknown = [label for label in wanted if label not in task.classes]
    if unknown:
        raise OptionError(f"class_weight names the class {unknown[0]!r}, but the classes are {task.classes}")
    return np.array([float(wanted.get(label, 1.0)) for label in task.classes])
