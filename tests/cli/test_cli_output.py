"""Progress lines, scores, and files of predictions."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pomona.chunk import Chunk
from pomona.cli.common import print_json
from pomona.cli.output import open_writer
from pomona.cli.progress import HEADER, ProgressDisplay
from pomona.cli.score import Score
from pomona.task import Task


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(examples: int, loss: float, **others: Any) -> Any:
    figures = {"pass_number": 1, "passes": 2, "loss_last": 0.0, "fraction": None, "held_out": None} | others
    figures |= {"task": Task("binary", [-1.0, 1.0]), "sample": 500}
    return SimpleNamespace(examples=examples, loss=loss, seconds=examples / 1000, **figures)


def test_lines_at_doubling_counts() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream=stream)
    for examples in range(500, 8001, 500):
        # The first thousand examples lose 0.8 each, all others 0.4.
        loss = (0.8 * min(examples, 1000) + 0.4 * max(examples - 1000, 0)) / examples
        display(progress(examples, loss, fraction=examples / 32000, held_out=0.5 if examples > 3000 else None))
    display(progress(8500, 0.45))
    display.close()
    display.close()
    assert stream.getvalue().splitlines() == [
        "task: binary, classes -1 and 1 (found from the first 500 rows; --task overrides)",
        HEADER,
        "       1,000          1k     0.80000   0.80000              1/2      31 s",
        "       2,000          1k     0.40000   0.60000              1/2      30 s",
        "       4,000          1k     0.40000   0.50000   0.50000    1/2      28 s",
        "       8,000          1k     0.40000   0.45000   0.50000    1/2      24 s",
        "       8,500          1k     0.45000   0.45000              1/2",
    ]


def test_a_terminal_gets_a_live_line() -> None:
    stream = Terminal()
    display = ProgressDisplay(stream=stream)
    display(progress(10, 0.7))
    display(progress(1000, 0.6))
    shown = stream.getvalue()
    assert shown.count(HEADER) == 1
    assert "\r          10 " in shown and shown.endswith("\n")
    # The live line is gone before the lasting one is written.
    assert "\r\033[K       1,000 " in shown


def chunk(labels: Any, weights: Any = None) -> Chunk:
    n = len(labels)
    return Chunk(np.zeros(n + 1, np.int64), np.empty(0, np.uint64), np.empty(0, np.float32), np.array(labels), weights)


def test_score_of_two_classes() -> None:
    score = Score(Task("binary", ["no", "yes"]))
    score.add(chunk(["yes", "no"]), np.array([0.8, 0.6]))
    score.add(chunk(["yes"], np.array([2.0])), np.array([0.5]))
    expected = -(np.log(0.8) + np.log(0.4) + 2 * np.log(0.5)) / 4
    assert score.figures() == pytest.approx({"examples": 3, "labelled": 3, "log_loss": expected, "error": 0.75})
    assert score.lines() == [f"3 labelled examples: error 75.00 %, log loss {expected:.5f}"]


def test_score_of_many_classes_with_an_unknown_one() -> None:
    score = Score(Task("multiclass", [1.0, 2.0, 3.0]))
    score.add(chunk([3.0, 9.0]), np.array([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]]))
    assert score.figures()["error"] == 0.5
    assert score.figures()["log_loss"] == pytest.approx(-(np.log(0.7) + np.log(1e-15)) / 2)


def test_score_of_values_and_of_missing_labels() -> None:
    score = Score(Task("regression", []))
    assert score.lines() == []
    score.add(chunk([np.nan, 3.0, 1.0]), np.array([7.0, 1.0, 1.0]))
    assert score.figures() == {"examples": 3, "labelled": 2, "squared_error": 2.0, "absolute_error": 1.0}
    assert score.lines() == ["2 labelled examples: root mean squared error 1.41421, mean absolute error 1"]


COLUMNS = {"label": ["a,b", "ü"], "p": np.array([0.1, 1e-9])}


def write(kind: str, path: Path) -> None:
    with open_writer(kind, str(path)) as writer:
        writer.write(COLUMNS)
        writer.write(COLUMNS)
        assert not path.exists()


def test_predictions_as_text_csv_and_parquet(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write("text", path)
    assert path.read_text(encoding="utf-8") == "a,b 0.1\nü 1e-09\n" * 2
    path.unlink()
    write("csv", path)
    assert path.read_text(encoding="utf-8") == "label,p\n" + '"a,b",0.1\nü,1e-09\n' * 2
    path.unlink()
    write("parquet", path)
    assert pq.read_table(path).to_pydict() == {"label": ["a,b", "ü"] * 2, "p": [0.1, 1e-9] * 2}


@pytest.mark.parametrize("kind", ["text", "csv", "parquet"])
def test_an_error_leaves_no_file(tmp_path: Path, kind: str) -> None:
    with pytest.raises(KeyboardInterrupt), open_writer(kind, str(tmp_path / "out")) as writer:
        writer.write(COLUMNS)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_json_has_null_for_what_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"loss": float("nan"), "all": [1, float("inf"), {"ü": (1.5,)}]})
    assert capsys.readouterr().out == '{"loss": null, "all": [1, null, {"ü": [1.5]}]}\n'
