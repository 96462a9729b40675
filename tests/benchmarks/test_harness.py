"""The harness of the benchmarks measures what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pd = pytest.importorskip("pandas", reason="the benchmarks need pandas")

# What follows needs pandas, so that it cannot stand above (E402).
from benchmarks.__main__ import COMMANDS, main, parser  # noqa: E402
from benchmarks.accuracy import Verdict, count  # noqa: E402
from benchmarks.accuracy import test_error as error_of  # noqa: E402
from benchmarks.contenders import NAMES, Job, module  # noqa: E402
from benchmarks.datasets import Dataset, split  # noqa: E402
from benchmarks.measure import ContenderError, compare, in_child  # noqa: E402
from benchmarks.onehot import OneHot, features_per_row  # noqa: E402
from benchmarks.options import Log  # noqa: E402
from benchmarks.synthetic import Stream, blocks, file, load, read_npz  # noqa: E402
from benchmarks.text import rows_as_text  # noqa: E402
from benchmarks.tradeoff import Entry, frontier  # noqa: E402

from benchmarks import tradeoff  # noqa: E402


def test_every_command_explains_itself() -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            parser().parse_args([name, "--help"])
        assert stop.value.code == 0


def test_a_missing_package_is_named(monkeypatch, capsys) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr("benchmarks.__main__.import_module", missing)
    assert main(["speed"]) == 2
    assert capsys.readouterr().err == "error: pandas is not installed: pip install '.[bench]'\n"


def test_every_contender_keeps_the_contract() -> None:
    for name in NAMES:
        contender = module(name)
        assert callable(contender.run)
        assert contender.missing() is None or isinstance(contender.missing(), str)
    with pytest.raises(ValueError, match="a contender is one of"):
        module("nobody")


def test_a_shorter_stream_is_a_prefix() -> None:
    short, _ = load(Stream("dense", 50))
    long, _ = load(Stream("dense", 120))
    assert (short != long[:50]).nnz == 0


def test_a_sparse_stream_has_about_78_features_a_row() -> None:
    X, y = next(blocks(Stream("sparse", 500)))
    assert 70 < X.nnz / 500 < 86
    assert X.data.min() > 0
    assert set(y.tolist()) == {-1, 1}


def test_formats_hold_the_same_numbers(tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    stream = Stream("dense", 40)
    X, y = read_npz(file(tmp_path, stream, "npz"))
    from_text, labels = load_svmlight_file(str(file(tmp_path, stream, "svm")), dtype=np.float32)
    np.testing.assert_allclose(from_text.toarray(), X.toarray(), atol=1e-6)
    np.testing.assert_array_equal(labels, y)
    frame = pd.read_parquet(file(tmp_path, stream, "parquet"))
    np.testing.assert_allclose(frame.drop(columns="label").to_numpy(), X.toarray())
    csv = pd.read_csv(file(tmp_path, stream, "csv"))
    np.testing.assert_allclose(csv.to_numpy(), frame.to_numpy(), atol=1e-6)


def test_rows_as_text() -> None:
    X = sparse.csr_matrix(np.array([[0, 0.5, 2], [0, 0, 0], [1, 0, 0]], np.float32))
    assert list(rows_as_text(X, ["1", "2", "3"])) == ["2:0.5 3:2", "", "1:1"]


def test_features_are_counted_as_generated() -> None:
    X = sparse.csr_matrix(np.ones((2, 3), np.float32))
    assert features_per_row(X, "linear") == 4
    assert features_per_row(X, "quadratic") == 4 + 6
    assert features_per_row(X, "cubic") == 4 + 6 + 10


def small_set(n: int = 10) -> Dataset:
    frame = pd.DataFrame({"x": np.arange(n, dtype=float), "c": pd.Categorical(["a", "b"] * (n // 2))})
    frame.loc[0, "x"] = np.nan
    return Dataset("small", "binary", frame, np.arange(n) % 2)


def test_splits_share_no_row_and_follow_the_seed() -> None:
    dataset = small_set(50)
    parts, again, other = split(dataset, 0), split(dataset, 0), split(dataset, 1)
    assert (len(parts.train), len(parts.test)) == (40, 10)
    assert not set(parts.train.X["x"].dropna()) & set(parts.test.X["x"].dropna())
    pd.testing.assert_frame_equal(parts.train.X, again.train.X)
    assert not parts.train.X["x"].equals(other.train.X["x"])


def test_one_hot_scales_marks_missing_and_drops_the_unknown() -> None:
    dataset = small_set()
    encoder = OneHot.fit(dataset)
    X = encoder.encode(dataset).toarray()
    np.testing.assert_allclose(X[[1, 9], 0], [0.0, 1.0])
    np.testing.assert_array_equal(X[:2, 1], [1.0, 0.0])
    np.testing.assert_array_equal(X[:2, 2:], [[1, 0], [0, 1]])
    strange = Dataset("s", "binary", dataset.X.assign(c=pd.Categorical(["z"] * 10)), dataset.y)
    assert encoder.encode(strange).toarray()[:, 2:].sum() == 0


def test_verdicts_are_paired() -> None:
    peer = [0.10, 0.20, 0.30]
    assert Verdict.of([e - 0.01 + d for e, d in zip(peer, (0, 0.001, 0), strict=True)], peer).word == "better*"
    assert Verdict.of([0.05, 0.25, 0.29], peer).word == "better"
    assert Verdict.of([0.12, 0.19, 0.30], peer).word == "no worse"
    assert Verdict.of([0.12, 0.221, 0.32], peer).word == "WORSE"
    assert Verdict.of(peer, peer).word == "equal"
    assert not Verdict.of([0.12, 0.221, 0.32], peer).is_apart  # the errors of a seed rise and fall together
    assert Verdict.of([e + 1 for e in peer], peer).is_apart
    assert "pass" in count(["better", "no worse"])
    assert "FAIL" in count(["better", "better", "WORSE"])
    assert "FAIL" in count(["better", "equal", "equal"])


def test_errors() -> None:
    dataset = Dataset("r", "regression", pd.DataFrame({"x": [0, 1]}), np.array([0.0, 2.0]))
    assert error_of(dataset, np.array([1.0, 1.0])) == 1.0
    classes = Dataset("c", "binary", dataset.X, np.array([0, 1]))
    assert error_of(classes, np.array([0, 0])) == 0.5


def test_finished_runs_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Log(path, fresh=False).add(set="a", seed=1, error=0.5)
    with open(path, "a") as out:
        out.write('{"set": "b", "err')  # the line of a run that was killed
    log = Log(path, fresh=False)
    assert log.find(set="a", seed=1) == {"set": "a", "seed": 1, "error": 0.5}
    assert log.find(set="b") is None
    assert Log(path, fresh=True).records == []


def test_memory_is_that_of_the_child_alone() -> None:
    ballast = np.ones(1 << 26)  # half a gigabyte here, none there
    (timing,) = compare([("zeros", Job("none", "vw"))], repeat=2)
    assert len(timing.outcomes) == 2
    assert 1 < timing.peak_mb < ballast.nbytes / (1 << 20) / 2


def test_the_frontier_is_what_nothing_is_quicker_and_better_than() -> None:
    points = [{"seconds": t, "error": e} for t, e in ((2, 0.3), (1, 0.4), (3, 0.35), (4, 0.1), (4, 0.2), (5, 0.1))]
    assert [(p["seconds"], p["error"]) for p in frontier(points)] == [(1, 0.4), (2, 0.3), (4, 0.1)]


def test_error_against_time_is_shown_and_drawn(tmp_path: Path, monkeypatch, capsys) -> None:
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    X = pd.DataFrame({"x": np.arange(200.0) % 7, "kind": pd.Categorical(["a", "b"] * 100)})
    dataset = Dataset("made", "binary", X, ((X["x"] > 3) ^ (X.index % 5 == 0)).to_numpy().astype(int))
    monkeypatch.setattr(tradeoff, "load", lambda folder, name: dataset)
    one = [
        Entry("pomona", "linear", tradeoff._ours("OnlineClassifier", passes=1)),
        Entry("scikit-learn", "logistic", tradeoff._sklearn("linear_model.LogisticRegression", True)),
        Entry("pomona", "broken", tradeoff._ours("OnlineClassifier", passes=-1)),
    ]
    monkeypatch.setattr(tradeoff, "entries", lambda: one)
    assert main(["tradeoff", "--sets", "made", "--results", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "pomona: linear" in shown and "scikit-learn: logistic" in shown and "failed: made broken" in shown
    assert (tmp_path / "tradeoff.svg").read_text().startswith("<?xml")


def test_a_failing_contender_says_why() -> None:
    with pytest.raises(ContenderError, match="pyarrow reads csv and parquet; got 'vw'"):
        in_child("pyarrow", Job("none", "vw"))


@pytest.mark.peer
def test_the_peer_reads_its_cache(tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit is not installed")
    path = file(tmp_path, Stream("dense", 200), "vw")
    text = Job(str(path), "vw", scratch=str(tmp_path))
    cached = Job(str(path), "vw", scratch=str(tmp_path), cached=True)
    from_text, from_cache = compare([("vw", text), ("vw", cached)], repeat=1)
    assert from_text.error is None and from_cache.error is None
    assert from_cache.outcomes[0].examples == 200
    assert from_cache.loss == pytest.approx(from_text.loss)


def test_pomona_from_text_cache_and_memory_agree(tmp_path: Path) -> None:
    stream = Stream("dense", 300)
    path, matrix = file(tmp_path, stream, "vw"), file(tmp_path, stream, "npz")
    jobs = [
        Job(str(path), "vw", scratch=str(tmp_path)),
        Job(str(path), "vw", scratch=str(tmp_path), cached=True),
        Job(str(matrix), "npz"),
    ]
    timings = compare([("pomona", job) for job in jobs], repeat=1)
    assert [timing.error for timing in timings] == [None] * 3
    losses = [timing.loss for timing in timings]
    assert losses[1] == pytest.approx(losses[0])
    assert {timing.outcomes[0].examples for timing in timings} == {300}
