"""What the commands print, word for word; `make golden` writes the stored transcripts anew."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from pomona.cli.main import COMMANDS, main

GOLDEN = Path(__file__).parent.parent / "golden" / "cli"
TRANSCRIPTS = {"help": ["--help"]} | {f"{name}-help": [name, "--help"] for name in COMMANDS}


def transcript(arguments: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(arguments) == 0
    return out.getvalue()


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_help(name: str) -> None:
    shown = transcript(TRANSCRIPTS[name])
    assert shown == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, shown.splitlines())) <= 79


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, arguments in TRANSCRIPTS.items():
        (GOLDEN / f"{name}.txt").write_text(transcript(arguments), encoding="utf-8")
