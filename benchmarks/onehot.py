"""Tables as a plain linear learner wants them: numbers scaled to [0, 1], one column a category, word counts.

This is what a user of the peer, or of scikit-learn, does by hand; pomona does its own encoding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.datasets import Dataset


@dataclass
class OneHot:
    """Learns ranges, categories and words from a training part and encodes any part."""

    low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    width: NDArray[np.float64] = field(default_factory=lambda: np.ones(0))
    categories: dict[str, dict[str, int]] = field(default_factory=dict)
    words: Any = None
    scaled: bool = True

    @classmethod
    def fit(cls, dataset: Dataset, scaled: bool = True) -> OneHot:
        """``scaled=False`` leaves numbers as they are."""
        self = cls()
        if dataset.is_sparse:
            if not scaled:
                self.width = np.ones(dataset.X.shape[1])
                return self
            top = np.asarray(abs(dataset.X).max(axis=0).todense()).ravel()
            self.width = np.where(top > 0, top, 1.0)
            return self
        numbers = _numbers(dataset)
        self.scaled = scaled
        if scaled and numbers.shape[1]:
            self.low = np.nan_to_num(_quiet(np.nanmin, numbers))
            width = np.nan_to_num(_quiet(np.nanmax, numbers)) - self.low
            self.width = np.where(width > 0, width, 1.0)
        for column in dataset.categorical:
            seen = dataset.X[column].astype(str).unique()
            self.categories[column] = {level: code for code, level in enumerate(sorted(seen))}
        if dataset.text:
            from sklearn.feature_extraction.text import CountVectorizer

            self.words = CountVectorizer(dtype=np.float32).fit(_joined_text(dataset))
        return self

    def encode(self, dataset: Dataset) -> sparse.csr_matrix:
        """Rows as CSR; zeros (the lowest value of a column, a category never met) are not stored."""
        if dataset.is_sparse:
            # Signs and zeros mean something in sparse data, so it is only scaled, not moved.
            return sparse.csr_matrix(dataset.X @ sparse.diags(1 / self.width), dtype=np.float32)
        parts: list[Any] = []
        numbers = _numbers(dataset)
        if numbers.shape[1]:
            missing = np.isnan(numbers)
            if self.scaled:
                numbers = np.clip((numbers - self.low) / self.width, -1.0, 2.0)
            parts.append(sparse.csr_matrix(np.where(missing, 0.0, numbers).astype(np.float32)))
            if missing.any():
                parts.append(sparse.csr_matrix(missing.astype(np.float32)))
            else:
                parts.append(sparse.csr_matrix(missing.shape, dtype=np.float32))
        for column, codes in self.categories.items():
            parts.append(_indicators(dataset.X[column], codes))
        if self.words is not None:
            parts.append(self.words.transform(_joined_text(dataset)))
        return sparse.csr_matrix(sparse.hstack(parts, format="csr"), dtype=np.float32)


def _numbers(dataset: Dataset) -> NDArray[np.float64]:
    other = {*dataset.categorical, *dataset.text}
    columns = [c for c in dataset.X.columns if c not in other]
    return np.asarray(dataset.X[columns], np.float64)


def _quiet(reduce: Any, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return np.asarray(reduce(numbers, axis=0))


def _joined_text(dataset: Dataset) -> Any:
    return dataset.X[list(dataset.text)].astype(str).agg(" ".join, axis=1)


def _indicators(column: pd.Series[Any], codes: dict[str, int]) -> sparse.csr_matrix:
    numbers = column.astype(str).map(codes).astype("float64").to_numpy()
    known = np.flatnonzero(~np.isnan(numbers))
    ones = np.ones(len(known), np.float32)
    shape = (len(column), len(codes))
    return sparse.csr_matrix((ones, (known, numbers[known].astype(np.int64))), shape=shape)


def features_per_row(X: sparse.csr_matrix, interactions: str) -> float:
    """Mean number of features a row has after expansion, the constant and the squares counted."""
    k = np.diff(X.indptr).astype(np.float64)
    count = k + 1
    if interactions in ("quadratic", "cubic"):
        count = count + k * (k + 1) / 2
    if interactions == "cubic":
        count = count + k * (k + 1) * (k + 2) / 6
    return float(count.mean())
