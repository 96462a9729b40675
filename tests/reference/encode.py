"""Slow, obvious twins of the encoders."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from tests.reference import hashing


def share(low: float, high: float, x: float) -> float:
    """0 at ``low``, 1 at ``high``, linear between."""
    if x <= low:
        return 0.0
    if x >= high:
        return 1.0
    scale = 1.0 if math.isfinite(high - low) else 0.5
    return (x * scale - low * scale) / (high * scale - low * scale)


def hat(x: float, knots: Sequence[float]) -> dict[int, float]:
    """Shares of the knots, by number."""
    if x <= knots[0]:
        return {0: 1.0}
    if x >= knots[-1]:
        return {len(knots) - 1: 1.0}
    k = max(i for i in range(len(knots)) if knots[i] <= x)
    t = share(knots[k], knots[k + 1], x)
    return {i: v for i, v in ((k, 1.0 - t), (k + 1, t)) if v != 0.0}


def bin_of(x: float, edges: Sequence[float]) -> int:
    """Number of the bin; bin i ends at, and includes, ``edges[i]``."""
    return sum(edge < x for edge in edges)


_APART = (
    "\x80-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u206f\u2190-\u2bff\u3000-\u3004\u3008-\u3020"
    "\ufe30-\ufe4f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_ALONE}]|(?:[a-zA-Z0-9_]|[^\x00-\x7f{_APART}{_ALONE}])+")


def words(text: str) -> list[str]:
    """The words of a text that is lower case already."""
    return _WORD.findall(text)


def grams(text: str, ngrams: int, skips: int) -> list[tuple[str, ...]]:
    """All runs of up to ``ngrams`` words that pass over at most ``skips`` words."""
    found = words(text)
    return [
        tuple(found[i] for i in chosen)
        for n in range(1, ngrams + 1)
        for chosen in combinations(range(len(found)), n)
        if chosen[-1] - chosen[0] - (n - 1) <= skips
    ]


def gram_id(gram: Sequence[str], seed: int) -> int:
    return hashing.gram_id([hashing.hash_bytes(word.encode(), seed) for word in gram])


def text_row(text: str, seed: int, ngrams: int, skips: int) -> dict[int, float]:
    """Weight of each n-gram: log(1 + count), scaled to length 1."""
    counts = Counter(gram_id(gram, seed) for gram in grams(text, ngrams, skips))
    weights = {id_: math.log1p(count) for id_, count in counts.items()}
    length = math.sqrt(sum(w * w for w in weights.values()))
    return {id_: w / length for id_, w in weights.items()}
