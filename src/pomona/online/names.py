"""Names of features, kept as they are first met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk

#: Names stop being kept beyond this many characters.
LIMIT = 1 << 28


class FeatureNames:
    """Names of single features: by row of an exact table, or by slot of a hashed one.

    Of features that collide in a hashed table the first gives its name. ``keys`` are what a hashed table of products
    adds up.
    """

    def __init__(self, bits: int | None) -> None:
        self.bits = bits
        self.rows: list[int] = []
        self.names: list[str] = []
        self.keys: list[int] = []
        #: Whether features are known by name (ids) rather than by column.
        self.named = False
        self._characters = 0
        self._seen = np.zeros(1 << bits if bits is not None else 0, np.bool_)

    def __len__(self) -> int:
        return len(self.rows)

    def note_fresh(self, chunk: Chunk, positions: NDArray[np.int64]) -> None:
        """Names of features that just got a row; rows are given in the order of positions."""
        start = len(self.rows)
        rows = np.arange(start, start + len(positions), dtype=np.uint64)
        self.named = True
        self._add(chunk, rows, _native.mix(rows), positions)

    def note_hashed(self, chunk: Chunk) -> None:
        """Names of features whose slot was never met before."""
        self.named = True
        if chunk.names is None or self._characters >= LIMIT:
            return
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        ids: NDArray[np.uint64] = chunk.indices[first:last]  # type: ignore[assignment]
        fresh = _native.mark_new(self._seen, ids)
        self._add(chunk, ids[fresh] & np.uint64(len(self._seen) - 1), ids[fresh], fresh + first)

    def note_columns(self, chunk: Chunk, n_columns: int) -> None:
        """Names of the columns of an array."""
        if len(self.rows) >= n_columns:
            return
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        columns, positions = np.unique(chunk.indices[first:last], return_index=True)
        new = ~np.isin(columns, np.array(self.rows, np.uint64))
        keys = _native.mix(columns[new].astype(np.uint64))
        self._add(chunk, columns[new].astype(np.uint64), keys, positions[new] + first)

    def _add(
        self, chunk: Chunk, rows: NDArray[np.uint64], keys: NDArray[np.uint64], positions: NDArray[np.int64]
    ) -> None:
        if not len(positions):
            return
        names = [""] * len(rows)
        if chunk.names is not None and self._characters < LIMIT:
            names = chunk.names(positions)
        self._characters += sum(map(len, names))
        self.rows += rows.tolist()
        self.keys += keys.tolist()
        self.names += names

    def arrays(self) -> dict[str, NDArray[Any]]:
        text = [name.encode("utf-8", "surrogateescape") for name in self.names]
        return {
            "name_rows": np.array(self.rows, np.uint64),
            "name_keys": np.array(self.keys, np.uint64),
            "name_text": np.frombuffer(b"".join(text), np.uint8),
            "name_ends": np.cumsum([len(t) for t in text], dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, bits: int | None, named: bool, arrays: dict[str, NDArray[Any]]) -> FeatureNames:
        names = cls(bits)
        text, ends = arrays["name_text"].tobytes(), arrays["name_ends"].tolist()
        names.names = [
            text[a:b].decode("utf-8", "surrogateescape") for a, b in zip([0, *ends[:-1]], ends, strict=False)
        ]
        names.rows, names.keys = arrays["name_rows"].tolist(), arrays["name_keys"].tolist()
        names.named = named
        names._characters = len(text)
        if bits is not None and named:
            names._seen[names.rows] = True
        return names
