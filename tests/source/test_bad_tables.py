"""Malformed tables: every one is refused with a sentence that says what to do."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from pomona.errors import DataFormatError
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import csv as csv_module
from tests.source.tables import encode_all

ROWS = b"".join(b"%d,w%d,%d\n" % (i, i % 3, i % 2) for i in range(2000))
BIG = b"a,b,y\n" + ROWS
GOOD = pa.table({"a": [1.0, 2.0], "b": ["u", "v"], "y": [0, 1]})


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def arrow(table: pa.Table, stream: bool = False) -> bytes:
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@dataclass
class Bad:
    """File contents by name, and the message they must give; {} stands for the folder."""

    files: dict[str, bytes]
    message: str
    read: dict[str, Any] = field(default_factory=dict)
    numeric: str = "raw"


CASES: dict[str, Bad] = {
    "empty file": Bad({"t.csv": b""}, "{}/t.csv: the file is empty: expected at least one example"),
    "blank lines only": Bad({"t.csv": b"\n\r\n"}, "{}/t.csv: the file is empty: expected at least one example"),
    "byte order mark only": Bad(
        {"t.csv": b"\xef\xbb\xbf\n"}, "{}/t.csv: the file is empty: expected at least one example"
    ),
    "header only": Bad({"t.csv": b"a,b\n"}, "{}/t.csv: the table has no rows: there is nothing to learn from"),
    "name twice": Bad(
        {"t.csv": b"a,b,a\n1,2,3\n"},
        "{}/t.csv: column names must differ, but 'a' stands twice (again as column 3): rename one",
    ),
    "two columns without a name": Bad(
        {"t.csv": b",b,\n1,2,3\n"},
        "{}/t.csv: column names must differ, but '' stands twice (again as column 3): rename one",
    ),
    "too few cells": Bad(
        {"t.csv": b"a,b\n1,2\n3\n4,5\n"},
        "{}/t.csv:3: expected 2 columns, got 1 in '3': mend the row, or leave such rows out with --on-error skip",
    ),
    "too many cells, far down": Bad(
        {"t.csv": BIG + b"1,x,1,7\n"},
        "{}/t.csv:2002: expected 3 columns, got 4 in '1,x,1,7': mend the row,"
        " or leave such rows out with --on-error skip",
    ),
    "words after numbers, far down": Bad(
        {"t.csv": BIG + b"word,x,1\n"},
        "{}/t.csv:2002: expected a number in column 'a', got 'word'; if the column holds words,"
        " say so with --categorical a",
    ),
    "a long word after numbers": Bad(
        {"t.csv": BIG + b"w" * 100 + b",x,1\n"},
        "{}/t.csv:2002: expected a number in column 'a', got '" + "w" * 39 + "…'; if the column holds words,"
        " say so with --categorical a",
    ),
    "a date that is none": Bad(
        {"t.csv": b"d,y\n" + b"2024-01-31,1\n2024-02-01,0\n" * 800 + b"2024-02-31,1\n"},
        "{}/t.csv:1602: expected a date in column 'd', got '2024-02-31'; if the column holds words,"
        " say so with --categorical d",
    ),
    "neither true nor false": Bad(
        {"t.csv": b"d,y\n" + b"true,1\nfalse,0\n" * 800 + b"maybe,1\n"},
        "{}/t.csv:1602: expected true or false in column 'd', got 'maybe'; if the column holds words,"
        " say so with --categorical d",
    ),
    "not UTF-8": Bad(
        {"t.csv": b"a,b\n1,caf\xe9\n"},
        "{}/t.csv:2: the text is not UTF-8 (byte 0xe9): convert the file, as with 'iconv'",
    ),
    "not UTF-8, far down": Bad(
        {"t.csv": BIG + b"1,caf\xe9,1\n"},
        "{}/t.csv:2002: the text is not UTF-8 (byte 0xe9): convert the file, as with 'iconv'",
    ),
    "UTF-16": Bad(
        {"t.csv": "a,b\n1,2\n".encode("utf-16")},
        "{}/t.csv: the file is UTF-16, but UTF-8 is expected: convert it, as with 'iconv'",
    ),
    "a quote never closed": Bad(
        {"t.csv": BIG + b'1,"x,1\n' + ROWS * 3},
        "{}/t.csv: a row is longer than 16 KiB: look for a quote that is never closed",
    ),
    "gzip cut short": Bad(
        {"t.csv.gz": gzip.compress(BIG)[:500]},
        "{}/t.csv.gz: the gzip data ends too early: make or fetch the file again",
    ),
    "no such target": Bad(
        {"t.csv": BIG}, "{}/t.csv: there is no column 'z' for the target: its columns are a, b, y", {"target": "z"}
    ),
    "target misspelt": Bad(
        {"t.csv": b"price,size\n1,2\n3,4\n"},
        "{}/t.csv: there is no column 'Price' for the target: did you mean 'price'?",
        {"target": "Price"},
    ),
    "target never there": Bad(
        {"t.csv": b"a,y\n1,\n2,\n"},
        "{}/t.csv: the target 'y' is missing in all of the first 2 rows",
        {"target": "y"},
    ),
    "target of words missing once": Bad(
        {"t.parquet": parquet(pa.table({"a": [1, 2, 3], "y": ["u", None, "v"]}))},
        "{}/t.parquet:2: the target 'y' is missing: remove the row, or give it a value",
        {"target": "y"},
    ),
    "no such weight": Bad(
        {"t.csv": BIG}, "{}/t.csv: there is no column 'w' for the weight: its columns are a, b, y", {"weight": "w"}
    ),
    "negative weight": Bad(
        {"t.csv": b"a,w\n1,1\n2,-0.5\n"},
        "{}/t.csv:3: a weight must be finite and not negative, but 'w' is -0.5 here",
        {"weight": "w"},
    ),
    "missing weight": Bad(
        {"t.csv": b"a,w\n1,1\n2,\n"},
        "{}/t.csv:3: a weight must be finite and not negative, but 'w' is missing here",
        {"weight": "w"},
    ),
    "weight of words": Bad(
        {"t.csv": b"a,w\n1,u\n2,v\n"}, "{}/t.csv: the weight 'w' must hold numbers, but it is string", {"weight": "w"}
    ),
    "no such column to ignore": Bad(
        {"t.csv": b"a,b\n1,2\n3,4\n"},
        "{}/t.csv: there is no column 'id' for the option ignore: its columns are a, b",
        {"ignore": ["id"]},
    ),
    "text of numbers": Bad(
        {"t.parquet": parquet(GOOD)},
        "{}/t.parquet: column 'a' was said to be text, but it holds double",
        {"text": ["a"]},
    ),
    "infinite number": Bad(
        {"t.csv": b"a,b\n1,1\ninf,2\n2,2\n"},
        "{}/t.csv:3: expected a finite number in column 'a', got inf: leave it empty if it is unknown,"
        " or use the numeric encoding hat",
    ),
    "too large for a float": Bad(
        {"t.csv": b"a,b\n1,1\n1e39,2\n2,2\n"},
        "{}/t.csv:3: expected a finite number in column 'a', got 1e+39: leave it empty if it is unknown,"
        " or use the numeric encoding hat",
    ),
    "second file lacks a column": Bad(
        {"1.csv": b"a,b\n1,2\n3,4\n", "2.csv": b"a,c\n1,2\n"},
        "{}/2.csv: the columns must be those of {}/1.csv, but column 'b' is missing",
    ),
    "not Parquet": Bad(
        {"t.parquet": b"a,b\n1,2\n"}, "{}/t.parquet: this is not a Parquet file: it does not begin with PAR1"
    ),
    "empty Parquet": Bad({"t.parquet": b""}, "{}/t.parquet: the file is empty: expected at least one example"),
    "Parquet cut short": Bad(
        {"t.parquet": parquet(GOOD)[:-20]},
        "{}/t.parquet: the Parquet file is cut short: its end is missing, copy it again",
    ),
    "Parquet of four bytes": Bad(
        {"t.parquet": b"PAR1"}, "{}/t.parquet: the Parquet file is cut short: its end is missing, copy it again"
    ),
    "Parquet without rows": Bad(
        {"t.parquet": parquet(GOOD[:0])}, "{}/t.parquet: the table has no rows: there is nothing to learn from"
    ),
    "Parquet inside gzip": Bad(
        {"t.parquet.gz": gzip.compress(parquet(GOOD))},
        "{}/t.parquet.gz: a Parquet file must not be compressed as a whole, but this is gzip: decompress it",
    ),
    "Parquet files with other types": Bad(
        {"1.parquet": parquet(GOOD), "2.parquet": parquet(pa.table({"a": ["x"], "b": ["u"], "y": [0]}))},
        "{}/2.parquet: the columns must be those of {}/1.parquet, but column 'a' is string instead of double",
    ),
    "Parquet files with other columns": Bad(
        {"1.parquet": parquet(GOOD), "2.parquet": parquet(GOOD.append_column("z", [[1, 2]]))},
        "{}/2.parquet: the columns must be those of {}/1.parquet, but column 'z' is new",
    ),
    "Parquet files in another order": Bad(
        {"1.parquet": parquet(GOOD), "2.parquet": parquet(GOOD.select(["b", "a", "y"]))},
        "{}/2.parquet: the columns must be those of {}/1.parquet, but the order is b, a, y instead of a, b, y",
    ),
    "lists": Bad(
        {"t.parquet": parquet(pa.table({"a": [[1], [2]], "y": [0, 1]}))},
        "{}/t.parquet: column 'a' has the type list<element: int64>, which cannot become features: use --ignore a",
    ),
    "not Arrow": Bad(
        {"t.arrow": b"hello there"}, "{}/t.arrow: this is not an Arrow file: it begins with neither ARROW1 nor a schema"
    ),
    "empty Arrow": Bad({"t.arrow": b""}, "{}/t.arrow: the file is empty: expected at least one example"),
    "Arrow file cut short": Bad(
        {"t.arrow": arrow(GOOD)[:-30]}, "{}/t.arrow: the Arrow file is cut short or damaged: copy it again"
    ),
    "old Feather": Bad(
        {"t.feather": b"FEA1" + bytes(20)},
        "{}/t.feather: this is Feather version 1, which is no longer read: write it again with a newer pyarrow",
    ),
    "Arrow without rows": Bad(
        {"t.arrow": arrow(GOOD[:0])}, "{}/t.arrow: the table has no rows: there is nothing to learn from"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "SAMPLE_BYTES", 2000)
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 1 << 14)
    bad = CASES[case]
    paths = []
    for name, content in bad.files.items():
        (tmp_path / name).write_bytes(content)
        paths.append(str(tmp_path / name))
    with pytest.raises(DataFormatError) as caught:
        encode_all(paths, bad.numeric, **bad.read)
    assert str(caught.value) == bad.message.replace("{}", str(tmp_path))


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("cut", [10, 100, 200, 300])
def test_an_arrow_stream_cut_short(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.arrows"
    path.write_bytes(arrow(GOOD, stream=True)[:-cut])
    with pytest.raises(DataFormatError):
        encode_all(str(path))


@pytest.mark.parametrize("make", [parquet, arrow], ids=["parquet", "arrow"])
def test_damaged_bytes_give_chunks_or_a_clear_error(tmp_path: Path, make: Callable[[pa.Table], bytes]) -> None:
    content = bytearray(
        make(pa.table({"a": [1.0, 2.0, None] * 200, "b": ["u", "v", None] * 200, "y": [0, 1, 2] * 200}))
    )
    path = tmp_path / f"t.{make.__name__}"
    rng = np.random.default_rng(1)
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(8, len(content), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            encode_all(str(path), "hat")
        except DataFormatError as error:
            assert str(path) in str(error)


def test_a_file_that_vanishes_between_passes(tmp_path: Path) -> None:
    from pomona.source.parquet import open_parquet

    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(GOOD))
    source = open_parquet([str(path)], ReadOptions())
    os.unlink(path)
    with pytest.raises(FileNotFoundError, match="t.parquet: the file does not exist"):
        list(source.batches())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_no_permission(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"a,b\n1,2\n")
    path.chmod(0)
    with pytest.raises(PermissionError, match=f"{name}: no permission to read the file"):
        encode_all(str(path))


def test_frames_that_are_no_tables() -> None:
    with pytest.raises(DataFormatError, match="^<DataFrame>: cannot be taken as a table of typed columns: .*column a"):
        encode_all(pd.DataFrame({"a": [1, "x", 2.5]}))
    with pytest.raises(DataFormatError, match="expected batches that are Arrow tables or data frames, got int"):
        encode_all(iter([3]))
    with pytest.raises(DataFormatError, match="there are no batches: nothing to read"):
        encode_all(iter([]))


def test_batches_must_agree() -> None:
    batches = [pa.table({"a": [1, 2]}).to_batches()[0], pa.table({"a": ["x"]}).to_batches()[0]]
    with pytest.raises(DataFormatError) as caught:
        encode_all(iter(batches))
    assert str(caught.value).endswith(
        ":3: all batches must have the columns of the first, but column 'a' is string instead of int64"
    )


@pytest.mark.parametrize("options", [{"numeric": "hut"}, {"bins": 1}, {"sample_rows": 0}, {"numeric": "hat+hat"}])
def test_options_outside_their_range(options: dict[str, Any]) -> None:
    from pomona.encode import TableEncoder
    from pomona.errors import OptionError
    from pomona.source.table import open_frame

    with pytest.raises(OptionError, match="must be"):
        TableEncoder.fit(open_frame(GOOD), ReadOptions(), EncodeOptions(**options))
