"""Every kind of malformed text, with the exact words a user gets."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pomona.errors import DataFormatError, OptionError, PomonaError
from pomona.options import ReadOptions
from pomona.source import open_source

GOOD_VW = b"1 |a x\n"
GOOD_SVM = b"1 3:4\n"
NAME = "n" * 60

VW = {
    b"abc |a x": "1:1: expected a number as the label, got 'abc'",
    b"1 2x |a x": "1:3: expected a number as the importance, got '2x'",
    b"1 -2 |a x": "1:3: expected an importance of 0 or more, got '-2'",
    b"1 2 ? |a x": "1:5: expected a number as the base, got '?'",
    b"1 2 3 4 |a x": "1:7: expected at most a label, an importance and a base before the first '|', got '4'",
    b"nan |a x": "1:1: expected a finite number as the label, got 'nan'",
    b"-Infinity |a x": "1:1: expected a finite number as the label, got '-Infinity'",
    b"1e400 |a x": "1:1: expected a number in range as the label, got '1e400'",
    b"'tag 1 |a x": "1:1: expected a number as the label, got ''tag'",
    b"1 2": "1:4: expected a '|' before the features, got the end of the line",
    b"1,2,3": "1:1: expected a number as the label, got '1,2,3'",
    b"1 |a price:abc": "1:12: expected a number after 'price:', got 'abc'",
    b"1 |a price: x": "1:12: expected a number after 'price:', got nothing",
    b"1 |a price:": "1:12: expected a number after 'price:', got nothing",
    b"1 |a x:1:2": "1:8: expected a number after 'x:', got '1:2'",
    b"1 |a x:1e": "1:8: expected a number after 'x:', got '1e'",
    b"1 |a x:0x10": "1:8: expected a number after 'x:', got '0x10'",
    b"1 |a x:1,5": "1:8: expected a number after 'x:', got '1,5'",
    b"1 |a x:--1": "1:8: expected a number after 'x:', got '--1'",
    b"1 |a x:nan": "1:8: expected a finite number after 'x:', got 'nan'",
    b"1 |a x:-inf": "1:8: expected a finite number after 'x:', got '-inf'",
    b"1 |a x:1e39": "1:8: expected a number in range after 'x:', got '1e39'",
    b"1 |a x:-1e999": "1:8: expected a number in range after 'x:', got '-1e999'",
    b"1 |a:1e30 x:1e30": "1:13: expected a number in range after 'x:', got '1e30'",
    b"1 |a:1e300 x": "1:6: expected a number in range after '|a:', got '1e300'",
    b"1 |a:two x": "1:6: expected a number after '|a:', got 'two'",
    b"1 |a: x": "1:6: expected a number after '|a:', got nothing",
    b"1 |a :3": "1:6: expected a name before the ':', got ':3'",
    b"1 |a x:3e38 x:3e38": "1:1: the values of a feature that is repeated must add up to a number that fits 32 bits",
    b"1 |a " + NAME.encode() + b":abc": f"1:67: expected a number after '{'n' * 40}…', got 'abc'",
    b"1 |a x:" + "ü".encode() * 30: f"1:8: expected a number after 'x:', got '{'ü' * 20}…'",
    b"1 |a x:\x01\x7f": "1:8: expected a number after 'x:', got '\\x01\\x7f'",
    b"1 |a x:\xff": "1:8: expected a number after 'x:', got '\\xff'",
    b"1 |a x:%s": "1:8: expected a number after 'x:', got '%s'",
    b"\n\r\n1 |a x\n\n1 |a x y:? z\n": "5:10: expected a number after 'y:', got '?'",
}

SVMLIGHT = {
    b"a 1:2": "1:1: expected a number as the label, got 'a'",
    b"1, 1:2": "1:3: expected a number as the label, got nothing",
    b"1,x 1:2": "1:3: expected a number as the label, got 'x'",
    b"1,2:3": "1:3: expected a number as the label, got '2:3'",
    b"inf 1:2": "1:1: expected a finite number as the label, got 'inf'",
    b"1 2": "1:3: expected 'index:value', got '2'",
    b"1 2 :3": "1:3: expected 'index:value', got '2'",
    b"1 :3": "1:3: expected an index, a whole number from 0 to 2^64 - 1, got ':3'",
    b"1 -3:4": "1:3: expected an index, a whole number from 0 to 2^64 - 1, got '-3:4'",
    b"1 1.5:4": "1:3: expected an index, a whole number from 0 to 2^64 - 1, got '1.5:4'",
    b"1 x:4": "1:3: expected an index, a whole number from 0 to 2^64 - 1, got 'x:4'",
    b"1 18446744073709551616:4": (
        "1:3: expected an index, a whole number from 0 to 2^64 - 1, got '18446744073709551616:4'"
    ),
    b"1 5:x": "1:5: expected a number after '5:', got 'x'",
    b"1 5: 6:1": "1:5: expected a number after '5:', got nothing",
    b"1 5:1:2": "1:5: expected a number after '5:', got '1:2'",
    b"1 5:NaN": "1:5: expected a finite number after '5:', got 'NaN'",
    b"1 5:4e38": "1:5: expected a number in range after '5:', got '4e38'",
    b"1 qid:x 5:1": "1:7: expected a whole number after 'qid:', got 'x'",
    b"1 qid:-1 5:1": "1:7: expected a whole number after 'qid:', got '-1'",
    b"1 5:1 qid:3": "1:7: expected an index, a whole number from 0 to 2^64 - 1, got 'qid:3'",
    b"1 5:3e38 5:3e38": "1:1: the values of a feature that is repeated must add up to a number that fits 32 bits",
    b"# head\n\n1 5:1\n1 5:1 6": "4:7: expected 'index:value', got '6'",
}


def read(path: Path, **options: object) -> None:
    for _ in open_source(path, ReadOptions(**options)).chunks():  # type: ignore[arg-type]
        pass


def message(path: Path, **options: object) -> str:
    with pytest.raises(DataFormatError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert text.startswith(f"{path}:")
    return text[len(f"{path}:") :]


@pytest.mark.parametrize("padding", [b"", b"\n" * 100], ids=["at the end", "before the end"])
@pytest.mark.parametrize(("text", "expected"), VW.items())
def test_vw(tmp_path: Path, text: bytes, expected: str, padding: bytes) -> None:
    path = tmp_path / "clicks.vw"
    path.write_bytes(text + padding)
    assert message(path) == expected


@pytest.mark.parametrize("padding", [b"", b"\n" * 100], ids=["at the end", "before the end"])
@pytest.mark.parametrize(("text", "expected"), SVMLIGHT.items())
def test_svmlight(tmp_path: Path, text: bytes, expected: str, padding: bytes) -> None:
    path = tmp_path / "clicks.svm"
    path.write_bytes(text + padding)
    assert message(path) == expected


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


def _arrow(compression: str) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        import pyarrow

        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, compression) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return compress


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
}
#: Hard to compress, so that the damaged middle is data and not a header.
LONG = b"".join(b"1 |a x%d\n" % (i * 2654435761 % 2**32) for i in range(20_000))


@pytest.mark.parametrize("kind", COMPRESS)
def test_truncated(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "clicks.vw"
    packed = COMPRESS[kind](LONG)
    path.write_bytes(packed[: len(packed) // 2])
    assert message(path) == f" the {kind} data ends too early: make or fetch the file again"


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "clicks.vw"
    packed = COMPRESS[kind](LONG)
    # zstd and lz4 are written without a checksum of the data: there the header must be hit.
    place = 6 if kind in ("zstd", "lz4") else len(packed) // 2
    path.write_bytes(_flip(packed, place))
    assert message(path) == f" the {kind} data is damaged: make or fetch the file again"


@pytest.mark.parametrize("name", ["clicks.vw", "clicks.svm", "clicks"])
def test_empty(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    assert message(path) == " the file is empty: expected at least one example"


def test_empty_inside(tmp_path: Path) -> None:
    path = tmp_path / "clicks.vw.gz"
    path.write_bytes(gzip.compress(b""))
    assert message(path) == " the file is empty: expected at least one example"


@pytest.mark.parametrize("head", [b"\x00\x01\x02\x03", b"hello\nworld\n", b"%PDF-1.4\n"])
def test_unknown(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "clicks"
    path.write_bytes(head)
    assert message(path) == (
        " cannot tell the format from the name or the content: name it, one of parquet, arrow, vw, svmlight,"
        " svmlight-multilabel, tsv, csv"
    )


def test_mixed_formats(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(GOOD_VW)
    (tmp_path / "b.svm").write_bytes(GOOD_SVM)
    with pytest.raises(DataFormatError) as caught:
        open_source(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/b.svm: expected vw like {tmp_path}/a.vw, got svmlight: files read together must have one format"
    )


def test_late_list_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.svm"
    path.write_bytes(b"1 2:3\n" * 20_000 + b"1,2 2:3\n")
    assert message(path) == (
        "20001: expected one number as the label, as in the lines before, got '1,2': name the format"
        " 'svmlight-multilabel'"
    )
    read(path, format="svmlight-multilabel")


MISSING: list[tuple[str, type[Exception], str]] = [
    ("no.vw", FileNotFoundError, "no.vw: the file does not exist"),
    ("no*.vw", FileNotFoundError, "no*.vw: no file matches the pattern"),
    ("empty", FileNotFoundError, "empty: the directory holds no files"),
]


@pytest.mark.parametrize(("name", "kind", "expected"), MISSING)
def test_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Exception], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind) as caught:
        open_source(name)
    assert str(caught.value) == expected


def test_vanished(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(GOOD_VW)
    source = open_source(path)
    path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(source.chunks())
    assert str(caught.value) == f"{path}: the file does not exist"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(GOOD_VW)
    path.chmod(0)
    with pytest.raises(PermissionError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: no permission to read the file"


OPTIONS: list[tuple[object, dict[str, object], str]] = [
    (
        "a.vw",
        {"format": "xml"},
        "the format must be one of parquet, arrow, vw, svmlight, svmlight-multilabel, tsv, csv; got 'xml'",
    ),
    ("a.vw", {"threads": 0}, "threads must be at least 1, got 0"),
    ("a.vw", {"ngrams": 0}, "ngrams must be at least 1 and skips at least 0, got 0 and 0"),
    (
        "a.vw",
        {"ngrams": 9, "skips": 9},
        "9-grams with 9 skips make more than 1000 features of a word: ask for fewer",
    ),
    (["a.vw", "-"], {}, "standard input cannot be read together with other files: give '-' alone"),
    (
        3,
        {},
        "data must be a path, a list of paths, '-', a NumPy or SciPy array, or a pandas, polars or pyarrow table; got"
        " builtins.int",
    ),
]


@pytest.mark.parametrize(("data", "options", "expected"), OPTIONS)
def test_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: object, options: dict[str, object], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.vw").write_bytes(GOOD_VW)
    with pytest.raises(OptionError) as caught:
        open_source(data, ReadOptions(**options))  # type: ignore[arg-type]
    assert str(caught.value) == expected
    assert isinstance(caught.value, PomonaError)
