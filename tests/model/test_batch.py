"""Families that go through the data in their own way: here the smallest one, which predicts the mean."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from pomona.chunk import Chunk, Source
from pomona.cli.progress import ProgressDisplay
from pomona.errors import DataFormatError, ModelFileError
from pomona.learner import State, Step
from pomona.model import load, train
from pomona.model.families import FAMILIES, Family
from pomona.model.inspect import as_text, describe
from pomona.options import ReadOptions
from pomona.task import Task


@dataclass(frozen=True, kw_only=True)
class MeanOptions:
    learner: str = "mean"
    task: str | None = None
    memory: int = 1 << 20
    passes: int = 2
    class_weight: Any = None


class MeanLearner:
    """The share of each class, or the mean target, found in some passes."""

    family: ClassVar[str] = "mean"

    def __init__(self, outputs: int, passes: int) -> None:
        self.outputs, self.passes = outputs, passes
        self.means = np.zeros(outputs)

    @classmethod
    def from_options(cls, options: MeanOptions, task: Task, fields: list[str]) -> MeanLearner:
        return cls(max(len(task.classes), 1), options.passes)

    def fit(self, source: Source, report: Any) -> dict[str, Any]:
        examples = 0
        for number in range(self.passes):
            sums, total, examples = np.zeros(self.outputs), 0.0, 0
            for chunk in source.chunks():
                assert chunk.labels is not None
                weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
                if self.outputs == 1:
                    sums += weights @ chunk.labels
                else:
                    sums += np.bincount(chunk.labels.astype(np.int64), weights, self.outputs)
                total += weights.sum()
                examples += len(chunk)
            self.means = sums / total
            report(Step(f"pass {number + 1}", loss=float(self.means[0]), fraction=(number + 1) / self.passes))
        return {"examples": examples, "passes": self.passes}

    def predict(self, chunk: Chunk) -> np.ndarray:
        return np.tile(self.means, (len(chunk), 1))

    def finish(self, raw: np.ndarray, task: Task) -> np.ndarray:
        return raw[:, -1] if task.kind != "multiclass" else raw

    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        return {"facts": {"means": str(self.means.tolist())}, "top": []}

    def state(self) -> State:
        return State({"passes": self.passes}, {"means": self.means})

    @classmethod
    def from_state(cls, state: State) -> MeanLearner:
        learner = cls(len(state.arrays["means"]), state.header["passes"])
        learner.means = state.arrays["means"]
        return learner


@pytest.fixture(autouse=True)
def mean_family(monkeypatch: pytest.MonkeyPatch) -> None:
    here = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "mean_family", here)
    monkeypatch.setitem(FAMILIES, "mean", Family("mean_family:MeanLearner", "mean_family:MeanOptions"))


def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{i},{'abbb'[i % 4]}\n" for i in range(40)))
    return path


def test_a_family_learns_from_a_table_and_from_text(tmp_path: Path) -> None:
    model = train(table(tmp_path), read=ReadOptions(target="y"), learn=MeanOptions())
    assert np.concatenate(list(model.predict(table(tmp_path)))).tolist() == [0.75] * 40
    text = tmp_path / "t.vw"
    text.write_text("".join(f"{(-1, 1)[i % 2]} | a:{i}\n" for i in range(10)))
    model = train(text, learn=MeanOptions(passes=3))
    assert np.concatenate(list(model.predict(text))).tolist() == [0.5] * 10
    assert model.summary["passes"] == 3


def test_class_weights_reach_it(tmp_path: Path) -> None:
    learn = MeanOptions(class_weight="balanced")
    model = train(table(tmp_path), read=ReadOptions(target="y"), learn=learn)
    assert model.learner.means.tolist() == [0.5, 0.5]


def test_its_model_goes_to_a_file_and_says_what_it_is(tmp_path: Path) -> None:
    model = train(table(tmp_path), read=ReadOptions(target="y"), learn=MeanOptions(passes=3))
    model.save(tmp_path / "m.pomona")
    again = load(tmp_path / "m.pomona")
    assert next(again.predict(table(tmp_path))).tolist() == [0.75] * 40
    text = as_text(describe(again), "m")
    assert "mean learner" in text
    assert "[0.25, 0.75]" in text
    assert "passes 3" in text


def test_an_unknown_family_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(table(tmp_path), read=ReadOptions(target="y"), learn=MeanOptions()).save(tmp_path / "m.pomona")
    monkeypatch.delitem(FAMILIES, "mean")
    with pytest.raises(ModelFileError, match="made by the learner 'mean', which this version of pomona does not have"):
        load(tmp_path / "m.pomona")


def test_steps_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(table(tmp_path), read=ReadOptions(target="y"), learn=MeanOptions(), progress=ProgressDisplay())
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[-1].split(", ")[0] for line in lines] == ["pass 1", "pass 2"]


def test_one_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("x,y\n1,a\n2,a\n")
    with pytest.raises(DataFormatError, match="single value 'a'"):
        train(path, read=ReadOptions(target="y"), learn=MeanOptions())
