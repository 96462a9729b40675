"""pomona on a data set: typed columns in memory, encoded by its own defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import Clock
from benchmarks.contenders.pomona import InMemory
from benchmarks.datasets import Dataset, Parts
from benchmarks.fitters import Fit, Method

TARGET = "label"


class Fitter:
    """Encodes both parts once, by pomona's own encoding, and trains on the encoded chunks."""

    def __init__(self, parts: Parts, **encode: Any) -> None:
        self.parts, self._encode = parts, encode
        self._sources: dict[str, tuple[Any, Any]] = {}

    def _encoded(self, interactions: str) -> tuple[Any, Any]:
        """Sources of both parts; the number of bins depends on the degree."""
        if interactions not in self._sources:
            parts = self.parts
            if parts.train.is_sparse:
                from pomona.source.arrays import ArraySource

                train, test = (ArraySource(part.X, part.y) for part in (parts.train, parts.test))
                self._sources = {interactions: (train, test)}
            else:
                self._sources = {interactions: encoded(parts, self._encode, interactions=interactions)}
        return self._sources[interactions]

    def fit(self, method: Method, predict: bool) -> Fit:
        from pomona.model import train
        from pomona.options import LearnOptions

        task = self.parts.train.task
        learn = LearnOptions(
            task=task,
            loss="squared" if task == "regression" else method.loss,
            interactions=method.interactions,
            learning_rate=method.learning_rate,
        )
        training, test = self._encoded(method.interactions)
        clock = Clock()
        with clock.running():
            model = train(training, learn=learn)
        answers = answers_of(model, test, task) if predict else None
        # The peer's figure for several classes is the share of wrong answers: rates are chosen by the same for both.
        figure = model.summary["error" if task == "multiclass" else "loss"]
        return Fit(float(figure), answers, clock.seconds)


def encoded(parts: Parts, encode: dict[str, Any], **learn: Any) -> tuple[InMemory, InMemory]:
    """Both parts as chunks in memory, encoded by what the training part shows."""
    from pomona.encode import EncodedSource, TableEncoder
    from pomona.model.train import suited
    from pomona.options import EncodeOptions, LearnOptions, ReadOptions
    from pomona.source import open_source

    def table(part: Dataset) -> Any:
        return open_source(part.X.assign(**{TARGET: part.y}))

    read = ReadOptions(target=TARGET, categorical=parts.train.categorical, text=parts.train.text)
    options = suited(EncodeOptions(**encode), LearnOptions(**learn))
    encoder = TableEncoder.fit(table(parts.train), read, options)
    train, test = (EncodedSource(table(part), encoder) for part in (parts.train, parts.test))
    return InMemory(train), InMemory(test)


def answers_of(model: Any, test: Any, task: str) -> NDArray[Any]:
    """Class labels, or values."""
    raw: NDArray[np.float64] = np.concatenate(list(model.predict(test)))
    if task == "regression":
        return raw
    codes = raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0.5).astype(np.int64)
    return np.asarray(np.asarray(model.task.classes)[codes])


def fitter(parts: Parts, scratch: Path) -> Fitter:
    return Fitter(parts)
