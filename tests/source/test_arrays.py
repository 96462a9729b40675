"""Arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pomona.chunk import Chunk
from pomona.errors import DataFormatError
from pomona.source import arrays as arrays_module
from pomona.source.arrays import ArraySource, ArrayTable, open_array, open_array_table
from tests.source.tables import encode_all, read_rows


def dense(chunks: list[Chunk], d: int) -> np.ndarray[Any, Any]:
    rows = []
    for chunk in chunks:
        for r in range(len(chunk)):
            part = slice(*chunk.indptr[r : r + 2].tolist())
            row = np.zeros(d, np.float32)
            assert len(set(chunk.indices[part].tolist())) == chunk.indptr[r + 1] - chunk.indptr[r]
            row[chunk.indices[part].astype(np.int64)] = chunk.values[part]
            rows.append(row)
    return np.array(rows, np.float32).reshape(-1, d)


arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.bool_]),
    st.tuples(st.integers(1, 9), st.integers(1, 4)),
)


@given(arrays, st.sampled_from(["C", "F"]))
@settings(deadline=None)
def test_every_array_gives_its_rows(X: np.ndarray[Any, Any], order: Any) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        expected = X.astype(np.float32)
        np.testing.assert_array_equal(
            dense(list(ArraySource(np.asarray(X, order=order)).chunks()), X.shape[1]), expected
        )
        if X.dtype.kind != "b":
            for make in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array):
                np.testing.assert_array_equal(dense(list(ArraySource(make(X)).chunks()), X.shape[1]), expected)


def test_chunks_are_views() -> None:
    X = np.ones((5, 3), np.float32)
    (chunk,) = ArraySource(X).chunks()
    assert np.shares_memory(chunk.values, X) and chunk.indices.dtype == np.uint32
    S = sp.random(50, 20, 0.3, format="csr", dtype=np.float32)
    (chunk,) = ArraySource(S).chunks()
    assert np.shares_memory(chunk.values, S.data) and np.shares_memory(chunk.indices, S.indices)


def test_duplicates_are_summed_and_the_input_is_left_alone() -> None:
    S = sp.csr_matrix((np.ones(3), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    (chunk,) = ArraySource(S).chunks()
    assert dict(zip(chunk.indices.tolist(), chunk.values.tolist(), strict=True)) == {0: 1.0, 1: 2.0}
    assert S.nnz == 3


def test_several_chunks_with_labels_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays_module, "CHUNK_ROWS", 4)
    X, y, w = np.arange(20.0).reshape(10, 2), np.array(list("abcdefghij")), np.arange(10.0)
    for data in (X, sp.csr_matrix(X)):
        source = ArraySource(data, y, w, names=["left", "right"])
        chunks = list(source.chunks())
        assert [len(chunk) for chunk in chunks] == [4, 4, 2]
        assert np.concatenate([chunk.labels for chunk in chunks]).tolist() == y.tolist()  # type: ignore[misc]
        assert np.concatenate([chunk.weights for chunk in chunks]).tolist() == w.tolist()  # type: ignore[misc]
        assert chunks[1].names is not None and "left" in chunks[1].names(np.arange(chunks[1].nnz))
        assert source.fraction_read() == 1.0 and source.n_examples == 10


@pytest.mark.parametrize(
    ("X", "y", "weights", "names", "message"),
    [
        (
            np.ones(3),
            None,
            None,
            None,
            "expected a two-dimensional array, got the shape (3,): use X.reshape(-1, 1) for one column",
        ),
        (np.ones((3, 2)), [1, 2], None, None, "expected 3 labels, one a row, got 2"),
        (np.ones((3, 2)), None, [1, 2], None, "expected 3 weights, one a row, got 2"),
        (np.ones((2, 2)), None, [1, -2], None, "a weight must be finite and not negative, but row 1 has -2.0"),
        (np.ones((2, 2)), None, None, ["a"], "expected one name a column, got 1 names for 2 columns"),
    ],
)
def test_shapes_must_fit(X: Any, y: Any, weights: Any, names: Any, message: str) -> None:
    with pytest.raises(DataFormatError) as caught:
        ArraySource(X, y, weights, names)
    assert str(caught.value) == message


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_as_tables(dtype: Any, order: Any) -> None:
    X = np.asarray(np.arange(12).reshape(4, 3) % 5, dtype, order=order)
    found = read_rows(ArrayTable(X, ["a", "b", "c"]))
    assert [list(row.values()) for row in found] == X.tolist() and list(found[0]) == ["a", "b", "c"]


def test_arrays_and_tables_are_encoded_alike() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    import pyarrow as pa

    table = pa.table({f"x{i}": X[:, i] for i in range(3)})
    for numeric in ("hat", "onehot"):
        (a,), (b,) = encode_all(X, numeric), encode_all(table, numeric)
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.values, b.values)


def test_objects_and_sparse_matrices_are_opened() -> None:
    assert read_rows(open_array_table(np.array([[1, "a"], [2, "b"]], object)))[1] == {"x0": 2, "x1": "b"}
    assert isinstance(open_array(sp.csr_matrix(np.eye(2))), ArraySource)
    with pytest.raises(DataFormatError, match="column 'x0' mixes types"):
        open_array_table(np.array([[1], ["a"]], object))
