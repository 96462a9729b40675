"""Names of features, kept as they are first met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, PackedNames

#: Names stop being kept beyond this many bytes.
LIMIT = 1 << 28
#: More columns without names than these are not all listed, only those that were met.
MOST_PLAIN = 1 << 20


class FeatureNames:
    """Names of single features: by row of an exact table, or by slot of a hashed one of ``n_slots``.

    Of features that collide in a hashed table the first gives its name.
    """

    def __init__(self, n_slots: int = 0, plain: int = 0) -> None:
        #: Whether features are known by name (ids) rather than by column.
        self.named = False
        #: Columns 0, 1 … without names, before all that is listed below.
        self.plain = self._count = plain
        self._bytes = 0
        self._rows: list[NDArray[np.uint64]] = []
        self._names: list[PackedNames] = []
        self._slots = _native.Marks(n_slots)
        self._columns = _native.Marks(0)
        #: Which column has which row, where columns get rows as they appear.
        self.column_rows: _native.ColumnRows | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> NDArray[np.uint64]:
        return np.concatenate([np.arange(self.plain, dtype=np.uint64), *self._rows])

    @property
    def names(self) -> PackedNames:
        """Names in the order of ``rows``."""
        if len(self._names) > 1:
            self._names = [PackedNames.join(self._names)]
        return PackedNames.join([_nameless(self.plain), *self._names])

    def default(self, row: int) -> str:
        """What to call a feature whose name is not known."""
        if self.named:
            return f"feature {row}"
        return f"x{row if self.column_rows is None else self.column_rows.columns()[row]}"

    # ---- meeting features ----
    def note_fresh(self, chunk: Chunk, positions: NDArray[np.int64]) -> None:
        """Names of features that just got a row; rows are given in the order of positions."""
        if self.column_rows is None:
            self.named = True
        elif chunk.names is None and self._count == self.plain:
            self.plain = self._count = self._count + len(positions)
            return
        rows = np.arange(self._count, self._count + len(positions), dtype=np.uint64)
        self._add(chunk, rows, positions)

    def note_hashed(self, chunk: Chunk) -> None:
        """Names of features whose slot was never met before."""
        self.named = True
        if chunk.names is None or self._bytes >= LIMIT or self._count == len(self._slots):
            return
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        ids: NDArray[np.uint64] = chunk.indices[first:last]  # type: ignore[assignment]
        fresh = self._slots.meet(ids)
        self._add(chunk, ids[fresh] & np.uint64(len(self._slots) - 1), fresh + first)

    def note_columns(self, chunk: Chunk, n_columns: int) -> None:
        """Names of the columns of an array; where it has none, all up to the last one met count as met."""
        if len(self._slots) and n_columns > MOST_PLAIN:
            self._note_hashed_columns(chunk)
            return
        if self._count >= n_columns:
            return
        if chunk.names is None and self._count == self.plain:
            self.plain = self._count = n_columns
            return
        if len(self._columns) < n_columns:
            self._columns = _native.Marks(1 << n_columns.bit_length())
            self._columns.meet(self.rows)
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        fresh = self._columns.meet(chunk.indices[first:last])
        columns = chunk.indices[first:last][fresh].astype(np.uint64)
        self._add(chunk, columns, fresh + first)

    def _note_hashed_columns(self, chunk: Chunk) -> None:
        """Columns of a very wide array whose slot was never met before."""
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        columns = chunk.indices[first:last].astype(np.uint32, copy=False)  # they are
        fresh = self._slots.meet(_native.column_keys(columns))
        self._add(chunk, columns[fresh].astype(np.uint64), fresh + first)

    def _add(self, chunk: Chunk, rows: NDArray[np.uint64], positions: NDArray[np.int64]) -> None:
        if not len(positions):
            return
        if chunk.names is None or self._bytes >= LIMIT:
            names = _nameless(len(positions))
        else:
            found = chunk.names(positions)
            names = found if isinstance(found, PackedNames) else PackedNames.pack(found)
        self._count += len(rows)
        self._bytes += len(names.text)
        self._rows.append(rows)
        self._names.append(names)

    # ---- files ----
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is listed; how many plain columns there are stands beside it."""
        names = PackedNames.join(self._names)
        rows = np.concatenate([np.zeros(0, np.uint64), *self._rows])
        return {"name_rows": rows, "name_text": names.text, "name_ends": names.ends}

    @classmethod
    def from_arrays(cls, n_slots: int, named: bool, arrays: dict[str, NDArray[Any]], plain: int = 0) -> FeatureNames:
        """The names of a model file. The first models listed plain columns too."""
        names = cls(n_slots, plain)
        names.named = named
        rows = arrays["name_rows"]
        if not named and not len(arrays["name_text"]) and np.array_equal(rows, np.arange(len(rows))):
            names.plain = names._count = max(len(rows), plain)
            return names
        names._rows = [rows]
        names._names = [PackedNames(arrays["name_text"], arrays["name_ends"])]
        names._count, names._bytes = plain + len(rows), len(arrays["name_text"])
        if n_slots:
            names._slots.meet(rows if named else _native.column_keys(rows.astype(np.uint32)))
        return names


def _nameless(n: int) -> PackedNames:
    return PackedNames(np.zeros(0, np.uint8), np.zeros(n, np.int64))
