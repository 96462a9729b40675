"""The only file that knows ctypes: checks type, shape and contiguity, then calls the compiled core."""

from __future__ import annotations

import ctypes as c
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import pomona
from pomona._buffers import BufferPool

INTERFACE_VERSION = 1
OK, FULL, BAD_INPUT, NOT_FINITE = range(4)
NO_ROW = 0xFFFFFFFF


def _load() -> c.CDLL:
    # An editable installation has two places: the sources and where the compiled files were put.
    names = ["_pomona" + suffix for suffix in (".so", ".dylib", ".dll")]
    places = [Path(folder) / name for folder in pomona.__path__ for name in names]
    # A core built with other flags, for tests under sanitizers.
    if other := os.environ.get("POMONA_CORE"):
        places = [Path(other)]
    for path in places:
        if path.exists():
            library = c.CDLL(str(path))
            break
    else:
        raise ImportError("the compiled core of pomona is missing: reinstall it with 'pip install .'")
    library.pm_interface_version.restype = c.c_int32
    if (found := library.pm_interface_version()) != INTERFACE_VERSION:
        raise ImportError(
            f"the compiled core has interface {found}, but {INTERFACE_VERSION} is needed: reinstall pomona"
        )
    return library


_lib = _load()


def pointer(array: NDArray[Any] | None, dtype: Any) -> c.c_void_p:
    """Address of a contiguous array of exactly this type; None gives a null pointer."""
    if array is None:
        return c.c_void_p(None)
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {np.dtype(dtype)}, got {array.dtype}")
    return c.c_void_p(array.ctypes.data)


_lib.pm_instruction_set.restype = c.c_char_p
_lib.pm_hash.restype = c.c_uint64
_lib.pm_hash.argtypes = [c.c_char_p, c.c_int64, c.c_uint64]
_lib.pm_hash_strings.argtypes = [c.c_void_p, c.c_void_p, c.c_int64, c.c_uint64, c.c_void_p]
_lib.pm_mix.argtypes = _lib.pm_unmix.argtypes = [c.c_void_p, c.c_int64, c.c_void_p]


def instruction_set() -> str:
    return str(_lib.pm_instruction_set().decode())


def hash_name(name: bytes, seed: int = 0) -> int:
    return int(_lib.pm_hash(name, len(name), seed))


def hash_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Ids of strings laid out as in Arrow: string i is ``data[offsets[i]:offsets[i + 1]]``."""
    n = len(offsets) - 1
    if n > 0 and (offsets[0] < 0 or offsets[-1] > len(data) or (np.diff(offsets) < 0).any()):
        raise ValueError("string offsets must rise and stay inside the data")
    ids = np.empty(max(n, 0), np.uint64)
    _lib.pm_hash_strings(pointer(data, np.uint8), pointer(offsets, np.int64), len(ids), seed, pointer(ids, np.uint64))
    return ids


def mix(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bijective mixing of column numbers into ids."""
    ids = np.empty_like(columns)
    _lib.pm_mix(pointer(columns, np.uint64), len(columns), pointer(ids, np.uint64))
    return ids


def unmix(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The column numbers that :func:`mix` turned into these ids."""
    columns = np.empty_like(ids)
    _lib.pm_unmix(pointer(ids, np.uint64), len(ids), pointer(columns, np.uint64))
    return columns


class _Map(c.Structure):
    _fields_ = [
        ("entries", c.c_void_p),
        ("capacity", c.c_uint64),
        ("count", c.c_uint64),
        ("limit", c.c_uint64),
    ]


_lib.pm_map_insert.argtypes = [c.POINTER(_Map), *[c.c_void_p], c.c_int64, *[c.c_void_p] * 4]
_lib.pm_map_find.argtypes = [c.POINTER(_Map), c.c_void_p, c.c_int64, c.c_void_p]
_lib.pm_map_rehash.argtypes = [c.POINTER(_Map), c.POINTER(_Map)]


class IdMap:
    """Numbers 64-bit ids 0, 1, 2 … in the order of their first appearance.

    From ``limit`` rows on, new ids share the rows of old ones, as in a hashed table.
    """

    def __init__(self, limit: int = NO_ROW - 1) -> None:
        self._map = _Map(None, 0, 0, limit)
        self._allocate(1024)

    def _allocate(self, capacity: int) -> None:
        entries = np.zeros((capacity, 2), np.uint64)  # id, row + 1
        grown = _Map(entries.ctypes.data, capacity, 0, self._map.limit)
        if self._map.capacity:
            _lib.pm_map_rehash(c.byref(self._map), c.byref(grown))
        self._map, self._entries = grown, entries

    def __len__(self) -> int:
        return int(self._map.count)

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes

    def insert(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Rows of the ids, and the positions at which ids never met before stand."""
        rows = np.empty(len(ids), np.uint32)
        fresh = np.empty(len(ids), np.int64)
        n_fresh, done = c.c_int64(0), c.c_int64(0)
        while (
            _lib.pm_map_insert(
                c.byref(self._map),
                pointer(ids, np.uint64),
                len(ids),
                pointer(rows, np.uint32),
                pointer(fresh, np.int64),
                c.byref(n_fresh),
                c.byref(done),
            )
            == FULL
        ):
            self._allocate(2 * int(self._map.capacity))
        return rows, fresh[: n_fresh.value].copy()

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Rows of the ids, ``NO_ROW`` for those never inserted."""
        rows = np.empty(len(ids), np.uint32)
        _lib.pm_map_find(c.byref(self._map), pointer(ids, np.uint64), len(ids), pointer(rows, np.uint32))
        return rows

    def ids(self) -> NDArray[np.uint64]:
        """All ids, by row."""
        used = self._entries[self._entries[:, 1] > 0]
        ordered = np.empty(len(self), np.uint64)
        ordered[used[:, 1] - np.uint64(1)] = used[:, 0]
        return ordered


_lib.pm_mark_new.restype = c.c_int64
_lib.pm_mark_new.argtypes = [c.c_void_p, c.c_uint64, c.c_void_p, c.c_int32, c.c_int64, c.c_void_p]


def mark_new(seen: NDArray[np.bool_], indices: NDArray[np.uint64] | NDArray[np.uint32]) -> NDArray[np.int64]:
    """Positions of ids or columns whose place in ``seen`` (modulo its length, a power of two) is unmarked; marks them."""
    wide = indices.dtype == np.uint64
    fresh = np.empty(len(indices) + 1, np.int64)
    count = _lib.pm_mark_new(
        pointer(seen, np.bool_),
        len(seen),
        pointer(indices, np.uint64 if wide else np.uint32),
        wide,
        len(indices),
        pointer(fresh, np.int64),
    )
    return fresh[:count].copy()


# ---- chunks and the online learner ----
class ChunkStruct(c.Structure):
    _fields_ = [
        ("n", c.c_int64),
        ("indptr", c.c_void_p),
        ("indices", c.c_void_p),
        ("values", c.c_void_p),
        ("labels", c.c_void_p),
        ("weights", c.c_void_p),
        ("offsets", c.c_void_p),
        ("fields", c.c_void_p),
        ("wide", c.c_int32),
        ("column_fields", c.c_int32),
    ]


class RegionStruct(c.Structure):
    _fields_ = [
        ("slots", c.c_void_p),
        ("touched", c.c_void_p),
        ("n_slots", c.c_uint64),
        ("hashed", c.c_int64),
    ]


class OnlineStruct(c.Structure):
    _fields_ = [
        ("regions", RegionStruct * 3),
        ("intercept", c.c_void_p),
        ("products", c.c_void_p),
        ("n_products", c.c_int64),
        *[
            (name, c.c_int32)
            for name in (
                "squares n_outputs stride real_bytes loss adaptive normalized invariant ftrl"
                " peer_order bounded reserved"
            ).split()
        ],
        *[(name, c.c_double) for name in "learning_rate l1 l2 quantile ftrl_beta".split()],
        *[
            (name, c.c_double)
            for name in "examples weight_sum scale_sum clock lowest highest loss_sum loss_weight".split()
        ],
        ("features", c.c_uint64),
    ]


_lib.pm_online_scratch_bytes.restype = c.c_int64
_lib.pm_online_scratch_bytes.argtypes = [c.POINTER(OnlineStruct), c.POINTER(ChunkStruct)]
_lib.pm_online_learn.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
    c.c_void_p,
]
_lib.pm_online_predict.argtypes = [
    c.POINTER(OnlineStruct),
    c.POINTER(ChunkStruct),
    c.c_void_p,
    c.c_int64,
    c.c_void_p,
]
_lib.pm_online_rehash.argtypes = [c.POINTER(OnlineStruct), c.c_int32, c.c_int64, c.POINTER(RegionStruct)]


def chunk_struct(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint64] | NDArray[np.uint32],
    values: NDArray[np.float32],
    labels: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    offsets: NDArray[np.float64] | None,
    fields: NDArray[np.uint16] | None,
    column_fields: bool,
) -> ChunkStruct:
    """A view of the arrays of a chunk; they must outlive it."""
    n = len(indptr) - 1
    if n < 0 or indptr[0] < 0 or indptr[-1] > len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError("indptr must rise from 0 or more to at most the number of indices")
    for array in (labels, weights, offsets):
        if array is not None and len(array) != n:
            raise ValueError(f"expected {n} labels, weights and offsets, got {len(array)}")
    if len(values) != len(indices) or (fields is not None and len(fields) != len(indices)):
        raise ValueError("indices, values and fields must be of equal length")
    wide = indices.dtype == np.uint64
    return ChunkStruct(
        n,
        pointer(indptr, np.int64),
        pointer(indices, np.uint64 if wide else np.uint32),
        pointer(values, np.float32),
        pointer(labels, np.float64),
        pointer(weights, np.float64),
        pointer(offsets, np.float64),
        pointer(fields, np.uint16),
        wide,
        column_fields,
    )


def online_scratch_bytes(model: OnlineStruct, chunk: ChunkStruct) -> int:
    return int(_lib.pm_online_scratch_bytes(c.byref(model), c.byref(chunk)))


def online_learn(
    model: OnlineStruct,
    chunk: ChunkStruct,
    order: NDArray[np.int64] | None,
    done: int,
    scratch: NDArray[np.uint8],
    predictions: NDArray[np.float64],
) -> tuple[int, int]:
    """Learn from example ``order[done]`` on; returns the status and how far it came."""
    if order is not None and len(order) and not (0 <= order.min() and order.max() < chunk.n):
        raise ValueError("order must name examples of the chunk")
    if predictions.size < chunk.n * model.n_outputs:
        raise ValueError("predictions must have room for every example")
    reached = c.c_int64(done)
    status = _lib.pm_online_learn(
        c.byref(model),
        c.byref(chunk),
        pointer(order, np.int64),
        chunk.n if order is None else len(order),
        pointer(scratch, np.uint8),
        len(scratch),
        pointer(predictions, np.float64),
        c.byref(reached),
    )
    return int(status), reached.value


def online_predict(
    model: OnlineStruct, chunk: ChunkStruct, scratch: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> int:
    if predictions.size < chunk.n * model.n_outputs:
        raise ValueError("predictions must have room for every example")
    return int(
        _lib.pm_online_predict(
            c.byref(model),
            c.byref(chunk),
            pointer(scratch, np.uint8),
            len(scratch),
            pointer(predictions, np.float64),
        )
    )


def online_rehash(model: OnlineStruct, degree: int, n_rows: int, to: RegionStruct) -> int:
    return int(_lib.pm_online_rehash(c.byref(model), degree, n_rows, c.byref(to)))


# ---- text to rows ----

MAX_TEXT = 1 << 31
MAX_NAMESPACES = 1 << 16


class _Error(c.Structure):
    _fields_ = [
        ("line_start", c.c_int64),
        ("line_number", c.c_int64),
        ("column", c.c_int64),
        ("message", c.c_char * 240),
    ]


class _TextOptions(c.Structure):
    _fields_ = [
        ("skip_bad", c.c_int32),
        ("ngrams", c.c_int32),
        ("skips", c.c_int32),
        ("n_gram_namespaces", c.c_int32),
        ("gram_namespaces", c.c_void_p),
    ]


class _TextRows(c.Structure):
    _fields_ = [
        *((name, c.c_int64) for name in ("max_rows", "max_features", "max_namespaces")),
        *((name, c.c_int64) for name in ("n_feature_slots", "n_namespace_slots")),
        *((name, c.c_void_p) for name in ("indptr", "labels", "weights", "offsets", "spans")),
        *((name, c.c_void_p) for name in ("ids", "values", "fields", "starts", "grams")),
        *((name, c.c_void_p) for name in ("namespace_hashes", "namespace_spans")),
        *((name, c.c_void_p) for name in ("feature_slots", "namespace_slots")),
        *((name, c.c_int64) for name in ("n_rows", "n_features", "n_namespaces", "n_lines", "n_bad")),
        *((name, c.c_int32) for name in ("has_weights", "has_offsets", "has_tags", "has_label_lists")),
        ("first_line", c.c_int64),
        ("error", _Error),
    ]


_lib.pm_text_bounds.argtypes = [c.c_char_p, c.c_int64, *[c.POINTER(c.c_int64)] * 3]
_lib.pm_text_bounds.restype = None
for _parse in (_lib.pm_parse_vw, _lib.pm_parse_svmlight):
    _parse.argtypes = [c.c_char_p, c.c_int64, c.POINTER(_TextOptions), c.POINTER(_TextRows)]


@dataclass(frozen=True, slots=True)
class TextError:
    """Why a line is malformed; ``line`` and ``column`` count from 0 inside the text."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class TextRows:
    """What a parser made of one text; offsets and spans point into the text."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.uint64]
    values: NDArray[np.float32]
    labels: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    offsets: NDArray[np.float64] | None
    #: Start and size of the tag (VW) or of the label (svmlight), by row.
    spans: NDArray[np.uint32]
    has_tags: bool
    has_label_lists: bool
    #: VW: number of the namespace, start of the name, words of an n-gram; by feature.
    fields: NDArray[np.uint16] | None
    starts: NDArray[np.uint32] | None
    grams: NDArray[np.uint16] | None
    #: VW: start and size of the names of the namespaces.
    namespaces: NDArray[np.uint32] | None
    n_lines: int
    #: Lines before the first row.
    first_line: int
    #: Malformed lines that were left out, and the first of them.
    n_bad: int
    error: TextError | None


def _power_above(n: int) -> int:
    return 1 << max(n, 1).bit_length()


def gram_growth(ngrams: int, skips: int) -> int:
    """Features that one word can give at most: itself, and the n-grams that begin with it."""
    return sum(math.comb(n - 1 + skips, skips) if n > 1 else 1 for n in range(1, ngrams + 1))


_text_buffers = BufferPool()


def _text_arrays(n_rows: int, n_features: int, n_namespaces: int, *, vw: bool, grams: bool) -> dict[str, NDArray[Any]]:
    """What a parser writes to; only the slots must be zero."""
    wanted: dict[str, tuple[int, Any]] = {
        "indptr": (n_rows + 1, np.int64),
        "labels": (n_rows, np.float64),
        "spans": (2 * n_rows, np.uint32),
        "ids": (n_features, np.uint64),
        "values": (n_features, np.float32),
    }
    slots = {"feature_slots": np.zeros(_power_above(n_features), np.uint32)}
    if vw:
        wanted |= {
            "weights": (n_rows, np.float64),
            "offsets": (n_rows, np.float64),
            "fields": (n_features, np.uint16),
            "starts": (n_features, np.uint32),
            "namespace_hashes": (n_namespaces, np.uint64),
            "namespace_spans": (2 * n_namespaces, np.uint32),
        }
        slots["namespace_slots"] = np.zeros(_power_above(n_namespaces), np.uint32)
    if grams:
        wanted["grams"] = (n_features, np.uint16)
    return _text_buffers.arrays(wanted) | slots


def parse_text(
    text: bytes,
    size: int,
    form: Literal["vw", "svmlight"],
    *,
    skip_bad: bool = False,
    ngrams: int = 1,
    skips: int = 0,
    gram_namespaces: Sequence[bytes] = (),
) -> TextRows | TextError:
    """Parse the whole lines ``text[:size]``. A malformed line gives a :class:`TextError`, unless it may be skipped."""
    if not 0 < size <= min(len(text), MAX_TEXT) or text[size - 1] != 10:
        raise ValueError(f"the text must end in a newline and have at most {MAX_TEXT} bytes")
    if ngrams < 1 or skips < 0 or ngrams + skips > 16:
        raise ValueError("n-grams must have at least one word, and at most 16 with those skipped")
    lines, features, bars = c.c_int64(), c.c_int64(), c.c_int64()
    _lib.pm_text_bounds(text, size, c.byref(lines), c.byref(features), c.byref(bars))
    n_rows, n_features = lines.value, features.value * gram_growth(ngrams, skips)
    if n_features > MAX_TEXT:
        return TextError(0, 0, "the lines here are too long for so many n-grams: ask for fewer of them")
    vw = form == "vw"
    n_namespaces = min(bars.value, MAX_NAMESPACES) if vw else 0
    arrays = _text_arrays(n_rows, n_features, n_namespaces, vw=vw, grams=vw and ngrams > 1)
    hashes = np.array([hash_name(name) for name in gram_namespaces], np.uint64)
    options = _TextOptions(skip_bad, ngrams, skips, len(hashes), hashes.ctypes.data)
    rows = _TextRows(
        max_rows=n_rows,
        max_features=n_features,
        max_namespaces=n_namespaces,
        n_feature_slots=len(arrays["feature_slots"]),
        n_namespace_slots=len(arrays["namespace_slots"]) if vw else 0,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    parse = _lib.pm_parse_vw if vw else _lib.pm_parse_svmlight
    status = parse(text, size, c.byref(options), c.byref(rows))
    if status == FULL:
        raise AssertionError("a bound on the size of parsed text does not hold")
    return _text_error(rows) if status == BAD_INPUT else _text_rows(rows, arrays)


def _text_error(rows: _TextRows) -> TextError:
    error = rows.error
    return TextError(error.line_number, error.column, error.message.decode("utf-8", "backslashreplace"))


def _text_rows(rows: _TextRows, arrays: dict[str, NDArray[Any]]) -> TextRows:
    n, nnz = rows.n_rows, rows.n_features

    def part(name: str, size: int) -> NDArray[Any] | None:
        return arrays[name][:size] if name in arrays else None

    names = part("namespace_spans", 2 * rows.n_namespaces)
    return TextRows(
        indptr=arrays["indptr"][: n + 1],
        ids=arrays["ids"][:nnz],
        values=arrays["values"][:nnz],
        labels=arrays["labels"][:n],
        weights=part("weights", n) if rows.has_weights else None,
        offsets=part("offsets", n) if rows.has_offsets else None,
        spans=arrays["spans"][: 2 * n].reshape(n, 2),
        has_tags=bool(rows.has_tags),
        has_label_lists=bool(rows.has_label_lists),
        fields=part("fields", nnz),
        starts=part("starts", nnz),
        grams=part("grams", nnz),
        namespaces=None if names is None else names.reshape(-1, 2),
        n_lines=rows.n_lines,
        first_line=rows.first_line,
        n_bad=rows.n_bad,
        error=_text_error(rows) if rows.n_bad else None,
    )


# ---- columns of a table to features, text to words ----

RAW, HAT, BINS, RAMP, CODES, STRINGS, ROWS = range(7)
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64, BITS = range(11)
ENCODE_SCRATCH = 264

#: One ``pm_column``; the addresses are those of arrays that the caller keeps alive.
COLUMN = np.dtype(
    [
        *[(name, np.int32) for name in ("kind", "type")],
        *[(name, np.int64) for name in ("first", "n_bytes", "n_points", "n_ids")],
        *[(name, np.uint64) for name in ("data", "offsets", "valid", "points", "ids", "values")],
        *[(name, np.uint64) for name in ("missing", "seed")],
        *[(name, np.int32) for name in ("marks_missing", "field")],
    ],
    align=True,
)

_lib.pm_column_width.argtypes = [c.c_int32]
_lib.pm_encode.argtypes = [c.c_void_p, c.c_int64, c.c_int64, *[c.c_void_p] * 4, c.c_int64, c.c_void_p]
_lib.pm_words.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_uint64, *[c.c_void_p] * 4, c.c_int64]
_lib.pm_word_rows.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64, c.c_uint64, c.c_int32, c.c_int32]
_lib.pm_word_rows.argtypes += [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int64, c.c_void_p]

#: indptr, ids, values, fields.
EncodedRows = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint16]]


class BadCellError(ValueError):
    """Row and column of a value that cannot be encoded."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(f"bad value in row {row} of column {column}")
        self.row, self.column = row, column


def column_width(kind: int) -> int:
    return int(_lib.pm_column_width(kind))


def encode_columns(columns: NDArray[np.void], n: int, n_row_entries: int = 0) -> EncodedRows:
    """Features of ``n`` rows; ``n_row_entries`` are those of the columns of kind ``ROWS``."""
    width = sum(column_width(kind) for kind in columns["kind"].tolist())
    capacity = width * (n + ENCODE_SCRATCH) + n_row_entries
    indptr = np.zeros(n + 1, np.int64)
    ids, values = np.empty(capacity, np.uint64), np.empty(capacity, np.float32)
    fields, bad = np.empty(capacity, np.uint16), np.zeros(2, np.int64)
    status = _lib.pm_encode(
        pointer(columns, COLUMN),
        len(columns),
        n,
        pointer(indptr, np.int64),
        pointer(ids, np.uint64),
        pointer(values, np.float32),
        pointer(fields, np.uint16),
        capacity,
        pointer(bad, np.int64),
    )
    if status != OK:
        raise BadCellError(int(bad[0]), int(bad[1]))
    count = int(indptr[-1])
    return indptr, ids[:count], values[:count], fields[:count]


def words(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Words of lower-case strings: where those of each string begin, then start, end and id of every word."""
    n = len(offsets) - 1
    capacity = len(data) + 1
    rows = np.zeros(n + 1, np.int64)
    starts, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    ids = np.empty(capacity, np.uint64)
    status = _lib.pm_words(
        pointer(data, np.uint8),
        len(data),
        pointer(offsets, np.int64),
        n,
        seed,
        pointer(rows, np.int64),
        pointer(starts, np.int64),
        pointer(ends, np.int64),
        pointer(ids, np.uint64),
        capacity,
    )
    if status != OK:
        raise ValueError("string offsets must rise and stay inside the data")
    count = int(rows[-1])
    return rows, starts[:count], ends[:count], ids[:count]


def text_rows(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int, ngrams: int = 1, skips: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """Words and n-grams of lower-case strings as CSR rows, weighed and scaled to length 1."""
    n = len(offsets) - 1
    rows, done = np.zeros(n + 1, np.int64), np.zeros(1, np.int64)
    capacity = (len(data) // 4 + 64) * ngrams * (skips + 1)
    ids, values = np.empty(capacity, np.uint64), np.empty(capacity, np.float32)
    while (
        status := _lib.pm_word_rows(
            pointer(data, np.uint8),
            len(data),
            pointer(offsets, np.int64),
            n,
            seed,
            ngrams,
            skips,
            pointer(rows, np.int64),
            pointer(ids, np.uint64),
            pointer(values, np.float32),
            len(ids),
            pointer(done, np.int64),
        )
    ) == FULL:
        ids, values = np.resize(ids, 2 * len(ids)), np.resize(values, 2 * len(values))
    if status != OK:
        raise ValueError("string offsets must rise and stay inside the data")
    return rows, ids[: rows[-1]], values[: rows[-1]]


_lib.pm_vw_names.restype = c.c_int64
_lib.pm_vw_names.argtypes = [c.c_char_p, c.c_int64, *[c.c_void_p] * 5, c.c_int64, c.c_void_p, c.c_int64, c.c_void_p]


def vw_names(text: bytes, rows: TextRows, positions: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names of features, packed, and where each ends."""
    assert rows.starts is not None and rows.fields is not None and rows.namespaces is not None
    if len(positions) and not (0 <= positions.min() and positions.max() < len(rows.starts)):
        raise ValueError("positions must be those of features of the text")
    whole_lines = text.rfind(b"\n") + 1
    packed = np.empty(32 * len(positions), np.uint8)
    ends = np.empty(len(positions), np.int64)
    while True:
        size = _lib.pm_vw_names(
            text,
            whole_lines,
            pointer(rows.starts, np.uint32),
            pointer(rows.fields, np.uint16),
            pointer(rows.grams, np.uint16),
            pointer(rows.namespaces, np.uint32),
            pointer(positions, np.int64),
            len(positions),
            pointer(packed, np.uint8),
            len(packed),
            pointer(ends, np.int64),
        )
        if size <= len(packed):
            return packed[:size].copy(), ends
        packed = np.empty(size, np.uint8)


# ---- fingerprints of examples ----
_lib.pm_hash_rows.argtypes = [c.POINTER(ChunkStruct), c.c_void_p]


_lib.pm_gather_rows.argtypes = [c.POINTER(ChunkStruct), c.c_void_p, c.c_int64, *[c.c_void_p] * 6]


def gather_rows(
    chunk: ChunkStruct,
    order: NDArray[np.int64],
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    values: NDArray[np.float32],
    fields: NDArray[np.uint16] | None,
    labels: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> None:
    """Copy the examples in order to the arrays that follow, which must have just the right sizes."""
    if len(order) and not (0 <= order.min() and order.max() < chunk.n):
        raise ValueError("order must name examples of the chunk")
    if not chunk.labels or bool(chunk.weights) != (weights is not None) or bool(chunk.fields) != (fields is not None):
        raise ValueError("labels, weights and fields must be there where the chunk has them")
    starts = np.ctypeslib.as_array(c.cast(chunk.indptr, c.POINTER(c.c_int64)), (chunk.n + 1,))
    total = int((starts[order + 1] - starts[order]).sum())
    sizes = [len(a) for a in (indices, values, fields) if a is not None]
    if len(indptr) != len(order) + 1 or any(size < total for size in sizes):
        raise ValueError("the arrays are too small for the examples")
    if any(a is not None and len(a) != len(order) for a in (labels, weights)):
        raise ValueError("expected room for one label and one weight an example")
    _lib.pm_gather_rows(
        c.byref(chunk),
        pointer(order, np.int64),
        len(order),
        pointer(indptr, np.int64),
        pointer(indices, np.uint64 if chunk.wide else np.uint32),
        pointer(values, np.float32),
        pointer(fields, np.uint16),
        pointer(labels, np.float64),
        pointer(weights, np.float64),
    )


def hash_rows(chunk: ChunkStruct) -> NDArray[np.uint64]:
    """Hash of the features and the label of each example."""
    hashes = np.empty(chunk.n, np.uint64)
    _lib.pm_hash_rows(c.byref(chunk), pointer(hashes, np.uint64))
    return hashes
