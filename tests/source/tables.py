"""Helpers for tests of table sources."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pomona.encode import EncodedSource, TableEncoder
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import open_source


def read_rows(source: Any) -> list[dict[str, Any]]:
    """All rows of a table source as dictionaries."""
    return pa.Table.from_batches(list(source.batches())).to_pylist()


def encode_all(data: Any, numeric: str = "raw", **read: Any) -> list[Any]:
    """All chunks of some data, through an encoder learnt from it."""
    options = ReadOptions(**read)
    table = open_source(data, options)
    encoder = TableEncoder.fit(table, options, EncodeOptions(numeric=numeric))  # type: ignore[arg-type]
    return list(EncodedSource(table, encoder).chunks())  # type: ignore[arg-type]
