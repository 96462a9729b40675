"""The parents of apple: which monomials are multiplied with the base features, and to whom each product belongs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native

Monomial = tuple[int, ...]

#: The link of a parent that is a base feature: it grows from no other parent.
ROOT = -1


class Parents:
    """Monomials in the order in which they were chosen, and what the kernel needs to find those of an example.

    A monomial is the rising tuple of the rows of its factors, with repetition. A parent of degree two or more grows
    from a parent of one degree less (its link), so those of an example are found by walking down a tree.

    A product x_i m may come from several parents m. It belongs to the parent of the earliest round and, within a round,
    to the one that lacks the smallest row. So a product never changes its owner when new parents come.
    """

    def __init__(self, squares: bool = True) -> None:
        self.squares = squares
        self.monomials: list[Monomial] = []
        #: Number of the round in which each was chosen.
        self.rounds: list[int] = []
        #: Parent and row whose product each is.
        self.links = np.zeros((0, 2), np.int64)
        #: Number of factors of each.
        self.degrees = np.zeros(0, np.int64)
        self._keys = np.zeros(0, np.uint64)
        #: By what a parent has besides one of its rows, that row: q by i for each parent q x_i.
        self._siblings: dict[Monomial, list[int]] = {}
        #: Parents, and rows whose product with them belongs to another.
        self._barred = np.zeros((2, 0), np.int64)
        #: Rows that occur in parents.
        self.factors = np.zeros(0, np.int64)
        self._struct = _native.ParentsStruct()
        #: What the struct points at.
        self._described: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.monomials)

    def single_rows(self) -> NDArray[np.int64]:
        """Rows of the parents that are base features."""
        return np.asarray(self.links[self.links[:, 0] == ROOT, 1])

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Sum of the mixed rows of each: the same whatever the order of its factors."""
        if len(self._keys) < len(self):
            self._keys = np.concatenate([self._keys, _keys_of(self.monomials[len(self._keys) :])])
        return self._keys

    def add(self, chosen: Sequence[tuple[int, int]]) -> None:
        """One more round: parents given by their links."""
        if chosen:
            self._append(chosen, self.rounds[-1] + 1 if self.rounds else 0)
            self._describe()

    def _append(self, links: Sequence[tuple[int, int]], number: int) -> None:
        new = [self.product(parent, row) for parent, row in links]
        self._bar(new)
        self.monomials += new
        self.links = np.concatenate([self.links, np.array(links, np.int64)])
        self.rounds += [number] * len(new)
        self.degrees = np.concatenate([self.degrees, np.array([len(m) for m in new], np.int64)])

    def _bar(self, new: list[Monomial]) -> None:
        """Find the products that new parents leave to others."""
        # Parents that differ in one factor only, q x_j and q x_i, have the product q x_i x_j in common.
        families: dict[Monomial, list[tuple[int, int]]] = {}
        for i, monomial in enumerate(new, len(self)):
            last = None
            for at, row in enumerate(monomial):
                if row != last:
                    families.setdefault(monomial[:at] + monomial[at + 1 :], []).append((row, i))
                last = row
        parents, counts, rows = [], [], []
        for rest, own in families.items():
            own.sort()
            fresh, older = [row for row, _ in own], self._siblings.setdefault(rest, [])
            for at, (_, i) in enumerate(own):
                # An older parent q x_j owns q x_i x_j; of two of a round the one that lacks the smaller row. Squares
                # that are not wanted are left to nobody.
                others = fresh[at + self.squares :]
                parents.append(i)
                counts.append(len(others) + len(older))
                rows += others
                rows += older
            older += fresh
        barred = np.stack([np.repeat(np.array(parents, np.int64), counts), np.array(rows, np.int64)])
        self._barred = np.concatenate([self._barred, barred], axis=1)

    def product(self, parent: int, row: int) -> Monomial:
        """The monomial that is this parent (or none) times this base feature."""
        return (row,) if parent == ROOT else tuple(sorted((*self.monomials[parent], row)))

    # ---- for the kernel ----
    def describe(self) -> _native.ParentsStruct:
        """The struct of the kernel, pointing at arrays of this object."""
        return self._struct

    def _describe(self) -> None:
        self.factors = np.array(sorted(set(self.links[:, 1].tolist())), np.int64)
        self._described = _native.link_parents(self._struct, self.links, self.factors, self._barred)

    # ---- files ----
    def header(self) -> dict[str, list[int]]:
        return {"links": self.links.ravel().tolist(), "rounds": list(self.rounds)}

    @classmethod
    def from_header(cls, header: dict[str, list[int]], squares: bool) -> Parents:
        parents = cls(squares)
        flat = header["links"]
        links = list(zip(flat[::2], flat[1::2], strict=True))
        for number, part in itertools.groupby(zip(header["rounds"], links, strict=True), key=lambda pair: pair[0]):
            own = [link for _, link in part]
            if any(not ROOT <= parent < len(parents) or row < 0 for parent, row in own):
                raise ValueError(f"a parent of round {number} grows from a later one")
            parents._append(own, number)
        if links:
            parents._describe()
        return parents


def _keys_of(monomials: Sequence[Monomial]) -> NDArray[np.uint64]:
    rows = np.array([row for m in monomials for row in m], np.uint64)
    starts = np.cumsum([0] + [len(m) for m in monomials])[:-1].astype(np.int64)
    return np.add.reduceat(_native.mix(rows), starts) if len(rows) else np.zeros(0, np.uint64)
