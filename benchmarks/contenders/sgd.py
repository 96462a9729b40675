"""scikit-learn's SGDClassifier, as its users stream data through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.contenders import Clock, Job, Outcome
from benchmarks.synthetic import read_npz

BLOCK = 10_000
LOSSES = {"logistic": "log_loss", "hinge": "hinge", "squared": "squared_error"}


def missing() -> str | None:
    return None


def run(job: Job) -> Outcome:
    if job.work == "parse":
        return _parse(job)
    return _from_memory(job) if job.format == "npz" else _from_file(job)


def _classifier(job: Job) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss=LOSSES[job.loss], max_iter=job.passes, tol=None, random_state=0)


def _from_memory(job: Job) -> Outcome:
    X, y = read_npz(Path(job.data))
    model, clock = _classifier(job), Clock()
    if job.interactions == "linear":
        with clock.running():
            model.fit(X, y)
        return clock.outcome(examples=len(y))
    with clock.running():
        _stream(model, job, ((X[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, len(y), BLOCK)))
    return clock.outcome(examples=len(y))


def _from_file(job: Job) -> Outcome:
    blocks = {"vw": _vw_blocks, "svmlight": _svmlight, "csv": _csv_blocks, "parquet": _parquet_blocks}
    if job.passes > 1:
        raise ValueError("several passes are timed on a matrix in memory")
    import sklearn.feature_extraction
    import sklearn.linear_model
    import sklearn.preprocessing  # noqa: F401  (imports are not timed)

    model, clock = _classifier(job), Clock()
    with clock.running():
        examples = _stream(model, job, blocks[job.format](job))
    return clock.outcome(examples=examples)


def _stream(model: Any, job: Job, blocks: Iterator[tuple[Any, NDArray[Any]]]) -> int:
    from sklearn.preprocessing import PolynomialFeatures

    degree = {"linear": 1, "quadratic": 2, "cubic": 3}[job.interactions]
    expand = PolynomialFeatures(degree, include_bias=False) if degree > 1 else None
    classes = job.extra.get("classes", [-1, 1])
    examples = 0
    for X, y in blocks:
        if expand is not None:
            columns = X.shape[1]
            if columns**degree > 1 << 28:
                raise ValueError(f"the weights of {columns:,} columns to the power {degree} do not fit in memory")
            X = expand.fit_transform(X)
        model.partial_fit(X, y, classes=classes)
        examples += len(y)
    return examples


def _vw_blocks(job: Job) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Hashes the words of each line; FeatureHasher, because HashingVectorizer would drop the values."""
    from sklearn.feature_extraction import FeatureHasher

    hasher = FeatureHasher(1 << (job.bits or 18), input_type="pair", dtype=np.float32)
    with open(job.data) as lines:
        while True:
            block = [line for _, line in zip(range(BLOCK), lines, strict=False)]
            if not block:
                return
            halves = [line.split("|", 1) for line in block]
            y = np.array([float(label) for label, _ in halves])
            yield hasher.transform([_pairs(words) for _, words in halves]), y


def _pairs(words: str) -> list[tuple[str, float]]:
    split = [word.partition(":") for word in words.split()]
    return [(name, float(value) if value else 1.0) for name, _, value in split]


def _svmlight(job: Job) -> Iterator[tuple[Any, NDArray[Any]]]:
    from sklearn.datasets import load_svmlight_file

    yield load_svmlight_file(job.data, dtype=np.float32)


def _csv_blocks(job: Job) -> Iterator[tuple[Any, NDArray[Any]]]:
    import pandas as pd

    for frame in pd.read_csv(job.data, chunksize=BLOCK):
        yield _frame(frame, job.target)


def _parquet_blocks(job: Job) -> Iterator[tuple[Any, NDArray[Any]]]:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(job.data).iter_batches(batch_size=BLOCK):
        yield _frame(batch.to_pandas(), job.target)


def _frame(frame: Any, target: str) -> tuple[Any, NDArray[Any]]:
    y = frame.pop(target).to_numpy()
    return sparse.csr_matrix(frame.to_numpy(dtype=np.float32)), y


def _parse(job: Job) -> Outcome:
    if job.format != "svmlight":
        raise ValueError(f"scikit-learn parses svmlight; got {job.format!r}")
    from sklearn.datasets import load_svmlight_file

    clock = Clock()
    with clock.running():
        _, y = load_svmlight_file(job.data, dtype=np.float32)
    return clock.outcome(examples=len(y))
