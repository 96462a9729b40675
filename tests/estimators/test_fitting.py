"""Fitting: weights, orders, streams, classes, and the tools of scikit-learn around an estimator."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pomona import AppleClassifier, OnlineClassifier, OnlineRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y3 = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
Y2 = (X[:, 0] + 0.3 * RNG.normal(size=400) > 0).astype(int)
VALUE = X[:, 0] + np.sin(X[:, 1])


def test_it_learns():
    assert OnlineClassifier().fit(X, Y2).score(X, Y2) > 0.85
    assert OnlineRegressor().fit(X, VALUE).score(X, VALUE) > 0.95
    linear, quadratic = (OnlineClassifier(interactions=i).fit(X, Y3) for i in ("linear", "quadratic"))
    assert quadratic.score(X, Y3) > max(0.85, linear.score(X, Y3) + 0.1)


# ---- weights ----
@pytest.mark.parametrize("options", [{}, {"interactions": "quadratic"}, {"numeric": "raw"}, {"holdout": 0.2}])
@pytest.mark.parametrize("form", ["array", "sparse", "frame"])
def test_weight_two_is_the_row_twice_and_weight_zero_its_absence(form, options):
    frame = pd.DataFrame(X[:80], columns=list("abcd")).assign(kind=[f"k{i % 7}" for i in range(80)])
    frame.loc[::9, "a"] = np.nan
    rows = {"array": X[:80], "sparse": sparse.csr_matrix(X[:80]), "frame": frame}[form]
    weights = RNG.integers(0, 4, 80)
    repeated = np.repeat(np.arange(80), weights)
    several = frame.iloc[repeated] if form == "frame" else rows[repeated]
    for kind, y, method in ((OnlineClassifier, Y3[:80], "decision_function"), (OnlineRegressor, VALUE[:80], "predict")):
        weighted = kind(**options).fit(rows, y, sample_weight=weights)
        plain = kind(**options).fit(several, y[repeated])
        np.testing.assert_array_equal(getattr(weighted, method)(rows), getattr(plain, method)(rows))


def test_the_order_of_rows_does_not_matter_when_they_are_shuffled():
    order = RNG.permutation(400)
    one, other = OnlineClassifier().fit(X, Y2), OnlineClassifier().fit(X[order], Y2[order])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    other = OnlineClassifier(shuffle=False).fit(X[order], Y2[order])
    assert (one.decision_function(X) != other.decision_function(X)).any()


def test_the_seed_decides_the_order():
    margins = [OnlineClassifier(random_state=seed).fit(X, Y2).decision_function(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(margins[0], margins[1])
    assert (margins[0] != margins[2]).any()


def test_weights_that_sum_to_one_learn_as_well():
    plain = OnlineClassifier().fit(X, Y2)
    light = OnlineClassifier().fit(X, Y2, sample_weight=np.full(400, 1 / 400))
    np.testing.assert_allclose(light.decision_function(X), plain.decision_function(X), rtol=1e-5)


def test_balanced_classes_weigh_the_same():
    rare = (X[:, 0] > 1.2).astype(int)
    counts = np.bincount(rare)
    balanced = OnlineClassifier(class_weight="balanced").fit(X, rare)
    by_hand = OnlineClassifier(class_weight={k: 400 / (2 * counts[k]) for k in (0, 1)}).fit(X, rare)
    weighted = OnlineClassifier().fit(X, rare, sample_weight=(400 / (2 * counts))[rare])
    for other in (by_hand, weighted):
        np.testing.assert_allclose(balanced.decision_function(X), other.decision_function(X), rtol=1e-6)
    assert balanced.predict(X).sum() > OnlineClassifier(passes=1).fit(X, rare).predict(X).sum()


# ---- streams ----
@pytest.mark.parametrize("options", [{}, {"interactions": "quadratic"}, {"bits": 18}])
@pytest.mark.parametrize("form", ["array", "sparse"])
def test_partial_fit_over_chunks_equals_one_fit_in_order(form, options):
    rows = X if form == "array" else sparse.csr_matrix(X)
    whole = OnlineClassifier(shuffle=False, passes=1, **options)
    # One encoder for both: learnt from the first call.
    whole.partial_fit(rows[:100], Y3[:100], classes=[0, 1, 2])
    parts = copy.deepcopy(whole)
    whole.partial_fit(rows[100:], Y3[100:])
    for start in range(100, 400, 77):
        parts.partial_fit(rows[start : min(start + 77, 400)], Y3[start : min(start + 77, 400)])
    np.testing.assert_array_equal(whole.decision_function(rows), parts.decision_function(rows))


def test_the_first_partial_fit_equals_a_fit_in_order():
    fitted = OnlineRegressor(shuffle=False, passes=1).fit(X, VALUE)
    streamed = OnlineRegressor(shuffle=False).partial_fit(X, VALUE)
    np.testing.assert_array_equal(fitted.predict(X), streamed.predict(X))


def test_a_column_that_is_constant_at_first_is_learnt_later():
    early = X.copy()
    early[:50, 0] = 1.0
    stream = OnlineClassifier().partial_fit(early[:50], Y2[:50], classes=[0, 1])
    before = stream.score(X, Y2)
    for _ in range(5):
        stream.partial_fit(X, Y2)
    assert stream.score(X, Y2) > max(0.8, before)


def test_partial_fit_wants_all_classes_at_first():
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        OnlineClassifier().partial_fit(X, Y3)
    stream = OnlineClassifier().partial_fit(X, Y3, classes=[0, 1, 2, 5])
    assert stream.predict_proba(X).shape == (400, 4)
    with pytest.raises(ValueError, match="y has the class 7, which is not among the classes"):
        stream.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="not the same as on last call"):
        stream.partial_fit(X, Y3, classes=[0, 1])
    with pytest.raises(ValueError, match="class_weight='balanced' needs all labels at once"):
        OnlineClassifier(class_weight="balanced").partial_fit(X, Y3, classes=[0, 1, 2])


# ---- classes ----
@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1, 1], [3, 8], [0.0, 1.0], np.array(["a", "b"], object)]
)
def test_labels_come_back_as_they_were(labels):
    y = np.asarray(labels)[Y2]
    learner = OnlineClassifier().fit(X, y)
    assert learner.classes_.tolist() == sorted(np.asarray(labels).tolist())
    assert learner.predict(X).dtype == y.dtype
    assert learner.score(X, y) > 0.85
    pd.testing.assert_series_equal(
        pd.Series(OnlineClassifier().fit(X, pd.Series(y)).predict(X)), pd.Series(learner.predict(X))
    )


@pytest.mark.parametrize("multiclass", ["softmax", "ovr"])
def test_probabilities(multiclass):
    learner = OnlineClassifier(multiclass=multiclass, interactions="quadratic").fit(X, Y3)
    p = learner.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(learner.classes_[p.argmax(axis=1)], learner.predict(X))
    np.testing.assert_allclose(np.exp(learner.predict_log_proba(X)), p)
    assert log_loss(Y3, p) < 0.5
    assert not hasattr(OnlineClassifier(loss="hinge"), "predict_proba")


def test_quantiles_and_counts():
    noisy = VALUE + RNG.normal(size=400)
    low, high = (OnlineRegressor(loss="quantile", quantile=q).fit(X, noisy).predict(X) for q in (0.1, 0.9))
    assert np.mean(noisy < low) < 0.2 < 0.8 < np.mean(noisy < high)
    counts = RNG.poisson(np.exp(X[:, 0]))
    predicted = OnlineRegressor(loss="poisson").fit(X, counts).predict(X)
    assert (predicted > 0).all() and np.corrcoef(predicted, np.exp(X[:, 0]))[0, 1] > 0.9
    with pytest.raises(ValueError, match="'poisson' needs y >= 0; got -"):
        OnlineRegressor(loss="poisson").fit(X, VALUE)


# ---- passes ----
def test_passes_and_early_stopping(capsys):
    assert OnlineClassifier().fit(X, Y2).n_iter_ == 20
    assert OnlineClassifier(interactions="quadratic").fit(X, Y2).n_iter_ == 5
    assert OnlineClassifier(passes=7).fit(X, Y2).n_iter_ == 7
    noise = RNG.integers(0, 2, 400)
    assert OnlineClassifier(passes=50, holdout=0.25, patience=2, verbose=1).fit(X, noise).n_iter_ < 50
    assert "pass 1 of 50: 300 examples, progressive loss" in capsys.readouterr().out


# ---- memory ----
@pytest.mark.parametrize("passes", ["auto", 1])
def test_rows_that_are_larger_than_memory_when_encoded(passes):
    wide = RNG.normal(size=(8000, 12))
    value = np.sort(wide[:, 0])
    wide[:, 0] = value  # sorted, so that the order in which rows are learnt matters
    for kind, y in (
        (OnlineClassifier, np.digitize(value, [-0.5, 0.5])),
        (OnlineClassifier, value > 0),
        (OnlineRegressor, 100 + value),
    ):
        large = kind(memory=1 << 20, passes=passes)
        weights = RNG.integers(0, 3, 8000)
        score = kind(passes=passes).fit(wide, y, sample_weight=weights).score(wide, y)
        assert large.fit(wide, y, sample_weight=weights).score(wide, y) > score - 0.02
        assert large._is_large(wide) and not kind().fit(wide[:10], y[::800])._is_large(wide)
        assert large.n_iter_ == (20 if passes == "auto" else 1)


# ---- the tools around ----
def test_clone_pickle_and_copy():
    learner = OnlineClassifier(interactions="quadratic", bits=12).fit(X, Y3)
    assert clone(learner).get_params() == learner.get_params()
    assert not hasattr(clone(learner), "model_")
    for other in (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)):
        np.testing.assert_array_equal(other.decision_function(X), learner.decision_function(X))
        before = learner.decision_function(X)
        other.partial_fit(X, Y3)
        np.testing.assert_array_equal(learner.decision_function(X), before)
        assert (other.decision_function(X) != before).any()


def test_a_pickle_goes_on_to_the_bit():
    stream = OnlineRegressor(l1=1e-6).partial_fit(X[:200], VALUE[:200])
    other = pickle.loads(pickle.dumps(stream))
    for learner in (stream, other):
        learner.partial_fit(X[200:], VALUE[200:])
    np.testing.assert_array_equal(stream.predict(X), other.predict(X))


def test_grid_search_and_pipelines():
    search = GridSearchCV(OnlineClassifier(), {"interactions": ["linear", "quadratic"], "passes": [1, 5]}, cv=3)
    assert search.fit(X, Y3).best_params_ == {"interactions": "quadratic", "passes": 5}
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=Y3.astype(str))
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["kind"]), (StandardScaler(), list("abcd")))
    pipeline = make_pipeline(columns, OnlineClassifier(numeric="raw"))
    assert cross_val_score(pipeline, frame, Y3, cv=3).min() > 0.95
    pipeline.set_output(transform="pandas")
    assert pipeline.fit(frame, Y3).score(frame, Y3) > 0.95
    assert "onehotencoder__kind_0" in pipeline[-1].feature_names_in_


def test_select_from_model_uses_the_weights():
    wide = np.column_stack([X[:, 0], RNG.normal(size=(400, 3))])
    selected = SelectFromModel(OnlineClassifier(numeric="raw"), max_features=1, threshold=-np.inf).fit(wide, Y2)
    assert selected.get_support().tolist() == [True, False, False, False]


def test_sparse_and_dense_models_read_both():
    for fitted_on in (X, sparse.csr_matrix(X), sparse.csc_array(X)):
        learner = OnlineClassifier(numeric="raw").fit(fitted_on, Y2)
        margins = [learner.decision_function(form(X)) for form in (np.asarray, sparse.csr_matrix, sparse.csc_array)]
        np.testing.assert_array_equal(margins[0], margins[1])
        np.testing.assert_array_equal(margins[0], margins[2])


def test_predict_before_fit():
    for kind in (OnlineClassifier, OnlineRegressor):
        for method in ("predict", "top_terms", "save", "get_feature_names_out"):
            with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
                getattr(kind(), method)(*([X] if method == "predict" else ["x"] if method == "save" else []))


def test_apple_learns_noise_in_fewer_passes_than_what_is_there() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))
    noise = AppleClassifier(random_state=0).fit(X, rng.random(400) < 0.5)
    signal = AppleClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert noise.n_iter_ == 2 and signal.n_iter_ >= 20
    assert AppleClassifier(random_state=0, passes=3).fit(X, rng.random(400) < 0.5).n_iter_ == 3
