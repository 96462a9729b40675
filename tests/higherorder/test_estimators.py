"""The classifiers as a scikit-learn user meets them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from pomona import ALRClassifier, AnJEClassifier, KDBClassifier, MDLDiscretizer
from pomona.errors import ModelFileError, OptionError


def frame(n: int = 3000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["cook", "nurse", "pilot"], n),
            "pay": rng.standard_normal(n),
            "town": pd.Categorical(rng.choice(["Bern", "Oslo"], n)),
        }
    )
    X.loc[::9, "pay"] = np.nan
    young = X.age < 40
    y = np.where(young == (X.job == "cook"), "in", np.where(X.town == "Oslo", "out", "away"))
    return X, y


def test_numbers_and_categories_mixed() -> None:
    X, y = frame()
    model = ALRClassifier(order=2).fit(X, y)
    assert model.classes_.tolist() == ["away", "in", "out"]
    assert model.score(X, y) > 0.95
    assert ALRClassifier(order=3).fit(X, y).score(X, y) > 0.99
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.n_passes_ <= 10
    assert any("job = cook" in term["feature"] for term in model.top_terms(10))


def test_from_a_file_as_from_memory(tmp_path: Path) -> None:
    X, y = frame()
    X.assign(y=y).to_parquet(tmp_path / "t.parquet", index=False)
    from_file = ALRClassifier().fit_source(tmp_path / "t.parquet", target="y")
    in_memory = ALRClassifier().fit(X, y)
    assert np.array_equal(from_file.predict_proba(X), in_memory.predict_proba(X))
    assert np.array_equal(from_file.predict(tmp_path / "t.parquet"), from_file.predict(X))


def test_files_and_pickles(tmp_path: Path) -> None:
    X, y = frame(500)
    model = ALRClassifier().fit(X, y)
    model.save(tmp_path / "m.pomona")
    for again in (ALRClassifier.load(tmp_path / "m.pomona"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.classes_.tolist() == model.classes_.tolist()
    with pytest.raises(ModelFileError, match="made by the learner 'alr'"):
        KDBClassifier.load(tmp_path / "m.pomona")


def test_levels_and_numbers_never_seen() -> None:
    X, y = frame(600)
    model = ALRClassifier().fit(X, y)
    new = pd.DataFrame({"age": [200, -3], "job": ["smith", None], "pay": [1e30, np.nan], "town": ["Rome", "Oslo"]})
    assert np.isfinite(model.predict_proba(new)).all()
    everything_new = pd.DataFrame({"job": ["smith"], "town": ["Rome"]})
    only = ALRClassifier().fit(X[["job", "town"]], y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    assert np.abs(only.predict_proba(everything_new)[0] - shares).max() < 0.25


@pytest.mark.parametrize("estimator", [ALRClassifier(), AnJEClassifier(), KDBClassifier()])
def test_columns_that_say_nothing(estimator: ALRClassifier) -> None:
    X = pd.DataFrame({"one": np.ones(60), "gone": np.full(60, np.nan), "same": ["a"] * 60})
    y = np.array([0] * 45 + [1] * 15)
    model = estimator.fit(X, y)
    assert model.predict(X).tolist() == [0] * 60
    assert model.predict_proba(X)[0, 1] == pytest.approx(0.25, abs=0.1)


def test_a_class_with_one_example() -> None:
    X, y = frame(400)
    y[0] = "rare"
    model = ALRClassifier().fit(X, y)
    assert "rare" in model.classes_
    assert model.predict_proba(X).shape == (400, 4)


def test_ten_thousand_levels_and_many_classes() -> None:
    rng = np.random.default_rng(0)
    user = rng.integers(0, 10_000, 20_000)
    X = pd.DataFrame({"user": [f"u{u}" for u in user], "x": rng.integers(0, 3, 20_000)})
    model = ALRClassifier(order=1).fit(X, user % 5)
    assert model.score(X, user % 5) > 0.9


def test_a_model_that_does_not_fit_names_the_options() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: [f"{name}{i}" for i in rng.permutation(20_000)] for name in "ab"})
    X["c"] = rng.integers(0, 4, 20_000)
    y = (X.c > 1).astype(int)
    with pytest.raises(
        OptionError, match=r"order-2 model would need .* for the map.*20,000 levels.*feature_selection=True"
    ):
        ALRClassifier(memory=1 << 25).fit(X, y)
    small = ALRClassifier(memory=1 << 25, feature_selection=True, threshold=0.02).fit(X, y)
    assert small.score(X, y) > 0.95


def test_probabilities_are_as_good_as_those_of_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 6))
    p = 1 / (1 + np.exp(-(np.sign(X[:, 0]) * 2 + X[:, 1])))
    y = (rng.random(8000) < p).astype(int)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    codes = MDLDiscretizer().fit(train, y_train)
    onehot = [pd.get_dummies(pd.DataFrame(codes.transform(part)).astype("category")) for part in (train, test)]
    onehot[1] = onehot[1].reindex(columns=onehot[0].columns, fill_value=0)
    peer = LogisticRegression(max_iter=500).fit(onehot[0], y_train)
    model = ALRClassifier().fit(train, y_train)
    assert log_loss(y_test, model.predict_proba(test)) <= log_loss(y_test, peer.predict_proba(onehot[1])) + 0.01


@pytest.mark.data
@pytest.mark.parametrize(("name", "order", "limit"), [("letter", 2, 0.095), ("poker_train25k", 2, 0.1)])
def test_errors_on_real_data(data_dir: Path, name: str, order: int, limit: float) -> None:
    table = pd.read_parquet(data_dir / f"{name}.parquet")
    X, y = table.drop(columns="label"), table["label"].astype(str)
    parts = train_test_split(X, y, test_size=0.5, random_state=0)
    model = ALRClassifier(order=order).fit(parts[0], parts[2])
    assert 1 - model.score(parts[1], parts[3]) < limit
