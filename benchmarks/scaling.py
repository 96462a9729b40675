"""Bounded time and memory: training on a file ten times as long.

Makes files of n and of 10 n rows as VW text (sparse), CSV and Parquet (dense), trains on each in fresh
processes, and shows the ratio of the times (bar: 10, give or take 10 %) and of the peak memory (bar: 1, give
or take 10 %). The rows are short, so that files have many of them: in a short file the fixed cost of the start (the
look at the first rows) would lower the ratio, and fewer batches than are on their way at once the memory.

The weight table has a fixed number of bits: a table that grows with the features it meets (the sparse stream
never stops bringing new ones) would be measured instead of the data path.
"""

from __future__ import annotations

import argparse

from benchmarks.contenders import Job
from benchmarks.measure import Timing, compare
from benchmarks.options import done_saying, machine, say, table, write_json
from benchmarks.synthetic import Stream, file

TIMES = 10
TOLERANCE = 0.1
#: Kind of the stream, and length of its shorter file relative to --rows.
FORMATS = {"vw": ("sparse", 4.0), "csv": ("dense", 3.0), "parquet": ("dense", 4.0)}
#: Features of a row, about.
WIDTH = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        type=int,
        default=1_500_000,
        metavar="N",
        help="a quarter of the rows of the shorter VW and Parquet files; CSV has 3 times as many (default: 1500000)",
    )
    parser.add_argument("--formats", nargs="+", choices=tuple(FORMATS), default=tuple(FORMATS), help="default: all")
    parser.add_argument("--contender", default="pomona", help="who trains (default: pomona; vw reads vw only)")
    parser.add_argument("--bits", type=int, default=18, help="log2 of the slots of the table (default: 18)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default: 3)")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S", help="most seconds a run may take")


def run(args: argparse.Namespace) -> int:
    rows, results, failed = [], [], False
    for suffix in args.formats:
        kind, factor = FORMATS[suffix]
        entries = []
        for times in (1, TIMES):
            stream = Stream(kind, int(args.rows * factor) * times, WIDTH)
            say(f"making {stream.name}.{suffix}")
            path = file(args.scratch, stream, suffix)
            entries.append((args.contender, Job(str(path), suffix, bits=args.bits, scratch=str(args.scratch))))
        short, long = compare(entries, args.repeat, lambda text, s=suffix: say(f"{s}: {text}"), args.timeout)  # type: ignore[misc]
        done_saying()
        for timing in (short, long):
            if timing.error:
                print(f"failed: {suffix}: {timing.error}")
        if short.outcomes and long.outcomes:
            row, good = _judge(suffix, int(args.rows * factor), short, long)
            rows.append(row)
            failed |= not good
        results.append({"format": suffix, "short": short.to_json(), "long": long.to_json()})
    print(table(["format", "rows", "s", "s, 10x", "ratio", "MB", "MB, 10x", "ratio", "bars"], rows))
    write_json(args.results / "scaling.json", {"machine": machine(), "formats": results})
    return 1 if failed else 0


def _judge(suffix: str, rows: int, short: Timing, long: Timing) -> tuple[list[str], bool]:
    time_ratio, memory_ratio = long.seconds / short.seconds, long.peak_mb / short.peak_mb
    good_time = abs(time_ratio / TIMES - 1) <= TOLERANCE
    good_memory = abs(memory_ratio - 1) <= TOLERANCE
    marks = f"time {'pass' if good_time else 'FAIL'}, memory {'pass' if good_memory else 'FAIL'}"
    row = [
        suffix,
        f"{rows:,}",
        f"{short.seconds:.3f}",
        f"{long.seconds:.3f}",
        f"{time_ratio:.2f}",
        f"{short.peak_mb:.0f}",
        f"{long.peak_mb:.0f}",
        f"{memory_ratio:.2f}",
        marks,
    ]
    return row, good_time and good_memory
