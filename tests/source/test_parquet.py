"""Parquet, Arrow files, and frames of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from pomona.chunk import Chunk
from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source import open_source
from pomona.source.parquet import open_parquet
from pomona.source.table import open_frame
from tests.source.tables import encode_all, read_rows

COLUMNS: dict[str, list[Any]] = {
    "n": [1.0, 2.5, None, 4.0],
    "i": [1, 2, 3, 4],
    "s": ["a", "b", None, "é"],
    "y": [0, 1, 0, 1],
}
TABLE = pa.table(COLUMNS)


def ipc(path: Path, table: pa.Table, stream: bool = False, compression: str | None = None) -> str:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=3)
    return str(path)


def parquet(path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, str(path), **options)
    return str(path)


class Streamed:
    """Any object with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


OBJECTS = {
    "pandas": lambda folder: pd.DataFrame(COLUMNS),
    "polars": lambda folder: pl.DataFrame(COLUMNS),
    "polars lazy": lambda folder: pl.LazyFrame(COLUMNS),
    "table": lambda folder: TABLE,
    "batch": lambda folder: TABLE.to_batches()[0],
    "reader": lambda folder: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=3)),
    "iterator of batches": lambda folder: iter(TABLE.to_batches(max_chunksize=1)),
    "iterator of frames": lambda folder: iter([pl.DataFrame(COLUMNS)[:2], pl.DataFrame(COLUMNS)[2:]]),
    "C stream": lambda folder: Streamed(),
    "parquet": lambda folder: parquet(folder / "t.parquet", TABLE),
    "parquet of dictionaries": lambda folder: parquet(
        folder / "t.parquet", TABLE.set_column(2, "s", TABLE["s"].dictionary_encode()), row_group_size=2
    ),
    "several parquet files": lambda folder: [
        parquet(folder / "1.parquet", TABLE[:1]),
        parquet(folder / "2.parquet", TABLE[1:]),
    ],
    "arrow file": lambda folder: ipc(folder / "t.arrow", TABLE),
    "compressed arrow file": lambda folder: ipc(folder / "t.arrow", TABLE, compression="zstd"),
    "arrow stream": lambda folder: ipc(folder / "t.arrows", TABLE, stream=True),
    "feather": lambda folder: pa.feather.write_feather(TABLE, str(folder / "t.feather")) or str(folder / "t.feather"),
}


def joined(chunks: list[Chunk]) -> list[tuple[Any, ...]]:
    """Every row as a tuple that can be compared."""
    found = []
    for chunk in chunks:
        assert chunk.labels is not None and chunk.fields is not None and chunk.names is not None
        names = chunk.names(np.arange(len(chunk.indices)))
        for row in range(len(chunk)):
            part = slice(*chunk.indptr[row : row + 2].tolist())
            ids, values = chunk.indices[part].tolist(), chunk.values[part].tolist()
            found.append((ids, values, chunk.fields[part].tolist(), names[part], chunk.labels[row]))
    return found


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("numeric", ["raw", "hat"])
def test_every_kind_of_table_gives_the_same_chunks(tmp_path: Path, kind: str, numeric: str) -> None:
    expected = joined(encode_all(TABLE, numeric, target="y"))
    assert joined(encode_all(OBJECTS[kind](tmp_path), numeric, target="y")) == expected
    assert len(expected) == 4


def test_csv_gives_the_same_chunks(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame(COLUMNS).to_csv(path, index=False)
    assert joined(encode_all(str(path), target="y")) == joined(encode_all(TABLE, target="y"))


def test_arrow_tables_are_not_copied() -> None:
    (batch,) = open_frame(TABLE).batches()
    assert batch.column(0).buffers()[1].address == TABLE["n"].chunk(0).buffers()[1].address


def test_memory_mapped_files_are_not_copied(tmp_path: Path) -> None:
    path = ipc(tmp_path / "t.arrow", TABLE)
    before = pa.total_allocated_bytes()
    batches = list(open_source(path).batches())  # type: ignore[union-attr]
    assert pa.total_allocated_bytes() == before and len(batches) == 2


def test_a_stream_is_read_once() -> None:
    source = open_frame(OBJECTS["reader"](Path()))
    assert len(source.head(2)) == 1 and len(read_rows(source)) == 4
    with pytest.raises(DataFormatError, match="can be read once only, but another pass was asked for"):
        read_rows(source)


def test_a_look_at_the_head_is_exact_and_loses_nothing(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", pa.table({"a": range(100_000)}))
    source = open_parquet([path], ReadOptions())
    assert sum(map(len, source.head(20_001))) == 20_001
    assert sum(map(len, source.head(5))) == 5
    for _ in range(2):
        assert [row["a"] for row in read_rows(source)] == list(range(100_000))
    assert source.fraction_read() == 1.0


def test_places_count_rows_within_each_file(tmp_path: Path) -> None:
    files = [parquet(tmp_path / f"{i}.parquet", pa.table({"a": range(40_000)})) for i in range(2)]
    source = open_parquet(files, ReadOptions())
    places = [(source.place.file, source.place.line) for _ in source.batches()]
    assert places == [(file, line) for file in files for line in (1, 32769)]
    assert source.n_rows == 80_000


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    source = open_parquet([parquet(tmp_path / "t.parquet", TABLE)], ReadOptions(ignore=["s"]))
    assert next(source.batches()).schema.names == ["n", "i", "y"]
    source.select({"i": pa.int64()})
    assert next(source.batches()).schema.names == ["i"]


def test_strings_of_few_kinds_are_read_as_dictionaries(tmp_path: Path) -> None:
    few = pa.table({"few": ["u", "v"] * 5000, "many": [f"name {i}" for i in range(10_000)], "n": range(10_000)})
    source = open_parquet([parquet(tmp_path / "t.parquet", few)], ReadOptions())
    assert len(source.head(10)[0]) == 10
    source.select({"few": pa.string(), "many": pa.string()})
    (batch,) = source.batches()
    assert [pa.types.is_dictionary(field.type) for field in batch.schema] == [True, False]
    assert batch.column(0).to_pylist() == few["few"].to_pylist()
