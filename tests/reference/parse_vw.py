"""VW text, slowly: the twin of native/text_vw.cpp."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np

from tests.reference.hashing import gram_id, hash_bytes
from tests.reference.text import MalformedError, Row, bad_number, got, merged, number, quote

ROLES = (b"as the label", b"as the importance", b"as the base")
WORD = re.compile(rb"[^ \t\r\n|]+")
NAME = re.compile(rb"[^ \t\r\n|:]*")


def parse_vw(
    text: bytes,
    *,
    skip_bad: bool = False,
    ngrams: int = 1,
    skips: int = 0,
    gram_namespaces: tuple[bytes, ...] = (),
) -> tuple[list[Row], list[bytes], list[MalformedError]]:
    """Rows, namespaces in the order of their appearance, and the malformed lines that were skipped."""
    rows: list[Row] = []
    spaces: list[bytes] = []
    bad: list[MalformedError] = []
    for line_number, line in enumerate(text.split(b"\n")):
        if not line.strip(b" \t\r"):
            continue
        try:
            rows.append(_line(line, spaces, ngrams, skips, gram_namespaces))
        except MalformedError as error:
            error.line = line_number
            if not skip_bad:
                raise
            bad.append(error)
    return rows, spaces, bad


def _line(line: bytes, spaces: list[bytes], ngrams: int, skips: int, gram_namespaces: tuple[bytes, ...]) -> Row:
    row = Row()
    bar = line.find(b"|")
    _label(line, bar, row)
    while bar < len(line):
        end = line.find(b"|", bar + 1)
        end = len(line) if end < 0 else end
        _namespace(line, bar, end, row, spaces, ngrams, skips, gram_namespaces)
        bar = end
    row.features = merged(row.features)
    return row


def _label(line: bytes, bar: int, row: Row) -> None:
    has_bar = bar >= 0
    words = list(WORD.finditer(line, 0, bar if has_bar else len(line)))
    for i, word in enumerate(words):
        last = has_bar and i == len(words) - 1
        if last and (word[0].startswith(b"'") or word.end() == bar):
            row.span = word[0][1:] if word[0].startswith(b"'") else word[0]
            break
        if i == 3:
            rule = b"expected at most a label, an importance and a base before the first '|'"
            raise got(line, word.start(), rule)
        value = number(line, word.start(), word.end(), ROLES[i])
        if i == 0:
            row.label = value
        elif i == 1:
            row.weight = value
            if value < 0:
                raise got(line, word.start(), b"expected an importance of 0 or more")
        else:
            row.base = value
    if not has_bar:
        raise MalformedError(len(line), "expected a '|' before the features, got the end of the line")


def _namespace(
    line: bytes,
    bar: int,
    end: int,
    row: Row,
    spaces: list[bytes],
    ngrams: int,
    skips: int,
    gram_namespaces: tuple[bytes, ...],
) -> None:
    match = NAME.match(line, bar + 1, end)
    assert match
    space = match[0]
    if space not in spaces:
        spaces.append(space)
    place, weight = match.end(), 1.0
    if line[place : place + 1] == b":":
        item = re.compile(rb"[^ \t\r|]*").match(line, place + 1, end)
        assert item
        weight = number(line, place + 1, item.end(), b"after " + quote(line[bar : place + 1]))
        with np.errstate(over="ignore"):
            fits = np.isfinite(np.float32(weight))
        if not fits:
            raise bad_number(line, place + 1, b"after " + quote(line[bar : place + 1]))
        place = item.end()
    seed = hash_bytes(space)
    prefix = space + b":" if space else b""
    words: list[tuple[int, np.float32, bytes]] = []
    for word in WORD.finditer(line, place, end):
        name, colon, text = word[0].partition(b":")
        value = np.float32(weight)
        if colon:
            if not name:
                raise got(line, word.start(), b"expected a name before the ':'")
            start, role = word.start() + len(name) + 1, b"after " + quote(name + b":")
            with np.errstate(over="ignore", under="ignore"):
                value = np.float32(number(line, start, word.end(), role))
                value = np.float32(float(value) * weight)
            if not np.isfinite(value):
                raise bad_number(line, start, role)
        if value != 0:
            words.append((hash_bytes(name, seed), value, name))
    field = spaces.index(space)
    found = [(feature, value, prefix + name) for feature, value, name in words]
    if not gram_namespaces or space in gram_namespaces:
        found += _grams(words, prefix, ngrams, skips)
    row.features += [(f, v, field, n.decode("utf-8", "backslashreplace")) for f, v, n in found]


def _grams(
    words: list[tuple[int, np.float32, bytes]], prefix: bytes, ngrams: int, skips: int
) -> list[tuple[int, np.float32, bytes]]:
    found = []
    places = [
        (first, *rest)
        for first in range(len(words))
        for n in range(2, ngrams + 1)
        for rest in combinations(range(first + 1, min(len(words), first + n + skips)), n - 1)
    ]
    for place in sorted(places):
        picked = [words[i] for i in place]
        product = 1.0
        for _, value, _ in picked:
            product *= float(value)
        with np.errstate(over="ignore", under="ignore"):
            value = np.float32(product)
        if not np.isfinite(value):
            raise MalformedError(0, "the product of the values of an n-gram must fit 32 bits")
        if value != 0:
            name = prefix + b" ".join(name for _, _, name in picked)
            found.append((gram_id([word for word, _, _ in picked]), value, name))
    return found
