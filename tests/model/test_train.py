"""The training loop: what does and does not change a model."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pomona._native import NO_ROW, IdMap
from pomona.errors import DataFormatError, OptionError
from pomona.model import Model, Progress, train
from pomona.model.train import Trainer
from pomona.online.learner import OnlineLearner
from pomona.options import EncodeOptions, LearnOptions, ReadOptions
from pomona.source import blocks, open_source, vw
from pomona.source.arrays import ArraySource


@pytest.fixture
def clicks(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(3000):
        a, b = rng.integers(0, 8, 2)
        label = 1 if (a + b) % 2 == 0 else -1
        lines.append(f"{label} |a u{a} |b v{b}:{rng.uniform(0.5, 1):.3f} w:{rng.normal():.3f}\n")
    path = tmp_path / "clicks.vw"
    path.write_text("".join(lines))
    return str(path)


def weights(model: Model) -> list[np.ndarray]:
    return [*model.learner.tables.slots, model.learner.tables.intercept]


def same(a: Model, b: Model) -> bool:
    return all((x == y).all() for x, y in zip(weights(a), weights(b), strict=True))


def test_rows_found_ahead_do_not_change_the_model(clicks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vw, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(blocks, "AHEAD", -1)
    found = []
    look_up = OnlineLearner.look_up
    monkeypatch.setattr(OnlineLearner, "look_up", lambda self, ids: found.append(rows := look_up(self, ids)) or rows)
    with_rows = train(clicks, read=ReadOptions(threads=2))
    assert any(rows is not None and (rows != NO_ROW).all() for rows in found)
    monkeypatch.setattr(OnlineLearner, "look_up", lambda self, ids: None)
    without = train(clicks, read=ReadOptions(threads=2))
    assert same(with_rows, without)
    assert list(with_rows.learner.names.names) == list(without.learner.names.names)


@pytest.mark.parametrize("learn", [LearnOptions(bits=10), LearnOptions(bits=10, interactions="quadratic", passes=2)])
def test_keys_found_ahead_do_not_change_the_model(monkeypatch: pytest.MonkeyPatch, learn: LearnOptions) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 2000, 0.01, "csr", np.float32, rng)
    y = np.where(X @ rng.normal(size=2000) > 0, 1, -1)
    with_keys = train(ArraySource(X, y), learn=learn)
    monkeypatch.setattr(OnlineLearner, "with_keys", lambda self, chunk: chunk)
    assert same(with_keys, train(ArraySource(X, y), learn=learn))


def test_the_map_finds_while_it_is_filled() -> None:
    ids = np.random.default_rng(0).integers(0, 1 << 63, 200_000, dtype=np.uint64)
    numbers = IdMap()
    wrong: list[bool] = []

    def look() -> None:
        while len(numbers) < len(ids):
            rows = numbers.find(ids)
            known = rows != NO_ROW
            wrong.append(bool((rows[known] != np.flatnonzero(known)).any()))

    thread = threading.Thread(target=look)
    thread.start()
    for start in range(0, len(ids), 1000):
        part = ids[start : start + 1000]
        rows, _ = numbers.insert(part, numbers.find(part))
        assert (rows == np.arange(start, start + len(part))).all()
    thread.join()
    assert wrong and not any(wrong)


@pytest.mark.parametrize("learn", [LearnOptions(), LearnOptions(interactions="quadratic", passes=3, holdout=0.1)])
def test_blocks_and_threads_do_not_change_the_model(
    clicks: str, monkeypatch: pytest.MonkeyPatch, learn: LearnOptions
) -> None:
    first = train(clicks, read=ReadOptions(threads=1), learn=learn)
    monkeypatch.setattr(vw, "BLOCK_BYTES", 1 << 14)
    assert len(list(open_source(clicks).chunks())) > 3
    assert same(first, train(clicks, read=ReadOptions(threads=3), learn=learn))


def test_the_next_chunk_is_made_ready_while_one_is_learnt(clicks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vw, "BLOCK_BYTES", 1 << 14)
    readied, learnt = threading.Semaphore(0), []
    ready, learn = Trainer.ready, OnlineLearner.learn

    def make_ready(self: Trainer, chunk: Any) -> Any:
        try:
            return ready(self, chunk)
        finally:
            readied.release()

    def wait_and_learn(self: OnlineLearner, chunk: Any, *rest: Any) -> Any:
        if not learnt:  # two chunks get ready although the first is not learnt yet
            assert all(readied.acquire(timeout=30) for _ in range(2))
        learnt.append(len(chunk))
        return learn(self, chunk, *rest)

    monkeypatch.setattr(Trainer, "ready", make_ready)
    monkeypatch.setattr(OnlineLearner, "learn", wait_and_learn)
    assert train(clicks).learner.examples == sum(learnt) == 3000
    assert len(learnt) > 3


def test_few_features_are_learnt_without_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    y = X[:, 0] * X[:, 1] > 0
    threads, ready = set(), Trainer.ready

    def noting(self: Trainer, chunk: Any) -> Any:
        threads.add(threading.current_thread() is threading.main_thread())
        return ready(self, chunk)

    monkeypatch.setattr(Trainer, "ready", noting)
    alone = train(ArraySource(X, y))
    assert threads == {True}
    monkeypatch.setattr(sys.modules[Trainer.__module__], "FEW_FEATURES", 1000)
    assert same(alone, train(ArraySource(X, y)))
    assert threads == {True, False}


def test_a_seed_fixes_the_model(clicks: str) -> None:
    learn = LearnOptions(passes=2, seed=3)
    assert same(train(clicks, learn=learn), train(clicks, learn=learn))
    assert not same(train(clicks, learn=learn), train(clicks, learn=LearnOptions(passes=2, seed=4)))


def test_passes_from_a_file_equal_passes_from_memory(clicks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vw, "BLOCK_BYTES", 1 << 14)
    in_memory = train(clicks, learn=LearnOptions(passes=3, bits=12, shuffle_buffer=500, memory=1 << 30))
    opened: list[str] = []
    from pomona.source import cache

    make = cache.CachingSource.__init__
    monkeypatch.setattr(cache.CachingSource, "__init__", lambda self, *a: (opened.append("yes"), make(self, *a))[1])
    monkeypatch.setattr("pomona.model.keep._nbytes", lambda chunk: 1 << 20)  # only the first chunk fits
    spilled = train(clicks, learn=LearnOptions(passes=3, bits=12, shuffle_buffer=500, memory=1 << 20))
    assert opened == ["yes"]
    assert same(in_memory, spilled)


def test_products_are_needed_and_found(clicks: str) -> None:
    linear = train(clicks)
    pairs = train(clicks, learn=LearnOptions(interactions=("a*b",), passes=3))
    assert linear.summary["error"] > 0.4
    assert pairs.summary["error"] < 0.1
    assert pairs.summary["loss"] < linear.summary["loss"] / 2


def test_the_progressive_error_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("".join(f"{1 if i % 4 else -1} |a x\n" for i in range(400)))
    # Every fourth label is -1, and all but the first predictions say 1.
    assert train(str(path)).summary["error"] == pytest.approx(100 / 400, abs=3 / 400)
    assert train(str(path), learn=LearnOptions(task="regression")).summary["error"] is None


def test_early_stopping_keeps_the_best_pass() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 60)), rng.choice([-1.0, 1.0], 300)  # nothing to learn but noise
    options = LearnOptions(passes=30, holdout=0.2, patience=2, interactions="quadratic")
    seen: list[Progress] = []
    model = train(ArraySource(X.astype(np.float32), y), learn=options, progress=seen.append)
    by_pass = {p.pass_number: p.held_out for p in seen}
    assert model.summary["passes"] < 30
    assert model.summary["held_out"] == min(by_pass.values())  # type: ignore[type-var]


def test_progress_says_where_it_is(clicks: str) -> None:
    seen: list[Progress] = []
    train(clicks, learn=LearnOptions(passes=2), progress=seen.append)
    assert [p.pass_number for p in seen] == [1, 2]
    assert seen[-1].examples == 6000 and seen[-1].fraction == 1.0
    assert seen[-1].loss == pytest.approx((seen[0].loss_last + seen[1].loss_last) / 2)


def test_regression_does_not_depend_on_the_unit_of_the_target() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 3)).astype(np.float32)
    y = X @ [1.0, -2.0, 0.5]
    predictions = []
    for shift, scale in [(0.0, 1.0), (1e6, 1e4)]:
        source = ArraySource(X, shift + scale * y)
        model = train(source, learn=LearnOptions(task="regression", passes=5))
        predictions.append((np.concatenate(list(model.predict(source))) - shift) / scale)
        assert model.summary["loss"] < 0.2 * scale**2
    np.testing.assert_allclose(predictions[0], predictions[1], atol=1e-3)


def test_class_weights() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4000, 1)).astype(np.float32)
    y = (x[:, 0] + rng.standard_normal(4000) > 2.0).astype(int)
    source = ArraySource(x, y)
    positive = {}
    for how in (None, "balanced", {1: 20.0}):
        model = train(source, learn=LearnOptions(class_weight=how, passes=3))
        positive[str(how)] = float(np.mean(np.concatenate(list(model.predict(source))) > 0.5))
    assert positive["None"] < 0.1 < positive["balanced"] < 0.5
    assert positive["{1: 20.0}"] > 0.1
    with pytest.raises(OptionError, match=r"class_weight names the class 7, but the classes are \[0, 1\]"):
        train(source, learn=LearnOptions(class_weight={7: 1.0}))


def frame(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"age": rng.integers(18, 80, n), "city": rng.choice(["Bern", "Oslo"], n)})
    return data.assign(click=(data.age > 40) == (data.city == "Bern"))


def test_a_table_is_encoded_with_bins_for_the_degree() -> None:
    learnt: dict[str, Any] = {}
    for interactions in ("linear", "quadratic", "cubic"):
        model = train(frame(), read=ReadOptions(target="click"), learn=LearnOptions(interactions=interactions))
        assert model.encoder is not None
        learnt[interactions] = len(model.encoder.columns[0].parts[0].ids)
    assert learnt == {"linear": 16, "quadratic": 8, "cubic": 6}
    given = EncodeOptions(bins=5)
    model = train(frame(), read=ReadOptions(target="click"), encode=given, learn=LearnOptions(interactions="cubic"))
    assert model.encoder is not None and len(model.encoder.columns[0].parts[0].ids) == 5


@pytest.mark.parametrize(
    ("data", "read", "learn", "message"),
    [
        ("1 |a x\n1 |a y\n", {}, {}, "the target has the single value 1.0 in the first 2 rows"),
        ("1 |a x\n2 |a y\n3 |a z\n", {}, {"task": "binary"}, "the task 'binary' needs two classes; the target has 3"),
        ("1 |a x\n-1 |a y\n", {}, {"loss": "poisson"}, "the loss 'poisson' is for regression; the task is binary"),
        ("1 |a x\n-1 |a y\n", {}, {"task": "regression", "loss": "poisson"}, "the poisson loss needs targets >= 0"),
        ("1 |a x\n-1 |a y\n", {}, {"bits": 31}, "bits must be None or 10 to 30; got 31"),
        ("1 |a x\n-1 |a y\n", {}, {"interactions": "a*b*c*d"}, "interactions must be linear, quadratic, cubic"),
        ("1 |a x\n-1 |a y\n", {}, {"learning_rate": 0.0}, "the learning rate must be a number > 0; got 0.0"),
        ("1 |a x\n-1 |a y\n", {}, {"task": "ranking"}, "the task must be one of binary"),
        ("1 |a x\n|a y\n", {}, {}, "single value"),
    ],
)
def test_what_cannot_be_learnt_is_said(
    tmp_path: Path, data: str, read: dict[str, Any], learn: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.vw"
    path.write_text(data)
    with pytest.raises((OptionError, DataFormatError), match=message.replace("'", ".").replace("*", r"\*")):
        train(str(path), read=ReadOptions(**read), learn=LearnOptions(**learn))


def test_a_third_class_in_a_binary_task_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 |a x\n-1 |a y\n" * 30_000 + "5 |a z\n")
    with pytest.raises(DataFormatError, match=r"a\.vw:60001: the task is binary with the classes -1\.0 and 1\.0"):
        train(str(path))


def test_an_interaction_of_a_column_that_is_not_there() -> None:
    with pytest.raises(OptionError, match="names the column 'town', which is not among age, city"):
        train(frame(), read=ReadOptions(target="click"), learn=LearnOptions(interactions=("age*town",)))
