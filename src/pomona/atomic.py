"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pomona.errors import PomonaError
from pomona.words import error_words


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends without an error.

    The bytes go to a temporary name in the same folder, are forced to the disk and renamed; on any error,
    Ctrl-C included, the temporary file is removed and an old file at ``path`` stays as it was. Devices and
    pipes are written directly. A failure to write is a :class:`~pomona.errors.PomonaError` that names the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.txt"
    >>> with replacing(path) as file:
    ...     _ = file.write(b"0.5")
    ...     print(path.exists())
    False
    >>> path.read_bytes()
    b'0.5'
    """
    shown = os.fspath(path)
    # A link stays a link: the file it points to is replaced.
    target = Path(os.path.realpath(shown))
    if target.is_dir():
        raise PomonaError(f"cannot write {shown}: it is a folder")
    # Renaming over /dev/null would destroy the device.
    direct = target.exists() and not target.is_file()
    name = target if direct else target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with _explained(shown, target):
            raw = _Output(name, "w" if direct else "x", shown, target)
        with io.BufferedWriter(raw) as file:
            yield file
            file.flush()
            if not direct:
                with _explained(shown, target):
                    os.fsync(raw.fileno())
        if not direct:
            with _explained(shown, target):
                os.replace(name, target)
            _sync_folder(target.parent)
    finally:
        if not direct:
            with contextlib.suppress(OSError):
                name.unlink()


class _Output(io.FileIO):
    """A file whose failures to write name it; those of other files, read meanwhile, stay what they are."""

    def __init__(self, name: Path, mode: str, shown: str, target: Path) -> None:
        super().__init__(name, mode)
        self._shown, self._target = shown, target

    def write(self, data: Any) -> int:
        with _explained(self._shown, self._target):
            return super().write(data)


@contextlib.contextmanager
def _explained(shown: str, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PomonaError(f"cannot write {shown}: {_reason(error, target)}") from error


def _reason(error: OSError, target: Path) -> str:
    if isinstance(error, FileNotFoundError):
        return f"the folder {target.parent} does not exist"
    if isinstance(error, NotADirectoryError):
        return f"{target.parent} is not a folder"
    return error_words(error)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last; not every file system can, and the file is complete either way."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Complain now rather than after hours of work if ``path`` cannot be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise PomonaError(f"cannot write {os.fspath(path)}: it is a folder")
    if not target.parent.is_dir():
        raise PomonaError(f"cannot write {os.fspath(path)}: the folder {target.parent} does not exist")
    if not os.access(target.parent if not target.exists() or target.is_file() else target, os.W_OK):
        raise PomonaError(f"cannot write {os.fspath(path)}: permission denied")
