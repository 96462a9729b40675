"""The frame around the commands: start-up, exit codes, and failures in one line."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import pomona as package
from pomona.cli import main as cli
from pomona.cli.parser import Parser
from pomona.errors import DataFormatError, OptionError

HEAVY = ("sklearn", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "numpy")


def modules_after(*arguments: str) -> set[str]:
    """Names of the packages that a command line has imported."""
    code = (
        "import sys; from pomona.cli.main import main; code = main(sys.argv[1:]);"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["train", "--help"], ["predict", "--help"]])
def test_starting_imports_nothing_heavy(arguments: list[str]) -> None:
    assert not modules_after(*arguments) & set(HEAVY)


def test_training_on_text_imports_no_scikit_learn(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 |x a\n-1 |x b\n" * 100)
    heavy = modules_after("train", str(path), "-o", str(tmp_path / "m.pomona")) & set(HEAVY)
    assert heavy == {"numpy"}
    assert modules_after("predict", str(tmp_path / "m.pomona"), str(path)) & set(HEAVY) == {"numpy"}
    assert modules_after("inspect", str(tmp_path / "m.pomona")) & set(HEAVY) == {"numpy"}


def test_version(pomona: Callable[..., SimpleNamespace], pomona_process: Callable[..., SimpleNamespace]) -> None:
    assert pomona("--version").out == f"pomona {package.__version__}\n"
    assert pomona_process("--version").out == f"pomona {package.__version__}\n"


def test_no_command_shows_the_help(pomona: Callable[..., SimpleNamespace]) -> None:
    result = pomona()
    assert (result.code, result.out) == (2, "")
    assert result.err == pomona("--help").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "pomona: error: unknown command 'trian'; did you mean train? (see pomona --help)"),
        (["--verbose"], "pomona: error: unknown option '--verbose' (see pomona --help)"),
        (
            ["train"],
            "pomona train: error: the following arguments are required: DATA (see pomona train --help)",
        ),
        (["inspect", "a", "b"], "pomona inspect: error: unknown argument 'b' (see pomona inspect --help)"),
        (
            ["train", "a", "-o"],
            "pomona train: error: --output: expected one argument (see pomona train --help)",
        ),
    ],
)
def test_wrong_usage(pomona: Callable[..., SimpleNamespace], arguments: list[str], message: str) -> None:
    result = pomona(*arguments)
    assert (result.code, result.out, result.err) == (2, "", message + "\n")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataFormatError("expected a number, got 'x'", file="a.vw", line=3, column=7), 1,
         "a.vw:3:7: expected a number, got 'x'"),
        (OptionError("no column 'y'"), 2, "no column 'y'"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.vw"), 1,
         "a.vw: no such file or directory"),
        (OSError(errno.EIO, "Input/output error"), 1, "input/output error"),
        (MemoryError(), 1, "out of memory: give a smaller --memory, or fewer --interactions"),
        (KeyboardInterrupt(), 130, "stopped: nothing was saved"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, None),
        (DataFormatError("two\nlines"), 1, "two lines"),
    ],
)  # fmt: skip
def test_failures_are_one_line(
    pomona: Callable[..., SimpleNamespace],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    line: str | None,
) -> None:
    def fail(_: object) -> int:
        raise error

    command = SimpleNamespace(
        parser=lambda: Parser(prog="x"), run=fail, interrupted=lambda _: "stopped: nothing was saved"
    )
    monkeypatch.setattr(cli.importlib, "import_module", lambda _: command)
    result = pomona("train")
    assert (result.code, result.out) == (code, "")
    assert result.err == ("" if line is None else f"pomona train: {line}\n")


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> int:
        raise OptionError("no column 'y'")

    command = SimpleNamespace(parser=lambda: Parser(prog="x"), run=fail)
    monkeypatch.setattr(cli.importlib, "import_module", lambda _: command)
    assert cli.main(["train", "--debug"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback") and shown.endswith("\npomona train: no column 'y'\n")
