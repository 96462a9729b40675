"""Train, predict, inspect and convert, from file to file."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pomona import __version__
from pomona.cli.demo import write_clicks
from pomona.model import load

Pomona = Callable[..., SimpleNamespace]


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VW text in which pairs of features matter."""
    path = tmp_path_factory.mktemp("clicks") / "clicks.vw"
    write_clicks(path, 3000, seed=0)
    return path


@pytest.fixture(scope="module")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three classes."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("flowers") / "flowers.csv"
    with open(path, "w") as file:
        file.write("length,colour,kind\n")
        for _ in range(900):
            kind = rng.integers(3)
            colour = ("red", "blue", "red")[kind]
            file.write(f"{kind + 0.5 * rng.random():.4f},{colour},{('aster', 'bellis', 'crocus')[kind]}\n")
    return path


@pytest.fixture
def model(pomona: Pomona, clicks: Path, tmp_path: Path) -> Path:
    path = tmp_path / "clicks.pomona"
    assert pomona("train", clicks, "--interactions", "quadratic", "--quiet", "-o", path).code == 0
    return path


# ---- train ----


def test_train_says_the_task_and_the_loss(pomona: Pomona, clicks: Path, tmp_path: Path) -> None:
    result = pomona("train", clicks, "-o", tmp_path / "m.pomona")
    assert (result.code, result.out) == (0, "")
    assert "task: binary, classes -1 and 1 (found from the first 3,000 rows; --task overrides)\n" in result.err
    assert "    examples  examples/s  loss: last   overall  held out   pass      left\n" in result.err
    assert f"saved {tmp_path / 'm.pomona'}" in result.err
    assert load(tmp_path / "m.pomona").task.classes == [-1, 1]


def test_train_without_output_reports_only(
    pomona: Pomona, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = pomona("train", clicks)
    assert result.code == 0
    assert result.err.endswith("nothing was saved: give -o FILE to keep the model\n")
    assert list(tmp_path.iterdir()) == []


def test_quiet_is_quiet_and_json_is_json(pomona: Pomona, clicks: Path, tmp_path: Path) -> None:
    result = pomona("train", clicks, "--quiet", "-o", tmp_path / "m.pomona")
    assert (result.code, result.out, result.err) == (0, "", "")
    result = pomona("train", clicks, "--quiet", "--json", "--passes", "2")
    figures = json.loads(result.out)
    assert (figures["path"], figures["examples"], figures["passes"]) == (None, 6000, 2)
    assert figures["task"] == {"kind": "binary", "classes": [-1, 1]}
    assert 0.4 < figures["loss"] < 0.8
    assert result.err == ""


def test_the_same_command_gives_the_same_file(pomona: Pomona, clicks: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "a.pomona", tmp_path / "b.pomona"]
    for path, threads in zip(paths, (1, 2), strict=True):
        pomona("train", clicks, "--passes", 2, "--threads", threads, "--quiet", "-o", path)
    first, second = (load(path).state() for path in paths)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name])


def test_several_files_and_globs(pomona: Pomona, clicks: Path, tmp_path: Path) -> None:
    lines = clicks.read_text().splitlines(keepends=True)
    (tmp_path / "1.vw").write_text("".join(lines[:1000]))
    (tmp_path / "2.vw").write_text("".join(lines[1000:]))
    ways = {"whole": [clicks], "parts": [tmp_path / "1.vw", tmp_path / "2.vw"], "glob": [tmp_path / "*.vw"]}
    said = {
        way: json.loads(pomona("train", *paths, "--quiet", "--json", "-o", tmp_path / way).out)
        for way, paths in ways.items()
    }
    whole = load(tmp_path / "whole").state().arrays
    for way in ("parts", "glob"):
        for name, array in load(tmp_path / way).state().arrays.items():
            np.testing.assert_array_equal(array, whole[name])
        # Losses are added up chunk by chunk, so that their last digit depends on where the files end.
        assert said[way]["loss"] == pytest.approx(said["whole"]["loss"], rel=1e-14)


def test_products_lower_the_loss(pomona: Pomona, clicks: Path) -> None:
    losses = [
        json.loads(pomona("train", clicks, "--interactions", kind, "--passes", 3, "--quiet", "--json").out)["loss"]
        for kind in ("linear", "device*topic")
    ]
    assert losses[1] < losses[0] - 0.02


# ---- predict ----


def test_predict_to_standard_output(pomona: Pomona, clicks: Path, model: Path) -> None:
    result = pomona("predict", model, clicks)
    assert result.code == 0
    numbers = np.array(result.out.split(), float)
    assert len(numbers) == 3000 and numbers.min() > 0 and numbers.max() < 1
    assert result.err.startswith("3,000 labelled examples: error ")
    assert pomona("predict", model, clicks, "--quiet").err == ""


def test_predict_from_standard_input(pomona: Pomona, pomona_process: Pomona, clicks: Path, model: Path) -> None:
    from_file = pomona("predict", model, clicks).out
    for options in ([], ["--format", "vw"]):
        with clicks.open() as stdin:
            assert pomona_process("predict", model, "-", *options, stdin=stdin).out == from_file


def test_predictions_come_as_soon_as_examples_do(clicks: Path, model: Path) -> None:
    command = [sys.executable, "-m", "pomona", "predict", str(model), "-", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # Should a prediction not come, the test shall fail and not wait for ever.
        watch = threading.Timer(60, process.kill)
        watch.start()
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"|device phone |topic games |hour noon\n")
            process.stdin.flush()
            assert 0.5 < float(process.stdout.readline()) < 1
        process.stdin.close()
        assert process.wait() == 0
        watch.cancel()


def test_predict_without_labels(pomona: Pomona, clicks: Path, model: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.vw"
    bare.write_text("".join(line[line.index("|") :] for line in clicks.open()))
    result = pomona("predict", model, bare)
    assert (result.code, result.err) == (0, "")
    assert result.out == pomona("predict", model, clicks).out


def test_kinds_of_predictions(pomona: Pomona, clicks: Path, model: Path) -> None:
    proba = np.array(pomona("predict", model, clicks).out.split(), float)
    raw = np.array(pomona("predict", model, clicks, "--raw").out.split(), float)
    labels = pomona("predict", model, clicks, "--labels").out.split()
    np.testing.assert_allclose(1 / (1 + np.exp(-raw)), proba, rtol=1e-4)
    assert labels == ["1" if p > 0.5 else "-1" for p in proba]


def test_predict_to_files(pomona: Pomona, flowers: Path, tmp_path: Path) -> None:
    model = tmp_path / "flowers.pomona"
    assert pomona("train", flowers, "--target", "kind", "--passes", 3, "--quiet", "-o", model).code == 0
    text = pomona("predict", model, flowers).out.split()
    assert np.mean([a == b for a, b in zip(text, column(flowers, "kind"), strict=True)]) > 0.9
    result = pomona("predict", model, flowers, "-o", tmp_path / "out.csv", "--proba", "--json")
    assert json.loads(result.out)["error"] < 0.1
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "aster,bellis,crocus"
    probabilities = np.array([line.split(",") for line in lines[1:]], float)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert pomona("predict", model, flowers, "-o", tmp_path / "out.parquet").code == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"label": text}


def column(path: Path, name: str) -> list[str]:
    head, *rows = csv.reader(path.open())
    return [row[head.index(name)] for row in rows]


# ---- inspect ----


def test_inspect_names_the_pairs(pomona: Pomona, model: Path, clicks: Path, tmp_path: Path) -> None:
    shown = pomona("inspect", model, "--top", 5).out
    assert shown.startswith(f"{model}: online learner, binary, classes -1 and 1\n  trained on  ")
    assert len(shown.split("feature\n")[-1].splitlines()) == 5
    report: dict[str, Any] = json.loads(pomona("inspect", model, "--json").out)
    size = model.stat().st_size
    assert report["file"] == {"path": str(model), "made_by": f"pomona {__version__}", "version": 1, "bytes": size}
    assert f"\n  made by     pomona {__version__}, file format 1, " in shown
    assert report["options"]["interactions"] == "quadratic"
    assert any("phone" in entry["feature"] and "games" in entry["feature"] for entry in report["top"])
    pytest.importorskip("matplotlib")
    assert pomona("inspect", model, "--plot", tmp_path / "top.png").code == 0
    assert (tmp_path / "top.png").read_bytes().startswith(b"\x89PNG")


# ---- convert ----


def test_convert_text_to_chunks(pomona: Pomona, clicks: Path, tmp_path: Path) -> None:
    arrow = tmp_path / "clicks.arrow"
    result = pomona("convert", clicks, arrow)
    assert result.code == 0
    assert result.err.startswith(f"{arrow}: 3,000 examples, ")
    options = ("--no-shuffle", "--quiet", "--json")
    losses = [json.loads(pomona("train", path, *options).out)["loss"] for path in (clicks, arrow)]
    assert losses[0] == losses[1]


def test_convert_tables_there_and_back(pomona: Pomona, flowers: Path, tmp_path: Path) -> None:
    path = flowers
    for name in ("a.parquet", "b.arrow", "c.tsv", "d.csv"):
        result = pomona("convert", path, tmp_path / name, "--json")
        assert (result.code, json.loads(result.out)["rows"]) == (0, 900)
        path = tmp_path / name
    assert column(path, "kind") == column(flowers, "kind")
    assert [float(x) for x in column(path, "length")] == [float(x) for x in column(flowers, "length")]


# ---- demo ----


def test_demo(pomona: Pomona, tmp_path: Path) -> None:
    result = pomona("demo", "--examples", 5000, "--folder", tmp_path / "demo")
    assert (result.code, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) < 80 + len(str(tmp_path))
    assert "phone" in result.out and "best possible" in result.out
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "train.vw",
        "test.vw",
        "linear.pomona",
        "quadratic.pomona",
    }
