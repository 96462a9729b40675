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
        self.parts = parts
        if parts.train.is_sparse:
            from pomona.source.arrays import ArraySource

            self.train: Any = ArraySource(parts.train.X, parts.train.y)
            self.test: Any = ArraySource(parts.test.X, parts.test.y)
        else:
            self.train, self.test = _encoded(parts, encode)

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
        clock = Clock()
        with clock.running():
            model = train(self.train, learn=learn)
        answers = _answers(model, self.test, task) if predict else None
        return Fit(float(model.summary["loss"]), answers, clock.seconds)


def _encoded(parts: Parts, encode: dict[str, Any]) -> tuple[InMemory, InMemory]:
    from pomona.encode import EncodedSource, TableEncoder
    from pomona.options import EncodeOptions, ReadOptions
    from pomona.source import open_source

    def table(part: Dataset) -> Any:
        return open_source(part.X.assign(**{TARGET: part.y}))

    read = ReadOptions(target=TARGET, categorical=parts.train.categorical, text=parts.train.text)
    encoder = TableEncoder.fit(table(parts.train), read, EncodeOptions(**encode))
    train, test = (EncodedSource(table(part), encoder) for part in (parts.train, parts.test))
    return InMemory(train), InMemory(test)


def _answers(model: Any, test: Any, task: str) -> NDArray[Any]:
    raw: NDArray[np.float64] = np.concatenate(list(model.predict(test)))
    if task == "regression":
        return raw
    codes = raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0.5).astype(np.int64)
    return np.asarray(np.asarray(model.task.classes)[codes])


def fitter(parts: Parts, scratch: Path) -> Fitter:
    return Fitter(parts)
