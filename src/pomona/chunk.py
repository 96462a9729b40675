"""The unit of data that flows through pomona."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

#: So few are learnt in the time that it takes to start a thread and to wait for it.
FEW_FEATURES = 1 << 20


@dataclass(frozen=True, eq=False)
class PackedNames(Sequence[str]):
    """Many names in one array of UTF-8 bytes; name i ends at ``ends[i]``."""

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def pack(cls, names: Sequence[str]) -> PackedNames:
        encoded = [name.encode("utf-8", "backslashreplace") for name in names]
        ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    @classmethod
    def join(cls, parts: Sequence[PackedNames]) -> PackedNames:
        if not parts:
            return cls(np.zeros(0, np.uint8), np.zeros(0, np.int64))
        starts = np.cumsum([0] + [len(part.text) for part in parts[:-1]])
        ends = [part.ends + start for part, start in zip(parts, starts.tolist(), strict=True)]
        return cls(np.concatenate([part.text for part in parts]), np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(f"there are {len(self)} names, got the index {i}")
        start = int(self.ends[i - 1]) if i else 0
        return self.text[start : int(self.ends[i])].tobytes().decode("utf-8", "backslashreplace")


#: Names of the features at the given positions of ``Chunk.indices``.
NameLookup = Callable[[NDArray[np.int64]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some thousand examples as sparse rows (CSR), with labels and weights.

    ``indices`` says which feature a value belongs to, in one of two ways, told apart by its type:

    * ``uint64``: well-mixed 64-bit ids of an open set of features (hashed names);
    * ``uint32``: columns 0 … d-1 of a closed set, as in an array.

    No row holds an index twice. Values of zero are allowed and mean the same as absence.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint64] | NDArray[np.uint32]
    values: NDArray[np.float32]
    #: Raw targets, numbers or strings: a :class:`pomona.task.Task` turns them into what a learner needs.
    labels: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    #: Number of the field (namespace or column) of each feature; None where there is but one field.
    fields: NDArray[np.uint16] | None = None
    #: Start value of the prediction, as in a VW "base".
    offsets: NDArray[np.float64] | None = None
    #: Looks names up, where the source knows them; needed only for features never met before.
    names: NameLookup | None = None
    #: One tag an example, where the source has them.
    tags: list[str] | None = None
    #: Line (or row) of the first example in its file, for messages; 0 when unknown.
    first_line: int = 0
    file: str = ""
    #: Rows of the indices in the tables of the learner that asked the source to look them up; see ``Source.look_up``.
    rows: NDArray[np.uint32] | None = None
    #: How many columns there are, where the indices are columns and the source knows; 0: unknown.
    width: int = 0

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    def slice(self, start: int, stop: int) -> Chunk:
        """Rows ``start`` to ``stop`` as views of the same arrays (``indptr`` need not begin at 0)."""

        def part(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if array is None else array[start:stop]

        return replace(
            self,
            indptr=self.indptr[start : stop + 1],
            labels=part(self.labels),
            weights=part(self.weights),
            offsets=part(self.offsets),
            tags=None if self.tags is None else self.tags[start:stop],
            first_line=self.first_line + start if self.first_line else 0,
        )


class RowChunk(Chunk):
    """A chunk whose indices are rows in the tables of one learner: see ``Learner.prepare``.

    Where they are columns and the table is hashed, ``rows`` may hold their keys.
    """

    __slots__ = ()


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """The examples of several chunks of one kind as one; names, tags and places in files are dropped."""
    if len(chunks) == 1:
        return replace(chunks[0], names=None, tags=None)

    def nonzeros(array: NDArray[Any], chunk: Chunk) -> NDArray[Any]:
        return array[int(chunk.indptr[0]) : int(chunk.indptr[-1])]

    def joined(name: str, default: float | None, flat: bool = False) -> NDArray[Any] | None:
        arrays = [getattr(chunk, name) for chunk in chunks]
        if all(array is None for array in arrays):
            return None
        if default is not None:
            pairs = zip(arrays, chunks, strict=True)
            arrays = [np.full(len(chunk), default) if array is None else array for array, chunk in pairs]
        if flat:
            arrays = [nonzeros(array, chunk) for array, chunk in zip(arrays, chunks, strict=True)]
        return np.concatenate(arrays)

    lengths = np.concatenate([np.diff(chunk.indptr) for chunk in chunks])
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return type(chunks[0])(
        indptr,
        np.concatenate([nonzeros(chunk.indices, chunk) for chunk in chunks]),
        np.concatenate([nonzeros(chunk.values, chunk) for chunk in chunks]),
        labels=joined("labels", None),
        weights=joined("weights", 1.0),
        fields=joined("fields", None, flat=True),
        offsets=joined("offsets", 0.0),
    )


#: Rows of ids in the tables of a learner, made on any thread; None where it has none.
LookUp = Callable[[NDArray[np.uint64]], NDArray[np.uint32] | None]


class Source(Protocol):
    """Data that can be read again and again, a chunk at a time, in bounded memory.

    A source that works on threads of its own may have an attribute ``look_up``, a :data:`LookUp` or None: what fills
    ``Chunk.rows`` there.
    """

    @property
    def name(self) -> str:
        """What to call it in messages and progress lines."""
        ...

    @property
    def fields(self) -> list[str]:
        """Names of the fields that ``Chunk.fields`` numbers; may grow while chunks are read."""
        ...

    @property
    def n_examples(self) -> int | None:
        """Examples in the source, where that is known without reading it."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """One pass over the data, from the beginning."""
        ...

    def fraction_read(self) -> float | None:
        """How much of the running pass is behind us, 0 to 1; None when unknown."""
        ...

    @property
    def reads_cheaply(self) -> bool:
        """Whether a further pass costs little, so that parsed chunks need no cache."""
        ...

    @property
    def rewinds(self) -> bool:
        """Whether a second pass is possible (standard input: no)."""
        ...
