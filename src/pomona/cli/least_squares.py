"""The part of ``pomona train`` that belongs to least squares: ``--learner gls``, ``cls`` and ``stagewise``."""

from __future__ import annotations

import argparse
from typing import Any

from pomona.cli.parser import Parser, number, one_of, whole

#: The same as in ``pomona.leastsquares``, which ``--help`` should not have to import.
GENERATORS = ("fourier", "logits", "polynomials", "convolution", "sample", "gradient")
INNER = ("linear", "calibrated", "logistic")
#: Options of generators, by their names there.
GENERATOR_OPTIONS = ("pca", "emphasis", "scale", "standardize", "shape", "masks")


def add_options(result: Parser) -> None:
    """Options that only these learners know."""
    group = result.add_argument_group("least squares (--learner gls, cls, stagewise)")
    add = group.add_argument
    add("--ridge", type=number(least=0), metavar="R", help="strength of the penalty (default: found)")
    add("--steps", type=whole(1), metavar="N", help="steps of gls, rounds of cls, inner steps of logistic stages")
    add(
        "--generator",
        type=one_of(*GENERATORS),
        default="fourier",
        metavar="NAME",
        help=f"features of stagewise: {', '.join(GENERATORS)} (default: fourier)",
    )
    add("--inner", type=one_of(*INNER), default="linear", metavar="HOW", help=f"stages are {', '.join(INNER)}")
    add("--stages", type=whole(1), metavar="N", help="stages (default: 10, or passes over the columns)")
    add("--block", type=whole(1), metavar="N", help="features of a stage (default: about 1000)")
    add("--models", type=whole(1), default=1, metavar="N", help="models to average (stagewise, alr; default: 1)")
    add("--pca", type=whole(1), metavar="N", help="principal components that random features start from")
    add(
        "--emphasis",
        type=number(least=-1, most=2),
        metavar="P",
        help="power of its deviation that a component is weighed by",
    )
    add("--scale", type=number(above=0), metavar="S", help="width of random features, in median distances")
    add("--standardize", action="store_true", default=None, help="bring columns to variance 1 for random features")
    add("--shape", type=shape, metavar="HxWxC", help="images that convolution works on, such as 28x28x1")
    add("--masks", type=one_of("random", "kmeans"), metavar="KIND", help="of convolution: random, kmeans")
    add("--device", metavar="NAME", help="torch device to compute on, such as cuda")
    add("--precision", type=one_of("float32", "float64"), default="float32", metavar="TYPE", help="float32, float64")


def shape(text: str) -> list[int]:
    """Height, width and channels: ``28x28x1``."""
    parts = text.lower().split("x")
    if len(parts) == 3 and all(part.isdigit() and int(part) for part in parts):
        return [int(part) for part in parts]
    raise argparse.ArgumentTypeError(f"must be height x width x channels, such as 32x32x3; got {text!r}")


def gls_options(args: argparse.Namespace) -> Any:
    from pomona.leastsquares.learner import GLSLearnOptions

    return GLSLearnOptions(ridge=args.ridge, **_given(max_steps=args.steps), **_common(args))


def cls_options(args: argparse.Namespace) -> Any:
    from pomona.leastsquares.learner import CalibratedLearnOptions

    return CalibratedLearnOptions(ridge=args.ridge, **_given(max_rounds=args.steps), **_common(args))


def stagewise_options(args: argparse.Namespace) -> Any:
    from pomona.leastsquares.learner import StagewiseLearnOptions

    return StagewiseLearnOptions(
        generator=args.generator,
        generator_options=_given(**{name: getattr(args, name) for name in GENERATOR_OPTIONS}) or None,
        inner=args.inner,
        block_size=args.block,
        n_stages=args.stages,
        ridge=args.ridge,
        n_models=args.models,
        holdout=args.holdout,
        patience=args.patience,
        seed=args.seed,
        **_given(inner_steps=args.steps),
        **_common(args),
    )


def _common(args: argparse.Namespace) -> dict[str, Any]:
    names = ("task", "memory", "class_weight", "precision", "device")
    return {name: getattr(args, name) for name in names}


def _given(**options: Any) -> dict[str, Any]:
    """Options that were given, so that the others keep their defaults."""
    return {name: value for name, value in options.items() if value is not None}
