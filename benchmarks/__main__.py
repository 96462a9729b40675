"""``python -m benchmarks COMMAND``: see ``--help``.

A command is a module of this package (with _ for -) that has a docstring (its help), ``add_arguments(parser)`` and
``run(args)``, which returns the exit code. To add one, write the module and name it in :data:`COMMANDS`.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from benchmarks import options

COMMANDS = {
    "speed": "seconds, features a second and memory against the peers, with the bars to clear",
    "accuracy": "test error on every data set against the peer, same splits and same tuning",
    "tradeoff": "test error against training time: pomona's families and established learners",
    "encodings": "which encoding of numeric columns is the best default",
    "scaling": "time and memory on a file ten times as long",
    "apple": "the experiment of the paper on adaptive polynomial expansions: its tables and figures",
    "apple-speed": "training time and generated features a second of apple against the peer's",
    "apple-converged": "apple after many passes against converged solvers, and on text",
    "least-squares": "the experiments of the paper on least squares: MNIST, CIFAR-10, text, speed, memory",
    "higher-order": "higher-order logistic regression: the paper's tables and figures, errors and speed with bars",
    "apple-planted": "how often apple finds interactions that are known to be there",
    "fetch": "download a data set from OpenML by name",
}

EXAMPLES = """examples:
  python -m benchmarks speed --quick                     a first look, in about a minute
  python -m benchmarks speed --only text cache           some groups of cases only
  python -m benchmarks accuracy --data ../shared/data --sets adult ijcnn1 --seeds 2
  python -m benchmarks COMMAND --help                    what a command measures, and its options

Results are written under benchmarks/results/ as JSON; pictures beside them.
"""


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Benchmarks of pomona against its peers.",
        epilog=EXAMPLES,
        formatter_class=raw,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        module = import_module(f"benchmarks.{name.replace('-', '_')}")
        one = commands.add_parser(name, help=summary, description=module.__doc__, formatter_class=raw)
        options.add_common(one)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return top


def main(arguments: list[str] | None = None) -> int:
    try:
        args = parser().parse_args(arguments)
        return int(args.run(args))
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed: pip install '.[bench]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; finished runs are kept", file=sys.stderr)
        return 130
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
