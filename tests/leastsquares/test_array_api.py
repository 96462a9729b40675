"""The same code on other array libraries: array-api-strict, which allows nothing beyond the standard, and torch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pomona import CalibratedLSClassifier, GLSClassifier, StagewiseClassifier, StagewiseRegressor
from pomona.errors import OptionError
from pomona.leastsquares.arrays import Place, cholesky
from pomona.leastsquares.gram import RaisedRidgeWarning
from pomona.leastsquares.projections import onto_cube, onto_simplex


@pytest.fixture(name="to", params=["array_api_strict", "torch"])
def conversion(request):
    """Makes an array of the library."""
    missing = f'{request.param} is not installed: pip install "pomona[arrays]"'
    library = pytest.importorskip(request.param, reason=missing)
    return lambda a: library.asarray(a)


def back(a):
    if isinstance(a, np.ndarray):
        return a
    return a.numpy() if hasattr(a, "numpy") else np.from_dlpack(a)


def problem(n=300):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 48))
    y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] ** 2 > 1)
    return X, y


CLASSIFIERS = [
    GLSClassifier(max_iter=20),
    GLSClassifier(link="identity"),
    CalibratedLSClassifier(max_iter=4),
    StagewiseClassifier(block_size=32, n_stages=3),
    StagewiseClassifier(block_size=32, n_stages=2, inner="logistic", generator="logits", generator_options={"pca": 5}),
    StagewiseClassifier(block_size=32, n_stages=2, inner="calibrated", generator="polynomials", n_models=2),
    StagewiseClassifier(generator="sample", block_size=10),
    StagewiseClassifier(generator="monomials", generator_options={"terms": [(0,), (1, 1), (2, 3)]}, n_stages=1),
    StagewiseClassifier(generator="gradient", block_size=10, n_stages=2),
    StagewiseClassifier(
        generator="convolution",
        block_size=32,
        n_stages=2,
        generator_options={"shape": (4, 4, 3), "patch": 2, "masks": "kmeans"},
    ),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_classifiers_give_the_same(model, to):
    X, y = problem()
    here = model.fit(X, y)
    expected = here.predict_proba(X), here.predict(X)
    there = model.fit(to(X), to(y))
    probabilities, classes = there.predict_proba(to(X)), there.predict(to(X))
    assert type(probabilities) is type(to(X))
    np.testing.assert_allclose(back(probabilities), expected[0], atol=1e-7)
    np.testing.assert_array_equal(back(classes), expected[1])
    # What was learnt there predicts arrays from here as well.
    np.testing.assert_allclose(there.predict_proba(X), expected[0], atol=1e-7)


def test_weights_labels_and_regression(to):
    X, y = problem()
    weights = np.linspace(0, 2, len(X))
    Y = np.stack([y == 0, y > 0], axis=1).astype(np.int64)
    for model in (StagewiseClassifier(block_size=32, n_stages=2), GLSClassifier(max_iter=10)):
        expected = model.fit(X, Y, sample_weight=weights).predict_proba(X)
        np.testing.assert_allclose(
            back(model.fit(to(X), to(Y), sample_weight=to(weights)).predict_proba(to(X))), expected, atol=1e-7
        )
    model = StagewiseRegressor(block_size=32, n_stages=2, holdout=0.2)
    expected = model.fit(X, X[:, 0] ** 2).predict(X)
    np.testing.assert_allclose(back(model.fit(to(X), to(X[:, 0] ** 2)).predict(to(X))), expected, atol=1e-7)


def test_float32_stays_float32_and_close(to):
    X, y = problem(2000)
    model = StagewiseClassifier(block_size=64, n_stages=3, ridge=1e-3)
    exact = model.fit(X, y).predict_proba(X)
    low = model.fit(to(X.astype(np.float32)), to(y))
    probabilities = low.predict_proba(to(X.astype(np.float32)))
    assert "float32" in str(probabilities.dtype)
    np.testing.assert_allclose(back(probabilities), exact, atol=1e-3)


def test_bad_arrays_are_refused(to):
    X, y = problem(50)
    model = GLSClassifier().fit(to(X), to(y))
    with pytest.raises(ValueError, match="has 3 features, but GLSClassifier is expecting 48"):
        model.predict(to(X[:, :3]))
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(to(X[0]), to(y))
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.fit(to(X), to(y))


def test_singular_matrices_are_handled(to):
    X = to(np.ones((20, 3)))
    with pytest.warns(RaisedRidgeWarning):
        model = GLSClassifier(link="identity", ridge=0.0).fit(X, to(np.arange(20) % 2))
    assert np.isfinite(back(model.predict_proba(X))).all()
    place = Place.of(X, "float64")
    assert cholesky(place.xp, place.put(np.array([[1.0, 2.0], [2.0, 1.0]]))) is None


def test_projections(to):
    V = np.random.default_rng(0).standard_normal((50, 4))
    np.testing.assert_allclose(back(onto_simplex(to(V))), onto_simplex(V), atol=1e-12)
    np.testing.assert_allclose(back(onto_cube(to(V))), onto_cube(V), atol=1e-12)


def test_pickles(to):
    X, y = problem()
    model = StagewiseClassifier(block_size=32, n_stages=2).fit(to(X), to(y))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back(again.predict_proba(to(X))), back(model.predict_proba(to(X))))


def test_a_device_by_name():
    pytest.importorskip("torch", reason='torch is not installed: pip install "pomona[gpu]"')
    X, y = problem()
    expected = StagewiseClassifier(block_size=32, n_stages=2).fit(X, y).predict_proba(X)
    # torch's "meta" is no device to compute on; its CPU is told by its full name.
    found = StagewiseClassifier(block_size=32, n_stages=2, device="cpu:0").fit(X, y)
    assert "torch" in found.fitted_.place.xp.__name__
    np.testing.assert_allclose(found.predict_proba(X), expected, atol=1e-7)
    with pytest.raises(OptionError, match="one that torch can use, such as 'cuda'; got 'warp'"):
        StagewiseClassifier(device="warp").fit(X, y)


def test_models_of_a_device_go_to_a_file(tmp_path):
    pytest.importorskip("torch", reason='torch is not installed: pip install "pomona[gpu]"')
    import pandas as pd

    from pomona import load

    X, y = problem()
    model = StagewiseClassifier(block_size=32, n_stages=2, device="cpu:0").fit(X, y)
    model.save(tmp_path / "m.pomona")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(48)])
    found = np.concatenate(list(load(tmp_path / "m.pomona").predict(frame)))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-4)
