"""Arrays in memory: NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona.chunk import FEW_FEATURES, Chunk, NameLookup
from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source.table import FrameTable, Place, Table, one_line, wrap

#: Rows of a chunk; it is a view, so the number only has to hide the cost of a call.
CHUNK_ROWS = 1 << 14
#: Features of a chunk of a sparse matrix, about: what is made of them stays in a near cache, in memory used again.
CHUNK_FEATURES = 1 << 18
#: The first chunk of a sparse matrix, unless that is small, so that learning need not wait; then twice as many each.
FIRST_ROWS = 1 << 10
#: Entries of the row of column numbers that all chunks of a dense array share, at most.
SHARED_ENTRIES = 1 << 20


class ColumnNames(Sequence[str]):
    """x0, x1 …, each made when it is asked for: a sparse matrix may have millions of columns."""

    def __init__(self, n: int) -> None:
        self._columns = range(n)

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        found = self._columns[i]
        return f"x{found}" if isinstance(found, int) else [f"x{column}" for column in found]


def feature_names(X: Any, names: Sequence[str] | None) -> list[str] | None:
    """The given names, checked against the number of columns; None where they have no names of their own."""
    if names is None:
        return None
    if len(names) != X.shape[1]:
        raise DataFormatError(f"expected one name a column, got {len(names)} names for {X.shape[1]} columns")
    return None if isinstance(names, ColumnNames) else [str(name) for name in names]


def _check_shape(X: Any, y: Any, weights: Any) -> None:
    if X.ndim != 2:
        raise DataFormatError(
            f"expected a two-dimensional array, got the shape {X.shape}: use X.reshape(-1, 1) for one column"
        )
    for what, array in (("labels", y), ("weights", weights)):
        if array is not None and len(array) != X.shape[0]:
            raise DataFormatError(f"expected {X.shape[0]} {what}, one a row, got {len(array)}")


def _checked_weights(weights: Any) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    values = np.ascontiguousarray(weights, np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise DataFormatError(f"a weight must be finite and not negative, but row {bad[0]} has {values[bad[0]]}")
    return values


class ArraySource:
    """Chunks that are views of an array: its columns are the features.

    Parameters
    ----------
    X : NumPy array or SciPy sparse matrix of shape (n, d). Nothing is copied where X is float32 in C order,
        or CSR with float32 values.
    y, weights : one a row.
    names : one a column; ``x0``, ``x1`` … by default.
    """

    reads_cheaply = True
    rewinds = True

    def __init__(self, X: Any, y: Any = None, weights: Any = None, names: Sequence[str] | None = None) -> None:
        _check_shape(X, y, weights)
        self.name = f"<{type(X).__name__}>"
        self.fields: list[str] = []
        self.n_examples: int | None = int(X.shape[0])
        self._names = feature_names(X, names)
        self._y = None if y is None else np.asarray(y)
        self._weights = _checked_weights(weights)
        self._d = int(X.shape[1])
        self._done = 0
        self._X = X if hasattr(X, "tocsr") else np.asarray(X)
        if hasattr(X, "tocsr"):
            self._csr = self._canonical(X)

    @staticmethod
    def _canonical(X: Any) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy() if rows is X else rows
            rows.sum_duplicates()
        indices = rows.indices
        columns = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
        return rows.indptr.astype(np.int64, copy=False), columns, rows.data.astype(np.float32, copy=False)

    def fraction_read(self) -> float | None:
        return self._done / self.n_examples if self.n_examples else None

    def _lookup(self, indices: NDArray[np.uint32]) -> NameLookup | None:
        """Names of columns, where they were given; a model calls the others x0, x1 …"""
        given = self._names
        return None if given is None else lambda positions: [given[c] for c in indices[positions].tolist()]

    def chunks(self) -> Iterator[Chunk]:
        self._done = 0
        for chunk in self._sparse() if hasattr(self._X, "tocsr") else self._dense():
            start, self._done = self._done, self._done + len(chunk)
            yield self._with_labels(chunk, start, self._done)
        self._done = self.n_examples or 0

    def whole(self) -> Chunk:
        """All examples of a sparse matrix as one chunk, without a copy."""
        indptr, indices, values = self._csr
        chunk = Chunk(indptr, indices, values, names=self._lookup(indices))
        return self._with_labels(chunk, 0, len(chunk))

    def _with_labels(self, chunk: Chunk, start: int, stop: int) -> Chunk:
        return Chunk(
            indptr=chunk.indptr,
            indices=chunk.indices,
            values=chunk.values,
            labels=None if self._y is None else self._y[start:stop],
            weights=None if self._weights is None else self._weights[start:stop],
            names=chunk.names,
            width=self._d,
        )

    def _sparse(self) -> Iterator[Chunk]:
        indptr, indices, values = self._csr
        names = self._lookup(indices)
        n = len(indptr) - 1
        most = max(1, min(CHUNK_ROWS, CHUNK_FEATURES * n // max(int(indptr[-1]), 1)))
        start, rows = 0, most if int(indptr[-1]) <= FEW_FEATURES else min(FIRST_ROWS, most)
        while start < n:
            yield Chunk(indptr[start : start + rows + 1], indices, values, names=names)
            start, rows = start + rows, min(2 * rows, most)

    def _dense(self) -> Iterator[Chunk]:
        X, d = self._X, self._d
        rows = max(1, min(CHUNK_ROWS, SHARED_ENTRIES // max(d, 1), len(X)))
        indptr = np.arange(rows + 1, dtype=np.int64) * d
        indices = np.tile(np.arange(d, dtype=np.uint32), rows)
        names = self._lookup(indices)
        for start in range(0, len(X), rows):
            block = np.ascontiguousarray(X[start : start + rows], np.float32)
            n = len(block)
            yield Chunk(indptr[: n + 1], indices[: n * d], block.reshape(-1), names=names)


class ArrayTable(Table):
    """A two-dimensional NumPy array as a table with one column a feature, for encoders."""

    def __init__(self, X: NDArray[Any], names: Sequence[str] | None = None) -> None:
        _check_shape(X, None, None)
        self._X = X.view(np.uint8) if X.dtype == np.bool_ else X
        self._done = 0
        columns = feature_names(X, names) or ColumnNames(X.shape[1])
        schema = pa.schema([(name, pa.from_numpy_dtype(self._X.dtype)) for name in columns])
        super().__init__(f"<{type(X).__name__}>", schema, len(X))

    def fraction_read(self) -> float | None:
        return self._done / self.n_rows if self.n_rows else None

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self._done = 0
        for start in range(0, len(self._X), CHUNK_ROWS):
            # One transposition of a block; its rows are the columns, wrapped without a copy.
            block = np.ascontiguousarray(self._X[start : start + CHUNK_ROWS].T)
            arrays = [wrap(column) for column in block]
            self._done += block.shape[1]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema), Place(self.name, start + 1)


def open_array(X: Any, options: ReadOptions | None = None) -> ArraySource | Table:
    """A sparse matrix as chunks of its own columns; an array as a table, for an encoder."""
    return ArraySource(X) if hasattr(X, "tocsr") else open_array_table(np.asarray(X))


def open_array_table(X: NDArray[Any], names: Sequence[str] | None = None) -> Table:
    """A two-dimensional array as a table; columns of objects get the types of their values."""
    if X.dtype.kind in "iufb":
        return ArrayTable(X, names)
    _check_shape(X, None, None)
    columns = list(feature_names(X, names) or ColumnNames(X.shape[1]))
    arrays = []
    for name, column in zip(columns, X.T, strict=True):
        try:
            arrays.append(pa.array(column.tolist()))
        except pa.ArrowException as error:
            raise DataFormatError(f"column {name!r} mixes types: {one_line(error)}") from error
    return FrameTable(pa.table(arrays, columns), f"<{type(X).__name__}>")
