"""Random streams of examples for tests of the online learner."""

from __future__ import annotations

import numpy as np

from pomona import _native
from pomona.chunk import Chunk

FIELDS = ("a", "b", "c")


def field_of(feature: int) -> str:
    return FIELDS[feature % len(FIELDS)]


def random_rows(n: int, d: int, density: float, seed: int) -> list[dict[int, float]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        present = np.flatnonzero(rng.random(d) < density)
        values = rng.standard_normal(len(present)) * 10.0 ** rng.integers(-2, 3, len(present))
        rows.append({int(f): float(np.float32(x)) for f, x in zip(rng.permutation(present), values, strict=True)})
    return rows


def random_labels(rows: list[dict[int, float]], kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    score = np.array([sum(np.tanh(x) * (1 if f % 2 else -1) for f, x in row.items()) for row in rows])
    score = score + 0.3 * rng.standard_normal(len(rows))
    if kind == "sign":
        return np.where(score > 0, 1.0, -1.0)
    if kind == "count":
        return rng.poisson(np.exp(np.clip(score / 3, -2, 2))).astype(float)
    if kind == "class":
        return np.digitize(score, [-0.5, 0.5]).astype(float)
    return score


def as_chunk(
    rows: list[dict[int, float]], *, ids: bool, weights: np.ndarray | None = None, first: int = 0, step: int = 1
) -> Chunk:
    """Features by id, or as columns first, first + step …"""
    indptr = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
    features = np.array([f for row in rows for f in row], np.uint64)
    return Chunk(
        indptr,
        _native.mix(features) if ids else (first + step * features).astype(np.uint32),
        np.array([x for row in rows for x in row.values()], np.float32),
        weights=weights,
        fields=(features % len(FIELDS)).astype(np.uint16),
        names=lambda positions: [f"f{features[p]}" for p in positions],
    )
