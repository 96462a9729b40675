"""Fewer levels: those left out by feature selection become one code, so that tuples of large attributes stay small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import Codes, Labels
from pomona.higherorder.bits import packed
from pomona.higherorder.coded import Rows
from pomona.higherorder.counts import TupleCounts
from pomona.higherorder.tuples import TupleSet


@dataclass(frozen=True, eq=False)
class Recode:
    """New codes of old ones, attribute after attribute; those left out share the last code of their attribute."""

    #: New codes of all attributes, one attribute after the other.
    table: NDArray[np.uint32]
    #: Where each attribute begins in ``table``, and the end.
    starts: NDArray[np.int64]
    #: New sizes.
    sizes: NDArray[np.uint32]

    @classmethod
    def keeping(cls, single: TupleCounts) -> Recode:
        """Keep the levels that are features of tuples of order 1."""
        flags = np.unpackbits(single.index.words["bits"].copy().view(np.uint8), bitorder="little")
        starts = single.index.starts.astype(np.int64)
        table, sizes = [], []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            kept = flags[start:stop].astype(np.bool_)
            n = int(kept.sum())
            table.append(np.where(kept, np.cumsum(kept) - 1, n).astype(np.uint32))
            sizes.append(n + 1)
        return cls(np.concatenate(table), starts, np.array(sizes, np.uint32))

    def codes(self, codes: Codes) -> Codes:
        """New codes of rows; codes never seen are clipped to the last."""
        last = np.diff(self.starts) - 1
        places = np.minimum(codes.astype(np.int64), last) + self.starts[:-1]
        return np.ascontiguousarray(self.table[places])

    def blocks(self, blocks: Iterable[tuple[Codes, Labels]]) -> Iterator[tuple[Codes, Labels]]:
        for codes, labels in blocks:
            yield self.codes(codes), labels

    def rows(self, rows: Rows) -> Rows:
        return Rows(self.codes(rows.codes.astype(np.uint32)), rows.labels)

    def recoded(self, single: TupleCounts) -> TupleCounts:
        """The same features of order 1 in new codes; an attribute without any is kept, with no feature."""
        tuples = TupleSet(single.tuples.members, self.sizes)
        flags = np.concatenate([np.append(np.ones(int(size) - 1, np.uint8), np.uint8(0)) for size in self.sizes])
        return TupleCounts(tuples, tuples.index(bits=packed(flags)), single.counts, single.class_counts)

    def old_code(self, attribute: int, code: int) -> int:
        """The old code that became this one."""
        part = self.table[self.starts[attribute] : self.starts[attribute + 1]]
        return int(np.flatnonzero(part == code)[0])
