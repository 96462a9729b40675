"""The tables of apple: one for base features, one for the products of parents with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona._buffers import zeros
from pomona.online.parameters import OnlineParameters
from pomona.online.parents import ROOT, Parents
from pomona.online.tables import Tables, region, taken

#: A table found by key grows when it is fuller than this.
FULLEST = 0.7
#: Blocks together have at most so many slots of 16 bytes: beyond, most of them would stay empty.
LARGEST_BLOCKS = 1 << 20
#: Where features are many and rare, so many times as many are likely to come as had appeared in the first round.
TO_COME = 4
#: A table found by key has at most 2**KEY_BITS slots, unless another number is given. Of more products most occur once
#: or twice: to drop the weakest cost no accuracy that could be measured, and to wait for memory took more than half of
#: the time.
KEY_BITS = 20
#: With several classes, products that are hashed take at most so many bytes: beyond the caches, twice the time.
HASHED_BYTES = 1 << 24
#: The smallest table found by key has 2**MIN_BITS slots.
MIN_BITS = 10
#: Slots of a table that are looked at together when parents are chosen.
PIECE = 1 << 15


class AppleTables(Tables):
    """Base features by row; products in blocks of one parent each or, when those would be too large, by key.

    In blocks the product of parent p and row i stands at ``p * block + i``: nothing is looked up, and features that
    occur together lie together. By key, a slot holds a tag of its product, and ``owners`` says which it is: only
    products that occur take room. When that table is full and may not grow, the weakest half of them is dropped.

    Where a number of ``bits`` was asked for, products that outgrow their blocks are hashed instead: those of four
    parents with one row stand together, so that an example finds several of them in one cache line; products may share
    a slot, and ``owners`` names one.
    """

    def __init__(self, parameters: OnlineParameters, bits: int | None, picky: bool, moments: bool) -> None:
        super().__init__(parameters)
        self.bits = bits
        self.hashed = [False, False]
        self.slots.append(self._empty(0))
        self.touched.append(self._clocks(0))
        #: Slots a parent; 0: products are found by key.
        self.block = 4
        self.owners = np.zeros((0, 2), np.uint32)
        self.products_used = 0
        #: Whether products may be dropped at the limit: once between two rounds.
        self.may_prune = True
        self.keeps_moments = moments
        self.moments = [self._sums(len(self.slots[0])), self._sums(0)]
        self.joined = np.zeros(0, np.uint8) if picky else None

    def _sums(self, n_slots: int) -> NDArray[np.float64]:
        return np.zeros((n_slots if self.keeps_moments else 0, 3 + self.parameters.n_outputs))

    @property
    def row_limit(self) -> int:
        limit = super().row_limit
        return limit if self.bits is None else min(limit, 2**self.bits)

    @property
    def largest(self) -> int:
        """Slots that a table without blocks may have: 2**bits or the default, but no more than half of the memory."""
        each = self.slot_bytes + 8 + self.keeps_moments * 8 * (3 + self.parameters.n_outputs)
        room = self.parameters.memory // 2
        if self.bits is not None and self.parameters.n_outputs > 1:
            room = min(room, HASHED_BYTES)
        most = (room // each).bit_length() - 1
        return 1 << max(MIN_BITS, min(most, KEY_BITS if self.bits is None else self.bits))

    @property
    def may_wrap(self) -> bool:
        """Whether the table of single features ends at the number of slots that was asked for."""
        return self.bits is not None and self.row_limit == 1 << self.bits

    @property
    def wraps(self) -> bool:
        """Whether rows beyond the table share its slots; a row is still one feature as far as products go."""
        return self.may_wrap and len(self.slots[0]) == self.row_limit

    # ---- the kernel's view ----
    def describe(self, model: _native.OnlineStruct) -> None:
        """Point the kernel's struct at the tables."""
        super().describe(model)
        model.regions[0].hashed = self.wraps

    def describe_parents(self, model: _native.OnlineStruct, parents: Parents) -> None:
        """Point the structs of the kernel at the tables."""
        self.describe(model)
        model.regions[1] = region(self.slots[1], self.touched[1], self.hashed[1])
        struct = parents.describe()
        struct.block = self.block
        struct.owners = _native.address(self.owners)
        struct.keys = None if self.block or self.hashed[1] else _native.address(parents.keys)
        struct.used = self.products_used
        struct.limit = int(FULLEST * self.largest)
        # Full at the limit too, once a round, so that the weakest products can go; after that new ones are left out.
        struct.room = min(int(FULLEST * len(self.slots[1])), struct.limit - self.may_prune)
        struct.joined = None if self.joined is None else _native.address(self.joined)
        model.parents = _native.parents_pointer(struct)
        for i in (0, 1):
            model.moments[i] = _native.address(self.moments[i]) if self.keeps_moments else None

    def check_size(self, n_parents: int) -> None:
        """Refuse a table in which the core would look for products outside, or without end."""
        size = len(self.slots[1])
        if self.block:
            fits = self.block > 0 and n_parents * self.block <= size and not self.hashed[1]
        else:
            fits = size > 0 and size & (size - 1) == 0 and (self.hashed[1] or not self.owners_known().all())
        if not fits:
            raise ValueError(f"a table of {size:,} products does not go with {n_parents:,} parents")

    # ---- growing ----
    def grow_for(self, parents: Parents, n_rows: int) -> None:
        """Make room for rows 0 … n_rows - 1 and for their products."""
        if n_rows > len(self.slots[0]) and not self.wraps:
            # Rows of features by name end at the limit; columns by number may lie beyond, and then come in any order.
            limit, have = self.row_limit, len(self.slots[0])
            enough = n_rows if n_rows <= limit else n_rows + n_rows // 2
            size = max(enough, min(2 * have, limit), 1024)
            size = min(size, limit) if self.may_wrap and have < limit else size
            self._extend(0, size)
            self.moments[0] = _extended(self.moments[0], size if self.keeps_moments else 0)
        self.grow_blocks(parents, n_rows)

    def grow_blocks(self, parents: Parents, n_rows: int = 0) -> None:
        """Make room for the products of new parents, and for those of rows 0 … n_rows - 1."""
        if self.block and len(parents):
            self._widen_blocks(parents, n_rows)

    def leave_blocks(self, parents: Parents, rows: int, n_parents: int) -> None:
        """No blocks at all, where those of so many parents would be too large, or larger than what was asked for.

        That is foreseen before there are products: to widen blocks again and again costs more than to learn in them.
        """
        most = LARGEST_BLOCKS if self.bits is None else min(LARGEST_BLOCKS, self.largest)
        if self.block and TO_COME * rows * n_parents > most:
            self._to_keys(parents)

    def _widen_blocks(self, parents: Parents, n_rows: int) -> None:
        """Blocks of at least ``n_rows`` slots for all parents; whole cache lines, but no power of two of them."""
        block = self.block
        if n_rows > block:
            block = max(n_rows, block + block // 2 if block > 4 else 0)
            block = (-(-block // 4) | 1) * 4
        needed = len(parents) * block
        if needed > min(self.product_limit, LARGEST_BLOCKS * 16 // self.slot_bytes):
            self._to_keys(parents)
            return
        old, rows = self.block, len(self.slots[1]) // self.block
        if block == old:
            if needed > len(self.slots[1]):
                self._extend(1, needed)
                self.moments[1] = _extended(self.moments[1], needed if self.keeps_moments else 0)
                self.joined = None if self.joined is None else _extended(self.joined, needed)
            return

        def moved(array: NDArray[Any], grown: NDArray[Any]) -> NDArray[Any]:
            each = array.shape[1:]
            if rows and len(grown):
                grown.reshape(len(parents), block, *each)[:rows, :old] = array.reshape(rows, old, *each)
            return grown

        self._reserved.pop(1, None)
        self.slots[1] = moved(self.slots[1], self._empty(needed))
        self.touched[1] = moved(self.touched[1], self._clocks(needed))
        self.moments[1] = moved(self.moments[1], self._sums(needed))
        if self.joined is not None:
            self.joined = moved(self.joined, np.zeros(needed, np.uint8))
        self.block = block

    def _to_keys(self, parents: Parents) -> None:
        """Products from blocks to the table found by key, or to a hashed one."""
        used = self.used_products()
        if self.bits is not None:
            # Those of the parents that were chosen first are moved last, and stay.
            self._rebuild(self.largest, np.flip(used).copy(), parents, hashed=True)
            return
        used = self.strongest(used, parents)
        self._rebuild(self._size_for(len(used)), used, parents)

    def _size_for(self, products: int) -> int:
        wanted = max(MIN_BITS, int(products / FULLEST * 1.5).bit_length())
        return min(1 << wanted, self.largest)

    def grow_keys(self, parents: Parents) -> None:
        """Twice the slots; at the limit, the stronger half of the products instead."""
        used, size = np.flatnonzero(self.owners_known()), 2 * len(self.slots[1])
        if size > self.largest:
            size, used, self.may_prune = self.largest, self.strongest(used, parents), False
        self._rebuild(size, used, parents)

    def find_again(self, parents: Parents) -> None:
        """Put products where they are looked for: an earlier pomona looked for them in other slots."""
        self._rebuild(len(self.slots[1]), np.flatnonzero(self.owners_known()), parents)

    def strongest(self, slots: NDArray[np.int64], parents: Parents) -> NDArray[np.int64]:
        """Those of these products that can move predictions most, few enough for half the room at the limit."""
        most = int(FULLEST * self.largest / 2)
        if len(slots) <= most:
            return slots
        K = self.parameters.n_outputs
        weights = self.slots[1][slots, :1] if K == 1 else self.slots[1][slots, 4 : 4 + K]
        strength = np.abs(weights).max(axis=1)
        strength[np.isin(slots, self.places_of(parents), kind="table")] = np.inf  # parents stay
        least = np.partition(strength, len(slots) - most)[len(slots) - most]
        kept, ties = strength > least, np.flatnonzero(strength == least)
        # From the whole table alike: were one part left fuller, slots there would be looked for ever further away.
        room = most - int(np.count_nonzero(kept))
        kept[ties[np.arange(room) * len(ties) // max(room, 1)]] = True
        return np.asarray(slots[kept])

    def _rebuild(self, n_slots: int, used: NDArray[np.int64], parents: Parents, hashed: bool = False) -> None:
        """A table of ``n_slots`` found by key, or hashed, with these slots of the old one."""
        slots, clocks, owners = self._empty(n_slots), self._clocks(n_slots), zeros((n_slots, 2), np.uint32)
        struct = parents.describe()
        struct.block, struct.owners = self.block, self.owners.ctypes.data
        struct.keys = None if hashed else _native.address(parents.keys)
        places = _native.move_products(self.slots[1], struct, used, slots, owners, self._tag, hashed)
        if len(clocks):
            clocks[places] = self.touched[1][used]
        sums = self._sums(n_slots)
        if self.keeps_moments:
            sums[places] = self.moments[1][used]
        if self.joined is not None:
            joined = np.zeros(n_slots, np.uint8)
            joined[places] = self.joined[used]
            self.joined = joined
        self._reserved.pop(1, None)
        self.slots[1], self.touched[1], self.moments[1], self.owners = slots, clocks, sums, owners
        self.block, self.hashed[1] = 0, hashed
        self.products_used = len(used)

    def widen(self, parameters: OnlineParameters) -> None:
        """More outputs: the weights of the new classes start at zero, and so do their sums."""
        super().widen(parameters)
        self.moments = [np.pad(sums, ((0, 0), (0, 3 + parameters.n_outputs - sums.shape[1]))) for sums in self.moments]

    # ---- looking inside ----
    def owners_known(self) -> NDArray[np.bool_]:
        """Which slots of a table without blocks are taken."""
        tags = self.slots[1].view(np.uint32).reshape(len(self.slots[1]), self.parameters.stride, -1)
        return np.asarray(tags[:, self._tag, 0] != 0)

    @property
    def homes(self) -> int:
        """Products are looked for from multiples of this number on: four slots of 16 bytes are a cache line."""
        return 4 if self.slots[1].strides[0] == 16 else 1

    @property
    def _tag(self) -> int:
        """The number of a slot that holds the tag of its product: one that learning leaves alone."""
        return 3 if self.parameters.n_outputs == 1 else 1

    def appeared(self, table: int, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Slots of features that were learnt."""
        slots, single = self.slots[table][start:stop], self.parameters.n_outputs == 1
        if self.parameters.normalized:
            return start + np.flatnonzero(slots[:, 2 if single else 0] != 0)
        return start + np.flatnonzero(slots[:, :2].any(axis=1) if single else slots[:, 2:].any(axis=1))

    def rows_appeared(self) -> int:
        """How many rows there are up to the last base feature that was learnt, looked for from the end."""
        for stop in range(len(self.slots[0]), 0, -PIECE):
            met = self.appeared(0, max(stop - PIECE, 0), stop)
            if len(met):
                return int(met[-1]) + 1
        return 0

    def used_products(self) -> NDArray[np.int64]:
        """Slots of products that hold anything."""
        used = self.appeared(1)
        if self.keeps_moments:  # those on trial have moments alone
            used = np.union1d(used, np.flatnonzero(self.moments[1][:, 2]))
        return used

    def products_at(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Parent and row of the products in these slots."""
        if self.block:
            parents, rows = np.divmod(slots, self.block)
            return parents, rows
        owners = taken(self.owners, slots).astype(np.int64)
        return owners[:, 0], owners[:, 1]

    def parents_at(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Parent of the products in these slots."""
        return slots // self.block if self.block else taken(self.owners, slots)[:, 0].astype(np.int64)

    def places_of(self, parents: Parents) -> NDArray[np.int64]:
        """Slots of the products that are parents themselves, rising; those that have none are left out."""
        if self.block or self.hashed[1]:
            links = parents.links[parents.links[:, 0] != ROOT]
            if self.hashed[1]:
                return np.unique(hashed_places(links[:, 0], links[:, 1], len(self.slots[1])))
            places = links[:, 0] * self.block + links[:, 1]
            places = places[places < len(self.slots[1])]
        else:
            places = _native.find_products(self.slots[1], parents.keys[parents.degrees > 1], self._tag)
            places = places[places >= 0]
        return np.sort(places)

    def forget_moments(self) -> None:
        """Sums start at zero again in each epoch."""
        for sums in self.moments:
            sums[:] = 0.0


def hashed_places(parents: NDArray[np.int64], rows: NDArray[np.int64], n_slots: int) -> NDArray[np.int64]:
    """Slots of the products of these parents and rows in a hashed table: ``start_of_products`` in ``native/hash.h``."""
    starts = (_native.mix((parents >> 2).astype(np.uint64)) << np.uint64(2)).astype(np.int64) | (parents & 3)
    return np.asarray((starts + 4 * rows) & (n_slots - 1))


def _extended(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
