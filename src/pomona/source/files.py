"""Files as streams of bytes: plain or compressed, by path, pattern, directory, or from standard input."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from pomona.errors import DataFormatError, OptionError

T = TypeVar("T")
STDIN = "-"
#: Bytes asked of a file at once.
READ_BYTES = 1 << 18

#: Bytes from which the number of lines is guessed.
GUESS_BYTES = 1 << 20

#: First bytes of a compressed file, and the name of the compression.
COMPRESSIONS: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    *((b"BZh%d\x31\x41\x59\x26\x53\x59" % level, "bz2") for level in range(1, 10)),
    *((b"BZh%d\x17\x72\x45\x38\x50\x90" % level, "bz2") for level in range(1, 10)),
)
COMPRESSION_SUFFIXES = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".lz4", ".bz2")


class _Counted:
    """A raw file that says how many bytes were taken from it, and can be given some back."""

    closed = False

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._head = raw, b""
        self.count = 0

    def push_back(self, data: bytes) -> None:
        self._head = data + self._head
        self.count -= len(data)

    def read(self, size: int = -1) -> bytes:
        data, self._head = self._head, b""
        if not data:
            data = self._raw.read(size)
        elif 0 <= size < len(data):
            data, self._head = data[:size], data[size:]
        self.count += len(data)
        return data

    def readinto(self, room: memoryview) -> int:
        if self._head:
            data = self.read(len(room))
            room[: len(data)] = data
            return len(data)
        size = cast(Any, self._raw).readinto(room)
        self.count += size
        return int(size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def flush(self) -> None: ...

    def close(self) -> None:
        self._raw.close()
        self.closed = True


def _gzip(raw: Any) -> Any:
    import gzip

    return gzip.GzipFile(fileobj=raw, mode="rb")


def _bz2(raw: Any) -> Any:
    import bz2

    return bz2.BZ2File(raw)


def _xz(raw: Any) -> Any:
    import lzma

    return lzma.LZMAFile(raw)


def _arrow(compression: str) -> Callable[[Any], Any]:
    def open_stream(raw: Any) -> Any:
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), compression)

    return open_stream


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "gzip": _gzip,
    "bz2": _bz2,
    "xz": _xz,
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
}


class Stream:
    """The decompressed bytes of one file."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self._raw = _Counted(raw)
        self._name = name
        self.compression: str | None = None
        self.compression = self._find_compression()
        self._body: Any = _OPENERS[self.compression](self._raw) if self.compression else self._raw
        self._peeked = b""

    def _find_compression(self) -> str | None:
        head = b""
        # No more than can decide: a pipe may have but one short line to give for now.
        while any(len(head) < len(magic) and magic.startswith(head) for magic, _ in COMPRESSIONS):
            more = self._guarded(lambda: self._raw.read(READ_BYTES))
            if not more:
                break
            head += more
        self._raw.push_back(head)
        return next((name for magic, name in COMPRESSIONS if head.startswith(magic)), None)

    @property
    def consumed(self) -> int:
        """Bytes taken from the file so far, before decompression."""
        return self._raw.count

    def peek(self, size: int, *, one_line: bool = False) -> bytes:
        """The next bytes, up to ``size`` (or less, once they hold a line); they will be read again."""
        while len(self._peeked) < size and not (one_line and b"\n" in self._peeked):
            more = self._read(size - len(self._peeked))
            if not more:
                break
            self._peeked += more
        return self._peeked[:size]

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, as many as are there; none at the end."""
        if self._peeked:
            data, self._peeked = self._peeked[:size], self._peeked[size:]
            return data
        return self._read(size)

    def readinto(self, room: memoryview) -> int:
        """Fill the room as far as bytes are there; says how many, none at the end."""
        if self._peeked:
            data, self._peeked = self._peeked[: len(room)], self._peeked[len(room) :]
            room[: len(data)] = data
            return len(data)
        return self._guarded(lambda: int(self._body.readinto(room)))

    def _read(self, size: int) -> bytes:
        return self._guarded(lambda: cast(bytes, self._body.read(size)))

    def _guarded(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except EOFError:
            raise self._damaged("ends too early") from None
        except OSError as error:
            if self._raw.count == 0 or error.errno is not None:
                raise type(error)(f"{self._name}: cannot be read: {error.strerror or error}") from error
            cut = "runcated" in str(error)
            raise self._damaged("ends too early" if cut else "is damaged") from error
        except Exception as error:
            # zlib.error and lzma.LZMAError have no common base, and are not imported unless they are needed.
            if type(error).__module__ in ("zlib", "_lzma", "lzma"):
                raise self._damaged("is damaged") from error
            raise

    def _damaged(self, how: str) -> DataFormatError:
        return DataFormatError(f"the {self.compression} data {how}: make or fetch the file again", file=self._name)

    def close(self) -> None:
        if self._body is not self._raw:
            self._body.close()
        self._raw.close()


class _Stdin:
    """Standard input, of which there is one: opened once, perhaps to look at its beginning, and then read."""

    def __init__(self) -> None:
        self._waiting: Stream | None = None
        self._used = False

    def open(self) -> Stream:
        stream, self._waiting = self._waiting, None
        if stream is not None:
            return stream
        if self._used:
            raise OptionError("standard input can be read only once: give a file for several passes")
        self._used = True
        # Unbuffered and without Python's lock on sys.stdin: a thread that waits here can be left behind.
        return Stream(cast(BinaryIO, open(0, "rb", buffering=0, closefd=False)), "<stdin>")

    def give_back(self, stream: Stream) -> None:
        self._waiting = stream


_stdin = _Stdin()


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file, or standard input, that can be opened for reading."""

    path: str

    @property
    def is_stdin(self) -> bool:
        return self.path == STDIN

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return "<stdin>" if self.is_stdin else self.path

    @property
    def size(self) -> int | None:
        """Bytes of the file as it is stored; None when unknown."""
        if self.is_stdin:
            return None
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_size or None

    def open(self) -> Stream:
        """Start reading from the beginning. Standard input can be opened once."""
        if self.is_stdin:
            return _stdin.open()
        try:
            return Stream(cast(BinaryIO, open(self.path, "rb", buffering=0)), self.name)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}: the file does not exist") from None
        except PermissionError:
            raise PermissionError(f"{self.path}: no permission to read the file") from None
        except IsADirectoryError:
            raise IsADirectoryError(f"{self.path}: is a directory, not a file") from None

    def head(self, size: int = 1 << 16) -> bytes:
        """The first decompressed bytes."""
        stream = self.open()
        try:
            # Lines typed or piped one by one shall not have to wait for more.
            head = stream.peek(size, one_line=self.is_stdin)
        except BaseException:
            stream.close()
            raise
        if self.is_stdin:
            _stdin.give_back(stream)
        else:
            stream.close()
        if not head:
            raise empty_file(self.name)
        return head

    def suffix(self) -> str:
        """The last suffix in lower case, that of a compression left out."""
        path = Path(self.path.lower())
        if path.suffix in COMPRESSION_SUFFIXES:
            path = path.with_suffix("")
        return path.suffix


def empty_file(name: str) -> DataFormatError:
    return DataFormatError("the file is empty: expected at least one example", file=name)


def guess_lines(files: Sequence[InputFile]) -> int | None:
    """About how many lines the files have, from the mean length of the first ones; None when that cannot be told."""
    total = 0.0
    for file in files:
        size = file.size
        if size is None:
            return None
        stream = file.open()
        try:
            if stream.compression:
                return None
            head = stream.peek(GUESS_BYTES)
        finally:
            stream.close()
        total += size / len(head) * head.count(b"\n") if len(head) < size else head.count(b"\n")
    return round(total)


def is_path(data: object) -> bool:
    return isinstance(data, (str, os.PathLike))


def find_files(data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Files that a path, a pattern, a directory, or a list of these stands for, in a fixed order.

    The files of a pattern or directory are sorted by name; in a directory and those below it, names that
    begin with ``.`` or ``_`` are left out.
    """
    if isinstance(data, (str, os.PathLike)):
        return _expand(os.fspath(data))
    files = [file for item in data for file in find_files(item)]
    if not files:
        raise OptionError("expected at least one file, got an empty list")
    if len(files) > 1 and STDIN in files:
        raise OptionError("standard input cannot be read together with other files: give '-' alone")
    return files


def _expand(path: str) -> list[str]:
    if path == STDIN:
        return [path]
    if os.path.isdir(path):
        found = sorted(os.path.join(folder, name) for folder, name in _walk(path))
        if not found:
            raise FileNotFoundError(f"{path}: the directory holds no files")
        return found
    if glob.has_magic(path) and not os.path.exists(path):
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not found:
            raise FileNotFoundError(f"{path}: no file matches the pattern")
        return found
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: the file does not exist")
    return [path]


def _walk(top: str) -> list[tuple[str, str]]:
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [(folder, name) for name in names if not name.startswith((".", "_"))]
    return found
