"""The parents of apple: which monomials are multiplied with the base features, and to whom each product belongs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

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
        self.links: list[tuple[int, int]] = []
        #: Number of factors of each.
        self.degrees = np.zeros(0, np.int64)
        #: Sum of the mixed rows of each: the same whatever the order of its factors.
        self.keys = np.zeros(0, np.uint64)
        #: By what a parent has besides one of its rows, that row: q by i for each parent q x_i.
        self._siblings: dict[Monomial, list[int]] = {}
        #: Parents, and rows whose product with them belongs to another.
        self._barred = np.zeros((2, 0), np.int64)
        #: Rows that occur in parents.
        self.factors = np.zeros(0, np.int64)
        self._struct = _native.ParentsStruct()

    def __len__(self) -> int:
        return len(self.monomials)

    def single_rows(self) -> NDArray[np.int64]:
        """Rows of the parents that are base features."""
        return np.array([m[0] for m in self.monomials if len(m) == 1], np.int64)

    def add(self, chosen: Sequence[tuple[int, int]]) -> None:
        """One more round: parents given by their links."""
        if chosen:
            self._append(chosen, self.rounds[-1] + 1 if self.rounds else 0)
            self._describe()

    def _append(self, links: Sequence[tuple[int, int]], number: int) -> None:
        new = [self.product(parent, row) for parent, row in links]
        self._bar(new)
        self.monomials += new
        self.links += links
        self.rounds += [number] * len(new)
        self.degrees = np.concatenate([self.degrees, np.array([len(m) for m in new], np.int64)])
        self.keys = np.concatenate([self.keys, _keys_of(new)])

    def _bar(self, new: list[Monomial]) -> None:
        """Find the products that new parents leave to others."""
        # Parents that differ in one factor only, q x_j and q x_i, have the product q x_i x_j in common.
        siblings: dict[Monomial, list[int]] = {}
        splits = [[(_without(m, row), row) for row in dict.fromkeys(m)] for m in new]
        for rest, row in itertools.chain.from_iterable(splits):
            siblings.setdefault(rest, []).append(row)
        parents: list[int] = []
        rows: list[int] = []
        for i, split in enumerate(splits, len(self)):
            for rest, row in split:
                # An older parent q x_j owns q x_i x_j; of two of a round the one that lacks the smaller row.
                others = self._siblings.get(rest, []) + [other for other in siblings[rest] if other > row]
                rows += others
                parents += [i] * len(others)
            if not self.squares:
                rows += [row for _, row in split]
                parents += [i] * len(split)
        self._barred = np.concatenate([self._barred, np.array([parents, rows], np.int64)], axis=1)
        for rest, own in siblings.items():
            self._siblings.setdefault(rest, []).extend(own)

    def product(self, parent: int, row: int) -> Monomial:
        """The monomial that is this parent (or none) times this base feature."""
        return (row,) if parent == ROOT else tuple(sorted((*self.monomials[parent], row)))

    # ---- for the kernel ----
    def describe(self) -> _native.ParentsStruct:
        """The struct of the kernel, pointing at arrays of this object."""
        return self._struct

    def _describe(self) -> None:
        n, links = len(self), np.array(self.links, np.int64)
        self.factors = np.unique(links[:, 1])
        place = np.searchsorted(self.factors, links[:, 1])
        self._factor_of_row = np.zeros(int(self.factors[-1]) + 2, np.uint32)  # the last stands for all rows behind
        self._factor_of_row[self.factors] = np.arange(1, len(self.factors) + 1)
        self._near_rows = _near(self.factors)
        self._single = np.zeros(len(self.factors), np.uint32)
        roots = links[:, 0] == ROOT
        self._single[place[roots]] = np.flatnonzero(roots) + 1
        order = np.argsort(links[:, 0], kind="stable")[np.count_nonzero(roots) :]
        self._child, self._child_factor = order.astype(np.uint32), place[order].astype(np.uint32)
        self._children = np.searchsorted(links[order, 0], np.arange(n + 1))
        excluded = np.zeros((n, -(-len(self.factors) // 64) * 64), np.bool_)
        excluded[self._barred[0], np.searchsorted(self.factors, self._barred[1])] = True
        self._excluded = np.packbits(excluded, axis=1, bitorder="little").view(np.uint64)
        struct = self._struct
        struct.n, struct.n_rows, struct.n_factors = n, len(self._factor_of_row) - 1, len(self.factors)
        struct.words = self._excluded.shape[1]
        for name in ("factor_of_row", "near_rows", "single", "children", "child_factor", "child", "excluded"):
            setattr(struct, name, _native.address(getattr(self, "_" + name)))
        struct.keys = _native.address(self.keys)

    # ---- files ----
    def header(self) -> dict[str, list[int]]:
        links = [number for link in self.links for number in link]
        return {"links": links, "rounds": list(self.rounds)}

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


def _without(monomial: Monomial, row: int) -> Monomial:
    at = monomial.index(row)
    return monomial[:at] + monomial[at + 1 :]


def _keys_of(monomials: Sequence[Monomial]) -> NDArray[np.uint64]:
    rows = np.array([row for m in monomials for row in m], np.uint64)
    starts = np.cumsum([0] + [len(m) for m in monomials])[:-1].astype(np.int64)
    return np.add.reduceat(_native.mix(rows), starts) if len(rows) else np.zeros(0, np.uint64)


def _near(factors: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A bit for each of the last numbers of the factors' rows."""
    near = np.zeros(_native.NEAR_ROWS, np.bool_)
    near[factors % _native.NEAR_ROWS] = True
    return np.packbits(near, bitorder="little").view(np.uint64)
