"""svmlight text, slowly: the twin of native/text_svmlight.cpp."""

from __future__ import annotations

import re

import numpy as np

from tests.reference.hashing import mix
from tests.reference.text import MalformedError, Row, bad_number, got, merged, number, quote

WORD = re.compile(rb"[^ \t\r]+")


def parse_svmlight(text: bytes, *, skip_bad: bool = False) -> tuple[list[Row], list[MalformedError]]:
    """Rows, and the malformed lines that were skipped."""
    rows: list[Row] = []
    bad: list[MalformedError] = []
    for line_number, line in enumerate(text.split(b"\n")):
        content = line.partition(b"#")[0]
        if not content.strip(b" \t\r"):
            continue
        try:
            rows.append(_line(line, content))
        except MalformedError as error:
            error.line = line_number
            if not skip_bad:
                raise
            bad.append(error)
    return rows, bad


def _line(line: bytes, content: bytes) -> Row:
    row = Row()
    words = list(WORD.finditer(content))
    if content[:1] not in (b" ", b"\t", b"\r") and words:
        first = words[0]
        start = first.start()
        # A colon, unless a comma stands before it, says that this is a feature.
        if b":" not in first[0].partition(b",")[0]:
            for i, part in enumerate(first[0].split(b",")):
                value = number(line, start, start + len(part), b"as the label")
                row.label = value if i == 0 else row.label
                start += len(part) + 1
            row.span = first[0]
            words = words[1:]
    seen = False
    for word in words:
        index, colon, text = word[0].partition(b":")
        start = word.start() + len(index) + 1
        if index == b"qid" and colon and not seen:
            if not text.isdigit() or int(text) >= 2**64:
                raise got(line, start, b"expected a whole number after 'qid:'")
            continue
        if not index.isdigit() or int(index) >= 2**64:
            raise got(line, word.start(), b"expected an index, a whole number from 0 to 2^64 - 1")
        if not colon:
            raise got(line, word.start(), b"expected 'index:value'")
        role = b"after " + quote(index + b":")
        with np.errstate(over="ignore", under="ignore"):
            single = np.float32(number(line, start, word.end(), role))
        if not np.isfinite(single):
            raise bad_number(line, start, role)
        seen = True
        if single != 0:
            row.features.append((mix(int(index)), single, 0, str(int(index))))
    row.features = merged(row.features)
    return row
