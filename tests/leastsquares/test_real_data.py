"""Real data, where it is: a small part of the paper's experiments."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pomona import GLSClassifier, StagewiseClassifier

pytestmark = pytest.mark.data


@pytest.fixture(scope="module", name="digits")
def mnist(data_dir):
    with np.load(data_dir / "mnist.npz") as saved:
        X, X_test = (saved[f"x_{part}"].reshape(-1, 784).astype(np.float32) / 255 for part in ("train", "test"))
        return X[:4000], saved["y_train"][:4000], X_test[:2000], saved["y_test"][:2000]


def test_random_features_halve_the_error_of_pixels(digits):
    X, y, X_test, y_test = digits
    pixels = GLSClassifier(max_iter=30).fit(X, y).score(X_test, y_test)
    model = StagewiseClassifier(block_size=512, n_stages=4, inner="calibrated", generator_options={"pca": 50})
    random = model.fit(X, y).score(X_test, y_test)
    assert 1 - random < (1 - pixels) / 2
    curve = [np.mean(predicted != y_test) for predicted in model.staged_predict(X_test)]
    assert curve[-1] < curve[0]


def test_convolution_is_better_still(digits):
    X, y, X_test, y_test = digits
    options = {"shape": (28, 28, 1), "masks": "kmeans"}
    model = StagewiseClassifier(generator="convolution", generator_options=options, block_size=400, n_stages=1)
    assert model.fit(X[:2000], y[:2000]).score(X_test[:1000], y_test[:1000]) > 0.955


def test_ill_conditioned_pixels_do_not_slow_it_down(digits):
    X, y, _, _ = digits
    ridge = 1e-3
    model = GLSClassifier(ridge=ridge, precision="float64", max_iter=100, tol=1e-9).fit(X[:1500], y[:1500])
    peer = LogisticRegression(C=1 / (1500 * ridge), tol=1e-6, max_iter=1000).fit(X[:1500], y[:1500])

    def loss(coef, probabilities):
        rows = np.arange(1500)
        return -np.log(probabilities[rows, y[:1500]]).mean() + ridge / 2 * (coef**2).sum()

    ours, theirs = (loss(m.coef_, m.predict_proba(X[:1500])) for m in (model, peer))
    assert ours < 1.002 * theirs
