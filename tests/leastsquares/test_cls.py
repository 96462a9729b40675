"""Algorithm 2 against its transcription and Theorem 2."""

from __future__ import annotations

import numpy as np
import pytest

from pomona import CalibratedLSClassifier
from pomona.errors import OptionError
from pomona.leastsquares.cls import Calibration, RoundOptions, cls
from tests.leastsquares.problems import classes, problem
from tests.reference import least_squares as twin

CUBIC = [lambda y: y, lambda y: y**2, lambda y: y**3]


def test_equals_the_pseudocode():
    X, Y = classes(n=150)
    weights, path = twin.algorithm_2(X, Y, CUBIC, 4, twin.project_sorted, ridge=1e-3)
    fit = cls(
        problem(X, Y, block_rows=40),
        "classes",
        Calibration(pull=1e-14),
        RoundOptions(ridge=1e-3, max_rounds=4, tolerance=0),
        1 << 20,
    )
    assert len(fit.rounds) == 4
    for (W, C), (W_twin, C_twin) in zip(fit.rounds, weights, strict=True):
        np.testing.assert_allclose(W, W_twin, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(C, C_twin, rtol=1e-3, atol=1e-5)
    errors = [((Y - 0) ** 2).sum() / len(Y)] + [((Y - P) ** 2).sum() / len(Y) for P in path]
    np.testing.assert_allclose(fit.errors, errors, rtol=1e-8)


def test_hypercube_for_labels():
    X, Y = classes(n=150)
    _, path = twin.algorithm_2(X, Y, CUBIC, 3, lambda v: np.clip(v, 0, 1), ridge=1e-3)
    fit = cls(
        problem(X, Y), "labels", Calibration(pull=1e-14), RoundOptions(ridge=1e-3, max_rounds=3, tolerance=0), 1 << 20
    )
    assert fit.errors[-1] == pytest.approx(((Y - path[-1]) ** 2).sum() / len(Y))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_no_step_increases_the_squared_error(seed, kind):
    X, Y = classes(n=200, seed=seed, noise=0.3)
    fit = cls(
        problem(X, Y, with_intercept=True), kind, Calibration(), RoundOptions(max_rounds=20, tolerance=0), 1 << 20
    )
    assert all(b <= a + 1e-9 for a, b in zip(fit.errors, fit.errors[1:], strict=False))


def test_bound_of_theorem_2_without_noise():
    # g(u) = 1/k + Pu/2 with P the projection off the constant: g⁻¹ is in the span of {y}, κ = 1.
    rng = np.random.default_rng(0)
    k = 3
    X = rng.standard_normal((100, 4)) * 0.1
    W = rng.standard_normal((4, k))
    Y = 1 / k + 0.5 * (X @ W - (X @ W).mean(axis=1, keepdims=True))
    assert Y.min() > 0
    fit = cls(problem(X, Y), "classes", Calibration(), RoundOptions(ridge=1e-12, max_rounds=30, tolerance=0), 1 << 20)
    for t, error in enumerate(fit.errors[2::2], start=1):
        assert error <= 22 / t
    assert fit.errors[-1] < 1e-6


def test_stops_when_the_error_rests():
    X, Y = classes()
    fit = cls(problem(X, Y), "classes", Calibration(), RoundOptions(tolerance=1e-2, max_rounds=100), 1 << 20)
    assert len(fit.rounds) < 100


def test_functions_of_ones_own():
    calibration = Calibration(["y", np.tanh], pull=1e-14)
    X, Y = classes(n=100)
    fit = cls(problem(X, Y), "classes", calibration, RoundOptions(ridge=1e-3, max_rounds=2, tolerance=0), 1 << 20)
    _, path = twin.algorithm_2(X, Y, [lambda y: y, np.tanh], 2, twin.project_sorted, ridge=1e-3)
    assert fit.errors[-1] == pytest.approx(((Y - path[-1]) ** 2).sum() / len(Y), rel=1e-5)
    with pytest.raises(OptionError, match="one of y, y2, y3, or a callable; got 'z'"):
        Calibration(["z"])
    with pytest.raises(OptionError, match="at least one function"):
        Calibration([])


def test_predictions_in_a_file_give_the_same():
    X, Y = classes(n=100)
    options = RoundOptions(ridge=1e-3, max_rounds=3, tolerance=0)
    kept, spilled = (cls(problem(X, Y, block_rows=30), "classes", Calibration(), options, m) for m in (1 << 20, 0))
    assert kept.errors == spilled.errors


def test_rounds_can_be_looked_at_one_by_one():
    X, Y = classes(n=150)
    y = Y.argmax(axis=1)
    whole = CalibratedLSClassifier(ridge=1e-3, max_iter=4, tol=0).fit(X, y)
    shares = list(whole.staged_predict_proba(X))
    assert len(shares) == whole.n_iter_ == 4
    for rounds, (share, predicted) in enumerate(zip(shares, whole.staged_predict(X), strict=True), start=1):
        part = CalibratedLSClassifier(ridge=1e-3, max_iter=rounds, tol=0).fit(X, y)
        np.testing.assert_allclose(part.predict_proba(X), share, atol=1e-9)
        np.testing.assert_array_equal(part.predict(X), predicted)
