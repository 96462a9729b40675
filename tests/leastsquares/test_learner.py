"""From files to models and back: the three learners behind ``pomona train``."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import pomona
from pomona import CalibratedLSClassifier, GLSClassifier, StagewiseClassifier, StagewiseRegressor
from pomona.cli import least_squares as choices
from pomona.cli.main import main
from pomona.errors import DataFormatError, OptionError
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.generators import GENERATORS
from pomona.leastsquares.learner import CalibratedLearnOptions, GLSLearnOptions, StagewiseLearnOptions
from pomona.leastsquares.rows import ArrayRows
from pomona.leastsquares.spectrum import spectrum
from pomona.leastsquares.stagewise import INNER
from pomona.model import load, train
from pomona.model.inspect import as_text, describe
from pomona.options import ReadOptions


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"p{j}" for j in range(64)])
    frame["label"] = y
    path = tmp_path_factory.mktemp("digits") / "digits.parquet"
    frame.to_parquet(path)
    return path, X, y


OPTIONS = [
    GLSLearnOptions(ridge=1e-3, precision="float64"),
    CalibratedLearnOptions(precision="float64"),
    StagewiseLearnOptions(block_size=100, n_stages=3, precision="float64"),
    StagewiseLearnOptions(inner="logistic", block_size=100, n_stages=2, n_models=2, generator_options={"pca": 10}),
    StagewiseLearnOptions(generator="sample", inner="calibrated", block_size=20),
    StagewiseLearnOptions(generator="gradient", block_size=20),
    StagewiseLearnOptions(
        generator="convolution",
        block_size=64,
        n_stages=2,
        generator_options={"shape": [8, 8, 1], "patch": 3, "masks": "kmeans"},
    ),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.learner}-{getattr(o, 'generator', '')}")
def test_a_table_is_learnt_saved_and_loaded(digits, options, tmp_path):
    path, _, y = digits
    steps = []
    model = train(path, read=ReadOptions(target="label"), learn=options, progress=steps.append)
    predicted = np.concatenate(list(model.predict(path)))
    assert np.mean(predicted.argmax(axis=1) == y) > 0.93
    np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-5)
    assert len(steps) > 1
    assert model.summary["examples"] == len(y)
    model.save(tmp_path / "m.pomona")
    again = load(tmp_path / "m.pomona")
    np.testing.assert_array_equal(np.concatenate(list(again.predict(path))), predicted)
    text = as_text(describe(again), "m")
    assert "condition" in text
    json.dumps(describe(again))


def test_random_matrices_are_not_in_the_file(digits, tmp_path):
    options = StagewiseLearnOptions(block_size=1000, n_stages=2)
    model = train(digits[0], read=ReadOptions(target="label"), learn=options)
    model.save(tmp_path / "m.pomona")
    # 2 × 1001 × 10 weights of 4 bytes; the projections would be 2 × 64 × 1000 × 4.
    assert (tmp_path / "m.pomona").stat().st_size < 80_080 + 60_000


def test_the_estimator_and_the_file_learn_the_same(digits):
    path, X, y = digits
    learn = StagewiseLearnOptions(block_size=64, n_stages=3, ridge=1e-3, precision="float64")
    model = train(path, read=ReadOptions(target="label"), learn=learn)
    estimator = StagewiseClassifier(block_size=64, n_stages=3, ridge=1e-3, precision="float64")
    estimator.fit(X, y)
    np.testing.assert_allclose(
        np.concatenate([model.raw_predict(c) for c in model.chunks(path)]),
        estimator.decision_function(X),
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", ["binary", "regression"])
@pytest.mark.parametrize("options", OPTIONS[:5], ids=lambda o: f"{o.learner}-{getattr(o, 'generator', '')}")
def test_two_classes_and_numbers(tmp_path, kind, options):
    if kind == "regression" and getattr(options, "inner", "") == "logistic":
        pytest.skip("logistic stages are for classes")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(800)
    if getattr(options, "generator_options", None):
        options = StagewiseLearnOptions(inner="logistic", block_size=100, n_stages=2)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(y > 0, "yes", "no") if kind == "binary" else y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = train(tmp_path / "t.csv", read=ReadOptions(target="y"), learn=options)
    predicted = np.concatenate(list(model.predict(tmp_path / "t.csv")))
    assert predicted.shape == (800,)
    if kind == "binary":
        assert 0 <= predicted.min() <= predicted.max() <= 1
        assert np.mean((predicted > 0.5) == (y > 0)) > 0.93
    else:
        assert np.corrcoef(predicted, y)[0, 1] > 0.99


def test_vw_text_stays_sparse(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(300)]
    lines = []
    for _ in range(500):
        chosen = rng.choice(words, 5, replace=False)
        lines.append(f"{1 if 'w3' in chosen or 'w4' in chosen or chosen[0] < 'w2' else -1} | {' '.join(chosen)}")
    (tmp_path / "t.vw").write_text("\n".join(lines) + "\n")
    model = train(tmp_path / "t.vw", learn=GLSLearnOptions(ridge=1e-4))
    assert any(entry["feature"].endswith("w3") for entry in model.learner.inspect(model.task, 10)["top"])
    # Words never met are left out.
    (tmp_path / "new.vw").write_text("| w3 neverseen\n| neverseen\n")
    both = np.concatenate(list(model.predict(tmp_path / "new.vw")))
    assert both[0] > both[1]


def test_command_line(digits, tmp_path, capsys):
    path, _, y = digits
    model = tmp_path / "d.pomona"
    arguments = ["train", str(path), "--target", "label", "--learner", "stagewise", "--generator", "fourier"]
    assert main([*arguments, "--stages", "3", "--block", "100", "--holdout", "0.2", "-o", str(model)]) == 0
    shown = capsys.readouterr().err
    assert "stage 3 of 3" in shown
    assert "on the training data" in shown
    assert main(["inspect", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "held-out loss" in shown
    assert "features are generated and have no names" in shown
    assert main(["predict", str(model), str(path), "-o", str(tmp_path / "p.csv")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learner", "stagewise", "--generator", "magic"], "--generator must be one of fourier"),
        (["--learner", "stagewise", "--shape", "8x8"], "--shape must be height x width x channels"),
        (["--learner", "stagewise", "--shape", "9x9x9", "--generator", "convolution"], "have 729 numbers; got rows of"),
        (["--learner", "stagewise", "--masks", "kmeans"], "has the options scale, pca, emphasis, standardize"),
        (["--learner", "gls", "--device", "warp"], "such as 'cuda'; got 'warp'"),
        (["--learner", "cls", "--ridge", "-1"], "--ridge must be a number >= 0"),
    ],
)
def test_wrong_usage_is_one_line(digits, arguments, message, capsys):
    if "--device" in arguments:
        pytest.importorskip("torch", reason="names of devices are checked by torch")
    try:
        code = main(["train", str(digits[0]), "--target", "label", *arguments])
    except SystemExit as left:
        code = left.code
    assert code in (1, 2)
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


def test_estimators_go_to_files(digits, tmp_path):
    path, X, y = digits
    frame = pd.read_parquet(path).drop(columns="label")
    for estimator in (
        GLSClassifier(ridge=1e-3),
        CalibratedLSClassifier(),
        StagewiseClassifier(block_size=64, n_stages=2, precision="float32"),
    ):
        estimator.fit(frame, y).save(tmp_path / "e.pomona")
        model = pomona.load(tmp_path / "e.pomona")
        predicted = np.concatenate(list(model.predict(path)))
        np.testing.assert_allclose(predicted, estimator.predict_proba(frame), atol=1e-5)
    regressor = StagewiseRegressor(block_size=64, n_stages=2).fit(frame, y)
    regressor.save(tmp_path / "r.pomona")
    predicted = np.concatenate(list(pomona.load(tmp_path / "r.pomona").predict(path)))
    np.testing.assert_allclose(predicted, regressor.predict(frame), atol=1e-4)


def test_what_cannot_go_to_a_file_says_so(digits):
    _, X, y = digits

    class Cubic:
        lipschitz = 3.0

        def __call__(self, U):
            return U

        def potential(self, U):
            return (U**2).sum(axis=1) / 2

    cases = [
        (StagewiseClassifier(generator=square_generator, n_stages=1), OptionError, "generator of your own"),
        (CalibratedLSClassifier(calibration=["y", np.tanh], max_iter=2), OptionError, "functions of your own"),
        (GLSClassifier(link=Cubic(), max_iter=2), OptionError, "link of your own"),
        (StagewiseClassifier(n_stages=1, block_size=8), ValueError, "one target"),
    ]
    for estimator, error, message in cases:
        target = np.eye(10)[y] if "one target" in message else y
        with pytest.raises(error, match=message):
            estimator.fit(X, target).save("never.pomona")
    again = pickle.loads(pickle.dumps(cases[0][0]))
    np.testing.assert_array_equal(again.predict(X), cases[0][0].predict(X))


def square_generator(stage, size, rng):
    columns = rng.integers(0, 64, size)
    return lambda rows: rows[:, columns] ** 2


def test_spectrum_and_advice():
    rng = np.random.default_rng(0)
    here = Place.of(None, "float64")
    X = rng.standard_normal((500, 5)) * np.array([1000, 100, 10, 1, 0.1])
    found = spectrum(ArrayRows(X, here))
    truth = np.linalg.svd(X, compute_uv=False)
    assert found.condition == pytest.approx(truth[1] / truth[4], rel=1e-6)
    np.testing.assert_allclose(found.singular_values, truth / truth[0], rtol=1e-6)
    assert "second-order steps pay" in found.advice()
    words = sparse.random(800, 3000, 0.01, random_state=0, format="csr")
    assert "online learner is as good here" in spectrum(ArrayRows(words, here)).advice()


def test_missing_values_are_told_with_their_line(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:1 2:2\n-1 1:2 2:nan\n")
    with pytest.raises(DataFormatError):
        train(tmp_path / "t.svm", learn=GLSLearnOptions())


def test_the_choices_of_the_command_line_are_those_of_the_library():
    # Monomials are lists, which an option cannot hold.
    assert set(choices.GENERATORS) == set(GENERATORS) - {"monomials"}
    assert choices.INNER == INNER
