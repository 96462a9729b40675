"""Text files in blocks of whole lines, parsed on several threads and handed on in order."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona._buffers import BufferPool
from pomona.chunk import Chunk, LookUp
from pomona.errors import DataFormatError, OptionError
from pomona.options import ReadOptions
from pomona.source.files import InputFile, Stream, empty_file, guess_lines

#: Bytes of text parsed at once: large enough to hide the cost of a call, small enough for the caches.
BLOCK_BYTES = 1 << 22
#: The first blocks of a file are shorter, so that learning need not wait long: this size, then twice as much each.
FIRST_BYTES = 1 << 20
#: The longest line that is read.
MAX_LINE = 1 << 30
#: Blocks that threads may be ahead of the reader of the chunks, beside one each: with more, all of them together
#: leave the caches, and the first need more fresh memory.
AHEAD = 1

_BOM = b"\xef\xbb\xbf"
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of one file; the last byte is a newline."""

    text: NDArray[np.uint8]
    file: str
    #: Whether the file begins here.
    first: bool
    #: Bytes taken so far from all files, before decompression.
    consumed: int
    compressed: bool


def read_blocks(files: Sequence[InputFile], size: int) -> Generator[Block, None, None]:
    """Cut files into blocks of about ``size`` bytes. A line that is longer makes its block grow."""
    behind = 0
    for file in files:
        stream = file.open()
        try:
            first = True
            for text in _whole_lines(stream, size, file.name):
                if first and text[: len(_BOM)].tobytes() == _BOM:
                    text = text[len(_BOM) :] if len(text) > len(_BOM) else np.frombuffer(b"\n", np.uint8)
                yield Block(text, file.name, first, behind + stream.consumed, stream.compression is not None)
                first = False
            if first:
                raise empty_file(file.name)
            behind += stream.consumed
        finally:
            stream.close()


_buffers = BufferPool()


def _whole_lines(stream: Stream, size: int, name: str) -> Iterator[NDArray[np.uint8]]:
    """Texts that end with a line; what follows the last newline of one is copied to the start of the next."""
    rest, most = np.empty(0, np.uint8), size
    if stream.compression is None:  # a damaged archive shall be found out before its text is looked at
        size = min(size, FIRST_BYTES)
    while True:
        room = _buffers.array(len(rest) + size, np.uint8)
        room[: len(rest)] = rest
        filled = len(rest) + stream.readinto(room[len(rest) :].data)
        if filled == len(rest):
            break
        stop = _after_last_newline(room, len(rest), filled)
        if stop:
            yield room[:stop]
            rest, size = room[stop:filled].copy(), max(size, min(2 * size, most))
        elif filled > MAX_LINE:
            raise DataFormatError(f"a line may have at most {MAX_LINE} bytes: is this a text file?", file=name)
        else:
            rest, size = room[:filled], max(size, filled)
    if len(rest):
        yield np.append(rest, np.uint8(ord("\n")))


def _after_last_newline(text: NDArray[np.uint8], first: int, stop: int) -> int:
    """Where the last line of ``text[first:stop]`` ends; 0 when none does."""
    step = 1 << 12
    while stop > first:
        start = max(first, stop - step)
        found = text[start:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
        stop, step = start, 4 * step
    return 0


class _End:
    """Stands behind the last result."""


class OrderedMap(Generic[T, R]):
    """``work`` over items on some threads; the results come in the order of the items.

    At most ``ahead`` items are in work or wait to be fetched. An exception, from the items or from the work,
    is raised where its result would have been. ``close`` stops the threads; they are daemons, so one that
    waits for input for ever does not keep the process alive.
    """

    def __init__(self, items: Iterator[T], work: Callable[[T], R], threads: int, ahead: int) -> None:
        self._items, self._work = items, work
        self._taking = threading.Lock()
        self._taken = 0
        self._ended = False
        #: One True for each item that may be taken; False: there are no more.
        self._room: SimpleQueue[bool] = SimpleQueue()
        for _ in range(ahead):
            self._room.put(True)
        #: Results as they come, with the numbers of their items; at the end, how many there are.
        self._done: SimpleQueue[tuple[int, R | BaseException | _End]] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"pomona-parse-{i}", daemon=True) for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while self._room.get() and (taken := self._take()) is not None:
            index, item = taken
            try:
                result: R | BaseException = self._work(item)
            except BaseException as error:
                result = error
            del item, taken
            self._done.put((index, result))
            del result
        self._room.put(False)  # for the next thread

    def _take(self) -> tuple[int, T] | None:
        with self._taking:
            if self._ended:
                return None
            try:
                item = next(self._items)
            except BaseException as error:
                self._ended = True
                if not isinstance(error, StopIteration):
                    self._done.put((self._taken, error))
                    self._taken += 1
                self._done.put((self._taken, _End()))
                return None
            self._taken += 1
            return self._taken - 1, item

    def __iter__(self) -> Generator[R, None, None]:
        early: dict[int, R | BaseException] = {}
        total = -1
        try:
            for wanted in itertools.count():
                while wanted not in early and wanted != total:
                    index, result = self._done.get()
                    if isinstance(result, _End):
                        total = index
                    else:
                        early[index] = result
                if wanted == total:
                    return
                result = early.pop(wanted)
                self._room.put(True)
                if isinstance(result, BaseException):
                    raise result
                yield result
                del result
        finally:
            self.close()

    def close(self, timeout: float = 1.0) -> None:
        self._ended = True
        self._room.put(False)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        close = getattr(self._items, "close", None)
        if close is not None and not any(thread.is_alive() for thread in self._threads):
            close()


class BlockParser(Protocol):
    """What a text format is to a :class:`TextSource`."""

    fields: list[str]
    #: Bytes a block should have.
    block_bytes: int
    #: Whether a label is a number.
    plain_labels: bool

    def parse(self, text: NDArray[np.uint8]) -> _native.TextRows | _native.TextError:
        """The rows of whole lines. Called on any thread, for blocks in any order."""
        ...

    def chunk(self, text: NDArray[np.uint8], rows: _native.TextRows, file: str, first_line: int) -> Chunk:
        """Called for one block after the other."""
        ...


class TextSource:
    """Examples from text files, in the order in which they stand there."""

    n_examples: int | None = None
    look_up: LookUp | None = None

    def __init__(self, paths: Sequence[str], parser: BlockParser, options: ReadOptions) -> None:
        if options.threads is not None and options.threads < 1:
            raise OptionError(f"threads must be at least 1, got {options.threads}")
        files = self._files = [InputFile(path) for path in paths]
        self.name = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
        self._parser = parser
        self._threads = options.threads or available_cores()
        self._skips = options.on_error == "skip"
        self._consumed = 0
        sizes = [file.size for file in files]
        self._size = None if None in sizes else sum(size for size in sizes if size is not None)
        #: Malformed lines left out in the running or last pass, and where and why the first of them.
        self.n_skipped = 0
        self.first_skipped: DataFormatError | None = None

    @property
    def fields(self) -> list[str]:
        return self._parser.fields

    @property
    def rewinds(self) -> bool:
        return not any(file.is_stdin for file in self._files)

    @property
    def reads_cheaply(self) -> bool:
        return False

    def guess_examples(self) -> int | None:
        """About how many examples there are, where the files tell."""
        return guess_lines(self._files)

    def fraction_read(self) -> float | None:
        return None if not self._size else min(1.0, self._consumed / self._size)

    def first_labels(self, rows: int) -> NDArray[np.float64] | None:
        """Labels of the first examples, found without reading features; None where that cannot be done.

        Only files that can be read from the start again, without decompression, are looked at, and only lines
        that begin with a plain number.
        """
        if self._skips or not self.rewinds or not self._parser.plain_labels:
            return None
        found, n = [], 0
        with contextlib.closing(read_blocks(self._files, self._parser.block_bytes)) as blocks:
            for block in blocks:
                labels = None if block.compressed else _native.text_labels(block.text, rows - n)
                if labels is None:
                    return None
                found.append(labels)
                n += len(labels)
                if n >= rows:
                    break
        return np.concatenate(found)

    def chunks(self) -> Iterator[Chunk]:
        """One pass over the files.

        Raises
        ------
        DataFormatError
            with file, line and column, for the first malformed line, unless such lines are skipped.
        """
        self._consumed = self.n_skipped = 0
        self.first_skipped = None
        blocks = read_blocks(self._files, self._parser.block_bytes)
        parsed = OrderedMap(blocks, self._parse, self._threads, self._threads + AHEAD)
        line = 1
        with contextlib.closing(iter(parsed)) as results:
            for block, rows, found in results:
                if block.first:
                    line = 1
                if isinstance(rows, _native.TextError):
                    raise _error(rows, block.file, line)
                if rows.error is not None:
                    self.n_skipped += rows.n_bad
                    self.first_skipped = self.first_skipped or _error(rows.error, block.file, line)
                self._consumed = block.consumed
                if len(rows.labels):
                    chunk = self._parser.chunk(block.text, rows, block.file, line + rows.first_line)
                    yield chunk if found is None else replace(chunk, rows=found)
                line += rows.n_lines

    def _parse(self, block: Block) -> tuple[Block, _native.TextRows | _native.TextError, NDArray[np.uint32] | None]:
        rows = self._parser.parse(block.text)
        if self.look_up is None or isinstance(rows, _native.TextError):
            return block, rows, None
        return block, rows, self.look_up(rows.ids)


def _error(error: _native.TextError, file: str, first_line: int) -> DataFormatError:
    return DataFormatError(error.message, file=file, line=first_line + error.line, column=error.column + 1)


def available_cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
