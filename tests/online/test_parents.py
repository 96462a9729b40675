"""The parents of apple: each product belongs to one of them, and stays with it."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from pomona.chunk import Chunk
from pomona.online.apple import AppleLearner
from pomona.online.parameters import OnlineParameters
from pomona.online.parents import ROOT, Parents


class TestParents:
    def owner(self, parents: Parents, monomial: tuple[int, ...]) -> list[int]:
        """Parents that do not leave this product to another."""
        found = []
        excluded = parents._described["excluded"].reshape(len(parents), -1)
        for i, m in enumerate(parents.monomials):
            rest = Counter(monomial)
            rest.subtract(m)
            if sorted(rest.values())[-1:] != [1] or min(rest.values()) < 0 or sum(rest.values()) != 1:
                continue
            row = max(rest, key=lambda row: rest[row])
            factor = int(np.searchsorted(parents.factors, row))
            known = factor < len(parents.factors) and parents.factors[factor] == row
            if not (known and excluded[i, factor // 64] >> np.uint64(factor % 64) & np.uint64(1)):
                found.append(i)
        return found

    def test_every_product_has_one_owner_which_stays(self) -> None:
        rng = np.random.default_rng(3)
        parents = Parents()
        owners: dict[tuple[int, ...], int] = {}
        for _ in range(4):
            known = [(ROOT, row) for row in range(70)] + [(p, row) for p in range(len(parents)) for row in range(70)]
            chosen: dict[tuple[int, ...], tuple[int, int]] = {}
            for i in rng.permutation(len(known)).tolist():
                m = parents.product(*known[i])
                if m not in parents.monomials and len(chosen) < 12:
                    chosen.setdefault(m, known[i])
            parents.add(list(chosen.values()))
            for p, row in itertools.product(range(len(parents)), range(70)):
                m = parents.product(p, row)
                found = self.owner(parents, m)
                assert len(found) == 1
                assert owners.setdefault(m, found[0]) == found[0]

    def test_the_first_round_over_fifty_features_makes_1326_with_the_intercept(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 50)).astype(np.float32)
        y = np.sign(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=120))
        indptr = np.arange(0, 120 * 50 + 1, 50, dtype=np.int64)
        chunk = Chunk(indptr, np.tile(np.arange(50, dtype=np.uint32), 120), X.ravel())
        learner = AppleLearner(OnlineParameters())
        learner.plan([100])
        learner.learn(chunk.slice(0, 100), y[:100])
        before = learner.features
        learner.learn(chunk.slice(100, 120), y[100:])
        assert (learner.features - before) / 20 == 1326
