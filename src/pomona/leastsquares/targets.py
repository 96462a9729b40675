"""Targets and predictions, n × k numbers that are read and written a block at a time."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.leastsquares.arrays import Array, Place, to_numpy

#: Rows of zeros and ones are kept up to this many bytes.
KEPT = 1 << 26


class Targets:
    """One row of k targets an example.

    Codes of many classes or examples stay codes, and become rows of zeros and a one when they are read.
    """

    def __init__(self, values: Array, place: Place, n_classes: int | None = None, kept: int = KEPT) -> None:
        self._place = place
        self._codes: NDArray[Any] | None = None
        if n_classes is None:
            self._values: Array = place.put(values)
            self.n, self.k = int(values.shape[0]), int(values.shape[1])
            return
        self.n, self.k = len(values), n_classes
        codes = np.asarray(values).astype(np.min_scalar_type(n_classes))
        if self.n * self.k * np.dtype(place.precision).itemsize <= kept:
            self._values = self._rows(codes)
        else:
            self._codes = codes

    def _rows(self, codes: NDArray[Any]) -> Array:
        rows = np.zeros((len(codes), self.k), self._place.precision)
        rows[np.arange(len(codes)), codes] = 1
        return self._place.put(rows)

    def __getitem__(self, where: slice) -> Array:
        return self._values[where, :] if self._codes is None else self._rows(self._codes[where])


class Predictions:
    """The running predictions of all examples; a temporary file where they would take more than ``memory``."""

    def __init__(self, n: int, k: int, place: Place, memory: int) -> None:
        self._place = place
        self._file: Any = None
        self._values: Array
        if n * k * np.dtype(place.precision).itemsize > memory:
            self._file = tempfile.TemporaryFile()
            self._values = np.memmap(self._file, np.dtype(place.precision), "w+", shape=(n, k))
        else:
            self._values = place.zeros(n, k)

    def __getitem__(self, where: slice) -> Array:
        rows = self._values[where, :]
        return rows if self._file is None else self._place.put(np.array(rows))

    def __setitem__(self, where: slice, rows: Array) -> None:
        self._values[where, :] = rows if self._file is None else to_numpy(rows)
