"""Chunks kept from one pass to the next: in memory as far as it goes, then in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from pomona.chunk import Chunk, RowChunk

if TYPE_CHECKING:
    from pomona.source.cache import CachingSource


class KeptChunks:
    """Prepared chunks that can be read again without parsing, encoding or looking features up.

    Parameters
    ----------
    first_pass : the chunks, made while they are first read.
    memory : bytes to keep in memory; what is beyond goes to a temporary file, removed by ``close``.
    """

    def __init__(self, first_pass: Iterator[Chunk], memory: int) -> None:
        self._first_pass: Iterator[Chunk] | None = first_pass
        self._memory = memory
        self._kept: list[Chunk] = []
        self._rest: CachingSource | None = None

    def chunks(self) -> Iterator[Chunk]:
        """One pass."""
        if self._first_pass is None:
            yield from self._kept
        else:
            first_pass, self._first_pass = self._first_pass, None
            for chunk in first_pass:
                self._kept.append(chunk)
                self._memory -= _nbytes(chunk)
                yield chunk
                if self._memory < 0:
                    self._rest = _cached(first_pass)
                    break
        if self._rest is not None:
            for chunk in self._rest.chunks():
                # The file gives plain chunks back; that they are in the learner's terms is known here.
                yield RowChunk(**{field.name: getattr(chunk, field.name) for field in fields(Chunk)})

    def close(self) -> None:
        """Remove the temporary file."""
        if self._rest is not None:
            self._rest.close()

    def __enter__(self) -> KeptChunks:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


def _nbytes(chunk: Chunk) -> int:
    first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
    each = 4 + chunk.indices.itemsize + 2 * (chunk.fields is not None) + 4 * (chunk.rows is not None)
    return len(chunk) * 24 + (last - first) * each


class _Rest:
    """What is left of the first pass, as a source."""

    reads_cheaply = rewinds = False

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self.name = "<cache>"
        self.n_examples: int | None = None
        self._chunks = chunks
        self.fields: list[str] = []

    def chunks(self) -> Iterator[Chunk]:
        return self._chunks

    def fraction_read(self) -> float | None:
        return None


def _cached(chunks: Iterator[Chunk]) -> CachingSource:
    from pomona.source.cache import CachingSource  # needs pyarrow, which small data does not

    return CachingSource(_Rest(chunks))
