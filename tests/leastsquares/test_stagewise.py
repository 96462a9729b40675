"""Algorithm 3 against its transcription; early stopping, averaging, memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pomona import GLSClassifier, StagewiseClassifier, StagewiseRegressor
from pomona.errors import OptionError
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.generators import View, generator_of
from pomona.leastsquares.rows import ArrayRows
from pomona.leastsquares.stagewise import StagewiseFit, StagewiseOptions, held_out_rows
from pomona.leastsquares.targets import Targets
from tests.leastsquares.problems import classes
from tests.reference import least_squares as twin

HERE = Place.of(None, "float64")


def circle(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, ((X**2).sum(axis=1) > 2.4).astype(int) + (X[:, 0] > 1)


def fit(X, Y, generator, **options):
    options = {"block_size": 4, "ridge": 1e-3, **options}
    return StagewiseFit(
        ArrayRows(X, HERE, 64), Targets(Y, HERE), "classes", generator, StagewiseOptions(**options)
    ).run()


@pytest.mark.parametrize("inner", ["linear", "calibrated"])
@pytest.mark.parametrize("memory", [1 << 30, 1 << 20])
def test_equals_the_pseudocode(inner, memory):
    X, Y = classes(d=10)
    generator = generator_of("sample", 5)
    model = fit(X, Y, generator, inner=inner, n_stages=5, memory=memory)
    blocks = [generator.generate(t, 4, View(HERE, 10))(X) for t in range(5)]
    for ours, path in zip(model.staged(X), twin.algorithm_3(blocks, Y, inner, 1e-3), strict=True):
        np.testing.assert_allclose(ours, path, atol=1e-9)
    assert model.reports[-1].loss == pytest.approx(((path - Y) ** 2).sum() / len(Y))
    assert model.reports[-1].error == np.mean(path.argmax(axis=1) != Y.argmax(axis=1))


def test_logistic_stages_start_from_earlier_predictions():
    X, Y = classes(d=8)
    generator = generator_of("sample", 5)
    model = fit(X, Y, generator, inner="logistic", n_stages=2, inner_steps=1)
    U = np.zeros_like(Y)
    for t, ours in enumerate(model.staged(X)):
        Z = np.concatenate([generator.generate(t, 4, View(HERE, 8))(X), np.ones((len(X), 1))], axis=1)
        penalty = np.diag([1e-3] * 4 + [0.0])
        gradient = Z.T @ (twin.softmax(U) - Y) / len(X)
        U = U - Z @ np.linalg.solve(0.5 * Z.T @ Z / len(X) + penalty, gradient)
        np.testing.assert_allclose(ours, U, atol=1e-9)


def test_all_columns_in_one_block_are_ridge_regression():
    X, Y = classes(d=6)
    model = fit(X, Y, generator_of("sample", 0), block_size=6, n_stages=1)
    A = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    W = np.linalg.solve(A.T @ A / len(X) + np.diag([1e-3] * 6 + [0.0]), A.T @ Y / len(X))
    np.testing.assert_allclose(model.raw(X), A @ W, atol=1e-9)


@pytest.mark.parametrize("inner", ["linear", "calibrated"])
def test_training_error_never_rises(inner):
    X, Y = classes(d=20, noise=0.5)
    model = fit(X, Y, generator_of("fourier", 0), inner=inner, block_size=16, n_stages=12, ridge=None)
    losses = [report.loss for report in model.reports]
    assert all(b <= a + 1e-12 for a, b in zip(losses, losses[1:], strict=False))


def test_held_out_rows_do_not_teach():
    X, y = circle()
    held = held_out_rows(len(X), 0.25)
    assert held.sum() == 150
    stages = dict(block_size=32, n_stages=3, holdout=0.25, ridge=1e-3)
    one = StagewiseClassifier(**stages).fit(X, y)
    other = y.copy()
    other[held] = (other[held] + 1) % 3
    two = StagewiseClassifier(**stages).fit(X, other)
    np.testing.assert_array_equal(next(one.staged_predict_proba(X)), next(two.staged_predict_proba(X)))
    assert two.stages_[0].held_out > one.stages_[0].held_out
    for t, predicted in enumerate(one.staged_predict(X)):
        assert one.stages_[t].held_out_error == pytest.approx(np.mean(predicted[held] != y[held]))
        assert one.stages_[t].error == pytest.approx(np.mean(predicted[~held] != y[~held]))


def test_stops_early_and_keeps_the_best_stages():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    model = StagewiseClassifier(holdout=0.3, patience=2, n_stages=50, block_size=64, ridge=1e-6).fit(X, y)
    curve = [stage.held_out for stage in model.stages_]
    assert len(curve) < 50
    assert model.n_iter_ == int(np.argmin(curve)) + 1
    assert len(curve) == model.n_iter_ + 2
    assert len(list(model.staged_predict(X))) == model.n_iter_


def test_a_prefix_of_the_stages_is_a_smaller_model():
    X, y = circle()
    longer = StagewiseClassifier(block_size=32, n_stages=4).fit(X, y)
    for t, predicted in enumerate(longer.staged_predict_proba(X), start=1):
        shorter = StagewiseClassifier(block_size=32, n_stages=t).fit(X, y)
        np.testing.assert_allclose(predicted, shorter.predict_proba(X), atol=1e-9)


def test_averaging_is_the_mean_of_models_over_disjoint_features():
    X, y = circle()
    both = StagewiseClassifier(generator="sample", block_size=1, n_stages=1, n_models=3, ridge=0.0).fit(X, y)
    used = []
    for model in both.fitted_.models:
        chosen = both.fitted_.models[0].generator.generate(model.stages[0].number, 1, View(HERE, 3))(np.eye(3))
        used.append(int(chosen.argmax()))
    assert sorted(used) == [0, 1, 2]
    mean = np.mean([model.raw(X) for model in both.fitted_.models], axis=0)
    np.testing.assert_allclose(both.decision_function(X), mean)
    assert len(both.stages_) == 3


def test_averaging_helps():
    X, y = circle(2000)
    train, test = slice(500), slice(500, None)
    options = dict(block_size=64, n_stages=4, ridge=1e-5)
    one, many = (
        StagewiseClassifier(n_models=m, **options).fit(X[train], y[train]).score(X[test], y[test]) for m in (1, 5)
    )
    assert many > one


def test_sparse_columns_in_gradient_order():
    rng = np.random.default_rng(0)
    X = (rng.random((400, 60)) < 0.1).astype(float)
    y = X[:, 7] + X[:, 31] + X[:, 50] > 0
    model = StagewiseClassifier(generator="gradient", block_size=5, n_stages=1).fit(sparse.csr_matrix(X), y)
    assert {7, 31, 50} <= set(model.fitted_.models[0].generator.learnt["columns_0"].tolist())
    assert model.score(sparse.csr_matrix(X), y) == 1.0
    dense = StagewiseClassifier(generator="gradient", block_size=5, n_stages=1).fit(X, y)
    np.testing.assert_allclose(dense.decision_function(X), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("inner", ["linear", "calibrated", "logistic"])
@pytest.mark.parametrize("generator", ["fourier", "logits", "polynomials"])
def test_learns_what_a_linear_model_cannot(inner, generator):
    X, y = circle(1500)
    model = StagewiseClassifier(generator=generator, inner=inner, block_size=128, n_stages=4)
    linear = GLSClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > linear + 0.1


def test_multi_label():
    X, y = circle()
    Y = np.stack([y == 0, y == 2, X[:, 1] > 0], axis=1).astype(int)
    for inner in ("linear", "calibrated", "logistic"):
        model = StagewiseClassifier(inner=inner, block_size=128, n_stages=3).fit(X, Y)
        assert model.predict(X).shape == Y.shape
        assert (model.predict(X) == Y).mean() > 0.95
        assert model.predict_proba(X).min() > 0


def test_regression_of_several_targets_of_any_size():
    X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    Y = np.stack([1e6 + 1e3 * np.sin(X[:, 0]), 1e-5 * X[:, 1] ** 2], axis=1)
    model = StagewiseRegressor().fit(X, Y)
    assert model.score(X, Y) > 0.99
    assert [predicted.shape for predicted in model.staged_predict(X)] == [(500, 2)] * 10


def test_features_that_do_not_fit_are_generated_again():
    X, y = circle(5000)
    options = dict(block_size=200, n_stages=3, inner="logistic", precision="float32")
    roomy = StagewiseClassifier(memory=1 << 30, **options).fit(X, y)
    tight = StagewiseClassifier(memory=1 << 20, **options).fit(X, y)
    np.testing.assert_allclose(tight.decision_function(X), roomy.decision_function(X), atol=1e-4)


def test_default_sizes():
    options = StagewiseOptions()
    assert options.size(60_000, 784, columns_only=False) == 1024
    assert options.size(60_000, 784, columns_only=True) == 784
    assert options.size(100, 5, columns_only=False) == 100
    assert options.size(10, 5, columns_only=False) == 64
    assert StagewiseOptions(memory=1 << 20).size(60_000, 784, columns_only=False) == 104
    assert options.stages(5000, 1024, "sample") == 5
    assert options.stages(5000, 1024, "gradient") == 10
    assert options.stages(5000, 1024, "fourier") == 10


def test_wrong_options():
    X, y = circle(20)
    with pytest.raises(OptionError, match="'logistic' needs classes or labels"):
        StagewiseFit(ArrayRows(X, HERE), Targets(X, HERE), "values", None, StagewiseOptions(inner="logistic"))
    with pytest.raises(OptionError, match="inner step must be one of linear, calibrated, logistic; got 'newton'"):
        StagewiseOptions(inner="newton").check()
    with pytest.raises(OptionError, match=r"must be in \[0, 1\); got 1"):
        StagewiseOptions(holdout=1).check()


def test_codes_become_rows_when_they_are_read():
    codes = np.array([2, 0, 1, 2])
    for kept in (0, 1 << 20):
        targets = Targets(codes, HERE, 3, kept)
        np.testing.assert_array_equal(targets[slice(1, 4)], np.eye(3)[[0, 1, 2]])
        assert (targets.n, targets.k) == (4, 3)
