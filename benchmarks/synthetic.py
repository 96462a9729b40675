"""Synthetic streams for timing: one sparse, one dense, each made once and kept in every format.

*Sparse*: 1,000,000 examples of about 78 features with values, drawn by a Zipf law (exponent 1.05) from a
million ids that are scattered over the numbers. *Dense*: 1,500,000 examples of 50 normal columns. Labels are
-1 or +1, drawn from a logistic model, so that there is something to learn. A stream may be given another width:
few features an example make a long file that is quickly written.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

N_IDS = 1_000_000
ZIPF = 1.05
#: Mean number of draws an example; duplicates merge, which leaves about 78 features.
DRAWS = 99
DENSE_COLUMNS = 50
BLOCK = 10_000
#: Largest value of the dense stream, in units of the fifth decimal.
LARGEST = 900_000
#: Blocks of a row group of Parquet.
GROUP = 10

SPARSE_ROWS = 1_000_000
DENSE_ROWS = 1_500_000


@dataclass(frozen=True)
class Stream:
    """A synthetic stream: its name and its length in rows."""

    kind: str
    rows: int
    #: Mean number of draws, or number of columns; 0: as said above.
    width: int = 0

    @property
    def name(self) -> str:
        name = f"{self.kind}{self.rows}"
        return f"{name}x{self.width}" if self.width else name


def blocks(stream: Stream, seed: int = 0) -> Iterator[tuple[sparse.csr_matrix, NDArray[np.int8]]]:
    """The stream as blocks of rows; a shorter stream is a prefix of a longer one."""
    make = _SparseMaker(seed, stream.width) if stream.kind == "sparse" else _DenseMaker(seed, stream.width)
    done = 0
    while done < stream.rows:
        X, y = make.block()
        keep = min(BLOCK, stream.rows - done)
        yield X[:keep], y[:keep]
        done += keep


class _SparseMaker:
    def __init__(self, seed: int, width: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.draws = width or DRAWS
        mass = np.arange(1, N_IDS + 1, dtype=np.float64) ** -ZIPF
        self.cumulated = np.cumsum(mass / mass.sum())
        self.ids = self.rng.permutation(N_IDS).astype(np.int32)
        self.truth = self.rng.normal(0, 1.2, N_IDS) * (self.rng.random(N_IDS) < 0.3)

    def block(self) -> tuple[sparse.csr_matrix, NDArray[np.int8]]:
        rng = self.rng
        counts = rng.poisson(self.draws, BLOCK).clip(1)
        rows = np.repeat(np.arange(BLOCK), counts)
        ranks = np.searchsorted(self.cumulated, rng.random(len(rows))).clip(max=N_IDS - 1)
        keys = np.unique(rows.astype(np.int64) * N_IDS + self.ids[ranks])
        rows, columns = keys // N_IDS, keys % N_IDS
        # Five decimals, never 0: the text holds exactly these numbers.
        values = (rng.integers(1, 100_000, len(keys)) / 1e5).astype(np.float32)
        indptr = np.searchsorted(rows, np.arange(BLOCK + 1))
        X = sparse.csr_matrix((values, columns.astype(np.int32), indptr), shape=(BLOCK, N_IDS))
        return X, _labels(rng, X @ self.truth)


class _DenseMaker:
    def __init__(self, seed: int, width: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.truth = self.rng.normal(0, 0.4, width or DENSE_COLUMNS)

    def block(self) -> tuple[sparse.csr_matrix, NDArray[np.int8]]:
        # Five decimals; a zero would not be stored, so it is moved by one unit.
        units = np.rint(self.rng.normal(0, 1e5, (BLOCK, len(self.truth))))
        units[units == 0] = 1
        dense = (units / 1e5).astype(np.float32)
        return sparse.csr_matrix(dense), _labels(self.rng, dense @ self.truth)


def _labels(rng: np.random.Generator, margin: NDArray[Any]) -> NDArray[np.int8]:
    chance = 1 / (1 + np.exp(-np.asarray(margin, np.float64)))
    return np.where(rng.random(len(chance)) < chance, 1, -1).astype(np.int8)


def load(stream: Stream) -> tuple[sparse.csr_matrix, NDArray[np.int8]]:
    """The whole stream in memory."""
    parts = list(blocks(stream))
    return sparse.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])


def file(directory: Path, stream: Stream, suffix: str) -> Path:
    """Path of the stream in the format named by ``suffix``: written now, unless it is there already."""
    path = directory / f"{stream.name}.{suffix}"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + f".partial{os.getpid()}")
        _WRITERS[suffix](partial, stream)
        partial.replace(path)
    return path


def _write_vw(path: Path, stream: Stream) -> None:
    _write_lines(path, stream, "{} | {}\n", 0)


def _write_svmlight(path: Path, stream: Stream) -> None:
    _write_lines(path, stream, "{} {}\n", 1)


def _write_lines(path: Path, stream: Stream, form: str, first_id: int) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    before, between, after = form.split("{}")
    names = pa.array([f"{column}:" for column in range(first_id, first_id + N_IDS)])
    decimals = pa.array([f"{unit / 1e5:.5f}" for unit in range(-LARGEST, LARGEST + 1)])
    with open(path, "wb") as out:
        for X, y in blocks(stream):
            units = np.rint(X.data.astype(np.float64) * 1e5).astype(np.int64) + LARGEST
            pairs = pc.binary_join_element_wise(names.take(pa.array(X.indices)), decimals.take(pa.array(units)), "")
            rows = pc.binary_join(pa.ListArray.from_arrays(pa.array(X.indptr.astype(np.int32)), pairs), " ")
            labels = pc.cast(pa.array(y), pa.string())
            lines = pc.binary_join_element_wise(before, labels, between, rows, after, "")
            out.write("".join(lines.to_pylist()).encode())


def _tables(stream: Stream) -> Iterator[Any]:
    import pyarrow as pa

    if stream.kind != "dense":
        raise ValueError(f"only the dense stream is a table; got {stream.kind!r}")
    for X, y in blocks(stream):
        dense = X.toarray()
        names = ["label"] + [f"x{column}" for column in range(dense.shape[1])]
        columns = [pa.array(y)] + [pa.array(column) for column in dense.T]
        yield pa.table(columns, names=names)


def _write_parquet(path: Path, stream: Stream) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    tables = _tables(stream)
    while group := list(itertools.islice(tables, GROUP)):
        table = pa.concat_tables(group)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _write_csv(path: Path, stream: Stream) -> None:
    from pyarrow import csv

    writer = None
    with open(path, "wb") as out:
        for table in _tables(stream):
            writer = writer or csv.CSVWriter(out, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _write_npz(path: Path, stream: Stream) -> None:
    X, y = load(stream)
    with open(path, "wb") as out:
        np.savez(out, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)


def read_npz(path: Path) -> tuple[sparse.csr_matrix, NDArray[np.int8]]:
    """A stream that was written as ``npz``."""
    with np.load(path) as saved:
        X = sparse.csr_matrix((saved["data"], saved["indices"], saved["indptr"]), shape=tuple(saved["shape"]))
        return X, saved["y"]


_WRITERS: dict[str, Callable[[Path, Stream], None]] = {
    "vw": _write_vw,
    "svm": _write_svmlight,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "npz": _write_npz,
}
SUFFIXES = tuple(_WRITERS)
