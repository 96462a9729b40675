"""What several commands share: options for reading, and words for figures."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from pomona.cli.parser import Parser, names, one_of, whole
from pomona.options import ReadOptions

FORMATS = ("vw", "svmlight", "svmlight-multilabel", "csv", "tsv", "parquet", "arrow")


def make_parser(command: str, usage: str, description: str, examples: str) -> Parser:
    """A parser with ``--help`` at the end of its options and examples below."""
    parser = Parser(
        prog=f"pomona {command}",
        usage=f"pomona {command} {usage}",
        description=description,
        epilog=f"examples:\n{examples}",
        add_help=False,
    )
    return parser


def add_report_options(parser: Parser, json_help: str) -> None:
    """Add ``--quiet``, ``--json`` and ``--help``."""
    group = parser.add_argument_group("reports")
    group.add_argument("--quiet", action="store_true", help="say nothing unless something is wrong")
    group.add_argument("--json", action="store_true", help=json_help)
    group.add_argument("--help", "-h", action="help", help="show this")


def add_read_options(parser: Parser) -> argparse._ArgumentGroup:
    """Add the options for reading files that every command understands."""
    defaults = ReadOptions()
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--format",
        type=one_of(*FORMATS),
        metavar="NAME",
        help=f"{', '.join(FORMATS)} (default: found from the name and the content)",
    )
    group.add_argument(
        "--header",
        action="store_true",
        default=None,
        help="the first line of a CSV file holds names (default: found from the content)",
    )
    group.add_argument("--no-header", dest="header", action="store_false", help="it does not")
    group.add_argument(
        "--on-error",
        type=one_of("stop", "skip"),
        default=defaults.on_error,
        metavar="WHAT",
        help=f"stop at a malformed line, or skip and count it (default: {defaults.on_error})",
    )
    group.add_argument(
        "--threads",
        type=whole(1, 1024),
        metavar="N",
        help="threads that read; results do not depend on it (default: all cores)",
    )
    return group


def add_column_options(parser: Parser) -> None:
    """Add the options that say which part each column of a table plays."""
    group = parser.add_argument_group("columns (CSV, Parquet, Arrow)")
    group.add_argument("--target", metavar="COLUMN", help="column to predict")
    group.add_argument("--weight", metavar="COLUMN", help="column with the importance of each row")
    for name, text in (
        ("ignore", "columns to leave out, with commas between; repeatable"),
        ("categorical", "numeric columns to take as categories"),
        ("text", "columns of words, counted as a bag of words"),
    ):
        group.add_argument(f"--{name}", type=names, action="extend", default=[], metavar="COLUMNS", help=text)


def read_options(args: argparse.Namespace) -> ReadOptions:
    """The reading options that were given, defaults for those the command does not have."""
    given = {name: value for name, value in vars(args).items() if name in ReadOptions.__dataclass_fields__}
    return ReadOptions(**given)


def inputs(paths: list[str]) -> Any:
    """One path as itself, several as a list: what ``open_source`` takes."""
    return paths[0] if len(paths) == 1 else paths


def print_json(figures: dict[str, Any]) -> None:
    """Print one JSON object; what is not a finite number becomes null, which every reader understands."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [clean(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    print(json.dumps(clean(figures), ensure_ascii=False))


def note(*lines: str) -> None:
    """Tell the person at the terminal; results go to standard output, this does not."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def note_skipped(source: Any) -> None:
    """Say how many malformed lines ``--on-error skip`` left out."""
    count = getattr(source, "n_skipped", 0) or getattr(source, "skipped", 0)
    if count:
        first = getattr(source, "first_skipped", None)
        note(f"skipped {count:,} malformed lines" + (f", the first: {first}" if first else ""))
