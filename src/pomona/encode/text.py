"""Words and n-grams of text columns.

The value of a word is log(1 + count), and the row is scaled to length 1: a long text must not outweigh a
short one, nor a word said twenty times nineteen others. An online learner then needs no other rate for text.
"""

from __future__ import annotations

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


def gram_names(text: pa.Array, seed: int, ngrams: int, skips: int) -> dict[int, str]:
    """Id and words of each n-gram of one text."""
    data, offsets = string_buffers(lower(text))
    _, starts, ends = _native.words(data, offsets)
    words = [bytes(data[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    ids = [_native.hash_name(word, seed) for word in words]
    found: dict[int, str] = {}

    def extend(gram: int, name: str, last: int, more: int, left: int) -> None:
        found[gram] = name
        if more == 0:
            return
        mixed = int(_native.mix(np.array([gram], np.uint64))[0])
        for gap in range(min(left, len(ids) - last - 2) + 1):
            following = last + 1 + gap
            longer = (mixed + ids[following]) % (1 << 64)
            extend(longer, f"{name} {texts[following]}", following, more - 1, left - gap)

    texts = [word.decode("utf-8", errors="replace") for word in words]
    for position, (id_, name) in enumerate(zip(ids, texts, strict=True)):
        extend(id_, name, position, ngrams - 1, skips)
    return found
