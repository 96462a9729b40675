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
    """Names by row of an exact table, or by slot of a hashed one (of features that collide, the first)."""

    def __init__(self, bits: int | None) -> None:
        self.bits = bits
        #: Row or slot, and the name and 64-bit id of its feature.
        self.rows: list[int] = []
        self.names: list[str] = []
        self.ids: list[int] = []
        self._characters = 0
        self._seen = np.zeros(1 << bits if bits is not None else 0, np.bool_)

    def note_fresh(self, chunk: Chunk, ids: NDArray[np.uint64], fresh: NDArray[np.int64], first: int) -> None:
        """Names of features that just got a row; they get rows in the order of their positions."""
        start = len(self.rows)
        self._add(chunk, list(range(start, start + len(fresh))), ids[fresh], fresh + first)

    def note_hashed(self, chunk: Chunk) -> None:
        """Names of features whose slot was never met before."""
        if self.bits is None or chunk.indices.dtype != np.uint64 or chunk.names is None:
            return
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        ids: NDArray[np.uint64] = chunk.indices[first:last]  # type: ignore[assignment]
        fresh = _native.mark_new(self._seen, ids)
        slots = (ids[fresh] & np.uint64(len(self._seen) - 1)).tolist()
        self._add(chunk, slots, ids[fresh], fresh + first)

    def _add(
        self, chunk: Chunk, rows: list[int], ids: NDArray[np.uint64], positions: NDArray[np.int64]
    ) -> None:
        if not len(positions):
            return
        keep = chunk.names is not None and self._characters < LIMIT
        names = chunk.names(positions) if keep and chunk.names is not None else [""] * len(rows)
        self._characters += sum(map(len, names))
        self.rows += rows
        self.ids += ids.tolist()
        self.names += names

    def arrays(self) -> dict[str, NDArray[Any]]:
        text = [name.encode("utf-8", "surrogateescape") for name in self.names]
        return {
            "name_rows": np.array(self.rows, np.uint64),
            "name_ids": np.array(self.ids, np.uint64),
            "name_text": np.frombuffer(b"".join(text), np.uint8),
            "name_ends": np.cumsum([len(t) for t in text], dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, bits: int | None, arrays: dict[str, NDArray[Any]]) -> FeatureNames:
        names = cls(bits)
        text, ends = arrays["name_text"].tobytes(), arrays["name_ends"].tolist()
        starts = [0, *ends[:-1]]
        names.names = [
            text[a:b].decode("utf-8", "surrogateescape") for a, b in zip(starts, ends, strict=False)
        ]
        names.rows = arrays["name_rows"].tolist()
        names.ids = arrays["name_ids"].tolist()
        names._characters = len(text)
        if bits is not None:
            names._seen[names.rows] = True
        return names
