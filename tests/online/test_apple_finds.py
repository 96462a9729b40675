"""Interactions that are there are found, and memory stays as it is once the parents are chosen."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the benchmarks need pandas")

from benchmarks.apple_planted import search
from benchmarks.planted import Planted

from pomona import AppleRegressor
from pomona.online.apple import AppleLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from tests.online.streams import as_chunk

SMALL = [
    Planted("dense", 10_000, 30, 2),
    Planted("binary", 10_000, 50, 2),
    Planted("binary", 20_000, 50, 3),
    Planted("sparse", 30_000, 1_000, 2),
]
LARGE = [Planted("binary", 60_000, 50, 4), Planted("sparse", 60_000, 100_000, 3)]


@pytest.mark.parametrize("heuristic", ["weight", "evidence"])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_planted_monomials_are_among_the_features(case: Planted, heuristic: str) -> None:
    for seed in range(2):
        X, y, planted = case.sample(seed)
        assert search(X, y, planted, heuristic)["all"]


def test_planted_monomials_are_named() -> None:
    X, y, planted = Planted("binary", 40_000, 30, 3, terms=2, noise=0.05).sample(0)
    names = AppleRegressor(numeric="raw", passes=3, random_state=0).fit(X, y).terms_["name"].tolist()
    found = {tuple(sorted(name.split(" · "))) for name in names}
    assert {tuple(sorted(f"x{f}" for f in m)) for m in planted} <= found


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_planted_monomials_of_high_degree_or_among_very_many_features(case: Planted) -> None:
    X, y, planted = case.sample(0)
    assert search(X, y, planted, "weight")["all"]


def test_nothing_is_found_where_nothing_is_planted() -> None:
    X, y, planted = Planted("sparse", 10_000, 1_000, 3).sample(0)
    shuffled = np.random.default_rng(1).permutation(y)
    assert not search(X, shuffled, planted, "evidence")["all"]


def test_memory_does_not_grow_once_the_parents_are_chosen() -> None:
    rng = np.random.default_rng(0)

    def rows(n: int) -> list[dict[int, float]]:
        return [{int(f): 1.0 + float(f % 3) for f in rng.choice(40, 8, replace=False)} for _ in range(n)]

    learner = AppleLearner(OnlineParameters(loss="squared", bounded=True), (), AppleParameters(alpha=0.75))
    learner.plan([300, 600, 900])

    def learn(n: int) -> int:
        for _ in range(n // 500):
            some = rows(500)
            learner.learn(as_chunk(some, ids=True), np.array([float(0 in row and 1 in row) for row in some]))
        return sum(array.nbytes for array in learner.state().arrays.values())

    settled = learn(6000)  # every product of the 40 features has appeared
    assert learn(6000) == settled
    assert len(learner.parents) > 10
