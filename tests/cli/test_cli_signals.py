"""Interrupts, kills, broken pipes and full disks, in processes of their own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pomona.cli.demo import write_clicks
from pomona.model import load

COMMAND = [sys.executable, "-m", "pomona"]
KILLS = 100


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clicks") / "clicks.vw"
    write_clicks(path, 20_000, seed=0)
    return path


def training(clicks: Path, output: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "train", str(clicks), "-o", str(output), *options], stderr=subprocess.PIPE, text=True
    )


def begin_endless_training(clicks: Path, output: Path) -> subprocess.Popen[str]:
    """A training that has begun to learn and will not end by itself."""
    process = training(clicks, output, "--passes", "1000000")
    assert process.stderr is not None
    while "examples/s" not in process.stderr.readline():
        assert process.poll() is None
    return process


def test_ctrl_c_saves_nothing_and_says_so(clicks: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.pomona"
    process = begin_endless_training(clicks, output)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith(f"pomona train: stopped: nothing was saved, {output} does not exist\n")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_the_old_model(clicks: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.pomona"
    output.write_bytes(b"old")
    process = begin_endless_training(clicks, output)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert err.endswith(f"pomona train: stopped: nothing was saved, {output} is as it was\n")
    assert output.read_bytes() == b"old"


def test_termination_removes_temporary_files(clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = begin_endless_training(clicks, tmp_path / "m.pomona")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert list(temporary.iterdir()) == [] and not (tmp_path / "m.pomona").exists()


def test_a_broken_pipe_is_silent(clicks: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.pomona"
    assert training(clicks, model, "--quiet").wait() == 0
    process = subprocess.Popen(
        [*COMMAND, "predict", str(model), str(clicks)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line(clicks: Path, tmp_path: Path, pomona_process: Callable[..., SimpleNamespace]) -> None:
    result = pomona_process("train", clicks, "--quiet", "-o", "/dev/full")
    assert (result.code, result.err) == (1, "pomona train: cannot write /dev/full: no space left on device\n")
    model = tmp_path / "m.pomona"
    assert training(clicks, model, "--quiet").wait() == 0
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "predict", str(model), str(clicks)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "pomona predict: no space left on device\n")


@pytest.mark.slow
def test_a_hundred_kills_leave_no_file_or_a_complete_one(clicks: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.pomona"
    start = time.monotonic()
    assert training(clicks, output, "--quiet", "--interactions", "quadratic").wait() == 0
    whole = time.monotonic() - start
    complete = load(output).state().arrays
    chance = random.Random(0)
    seen = {True: 0, False: 0}
    for kill in range(KILLS):
        output.unlink(missing_ok=True)
        process = training(clicks, output, "--quiet", "--interactions", "quadratic")
        # Half of the kills aim at the time of writing.
        time.sleep(chance.uniform(0.8, 1.1) * whole if kill % 2 else chance.uniform(0, whole))
        process.kill()
        process.communicate()
        seen[output.exists()] += 1
        if output.exists():
            found = load(output).state().arrays
            assert found.keys() == complete.keys()
            assert all(np.array_equal(found[name], complete[name]) for name in complete)
    assert seen[False] > 0
