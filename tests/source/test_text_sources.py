"""Text sources: what is read does not depend on how it is read."""

from __future__ import annotations

import gzip
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pomona.chunk import Chunk
from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source import blocks, open_source
from pomona.source.blocks import OrderedMap, TextSource
from tests.reference.parse_svmlight import parse_svmlight
from tests.reference.parse_vw import parse_vw
from tests.reference.text import Row
from tests.source.test_malformed_text import COMPRESS


def vw_text(n: int = 400, seed: int = 0) -> bytes:
    """Lines with tags, importances, blank lines, and namespaces whose first appearance comes late."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        label = ["1", "-1 0.5", "0.25 2 0.125", ""][rng.integers(4)]
        tag = [" ", f" 'row{i}", f" row{i}"][rng.integers(3)]
        line = label + tag
        for _ in range(rng.integers(0, 4)):
            line += f"|s{rng.integers(0, 2 + i // 40)} "
            words = rng.integers(0, 30, size=rng.integers(0, 8))
            line += " ".join(f"w{w}:{rng.normal():.4g}" if w % 3 else f"w{w}" for w in words) + " "
        lines.append(line if "|" in line else line + "|")
        if rng.integers(10) == 0:
            lines.append("")
    return "\n".join(lines).encode()


def svmlight_text(n: int = 400, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    lines = ["# made by hand"]
    for _ in range(n):
        indices = rng.integers(0, 50, size=rng.integers(0, 10))
        lines.append(f"{rng.integers(3)} " + " ".join(f"{i}:{rng.normal():.6g}" for i in indices))
    return "\n".join(lines).encode()


def rows_of(source: TextSource) -> list[Row]:
    """All examples, in the form of the slow parsers."""
    rows = []
    for chunk in source.chunks():
        assert chunk.names is not None and chunk.labels is not None
        names = list(chunk.names(np.arange(chunk.nnz)))
        fields = np.zeros(chunk.nnz, int) if chunk.fields is None else chunk.fields
        for i in range(len(chunk)):
            part = range(chunk.indptr[i], chunk.indptr[i + 1])
            rows.append(
                Row(
                    label=float(chunk.labels[i]),
                    weight=1.0 if chunk.weights is None else float(chunk.weights[i]),
                    base=0.0 if chunk.offsets is None else float(chunk.offsets[i]),
                    span=b"" if chunk.tags is None else chunk.tags[i].encode(),
                    features=[(int(chunk.indices[j]), chunk.values[j], int(fields[j]), names[j]) for j in part],
                )
            )
    return rows


def assert_same(found: list[Row], expected: list[Row]) -> None:
    assert [repr(row) for row in found] == [repr(row) for row in expected]


def text_source(path: object, **options: object) -> TextSource:
    source = open_source(path, ReadOptions(**options))  # type: ignore[arg-type]
    assert isinstance(source, TextSource)
    return source


@pytest.fixture
def vw_file(tmp_path: Path) -> Path:
    path = tmp_path / "a.vw"
    path.write_bytes(vw_text())
    return path


def test_vw_example(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 2.5 0.5 'tag|a:2 x:1.5 y |b z z:2\n\n| 17:0 foo:3e-3\r\n-1 |b q\n")
    source = text_source(path)
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
    assert (chunk.file, chunk.first_line) == (str(path), 1)


def test_grams_have_names(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("|t a b:0 c:2 d |u a b\n")
    (chunk,) = text_source(path, ngrams=2, skips=1, ngram_namespaces=["t"]).chunks()
    assert chunk.names is not None
    expected = {"t:a": 1, "t:c": 2, "t:d": 1, "t:a c": 2, "t:a d": 1, "t:c d": 2, "u:a": 1, "u:b": 1}
    names = list(chunk.names(np.arange(chunk.nnz)))
    assert dict(zip(names, chunk.values.tolist(), strict=True)) == expected


def test_order_of_words_matters_in_grams(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("|t a b\n|t b a\n")
    (chunk,) = text_source(path, ngrams=2).chunks()
    assert chunk.indices[2] != chunk.indices[5]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("block_bytes", [1, 64, 1000, 1 << 20])
@pytest.mark.parametrize("form", ["vw", "svmlight"])
def test_blocks_and_threads_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, block_bytes: int, threads: int
) -> None:
    path = tmp_path / f"a.{form}"
    text = vw_text() if form == "vw" else svmlight_text()
    path.write_bytes(text)
    source = text_source(path, threads=threads)
    monkeypatch.setattr(source._parser, "block_bytes", block_bytes)
    found = rows_of(source)
    expected = parse_vw(text)[0] if form == "vw" else parse_svmlight(text)[0]
    for row in expected:
        row.span = row.span if form == "vw" else b""
    assert_same(found, expected)
    assert_same(rows_of(source), expected)  # once more, from the beginning
    assert source.fraction_read() == 1.0
    if form == "vw":
        assert source.fields == [name.decode() for name in parse_vw(text)[1]]


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_found_by_content(tmp_path: Path, kind: str, vw_file: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(COMPRESS[kind](vw_file.read_bytes()))
    assert_same(rows_of(text_source(path)), rows_of(text_source(vw_file)))


@pytest.mark.parametrize("kind", COMPRESS)
def test_parts_of_a_compressed_file_follow_each_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.vw.gz"
    path.write_bytes(COMPRESS[kind](b"1 |a x\n2 |a") + COMPRESS[kind](b" y\n3 |a z\n"))
    assert [row.label for row in rows_of(text_source(path))] == [1, 2, 3]


def test_suffix_of_a_compression_may_lie(tmp_path: Path, vw_file: Path) -> None:
    path = tmp_path / "b.vw.gz"
    path.write_bytes(vw_file.read_bytes())
    assert_same(rows_of(text_source(path)), rows_of(text_source(vw_file)))


def test_patterns_lists_and_directories(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for i, name in enumerate(["b.vw", "a.vw", "sub/c.vw", "_ignored.vw", ".hidden.vw"]):
        (tmp_path / name).write_text(f"{i} |a x\n")

    def labels(data: object) -> list[float]:
        return [row.label for row in rows_of(text_source(data))]

    assert labels(tmp_path) == [1, 0, 2]
    assert labels(str(tmp_path / "[ab].vw")) == [1, 0]
    assert labels(str(tmp_path / "**" / "c.vw")) == [2]
    assert labels([tmp_path / "b.vw", str(tmp_path / "a.vw")]) == [0, 1]


def test_file_without_newline_ends_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(b"1 |a x")
    (tmp_path / "b.vw").write_bytes(b"\xef\xbb\xbf2 |a y")
    rows = rows_of(text_source([tmp_path / "a.vw", tmp_path / "b.vw"]))
    assert [row.label for row in rows] == [1, 2]


def test_lines_are_counted_in_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.vw").write_bytes(b"1 |a x\n" * 50)
    (tmp_path / "b.vw").write_bytes(b"1 |a x\n" * 30 + b"\n1 |a x:y\n")
    source = text_source(tmp_path, threads=3)
    monkeypatch.setattr(source._parser, "block_bytes", 40)
    with pytest.raises(DataFormatError) as caught:
        list(source.chunks())
    assert str(caught.value) == f"{tmp_path}/b.vw:32:8: expected a number after 'x:', got 'y'"
    assert caught.value.line == 32


def test_skipped_lines_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 |a x\n2 |a x:y z\n3 |a b\nfour |\n" * 100)
    source = text_source(path, on_error="skip", threads=2)
    monkeypatch.setattr(source._parser, "block_bytes", 100)
    for _ in range(2):
        assert [row.label for row in rows_of(source)] == [1, 3] * 100
        assert source.n_skipped == 200
        assert str(source.first_skipped) == f"{path}:2:8: expected a number after 'x:', got 'y'"


def test_first_lines_of_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(b"# comment\n\n1 2:3\n" * 40)
    source = text_source(path)
    monkeypatch.setattr(source._parser, "block_bytes", 34)
    lines = [chunk.first_line for chunk in source.chunks()]
    assert len(lines) > 10 and set(np.array(lines) % 3) == {0}


def test_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 |a " + b" ".join(b"w%d" % i for i in range(1_600_000)) + b"\n2 |a x\n")
    assert path.stat().st_size > 2 * blocks.BLOCK_BYTES
    rows = rows_of(text_source(path))
    assert [len(row.features) for row in rows] == [1_600_000, 1]
    monkeypatch.setattr(blocks, "MAX_LINE", 1 << 21)
    with pytest.raises(DataFormatError) as caught:
        rows_of(text_source(path))
    assert str(caught.value) == f"{path}: a line may have at most 2097152 bytes: is this a text file?"


def test_lists_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(b"3 1:1\n10,2,1 1:1\n 1:1\n1:1\n")
    (chunk,) = text_source(path).chunks()
    assert chunk.labels is not None
    assert chunk.labels.tolist() == ["3", "1,2,10", "", ""]


CONTENTS = {
    "vw": [b"1 |a x:2\n", b"|a x", b"1 2 'tag|a x y z\n", b"\n1 | a,b\n-1 0.5 | c\n", b"tag| x\n"],
    "svmlight": [b"1 2:3 4:5\n", b"# c\n-1 qid:3 7:.5 # d\n", b"1,2 3:4\n0\n", b" 1:2\n"],
}


@pytest.mark.parametrize(("form", "content"), [(form, text) for form in CONTENTS for text in CONTENTS[form]])
def test_format_is_found_by_content(tmp_path: Path, form: str, content: bytes) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    found, expected = (next(iter(text_source(path, format=name).chunks())) for name in (None, form))
    assert found.labels is not None and expected.labels is not None
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.indices, expected.indices)


def run_python(code: str, stdin: bytes = b"") -> bytes:
    return subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, check=True, timeout=60).stdout


READ_STDIN = """
from pomona.source import open_source
source = open_source("-")
print(source.name, source.rewinds, source.fraction_read(), [x for c in source.chunks() for x in c.labels])
try:
    list(source.chunks())
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input(pack: object) -> None:
    text = b"1 |a x\n2 |a y\n" * 3
    out = run_python(READ_STDIN, pack(text)).decode().splitlines()  # type: ignore[operator]
    assert out[0].startswith("<stdin> False None [")
    assert out[0].count("1.0") == out[0].count("2.0") == 3
    assert out[1] == "standard input can be read only once: give a file for several passes"


def test_piped_lines_do_not_wait_for_more() -> None:
    code = "from pomona.source import open_source\nfor c in open_source('-').chunks(): print(c.labels, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for label in (b"1", b"2"):
            process.stdin.write(label + b" |a x\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 30)[0], "nothing came within 30 seconds"
            assert process.stdout.readline().strip() == b"[" + label + b".]"
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_interrupt_while_waiting_for_input() -> None:
    code = "from pomona.source import open_source\nprint('go', flush=True)\nlist(open_source('-').chunks())"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"1 |a x\n")
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) != 0
        assert b"KeyboardInterrupt" in process.stderr.read()
        process.stdin.close()


def test_text_needs_no_heavy_imports(vw_file: Path) -> None:
    code = (
        "import sys\nfrom pomona.source import open_source\n"
        f"list(open_source({str(vw_file)!r}).chunks())\n"
        "print([m for m in ('pyarrow', 'pandas', 'sklearn', 'scipy') if m in sys.modules])"
    )
    assert run_python(code).strip() == b"[]"


def parsing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("pomona-parse")]


def test_threads_end_when_the_reader_stops(vw_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = text_source(vw_file, threads=4)
    monkeypatch.setattr(source._parser, "block_bytes", 50)
    chunks = source.chunks()
    next(chunks)
    assert parsing_threads()
    chunks.close()  # type: ignore[attr-defined]
    assert not parsing_threads()
    with pytest.raises(ZeroDivisionError):
        for chunk in source.chunks():
            len(chunk) // 0
    del chunk
    assert_no_threads()


def assert_no_threads() -> None:
    deadline = time.monotonic() + 10
    while parsing_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not parsing_threads()


def test_ordered_map_keeps_order_and_looks_ahead_a_little() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(60):
            taken.append(i)
            yield i

    def work(i: int) -> int:
        time.sleep(0.002 * (i % 3))
        return i

    found = []
    for i in OrderedMap(items(), work, threads=3, ahead=6):
        found.append(i)
        assert len(taken) <= i + 1 + 6 + 1
    assert found == list(range(60))


@pytest.mark.parametrize("where", ["items", "work"])
def test_ordered_map_raises_in_its_place(where: str) -> None:
    def items() -> Iterator[int]:
        for i in range(20):
            if where == "items" and i == 7:
                raise KeyError("seven")
            yield i

    def work(i: int) -> int:
        if where == "work" and i == 7:
            raise KeyError("seven")
        return i

    found = []
    with pytest.raises(KeyError, match="seven"):
        for i in OrderedMap(items(), work, threads=3, ahead=6):
            found.append(i)
    assert found == list(range(7))
    assert_no_threads()


def test_chunk_slices_keep_their_names(vw_file: Path) -> None:
    (chunk, *_) = text_source(vw_file).chunks()
    part = chunk.slice(3, 9)
    assert isinstance(part, Chunk) and part.names is not None and chunk.names is not None
    positions = np.arange(part.indptr[0], part.indptr[-1])
    assert list(part.names(positions)) == list(chunk.names(positions))


@pytest.mark.parametrize("name", ["a.vw", "a.svm"])
def test_first_labels_are_those_of_the_chunks(tmp_path: Path, name: str) -> None:
    form = "{} |a x:1\n" if name.endswith("vw") else "{} 1:1\n"
    labels = [1.5, -1.0, 3e2, 0.0, 7.0]
    (tmp_path / name).write_text("".join(form.format(label) for label in labels))
    source: Any = open_source(tmp_path / name)
    for rows in (3, 5, 9):
        assert source.first_labels(rows).tolist() == labels[:rows]
    assert np.concatenate([chunk.labels for chunk in source.chunks()]).tolist() == labels


@pytest.mark.parametrize(
    "lines", ["1 |a x\n|a y\n", "1 |a x\n\n2 |a x\n", "1|a x\n", "'1 |a x\n", "one |a x\n", "inf |a x\n", " 1 |a x\n"]
)
def test_first_labels_are_left_to_the_parser_where_they_are_not_plain(tmp_path: Path, lines: str) -> None:
    (tmp_path / "a.vw").write_text(lines)
    source: Any = open_source(tmp_path / "a.vw")
    assert source.first_labels(10) is None


def test_first_labels_of_compressed_files_and_with_skipped_lines_are_left_to_the_parser(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 |a x\n-1 |a y\n")
    (tmp_path / "b.vw.gz").write_bytes(gzip.compress(b"1 |a x\n-1 |a y\n"))
    skipping: Any = open_source(tmp_path / "a.vw", ReadOptions(on_error="skip"))
    packed: Any = open_source(tmp_path / "b.vw.gz")
    assert skipping.first_labels(10) is None and packed.first_labels(10) is None
