"""Targets and weights of a batch as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pomona.encode.columns import is_string
from pomona.errors import DataFormatError
from pomona.source.table import numpy_of, strings_of


def labels_of(array: pa.Array, whole: bool) -> NDArray[Any]:
    """Raw targets: numbers (NaN where missing) or strings (None where missing).

    With ``whole``, numbers that happen to be whole come as integers, so that a class 1 is not called 1.0.
    """
    if pa.types.is_dictionary(array.type) or is_string(array.type):
        return _strings(array)
    if pa.types.is_boolean(array.type):
        if array.null_count == 0:
            return numpy_of(array).astype(np.bool_)
        array = array.cast(pa.int8())
    if pa.types.is_integer(array.type) and array.null_count == 0:
        return numpy_of(array).astype(np.int64, copy=False)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        return _strings(array.cast(pa.string()))
    values = numpy_of(array.cast(pa.float64(), safe=False))
    if whole and np.all((values == np.floor(values)) & (np.abs(values) < 2.0**53)):
        return values.astype(np.int64)
    return values


def _strings(array: pa.Array) -> NDArray[Any]:
    """Strings through their distinct values, which are few."""
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    if not is_string(coded.type.value_type):
        return labels_of(coded.dictionary_decode(), False)
    levels = strings_of(coded.dictionary)
    if coded.null_count or None in levels:
        return np.array(strings_of(coded), object)
    table = np.array(levels if levels else [""])
    return np.asarray(table[numpy_of(coded.indices)])


def weights_of(array: pa.Array, name: str, file: str, first_row: int) -> NDArray[np.float64]:
    """Importance weights, all finite and not negative."""
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_boolean(array.type)):
        raise DataFormatError(f"the weight {name!r} must hold numbers, but it is {array.type}", file=file)
    values: NDArray[np.float64] = numpy_of(array.cast(pa.float64(), safe=False))
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        value = array[int(bad[0])].as_py()
        raise DataFormatError(
            f"a weight must be finite and not negative, but {name!r} is {value or 'missing'} here",
            file=file,
            line=first_row + int(bad[0]) if first_row else 0,
        )
    return values
