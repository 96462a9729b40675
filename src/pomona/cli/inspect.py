"""``pomona inspect``: what a model is, how it was trained, and what it learnt."""

from __future__ import annotations

import argparse

from pomona.cli import common
from pomona.cli.parser import Parser, whole

DESCRIPTION = """\
Says what a model is, how it was trained, and which features matter most: those
with the largest |weight| times scale, the typical size of the feature's
values. A product of features shows its factors: age≈38 · sex=Male."""

EXAMPLES = """\
  pomona inspect adult.pomona
  pomona inspect adult.pomona --top 50
  pomona inspect adult.pomona --top 15 --plot adult.png
  pomona inspect adult.pomona --json | python3 -m json.tool"""


def parser() -> Parser:
    """The options of the command."""
    result = common.make_parser("inspect", "MODEL [--top N] [options]", DESCRIPTION, EXAMPLES)
    result.add_argument("model", metavar="MODEL", help="file written by pomona train")
    group = result.add_argument_group("report")
    group.add_argument("--top", type=whole(0), default=20, metavar="N", help="how many features to show (default: 20)")
    group.add_argument("--plot", metavar="FILE", help="draw them as bars to a .png, .svg or .pdf (needs matplotlib)")
    group.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    group.add_argument("--help", "-h", action="help", help="show this")
    return result


def interrupted(args: argparse.Namespace) -> str:
    """What to say after Ctrl-C."""
    return "stopped"


def run(args: argparse.Namespace) -> int:
    """Load and report."""
    from pomona.model import load
    from pomona.model.file import about
    from pomona.model.inspect import as_text, describe, plot

    model = load(args.model)
    report = describe(model, args.top) | {"file": {"path": args.model, **about(args.model)}}
    if args.plot:
        plot(report, args.plot)
    if args.json:
        common.print_json(report)
    else:
        print(as_text(report, args.model))
    return 0
