"""Several models over other cuts, averaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pomona import ALRClassifier
from pomona.errors import OptionError
from pomona.higherorder.alr import ALRTrainer
from pomona.higherorder.coded import CodedData, Rows
from pomona.higherorder.discriminative import averaged
from pomona.higherorder.options import ALROptions, AnJEOptions
from pomona.model import load, train
from pomona.model.inspect import as_text, describe
from pomona.options import EncodeOptions, ReadOptions


def waves(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Classes whose borders lie between the borders of any bins."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(n), rng.random(n)
    kind = rng.integers(0, 3, n)
    y = (np.floor(7.3 * a + 5.1 * b) + kind) % 3
    return pd.DataFrame({"a": a, "b": b, "kind": np.array(["x", "y", "z"])[kind]}), y.astype(np.int64)


def test_averaging_helps_where_borders_matter() -> None:
    (X, y), (X_test, y_test) = waves(6000), waves(3000, seed=1)
    one, four = (ALRClassifier(n_models=n).fit(X, y) for n in (1, 4))
    assert four.score(X_test, y_test) > one.score(X_test, y_test) + 0.02
    assert four.n_parameters_ > one.n_parameters_
    assert four.model_.summary["models"] == 4


def test_the_mean_of_scores_is_one_model() -> None:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, n, 2000) for n in (3, 5, 7, 4)]).astype(np.uint32)
    labels = ((codes[:, 0] + codes[:, 1] + codes[:, 3]) % 3).astype(np.int32)
    sizes = np.array([4, 6, 8, 5], np.uint32)
    data = CodedData(Rows(codes[:1800], labels[:1800]), Rows(codes[1800:], labels[1800:]), sizes, 3)
    groups = [[0, 1, 2], [0, 3]]
    parts = [data.only(columns) for columns in groups]
    models = [ALRTrainer(part, ALROptions(order=2), lambda step: None).run().model for part in parts]
    mean = averaged(models, groups, sizes)
    expected = np.mean([m.scores(codes[:, c]) for m, c in zip(models, groups, strict=True)], axis=0)
    np.testing.assert_allclose(mean.scores(codes), expected, atol=1e-5)
    assert mean.n_parameters == sum(model.n_parameters for model in models)


def test_saved_and_inspected(tmp_path: Path) -> None:
    X, y = waves(2000)
    model = ALRClassifier(n_models=3).fit(X, y)
    model.save(tmp_path / "m.pomona")
    again = load(tmp_path / "m.pomona")
    np.testing.assert_array_equal(ALRClassifier.load(tmp_path / "m.pomona").predict_proba(X), model.predict_proba(X))
    assert [column.name for column in again.encoder.columns] == ["a", "b", "kind"]
    assert any("kind = " in entry["feature"] for entry in again.learner.inspect(again.task, 20)["top"])
    assert "models 3" in as_text(describe(again), "m.pomona")


def test_on_disk_as_in_memory() -> None:
    X, y = waves(3000)
    small = ALRClassifier(n_models=2, memory=1 << 16, order=1).fit(X, y)  # the rows do not fit a quarter of this
    assert small.score(X, y) == pytest.approx(ALRClassifier(n_models=2, order=1).fit(X, y).score(X, y), abs=0.05)


def test_without_numbers_there_is_one_way_to_cut() -> None:
    X, y = waves(500)
    model = ALRClassifier(n_models=3).fit(X[["kind"]], y)
    assert "models" not in model.model_.summary


def test_only_alr_averages() -> None:
    X, y = waves(500)
    with pytest.raises(OptionError, match="anje is one model"):
        train(X.assign(y=y), read=ReadOptions(target="y"), encode=EncodeOptions(cuttings=2), learn=AnJEOptions())


def test_not_with_selected_features() -> None:
    X, y = waves(500)
    with pytest.raises(OptionError, match="leave feature_selection .--select-features. out"):
        ALRClassifier(n_models=2, feature_selection=True, threshold=0.5).fit(X, y)
