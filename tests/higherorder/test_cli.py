"""``pomona train --learner alr`` and its relatives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pomona.cli.main import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 2000), "job": rng.choice(["cook", "nurse"], 2000)})
    frame["y"] = np.where((frame.age > np.median(frame.age)) == (frame.job == "cook"), "in", "out")
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    "options",
    [
        ["--learner", "alr"],
        ["--learner", "alr", "--order", "2", "--select", "mi", "--threshold", "1", "--hierarchical"],
        ["--learner", "alr", "--order", "auto", "--passes", "3", "--learning-rate", "0.05", "--memory", "1G"],
        ["--learner", "anje", "--order", "2"],
        ["--learner", "kdb", "--parents", "1", "--no-selective"],
    ],
)
def test_train_predict_inspect(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    model = str(tmp_path / "m.pomona")
    assert main(["train", str(table), "--target", "y", "-o", model, "--quiet", *options]) == 0
    assert main(["predict", model, str(table)]) == 0
    p = np.array(capsys.readouterr().out.split(), float)
    y = pd.read_csv(table)["y"].to_numpy()
    assert np.mean((p > 0.5) == (y == "out")) > 0.97
    assert main(["inspect", model, "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert "age ≤ " in text or "age > " in text
    assert "job = " in text


def test_given_options_reach_the_learner(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--passes", "2", "--learning-rate", "0.25", "--start", "zero", "--json", "--quiet"]
    assert main(["train", str(table), "--target", "y", "--learner", "alr", *given]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["discriminative_passes"] == 2
    assert figures["learning_rate"] == 0.25
    assert figures["start"] == "zero"


def test_naive_bayes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(table), "--target", "y", "--learner", "nb", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["order"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--order", "9"], "--order"),
        (["--threshold", "0"], "--threshold"),
        (["--select", "best"], "--select"),
        (["--order", "auto", "--hierarchical"], "order='auto' is for tuples without hierarchy"),
        (["--weight", "age"], "takes no weights"),
        (["--class-weight", "balanced"], "takes no class weights"),
    ],
)
def test_bad_options(table: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert main(["train", str(table), "--target", "y", "--learner", "alr", *options]) in (1, 2)
    assert words in capsys.readouterr().err
