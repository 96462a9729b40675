"""What becomes of one column: its kind, learnt from a sample, and the native description of its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pomona import _native
from pomona.encode.bins import Floats, bin_names, edges, knots, number_name
from pomona.errors import OptionError
from pomona.source.table import numpy_of

ColumnKind = Literal["number", "boolean", "date", "category", "text"]
#: Words of ``EncodeOptions.numeric``, which may be joined by "+".
NUMERIC_WORDS = ("raw", "standard", "hat", "onehot")
AUTO_NUMERIC = "hat"
#: What a date or a time gives.
DATE_PARTS = ("day", "month", "weekday", "hour")

_NUMBER_TYPES = {
    pa.int8(): _native.INT8,
    pa.int16(): _native.INT16,
    pa.int32(): _native.INT32,
    pa.int64(): _native.INT64,
    pa.uint8(): _native.UINT8,
    pa.uint16(): _native.UINT16,
    pa.uint32(): _native.UINT32,
    pa.uint64(): _native.UINT64,
    pa.float32(): _native.FLOAT32,
    pa.float64(): _native.FLOAT64,
    pa.bool_(): _native.BITS,
}
_MISSING = b"\0missing"


def numeric_words(option: str) -> list[str]:
    """The parts of ``EncodeOptions.numeric``."""
    words = (AUTO_NUMERIC if option == "auto" else option).split("+")
    unknown = [word for word in words if word not in NUMERIC_WORDS]
    if unknown or len(set(words)) < len(words):
        raise OptionError(f"numeric must be auto, or some of {', '.join(NUMERIC_WORDS)} joined by '+'; got {option!r}")
    return words


@dataclass(frozen=True, slots=True)
class Part:
    """Features that one native call makes of a column of numbers."""

    kind: int
    points: Floats
    names: list[str]
    ids: NDArray[np.uint64]
    #: Which numbers of a date; empty: the column itself.
    of: str = ""

    @classmethod
    def make(cls, kind: int, column: str, points: Sequence[float] | Floats, of: str = "") -> Part:
        """Names and ids follow from the rest, so a saved part is its kind and its points."""
        numbers = np.asarray(points, np.float64)
        base = f"{column}.{of}" if of else column
        if kind == _native.HAT:
            names = [f"{base}≈{number_name(point)}" for point in numbers]
        elif kind == _native.BINS:
            names = bin_names(base, numbers)
        elif kind == _native.RAMP and tuple(numbers) != (0.0, 1.0):
            names = [f"{base}={number_name(numbers[1])}"]
        else:
            names = [base]
        seed = _native.hash_name(column.encode())
        ids = [_native.hash_name(name[len(column) :].encode(), seed) for name in names]
        return cls(kind, numbers, names, np.array(ids, np.uint64), of)


@dataclass(frozen=True, slots=True)
class Column:
    """One column that gives features."""

    name: str
    kind: ColumnKind
    #: Arrow type to read the column as, where the format leaves a choice.
    type: str
    parts: list[Part] = field(default_factory=list)

    @property
    def seed(self) -> int:
        return _native.hash_name(self.name.encode())

    @property
    def missing_id(self) -> int:
        return _native.hash_name(_MISSING, self.seed)

    @property
    def missing_name(self) -> str:
        return f"{self.name} is missing"

    def header(self) -> dict[str, Any]:
        parts = [{"kind": part.kind, "of": part.of, "points": len(part.points)} for part in self.parts]
        return {"name": self.name, "kind": self.kind, "type": self.type, "parts": parts}


def is_string(type_: pa.DataType) -> bool:
    return (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or type_ in (pa.string_view(), pa.binary_view())
    )


def without_views(array: pa.Array) -> pa.Array:
    """Strings in one buffer: few functions of pyarrow, and none of the native core, take the other layout."""
    if pa.types.is_dictionary(array.type) and array.type.value_type in (pa.string_view(), pa.binary_view()):
        return pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary))
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if array.type == pa.binary_view() else array


def kind_of(type_: pa.DataType) -> ColumnKind | None:
    """The kind that an Arrow type suggests; None for nested and other types that cannot be encoded."""
    if pa.types.is_dictionary(type_):
        inner = kind_of(type_.value_type)
        return "category" if inner == "category" else inner
    if is_string(type_):
        return "category"
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return "date"
    numeric = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_duration,
        pa.types.is_time,
    )
    if pa.types.is_null(type_) or any(test(type_) for test in numeric):
        return "number"
    return None


def numbers_of(array: pa.Array, of: str = "") -> pa.Array:
    """A column (or a part of a date) as an array of a type the native core reads."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if of:
        return _date_numbers(array, of)
    if array.type in _NUMBER_TYPES:
        return array
    if pa.types.is_duration(array.type) or pa.types.is_time64(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.float64())


def _date_numbers(array: pa.Array, of: str) -> pa.Array:
    if pa.types.is_null(array.type):
        return array.cast(pa.float64())
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))
    if of == "month":
        return pc.month(array)
    if of == "weekday":
        return pc.day_of_week(array)
    if of == "hour":
        return pc.hour(array) if pa.types.is_timestamp(array.type) else pa.array(np.zeros(len(array), np.int64))
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_date64(array.type):
        return pc.divide(array.cast(pa.int64()).cast(pa.float64()), 86_400_000.0)
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[array.type.unit]
    return pc.divide(array.cast(pa.int64()).cast(pa.float64(), safe=False), 86_400.0 * ticks)


def plain_numbers(array: pa.Array, of: str = "") -> Floats:
    """The same as doubles, NaN where missing: for learning from a sample."""
    return numpy_of(numbers_of(array, of).cast(pa.float64(), safe=False))


def texts_of(array: pa.Array) -> pa.Array:
    """A column of categories as strings or as a dictionary of strings."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        if is_string(type_.value_type):
            return array
        array = array.dictionary_decode()
        type_ = array.type
    if pa.types.is_null(type_):
        return array.cast(pa.string())
    if is_string(type_):
        return array
    if pa.types.is_floating(type_):  # whole numbers with gaps come as floats from pandas: 3.0 is the level "3"
        whole = numpy_of(array.drop_null())
        if np.all(np.isnan(whole) | (whole == np.floor(whole)) & (np.abs(whole) < 2.0**53)):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, type_), array).cast(pa.int64())
    return array.cast(pa.string())


def counted(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The distinct finite values, rising, and how often each occurs; a weight of 2 counts as twice."""
    finite = np.isfinite(values)
    if weights is None:
        distinct, counts = np.unique(values[finite], return_counts=True)
        return distinct, np.asarray(counts, np.float64)
    distinct, places = np.unique(values[finite], return_inverse=True)
    return distinct, np.asarray(np.bincount(places, weights[finite], len(distinct)), np.float64)


def learn_numbers(
    name: str, values: Floats, words: Sequence[str], bins: int, of: str = "", weights: Floats | None = None
) -> list[Part]:
    """Parts for a column of numbers, from a sample; none where it never changes."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0 or finite.min() == finite.max():
        # A column that is either missing or constant says all by "is missing".
        has_both = len(finite) and np.isnan(values).any()
        return [Part.make(_native.RAW, name, (0.0, 0.0), of)] if has_both else []
    if list(words) == ["raw"]:
        return [Part.make(_native.RAW, name, (0.0, 1.0), of)]
    distinct, counts = counted(values, weights)
    if len(distinct) == 2 and not set(words) <= {"raw", "standard"}:
        return [Part.make(_native.RAMP, name, distinct, of)]
    makers: dict[str, Callable[[], Part]] = {
        "raw": lambda: Part.make(_native.RAW, name, (0.0, 1.0), of),
        "standard": lambda: Part.make(_native.RAW, name, _standard(distinct, counts), of),
        "hat": lambda: Part.make(_native.HAT, name, knots(distinct, counts, bins), of),
        "onehot": lambda: Part.make(_native.BINS, name, edges(distinct, counts, bins), of),
    }
    return [makers[word]() for word in words]


def _standard(distinct: Floats, counts: Floats) -> tuple[float, float]:
    size = float(np.abs(distinct).max()) or 1.0
    x, share = distinct / size, counts / counts.sum()
    mean = float((x * share).sum())
    deviation = float(np.sqrt(((x - mean) ** 2 * share).sum()))
    return mean * size, 1 / (deviation * size) if deviation * size > 0 else 1.0


def learn_date(
    name: str, array: pa.Array, words: Sequence[str], bins: int, weights: Floats | None = None
) -> list[Part]:
    """Parts for a date: those of its numbers that change."""
    parts = []
    for of in DATE_PARTS:
        wanted = ["standard" if word == "raw" else word for word in words]
        parts += learn_numbers(name, plain_numbers(array, of), list(dict.fromkeys(wanted)), bins, of, weights)
    return parts


def is_prose(array: pa.Array) -> bool:
    """Whether strings clearly are sentences: several words each, and hardly any twice."""
    if pa.types.is_dictionary(array.type) or pa.types.is_binary(array.type):
        return False
    some = array.slice(0, 2000).drop_null()
    if len(some) < 20 or pc.count_distinct(some).as_py() < 0.8 * len(some):
        return False
    words = pc.count_substring(some, " ")
    return bool(pc.mean(words).as_py() >= 6.0)


def address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)


def fill_numbers(entry: Any, array: pa.Array) -> None:
    """Point a native column at the numbers (or codes) of an Arrow array."""
    valid, data = array.buffers()[:2]
    entry["type"] = _NUMBER_TYPES[array.type]
    entry["data"], entry["valid"], entry["first"] = address(data), address(valid), array.offset


def fill_strings(entry: Any, array: pa.Array) -> None:
    """Point a native column at the strings of an Arrow array."""
    valid, offsets, data = array.buffers()
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    entry["type"] = _native.INT64 if wide else _native.INT32
    entry["data"], entry["offsets"], entry["valid"] = address(data), address(offsets), address(valid)
    entry["first"], entry["n_bytes"] = array.offset, 0 if data is None else data.size


def string_buffers(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes and 64-bit offsets of an array of strings; a missing one is empty."""
    if array.null_count:
        array = pc.fill_null(array, b"" if pa.types.is_binary(array.type) else "")
    _, offsets, data = array.buffers()
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    kind = np.int64 if wide else np.int32
    if offsets is None or offsets.size == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), bounds
