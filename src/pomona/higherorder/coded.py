"""Coded rows: read once from the source, kept compactly in memory or in a temporary file, shuffled, and split."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import Codes, Labels
from pomona.chunk import Chunk, Source
from pomona.errors import DataFormatError, OptionError

#: Rows given out at once.
BLOCK_ROWS = 1 << 12
#: Parts of a file of coded rows; each is a random sample of the rows, small enough to be shuffled in memory.
BUCKETS = 64
#: The validation rows are this share, or this many if that is more, but never more than the largest share.
CV_SHARE, CV_ROWS, CV_MOST = 0.05, 500, 0.2

Block = tuple[Codes, Labels]


def _narrow(sizes: NDArray[np.int64]) -> np.dtype[np.unsignedinteger]:
    largest = int(sizes.max(initial=1))
    return np.dtype(np.uint8 if largest <= 1 << 8 else np.uint16 if largest <= 1 << 16 else np.uint32)


@dataclass(eq=False)
class Rows:
    """Coded rows in memory."""

    codes: NDArray[np.unsignedinteger]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.labels)

    def blocks(self, rng: np.random.Generator | None = None) -> Iterator[Block]:
        """All rows, as the kernels take them; in an order of their own with a generator."""
        order = None if rng is None else rng.permutation(len(self))
        for start in range(0, len(self), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS) if order is None else order[start : start + BLOCK_ROWS]
            yield np.ascontiguousarray(self.codes[rows], np.uint32), np.ascontiguousarray(self.labels[rows])

    def first(self, n: int) -> Rows:
        """The first rows, as views."""
        return Rows(self.codes[:n], self.labels[:n])

    def only(self, columns: list[int]) -> Rows:
        """The codes of some attributes, copied."""
        return Rows(np.ascontiguousarray(self.codes[:, columns]), self.labels)

    def after(self, n: int) -> Rows:
        """The rows that :meth:`first` leaves."""
        return Rows(self.codes[n:], self.labels[n:])


class CodedData:
    """Training rows and validation rows (D^CV) of a source, coded once.

    ``passes`` counts how often the training rows were gone through. The order of rows is random from the start, so the
    first rows are a sample.

    Parameters
    ----------
    rows : all training rows, where they fit into memory; else none, with their type.
    cv : the validation rows.
    sizes : codes of each attribute: those seen, and one more for all that were not.
    n_classes : classes.
    buckets, folder : where the parts of the training rows lie, where they do not fit, and how many rows each has.
    """

    def __init__(
        self,
        rows: Rows,
        cv: Rows,
        sizes: NDArray[np.uint32],
        n_classes: int,
        *,
        buckets: list[tuple[Path, int]] | None = None,
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._rows, self.cv, self.sizes, self.n_classes = rows, cv, sizes, n_classes
        self._buckets, self._folder = buckets or [], folder
        self._columns: list[int] | None = None
        self.passes = 0

    def only(self, columns: list[int]) -> CodedData:
        """The same rows with some of their attributes; its passes are counted apart."""
        part = CodedData(
            self._rows.only(columns), self.cv.only(columns), self.sizes[columns], self.n_classes, buckets=self._buckets
        )
        part._columns = columns
        return part

    def __len__(self) -> int:
        return sum(n for _, n in self._buckets) if self._buckets else len(self._rows)

    @property
    def width(self) -> int:
        return len(self.sizes)

    def blocks(self, rng: np.random.Generator | None = None) -> Iterator[Block]:
        """One pass over the training rows, in a random order of its own with a generator."""
        self.passes += 1
        if not self._buckets:
            yield from self._rows.blocks(rng)
            return
        order = range(len(self._buckets)) if rng is None else rng.permutation(len(self._buckets)).tolist()
        for number in order:
            yield from self._bucket(number).blocks(rng)

    def sample(self, n: int) -> Rows:
        """About so many training rows in memory; not a pass."""
        if not self._buckets:
            return self._rows.first(n)
        parts: list[Rows] = []
        while sum(map(len, parts)) < n and len(parts) < len(self._buckets):
            parts.append(self._bucket(len(parts)))
        codes = np.concatenate([part.codes for part in parts])
        return Rows(codes, np.concatenate([part.labels for part in parts])).first(n)

    def class_counts(self) -> NDArray[np.int64]:
        """Training rows of each class."""
        if not self._buckets:
            return np.bincount(self._rows.labels, minlength=self.n_classes)
        parts = [self._bucket(i).labels for i in range(len(self._buckets))]
        return np.asarray(sum(np.bincount(part, minlength=self.n_classes) for part in parts))

    def _bucket(self, number: int) -> Rows:
        path, n = self._buckets[number]
        raw = np.fromfile(path, self._rows.codes.dtype).reshape(n, -1)
        rows = Rows(raw, np.fromfile(path.with_suffix(".labels"), np.int32))
        return rows if self._columns is None else rows.only(self._columns)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> CodedData:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def collect(source: Source, n_classes: int, memory: int, seed: int, *, cv: bool = True) -> CodedData:
    """Read a source of coded chunks once; rows beyond a quarter of ``memory`` go to a temporary file.

    Labels are class codes; a class may appear late, so ``n_classes`` is the least number.
    """
    spill = _Spill(memory // 4, seed)
    for chunk in source.chunks():
        codes, labels = _codes(chunk)
        spill.add(codes, labels)
    if spill.n == 0:
        raise DataFormatError("the data has no examples", file=source.name)
    return spill.finish(n_classes, cv)


def _codes(chunk: Chunk) -> Block:
    if chunk.weights is not None:
        raise OptionError("this learner takes no weights of rows or classes: leave weight and class_weight out")
    assert chunk.labels is not None
    codes = chunk_codes(chunk)
    return codes, chunk.labels.astype(np.int32)


def chunk_codes(chunk: Chunk) -> Codes:
    """The codes of a chunk that a coder made, a row an example."""
    n = len(chunk)
    if chunk.indices.dtype != np.uint32 or (n and chunk.nnz % n):
        raise OptionError("this learner needs a table of columns; got sparse features: convert them to columns")
    flat = chunk.indices[int(chunk.indptr[0]) : int(chunk.indptr[-1])]
    return np.asarray(flat.reshape(n, chunk.nnz // n if n else 0), np.uint32)


class _Spill:
    """Coded rows as they come: in memory while they fit, then in parts on disk, to which rows go at random."""

    def __init__(self, limit: int, seed: int) -> None:
        self.limit, self.rng = limit, np.random.default_rng([seed, 0xC0DE])
        self.n = 0
        self._held: list[Block] = []
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._most = np.zeros(0, np.int64)
        self._counts: NDArray[np.int64] = np.zeros(BUCKETS, np.int64)
        self._classes = np.zeros(0, np.int64)

    def add(self, codes: Codes, labels: Labels) -> None:
        if not len(labels):
            return
        if not len(self._most):
            self._most = np.zeros(codes.shape[1], np.int64)
        # The code of a level that training never saw cannot come from training rows.
        self._most = np.maximum(self._most, codes.max(axis=0, initial=0).astype(np.int64))
        counts = np.bincount(labels)
        grown = np.zeros(max(len(counts), len(self._classes)), np.int64)
        grown[: len(counts)] += counts
        grown[: len(self._classes)] += self._classes
        self._classes = grown
        self.n += len(labels)
        self._held.append((_compact(codes), labels))
        self._bytes += self._held[-1][0].nbytes + labels.nbytes
        if self._bytes > self.limit:
            self._flush()

    def _flush(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pomona-")
        for codes, labels in self._held:
            place = self.rng.integers(0, BUCKETS, len(labels))
            order = np.argsort(place, kind="stable")
            ends = np.searchsorted(place[order], np.arange(BUCKETS + 1))
            wide = codes.astype(np.uint32)
            for bucket in range(BUCKETS):
                rows = order[ends[bucket] : ends[bucket + 1]]
                self._append(bucket, wide[rows], labels[rows])
        self._held, self._bytes = [], 0

    def _append(self, bucket: int, codes: Codes, labels: Labels) -> None:
        path = self._path(bucket)
        with open(path, "ab") as file:
            file.write(codes.tobytes())
        with open(path.with_suffix(".labels"), "ab") as file:
            file.write(labels.tobytes())
        self._counts[bucket] += len(labels)

    def _path(self, bucket: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{bucket}.codes"

    def finish(self, n_classes: int, cv: bool) -> CodedData:
        n_classes = max(n_classes, len(self._classes))
        sizes = (self._most + 2).astype(np.uint32)
        self._classes = np.pad(self._classes, (0, n_classes - len(self._classes)))
        wanted = _cv_counts(self._classes, cv)
        if self._folder is None:
            return self._in_memory(sizes, n_classes, wanted)
        self._flush()
        return self._on_disk(sizes, n_classes, wanted)

    def _in_memory(self, sizes: NDArray[np.uint32], n_classes: int, wanted: NDArray[np.int64]) -> CodedData:
        dtype = _narrow(sizes.astype(np.int64))
        codes = np.concatenate([part[0].astype(dtype) for part in self._held])
        labels = np.concatenate([part[1] for part in self._held])
        self._held = []
        order = self.rng.permutation(len(labels))
        rows = Rows(codes[order], labels[order])
        held = _stratified(rows.labels, wanted)
        return CodedData(
            Rows(rows.codes[~held], rows.labels[~held]), Rows(rows.codes[held], rows.labels[held]), sizes, n_classes
        )

    def _on_disk(self, sizes: NDArray[np.uint32], n_classes: int, wanted: NDArray[np.int64]) -> CodedData:
        """Shuffle each part, and take the validation rows out: Knuth's selection sampling keeps their shares exact."""
        width, left, held_parts, buckets = len(sizes), self._classes.copy(), [], []
        dtype = _narrow(sizes.astype(np.int64))
        wanted = wanted.copy()
        for bucket in range(BUCKETS):
            if not self._counts[bucket]:
                continue
            path = self._path(bucket)
            codes = np.fromfile(path, np.uint32).reshape(-1, width).astype(dtype)
            labels = np.fromfile(path.with_suffix(".labels"), np.int32)
            order = self.rng.permutation(len(labels))
            codes, labels = codes[order], labels[order]
            here = np.bincount(labels, minlength=len(left))
            share = np.where(left > 0, wanted[: len(left)] * here / np.maximum(left, 1), 0)
            take = np.minimum(np.minimum(np.floor(share + self.rng.random(len(left))).astype(np.int64), here), wanted)
            held = _stratified(labels, take)
            left -= here
            wanted -= take
            held_parts.append(Rows(codes[held], labels[held]))
            codes[~held].tofile(path)
            labels[~held].tofile(path.with_suffix(".labels"))
            buckets.append((path, int((~held).sum())))
        cv = Rows(np.concatenate([p.codes for p in held_parts]), np.concatenate([p.labels for p in held_parts]))
        empty = Rows(np.empty((0, width), dtype), np.empty(0, np.int32))
        return CodedData(empty, cv, sizes, n_classes, buckets=buckets, folder=self._folder)


def _compact(codes: Codes) -> NDArray[np.unsignedinteger]:
    largest = int(codes.max(initial=0))
    return codes.astype(np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32)


def _cv_counts(classes: NDArray[np.int64], wanted: bool) -> NDArray[np.int64]:
    """Validation rows of each class; at least one row of a class stays in training."""
    n = int(classes.sum())
    if not wanted or n < 10:
        return np.zeros(len(classes), np.int64)
    share = min(max(CV_SHARE, CV_ROWS / n), CV_MOST)
    return np.asarray(np.minimum(np.floor(classes * share + 0.5), np.maximum(classes - 1, 0)), np.int64)


def _stratified(labels: Labels, wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The first so many rows of each class; the rows come in random order."""
    held = np.zeros(len(labels), np.bool_)
    for code in np.flatnonzero(wanted).tolist():
        held[np.flatnonzero(labels == code)[: wanted[code]]] = True
    return held
