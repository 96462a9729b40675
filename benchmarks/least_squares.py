"""Least squares: the experiments of Agarwal et al. (2014), with the paper's figures beside ours.

  table-1    MNIST: linear, logistic and calibrated regression on pixels and on 4,000 and 8,000 Fourier features
  stagewise  MNIST: error against time of stagewise regression, to 1.1 %
  speed      time to the same test error against liblinear, scikit-learn and Vowpal Wabbit on the same features
  blas       share of a fit that is spent in matrix products and factors, and GFLOP/s against the machine's peak
  text       20 newsgroups and Reuters with the gradient recipe beside the online learner (Table 2)
  cifar      CIFAR-10: error against the number of masks, random and k-means (Figure 3)
  stream     20 GB of generated examples in 2 GB of memory

Finished runs are kept in the results and not repeated; --fresh starts anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from benchmarks import options
from benchmarks.leastsquares import Setting

#: Part → module and function.
PARTS = {
    "table-1": ("mnist", "table_1"),
    "stagewise": ("mnist", "stagewise"),
    "speed": ("speed", "speed"),
    "blas": ("blas", "blas"),
    "text": ("text", "text"),
    "cifar": ("cifar", "cifar"),
    "stream": ("stream", "stream"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help="some parts only")
    parser.add_argument("--quick", action="store_true", help="few rows: a first look, not the paper's figures")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")
    parser.add_argument("--device", metavar="NAME", help="torch device that table-1 computes on, such as cuda")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds for each contender of speed")


def run(args: argparse.Namespace) -> int:
    log = options.Log(args.results / ("least_squares_quick.jsonl" if args.quick else "least_squares.jsonl"), args.fresh)
    setting = Setting(args.data, args.results, log, args.quick, args.limit, args.device)
    good = True
    for part in args.only:
        module, function = PARTS[part]
        one: Callable[[Setting], bool] = getattr(import_module(f"benchmarks.leastsquares.{module}"), function)
        good &= one(setting)
        options.done_saying()
        print()
    print("every bar is cleared" if good else "not every bar is cleared: see NO above")
    return 0 if good or args.quick else 1
