"""Words and n-grams of text columns.

The value of a word is log(1 + count), and the row is scaled to length 1: a long text must not outweigh a
short one, nor a word said twenty times nineteen others. An online learner then needs no other rate for text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import PackedNames
from pomona.encode.columns import string_buffers, texts_of

TextRows = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]


def lower(array: pa.Array) -> pa.Array:
    """Lower-case strings; bytes that are not UTF-8 cannot be read as text and are left as they are."""
    array = texts_of(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        return pc.utf8_lower(array)
    except pa.ArrowException:
        return array


def encode_text(array: pa.Array, seed: int, ngrams: int, skips: int) -> TextRows:
    """CSR rows of an array of strings."""
    data, offsets = string_buffers(lower(array))
    return _native.text_rows(data, offsets, seed, ngrams, skips)


def gram_names(
    texts: pa.Array, wanted: NDArray[np.uint64], prefix: str, seed: int, ngrams: int, skips: int
) -> PackedNames:
    """The words behind these ids of n-grams, all of which occur in the texts, each behind the prefix."""
    data, offsets = string_buffers(lower(texts))
    rows, starts, ends, ids = _native.words(data, offsets, seed)
    row_end, shapes = np.repeat(rows[1:], np.diff(rows)), list(_shapes(ngrams, skips))
    numbers = _native.IdMap()
    order = numbers.insert(wanted)[0]
    place = np.zeros(len(numbers), np.int64)  # of the first word of each wanted gram, where it occurs,
    kind = np.zeros(len(numbers), np.int64)  # and its shape
    for number, shape in enumerate(shapes):
        first = np.flatnonzero(np.arange(len(ids)) + shape[-1] < row_end)
        grams = ids[first]
        for step in shape[1:]:
            grams = _native.mix(grams) + ids[first + step]
        known = numbers.find(grams)
        met = known != _native.NO_ROW
        place[known[met]], kind[known[met]] = first[met], number
    return _joined(data, starts, ends, prefix, place[order], [shapes[number] for number in kind[order].tolist()])


def _joined(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    prefix: str,
    places: NDArray[np.int64],
    shapes: list[tuple[int, ...]],
) -> PackedNames:
    """Names made of the prefix and the words at these places, with blanks between: pieces of one array of bytes."""
    before = np.frombuffer(prefix.encode("utf-8", "backslashreplace") + b" ", np.uint8)
    text = np.concatenate([data, before])
    most = max((len(shape) for shape in shapes), default=1)
    words = np.array([shape + (-1,) * (most - len(shape)) for shape in shapes], np.int64).reshape(-1, most)
    there = words >= 0
    at = np.where(there, places[:, None] + words, 0)
    begins, sizes = np.empty((2, len(places), 2 * most), np.int64)
    begins[:, 0], sizes[:, 0] = len(data), len(before) - 1
    begins[:, 1::2], sizes[:, 1::2] = starts[at], np.where(there, ends[at] - starts[at], 0)
    begins[:, 2::2], sizes[:, 2::2] = len(text) - 1, there[:, 1:]
    lengths, stops = sizes.ravel(), np.cumsum(sizes)
    taken = np.repeat(begins.ravel() - stops + lengths, lengths) + np.arange(stops[-1] if len(stops) else 0)
    return PackedNames(text[taken], stops.reshape(sizes.shape)[:, -1].copy())


def _shapes(ngrams: int, skips: int) -> Iterator[tuple[int, ...]]:
    """Steps from the first word of an n-gram to each of its words."""
    for n in range(1, ngrams + 1):
        for rest in combinations(range(1, n + skips), n - 1):
            yield (0, *rest)
