"""The transcription of Algorithm 1 does what the paper says; the kernel is held against it elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pomona.online.parameters import OnlineParameters
from tests.online.streams import field_of, random_labels, random_rows
from tests.reference.apple import AppleTwin, Statistics, equal_epochs

SQUARED = OnlineParameters(loss="squared", bounded=True)


def dense_rows(n: int, d: int, seed: int = 0) -> list[dict[int, float]]:
    return [dict(enumerate(x)) for x in np.random.default_rng(seed).standard_normal((n, d)).tolist()]


def learnt(twin: AppleTwin, rows: list[dict[int, float]], kind: str = "value") -> AppleTwin:
    for row, y in zip(rows, random_labels(rows, kind, seed=1).tolist(), strict=True):
        twin.learn(row, y)
    return twin


def children(parents: int, d: int) -> int:
    """Distinct products of some base features with all d of them."""
    return parents * d - parents * (parents - 1) // 2


@pytest.mark.parametrize(("alpha", "parents"), [(1.0, 50), (0.75, 18), (0.5, 7), (0.25, 2), (0.125, 1), (0.0, 1)])
def test_first_round_has_the_closed_form_of_features(alpha: float, parents: int) -> None:
    twin = AppleTwin(SQUARED, alpha=alpha, schedule=[20])
    rows = dense_rows(21, 50)
    learnt(twin, rows)
    assert len(twin.parents) == parents
    assert len(twin.features(rows[0])) == len(twin.table) == 1 + 50 + children(parents, 50)
    if alpha == 1:
        assert len(twin.table) == 1326


def test_epochs_are_equal_and_one_more_than_rounds() -> None:
    assert equal_epochs(600) == [100, 200, 300, 400, 500]
    assert equal_epochs(601) == [101, 202, 303, 404, 505]
    assert equal_epochs(10, epochs=1) == []


def test_degree_is_bounded_by_epochs_and_by_the_cap() -> None:
    rows = dense_rows(120, 3)
    free = learnt(AppleTwin(SQUARED, schedule=equal_epochs(120)), rows)
    assert 3 <= max(map(len, free.table)) <= 6
    capped = learnt(AppleTwin(SQUARED, schedule=equal_epochs(120), degree=2), rows)
    assert max(map(len, capped.table)) == 2
    assert set(map(len, capped.parents)) == {1}
    linear = learnt(AppleTwin(SQUARED, schedule=equal_epochs(120), degree=1), rows)
    assert linear.parents == []


def test_no_monomial_is_expanded_twice_and_features_follow_from_parents() -> None:
    rows = random_rows(300, 12, 0.4, seed=3)
    twin = learnt(AppleTwin(SQUARED, schedule=equal_epochs(300)), rows)
    assert len(set(twin.parents)) == len(twin.parents)
    parents = set(twin.parents)
    for m in twin.table:
        assert list(m) == sorted(m)
        assert len(m) < 2 or any(m[:k] + m[k + 1 :] in parents for k in range(len(m)))


def test_new_parents_are_the_heaviest_candidates() -> None:
    rows = dense_rows(60, 9)
    twin = AppleTwin(SQUARED, alpha=0.5, schedule=[30])
    learnt(twin, rows[:30])
    weights = sorted(range(9), key=lambda f: -abs(twin.table[f,].w[0]))
    assert twin.parents == [(f,) for f in weights[:3]]
    scaled = AppleTwin(SQUARED, alpha=0.5, schedule=[30], heuristic="scaled")
    learnt(scaled, rows[:30])
    reach = sorted(range(9), key=lambda f: -abs(twin.table[f,].w[0]) * twin.table[f,].N)
    assert scaled.parents == [(f,) for f in reach[:3]] != twin.parents


def test_ssm_is_the_mean_squared_derivative_where_the_monomial_is_large() -> None:
    rows = dense_rows(40, 6)
    labels = random_labels(rows, "value", seed=1).tolist()
    twin = AppleTwin(SQUARED, alpha=0.5, schedule=[40], heuristic="ssm")
    slopes = [2 * (twin.learn(row, y)[0] - y) for row, y in zip(rows, labels, strict=True)]
    x = np.array([[row[f] for f in range(6)] for row in rows])
    index = (np.square(slopes) @ x**2) / (x**2).sum(axis=0)
    assert twin.parents == [(int(f),) for f in np.argsort(-index)[:2]]


def test_sums_begin_anew_with_every_epoch() -> None:
    rows = dense_rows(80, 4)
    twin = learnt(AppleTwin(SQUARED, schedule=[60], heuristic="ssm"), rows)
    assert twin.sums[0,].moment == pytest.approx(sum(row[0] ** 2 for row in rows[60:]))
    assert twin.sums[0,].count == 20


@pytest.mark.parametrize("heuristic", ["picky-weight", "picky-ssm"])
def test_picky_products_are_tested_before_they_join(heuristic: str) -> None:
    rows = dense_rows(120, 5)
    twin = AppleTwin(SQUARED, schedule=[30, 60, 90], heuristic=heuristic)
    learnt(twin, rows[:31])
    assert len(twin.parents) == 5 and max(map(len, twin.table)) == 1  # on trial, no features yet
    labels = random_labels(rows, "value", seed=1).tolist()
    for row, y in zip(rows[31:60], labels[31:60], strict=True):
        twin.learn(row, y)
    assert len(twin.joined) == 5 and all(len(m) == 2 for m in twin.joined)
    assert all(m not in twin.joined for m in twin.parents)
    for row, y in zip(rows[60:], labels[60:], strict=True):
        twin.learn(row, y)
    assert len(twin.joined) == 10
    assert set(twin.table) == {(), *[(f,) for f in range(5)]} | twin.joined


def test_picky_weight_finds_the_product_in_the_target() -> None:
    rows = dense_rows(900, 6)
    twin = AppleTwin(SQUARED, alpha=1.0, schedule=[300, 600], heuristic="picky-weight")
    for row in rows:
        twin.learn(row, row[1] * row[4])
    assert (1, 4) in twin.joined
    assert max(twin.joined, key=lambda m: abs(twin.table[m].w[0])) == (1, 4)


def test_the_fall_back_makes_every_base_feature_a_parent_in_d_rounds() -> None:
    rows = dense_rows(100, 8)
    without = learnt(AppleTwin(SQUARED, alpha=0.0, schedule=list(range(10, 90, 10))), rows)
    assert {m for m in without.parents if len(m) == 1} != {(f,) for f in range(8)}
    twin = learnt(AppleTwin(SQUARED, alpha=0.0, schedule=list(range(10, 90, 10)), fallback=True), rows)
    assert sorted(twin.parents) == [(f,) for f in range(8)]
    both = learnt(AppleTwin(SQUARED, alpha=0.5, schedule=[10], fallback=True), rows)
    assert len(both.parents) == 2


def test_a_heuristic_of_ones_own() -> None:
    def rare(known: Statistics) -> np.ndarray:
        return np.where(known.degree == 1, 1 / known.count, 0.0)

    rows = random_rows(200, 10, 0.3, seed=5)
    twin = learnt(AppleTwin(SQUARED, alpha=0.5, schedule=[200], heuristic=rare), rows)
    counts = {f: sum(f in row for row in rows) for f in range(10)}
    assert twin.parents == [(f,) for f in sorted(counts, key=lambda f: (counts[f], f))[: len(twin.parents)]]


def test_only_named_fields_are_multiplied() -> None:
    rows = random_rows(200, 9, 0.8, seed=6)
    fields = {f: field_of(f) for f in range(9)}
    twin = learnt(AppleTwin(SQUARED, fields, schedule=equal_epochs(200), expand=("a", "b")), rows)
    assert twin.parents and all(fields[f] != "c" for m in twin.parents for f in m)
    assert all(fields[f] != "c" for m in twin.table if len(m) > 1 for f in m)
    assert twin.nonzeros == sum(fields[f] != "c" for row in rows for f in row)


def test_equal_scores_fall_to_the_smaller_degree_and_then_to_the_smaller_ids() -> None:
    # Columns of ones: a monomial and its multiples by powers have one history.
    twin = AppleTwin(SQUARED, alpha=1.0, schedule=[5, 10, 15])
    for t in range(16):
        twin.learn({0: 1.0, 1: 1.0}, float(t % 3))
    assert twin.parents[:2] == [(0,), (1,)]
    assert twin.parents[2:4] == [(0, 0), (0, 1)]


def test_shared_parents_for_several_classes() -> None:
    rows = dense_rows(60, 7)
    parameters = OnlineParameters(loss="softmax", n_outputs=3)
    twin = learnt(AppleTwin(parameters, alpha=0.6, schedule=[60]), rows, "class")
    sizes = {f: sum(map(abs, twin.table[f,].w)) for f in range(7)}
    assert twin.parents == [(f,) for f in sorted(sizes, key=lambda f: -sizes[f])[: math.floor(7**0.6)]]


def test_expansion_off_is_linear() -> None:
    rows = random_rows(100, 8, 0.5, seed=2)
    apple = learnt(AppleTwin(SQUARED, schedule=[]), rows)
    late = learnt(AppleTwin(SQUARED, schedule=[101]), rows)
    assert {m: slot.w for m, slot in apple.table.items()} == {m: slot.w for m, slot in late.table.items()}
    assert max(map(len, apple.table)) == 1
