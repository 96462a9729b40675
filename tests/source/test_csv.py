"""CSV and TSV."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pomona.encode import EncodedSource, TableEncoder
from pomona.errors import PomonaError
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import csv as csv_module
from pomona.source.csv import open_csv
from tests.source.tables import encode_all, read_rows


def written(tmp_path: Path, content: str | bytes, name: str = "t.csv") -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def rows(path: str, **options: Any) -> list[dict[str, Any]]:
    return read_rows(open_csv([path], ReadOptions(**options)))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,x\n2,y\n", [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]),
        ("a,b\r\n1,x\r\n2,y", [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]),
        ("\ufeffa,b\n1,x\n2,y\n", [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]),
        ("1,x\n2,y\n", [{"x0": 1.0, "x1": "x"}, {"x0": 2.0, "x1": "y"}]),
        ("a;b\n1,5;x\n2,5;y\n", [{"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y"}]),
        ("a|b\n1|x\n2|y\n", [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]),
        ("größe,名\n1,x\n2,y\n", [{"größe": 1.0, "名": "x"}, {"größe": 2.0, "名": "y"}]),
        (",b\n0,x\n1,y\n", [{"x0": 0.0, "b": "x"}, {"x0": 1.0, "b": "y"}]),
        ('a,b\n1,"x\ny"\n2,"say ""hi"", twice"\n', [{"a": 1.0, "b": "x\ny"}, {"a": 2.0, "b": 'say "hi", twice'}]),
        ("a,b\n1,\n,y\n?,z\n", [{"a": 1.0, "b": ""}, {"a": None, "b": "y"}, {"a": None, "b": "z"}]),
        ("a,b\n\n1,x\n\n2,y\n", [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]),
        ("u,v\nx,y\nx,z\n", [{"u": "x", "v": "y"}, {"u": "x", "v": "z"}]),
        ("x,y\nx,z\nw,y\n", [{"x0": "x", "x1": "y"}, {"x0": "x", "x1": "z"}, {"x0": "w", "x1": "y"}]),
    ],
)
def test_what_is_found_from_the_content(tmp_path: Path, content: str, expected: list[dict[str, Any]]) -> None:
    assert rows(written(tmp_path, content)) == expected


def test_whole_numbers_beyond_a_float_are_names(tmp_path: Path) -> None:
    big, bigger = 2**53 + 1, 2**53 + 2
    assert rows(written(tmp_path, f"a,b\n{big},1\n{bigger},2\n")) == [
        {"a": str(big), "b": 1.0},
        {"a": str(bigger), "b": 2.0},
    ]
    assert rows(written(tmp_path, f"a,b\n{2**53},1\n2,2\n"))[0]["a"] == float(2**53)


def test_header_can_be_said(tmp_path: Path) -> None:
    path = written(tmp_path, "2019,2020\n1,2\n")
    assert rows(path, header=True) == [{"2019": 1.0, "2020": 2.0}]
    assert rows(path, header=False)[0] == {"x0": 2019.0, "x1": 2020.0}


def test_tabs_by_suffix_and_by_name(tmp_path: Path) -> None:
    content = "a\tb,c\n1\tx,y\n"
    assert rows(written(tmp_path, content, "t.tsv")) == [{"a": 1.0, "b,c": "x,y"}]
    assert rows(written(tmp_path, content, "t.txt"), format="tsv") == [{"a": 1.0, "b,c": "x,y"}]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_compressed(tmp_path: Path, suffix: str, pack: Any) -> None:
    path = written(tmp_path, pack(b"a,b\n1,x\n2,y\n"), "t.csv" + suffix)
    assert rows(path) == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "SAMPLE_BYTES", 2000)
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 1000)


@pytest.mark.usefixtures("small_blocks")
def test_whole_numbers_may_get_a_fraction_after_the_sample(tmp_path: Path) -> None:
    path = written(tmp_path, "a\n" + "7\n" * 5000 + "1.5\n")
    found = rows(path)
    assert len(found) == 5001 and found[-1] == {"a": 1.5}


@pytest.mark.usefixtures("small_blocks")
def test_numbers_in_a_column_of_words_after_the_sample(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "w,\n" * 5000 + "12,3\n")
    assert rows(path)[-1] == {"a": "12", "b": "3"}


@pytest.mark.usefixtures("small_blocks")
def test_categorical_reads_words_where_numbers_stood(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "7,1\n" * 5000 + "word,1\n")
    assert rows(path, categorical=["a"])[-1] == {"a": "word", "b": 1.0}


@pytest.mark.usefixtures("small_blocks")
def test_quoted_newlines_across_blocks(tmp_path: Path) -> None:
    text = "line one\nline two\n" * 10
    path = written(tmp_path, "a,b\n" + f'1,"{text}"\n' * 200)
    found = rows(path)
    assert len(found) == 200 and all(row == {"a": 1.0, "b": text} for row in found)


@pytest.mark.usefixtures("small_blocks")
def test_bad_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "1,x\n2\n3,y,z\n" * 500)
    source = open_csv([path], ReadOptions(on_error="skip"))
    for _ in range(2):
        assert len(read_rows(source)) == 500
        assert source.n_skipped == 1000
        assert str(source.first_skipped).startswith(f"{path}:3: expected 2 columns, got 1 in '2': mend the row")


def test_several_files_in_any_order_of_columns(tmp_path: Path) -> None:
    one = written(tmp_path, "a,b\n1,x\n", "1.csv")
    two = written(tmp_path, "b,a\ny,2\n", "2.csv")
    source = open_csv([one, two], ReadOptions())
    assert read_rows(source) == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]
    assert source.fraction_read() == 1.0 and source.place.file == two and source.place.line == 2


def test_standard_input_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pomona.source import files

    class Stdin:
        def open(self) -> files.Stream:
            return files.Stream(io.BytesIO(b"a,b\n1,x\n2,y\n"), "<stdin>")

    monkeypatch.setattr(files, "_stdin", Stdin())
    source = open_csv(["-"], ReadOptions())
    assert [len(batch) for batch in source.head(1)] == [1]
    assert read_rows(source) == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]
    with pytest.raises(PomonaError, match="can be read once only"):
        read_rows(source)
    assert not source.rewinds and sys.stdin is not None


def test_standard_input_with_columns_that_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    from pomona.source import files

    class Stdin:
        def open(self) -> files.Stream:
            return files.Stream(io.BytesIO(b"same,a\n1,1\n1,2\n"), "<stdin>")

    monkeypatch.setattr(files, "_stdin", Stdin())
    table = open_csv(["-"], ReadOptions())
    encoder = TableEncoder.fit(table, ReadOptions(), EncodeOptions(numeric="raw"))
    (chunk,) = EncodedSource(table, encoder).chunks()
    assert encoder.dropped == ["same"] and chunk.values.tolist() == [1.0, 2.0]


def test_times_of_any_year_and_fraction(tmp_path: Path) -> None:
    path = written(tmp_path, "t,a\n9999-12-31 00:00:00,1\n0001-01-01 00:00:00,2\n2024-01-01 10:00:00,3\n")
    assert [row["t"].year for row in rows(path)] == [9999, 1, 2024]
    path = written(tmp_path, "t,a\n2024-01-01 10:00:00.25,1\n2024-01-01 10:00:00.5,2\n")
    assert len(rows(path)) == 2


@pytest.mark.usefixtures("small_blocks")
def test_the_column_of_an_error_is_that_of_its_file(tmp_path: Path) -> None:
    one = written(tmp_path, "a,b,c\n1,x,2\n3,y,4\n", "1.csv")
    two = written(tmp_path, "c,b,a\n1,x,2\n3,y,word\n", "2.csv")
    with pytest.raises(PomonaError, match="2.csv:3: expected a number in column 'a', got 'word'"):
        read_rows(open_csv([one, two], ReadOptions(ignore=["b"])))


def test_only_selected_columns_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,c\n1,x,3\n2,y,4\n")
    source = open_csv([path], ReadOptions(ignore=["b"]))
    assert read_rows(source)[0] == {"a": 1.0, "c": 3.0}
    source.select({"c": pa.string()})
    assert read_rows(source)[0] == {"c": "3"}


cells = st.text(st.sampled_from('ab1.,;\t"\n\r é'), max_size=4)


@given(st.lists(st.lists(cells, min_size=1, max_size=3), max_size=6), st.binary(max_size=30))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gives_chunks_or_a_clear_error(tmp_path: Path, table: list[list[str]], tail: bytes) -> None:
    content = "\n".join(",".join(row) for row in table).encode() + tail
    try:
        chunks = encode_all(written(tmp_path, content), "hat", format="csv")
    except PomonaError as error:
        assert "Arrow" not in str(error)
    else:
        assert sum(map(len, chunks)) >= 1
