"""Speed of the kernel, and training within a memory limit."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.higher_order_sets import SPEED_BARS, read
from benchmarks.options import table
from pomona._native.tuples import HASHED, Slots, TupleIndex, learn
from pomona.encode import EncodedSource
from pomona.higherorder.coded import CodedData, collect
from pomona.higherorder.coder import AttributeCoder
from pomona.higherorder.counts import count_tuples
from pomona.higherorder.discriminative import Discriminative
from pomona.higherorder.tuples import TupleSet, all_tuples
from pomona.options import ReadOptions
from pomona.source.table import open_frame

ROWS, REPEATS = 40_000, 15


def measure(directory: Path, quick: bool) -> list[dict[str, Any]]:
    """Nanoseconds a (tuple, class) update on covtype, on one core, by CPU time; the fastest of some runs."""
    data = _coded(directory, quick)
    found = []
    for order in (2, 3) if quick else (2, 3, 4):
        tuples = TupleSet(all_tuples(data.width, order), data.sizes)
        counts = count_tuples(tuples, data.blocks, data.class_counts(), 1 << 33)
        exact = _update_time(counts.index, Discriminative(counts, data.width).slots, data)
        rows = 1 << (counts.index.n_rows - 1).bit_length()
        hashed = tuples.index(HASHED, n_rows=rows)
        slots = Slots(rows, data.n_classes)
        slots.fill(slice(0, None), 0.0, 1.0, 1.0)
        unchecked = _update_time(hashed, slots, data)
        bar = SPEED_BARS[order]
        found.append({"order": order, "exact": exact, "hashed": unchecked, "bar": bar, "holds": exact <= bar})
    head = ["order", "ns exact index", "bar", "ns unchecked hash", "exact / hash"]
    body = [
        [str(f["order"]), f"{f['exact']:.2f}", f"{f['bar']:g}", f"{f['hashed']:.2f}", f"{f['exact'] / f['hashed']:.2f}"]
        for f in found
    ]
    print("\nupdates of covtype, nanoseconds a (tuple, class)")
    print(table(head, body))
    return found


def _coded(directory: Path, quick: bool) -> CodedData:
    X, y = read(directory, "covtype", ROWS if quick else 290_506)
    codes = np.unique(y, return_inverse=True)[1]
    coder: Any = AttributeCoder.fit(open_frame(X), ReadOptions(), labels=codes.astype(np.int32))
    source: Any = EncodedSource(open_frame(X), coder, y=codes.astype(np.float64))
    return collect(source, 7, 1 << 33, 0)


def _update_time(index: TupleIndex, slots: Slots, data: CodedData) -> float:
    sample = data.sample(ROWS)
    codes = np.ascontiguousarray(sample.codes, np.uint32)
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        learn(index, slots, codes, sample.labels, 0.003)
        times.append(time.process_time() - start)
    return min(times) * 1e9 / len(codes) / index.n_tuples / data.n_classes


def million_levels(scratch: Path, quick: bool) -> dict[str, Any]:
    """An attribute with a million levels: what does not fit says so, and feature selection fits.

    Both are the command line in a process of its own, so that the peak is that of training alone.
    """
    n, levels = (200_000, 100_000) if quick else (2_000_000, 1_000_000)
    memory = 1 << 30
    path = scratch / f"levels{levels}.parquet"
    if not path.exists():
        scratch.mkdir(parents=True, exist_ok=True)
        _clicks(n, levels).to_parquet(path)
    command = ["train", str(path), "--target", "click", "--learner", "alr", "--memory", str(memory), "--quiet"]
    whole = _trained([*command, "--order", "2"])
    chosen = _trained([*command, "--order", "2", "--select-features", "--threshold", "0.05"])
    found = {"levels": levels, "rows": n, "memory_limit": memory, "refused": whole[1], "peak_bytes": chosen[0]}
    print("\nhigh cardinality")
    for key, value in found.items():
        print(f"  {key}: {value}")
    print("  within the limit: " + ("holds" if 0 < chosen[0] <= memory else f"MISSED {chosen[1]}"))
    return found


def _trained(arguments: list[str]) -> tuple[int, str]:
    """Peak bytes of a run of pomona, and what it had to say."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([sys.executable, "-m", "pomona", *arguments], stdout=said, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return (usage.ru_maxrss * 1024 if child.returncode == 0 else 0), said.read().strip()


def _clicks(n: int, levels: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    device = (levels * rng.random(n) ** 4).astype(np.int64)
    device[rng.permutation(n)[:levels]] = np.arange(levels)  # every level occurs
    site = (levels // 100 * rng.random(n) ** 2).astype(np.int64)
    hour = rng.integers(0, 24, n)
    chance = 0.1 + 0.5 * (device % 7 == 0) * (hour > 11) + 0.3 * (site % 5 == 0)
    click = (rng.random(n) < chance).astype(np.int64)
    return pd.DataFrame({"device": _texts("d", device), "site": _texts("s", site), "hour": hour, "click": click})


def _texts(prefix: str, numbers: np.ndarray[Any, Any]) -> pd.Categorical:
    names, codes = np.unique(numbers, return_inverse=True)
    return pd.Categorical.from_codes(codes, [f"{prefix}{name}" for name in names.tolist()])
