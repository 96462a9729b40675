"""Options that all commands share, and the line that shows how far a command is."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def default_data() -> Path:
    """The folder of the real data sets: POMONA_DATA, or ../shared/data beside the repository."""
    return Path(os.environ.get("POMONA_DATA", ROOT.parent / "shared" / "data"))


def add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=default_data(),
        metavar="DIR",
        help="folder of the real data sets (default: $POMONA_DATA, or ../shared/data)",
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        default=Path(tempfile.gettempdir()) / "pomona_bench",
        metavar="DIR",
        help="folder for generated files, kept for the next run (default: %(default)s)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="folder for results (default: benchmarks/results)",
    )


def say(text: str) -> None:
    """Show what is going on in one line that is overwritten; nothing where nobody looks."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:110]}", end="", file=sys.stderr, flush=True)


def done_saying() -> None:
    say("")


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {}
    for package in ("pomona", "vowpalwabbit", "scikit-learn", "numpy", "pyarrow"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"written: {path}")


class Log:
    """Finished runs, one JSON line each, so that a stopped benchmark goes on where it stopped."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        self.records: list[dict[str, Any]] = []
        if path.exists():
            self.records = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

    def find(self, **wanted: Any) -> dict[str, Any] | None:
        for record in self.records:
            if all(record.get(key) == value for key, value in wanted.items()):
                return record
        return None

    def add(self, **record: Any) -> dict[str, Any]:
        self.records.append(record)
        with open(self.path, "a") as out:
            out.write(json.dumps(record) + "\n")
        return record

    def once(self, key: dict[str, Any], work: Callable[[], dict[str, Any]]) -> None:
        """Run what is not there yet; a failure is a result too."""
        if self.find(**key):
            return
        say(" ".join(str(value) for value in key.values()))
        try:
            self.add(**key, **work())
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.add(**key, failure=reason)
            print(f"failed: {key['set']} {key['learner']}: {reason}")


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Columns of text, the first to the left and the others to the right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text.append("  ".join(cells).rstrip())
    text.insert(1, "-" * max(len(line) for line in text))
    return "\n".join(text)
