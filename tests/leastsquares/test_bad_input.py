"""Bad and odd input: a result or a clear message, never an error of LAPACK."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pomona import CalibratedLSClassifier, GLSClassifier, StagewiseClassifier, StagewiseRegressor
from pomona.errors import DataFormatError, NumericError
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.gls import StepOptions, gls
from pomona.leastsquares.learner import CalibratedLearnOptions, GLSLearnOptions, StagewiseLearnOptions
from pomona.leastsquares.links import Identity
from pomona.model import train
from pomona.options import ReadOptions
from tests.leastsquares.problems import problem

CLASSIFIERS = [
    GLSClassifier(),
    GLSClassifier(ridge=0.0, link="identity"),
    GLSClassifier(ridge=0.0, precision="float32"),
    CalibratedLSClassifier(),
    CalibratedLSClassifier(ridge=0.0),
    StagewiseClassifier(n_stages=2),
    StagewiseClassifier(n_stages=2, inner="logistic", ridge=0.0),
    StagewiseClassifier(generator="sample", inner="calibrated", ridge=0.0),
    StagewiseClassifier(generator="gradient"),
    StagewiseClassifier(generator="fourier", generator_options={"pca": 2, "standardize": True}, n_stages=2),
]
LEARNERS = [GLSLearnOptions(), CalibratedLearnOptions(), StagewiseLearnOptions(n_stages=2)]


def ordinary(n=60, d=4):
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "up", "down")


def odd_matrices():
    X, y = ordinary()
    zero, one = np.zeros((60, 1)), np.ones((60, 1))
    yield "constant columns", np.hstack([X, one, zero]), y
    yield "only constant columns", np.hstack([one, zero]), y
    yield "duplicate columns", np.hstack([X, X, X[:, :1]]), y
    yield "more features than rows", np.random.default_rng(1).standard_normal((60, 200)), y
    yield "one column", X[:, :1], y
    yield "units far apart", X * np.array([1e-12, 1.0, 1e6, 1e12]), y
    yield "tiny numbers", X * 1e-150, y
    yield "whole numbers", (X * 10).astype(np.int8), y
    yield "truth values", X > 0, y
    yield "equal rows", np.tile(X[:1], (60, 1)), y


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("case", list(odd_matrices()), ids=lambda case: case[0])
def test_odd_matrices_give_finite_probabilities(model, case):
    _, X, y = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-4)
    assert set(model.predict(X)) <= {"up", "down"}


def test_columns_that_repeat_do_not_hurt():
    X, y = ordinary(500)
    for model in CLASSIFIERS[:1] + CLASSIFIERS[3:4] + CLASSIFIERS[5:6]:
        assert model.fit(np.hstack([X, X, np.ones((500, 1))]), y).score(np.hstack([X, X, np.ones((500, 1))]), y) > 0.95


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_few_rows_and_one_class(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (1, 2):
            model.fit(np.arange(3.0 * n).reshape(n, 3), ["a", "b"][:n])
            assert set(model.predict(np.zeros((4, 3)))) <= {"a", "b"}
        model.fit(np.random.default_rng(0).standard_normal((10, 3)), ["only"] * 10)
    assert model.predict(np.zeros((2, 3))).tolist() == ["only"] * 2
    np.testing.assert_allclose(model.predict_proba(np.zeros((2, 3))), 1.0)


@pytest.mark.parametrize("labels", [[-7, 100], [2.0, 3.5][:1] + [7.0], ["no", "yes"], [False, True], [10**12, -5]])
def test_labels_of_any_kind(labels):
    X, y = ordinary()
    named = np.array(labels)[(y == "up").astype(int)]
    for model in (GLSClassifier(), CalibratedLSClassifier(), StagewiseClassifier(n_stages=2)):
        found = model.fit(X, named).predict(X)
        assert found.dtype == named.dtype
        assert np.mean(found == named) > 0.9


def test_a_label_never_met_counts_as_a_mistake():
    X, y = ordinary()
    model = StagewiseClassifier(n_stages=2).fit(X, y)
    other = y.copy()
    other[:] = "sideways"
    assert model.score(X, other) == 0.0


@pytest.mark.parametrize("model", [*CLASSIFIERS, StagewiseRegressor()], ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused_with_words(model, bad):
    X, y = ordinary()
    y = y if not isinstance(model, StagewiseRegressor) else X[:, 0]
    X = X.copy()
    X[3, 2] = bad
    for matrix in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="NaN|infinity"):
            model.fit(matrix, y)


def test_overflow_is_told():
    X, y = ordinary()
    place = Place.of(None, "float32")
    with pytest.raises(NumericError, match="overflow: scale the columns"):
        gls(problem(X * 1e25, np.eye(2)[(y == "up").astype(int)], place=place), Identity(), StepOptions())


def test_nan_from_a_generator_is_told():
    X, y = ordinary()
    with pytest.raises(NumericError, match="features must be finite numbers; got NaN"):
        StagewiseClassifier(generator=lambda stage, size, rng: lambda rows: np.log(-1 - rows**2)).fit(X, y)


def test_no_weight_at_all():
    X, y = ordinary()
    with pytest.raises(ValueError, match="at least one non-zero"):
        GLSClassifier().fit(X, y, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="Negative values"):
        GLSClassifier().fit(X, y, sample_weight=-np.ones(60))


def table(tmp_path, X, y):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).assign(y=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize("learn", LEARNERS, ids=lambda learn: learn.learner)
@pytest.mark.parametrize("case", list(odd_matrices())[:6], ids=lambda case: case[0])
def test_odd_files(tmp_path, learn, case):
    _, X, y = case
    path = table(tmp_path, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train(path, read=ReadOptions(target="y"), learn=learn)
    assert np.isfinite(np.concatenate(list(model.predict(path)))).all()


@pytest.mark.parametrize("learn", LEARNERS, ids=lambda learn: learn.learner)
def test_files_with_missing_values_one_class_or_no_rows(tmp_path, learn):
    X, y = ordinary()
    X[5, 2] = np.nan
    path = table(tmp_path, X, y)
    model = train(path, read=ReadOptions(target="y"), learn=learn)
    assert np.isfinite(np.concatenate(list(model.predict(path)))).all()
    path = table(tmp_path, X, ["same"] * 60)
    with pytest.raises(DataFormatError, match="single value 'same'"):
        train(path, read=ReadOptions(target="y"), learn=learn)
    path.write_text("a,y\n")
    with pytest.raises(DataFormatError, match="no rows"):
        train(path, read=ReadOptions(target="y"), learn=learn)
    (tmp_path / "t.vw").write_text("1 |\n-1 |\n")
    with pytest.raises(DataFormatError, match="no features"):
        train(tmp_path / "t.vw", learn=learn)
