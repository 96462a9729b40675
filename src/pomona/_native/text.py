"""Text to rows."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pomona._buffers import Block, BufferPool
from pomona._native.ids import hash_name
from pomona._native.library import BAD_INPUT, FULL, address, lib, pointer, quick

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
        ("n_cleared", c.c_int64),
        ("error", _Error),
    ]


for _library in (lib, quick):
    _library.pm_text_bounds.argtypes = [c.c_void_p, c.c_int64, *[c.POINTER(c.c_int64)] * 3]
    _library.pm_text_bounds.restype = None
for _parse in (lib.pm_parse_vw, lib.pm_parse_svmlight):
    _parse.argtypes = [c.c_void_p, c.c_int64, c.POINTER(_TextOptions), c.POINTER(_TextRows)]


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
    #: VW: number of the namespace where there are several, start of the name, words of an n-gram; by feature.
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
_scratch_buffers = BufferPool()  # apart: the next text can have them as soon as one is parsed

#: From this size on, how much a text holds is guessed from pieces of it, and counted only where that was too little.
_LONG, _PIECES, _PIECE = 1 << 20, 16, 1 << 12


def _bounds(text: NDArray[np.uint8], library: Any = lib) -> tuple[int, int, int]:
    """Most lines, features and namespaces (before n-grams are made) that a text can hold."""
    lines, features, bars = c.c_int64(), c.c_int64(), c.c_int64()
    library.pm_text_bounds(pointer(text, np.uint8), len(text), c.byref(lines), c.byref(features), c.byref(bars))
    return lines.value, features.value, bars.value


def _rooms(text: NDArray[np.uint8]) -> Iterator[tuple[int, int, int]]:
    """As :func:`_bounds`: what is likely enough, then what is enough for certain."""
    if len(text) >= _LONG:
        parts = text[: len(text) // _PIECES * _PIECES].reshape(_PIECES, -1)
        sample = parts[:, :_PIECE].ravel()
        times = len(text) / len(sample)
        lines, features, bars = _bounds(sample, quick)
        # Lines differ in length: the fewer fit the sample, the less sure is their number.
        yield (
            int(times * (1.25 * lines + 8 * math.sqrt(lines + 1))),
            int(1.125 * times * features),
            int(times * (bars + 8)),
        )
    yield _bounds(text)


def _room(n_rows: int, n_features: int, n_namespaces: int, *, vw: bool, grams: bool) -> Block:
    """What a parser writes to, but for its scratch."""
    wanted: dict[str, tuple[int, Any]] = {
        "indptr": (n_rows + 1, np.int64),
        "labels": (n_rows, np.float64),
        "spans": (2 * n_rows, np.uint32),
        "ids": (n_features, np.uint64),
        "values": (n_features, np.float32),
    }
    if vw:
        wanted |= {
            "weights": (n_rows, np.float64),
            "offsets": (n_rows, np.float64),
            "starts": (n_features, np.uint32),
            "namespace_hashes": (n_namespaces, np.uint64),
            "namespace_spans": (2 * n_namespaces, np.uint32),
            "fields": (n_features, np.uint16),  # last: where there is one namespace, this memory is never touched
        }
    if grams:
        wanted["grams"] = (n_features, np.uint16)
    return _text_buffers.block(wanted)


def parse_text(
    text: NDArray[np.uint8],
    form: Literal["vw", "svmlight"],
    *,
    skip_bad: bool = False,
    ngrams: int = 1,
    skips: int = 0,
    gram_namespaces: Sequence[bytes] = (),
) -> TextRows | TextError:
    """Parse whole lines. A malformed line gives a :class:`TextError`, unless it may be skipped."""
    size = len(text)
    if not 0 < size <= MAX_TEXT or text[-1] != 10:
        raise ValueError(f"the text must end in a newline and have at most {MAX_TEXT} bytes")
    if ngrams < 1 or skips < 0 or ngrams + skips > 16:
        raise ValueError("n-grams must have at least one word, and at most 16 with those skipped")
    vw = form == "vw"
    hashes = np.array([hash_name(name) for name in gram_namespaces], np.uint64)
    options = _TextOptions(skip_bad, ngrams, skips, len(hashes), hashes.ctypes.data)
    for n_rows, words, bars in _rooms(text):
        n_features = words * gram_growth(ngrams, skips)
        if n_features > MAX_TEXT:
            continue
        n_namespaces = min(bars, MAX_NAMESPACES) if vw else 0
        room = _room(n_rows, n_features, n_namespaces, vw=vw, grams=vw and ngrams > 1)
        slots = _scratch_buffers.array(_power_above(n_features), np.uint32)
        names = np.zeros(_power_above(n_namespaces) if vw else 0, np.uint32)
        start = address(room.bytes)
        rows = _TextRows(
            max_rows=n_rows,
            max_features=n_features,
            max_namespaces=n_namespaces,
            n_feature_slots=len(slots),
            n_namespace_slots=len(names),
            feature_slots=address(slots),
            namespace_slots=address(names),
            **{name: start + place for name, place in room.places.items()},
        )
        parse = lib.pm_parse_vw if vw else lib.pm_parse_svmlight
        status = parse(pointer(text, np.uint8), size, c.byref(options), c.byref(rows))
        if status != FULL:
            return _text_error(rows) if status == BAD_INPUT else _text_rows(rows, room)
    if n_features <= MAX_TEXT:
        raise AssertionError("a bound on the size of parsed text does not hold")
    return TextError(0, 0, "the lines here are too long for so many n-grams: ask for fewer of them")


def _text_error(rows: _TextRows) -> TextError:
    error = rows.error
    return TextError(error.line_number, error.column, error.message.decode("utf-8", "backslashreplace"))


def _text_rows(rows: _TextRows, room: Block) -> TextRows:
    n, nnz = rows.n_rows, rows.n_features

    def part(name: str, size: int, kind: Any) -> NDArray[Any] | None:
        return room.array(name, size, kind) if name in room.places else None

    names = part("namespace_spans", 2 * rows.n_namespaces, np.uint32)
    return TextRows(
        indptr=room.array("indptr", n + 1, np.int64),
        ids=room.array("ids", nnz, np.uint64),
        values=room.array("values", nnz, np.float32),
        labels=room.array("labels", n, np.float64),
        weights=part("weights", n, np.float64) if rows.has_weights else None,
        offsets=part("offsets", n, np.float64) if rows.has_offsets else None,
        spans=room.array("spans", 2 * n, np.uint32).reshape(n, 2),
        has_tags=bool(rows.has_tags),
        has_label_lists=bool(rows.has_label_lists),
        fields=part("fields", nnz, np.uint16) if rows.n_namespaces > 1 else None,
        starts=part("starts", nnz, np.uint32),
        grams=part("grams", nnz, np.uint16),
        namespaces=None if names is None else names.reshape(-1, 2),
        n_lines=rows.n_lines,
        first_line=rows.first_line,
        n_bad=rows.n_bad,
        error=_text_error(rows) if rows.n_bad else None,
    )


lib.pm_text_labels.restype = c.c_int64
lib.pm_text_labels.argtypes = [c.c_void_p, c.c_int64, c.c_int64, c.c_void_p]


def text_labels(text: NDArray[np.uint8], rows: int) -> NDArray[np.float64] | None:
    """Labels of the first lines, at most ``rows``; None where only a parser can tell them."""
    if not len(text) or text[-1] != 10:
        raise ValueError("the text must end in a newline")
    labels = np.empty(rows)
    n = lib.pm_text_labels(pointer(text, np.uint8), len(text), rows, pointer(labels, np.float64))
    return None if n < 0 else labels[:n]


lib.pm_vw_names.restype = c.c_int64
lib.pm_vw_names.argtypes = [c.c_void_p, c.c_int64, *[c.c_void_p] * 5, c.c_int64, c.c_void_p, c.c_int64, c.c_void_p]


def vw_names(
    text: NDArray[np.uint8], rows: TextRows, positions: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names of features, packed, and where each ends."""
    assert rows.starts is not None and rows.namespaces is not None
    if len(positions) and not (0 <= positions.min() and positions.max() < len(rows.starts)):
        raise ValueError("positions must be those of features of the text")
    packed = np.empty(32 * len(positions), np.uint8)
    ends = np.empty(len(positions), np.int64)
    while True:
        size = lib.pm_vw_names(
            pointer(text, np.uint8),
            len(text),
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
