"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pomona.errors import PomonaError
from pomona.words import error_words


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends without an error.

    The bytes go to a temporary name in the same folder, are forced to the disk and renamed; on any error,
    Ctrl-C included, the temporary file is removed and an old file at ``path`` stays as it was. Devices and
    pipes are written directly. An :class:`OSError` becomes a :class:`~pomona.errors.PomonaError` that names
    the file.

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
    temporary: Path | None = None
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            if target.is_dir():
                raise PomonaError(f"cannot write {shown}: it is a folder")
            # Renaming over /dev/null would destroy the device.
            with open(target, "wb") as file:
                yield file
            return
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        temporary = None
        _sync_folder(target.parent)
    except OSError as error:
        # An error with a name of its own is about another file: the block was reading.
        if error.filename not in (None, str(temporary), str(target)):
            raise
        raise PomonaError(f"cannot write {shown}: {_reason(error, target)}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


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
