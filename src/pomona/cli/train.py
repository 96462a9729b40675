"""``pomona train``: learn a model from files of any size."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pomona.atomic import check_writable
from pomona.cli import common, higher_order, least_squares
from pomona.cli.parser import (
    Check,
    Parser,
    auto_or,
    interactions,
    joined,
    names,
    number,
    one_of,
    size,
    whole,
    wholes,
)
from pomona.cli.progress import ProgressDisplay
from pomona.errors import OptionError
from pomona.options import EncodeOptions, LearnOptions, ReadOptions
from pomona.words import byte_words, count_words, figure_words, time_words

if TYPE_CHECKING:
    from pomona.model import Model

LOSSES = ("squared", "logistic", "hinge", "quantile", "poisson")
UPDATES = ("adaptive", "adagrad", "sgd", "ftrl")
HEURISTICS = ("auto", "weight", "scaled", "evidence", "ssm", "picky-weight", "picky-ssm")
SCHEDULES = ("auto", "early", "equal")
PRODUCTS = ("auto", "joint", "residual")
NUMERIC = ("hat", "onehot", "raw", "standard")

DESCRIPTION = """\
Learns from one or more files, an example at a time, in bounded memory. VW
text, svmlight, CSV, TSV, Parquet and Arrow files are read, plain or compressed
(gz, zst, bz2, xz, lz4); '-' is standard input. The loss shown while learning
is progressive: each example is predicted before it is learnt, so the figure
is an honest estimate for new data. Without -o the figures are all you get."""

EXAMPLES = """\
  pomona train clicks.vw.gz -o clicks.pomona
  pomona train adult.parquet --target label --interactions quadratic \\
      --passes 3 -o adult.pomona
  pomona train 'day_*.csv.zst' --target click --ignore id,date --holdout 0.1
  pomona train rcv1.vw --learner apple --alpha 1 -o rcv1.pomona
  pomona train covtype.parquet --target label --learner alr --order 3 \\
      --select mi --hierarchical -o covtype.pomona
  zcat big.vw.gz | pomona train - --format vw --loss squared -o big.pomona"""


def parser() -> Parser:
    """The options of the command."""
    result = common.make_parser("train", "DATA [DATA ...] [-o MODEL] [options]", DESCRIPTION, EXAMPLES)
    result.add_argument("data", nargs="+", metavar="DATA", help="files, quoted globs, folders, or - for stdin")
    result.add_argument("-o", "--output", metavar="MODEL", help="file for the model; appears when complete")
    _add_task_options(result)
    _add_feature_options(result)
    _add_apple_options(result)
    _add_learning_options(result)
    _add_pass_options(result)
    least_squares.add_options(result)
    higher_order.add_options(result)
    common.add_column_options(result)
    common.add_read_options(result)
    common.add_report_options(result, "print the figures as one JSON object at the end")
    return result


def _option(group: argparse._ArgumentGroup, name: str, check: Check, metavar: str, text: str) -> None:
    """An option whose default is that of the options object, shown in the help."""
    field = name.replace("-", "_")
    default = next(
        getattr(kind(), field)
        for kind in (LearnOptions, EncodeOptions, ReadOptions)
        if field in kind.__dataclass_fields__
    )
    shown = "" if default is None or not str(default) else f" (default: {default})"
    group.add_argument(f"--{name}", type=check, default=default, metavar=metavar, help=text + shown)


def _switch(group: argparse._ArgumentGroup, name: str, on: str, off: str) -> None:
    group.add_argument(f"--{name}", action="store_true", default=True, help=f"{on} (default)")
    group.add_argument(f"--no-{name}", dest=name, action="store_false", help=off)


def _add_task_options(result: Parser) -> None:
    group = result.add_argument_group("what to learn")
    kinds = ("binary", "multiclass", "regression")
    _option(group, "task", one_of(*kinds), "KIND", f"{', '.join(kinds)} (default: found from the target)")
    group.add_argument(
        "--learner",
        type=one_of(*LEARNERS),
        default="online",
        metavar="NAME",
        help=f"{', '.join(LEARNERS)} (default: online)",
    )
    _option(group, "loss", one_of(*LOSSES), "NAME", f"{', '.join(LOSSES)} (default: by task)")
    _option(group, "quantile", number(above=0, below=1), "Q", "level of the quantile loss")
    _option(group, "class-weight", one_of("balanced"), "balanced", "give all classes the same weight (default: no)")
    _option(group, "multiclass", one_of("softmax", "ovr"), "HOW", "softmax, or ovr: one class against the rest")


def _add_feature_options(result: Parser) -> None:
    group = result.add_argument_group("features")
    group.add_argument(
        "--interactions",
        type=interactions,
        action="append",
        metavar="WHAT",
        help="linear, quadratic, cubic, or products of columns or namespaces such as age*sex; repeatable"
        " (default: linear)",
    )
    _switch(group, "squares", "products include a feature with itself", "they do not")
    _option(group, "numeric", joined(*NUMERIC), "HOW", f"numeric columns as {', '.join(NUMERIC)}, or some with +")
    _option(group, "bins", whole(2, 65536), "N", "bins or knots of a numeric column (default: 16; pairs 8, triples 6)")
    _option(group, "sample-rows", whole(1), "N", "first rows, from which types and bins are found")
    _option(group, "ngrams", whole(1, 8), "N", "sequences of up to N words as features")
    _option(group, "skips", whole(0, 8), "N", "words that an n-gram may leave out")
    group.add_argument(
        "--ngram-namespaces",
        type=names,
        action="extend",
        default=[],
        metavar="NAMES",
        help="VW namespaces with n-grams (default: all)",
    )


def _add_apple_options(result: Parser) -> None:
    group = result.add_argument_group("apple: features that grow while learning")
    _option(
        group,
        "alpha",
        auto_or(number(least=0, most=4)),
        "A",
        "s^A new parents a round, s the features of an example; auto: 1, fewer where s > 128",
    )
    _option(group, "heuristic", one_of(*HEURISTICS), "NAME", ", ".join(HEURISTICS))
    _option(group, "epochs", whole(1), "N", "parts of the data, a round after each but the last")
    _option(
        group, "schedule", one_of(*SCHEDULES), "KIND", "early (the first are shorter), equal (as in the paper), auto"
    )
    _option(
        group, "products", one_of(*PRODUCTS), "KIND", "joint (learn with the rest), residual (what it leaves), auto"
    )
    _option(group, "grow", one_of("all", "first"), "PASSES", "over all passes, or the first alone")
    _option(group, "rounds", wholes, "COUNTS", "rounds after so many examples, as in 1000,5000")
    _option(group, "degree", whole(1), "N", "most factors of a product (default: the epochs)")
    group.add_argument("--fallback", action="store_true", help="each round also takes the simplest that is left")
    group.add_argument(
        "--expand",
        type=names,
        action="extend",
        default=[],
        metavar="NAMES",
        help="columns or namespaces that are multiplied (default: all)",
    )


def _add_learning_options(result: Parser) -> None:
    group = result.add_argument_group("learning")
    _option(group, "update", one_of(*UPDATES), "RULE", ", ".join(UPDATES))
    _switch(group, "normalized", "steps follow the scale of each feature", "they do not")
    _switch(group, "invariant", "weight 2 equals the example twice", "weight 2 doubles the step")
    _switch(group, "intercept", "learn a constant as well", "do not")
    _option(group, "learning-rate", number(above=0), "R", "size of the steps")
    _option(group, "l1", number(least=0), "L", "pull of weights to exactly zero")
    _option(group, "l2", number(least=0), "L", "pull of weights towards zero")
    _option(group, "bits", whole(10, 30), "B", "at most 2^B weights, shared (default: no collisions)")
    group.add_argument(
        "--memory",
        type=size,
        default=LearnOptions().memory,
        metavar="SIZE",
        help="limit for weights (default: 1G; 4G for tuples)",
    )


def _add_pass_options(result: Parser) -> None:
    group = result.add_argument_group("passes")
    _option(group, "passes", whole(1), "N", "times to go through the data")
    group.add_argument("--polish", action="store_true", help="refit the strongest weights by least squares in the end")
    group.add_argument("--decay", action="store_true", help="the learning rate falls from pass to pass")
    _option(group, "holdout", number(least=0, below=1), "SHARE", "examples kept aside for early stopping")
    _option(group, "patience", whole(1), "N", "passes without gain on them before stopping")
    group.add_argument(
        "--shuffle",
        action="store_true",
        default=LearnOptions().shuffle,
        help="shuffle examples in a buffer (default: but for one pass over VW or svmlight text)",
    )
    group.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="learn in the order of the data")
    _option(group, "shuffle-buffer", whole(1), "N", "examples in that buffer")
    _option(group, "seed", whole(0, 2**63 - 1), "N", "seed of the shuffling")


def learn_options(args: argparse.Namespace) -> LearnOptions:
    """The learning options that were given."""
    given = {name: value for name, value in vars(args).items() if name in LearnOptions.__dataclass_fields__}
    given["expand"] = tuple(args.expand)
    chosen = args.interactions or ["linear"]
    given["interactions"] = chosen[0] if len(chosen) == 1 and "*" not in chosen[0] else tuple(chosen)
    return LearnOptions(**given)


#: Learners by name, each with the function that makes its options from the arguments.
LEARNERS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "online": learn_options,
    "apple": learn_options,
    "gls": least_squares.gls_options,
    "cls": least_squares.cls_options,
    "stagewise": least_squares.stagewise_options,
    "alr": higher_order.alr_options,
    "anje": higher_order.anje_options,
    "nb": higher_order.nb_options,
    "kdb": higher_order.kdb_options,
}


def encode_options(args: argparse.Namespace) -> EncodeOptions:
    """The encoding options that were given."""
    given = {field.name: getattr(args, field.name) for field in fields(EncodeOptions) if hasattr(args, field.name)}
    return EncodeOptions(**given, cuttings=args.models if args.learner == "alr" else 1)


def interrupted(args: argparse.Namespace) -> str:
    """What to say after Ctrl-C."""
    if not args.output:
        return "stopped: nothing was saved"
    now = "is as it was" if os.path.exists(args.output) else "does not exist"
    return f"stopped: nothing was saved, {args.output} {now}"


def run(args: argparse.Namespace) -> int:
    """Train, save, report."""
    model = train_and_save(args)
    if args.json:
        common.print_json({**model.summary, "task": model.task.header(), "path": args.output})
    elif not args.quiet:
        common.note(*_closing_lines(model, args.output))
    return 0


def train_and_save(args: argparse.Namespace) -> Model[Any]:
    """The model that the arguments ask for, with progress on standard error unless ``--quiet``."""
    from pomona.model import train
    from pomona.source import open_source

    if args.output:
        check_writable(args.output)
    read = common.read_options(args)
    source: Any = open_source(common.inputs(args.data), read)
    _check_roles(args, source)
    display = None if args.quiet else ProgressDisplay(args.task)
    model = train(
        source,
        read=read,
        encode=encode_options(args),
        learn=LEARNERS[args.learner](args),
        progress=display,
    )
    if display is not None:
        display.close()
        common.note_skipped(source)
        common.note(*_unknown_fields(model))
    if args.output:
        model.save(args.output)
    return model


def _check_roles(args: argparse.Namespace, source: Any) -> None:
    """Columns play parts in tables, and only there."""
    if hasattr(source, "batches"):
        if args.target is None:
            known = ", ".join(source.schema.names[:8]) + (", …" if len(source.schema.names) > 8 else "")
            raise OptionError(f"{source.name} is a table: say which column to predict with --target, one of {known}")
        return
    for role in ("target", "weight", "ignore", "categorical", "text"):
        if getattr(args, role):
            raise OptionError(f"--{role} is for tables; {source.name} holds sparse examples, labels included")


def _unknown_fields(model: Model[Any]) -> list[str]:
    """A warning for each option that names a namespace which the data does not have."""
    learn = model.options["learn"]
    if "interactions" not in learn:
        return []
    terms = model.learner.parameters.interactions
    named = [(f"--interactions {term}", name) for term in terms if "*" in term for name in term.split("*")]
    named += [(f"--expand {name}", name) for name in learn["expand"]]
    return [
        f"warning: {option} made no products: there is no namespace {name!r} in the data"
        for option, name in named
        if name not in model.learner.fields
    ]


def _closing_lines(model: Model[Any], output: str | None) -> list[str]:
    summary = model.summary
    rate = count_words(summary["examples"] / summary["seconds"])
    weights = f"{summary['weights']:,} weights; " if "weights" in summary else ""
    figures = figure_words(summary)
    lines = [f"{figures}{'; ' if figures else ''}{weights}{time_words(summary['seconds'])}, {rate} examples/s"]
    if output is None:
        return [*lines, "nothing was saved: give -o FILE to keep the model"]
    return [*lines, f"saved {output} ({byte_words(os.path.getsize(output))})"]
