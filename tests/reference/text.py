"""What the slow parsers of text share: numbers, rows and errors."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
QUOTED = 40
REPEATED = "the values of a feature that is repeated must add up to a number that fits 32 bits"


class MalformedError(Exception):
    """``column`` counts from 0, as in the native parser; ``line`` is filled in by the loop over lines."""

    def __init__(self, column: int, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line, self.column, self.message = line, column, message


@dataclass
class Row:
    label: float = math.nan
    weight: float = 1.0
    base: float = 0.0
    #: The tag (VW) or the label as written (svmlight).
    span: bytes = b""
    #: Id, value, field and name of each feature.
    features: list[tuple[int, np.float32, int, str]] = field(default_factory=list)


def quote(token: bytes) -> bytes:
    cut = len(token) > QUOTED
    if cut:
        end = QUOTED
        while end > 0 and token[end] & 0xC0 == 0x80:
            end -= 1
        token = token[:end]
    shown = b"".join(b"\\x%02x" % c if c < 32 or c == 127 else bytes([c]) for c in token)
    return b"'" + shown + ("…'".encode() if cut else b"'")


def token_at(line: bytes, column: int) -> bytes:
    match = re.compile(rb"[^ \t\r\n|]*").match(line, column)
    assert match
    return match[0]


def got(line: bytes, column: int, rule: bytes) -> MalformedError:
    token = token_at(line, column)
    message = rule + b", got " + (quote(token) if token else b"nothing")
    # The native message has room for 239 bytes.
    return MalformedError(column, message[:239].decode("utf-8", "backslashreplace"))


def number(line: bytes, column: int, stop: int, role: bytes) -> float:
    """The number ``line[column:stop]``, which must be all of it."""
    text = line[column:stop]
    if NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    raise bad_number(line, column, role)


def bad_number(line: bytes, column: int, role: bytes) -> MalformedError:
    token = token_at(line, column)
    kind = b"a number"
    if NUMBER.fullmatch(token):
        kind = b"a number in range"
    elif re.match(rb"[-+]?(inf|nan)", token, re.IGNORECASE):
        kind = b"a finite number"
    return got(line, column, b"expected %b %b" % (kind, role))


def merged(features: list[tuple[int, np.float32, int, str]]) -> list[tuple[int, np.float32, int, str]]:
    sums: dict[int, tuple[int, np.float32, int, str]] = {}
    for feature, value, space, name in features:
        if feature in sums:
            _, old, space, name = sums[feature]
            with np.errstate(over="ignore"):
                value = old + value
            if not np.isfinite(value):
                raise MalformedError(0, REPEATED)
        sums[feature] = (feature, value, space, name)
    return list(sums.values())
