"""How much of a fit is matrix products and factors, and how close they come to the machine's peak."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.leastsquares import Setting, images
from pomona import StagewiseClassifier
from pomona.leastsquares import arrays, gram

BAR = 0.70
N_PEAK = 2048


class Timed:
    """Time and operations of products and factors so far."""

    seconds = 0.0
    operations = 0.0


def peak() -> float:
    """GFLOP/s of the fastest of some products of two matrices in float32."""
    A, B = np.random.default_rng(0).standard_normal((2, N_PEAK, N_PEAK)).astype(np.float32)
    best = np.inf
    for _ in range(20):
        start = time.perf_counter()
        A @ B
        best = min(best, time.perf_counter() - start)
    return 2 * N_PEAK**3 / best / 1e9


class CountedArray(np.ndarray[Any, Any]):
    """A NumPy array that notes the time of its products."""

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)


def _product(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    start = time.perf_counter()
    result = a @ b
    Timed.seconds += time.perf_counter() - start
    # A product with its own transpose needs half of the operations.
    same = a.ctypes.data == b.ctypes.data and a.shape == b.shape[::-1]
    Timed.operations += (1 if same else 2) * a.shape[0] * a.shape[1] * b.shape[1]
    return result.view(CountedArray)


def _counted(function: Any, operations: Any) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        start = time.perf_counter()
        result = function(*args, **named)
        Timed.seconds += time.perf_counter() - start
        Timed.operations += operations(*args)
        return result

    return call


def blas(setting: Setting) -> bool:
    """A stagewise fit on MNIST with its products counted."""
    data = images(setting, "mnist", 20_000)
    put, cholesky, solve = arrays.Place.put, gram.cholesky, arrays.Triangle.solve

    def counted_put(self: Any, x: Any, *, exact: bool = False) -> Any:
        return put(self, x, exact=exact).view(CountedArray)

    kinds = {"linear": 1024, "calibrated": 1024, "logistic": 1024} if not setting.quick else {"linear": 1024}
    top, good = peak(), True
    print(f"peak of float32 products: {top:.0f} GFLOP/s")
    try:
        arrays.Place.put = counted_put
        gram.cholesky = _counted(cholesky, lambda xp, A: len(A) ** 3 / 3)
        arrays.Triangle.solve = _counted(solve, lambda self, B: 2 * len(B) ** 2 * B.shape[1])
        for inner, size in kinds.items():
            Timed.seconds = Timed.operations = 0.0
            start = time.perf_counter()
            options = {"pca": 50}
            StagewiseClassifier(
                inner=inner, block_size=size, n_stages=4, precision="float32", memory=2 << 30, generator_options=options
            ).fit(data.X, data.y)
            total = time.perf_counter() - start
            share, rate = Timed.seconds / total, Timed.operations / Timed.seconds / 1e9
            good &= share >= BAR
            print(
                f"stagewise {inner}, 4 blocks of {size}: {total:.2f} s, {100 * share:.0f} % in products and factors"
                f" (bar: {100 * BAR:.0f} %){'' if share >= BAR else ' NO'}, {rate:.0f} GFLOP/s,"
                f" {100 * rate / top:.0f} % of the peak"
            )
    finally:
        arrays.Place.put = put
        gram.cholesky, arrays.Triangle.solve = cholesky, solve
    return good
