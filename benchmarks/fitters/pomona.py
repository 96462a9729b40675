"""pomona on a data set: typed columns in memory, encoded by its own defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import Clock
from benchmarks.datasets import Dataset, Parts
from benchmarks.fitters import Fit, Method

TARGET = "label"


class Fitter:
    """Trains on a frame or a matrix in memory, with pomona's own encoding."""

    def __init__(self, parts: Parts, **encode: Any) -> None:
        from pomona.options import EncodeOptions, ReadOptions

        self.parts = parts
        self.encode = EncodeOptions(**encode)
        train = parts.train
        self.read = ReadOptions(
            target=None if train.is_sparse else TARGET,
            categorical=train.categorical,
            text=train.text,
        )

    def fit(self, method: Method, predict: bool) -> Fit:
        from pomona.model import train
        from pomona.options import LearnOptions

        task = self.parts.train.task
        learn = LearnOptions(
            task=task,
            loss=None if task == "multiclass" else "squared" if task == "regression" else method.loss,
            interactions=method.interactions,
            learning_rate=method.learning_rate,
        )
        clock = Clock()
        with clock.running():
            model = train(_with_target(self.parts.train), read=self.read, encode=self.encode, learn=learn)
        answers = None
        if predict:
            answers = _answers(model, self.parts.test, self.read)
        return Fit(float(model.summary["loss"]), answers, clock.seconds)


def _with_target(dataset: Dataset) -> Any:
    if dataset.is_sparse:
        return dataset.X, dataset.y
    return dataset.X.assign(**{TARGET: dataset.y})


def _answers(model: Any, test: Dataset, read: Any) -> NDArray[Any]:
    raw = np.concatenate(list(model.predict(test.X, read=read)))
    if test.task == "regression":
        return raw
    codes = raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0.5).astype(np.int64)
    return np.asarray(model.task.classes)[codes]


def fitter(parts: Parts, scratch: Path) -> Fitter:
    return Fitter(parts)
