"""The sets of the paper's experiment: two classes or a quantity, split at random, as rows of plain features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.accuracy import unit_target
from benchmarks.datasets import SPECS, Dataset, Parts, load, split
from benchmarks.onehot import OneHot

#: Sets by name; those of several classes become their largest class against the rest.
SETS = tuple(name for name in SPECS if not name.endswith("_binary"))

#: The set of the paper, and what is different in ours.
PUBLISHED = {
    "20newsgroups": ("20news", "another binary question"),
    "a9a": ("a9a", ""),
    "abalone": ("abalone_reg", "error in other units"),
    "activity": ("activity", "8 % of the rows are missing"),
    "adult": ("adult", ""),
    "bio": ("bio", ""),
    "cal_housing": ("cal_housing", "error in other units"),
    "comp_activ": ("comp-activ-harder", "21 columns for 12"),
    "covtype": ("covtype", ""),
    "ijcnn1": ("ijcnn1", "twice the rows"),
    "letter": ("letter", "another binary question"),
    "mushroom": ("mushroom", ""),
    "poker_train25k": ("poker", "25,010 of 946,799 rows"),
    "rcv1_vw_sample": ("rcv1", "1,747 of 781,265 rows"),
    "shuttle": ("shuttle", ""),
    "titanic": ("titanic", ""),
    "w8a": ("w8a", ""),
    # by `python -m benchmarks fetch`
    "MagicTelescope": ("magic04", ""),
    "YearPredictionMSD": ("year", "error in other units"),
    "eeg-eye-state": ("eeg_eye_state", ""),
    "nomao": ("nomao", ""),
    "skin-segmentation": ("skin", ""),
    "slice_localization": ("slice", "error in other units"),
}


@dataclass(frozen=True)
class Examples:
    """Rows of plain features with -1 and 1, or values in [0, 1]."""

    X: sparse.csr_matrix
    y: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.y)

    def first(self, rows: int) -> Examples:
        return self if rows >= len(self) else Examples(self.X[:rows], self.y[:rows])


@dataclass(frozen=True)
class Split:
    """One random split of one set, with the same features for every contender."""

    name: str
    task: str
    train: Examples
    test: Examples
    #: The same rows as columns of a table, where they are one.
    columns: Parts | None = None

    @cached_property
    def nonzeros(self) -> float:
        """Mean number of non-zero features of a row."""
        return float(self.train.X.nnz / self.train.X.shape[0])

    def error(self, raw: NDArray[np.float64]) -> float:
        """Share of wrong signs, or the mean squared error."""
        if self.task == "regression":
            return float(np.mean((raw - self.test.y) ** 2))
        return float(np.mean((raw > 0) != (self.test.y > 0)))


def read(directory: Path, name: str, most_rows: int | None = None) -> Dataset:
    """A set with two classes or a quantity; of more than ``most_rows`` rows a random part."""
    dataset = two_classes(unit_target(replace(load(directory, name), is_train=None)))
    if most_rows is not None and len(dataset) > most_rows:
        rows = np.random.default_rng(0).choice(len(dataset), most_rows, replace=False)
        dataset = dataset.take(np.sort(rows))
    return dataset


def two_classes(dataset: Dataset) -> Dataset:
    """Targets as -1 and 1: the largest of several classes against the rest, the second of two."""
    if dataset.task == "regression":
        return dataset
    classes, counts = np.unique(dataset.y, return_counts=True)
    positive: Any = classes[counts.argmax()] if dataset.task == "multiclass" else classes[-1]
    return replace(dataset, task="binary", y=np.where(dataset.y == positive, 1.0, -1.0))


def splits(dataset: Dataset, seed: int, scaled: bool) -> Split:
    """80 % to learn from and 20 % to test; numbers as they are, or scaled to [0, 1]; categories one-hot."""
    parts = split(dataset, seed)
    encoder = OneHot.fit(parts.train, scaled)
    train, test = (Examples(encoder.encode(part), np.asarray(part.y, np.float64)) for part in (parts.train, parts.test))
    columns = None if sparse.issparse(parts.train.X) else parts
    return Split(dataset.name, dataset.task, train, test, columns)
