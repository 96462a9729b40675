"""pomona and Vowpal Wabbit on one split: the same rows, in the same order, in one pass.

Seconds are those of training over parsed data: a CSR matrix, or encoded chunks, in memory for pomona, the binary cache
for Vowpal Wabbit, which reads it natively inside its constructor. Encoding, parsing and predicting are not timed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.apple.methods import DEFAULT, Method
from benchmarks.apple.sets import Split
from benchmarks.contenders import Clock
from benchmarks.contenders.pomona import InMemory
from benchmarks.fitters.pomona import encoded
from benchmarks.text import write_vw

#: The paper's table, and the largest that is given to the peer where its features would collide.
BITS, MOST_BITS = 18, 24


@dataclass(frozen=True)
class Fit:
    """How one run went."""

    #: Mean progressive validation loss.
    loss: float
    seconds: float
    #: Features generated for an example, in the mean over training.
    features: float
    #: Raw predictions for the test part, where asked for.
    predictions: NDArray[np.float64] | None = None


class Ours:
    """pomona from memory."""

    def __init__(self, split: Split, loss: str) -> None:
        self.split = split
        self.loss = "squared" if split.task == "regression" else loss

    def fit(self, method: Method, rate: float, rows: int, predict: bool) -> Fit:
        from pomona.model import train
        from pomona.options import LearnOptions
        from pomona.source.arrays import ArraySource

        options: dict[str, Any] = method.options()
        source: Any
        test: Any
        if method.name == DEFAULT and self.split.columns is not None:
            whole, test = self._encoded
            source = whole.first(rows)
            options["heuristic"] = "scaled"  # what "auto" is for columns; encoded ones look like sparse rows
        else:
            examples = self.split.train.first(rows)
            source, test = ArraySource(examples.X, examples.y), ArraySource(self.split.test.X)
        learn = LearnOptions(task=self.split.task, loss=self.loss, learning_rate=rate, **options)
        clock = Clock()
        with clock.running():
            model = train(source, learn=learn)
        predictions = None
        if predict:
            predictions = np.concatenate([model.raw_predict(chunk) for chunk in test.chunks()])
            predictions = predictions * model.target.scale + model.target.shift
        summary = model.summary
        return Fit(summary["loss"], clock.seconds, summary["features"] / summary["examples"], predictions)

    @cached_property
    def _encoded(self) -> tuple[InMemory, InMemory]:
        """The columns as pomona encodes them for apple."""
        assert self.split.columns is not None
        return encoded(self.split.columns, {}, learner="apple")


class Peer:
    """Vowpal Wabbit from its cache, written once a split."""

    def __init__(self, split: Split, loss: str, scratch: Path) -> None:
        from vowpalwabbit import Workspace

        self.split, self.scratch = split, scratch
        self.loss = "squared" if split.task == "regression" else loss
        scratch.mkdir(parents=True, exist_ok=True)
        for name, part in (("train", split.train), ("test", split.test)):
            write_vw(scratch / f"{name}.vw", part.X, [f"{value:.8g}" for value in part.y.tolist()])
        # With fewer bits than a later run has, that run would write it anew, and only for the rows it is given.
        Workspace(f"-d {scratch}/train.vw --quiet --noop -k --cache_file {scratch}/cache -b {MOST_BITS}").finish()

    def bits(self, method: Method) -> int:
        """Room for four times the features there can be: collisions are not what is measured."""
        d, parents = float(self.split.train.X.shape[1]), self.split.nonzeros ** (method.alpha or 0.0)
        distinct = {"lin": d, "quad": d**2 / 2, "cubic": d**3 / 6, "apple": d * (1 + 10 * parents)}[method.base]
        return int(np.clip(np.ceil(np.log2(4 * max(distinct, 1))), BITS, MOST_BITS))

    def fit(self, method: Method, rate: float, rows: int, predict: bool) -> Fit:
        from vowpalwabbit import Workspace

        rows = min(rows, len(self.split.train))
        model, answers = self.scratch / "model", self.scratch / "answers"
        line = f"-d {self.scratch}/train.vw --cache_file {self.scratch}/cache --examples {rows}"
        line += f" --loss_function {self.loss} -l {rate} -b {self.bits(method)}{method.peer_options(rows)}"
        clock = Clock()
        with clock.running():
            # The constructor learns the whole file; finishing writes the model and the figures.
            workspace = Workspace(line + (f" -f {model}" if predict else ""), enable_logging=True)
        workspace.finish()
        log = "\n".join(workspace.get_log())
        figures = dict(re.findall(r"(number of examples|average loss|total feature number) = (\S+)", log))
        if int(figures["number of examples"]) != rows:
            raise RuntimeError(f"vw learnt {figures['number of examples']} of {rows} examples")
        predictions = None
        if predict:
            Workspace(f"-d {self.scratch}/test.vw -t -i {model} --quiet -p {answers}").finish()
            predictions = np.loadtxt(answers, usecols=0, ndmin=1)
        loss = float(figures["average loss"].replace("n.a.", "nan"))
        return Fit(loss, clock.seconds, int(figures["total feature number"]) / rows, predictions)
