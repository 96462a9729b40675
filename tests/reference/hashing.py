"""Feature ids, slowly: the twin of native/hash.h and native/ngrams.h."""

from __future__ import annotations

BITS = (1 << 64) - 1


def mix(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def fold_multiply(a: int, b: int) -> int:
    product = a * b
    return (product & BITS) ^ (product >> 64)


def hash_bytes(name: bytes, seed: int = 0) -> int:
    h, rest = seed, name
    while len(rest) > 16:
        low, high = int.from_bytes(rest[:8], "little"), int.from_bytes(rest[8:16], "little")
        h = fold_multiply(low ^ h, high ^ 0x8EBC6AF09C88C6E3)
        rest = rest[16:]
    low, high = int.from_bytes(rest[:8], "little"), int.from_bytes(rest[8:], "little")
    h = fold_multiply(low ^ h ^ 0xA0761D6478BD642F, high ^ 0xE7037ED1A0B428DB)
    return fold_multiply(h ^ len(name), 0x589965CC75374CC3)


def gram_id(words: list[int]) -> int:
    gram = words[0]
    for word in words[1:]:
        gram = (mix(gram) + word) & BITS
    return gram
