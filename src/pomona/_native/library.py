"""Loads the compiled core."""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import pomona

INTERFACE_VERSION = 14
OK, FULL, BAD_INPUT, NOT_FINITE, PAUSE = range(5)


def _load() -> tuple[c.CDLL, c.PyDLL]:
    # An editable installation has two places: the sources and where the compiled files were put.
    names = ["_pomona" + suffix for suffix in (".so", ".dylib", ".dll")]
    places = [Path(folder) / name for folder in pomona.__path__ for name in names]
    # A core built with other flags, for tests under sanitizers.
    if other := os.environ.get("POMONA_CORE"):
        places = [Path(other)]
    for path in places:
        if path.exists():
            library, quick = c.CDLL(str(path)), c.PyDLL(str(path))
            break
    else:
        raise ImportError("the compiled core of pomona is missing: reinstall it with 'pip install .'")
    library.pm_interface_version.restype = c.c_int32
    if (found := library.pm_interface_version()) != INTERFACE_VERSION:
        raise ImportError(
            f"the compiled core has interface {found}, but {INTERFACE_VERSION} is needed: reinstall pomona"
        )
    return library, quick


#: ``quick`` is the same library for calls of some microseconds. They keep the interpreter's lock: to let another
#: thread have it and to wait for it again takes longer than they do.
lib, quick = _load()


def pointer(array: NDArray[Any] | None, dtype: Any) -> c.c_void_p:
    """Address of a contiguous array of exactly this type; None gives a null pointer."""
    if array is None:
        return c.c_void_p(None)
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {np.dtype(dtype)}, got {array.dtype}")
    return c.c_void_p(address(array))


def address(array: NDArray[Any]) -> int:
    """Where the first byte is. (NumPy's own way takes twice as long, which counts where chunks are short.)"""
    if array.size and array.flags.writeable and array.flags.c_contiguous:
        return c.addressof(c.c_char.from_buffer(cast(Any, array)))
    return int(array.ctypes.data)
