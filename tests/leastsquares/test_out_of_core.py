"""Sources larger than memory: what is held does not grow with the rows, and nothing depends on blocks or limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from pomona.chunk import Chunk
from pomona.leastsquares.learner import CalibratedLearnOptions, GLSLearnOptions, StagewiseLearnOptions
from pomona.model import train


class Stream:
    """Rows made from the number of their chunk; never all in memory."""

    name, fields, reads_cheaply, rewinds = "<stream>", [], True, True

    def __init__(self, n: int, d: int, chunk: int = 1000, sparse: bool = False) -> None:
        self.n_examples, self._d, self._chunk, self._sparse = n, d, chunk, sparse

    def chunks(self) -> Iterator[Chunk]:
        held: list[tuple[np.ndarray, np.ndarray]] = []
        # Always made in thousands, so that the size of chunks does not change the data.
        for start in range(0, self.n_examples, 1000):
            rng = np.random.default_rng([3, start])
            X = rng.standard_normal((1000, self._d)).astype(np.float32)
            y = (X[:, 0] > 0).astype(float) + (X[:, 1] + X[:, 2] > 0.5)
            if self._sparse:
                X[np.abs(X) < 1.5] = 0
            held.append((X, y))
            if 1000 * len(held) >= self._chunk or start + 1000 >= self.n_examples:
                X, y = (np.concatenate(parts) for parts in zip(*held, strict=True))
                held = []
                for first in range(0, len(X), self._chunk):
                    yield self._made(X[first : first + self._chunk], y[first : first + self._chunk])

    def _made(self, X: np.ndarray, y: np.ndarray) -> Chunk:
        rows, columns = np.nonzero(X) if self._sparse else np.nonzero(np.ones_like(X))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
        return Chunk(indptr.astype(np.int64), columns.astype(np.uint32), X[rows, columns], labels=y)

    def fraction_read(self) -> float | None:
        return None


def raw(model, stream):
    return np.concatenate([model.raw_predict(chunk) for chunk in stream.chunks()])


OPTIONS = {
    "gls": lambda **more: GLSLearnOptions(max_steps=15, precision="float64", **more),
    "cls": lambda **more: CalibratedLearnOptions(max_rounds=5, precision="float64", **more),
    "linear": lambda **more: StagewiseLearnOptions(block_size=40, n_stages=3, precision="float64", **more),
    "logistic": lambda **more: StagewiseLearnOptions(
        block_size=40, n_stages=2, inner="logistic", generator="logits", precision="float64", holdout=0.1, **more
    ),
    "gradient": lambda **more: StagewiseLearnOptions(generator="gradient", block_size=7, precision="float64", **more),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", OPTIONS)
def test_chunks_and_memory_do_not_matter(kind, sparse):
    one = Stream(4000, 12, sparse=sparse)
    expected = raw(train(one, learn=OPTIONS[kind]()), one)
    for other in (Stream(4000, 12, chunk=337, sparse=sparse), Stream(4000, 12, chunk=4000, sparse=sparse)):
        np.testing.assert_allclose(raw(train(other, learn=OPTIONS[kind]()), one), expected, atol=1e-6)
    tight = train(one, learn=OPTIONS[kind](memory=1 << 17))
    np.testing.assert_allclose(raw(tight, one), expected, atol=1e-6)


MEASURED = """
import resource
from tests.leastsquares.test_out_of_core import Stream
from pomona.leastsquares.learner import StagewiseLearnOptions
from pomona.model import train

def run(n):
    learn = StagewiseLearnOptions(block_size=64, n_stages=2, memory=1 << 22)
    train(Stream(n, 50, chunk=2000), learn=learn)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

few = run(10_000)
many = run(110_000)
# 100,000 more rows of 50 columns and 64 features would take 46 MB; labels and predictions take 2.
print((many - few) / 1024)
"""


def test_memory_does_not_grow_with_the_rows():
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20
