"""A constant answer: what any learner must beat."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.datasets import Parts
from benchmarks.fitters import Fit, Method


class Fitter:
    """Answers with the mean, or with the most frequent class."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def fit(self, method: Method, predict: bool) -> Fit:
        train, test = self.parts.train, self.parts.test
        if train.task == "regression":
            answer = train.y.mean()
        else:
            classes, counts = np.unique(train.y, return_counts=True)
            answer = classes[counts.argmax()]
        return Fit(0.0, np.full(len(test), answer) if predict else None, 0.0)


def fitter(parts: Parts, scratch: Path) -> Fitter:
    return Fitter(parts)
