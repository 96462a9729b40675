"""Runs the command line, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pomona.cli.main import main


@dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def pomona(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Result]:
    """``pomona("train", path)`` runs the command here and catches what it prints."""

    def run(*arguments: object) -> Result:
        capfdbinary.readouterr()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return Result(code, out.decode(), err.decode())

    return run


@pytest.fixture
def pomona_process() -> Callable[..., Result]:
    """The same in a process of its own, for start-up, signals and pipes."""

    def run(*arguments: object, **settings: Any) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "pomona", *map(str, arguments)], capture_output=True, text=True, **settings
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run
