"""The peer on a data set: columns scaled and one-hot, as VW text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import Clock
from benchmarks.contenders.vw import expansion
from benchmarks.datasets import Dataset, Parts
from benchmarks.fitters import Fit, Method
from benchmarks.onehot import OneHot, features_per_row
from benchmarks.text import write_vw

#: Smallest and largest weight table, in bits.
MIN_BITS, MAX_BITS = 18, 24


class Fitter:
    """Trains on a training part that is written as VW text once and read from its cache afterwards."""

    def __init__(self, parts: Parts, scratch: Path) -> None:
        self.parts, self.scratch = parts, scratch
        encoder = OneHot.fit(parts.train)
        self.X = encoder.encode(parts.train)
        self.classes: NDArray[Any] = np.unique(np.concatenate([parts.train.y, parts.test.y]))
        scratch.mkdir(parents=True, exist_ok=True)
        write_vw(scratch / "train.vw", self.X, self._labels(parts.train))
        write_vw(scratch / "test.vw", encoder.encode(parts.test), self._labels(parts.test))
        from vowpalwabbit import Workspace

        make_cache = f"--quiet --noop -k --cache_file {scratch}/cache"
        Workspace(f"-d {scratch}/train.vw{self._reduction()} {make_cache}").finish()

    def _labels(self, part: Dataset) -> list[object]:
        if part.task == "regression":
            return [f"{value:.8g}" for value in part.y.tolist()]
        codes = np.searchsorted(self.classes, part.y)
        return (codes + 1 if part.task == "multiclass" else 2 * codes - 1).tolist()  # type: ignore[no-any-return]

    def _reduction(self) -> str:
        return f" --oaa {len(self.classes)}" if self.parts.train.task == "multiclass" else ""

    def _bits(self, interactions: str) -> int:
        """A table with room for every feature of every class, so that collisions are not what is measured."""
        distinct = {"linear": 1, "quadratic": 2, "cubic": 3}[interactions]
        d = min(float(self.X.shape[1]) ** distinct, features_per_row(self.X, interactions) * self.X.shape[0])
        outputs = len(self.classes) if self._reduction() else 1
        return int(np.clip(np.ceil(np.log2(4 * d * outputs)), MIN_BITS, MAX_BITS))

    def fit(self, method: Method, predict: bool) -> Fit:
        from vowpalwabbit import Workspace

        model, answers = self.scratch / "model", self.scratch / "answers"
        loss = "squared" if self.parts.train.task == "regression" else method.loss
        line = f"-d {self.scratch}/train.vw --cache_file {self.scratch}/cache --quiet{self._reduction()}"
        line += f" --loss_function {loss} -l {method.learning_rate}{expansion(method.interactions)}"
        line += f" -b {self._bits(method.interactions)}"
        clock = Clock()
        with clock.running():
            workspace = Workspace(line + (f" -f {model}" if predict else ""))
            examples = workspace.get_weighted_examples()
            progressive = workspace.get_sum_loss() / max(examples, 1)
            workspace.finish()
        if int(examples) != len(self.parts.train):
            raise RuntimeError(f"vw learnt {examples:.0f} of {len(self.parts.train)} examples")
        if not predict:
            return Fit(progressive, None, clock.seconds)
        Workspace(f"-d {self.scratch}/test.vw -t -i {model} --quiet -p {answers}").finish()
        raw = np.loadtxt(answers, usecols=0, ndmin=1)
        return Fit(progressive, self._decode(raw), clock.seconds)

    def _decode(self, raw: NDArray[np.float64]) -> NDArray[Any]:
        task = self.parts.train.task
        if task == "regression":
            return raw
        codes = raw.astype(np.int64) - 1 if task == "multiclass" else (raw > 0).astype(np.int64)
        return np.asarray(self.classes[codes])


def fitter(parts: Parts, scratch: Path) -> Fitter:
    return Fitter(parts, scratch)
