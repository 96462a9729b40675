"""What sections 2.2 and 2.3 of the paper prove or show holds when it is run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pomona.online.apple import AppleLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.online.terms import Terms
from pomona.source.arrays import ArraySource
from tests.reference.apple import AppleTwin, equal_epochs
from tests.reference.online import Monomial
from tests.reference.theorem import Path, Problem, algorithm_1, average_comparator, sample

Run = Callable[[Problem, int, list[int], int, int], Path]
CASES = [("logistic", 0.1, 6000), ("squared", 1.0, 3000)]


def parameters_of(problem: Problem) -> OnlineParameters:
    """The update of the library in the theorem's setting: plain SGD with L2, where the penalty acts after the step."""
    return OnlineParameters(
        loss=problem.loss, adaptive=False, normalized=False, invariant=False, intercept=False,
        learning_rate=1.0, l2=problem.lam, float64=True,
    )  # fmt: skip


def alpha_for(size: int, problem: Problem) -> float:
    """Makes ``size`` parents a round, all features being in every example."""
    return float(np.log(size + 0.5) / np.log(problem.points.shape[1]))


def by_twin(problem: Problem, T: int, schedule: list[int], size: int, seed: int) -> Path:
    d = problem.points.shape[1]
    alpha = alpha_for(size, problem)
    twin = AppleTwin(parameters_of(problem), alpha=alpha, schedule=schedule, degree=problem.degree)
    supports, largest = [np.array([len(m) == 1 for m in problem.monomials])], 0.0
    rows = [dict(enumerate(x)) for x in problem.points.tolist()]
    for t, (which, y) in enumerate(zip(*sample(problem, T, seed), strict=True), start=1):
        twin.learn(rows[which], float(y))
        if t % 100 == 0:
            w = np.array([twin.table[m].w[0] if m in twin.table else 0.0 for m in problem.monomials])
            largest = max(largest, float(np.linalg.norm(w)))
        if t in schedule:
            has = twin.features(dict.fromkeys(range(d), 1.0))
            supports.append(np.array([m in has for m in problem.monomials]))
    return Path(supports, largest, w)


def by_learner(problem: Problem, T: int, schedule: list[int], size: int, seed: int) -> Path:
    apple = AppleParameters(alpha=alpha_for(size, problem), degree=problem.degree)
    learner = AppleLearner(parameters_of(problem), (), apple)
    learner.plan(schedule)
    which, y = sample(problem, T, seed)
    chunk = next(iter(ArraySource(problem.points[which].astype(np.float32)).chunks()))
    supports, largest = [], 0.0
    for start in range(0, T, 100):
        learner.learn(chunk.slice(start, start + 100), y[start : start + 100])
        w = weights_of(learner, problem.monomials)
        largest = max(largest, float(np.linalg.norm(w)))
    for epoch in range(len(schedule) + 1):
        parents = [m for m, k in zip(learner.parents.monomials, learner.parents.rounds, strict=True) if k < epoch]
        products = {tuple(sorted((*m, i))) for m in parents for i in range(problem.points.shape[1])}
        supports.append(np.array([len(m) == 1 or m in products for m in problem.monomials]))
    return Path(supports, largest, w)


def weights_of(learner: AppleLearner, monomials: list[Monomial]) -> np.ndarray:
    terms = Terms.of(learner)
    found = {}
    for table in (0, 1):
        mine = np.flatnonzero(terms.tables == table)
        factors = learner.factors_at(table, terms.slots[mine].tolist())
        found |= {tuple(sorted(factors[int(terms.slots[i])])): float(terms.weights[i]) for i in mine}
    return np.array([found.get(m, 0.0) for m in monomials])


def check_bound(problem: Problem, paths: list[Path], schedule: list[int], T: int, shift: float) -> None:
    """The mean over runs of f(w_{T+1}) minus the average comparator is below the bound, which says something."""
    rng = np.random.default_rng(0)
    gaps, starts, norms = [], [], [path.largest for path in paths]
    for path in paths:
        comparators = []
        for support in path.supports:
            u = problem.minimiser(support)
            comparators.append(u + shift * np.where(support, rng.standard_normal(len(u)), 0.0))
        norms += [float(np.linalg.norm(u)) for u in comparators]
        average = average_comparator([problem.value(u) for u in comparators], schedule, T)
        gaps.append(problem.value(path.last) - average)
        starts.append(problem.value(np.zeros_like(path.last)) - average)
    bound = problem.bound(T, max(norms))
    assert np.mean(gaps) <= bound
    if not shift:
        assert bound < np.mean(starts)  # not learning at all would break it


@pytest.mark.parametrize(("loss", "lam", "T"), CASES)
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_theorem_1_by_its_own_recursion(loss: str, lam: float, T: int, shift: float) -> None:
    problem, schedule = Problem.random(loss, lam), equal_epochs(T)
    paths = [algorithm_1(problem, T, schedule, 2, seed) for seed in range(8)]
    assert any(path.supports[-1].sum() > path.supports[0].sum() for path in paths)
    check_bound(problem, paths, schedule, T, shift)


@pytest.mark.parametrize(("loss", "lam", "T"), CASES)
@pytest.mark.parametrize(("run", "seeds"), [(by_twin, 1), (by_learner, 8)])
def test_theorem_1_by_the_update_of_the_library(run: Run, seeds: int, loss: str, lam: float, T: int) -> None:
    problem, schedule = Problem.random(loss, lam), equal_epochs(T)
    paths = [run(problem, T, schedule, 2, seed) for seed in range(seeds)]
    assert any(path.supports[-1].sum() > path.supports[0].sum() for path in paths)
    check_bound(problem, paths, schedule, T, 0.0)


# ---- section 2.3: one monomial of degree 4 over d = 50, features 0 or 1 with the chance p, 1-sparse regression ----
TARGET, D = (3, 11, 27, 40), 50


def stages_until_found(weight: Callable[[Monomial], float]) -> tuple[int, int]:
    """Expand the heaviest monomial, stage by stage, until it is the target: stages, and features by then."""
    weights = {(i,): weight((i,)) for i in range(D)}
    parents: set[Monomial] = set()
    for stage in range(1, 10):
        heaviest = max((m for m in weights if m not in parents), key=lambda m: (abs(weights[m]), -len(m)))
        if heaviest == TARGET:
            return stage, len(weights)
        parents.add(heaviest)
        products = {tuple(sorted((*heaviest, i))) for i in range(D)}
        weights.update({m: weight(m) for m in products if m not in weights})
    raise AssertionError(f"not found; parents {sorted(parents)}")


@pytest.mark.parametrize("p", [0.5, 0.3, 0.1])
def test_a_single_monomial_is_found_by_its_sub_monomials(p: float) -> None:
    # E[y m] / E[m^2] with y the target: p to the number of its factors that m lacks.
    stages, features = stages_until_found(lambda m: p ** len(set(TARGET) - set(m)))
    assert stages == len(TARGET)
    assert features <= D * len(TARGET)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_monomial_is_found_in_a_sample(seed: int) -> None:
    x = (np.random.default_rng(seed).random((20_000, D)) < 0.5).astype(float)
    y = x[:, TARGET].prod(axis=1)

    def weight(m: Monomial) -> float:
        value = x[:, m].prod(axis=1)
        return float(value @ y / (value @ value))

    stages, features = stages_until_found(weight)
    assert stages == len(TARGET)
    assert features <= D * len(TARGET)


@pytest.mark.parametrize("seed", range(5))
def test_the_learner_finds_the_single_monomial_too(seed: int) -> None:
    """All weights are learnt together, not one at a time: more parents a round, the same number of stages."""
    x = (np.random.default_rng(seed).random((20_000, D)) < 0.5).astype(np.float32)
    learner = AppleLearner(OnlineParameters(loss="squared", bounded=True), (), AppleParameters(alpha=1.0))
    learner.plan(equal_epochs(len(x)))
    for chunk in ArraySource(x, x[:, TARGET].prod(axis=1)).chunks():
        assert chunk.labels is not None
        learner.learn(chunk, chunk.labels.astype(np.float64))
    known = dict(zip(learner.parents.monomials, learner.parents.rounds, strict=True))
    parts = [TARGET[:k] + TARGET[k + 1 :] for k in range(len(TARGET))]
    rounds = [known[m] for m in parts if m in known]
    assert rounds and min(rounds) + 2 <= len(TARGET)  # in the feature set of stage 4
    parents = sum(k <= min(rounds) for k in known.values())
    assert D + parents * D < 4000 < D ** len(TARGET) // 1000
