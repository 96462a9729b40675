"""Encoding of tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pomona.chunk import Chunk
from pomona.encode import EncodedSource, TableEncoder
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.table import open_frame


def rows_of(chunk: Chunk) -> list[dict[str, float]]:
    """Each row as names with values."""
    assert chunk.names is not None
    names = chunk.names(np.arange(len(chunk.indices)))
    return [
        {names[i]: round(float(chunk.values[i]), 6) for i in range(chunk.indptr[r], chunk.indptr[r + 1])}
        for r in range(len(chunk))
    ]


def encoded(columns: dict[str, list[object]], numeric: str = "raw", **read: object) -> list[dict[str, float]]:
    table = open_frame(pa.table(columns))
    encoder = TableEncoder.fit(table, ReadOptions(**read), EncodeOptions(numeric=numeric))
    return [row for chunk in EncodedSource(table, encoder).chunks() for row in rows_of(chunk)]


def test_every_kind_of_column_has_names_and_values() -> None:
    rows = encoded(
        {
            "age": [20.0, 40.0, None],
            "job": ["clerk", None, "cook"],
            "member": [True, False, None],
            "zip": [94110, 10001, 94110],
            "same": [1, 1, 1],
        },
        categorical=["zip"],
    )
    assert rows == [
        {"age": 20.0, "job=clerk": 1.0, "member": 1.0, "zip=94110": 1.0},
        {"age": 40.0, "job is missing": 1.0, "zip=10001": 1.0},
        {"age is missing": 1.0, "job=cook": 1.0, "member is missing": 1.0, "zip=94110": 1.0},
    ]


@pytest.mark.parametrize(
    ("numeric", "expected"),
    [
        ("hat", [{"x≈1": 1.0}, {"x≈2": 1.0}, {"x≈4": 1.0}]),
        ("onehot", [{"x ≤ 1.5": 1.0}, {"x in (1.5, 3]": 1.0}, {"x > 3": 1.0}]),
        ("hat+raw", [{"x≈1": 1.0, "x": 1.0}, {"x≈2": 1.0, "x": 2.0}, {"x≈4": 1.0, "x": 4.0}]),
    ],
)
def test_numbers_by_encoding(numeric: str, expected: list[dict[str, float]]) -> None:
    assert encoded({"x": [1.0, 2.0, 4.0]}, numeric) == expected
