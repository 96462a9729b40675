"""Frames of each kind, missing values, sources, names, files, and the words of errors."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import pomona
from pomona import OnlineClassifier, OnlineRegressor
from pomona.errors import DataFormatError, ModelFileError

N = 300
RNG = np.random.default_rng(1)
AGE = RNG.integers(18, 80, N).astype(float)
AGE[::11] = np.nan
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in RNG.integers(0, 300, N)]
JOBS = RNG.choice(["cook", "nurse", "smith"], N)
COLUMNS = {
    "age": AGE,
    "job": [None if i % 13 == 0 else str(job) for i, job in enumerate(JOBS)],
    "town": pd.Categorical(RNG.choice(["a", "b"], N)),
    "member": RNG.random(N) < 0.5,
    "day": DAYS,
    "visits": RNG.integers(0, 9, N),
}
PANDAS = pd.DataFrame(COLUMNS)
ARROW = pa.Table.from_pandas(PANDAS, preserve_index=False)
POLARS = pl.from_arrow(ARROW)
Y = np.where((JOBS == "nurse") ^ PANDAS["member"], "yes", "no")
AMOUNT = PANDAS["visits"] * 2.0 + (JOBS == "cook") * 5


@pytest.mark.parametrize("interactions", ["linear", "quadratic", ["job*member", "age*job"]])
def test_frames_of_each_kind_give_equal_predictions(interactions):
    fitted = [OnlineClassifier(interactions=interactions).fit(frame, Y) for frame in (PANDAS, POLARS, ARROW)]
    margins = fitted[0].decision_function(PANDAS)
    for learner in fitted:
        assert learner.feature_names_in_.tolist() == list(COLUMNS)
        for frame in (PANDAS, POLARS, POLARS.lazy(), ARROW):
            np.testing.assert_array_equal(learner.decision_function(frame), margins)
    assert fitted[0].score(PANDAS, Y) > (0.6 if interactions == "linear" else 0.9)


def test_pandas_types_that_mean_the_same():
    other = PANDAS.convert_dtypes().assign(day=pd.to_datetime(PANDAS["day"]))
    learner = OnlineRegressor().fit(PANDAS, AMOUNT)
    np.testing.assert_array_equal(learner.predict(other.assign(day=PANDAS["day"])), learner.predict(PANDAS))
    assert learner.score(PANDAS, AMOUNT) > 0.95
    assert OnlineRegressor().fit(other, AMOUNT).score(other, AMOUNT) > 0.95


def test_missing_values_and_levels_never_met():
    learner = OnlineClassifier().fit(PANDAS, Y)
    strange = PANDAS.head(3).assign(job=["pilot", None, ""], age=np.nan)
    assert np.isfinite(learner.decision_function(strange)).all()
    holes = RNG.normal(size=(200, 2))
    y = (holes[:, 0] > 0).astype(int)
    holes[np.arange(200) % 5 == 0, 1] = np.nan
    marked = np.isnan(holes[:, 1]).astype(int)
    assert OnlineClassifier().fit(holes, marked).score(holes, marked) == 1.0
    assert OnlineClassifier().fit(holes, y).score(holes, y) > 0.95


def test_objects_strings_and_lists():
    rows = [["red", 1.0, None], ["blue", 2.0, "x"], ["red", 3.0, "y"], ["blue", 4.0, "x"]] * 5
    y = [0, 1, 0, 1] * 5
    for form in (rows, np.array(rows, object)):
        learner = OnlineClassifier().fit(np.array(form, object), y)
        assert learner.score(np.array(form, object), y) == 1.0
    assert OnlineClassifier().fit([[1, 2], [3, 4]], [0, 1]).predict([[1, 2]]).tolist() == [0]


def test_sparse_pandas_columns():
    dense = (RNG.random((60, 5)) < 0.3).astype(float)
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(dense))
    y = dense[:, 0].astype(int)
    np.testing.assert_array_equal(
        OnlineClassifier().fit(frame, y).decision_function(dense),
        OnlineClassifier().fit(sparse.csr_matrix(dense), y).decision_function(frame),
    )


def test_columns_of_numbers_may_be_categories_and_text_may_be_named():
    codes = RNG.integers(0, 50, 500).astype(float)
    y = (codes % 2).astype(int)
    noise = RNG.normal(size=500)
    X = np.column_stack([codes, noise])
    assert OnlineClassifier(categorical=[0]).fit(X, y).score(X, y) == 1.0
    assert OnlineClassifier(bins=8).fit(X, y).score(X, y) < 0.8
    words = pd.DataFrame({"note": [f"{'good' if k else 'bad'} thing {i}" for i, k in enumerate(y)]})
    learner = OnlineClassifier(text=["note"], ngrams=2).fit(words, y)
    assert learner.predict(pd.DataFrame({"note": ["a very good thing"]})).tolist() == [1]
    assert learner.top_terms(1)[0]["feature"] in ("note:good", "note:bad", "note:good thing", "note:bad thing")
    with pytest.raises(ValueError, match="categorical names column 5, but X has 2 columns"):
        OnlineClassifier(categorical=[5]).fit(X, y)
    with pytest.raises(DataFormatError, match="there is no column 'nota' for the option text: did you mean 'note'"):
        OnlineClassifier(text=["nota"]).fit(words, y)


# ---- sources ----
def test_fit_source_equals_fit_on_the_same_frame(tmp_path):
    table = ARROW.append_column("bought", pa.array(Y.tolist()))
    fitted = OnlineClassifier().fit(ARROW, Y)
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        sourced = OnlineClassifier().fit_source(frame, target="bought")
        np.testing.assert_array_equal(sourced.decision_function(ARROW), fitted.decision_function(ARROW))
    for part, start in (("a", 0), ("b", 140)):
        pq.write_table(table.slice(start, 140 if part == "a" else None), tmp_path / f"{part}.parquet")
    in_order = OnlineClassifier(shuffle=False, passes=2).fit(ARROW, Y)
    sourced = OnlineClassifier(shuffle=False, passes=2).fit_source(str(tmp_path / "*.parquet"), target="bought")
    np.testing.assert_allclose(sourced.decision_function(ARROW), in_order.decision_function(ARROW), rtol=1e-5)
    np.testing.assert_array_equal(sourced.predict(str(tmp_path / "b.parquet")), sourced.predict(ARROW.slice(140)))
    assert sourced.classes_.tolist() == ["no", "yes"] and sourced.n_features_in_ == 6
    assert OnlineClassifier().fit_source(tmp_path / "a.parquet", target="bought").n_iter_ == 20


def test_fit_source_knows_weights_ignored_columns_and_text_files(tmp_path):
    weights = RNG.integers(0, 3, N)
    table = ARROW.append_column("w", pa.array(weights)).append_column("y", pa.array(AMOUNT))
    sourced = OnlineRegressor().fit_source(table, target="y", weight="w", ignore=["day"])
    fitted = OnlineRegressor().fit(ARROW.drop_columns(["day"]), AMOUNT, sample_weight=weights)
    np.testing.assert_array_equal(
        sourced.predict(ARROW.drop_columns(["day"])), fitted.predict(ARROW.drop_columns(["day"]))
    )
    path = tmp_path / "x.csv"
    PANDAS.assign(y=AMOUNT).to_csv(path, index=False)
    from_text = OnlineRegressor().fit_source(path, target="y")
    assert from_text.n_iter_ == 20  # the rows were counted
    assert np.corrcoef(from_text.predict(path), AMOUNT)[0, 1] > 0.95


def test_fit_source_of_several_classes_that_come_late(tmp_path):
    path = tmp_path / "x.vw"
    labels = [3] * 60_000 + [2, 1, 2, 3] * 50
    path.write_text("\n".join(f"{label} | f{label} x:{i % 7}" for i, label in enumerate(labels[59_900:])))
    learner = OnlineClassifier().fit_source(path)
    assert learner.classes_.tolist() == [1, 2, 3]
    assert learner.predict(path)[-4:].tolist() == [2, 1, 2, 3]
    np.testing.assert_array_equal(learner.classes_[learner.predict_proba(path).argmax(1)], learner.predict(path))
    with pytest.raises(ValueError, match="there is no column 'z' for the target"):
        OnlineClassifier().fit_source(ARROW, target="z")


# ---- names ----
def test_feature_names_as_in_scikit_learn():
    learner = OnlineClassifier().fit(PANDAS, Y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        learner.predict(PANDAS[PANDAS.columns[::-1]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- new"):
        learner.predict(PANDAS.rename(columns={"age": "new"}))
    numbers = PANDAS[["age", "visits"]]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        OnlineClassifier().fit(numbers, Y).predict(numbers.to_numpy())
    with pytest.raises(ValueError, match="X has 3 features, but OnlineClassifier is expecting 2 features"):
        OnlineClassifier().fit(numbers.to_numpy(), Y).predict(np.zeros((1, 3)))


def test_names_of_encoded_features():
    learner = OnlineClassifier().fit(PANDAS[["visits", "job"]], Y)
    names = learner.get_feature_names_out().tolist()
    assert names[:3] == ["visits≈0", "visits≈1", "visits≈2"]
    assert {"job=cook", "job=nurse", "job=smith", "job is missing"} < set(names)
    assert learner.get_feature_names_out(["visits", "job"]).tolist() == names
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        learner.get_feature_names_out(["a", "b"])
    top = OnlineClassifier(interactions="quadratic").fit(PANDAS[["job", "member"]], Y).top_terms(3)
    assert any("job=nurse" in term["feature"] and "member" in term["feature"] for term in top)


@pytest.mark.parametrize("numeric", ["raw", "standard"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_linear_weights(form, numeric):
    X = RNG.normal(size=(200, 3)) * [1, 10, 0] + [0, 5, 2]
    scores = X @ [1.0, -0.2, 0.0]
    binary = OnlineClassifier(numeric=numeric).fit(form(X), scores > scores.mean())
    assert binary.coef_.shape == (1, 3)
    np.testing.assert_allclose(
        X @ binary.coef_[0] + binary.intercept_, binary.decision_function(X), rtol=1e-3, atol=1e-3
    )
    several = OnlineClassifier(numeric=numeric).fit(form(X), np.digitize(scores, [-1, 1]))
    expected = X @ several.coef_.T + several.intercept_
    np.testing.assert_allclose(expected, several.decision_function(X), rtol=1e-3, atol=1e-3)
    # Predictions are kept in the range of y, which the weights alone do not know.
    values = OnlineRegressor(numeric=numeric).fit(form(X), scores)
    expected = (X @ values.coef_ + values.intercept_).clip(scores.min(), scores.max())
    np.testing.assert_allclose(expected, values.predict(X), rtol=1e-3, atol=1e-3)


def test_linear_weights_are_not_there_where_columns_are_encoded():
    assert not hasattr(OnlineClassifier().fit(PANDAS, Y), "coef_")
    assert not hasattr(OnlineClassifier(), "coef_")
    with pytest.raises(AttributeError, match="coef_ needs numeric columns as they are, but 'age' is encoded"):
        _ = OnlineClassifier().fit(PANDAS, Y).coef_
    with pytest.raises(AttributeError, match="coef_ needs a model without interactions"):
        _ = OnlineClassifier(interactions="quadratic").fit(PANDAS, Y).coef_


# ---- files ----
def test_save_and_load(tmp_path):
    path = tmp_path / "m.pomona"
    learner = OnlineClassifier(interactions="quadratic", categorical=["visits"]).fit(PANDAS, Y)
    learner.save(path)
    other = OnlineClassifier.load(path)
    assert other.get_params() == learner.get_params()
    assert other.feature_names_in_.tolist() == list(COLUMNS)
    np.testing.assert_array_equal(other.decision_function(PANDAS), learner.decision_function(PANDAS))
    for one in (learner, other):
        one.partial_fit(PANDAS, Y)
    np.testing.assert_array_equal(other.decision_function(PANDAS), learner.decision_function(PANDAS))
    model = pomona.load(path)
    assert model.task.classes == ["no", "yes"]
    with pytest.raises(ModelFileError, match="the model classifies; load it by OnlineClassifier.load"):
        OnlineRegressor.load(path)
    numbers = OnlineRegressor().fit(sparse.csr_matrix(np.eye(4)), [1.0, 2, 3, 4])
    numbers.save(path)
    np.testing.assert_array_equal(OnlineRegressor.load(path).predict(np.eye(4)), numbers.predict(np.eye(4)))


# ---- errors ----
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0}, "The 'learning_rate' parameter of OnlineClassifier must be a float in the range"),
        ({"bits": 5}, r"The 'bits' parameter of OnlineClassifier must be an int in the range \[10, 30\] or None"),
        ({"passes": "many"}, "The 'passes' parameter of OnlineClassifier must be an int in the range"),
        ({"loss": "poisson"}, "The 'loss' parameter of OnlineClassifier must be a str among"),
        ({"interactions": "quartic"}, "interactions must be linear, quadratic, cubic, or two or three fields"),
        ({"numeric": "cooked"}, "numeric must be auto, or some of raw, standard, hat, onehot joined by"),
        ({"interactions": ["age*cat"]}, "'cat', which is not among"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        OnlineClassifier(**options).fit(PANDAS, Y)


def test_bad_data():
    with pytest.raises(ValueError, match="there must be at least two classes; got 1 class, 'no'"):
        OnlineClassifier().fit(PANDAS, ["no"] * N)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        OnlineClassifier().fit(PANDAS, Y[:-1])
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        OnlineClassifier().fit(PANDAS, Y, sample_weight=[-1.0] * N)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        OnlineClassifier().fit([[np.inf], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="Input contains NaN|Input X contains NaN"):
        OnlineClassifier().fit(sparse.csr_matrix([[np.nan], [1.0]]), [0, 1])
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        OnlineClassifier().fit(PANDAS.head(0), [])
    with pytest.raises(DataFormatError, match="column 'job' held text in training|held numbers in training"):
        OnlineClassifier().fit(PANDAS, Y).predict(PANDAS.assign(age="old"))
    with pytest.raises(DataFormatError, match="got a column that mixes them or holds other objects"):
        OnlineClassifier().fit(np.array([["a", [1]], ["b", [2]]], object), [0, 1])
