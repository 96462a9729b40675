"""Text sources: what is read does not depend on how it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pomona.options import ReadOptions
from pomona.source import open_source


@pytest.fixture
def vw_file(tmp_path: Path) -> Path:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 2.5 0.5 'tag|a:2 x:1.5 y |b z z:2\n\n| 17:0 foo:3e-3\r\n-1 |b q\n")
    return path


def test_vw_example(vw_file: Path) -> None:
    source = open_source(vw_file)
    (chunk,) = source.chunks()
    assert source.fields == ["a", "b", ""]
    np.testing.assert_array_equal(chunk.indptr, [0, 3, 4, 5])
    np.testing.assert_array_equal(chunk.values, np.float32([3, 2, 3, 3e-3, 1]))
    np.testing.assert_array_equal(chunk.fields, [0, 0, 1, 2, 1])
    np.testing.assert_array_equal(chunk.labels, [1, np.nan, -1])
    np.testing.assert_array_equal(chunk.weights, [2.5, 1, 1])
    np.testing.assert_array_equal(chunk.offsets, [0.5, 0, 0])
    assert chunk.tags == ["tag", "", ""]
    assert chunk.names is not None
    assert list(chunk.names(np.arange(5))) == ["a:x", "a:y", "b:z", "foo", "b:q"]
    assert (chunk.file, chunk.first_line) == (str(vw_file), 1)


def test_grams_have_names(vw_file: Path) -> None:
    vw_file.write_text("|t a b:0 c:2 d |u a b\n")
    options = ReadOptions(ngrams=2, skips=1, ngram_namespaces=["t"])
    (chunk,) = open_source(vw_file, options).chunks()
    assert chunk.names is not None
    expected = {"t:a": 1, "t:c": 2, "t:d": 1, "t:a c": 2, "t:a d": 1, "t:c d": 2, "u:a": 1, "u:b": 1}
    names = chunk.names(np.arange(chunk.nnz))
    assert dict(zip(names, chunk.values.tolist(), strict=True)) == expected
