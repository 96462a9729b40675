"""The real data sets of ``--data DIR``, as a learner wants them: leaks dropped, rows shuffled.

A set is one line in :data:`SPECS`, or any NAME.parquet with a column ``label`` (``python -m benchmarks fetch`` makes
such files). ``load(directory, name)`` reads it; ``split(dataset, seed)`` shuffles by
the seed and gives a training and a test part: 80/20, or the official parts where the set has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Spec:
    """Where a set lies and how to read it."""

    task: str
    #: Files without their suffix; several are joined.
    files: tuple[str, ...]
    suffix: str = "parquet"
    #: Columns that name the answer, the query or the person.
    drop: tuple[str, ...] = ()
    #: Columns of whole numbers that are codes, not quantities; ("*",): all.
    categorical: tuple[str, ...] = ()
    #: The class that stands against the rest; "largest": the most frequent one.
    positive: Any = None
    #: Whether the test part is the source's own.
    official: bool = False
    #: Id of the first feature in svmlight text.
    first_id: int = 1


def _table(task: str, file: str, **more: Any) -> Spec:
    return Spec(task, (file,), **more)


def _svmlight(*files: str, **more: Any) -> Spec:
    return Spec("binary", files, suffix="svm.gz", **more)


_KDD_CODES = ("Atr-1", "Atr-2", "Atr-3")
_CREDIT_CODES = ("SEX", "EDUCATION", "MARRIAGE")

SPECS: dict[str, Spec] = {
    # two classes
    "a9a": _svmlight("a9a_train", "a9a_test"),
    "activity_binary": _table("binary", "activity", drop=("user",), positive="largest"),
    "adult": _table("binary", "adult"),
    "avazu_sample9k": _table("binary", "avazu_sample9k"),
    "bio": _table("binary", "bio", drop=("block_id",)),
    "covtype_binary": _table("binary", "covtype", positive=2),
    "credit_default": _table("binary", "credit_default", categorical=_CREDIT_CODES),
    "criteo_sample8k": _table("binary", "criteo_sample8k"),
    "donors_kdd2014": _table("binary", "donors_kdd2014"),
    "higgs_sample": _table("binary", "higgs_sample"),
    "ijcnn1": _svmlight("ijcnn1"),
    "ipinyou_sample": _svmlight("ipinyou_sample_train", "ipinyou_sample_test", first_id=0),
    "mushroom": _svmlight("mushroom_train", "mushroom_test"),
    "phishing": _table("binary", "phishing"),
    "rcv1_vw_sample": _svmlight("rcv1_vw_sample_train", "rcv1_vw_sample_test"),
    "shuttle_binary": _table("binary", "shuttle", positive="largest"),
    "spambase": _table("binary", "spambase"),
    "talkingdata_sample": _table("binary", "talkingdata_sample"),
    "titanic": _table("binary", "titanic"),
    "w8a": _svmlight("w8a"),
    # several classes
    "20newsgroups": _table("multiclass", "20newsgroups", official=True),
    "activity": _table("multiclass", "activity", drop=("user",)),
    "cifar10_subset": Spec("multiclass", ("cifar10_subset",), suffix="npz", official=True),
    "connect4": _table("multiclass", "connect4", categorical=("*",)),
    "covtype": _table("multiclass", "covtype"),
    "kddcup99": _table("multiclass", "kddcup99_10pct", categorical=_KDD_CODES),
    "letter": _table("multiclass", "letter"),
    "mnist": Spec("multiclass", ("mnist",), suffix="npz", official=True),
    "poker_train25k": _table("multiclass", "poker_train25k"),
    "reuters21578": _table("multiclass", "reuters21578", drop=("topics",), official=True),
    "satimage": _table("multiclass", "satimage"),
    "shuttle": _table("multiclass", "shuttle"),
    "sleep": _table("multiclass", "sleep"),
    "vehicle": _table("multiclass", "vehicle"),
    # quantities
    "abalone": _table("regression", "abalone"),
    "cal_housing": _table("regression", "cal_housing"),
    "comp_activ": _table("regression", "comp_activ"),
    "diamonds": _table("regression", "diamonds"),
    "elevators": _table("regression", "elevators"),
    "house_16h": _table("regression", "house_16h"),
    "pol": _table("regression", "pol"),
    "power_plant": _table("regression", "power_plant"),
}


@dataclass(frozen=True)
class Dataset:
    """Examples with their targets: a frame of typed columns, or a sparse matrix."""

    name: str
    task: str
    X: pd.DataFrame | sparse.csr_matrix
    y: NDArray[Any]
    #: Columns of ``X`` that hold running text.
    text: tuple[str, ...] = ()
    #: Which rows are the source's own training part, where it is to be respected.
    is_train: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.X))

    @property
    def categorical(self) -> list[str]:
        """Columns of ``X`` that hold categories."""
        if self.is_sparse:
            return []
        return [c for c in self.X.columns if self.X[c].dtype == "category"]

    def take(self, rows: NDArray[np.int64]) -> Dataset:
        """The given rows, in the given order."""
        X = self.X[rows] if self.is_sparse else self.X.iloc[rows].reset_index(drop=True)
        return replace(self, X=X, y=self.y[rows], is_train=None)


@dataclass(frozen=True)
class Parts:
    """A shuffled training part and a test part."""

    train: Dataset
    test: Dataset

    def first(self, most: int | None) -> Parts:
        """With at most so many training rows, the first; None: all."""
        if most is None or len(self.train) <= most:
            return self
        return replace(self, train=self.train.take(np.arange(most)))


def load(directory: Path, name: str) -> Dataset:
    """Read a whole set, in the order of its file."""
    spec = SPECS.get(name) or _found(directory, name)
    paths = [directory / f"{file}.{spec.suffix}" for file in spec.files]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"the data set {name} needs {path}: give its folder with --data")
    read = {"parquet": _read_table, "svm.gz": _read_svmlight, "npz": _read_images}[spec.suffix]
    return read(name, spec, paths)


def _found(directory: Path, name: str) -> Spec:
    """How to read a set that is just a file: text in ``label`` means classes, numbers a quantity."""
    path = directory / f"{name}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"a data set is one of {', '.join(SPECS)}, or a file such as {path}; got {name!r}")
    y = pd.read_parquet(path, columns=["label"])["label"]
    if _is_numeric(y) and y.nunique() > 2:
        return _table("regression", name)
    return _table("binary" if y.nunique() <= 2 else "multiclass", name)


def split(dataset: Dataset, seed: int) -> Parts:
    """Shuffle by the seed and split."""
    order = np.random.default_rng(seed).permutation(len(dataset))
    if dataset.is_train is not None:
        in_train = dataset.is_train[order]
        return Parts(dataset.take(order[in_train]), dataset.take(order[~in_train]))
    n_train = int(len(dataset) * (1 - TEST_SHARE))
    return Parts(dataset.take(order[:n_train]), dataset.take(order[n_train:]))


def _read_table(name: str, spec: Spec, paths: list[Path]) -> Dataset:
    frame = pd.read_parquet(paths[0])
    is_train = None
    if spec.official:
        frame = frame[frame["split"].isin(["train", "test"]) & (frame["label"].astype(str) != "")]
        is_train = (frame["split"] == "train").to_numpy()
    y = frame["label"]
    frame = frame.drop(columns=["label", *[c for c in ("split", *spec.drop) if c in frame]])
    codes = list(frame.columns) if spec.categorical == ("*",) else list(spec.categorical)
    words = [c for c in frame.columns if frame[c].dtype != "category" and not _is_numeric(frame[c])]
    text = tuple(c for c in words if c == "text")
    for column in [*codes, *[c for c in words if c not in text]]:
        frame[column] = frame[column].astype(str).astype("category")
    labels = _labels(y, spec)
    return Dataset(name, spec.task, frame.reset_index(drop=True), labels, text, is_train)


def _is_numeric(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def _labels(y: pd.Series[Any], spec: Spec) -> NDArray[Any]:
    if spec.positive is not None:
        positive = y.value_counts().index[0] if spec.positive == "largest" else spec.positive
        return np.asarray(y == positive, np.int64)
    if spec.task == "regression":
        return np.asarray(y, np.float64)
    if y.dtype == "category" or not _is_numeric(y):
        return np.asarray(y.astype(str), str)
    return np.asarray(y, np.int64)


def _read_svmlight(name: str, spec: Spec, paths: list[Path]) -> Dataset:
    from sklearn.datasets import load_svmlight_files

    loaded = load_svmlight_files([str(path) for path in paths], dtype=np.float32, zero_based=spec.first_id == 0)
    X = sparse.vstack(loaded[0::2], format="csr")
    y = np.concatenate(loaded[1::2])
    return Dataset(name, spec.task, X, (y > 0).astype(np.int64))


def _read_images(name: str, spec: Spec, paths: list[Path]) -> Dataset:
    with np.load(paths[0]) as saved:
        pixels = np.concatenate([saved["x_train"], saved["x_test"]])
        y = np.concatenate([saved["y_train"], saved["y_test"]]).astype(np.int64)
        n_train = len(saved["y_train"])
    X = sparse.csr_matrix(pixels.reshape(len(y), -1).astype(np.float32) / 255)
    return Dataset(name, spec.task, X, y, is_train=np.arange(len(y)) < n_train)
