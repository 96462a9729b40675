"""Parsed chunks survive the way through a file."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pomona.chunk import Chunk, PackedNames
from pomona.errors import DataFormatError, PomonaError
from pomona.options import ReadOptions
from pomona.source import cache as cache_module
from pomona.source.arrays import ArraySource
from pomona.source.cache import CacheSource, CachingSource, write_cache
from pomona.source.parquet import open_arrow


class ListSource:
    """Chunks that are there already."""

    reads_cheaply = False
    rewinds = True
    n_examples = None

    def __init__(self, chunks: list[Chunk], fields: list[str] | None = None) -> None:
        self.name, self.fields, self._chunks = "<list>", fields or [], chunks
        self.passes = 0

    def chunks(self) -> Iterator[Chunk]:
        self.passes += 1
        yield from self._chunks

    def fraction_read(self) -> float | None:
        return 0.5


def assert_equal(found: Chunk, wanted: Chunk) -> None:
    first, last = int(wanted.indptr[0]), int(wanted.indptr[-1])
    for part in dataclass_fields(Chunk):
        a, b = getattr(found, part.name), getattr(wanted, part.name)
        if part.name == "names":
            continue
        if part.name == "indptr":
            b = b - first
        elif part.name in ("indices", "values", "fields") and b is not None:
            b = b[first:last]
        if isinstance(b, np.ndarray):
            assert a.dtype == b.dtype, part.name
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b, part.name


@st.composite
def chunk_lists(draw: st.DrawFn) -> list[Chunk]:
    wide, with_fields = draw(st.booleans()), draw(st.booleans())
    label = draw(st.sampled_from(["<i8", "<f8", "|b1", "<U4", "<f4", ""]))
    have = [draw(st.booleans()) for _ in range(3)]

    def one() -> Chunk:
        sizes = draw(st.lists(st.integers(0, 3), max_size=5))
        n, nnz = len(sizes), sum(sizes)
        top = 2**64 - 1 if wide else 2**32 - 1
        ids = np.array(draw(st.lists(st.integers(0, top), min_size=nnz, max_size=nnz)), np.uint64)
        reals = st.floats(width=32)
        labels = None
        if label:
            words = st.text("ab é", min_size=1, max_size=4).filter(lambda s: "\0" not in s)
            element = words if label[1] == "U" else st.integers(0, 1)
            labels = np.array(draw(st.lists(element, min_size=n, max_size=n)), label)
        doubles = st.lists(st.floats(0, 10), min_size=n, max_size=n)
        return Chunk(
            indptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            indices=ids if wide else ids.astype(np.uint32),
            values=np.array(draw(st.lists(reals, min_size=nnz, max_size=nnz)), np.float32),
            labels=labels,
            weights=np.array(draw(doubles), np.float64) if have[0] else None,
            offsets=np.array(draw(doubles), np.float64) if have[1] else None,
            tags=draw(st.lists(st.text(max_size=3), min_size=n, max_size=n)) if have[2] else None,
            fields=np.arange(nnz, dtype=np.uint16) if with_fields else None,
            first_line=draw(st.integers(0, 9)),
            file="f.vw",
        )

    return [one() for _ in range(draw(st.integers(1, 3)))]


@given(chunk_lists())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip(tmp_path: Path, chunks: list[Chunk]) -> None:
    path = str(tmp_path / "c.arrow")
    assert write_cache(ListSource(chunks), path) == sum(map(len, chunks))
    source = CacheSource(path)
    for _ in range(2):
        found = list(source.chunks())
        assert len(found) == len(chunks)
        for a, b in zip(found, chunks, strict=True):
            assert_equal(a, b)
    assert source.n_examples == sum(map(len, chunks))


def named_chunk(ids: list[int], **more: Any) -> Chunk:
    indices = np.array(ids, np.uint64)
    return Chunk(
        np.array([0, len(ids)], np.int64),
        indices,
        np.ones(len(ids), np.float32),
        names=lambda positions: [f"f{i}" for i in indices[positions].tolist()],
        **more,
    )


def test_names_that_overlap_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "cache.arrow")
    write_cache(ListSource([named_chunk([5, 30])]), path)
    names_in = cache_module._names_in

    def overlapping(metadata: dict[str, bytes]) -> tuple[np.ndarray, PackedNames]:
        ids, names = names_in(metadata)
        return ids, PackedNames(names.text, names.ends[::-1].copy())

    monkeypatch.setattr(cache_module, "_names_in", overlapping)
    chunk = next(CacheSource(path).chunks())
    assert chunk.names is not None
    with pytest.raises(DataFormatError, match=r"cache\.arrow: the file of chunks is damaged: .*write it again"):
        chunk.names(np.array([1]))


def test_names_and_fields_survive(tmp_path: Path) -> None:
    path = str(tmp_path / "c.arrow")
    write_cache(ListSource([named_chunk([5, 3]), named_chunk([3, 9, 2**64 - 1])], ["a", "b"]), path)
    source = CacheSource(path)
    first, second = source.chunks()
    assert source.fields == ["a", "b"]
    assert first.names is not None and second.names is not None
    assert list(second.names(np.array([1, 2]))) == ["f9", f"f{2**64 - 1}"]
    assert list(second.names(np.array([2, 1, 2]))) == [f"f{2**64 - 1}", "f9", f"f{2**64 - 1}"]
    assert list(second.names(np.array([0]))) == ["f3"], "met in an earlier chunk"
    assert list(first.names(np.array([1, 0]))) == ["f3", "f5"]
    write_cache(ListSource([named_chunk([5, 3])]), path, with_names=False)
    assert next(CacheSource(path).chunks()).names is None


def test_slices_are_cut_to_their_rows(tmp_path: Path) -> None:
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    whole = next(iter(ArraySource(X, np.arange(4), names=["x0", "x1", "x2"]).chunks()))
    path = str(tmp_path / "c.arrow")
    write_cache(ListSource([whole.slice(1, 3)]), path)
    (found,) = CacheSource(path).chunks()
    assert found.values.tolist() == X[1:3].ravel().tolist()
    assert found.names is not None and list(found.names(np.arange(6))) == ["x0", "x1", "x2"] * 2


def test_reading_copies_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "c.arrow")
    write_cache(ListSource([named_chunk([1, 2])]), path)
    before = pa.total_allocated_bytes()
    (chunk,) = CacheSource(path).chunks()
    assert pa.total_allocated_bytes() == before
    assert not chunk.values.flags.owndata and not chunk.indices.flags.owndata


def test_opened_like_any_arrow_file(tmp_path: Path) -> None:
    path = str(tmp_path / "c.arrow")
    write_cache(ListSource([named_chunk([1])]), path)
    assert isinstance(open_arrow([path], ReadOptions()), CacheSource)


def test_second_pass_reads_the_cache_and_close_removes_it(tmp_path: Path) -> None:
    inner = ListSource([named_chunk([1, 2]), named_chunk([3])], ["a"])
    with CachingSource(inner, str(tmp_path)) as source:
        assert [len(c) for c in source.chunks()] == [1, 1]
        for _ in range(2):
            assert [c.indices.tolist() for c in source.chunks()] == [[1, 2], [3]]
        assert inner.passes == 1 and source.n_examples == 2 and source.fields == ["a"]
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == []


def test_a_pass_cut_short_leaves_no_cache(tmp_path: Path) -> None:
    inner = ListSource([named_chunk([1, 2]), named_chunk([3])])
    source = CachingSource(inner, str(tmp_path))
    chunks = source.chunks()
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert [len(c) for c in source.chunks()] == [1, 1]
    assert inner.passes == 2
    source.close()
    assert os.listdir(tmp_path) == []


def test_removed_when_forgotten(tmp_path: Path) -> None:
    source = CachingSource(ListSource([named_chunk([1])]), str(tmp_path))
    list(source.chunks())
    del source
    assert os.listdir(tmp_path) == []


def test_an_error_in_the_source_leaves_nothing(tmp_path: Path) -> None:
    class Failing(ListSource):
        def chunks(self) -> Iterator[Chunk]:
            yield named_chunk([1])
            raise DataFormatError("broken")

    with pytest.raises(DataFormatError, match="broken"):
        write_cache(Failing([]), str(tmp_path / "c.arrow"))
    source = CachingSource(Failing([]), str(tmp_path))
    with pytest.raises(DataFormatError, match="broken"):
        list(source.chunks())
    source.close()
    assert os.listdir(tmp_path) == []


class FullDisk(io.RawIOBase):
    """A file on a disk without room."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full to play a full disk")
@pytest.mark.parametrize("n", [1, 100_000])
def test_disk_full_while_converting(n: int) -> None:
    with pytest.raises(PomonaError, match="^cannot write /dev/full: no space left on device"):
        write_cache(ListSource([named_chunk(list(range(n)))] * 3), "/dev/full")


def test_disk_full_while_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, mode: str) -> FullDisk:
        Path(path).touch()
        return FullDisk()

    monkeypatch.setattr(cache_module, "open", full, raising=False)
    source = CachingSource(ListSource([named_chunk([1])]), str(tmp_path))
    with pytest.raises(PomonaError, match="no space left on device: free some space, or set TMPDIR to a larger disk"):
        list(source.chunks())
    source.close()
    assert os.listdir(tmp_path) == []


def test_an_empty_first_pass_is_a_pass(tmp_path: Path) -> None:
    inner = ListSource([])
    with CachingSource(inner, str(tmp_path)) as source:
        assert list(source.chunks()) == list(source.chunks()) == []
    assert inner.passes == 1


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataFormatError, match="^<list>: there are no examples: nothing to write$"):
        write_cache(ListSource([]), str(tmp_path / "c.arrow"))


def test_huge_whole_labels_are_refused(tmp_path: Path) -> None:
    chunk = named_chunk([1], labels=np.array([2**60]))
    with pytest.raises(DataFormatError, match=r"below 2\*\*53"):
        write_cache(ListSource([chunk]), str(tmp_path / "c.arrow"))


def test_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "c.arrow")
    monkeypatch.setattr(cache_module, "VERSION", 2)
    write_cache(ListSource([named_chunk([1])]), path)
    monkeypatch.undo()
    with pytest.raises(DataFormatError, match="the chunks have version 2, but 1 is needed: write the file again$"):
        CacheSource(path)
