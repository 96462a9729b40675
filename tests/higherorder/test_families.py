"""The learners: identities, choices, passes, files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.naive_bayes import CategoricalNB

from pomona.errors import DataFormatError, OptionError
from pomona.higherorder.alr import ALRTrainer
from pomona.higherorder.coded import CodedData, Rows
from pomona.higherorder.counts import count_tuples
from pomona.higherorder.discriminative import M, error_rate, generative_model, two_columns
from pomona.higherorder.judge import Verdict, best, climb, recursive
from pomona.higherorder.kdb import Node, bayes_model, conditional_information, fit_kdb, leave_one_out, structure
from pomona.higherorder.options import ALROptions, AnJEOptions, KDBOptions
from pomona.higherorder.tuples import TupleSet, all_tuples
from pomona.model import load, train
from pomona.options import ReadOptions
from pomona.source.parquet import ParquetTable
from tests.reference.higher_order import kdb_scores


def coded(
    n: int = 3000, classes: int = 3, seed: int = 0, sizes: tuple[int, ...] = (5, 4, 6, 4, 5), one_pair: bool = False
) -> CodedData:
    """Labels that depend on two pairs of attributes, or on the first alone, with noise."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size - 1, n) for size in sizes]).astype(np.uint8)
    y = (codes[:, 0].astype(int) * codes[:, 1] + (codes[:, 2] > 2) * codes[:, 3] * (not one_pair)) % classes
    y = np.where(rng.random(n) < 0.1, rng.integers(0, classes, n), y).astype(np.int32)
    cut = n // 5
    return CodedData(Rows(codes[cut:], y[cut:]), Rows(codes[:cut], y[:cut]), np.array(sizes, np.uint32), classes)


def alr(data: CodedData, **options: Any) -> Any:
    return ALRTrainer(data, ALROptions(**options), lambda step: None).run()


# ---- generative ----


@pytest.mark.parametrize("classes", [2, 4])
def test_order_one_is_categorical_naive_bayes(classes: int) -> None:
    data = coded(classes=classes, sizes=(5, 5, 5, 5))
    counts = count_tuples(TupleSet(all_tuples(4, 1), data.sizes), data.blocks, data.class_counts(), 1 << 30)
    raw = two_columns(generative_model(counts, 4).scores_of(data.cv))
    # m/|F| added to each count and m to the total is alpha = m/|F| for each of |F| levels.
    priors = (data.class_counts() + M / classes) / (len(data) + M)
    peer = CategoricalNB(alpha=M / 4, class_prior=priors, min_categories=4, force_alpha=True)
    peer.fit(data._rows.codes, data._rows.labels)
    expected = peer.predict_log_proba(data.cv.codes)
    found = raw - np.log(np.exp(raw).sum(axis=1, keepdims=True))
    assert np.allclose(found, expected, atol=1e-5)


def test_anje_averages_over_tuples() -> None:
    data = coded()
    counts = count_tuples(TupleSet(all_tuples(5, 2), data.sizes), data.blocks, data.class_counts(), 1 << 30)
    rows = counts.index.rows(np.ascontiguousarray(data.cv.codes, np.uint32))
    priors = np.log((data.class_counts() + M / 3) / (len(data) + M))
    expected = counts.log_probabilities(M)[rows].sum(axis=1) / 4 + priors  # each attribute is in C(4, 1) pairs
    assert np.allclose(generative_model(counts, 5).scores_of(data.cv), expected, atol=1e-4)


def test_no_parents_are_naive_bayes() -> None:
    data = coded()
    counts = count_tuples(TupleSet(all_tuples(5, 1), data.sizes), data.blocks, data.class_counts(), 1 << 30)
    network = bayes_model([Node(a, ()) for a in range(5)], 0, counts)
    found, expected = (m.scores_of(data.cv) for m in (network, generative_model(counts, 5)))
    assert np.allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-4)


def test_networks_are_products_of_conditional_probabilities() -> None:
    data = coded(400)
    model, facts = fit_kdb(data, KDBOptions(k=2, selective=False), lambda step: None)
    codes, labels = data._rows.codes, data._rows.labels
    single, pairs = (
        count_tuples(TupleSet(all_tuples(5, n), data.sizes), data.blocks, data.class_counts(), 1 << 30) for n in (1, 2)
    )
    nodes = structure(single, pairs, 2)
    levels = [int(size) - 1 for size in data.sizes]
    expected = kdb_scores(codes, labels, data.cv.codes[:20], nodes, 2, levels, M)
    found = model.scores_of(data.cv.first(20))
    assert facts["k"] == 2
    assert np.allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-3)


def test_conditional_information() -> None:
    data = coded(500)
    single, pairs = (
        count_tuples(TupleSet(all_tuples(5, n), data.sizes), data.blocks, data.class_counts(), 1 << 30) for n in (1, 2)
    )
    found = conditional_information(single, pairs)
    codes, labels = data._rows.codes, data._rows.labels
    for i, j in itertools.combinations(range(5), 2):
        frame = pd.DataFrame({"i": codes[:, i], "j": codes[:, j], "y": labels})
        n, total = len(frame), 0.0
        for (a, b, y), size in frame.groupby(["i", "j", "y"]).size().items():
            of_class = frame[frame.y == y]
            expected = (of_class.i == a).sum() * (of_class.j == b).sum() / len(of_class)
            total += size / n * np.log(size / expected)
        assert found[i, j] == found[j, i] == pytest.approx(total)


def test_leave_one_out_leaves_one_out() -> None:
    data = coded(60)
    nodes = [Node(0, ()), Node(1, (0,)), Node(2, (1, 0))]
    needed = dict.fromkeys(t for node in nodes for k in range(3) for t in node.with_parents(k) if t)
    counts = count_tuples(TupleSet(list(needed), data.sizes), data.blocks, data.class_counts(), 1 << 30)
    found = leave_one_out(data, nodes, 2, counts)
    codes, labels, levels = data._rows.codes, data._rows.labels, [int(size) - 1 for size in data.sizes]
    expected = np.zeros((3, 3))
    for k, last in itertools.product(range(3), range(3)):
        for i in range(len(labels)):
            others = np.arange(len(labels)) != i
            args = codes[others], labels[others], codes[i : i + 1], nodes[: last + 1], k, levels, M
            raw = kdb_scores(*args)[0]
            p = np.exp(raw - raw.max())
            expected[k, last] += (1 - p[labels[i]] / p.sum()) ** 2
    assert np.allclose(found, expected, rtol=1e-6)


def test_selective_networks_choose() -> None:
    data = coded(4000)
    _, facts = fit_kdb(data, KDBOptions(k=3), lambda step: None)
    assert 1 <= facts["k"] <= 3
    assert data.passes == 3


# ---- discriminative ----


def test_pairs_see_what_single_attributes_do_not() -> None:
    data = coded()
    errors = [error_rate(alr(data, order=n).model.scores_of(data.cv), data.cv.labels) for n in (1, 2)]
    assert errors[1] < 0.25 < errors[0]


@pytest.mark.parametrize("selection", ["mi", "cvscore"])
def test_selection_keeps_the_tuples_that_matter(selection: str) -> None:
    data = coded(6000, one_pair=True)
    outcome = alr(data, order=2, selection=selection, threshold=1)
    assert outcome.model.tuples.members == [(0, 1)]
    share = alr(data, order=2, selection=selection, threshold=0.5)
    assert share.facts["tuples"] == 5
    chosen = alr(data, order=2, selection=selection)
    assert error_rate(chosen.model.scores_of(data.cv), data.cv.labels) < 0.2


def test_hierarchical_tuples_come_from_selected_pairs() -> None:
    data = coded()
    pairs = alr(data, order=2, selection="mi", threshold=0.6).model.tuples.members
    triples = alr(data, order=3, selection="mi", threshold=0.6, hierarchical=True).model.tuples.members
    assert triples
    assert all(part in pairs for t in triples for part in itertools.combinations(t, 2))


def test_too_few_pairs_for_triples() -> None:
    with pytest.raises(OptionError, match="no tuple of order 3 has all its parts"):
        alr(coded(), order=3, selection="mi", threshold=2, hierarchical=True)


def test_features_instead_of_tuples() -> None:
    data = coded(6000)
    few = alr(data, order=2, feature_selection=True, threshold=0.5)
    all_of_them = alr(data, order=2)
    assert few.recode is not None
    assert few.facts["features_kept"] < all_of_them.facts["features_kept"] / 2
    assert {len(t) for t in few.model.tuples.members} == {1, 2}
    scores = few.model.scores_of(few.recode.rows(data.cv))
    assert error_rate(scores, data.cv.labels) < 0.4


def test_order_chosen_on_validation_rows() -> None:
    assert alr(coded(6000), order="auto").facts["order"] >= 2


def test_choices_have_an_effect() -> None:
    data = coded()
    assert alr(data, l2="auto").facts["l2"] >= 0
    assert alr(data, start="generative").facts["start"] == "generative"
    assert alr(data, learning_rate=0.123).facts["learning_rate"] == 0.123
    assert alr(data, line_search="recursive").facts["learning_rate"] > 0
    assert alr(data, passes=2).facts["discriminative_passes"] == 2
    assert alr(data, passes="auto").facts["discriminative_passes"] <= 20
    assert alr(data, min_count=120).facts["features_kept"] < alr(data).facts["features_kept"]


def test_calibration_only_scales() -> None:
    data = coded()
    plain, scaled = (alr(data, calibrate=c, start="generative", learning_rate=0.01) for c in (False, True))
    a, b = plain.model.scores_of(data.cv), scaled.model.scores_of(data.cv)
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.9999


def test_the_same_seed_gives_the_same_bits() -> None:
    one, two = alr(coded()), alr(coded())
    assert np.array_equal(one.model.weights, two.model.weights)


def test_bad_options() -> None:
    for options, words in [
        ({"order": 9}, "order must be"),
        ({"selection": "best"}, "selection must be one of"),
        ({"threshold": 0.0}, "threshold must be"),
        ({"passes": 0}, "passes must be"),
        ({"l2": -1.0}, "l2 must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"order": "auto", "hierarchical": True}, "order='auto' is for tuples without hierarchy"),
    ]:
        frame = pd.DataFrame({"x": [1.0, 2.0] * 9, "y": [0, 1] * 9})
        with pytest.raises(OptionError, match=words):
            train(frame, read=ReadOptions(target="y"), learn=ALROptions(**options))


# ---- choosing ----


def test_among_equal_errors_the_loss_decides() -> None:
    verdicts = {"a": Verdict(0.1, 0.5, n=100), "b": Verdict(0.11, 0.4, n=100), "c": Verdict(0.3, 0.1, n=100)}
    assert best(verdicts) == "b"


def test_climbing_finds_a_top() -> None:
    eta, _ = climb(lambda eta: Verdict(abs(np.log10(eta) + 3.5) / 10, 0.0, n=10**9))
    assert eta == pytest.approx(10**-3.5)


def test_the_recursive_search_finds_a_minimum() -> None:
    assert recursive(lambda eta: 0.1 * abs(np.log10(eta) + 1.2) + 0.3) == pytest.approx(10**-1.2, rel=0.3)


# ---- passes over the source, files ----


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    n = 4000
    frame = pd.DataFrame({f"x{i}": rng.integers(0, 5, n) for i in range(5)})
    frame["z"] = rng.standard_normal(n)
    frame["y"] = np.array(["a", "b", "c"])[(frame.x0 * frame.x1 + (frame.z > 0)) % 3]
    frame = frame.astype({f"x{i}": "str" for i in range(5)})
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (ALROptions(order=2), 3 + 5),
        (ALROptions(order=3, selection="mi"), 3 + 5),
        (ALROptions(order=2, selection="cvscore"), 3 + 5),
        (ALROptions(order=2, selection="mi", hierarchical=True), 2 + 1 + 5),
        (ALROptions(order=3, selection="mi", hierarchical=True, threshold=0.9), 3 + 1 + 5),
        (ALROptions(order=3, memory=1 << 18), 3 + 5),
        (ALROptions(order=2, feature_selection=True, threshold=0.5), 10),
    ],
)
def test_passes(table: Path, options: ALROptions, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's limits hold after discretisation, ten passes with it; the source itself is read twice."""
    reads = 0
    read = ParquetTable._read

    def counting(self: ParquetTable) -> Any:
        nonlocal reads
        reads += 1
        return read(self)

    monkeypatch.setattr(ParquetTable, "_read", counting)
    model = train(table, read=ReadOptions(target="y"), learn=options)
    summary = model.summary
    assert reads == summary["source_passes"] == 2
    assert summary["passes"] - 1 <= limit
    assert summary["passes"] <= 10
    assert summary["discriminative_passes"] == 5


@pytest.mark.parametrize(
    "learn", [ALROptions(), ALROptions(feature_selection=True, threshold=0.5), AnJEOptions(order="auto"), KDBOptions()]
)
def test_models_come_back_from_files(table: Path, tmp_path: Path, learn: Any) -> None:
    model = train(table, read=ReadOptions(target="y"), learn=learn)
    model.save(tmp_path / "m.pomona")
    again = load(tmp_path / "m.pomona")
    before, after = (np.concatenate(list(m.predict(table))) for m in (model, again))
    assert np.array_equal(before, after)
    assert np.allclose(before.sum(axis=1), 1)
    top = again.learner.inspect(again.task, 5)["top"]
    assert top == model.learner.inspect(model.task, 5)["top"]
    assert any("x0" in entry["feature"] for entry in top)


def test_rows_on_disk_give_a_model_as_good(table: Path) -> None:
    y = pq.read_table(table)["y"].to_numpy(zero_copy_only=False)
    errors = []
    for memory in (1 << 30, 1 << 18):
        model = train(table, read=ReadOptions(target="y"), learn=ALROptions(order=3, memory=memory))
        p = np.concatenate(list(model.predict(table)))
        errors.append(float(np.mean(np.array(model.task.classes)[p.argmax(axis=1)] != y)))
    assert errors == pytest.approx([0.0, 0.0], abs=0.03)


def test_a_stream_is_refused(table: Path) -> None:
    batches = iter(pq.read_table(table).to_batches())
    with pytest.raises(DataFormatError, match="can be read once only.*save it to a file first"):
        train(batches, read=ReadOptions(target="y"), learn=ALROptions())


def test_regression_and_sparse_text_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(50.0), "y": np.arange(50) + 0.5})
    with pytest.raises(OptionError, match="the learner alr predicts classes"):
        train(frame, read=ReadOptions(target="y"), learn=ALROptions())
    (tmp_path / "t.vw").write_text("1 | a b\n-1 | b c\n" * 10)
    with pytest.raises(OptionError, match="needs a table of columns"):
        train(tmp_path / "t.vw", learn=ALROptions())
