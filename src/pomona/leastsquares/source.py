"""Chunks of a source as blocks of rows with numbered columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.chunk import Chunk, Source
from pomona.errors import DataFormatError
from pomona.leastsquares.arrays import Array, Place
from pomona.leastsquares.rows import ready

#: Blocks with at least this share of entries are computed with as dense ones.
DENSE_SHARE = 0.2


class Columns:
    """Which column a feature is: by its id, where features come from an open set, or as it is numbered."""

    def __init__(
        self,
        ids: NDArray[np.uint64] | None,
        d: int,
        names: list[str],
        places: NDArray[np.int64] | None = None,
    ) -> None:
        #: Ids of features, and the column of each; by default the first column is the first feature, and so on.
        self.ids, self.d, self.names = ids, d, names
        if ids is not None:
            self.places = np.arange(d) if places is None else places
            order = np.argsort(ids, kind="stable")
            self._sorted, self._columns = ids[order], self.places[order]

    def block(self, chunk: Chunk, place: Place) -> Array:
        """The rows of a chunk, dense or sparse; features never met in training are left out."""
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        indices, values = chunk.indices[first:last], chunk.values[first:last]
        indptr = chunk.indptr - first
        n = len(chunk)
        width = len(indices) // n if n else 0
        pattern = indices[:width]
        if n and width * n == len(indices) and _is_repeated(indices, indptr, width):
            columns, known = self._find(pattern)
            return self._dense(values.reshape(n, width), columns, known, place)
        columns, known = self._find(indices)
        if not known.all():
            kept = np.concatenate([[0], np.cumsum(known)])
            indptr, columns, values = kept[indptr], columns[known], values[known]
        block = sparse.csr_matrix((values, columns, indptr), shape=(n, self.d))
        if block.nnz >= DENSE_SHARE * n * self.d:
            return place.put(block.toarray())
        return ready(block, place)

    def _dense(
        self, values: NDArray[np.float32], columns: NDArray[np.int64], known: NDArray[np.bool_], place: Place
    ) -> Array:
        """Rows that all hold the same features."""
        if known.all() and np.array_equal(columns, np.arange(self.d)):
            return place.put(values)
        block = np.zeros((len(values), self.d), np.float32)
        block[:, columns[known]] = values[:, known]
        return place.put(block)

    def _find(self, indices: NDArray[np.uint64] | NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.ids is None:
            return indices.astype(np.int64), np.asarray(indices < self.d)
        found = np.minimum(np.searchsorted(self._sorted, indices), len(self._sorted) - 1)
        return self._columns[found], np.asarray(self._sorted[found] == indices)


def _is_repeated(indices: NDArray[np.uint64] | NDArray[np.uint32], indptr: NDArray[np.int64], width: int) -> bool:
    """Whether every row holds the features of the first one, in the same order."""
    if width == 0 or not (np.diff(indptr) == width).all():
        return False
    table = indices.reshape(-1, width)
    return bool((table == table[:1]).all())


class Survey:
    """The first pass over a source: how many rows and columns there are, and all labels and weights."""

    def __init__(self, source: Source) -> None:
        labels: list[NDArray[np.float64]] = []
        weights: list[NDArray[np.float64] | None] = []
        lengths: list[int] = []
        columns = MetColumns(source)
        for chunk in source.chunks():
            if not len(chunk):
                continue
            assert chunk.labels is not None
            labels.append(np.asarray(chunk.labels))
            weights.append(chunk.weights)
            lengths.append(len(chunk))
            first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
            _check_finite(chunk, first, last)
            columns.note(chunk, first, last)
        self.n = sum(lengths)
        self.labels = np.concatenate(labels)
        self.weights = _joined(weights, lengths)
        self.columns = columns.all()


class MetColumns:
    """Columns in the order of their fields, then in that in which their features were met.

    Where every field has at most one feature (tables of numbers), columns are fields, met or not: images keep their
    places.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sorted = np.zeros(0, np.uint64)
        self._ids: list[NDArray[np.uint64]] = []
        self._fields: list[NDArray[np.int64]] = []
        self._names: list[str] = []
        self._closed, self._d = False, 0

    def note(self, chunk: Chunk, first: int, last: int) -> None:
        indices = chunk.indices[first:last]
        if indices.dtype == np.uint32:
            self._closed = True
            self._d = max(self._d, int(indices.max()) + 1 if len(indices) else 0)
            return
        found, positions = np.unique(indices, return_index=True)
        new = positions[~np.isin(found, self._sorted, assume_unique=True)]
        if not len(new):
            return
        new.sort()
        self._ids.append(np.asarray(indices[new], np.uint64))
        if chunk.fields is not None:
            self._fields.append(chunk.fields[first:last][new].astype(np.int64))
        self._names += list(chunk.names(new + first)) if chunk.names is not None else [""] * len(new)
        self._sorted = np.union1d(self._sorted, indices[new])

    def all(self) -> Columns:
        if self._closed:
            return Columns(None, self._d, [])
        if not self._ids:
            return Columns(None, 0, [])
        ids = np.concatenate(self._ids)
        if len(self._fields) != len(self._ids):
            return Columns(ids, len(ids), self._names)
        fields = np.concatenate(self._fields)
        if len(np.unique(fields)) == len(fields):
            names = list(self._source.fields)
            return Columns(ids, len(names), names, fields)
        order = np.argsort(fields, kind="stable")
        return Columns(ids[order], len(ids), [self._names[i] for i in order.tolist()])


def _check_finite(chunk: Chunk, first: int, last: int) -> None:
    bad = np.flatnonzero(~np.isfinite(chunk.values[first:last]))
    if not len(bad):
        return
    row = int(np.searchsorted(chunk.indptr - first, bad[0], side="right")) - 1
    raise DataFormatError(
        f"least squares needs finite numbers; got {chunk.values[first + bad[0]]}: fill or remove those rows",
        file=chunk.file,
        line=chunk.first_line + row if chunk.first_line else 0,
    )


def _joined(weights: list[NDArray[np.float64] | None], lengths: list[int]) -> NDArray[np.float64] | None:
    if all(w is None for w in weights):
        return None
    pairs = zip(weights, lengths, strict=True)
    return np.concatenate([np.ones(n) if w is None else w for w, n in pairs])


class SourceRows:
    """Rows that are read from a source in every pass."""

    def __init__(self, source: Source, survey: Survey, place: Place) -> None:
        self._source, self._columns, self.place = source, survey.columns, place
        self.n, self.d = survey.n, survey.columns.d

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        start = 0
        for chunk in self._source.chunks():
            if len(chunk):
                yield slice(start, start + len(chunk)), self._columns.block(chunk, self.place)
                start += len(chunk)
