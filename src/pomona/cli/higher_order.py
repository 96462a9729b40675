"""The part of ``pomona train`` that belongs to tuples of attributes: ``--learner alr``, ``anje``, ``nb``, ``kdb``."""

from __future__ import annotations

import argparse
from typing import Any

from pomona.cli.parser import Parser, number, one_of, whole
from pomona.errors import OptionError

#: The same as in ``pomona.higherorder.options``, which ``--help`` should not have to import.
STARTS = ("auto", "zero", "generative")
SEARCHES = ("sample", "recursive")


class NotGiven(int):
    """The default of an option whose right value depends on the learner."""


class NotGivenRate(float):
    """The same for a step size."""


def add_options(result: Parser) -> None:
    """Options that only these learners know."""
    group = result.add_argument_group("tuples of attributes (--learner alr, anje, nb, kdb)")
    add = group.add_argument
    add("--order", type=order, default=2, metavar="N", help="attributes of a tuple, or auto (default: 2)")
    add("--select", type=one_of("mi", "cvscore"), metavar="HOW", help="keep the best tuples by mi or cvscore")
    add("--threshold", type=threshold, default="auto", metavar="T", help="share or number kept (default: found)")
    add("--hierarchical", action="store_true", help="build tuples from those kept one order below")
    add("--select-features", action="store_true", help="keep value combinations, not tuples: for many levels")
    add("--start", type=one_of(*STARTS), default="auto", metavar="AT", help=f"weights begin at {', '.join(STARTS)}")
    add("--no-preconditioner", action="store_true", help="do not scale steps by generative probabilities")
    add("--line-search", type=one_of(*SEARCHES), default="sample", metavar="ON", help=", ".join(SEARCHES))
    add("--min-count", type=whole(1), default=1, metavar="N", help="leave rarer value combinations out")
    add("--no-calibrate", action="store_true", help="do not scale the scores on held-out rows")
    add("--parents", type=whole(0, 7), default=2, metavar="K", help="of an attribute, at most (kdb; default: 2)")
    add("--no-selective", action="store_true", help="kdb: keep all attributes and K parents")
    shown = {action.dest: action.default for action in result._actions}
    result.set_defaults(
        passes=NotGiven(shown["passes"]),
        memory=NotGiven(shown["memory"]),
        learning_rate=NotGivenRate(shown["learning_rate"]),
    )


def order(text: str) -> Any:
    """A number of attributes, or ``auto``."""
    return text if text == "auto" else whole(1, 8)(text)


def threshold(text: str) -> Any:
    """A share such as 0.4, a number such as 100, or ``auto``."""
    if text == "auto":
        return text
    if text.isdigit():
        return whole(1)(text)
    return number(above=0, most=1)(text)


def alr_options(args: argparse.Namespace) -> Any:
    from pomona.higherorder.options import ALROptions

    given = {name: getattr(args, name) for name in ("passes", "learning_rate") if _is_given(getattr(args, name))}
    return ALROptions(
        order=args.order,
        selection=args.select or "none",
        threshold=args.threshold,
        hierarchical=args.hierarchical,
        feature_selection=args.select_features,
        start=args.start,
        preconditioner=not args.no_preconditioner,
        line_search=args.line_search,
        l2=args.l2,
        calibrate=not args.no_calibrate,
        min_count=args.min_count,
        **given,
        **_common(args),
    )


def anje_options(args: argparse.Namespace) -> Any:
    from pomona.higherorder.options import AnJEOptions

    return AnJEOptions(order=args.order, **_common(args))


def nb_options(args: argparse.Namespace) -> Any:
    from pomona.higherorder.options import AnJEOptions

    return AnJEOptions(order=1, **_common(args))


def kdb_options(args: argparse.Namespace) -> Any:
    from pomona.higherorder.options import KDBOptions

    return KDBOptions(k=args.parents, selective=not args.no_selective, **_common(args))


def _common(args: argparse.Namespace) -> dict[str, Any]:
    if args.class_weight:
        raise OptionError(f"the learner {args.learner} takes no class weights: leave --class-weight out")
    given = {"memory": args.memory} if _is_given(args.memory) else {}
    return {"task": args.task, "seed": args.seed, **given}


def _is_given(value: Any) -> bool:
    return not isinstance(value, (NotGiven, NotGivenRate))
