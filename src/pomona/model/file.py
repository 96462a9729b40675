"""The model file: one safetensors file that is complete, checked, and never executed.

The layout is that of safetensors: eight bytes with the length of a JSON table, the table, then the arrays.
It is written here so that arrays go to the disk and come back without a second copy, and are checked on the
way. The table's ``__metadata__`` has two strings: ``pomona``, a JSON object with ``format``, ``version``,
``created_by``, the header of the :class:`~pomona.learner.State` and a check sum for each array (over its
name, type, shape and bytes); and ``crc``, the check sum of that string.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pomona
from pomona.atomic import replacing
from pomona.errors import ModelFileError
from pomona.learner import State
from pomona.words import error_words

FORMAT = "pomona"
VERSION = 1

_CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items()}
#: Every file begins so, after the eight bytes of the length.
_START = b'{"__metadata__":{"pomona":'
#: Reading and writing move this many bytes at a time, so that check sums work on what is still in the cache.
_BLOCK = 1 << 22


def save(path: str | os.PathLike[str], state: State) -> None:
    """Write a model; the file appears complete or not at all, and an old one survives any error."""
    arrays = {name: _little_endian(name, array) for name, array in state.arrays.items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "created_by": f"pomona {pomona.__version__}",
        "header": state.header,
        "crc": {name: _checksum(name, array) for name, array in arrays.items()},
    }
    text = json.dumps(header, separators=(",", ":"), default=_plain)
    table: dict[str, Any] = {"__metadata__": {"pomona": text, "crc": f"{zlib.crc32(text.encode()):08x}"}}
    position = 0
    for name, array in arrays.items():
        table[name] = {
            "dtype": _CODES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    encoded = json.dumps(table, separators=(",", ":")).encode()
    # Arrays begin at a multiple of eight bytes.
    encoded += b" " * (-len(encoded) % 8)
    with replacing(path) as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for array in arrays.values():
            file.write(_bytes(array))


def load(path: str | os.PathLike[str]) -> State:
    """Read a model back.

    Raises
    ------
    ModelFileError
        The file is missing, truncated, damaged, newer than this program, or something else altogether.
    """
    with _opened(path) as reader:
        return reader.state()


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Who made a model file, in which version of the format, and its size in bytes; arrays are not read."""
    with _opened(path) as reader:
        header = reader.header(reader.table()["__metadata__"])
        return {"made_by": header["created_by"], "version": header["version"], "bytes": reader.size}


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Reader]:
    shown = os.fspath(path)
    try:
        with open(path, "rb") as file:
            yield _Reader(shown, file)
    except OSError as error:
        raise ModelFileError(f"{shown}: cannot read the model: {error_words(error)}") from error


class _Reader:
    """Reads one model file, distrusting every byte of it."""

    def __init__(self, name: str, file: io.BufferedReader) -> None:
        self.name, self.file = name, file
        self.size = os.fstat(file.fileno()).st_size

    def state(self) -> State:
        table = self.table()
        header = self.header(table.pop("__metadata__"))
        arrays = {}
        position = 0
        for name, entry in table.items():
            arrays[name] = self._array(name, entry, position, header["crc"])
            position += arrays[name].nbytes
        if missing := set(header["crc"]) - set(arrays):
            raise self._damaged(f"the array {min(missing)!r} is missing")
        if extra := self.size - self.file.tell():
            raise self._damaged(f"{extra:,} bytes follow its end")
        return State(header["header"], arrays)

    def table(self) -> dict[str, Any]:
        """The table of safetensors, sure to be a pomona model's."""
        start = self.file.read(8 + len(_START))
        if not start:
            raise ModelFileError(f"{self.name}: not a pomona model: the file is empty")
        length = int.from_bytes(start[:8], "little")
        ours = start[8:] == _START
        if not ours and (len(start) < 8 + len(_START) or not start.startswith(b'{"', 8)):
            raise ModelFileError(f"{self.name}: not a pomona model")
        if 8 + length > self.size:
            if not ours:
                raise ModelFileError(f"{self.name}: not a pomona model")
            raise self._cut_short(8 + length)
        try:
            table = json.loads(start[8:] + self.file.read(max(length - len(_START), 0)))
        except (ValueError, RecursionError):
            raise (
                self._damaged("its header is not readable")
                if ours
                else ModelFileError(f"{self.name}: not a pomona model")
            ) from None
        if not isinstance(table, dict) or not isinstance(table.get("__metadata__"), dict):
            raise ModelFileError(f"{self.name}: not a pomona model, though it looks like a safetensors file")
        return table

    def header(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The header of the model, sure to be whole and of a version that can be read."""
        text = metadata.get("pomona")
        if not isinstance(text, str):
            raise ModelFileError(f"{self.name}: not a pomona model, though it looks like a safetensors file")
        if metadata.get("crc") != f"{zlib.crc32(text.encode(errors='replace')):08x}":
            raise self._damaged("its header fails the check")
        header: dict[str, Any] = json.loads(text)
        if header["version"] > VERSION:
            raise ModelFileError(
                f"{self.name}: the model has format version {header['version']} (made by"
                f" {header['created_by']}), but pomona {pomona.__version__} reads versions up to {VERSION}:"
                " install a newer pomona"
            )
        return header

    def _array(self, name: str, entry: Any, position: int, checksums: dict[str, int]) -> NDArray[Any]:
        try:
            dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
            count = 1
            for length in shape:
                if type(length) is not int or length < 0:
                    raise ValueError
                count *= length
            if entry["data_offsets"] != [position, position + count * dtype.itemsize]:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise self._damaged(f"the array {name!r} is described wrongly") from None
        if (end := self.file.tell() + count * dtype.itemsize) > self.size:
            raise self._cut_short(end)
        array: NDArray[Any] = np.empty(shape, dtype)
        if self.file.readinto(_bytes(array)) != array.nbytes:
            raise self._cut_short(end)
        if checksums.get(name) != _checksum(name, array):
            raise self._damaged(f"the array {name!r} fails its check")
        return array

    def _cut_short(self, needed: int) -> ModelFileError:
        return ModelFileError(
            f"{self.name}: the model file is cut short: {self.size:,} bytes where at least {needed:,} are"
            " needed; copy it again or train anew"
        )

    def _damaged(self, how: str) -> ModelFileError:
        return ModelFileError(f"{self.name}: the model file is damaged: {how}; copy it again or train anew")


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.name not in _CODES:
        raise TypeError(f"the array {name!r} has the type {array.dtype}, which a model file cannot hold")
    # Not ascontiguousarray: that gives an array without dimensions one.
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(name: str, array: NDArray[Any]) -> int:
    description = json.dumps([name, _CODES[array.dtype.name], list(array.shape)])
    crc, view = zlib.crc32(description.encode()), _bytes(array)
    for start in range(0, len(view), _BLOCK):
        crc = zlib.crc32(view[start : start + _BLOCK], crc)
    return crc


def _plain(value: Any) -> Any:
    """JSON for NumPy's numbers and for the sequences and paths that options hold."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a model's header holds plain JSON values; got {type(value).__name__}")
