"""Out of core: a stream of generated examples, 20 GB as an array, learnt in 2 GB of memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.leastsquares import Setting
from benchmarks.measure import ROOT
from pomona.chunk import Chunk

#: 5,000,000 × 1,000 numbers of 4 bytes.
ROWS, QUICK_ROWS, COLUMNS = 5_000_000, 100_000, 1000
CHUNK = 4096
LIMIT = 2 << 30


class GeneratedSource:
    """Rows made from their numbers, the same in every pass: three classes of a linear rule with noise."""

    name, fields, reads_cheaply, rewinds = "<generated>", [], True, True

    def __init__(self, rows: int, columns: int) -> None:
        self.n_examples, self._columns = rows, columns
        self._rule = np.random.default_rng(1).standard_normal((columns, 3)).astype(np.float32)
        self._indices = np.tile(np.arange(columns, dtype=np.uint32), CHUNK)
        self._done = 0

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.n_examples, CHUNK):
            n, d = min(CHUNK, self.n_examples - start), self._columns
            rng = np.random.default_rng([7, start])
            X = rng.random((n, d), np.float32) - np.float32(0.5)
            noise = rng.standard_normal((n, 3), np.float32) * 3
            labels = (X @ self._rule + noise).argmax(axis=1).astype(np.float64)
            self._done = start + n
            yield Chunk(np.arange(n + 1) * d, self._indices[: n * d], X.reshape(-1), labels=labels)

    def fraction_read(self) -> float | None:
        return self._done / self.n_examples


def child(rows: int) -> dict[str, Any]:
    """Train, and say how much memory it took."""
    from pomona.leastsquares.learner import StagewiseLearnOptions
    from pomona.model import train

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    learn = StagewiseLearnOptions(generator="sample", block_size=COLUMNS, n_stages=1, memory=1 << 30)
    start = time.perf_counter()
    model = train(GeneratedSource(rows, COLUMNS), learn=learn)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "before": before * 1024,
        "peak": after * 1024,
        "error": model.summary["error"],
        "passes": model.summary["passes"],
    }


def stream(setting: Setting) -> bool:
    rows = QUICK_ROWS if setting.quick else ROWS
    key = {"part": "stream", "rows": rows}
    found = setting.log.find(**key)
    if found is None:
        code = f"import json; from benchmarks.leastsquares.stream import child; print(json.dumps(child({rows})))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        found = setting.log.add(**key, **json.loads(done.stdout.strip().splitlines()[-1]))
    size = rows * COLUMNS * 4
    print(
        f"{rows:,} × {COLUMNS:,} generated numbers, {size / 1e9:.1f} GB as an array: {found['seconds']:.0f} s in"
        f" {found['passes']} passes, peak {found['peak'] / 2**30:.2f} GiB of memory (bar: {LIMIT / 2**30:g}),"
        f" training error {100 * found['error']:.1f} %"
    )
    return bool(found["peak"] < LIMIT)
