"""Algorithm 1 against its transcription, its theorem, and scikit-learn's optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from pomona.leastsquares.gls import Slope, StepOptions, gls, moments_at
from pomona.leastsquares.gram import RaisedRidgeWarning
from pomona.leastsquares.links import Identity, Logistic, Softmax
from tests.leastsquares.problems import classes, problem
from tests.reference import least_squares as twin


def exact(**options):
    return StepOptions(**{"ridge": 0.0, "tolerance": 0.0, "accelerate": False, "track": True, **options})


@pytest.mark.parametrize("L", [0.5, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_equals_the_pseudocode(L, ridge):
    X, Y = classes()
    path = twin.algorithm_1(X, Y, twin.softmax, L, 7, ridge=ridge)
    for steps in (1, 2, 7):
        fit = gls(problem(X, Y, block_rows=64), Softmax(), exact(max_steps=steps, lipschitz=L, ridge=ridge))
        np.testing.assert_allclose(fit.W, path[steps - 1], rtol=1e-8, atol=1e-9)
        assert (fit.steps, fit.converged) == (steps, False)


def test_accelerated_equals_its_transcription():
    X, Y = classes()
    path = twin.accelerated(X, Y, twin.softmax, 0.5, 25, ridge=1e-3)
    fit = gls(problem(X, Y), Softmax(), exact(max_steps=25, ridge=1e-3, accelerate=True))
    np.testing.assert_allclose(fit.W, path[-1], rtol=1e-7, atol=1e-9)


def test_least_squares_takes_one_step():
    X, Y = classes()
    fit = gls(problem(X, Y), Identity(), exact(max_steps=50))
    assert (fit.steps, fit.converged) == (1, True)
    np.testing.assert_allclose(fit.W, np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-8)


@pytest.mark.parametrize("accelerate", [False, True])
def test_reaches_the_optimum_of_logistic_regression(accelerate):
    X, Y = classes(n=400, d=8, k=4, noise=2.0)
    ridge = 1e-3
    peer = LogisticRegression(C=1 / (ridge * len(X)), fit_intercept=False, tol=1e-12, max_iter=10_000)
    best = twin.logistic_loss(X, Y, peer.fit(X, Y.argmax(axis=1)).coef_.T, ridge)
    fit = gls(problem(X, Y), Softmax(), exact(ridge=ridge, tolerance=1e-12, max_steps=5000, accelerate=accelerate))
    assert fit.converged
    assert abs(twin.logistic_loss(X, Y, fit.W, ridge) - best) < 1e-6


def test_intercept_reaches_the_optimum_too():
    X, Y = classes(n=300, k=3, noise=2.0)
    X = X + 5.0
    ridge = 1e-3
    peer = LogisticRegression(C=1 / (ridge * len(X)), tol=1e-12, max_iter=20_000).fit(X, Y.argmax(axis=1))
    fit = gls(problem(X, Y, with_intercept=True), Softmax(), exact(ridge=ridge, tolerance=1e-13, max_steps=5000))
    ours = X @ fit.W[:-1] + fit.W[-1]
    theirs = X @ peer.coef_.T + peer.intercept_
    np.testing.assert_allclose(twin.softmax(ours), twin.softmax(theirs), atol=2e-4)


def test_acceleration_helps():
    X, Y = classes(n=500, d=10, noise=0.5)
    plain, fast = (
        gls(problem(X, Y), Softmax(), exact(ridge=1e-6, tolerance=1e-7, max_steps=5000, accelerate=a))
        for a in (False, True)
    )
    assert fast.steps < plain.steps / 2


@pytest.mark.parametrize("seed", range(5))
def test_bound_of_theorem_1_along_the_run(seed):
    # Nesterov's bound, in the metric of Σ that the proof works in: 2 L |W*|²_Σ / (t + 4).
    X, Y = classes(n=150, d=5, k=3, seed=seed, noise=3.0)
    L = 0.5
    best = gls(problem(X, Y), Softmax(), exact(tolerance=1e-16, max_steps=20_000, accelerate=True))
    distance = ((X @ best.W) ** 2).sum() / len(X)
    path = gls(problem(X, Y), Softmax(), exact(max_steps=60)).losses
    least = twin.logistic_loss(X, Y, best.W)
    for t, loss in enumerate(path):
        assert loss - least <= 2 * L * distance / (t + 4) + 1e-12
    assert all(b <= a + 1e-12 for a, b in zip(path, path[1:], strict=False))


def test_linear_rate_of_theorem_1():
    # u + tanh(u)/2 has slopes between 1 and 3/2: strongly monotone, κ = 3/2.
    class Curved:
        lipschitz = 1.5

        def __call__(self, U):
            return U + np.tanh(U) / 2

        def potential(self, U):
            return (U**2 / 2 + np.log(np.cosh(U)) / 2).sum(axis=1)

    X, Y = classes()
    best = gls(problem(X, Y), Curved(), exact(max_steps=500, tolerance=1e-18))
    path = gls(problem(X, Y), Curved(), exact(max_steps=30)).losses
    distance, kappa = ((X @ best.W) ** 2).sum() / len(X), 1.5
    for t, loss in enumerate(path):
        assert loss - best.losses[-1] <= 1.5 / 2 * ((kappa - 1) / (kappa + 1)) ** t * distance + 1e-12


def test_loss_is_tracked():
    X, Y = classes()
    fit = gls(problem(X, Y), Softmax(), exact(max_steps=3, ridge=0.1))
    W = twin.algorithm_1(X, Y, twin.softmax, 0.5, 2, ridge=0.1)
    assert fit.losses == pytest.approx([np.log(3)] + [twin.logistic_loss(X, Y, w, 0.1) for w in W])


def test_labels_by_themselves_are_binary_problems():
    X, Y = classes(k=2)
    fit = gls(problem(X, Y), Logistic(), exact(ridge=1e-3, tolerance=1e-14, max_steps=3000, accelerate=True))
    for j in range(2):
        peer = LogisticRegression(C=1 / (1e-3 * len(X)), fit_intercept=False, tol=1e-12, max_iter=5000)
        np.testing.assert_allclose(fit.W[:, j], peer.fit(X, Y[:, j]).coef_[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("link", [Identity(), Softmax(), Logistic()])
def test_links_are_gradients_with_their_lipschitz_constants(link):
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((2, 500, 4)) * 3
    step = 1e-6
    for j in range(4):
        E = np.zeros(4)
        E[j] = step
        slope = (link.potential(U + E) - link.potential(U - E)) / (2 * step)
        np.testing.assert_allclose(slope, link(U)[:, j], atol=1e-7)
    moved, distance = np.linalg.norm(link(U) - link(V), axis=1), np.linalg.norm(U - V, axis=1)
    assert (moved <= link.lipschitz * distance + 1e-12).all()


def test_the_tight_constant_of_softmax_is_attained():
    # Footnote 3: at probabilities (1/2, 1/2, 0, …) the Hessian has the eigenvalue 1/2.
    u = np.array([[0.0, 0.0, -50.0]])
    step = np.array([[1e-5, -1e-5, 0.0]])
    ratio = np.linalg.norm(Softmax()(u + step) - Softmax()(u - step)) / np.linalg.norm(2 * step)
    assert ratio == pytest.approx(0.5, rel=1e-6)


def test_weights_are_repetitions():
    X, Y = classes(n=60)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    weighted = gls(problem(X, Y, weights=counts.astype(float), with_intercept=True), Softmax(), exact(max_steps=9))
    rows = np.repeat(np.arange(60), counts)
    repeated = gls(problem(X[rows], Y[rows], with_intercept=True), Softmax(), exact(max_steps=9))
    np.testing.assert_allclose(weighted.W, repeated.W, rtol=1e-7, atol=1e-9)


def test_warm_start_goes_on():
    X, Y = classes()
    half = gls(problem(X, Y), Softmax(), exact(max_steps=3))
    whole = gls(problem(X, Y), Softmax(), exact(max_steps=6))
    rest = gls(problem(X, Y), Softmax(), exact(max_steps=3), start=half.W)
    np.testing.assert_allclose(rest.W, whole.W, rtol=1e-8, atol=1e-10)


def test_one_gram_matrix_serves_several_ridges():
    X, Y = classes()
    start = np.full((X.shape[1], Y.shape[1]), 0.1)
    both = moments_at(Slope(problem(X, Y), Softmax()), start)
    for ridge in (1e-1, 1e-3, 1e-2):
        options = exact(max_steps=20, ridge=ridge)
        alone = gls(problem(X, Y), Softmax(), options, start)
        np.testing.assert_array_equal(gls(problem(X, Y), Softmax(), options, start, both=both).W, alone.W)


def test_sparse_rows_give_the_same():
    X, Y = classes()
    X = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    for weights in (None, np.linspace(0.1, 2, len(X))):
        dense = gls(problem(X, Y, with_intercept=True, weights=weights), Softmax(), exact(max_steps=5))
        thin = gls(
            problem(sparse.csr_matrix(X), Y, with_intercept=True, weights=weights, block_rows=50),
            Softmax(),
            exact(max_steps=5),
        )
        np.testing.assert_allclose(thin.W, dense.W, rtol=1e-8, atol=1e-10)


def test_a_singular_matrix_raises_the_ridge_and_says_so():
    X, Y = classes()
    X = np.concatenate([X, X[:, :2], np.zeros((len(X), 1))], axis=1)
    with pytest.warns(RaisedRidgeWarning, match="not positive definite with a ridge of 0"):
        fit = gls(problem(X, Y), Identity(), exact())
    assert fit.ridge > 0
    np.testing.assert_allclose(X @ fit.W, X @ np.linalg.lstsq(X, Y, rcond=None)[0], atol=1e-4)


def test_float32_with_sums_in_float64_stays_close():
    X, Y = classes(n=5000)
    high = gls(problem(X, Y), Identity(), exact())
    low = gls(problem(X, Y, precision="float32", block_rows=512), Identity(), exact())
    np.testing.assert_allclose(X @ low.W, X @ high.W, atol=1e-4)
