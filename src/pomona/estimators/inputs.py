"""What scikit-learn users pass as X: arrays, sparse matrices, frames; checked, and opened as sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_y, check_array, check_consistent_length, validate_data

from pomona.chunk import Chunk, Source
from pomona.encode import EncodedSource, TableEncoder
from pomona.encode.columns import kind_of
from pomona.encode.labels import labels_of
from pomona.errors import DataFormatError
from pomona.source.arrays import ArraySource, ArrayTable, open_array_table
from pomona.source.table import FrameTable, Place, Table, is_frame, missing_column, open_frame

#: Rows that are encoded at once, too few to be worth a thread that reads ahead.
FEW_ROWS = 1 << 12
#: A checked X: numbers, sparse numbers (CSR), or typed columns.
Rows = Any


def checked(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """X as an array, a CSR matrix or an Arrow table, after scikit-learn's checks.

    Missing values are allowed but in sparse matrices; infinite ones are not, but in frames, where an encoding may take
    them.
    """
    if _is_sparse_frame(X):
        X = X.sparse.to_coo().tocsr()
    if type(X).__name__ == "LazyFrame":
        X = X.collect()
    if is_frame(X) and not isinstance(X, Iterator):
        return whole_table(validate_data(estimator, X, reset=reset, skip_check_array=True))
    return _numbers(validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False))


def checked_pair(estimator: Any, X: Any, y: Any, *, reset: bool, numeric: bool) -> tuple[Rows, NDArray[Any]]:
    """X as by :func:`checked`, and y as an array of one target a row."""
    if y is None:
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)  # says that y is needed
    X = checked(estimator, X, reset=reset)
    y = _check_y(y, y_numeric=numeric, estimator=estimator)
    check_consistent_length(X, y)
    return X, y


def _is_sparse_frame(X: Any) -> bool:
    return type(X).__module__.startswith("pandas") and hasattr(X, "dtypes") and _all_sparse(X)


def _all_sparse(X: Any) -> bool:
    kinds = [type(dtype).__name__ for dtype in np.atleast_1d(X.dtypes)]
    return bool(kinds) and all(kind == "SparseDtype" for kind in kinds)


def whole_table(frame: Any) -> pa.Table:
    """A frame as an Arrow table with at least one cell."""
    source = open_frame(frame)
    table = pa.Table.from_batches(list(source.batches()), source.schema)
    if table.num_rows == 0 or table.num_columns == 0:
        check_array(np.empty(table.shape))  # raises, in scikit-learn's words
    return table


def column(table: pa.Table, name: str, role: str) -> NDArray[Any]:
    """A target or weight that is a column of the table."""
    if name not in table.column_names:
        raise missing_column(name, table.column_names, role, "")
    values = table.column(name)
    if values.null_count:
        raise DataFormatError(f"the {role} {name!r} is missing in {values.null_count} rows: remove them, or fill it in")
    return np.asarray(labels_of(pa.concat_arrays(values.unify_dictionaries().chunks), False))


def _numbers(X: Any) -> Rows:
    """Arrays as numbers where they are, as typed columns where they are not."""
    if sparse.issparse(X):
        dtype = X.dtype if X.dtype.kind in "fiub" else np.float64
        return check_array(X, accept_sparse="csr", dtype=dtype, input_name="X")
    if X.dtype.kind in "iufb":
        return check_array(X, dtype=None, ensure_all_finite="allow-nan", input_name="X")
    try:
        return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
    except (TypeError, ValueError) as error:
        try:
            table = _columns_of_objects(X)
        except DataFormatError:
            table = None
        if table is not None:
            return table
        if isinstance(error, TypeError):
            raise
        raise DataFormatError(
            "expected columns of numbers, strings, dates or truth values; got a column that mixes them or holds other"
            " objects: give each column one type"
        ) from error


def _columns_of_objects(X: NDArray[Any]) -> pa.Table | None:
    source = open_array_table(X)
    table = pa.Table.from_batches(list(source.batches()), source.schema)
    return table if all(kind_of(field.type) is not None for field in table.schema) else None


def take(X: Rows, rows: NDArray[Any]) -> Rows:
    """Some rows, by number or by a mask."""
    if not isinstance(X, pa.Table):
        return X[rows]
    return X.filter(pa.array(rows)) if rows.dtype == np.bool_ else X.take(pa.array(rows))


def sample(X: Rows, most: int) -> NDArray[np.int64]:
    """At most so many row numbers, evenly spread, for X may be sorted."""
    n = X.shape[0]
    return np.arange(n) if n <= most else np.arange(most) * n // most


def table_of(X: Rows, names: Sequence[str]) -> Table:
    """A table for an encoder."""
    if isinstance(X, pa.Table):
        return FrameTable(X.rename_columns(list(names)), "X")
    return ArrayTable(X, names)


class ShuffledTable(Table):
    """Rows in another order, a block at a time: X may be sorted, and its encoded form too large to be kept."""

    def __init__(self, X: Rows, names: Sequence[str], order: NDArray[np.int64]) -> None:
        self._X, self._names, self._order = X, names, order
        super().__init__("X", table_of(take(X, order[:1]), names).schema, len(order))

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        for start in range(0, len(self._order), FEW_ROWS):
            block = take(self._X, self._order[start : start + FEW_ROWS])
            for batch in table_of(block, self._names).batches():
                yield batch, Place("X")


def source_of(X: Rows, names: Sequence[str], encoder: TableEncoder | None) -> Source:
    """Chunks of a checked X: of its columns as they are, or encoded."""
    if encoder is not None:
        encoded: Any = EncodedSource(table_of(X, names), encoder, need_labels=False)
        return encoded  # type: ignore[no-any-return]
    return ArraySource(_matrix(X), names=names)


def _matrix(X: Rows) -> Any:
    """Numbers only, for models that were trained on a sparse matrix."""
    if isinstance(X, pa.Table):
        X = np.column_stack([column.to_numpy() for column in X.columns])
    return X if sparse.issparse(X) else check_array(X)


def chunks_of(X: Rows, names: Sequence[str], encoder: TableEncoder | None) -> Iterator[Chunk]:
    """The same chunks for predicting."""
    if encoder is not None and sparse.issparse(X):
        for start in range(0, X.shape[0], FEW_ROWS):
            yield from chunks_of(X[start : start + FEW_ROWS].toarray(), names, encoder)
    elif encoder is not None and X.shape[0] <= FEW_ROWS:
        for batch in table_of(X, names).batches():
            yield encoder.encode(batch)
    else:
        yield from source_of(X, names, encoder).chunks()


def training_chunks(source: Source) -> Iterator[Chunk]:
    """Chunks to keep: a sparse matrix is one, without a copy."""
    if isinstance(source, ArraySource):
        yield source.whole()
    else:
        yield from source.chunks()


def column_names(wanted: Sequence[Any] | None, names: Sequence[str], what: str) -> list[str]:
    """Columns given by name or by number, as names."""
    found = []
    for column in () if wanted is None else wanted:
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not -len(names) <= column < len(names):
                raise ValueError(f"{what} names column {column}, but X has {len(names)} columns")
            found.append(names[int(column)])
        else:
            found.append(str(column))
    return found
