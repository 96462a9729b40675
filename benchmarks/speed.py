"""Speed and memory of pomona against the peers, with the bars to clear.

Groups of cases, for --only:
  text       from VW text, linear, sparse and dense               bar: 4 times the peer
  cache      from parsed chunks or from memory                    bar: 4 times the peer from its cache
  quadratic  all products of two features, from VW text           bar: 4 times (dense), 2 times (sparse)
  parse      reading text on one core, learning nothing           bar: 600 MB/s
  tables     CSV and Parquet, end to end                          bar: 1.5 times (pyarrow alone + learning)
  sgd        one pass over a CSR matrix: (11 passes - 1 pass)/10  bar: no slower than scikit-learn's SGD
  real       covtype, bio and kddcup99 from --data                shown without a bar

Runs are interleaved, each in a fresh process: only the work is timed, and peak memory is the run's own. The
peer is the vowpalwabbit wheel, whose constructor drives the whole file natively. Times are medians; the spread
is half the range between the quartiles. Mf/s: million features a second, products and the constant counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from benchmarks.cases import GROUPS, Case, Entry, Result
from benchmarks.measure import Timing, compare
from benchmarks.options import done_saying, machine, say, table, write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each (default: 5)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=tuple(GROUPS),
        default=tuple(GROUPS),
        metavar="GROUP",
        help=f"groups of cases (default: all): {', '.join(GROUPS)}",
    )
    parser.add_argument("--quick", action="store_true", help="shorter streams and two runs: a look, not a result")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="most seconds a run may take")
    parser.add_argument("--no-picture", action="store_true", help="draw nothing")


def run(args: argparse.Namespace) -> int:
    repeat = 2 if args.quick else args.repeat
    results = []
    for group in args.only:
        say(f"making the files of {group}")
        for case in _cases(group, args):
            timings = compare(
                [(entry.contender, entry.job) for entry in case.entries],
                repeat,
                lambda text, title=case.title: say(f"{title}: {text}"),  # type: ignore[misc]
                args.timeout,
            )
            done_saying()
            named = {entry.label: timing for entry, timing in zip(case.entries, timings, strict=True)}
            result = Result(case, named)
            show(result)
            results.append(result)
    verdicts = [verdict for result in results for verdict in result.verdicts()]
    print_verdicts(verdicts)
    stem = "speed-quick" if args.quick else "speed"
    content = {
        "machine": machine(),
        "repeat": repeat,
        "cases": [r.to_json() for r in results],
        "bars": verdicts,
    }
    write_json(args.results / f"{stem}.json", content)
    if not args.no_picture and verdicts:
        from benchmarks.picture import draw_speed

        draw_speed(verdicts, args.results / f"{stem}.png")
    return 0


def _cases(group: str, args: argparse.Namespace) -> Iterator[Case]:
    try:
        yield from GROUPS[group](args)
    except FileNotFoundError as error:
        print(f"left out: {group}: {error}\n")


def show(result: Result) -> None:
    """The table of one case."""
    rows = [_row(result.case, entry, result.timings[entry.label]) for entry in result.case.entries]
    header = [result.case.title, "seconds", "spread", "Mf/s", "MB/s", "peak MB", "loss"]
    print(table(header, rows))
    for verdict in result.verdicts():
        print("  " + verdict_line(verdict))
    print()


def _row(case: Case, entry: Entry, timing: Timing) -> list[str]:
    if timing.error is not None or not timing.outcomes:
        print(f"  failed: {entry.label}: {timing.error}")
        return [entry.label, "-", "-", "-", "-", "-", "-"]
    seconds = timing.seconds
    features = case.features * entry.job.passes
    return [
        entry.label,
        f"{seconds:.3f}",
        f"{100 * timing.spread:.0f} %",
        f"{features / seconds / 1e6:.1f}" if features and entry.learns else "-",
        f"{entry.bytes / seconds / 1e6:.0f}" if entry.bytes else "-",
        f"{timing.peak_mb:.0f}",
        "-" if timing.loss is None else f"{timing.loss:.4f}",
    ]


def verdict_line(verdict: dict[str, Any]) -> str:
    mark = "pass" if verdict["pass"] else "FAIL"
    sign = ">=" if verdict["at_least"] else "<="
    figure = f"{verdict['value']:7.2f} {verdict['unit']:4s} (bar {sign} {verdict['bar']:g})"
    return f"{mark}  {figure}  {verdict['text']}"


def print_verdicts(verdicts: list[dict[str, Any]]) -> None:
    if not verdicts:
        return
    print("Bars")
    for verdict in verdicts:
        print("  " + verdict_line(verdict))
    failed = sum(not verdict["pass"] for verdict in verdicts)
    print(f"{len(verdicts) - failed} of {len(verdicts)} bars cleared")
