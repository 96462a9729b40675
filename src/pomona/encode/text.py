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


def gram_names(texts: pa.Array, wanted: NDArray[np.uint64], seed: int, ngrams: int, skips: int) -> dict[int, str]:
    """The words behind those ids of n-grams that are wanted and occur in the texts."""
    data, offsets = string_buffers(lower(texts))
    rows, starts, ends, ids = _native.words(data, offsets, seed)
    row_end, text = np.repeat(rows[1:], np.diff(rows)), data.tobytes()
    numbers = _native.IdMap()
    numbers.insert(wanted)
    found: dict[int, str] = {}
    for shape in _shapes(ngrams, skips):
        first = np.flatnonzero(np.arange(len(ids)) + shape[-1] < row_end)
        grams = ids[first]
        for step in shape[1:]:
            grams = _native.mix(grams) + ids[first + step]
        known = numbers.find(grams)
        example = np.full(len(numbers), -1)  # where each wanted gram occurs
        met = known != _native.NO_ROW
        example[known[met]] = first[met]
        for id_, place in zip(numbers.ids().tolist(), example.tolist(), strict=True):
            if place >= 0:
                words = [text[starts[place + step] : ends[place + step]] for step in shape]
                found[id_] = b" ".join(words).decode("utf-8", "replace")
    return found


def _shapes(ngrams: int, skips: int) -> Iterator[tuple[int, ...]]:
    """Steps from the first word of an n-gram to each of its words."""
    for n in range(1, ngrams + 1):
        for rest in combinations(range(1, n + skips), n - 1):
            yield (0, *rest)
