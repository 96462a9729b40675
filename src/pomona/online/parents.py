"""The parents of apple: which monomials are multiplied with the base features, and to whom each product belongs."""

from __future__ import annotations

from collections import defaultdict
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
        self._struct = _native.ParentsStruct()
        self._build()

    def __len__(self) -> int:
        return len(self.monomials)

    def single_rows(self) -> NDArray[np.int64]:
        """Rows of the parents that are base features."""
        return np.array([m[0] for m in self.monomials if len(m) == 1], np.int64)

    def add(self, chosen: Sequence[tuple[int, int]]) -> None:
        """One more round: parents given by their links."""
        number = self.rounds[-1] + 1 if self.rounds else 0
        for parent, row in chosen:
            self.monomials.append(self.product(parent, row))
            self.rounds.append(number)
            self.links.append((parent, row))
        self._build()

    def product(self, parent: int, row: int) -> Monomial:
        """The monomial that is this parent (or none) times this base feature."""
        return (row,) if parent == ROOT else tuple(sorted((*self.monomials[parent], row)))

    # ---- for the kernel ----
    def describe(self) -> _native.ParentsStruct:
        """The struct of the kernel, pointing at arrays of this object."""
        return self._struct

    def _build(self) -> None:
        n = len(self)
        self.degrees = np.array([len(m) for m in self.monomials], np.int64)
        #: Rows that occur in parents.
        self.factors = np.unique(np.array([row for m in self.monomials for row in m], np.int64))
        place = {row: f for f, row in enumerate(self.factors.tolist())}
        self._factor_of_row = np.zeros(int(self.factors[-1]) + 1 if len(self.factors) else 0, np.uint32)
        self._factor_of_row[self.factors] = np.arange(1, len(self.factors) + 1)
        near = np.zeros(_native.NEAR_ROWS, np.bool_)
        near[self.factors % _native.NEAR_ROWS] = True
        self._near_rows = np.packbits(near, bitorder="little").view(np.uint64)
        self._single = np.zeros(len(self.factors), np.uint32)
        children: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for i, (parent, row) in enumerate(self.links):
            if parent == ROOT:
                self._single[place[row]] = i + 1
            else:
                children[parent].append((place[row], i))
        flat = np.array([child for own in children for child in own], np.uint32).reshape(-1, 2)
        self._children = np.cumsum([0] + [len(own) for own in children], dtype=np.int64)
        self._child_factor, self._child = (np.ascontiguousarray(flat[:, k]) for k in (0, 1))
        self.keys = self.keys_of(self.monomials)
        self._excluded = self._exclusions(place)
        struct = self._struct
        struct.n, struct.n_rows, struct.n_factors = n, len(self._factor_of_row), len(self.factors)
        struct.words = self._excluded.shape[1]
        for name in ("factor_of_row", "near_rows", "single", "children", "child_factor", "child", "excluded"):
            setattr(struct, name, getattr(self, "_" + name).ctypes.data)
        struct.keys = self.keys.ctypes.data

    @staticmethod
    def keys_of(monomials: Sequence[Monomial]) -> NDArray[np.uint64]:
        """The sum of the mixed rows of each monomial: the same whatever the order of its factors."""
        rows = np.array([row for m in monomials for row in m], np.uint64)
        starts = np.cumsum([0] + [len(m) for m in monomials])[:-1].astype(np.int64)
        return np.add.reduceat(_native.mix(rows), starts) if len(rows) else np.zeros(0, np.uint64)

    def _exclusions(self, place: dict[int, int]) -> NDArray[np.uint64]:
        """By parent, the factors whose product with it belongs to another parent, as bits."""
        excluded = np.zeros((len(self), -(-len(self.factors) // 64) * 64), np.bool_)
        # Parents that differ in one factor only, q x_j and q x_i, have the product q x_i x_j in common.
        siblings: dict[Monomial, list[tuple[int, int]]] = defaultdict(list)
        for i, m in enumerate(self.monomials):
            for row in set(m):
                rest = list(m)
                rest.remove(row)
                siblings[tuple(rest)].append((i, row))
            if not self.squares:
                excluded[i, [place[row] for row in m]] = True
        rounds = np.array(self.rounds, np.int64)
        for group in siblings.values():
            if len(group) == 1:
                continue
            parents, rows = np.array(group, np.int64).T
            age = rounds[parents]
            # Parent a = q x_j lacks x_i, parent b = q x_i lacks x_j: b owns q x_i x_j if (round b, j) < (round a, i).
            older = age[None, :] < age[:, None]
            smaller = (age[None, :] == age[:, None]) & (rows[:, None] < rows[None, :])
            a, b = np.nonzero(older | smaller)
            excluded[parents[a], np.searchsorted(self.factors, rows)[b]] = True
        return np.packbits(excluded, axis=1, bitorder="little").view(np.uint64)

    # ---- files ----
    def header(self) -> dict[str, list[int]]:
        links = [number for link in self.links for number in link]
        return {"links": links, "rounds": list(self.rounds)}

    @classmethod
    def from_header(cls, header: dict[str, list[int]], squares: bool) -> Parents:
        parents = cls(squares)
        flat = header["links"]
        for i, number in enumerate(header["rounds"]):
            parent, row = flat[2 * i], flat[2 * i + 1]
            if parent >= i or row < 0:
                raise ValueError(f"parent {i} grows from a later one")
            parents.monomials.append(parents.product(parent, row))
            parents.rounds.append(number)
            parents.links.append((parent, row))
        parents._build()
        return parents
