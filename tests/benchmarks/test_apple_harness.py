"""The paper's experiment is computed as the paper says."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse

from pomona.source.arrays import ArraySource

pd = pytest.importorskip("pandas", reason="the benchmarks need pandas")

# What follows needs pandas, so that it cannot stand above (E402).
from benchmarks.__main__ import main  # noqa: E402
from benchmarks.apple.methods import ALPHAS, Method, all_methods, generated  # noqa: E402
from benchmarks.apple.report import peer_rows, summary  # noqa: E402
from benchmarks.apple.results import Cell, SetResults, published  # noqa: E402
from benchmarks.apple.sets import PUBLISHED, SETS, splits, two_classes  # noqa: E402
from benchmarks.apple_text import Bench  # noqa: E402
from benchmarks.contenders import Job, Outcome  # noqa: E402
from benchmarks.contenders.pomona import InMemory  # noqa: E402
from benchmarks.datasets import Dataset, load  # noqa: E402
from benchmarks.measure import Timing  # noqa: E402
from benchmarks.options import Log  # noqa: E402
from benchmarks.planted import CASES, Planted  # noqa: E402

from benchmarks import apple, apple_converged, apple_speed, fetch  # noqa: E402


# ---- equation 2 and the published tables ----
def results(**errors: float) -> SetResults:
    made = SetResults("made", "binary", 100, 10, 5.0)
    for k, (label, error) in enumerate(errors.items()):
        name, _, alpha = label.partition("_")
        made.cells[Method(name, float(alpha) if alpha else None)] = Cell({0: error}, [1.0 + k], [10.0])
    return made


def test_relative_error_and_time() -> None:
    r = results(lin=0.3, quad=0.2, cubic=0.1, apple_1=0.05, ssm_1=0.25)
    assert r.relative_error(Method("quad")) == pytest.approx(0.5)
    assert r.relative_error(Method("apple", 1.0)) == pytest.approx(-0.25)
    assert r.relative_error(Method("ssm", 1.0)) == pytest.approx(0.75)
    assert r.relative_time(Method("cubic")) == pytest.approx(3.0)
    assert r.relative_error(Method("apple", 0.5)) is None


def test_relative_error_stands_on_the_baselines_that_ran() -> None:
    r = results(lin=0.3, quad=0.2, apple_1=0.2)
    r.cells[Method("cubic")] = Cell(note="about 900 s")
    assert not r.complete
    assert r.relative_error(Method("apple", 1.0)) == pytest.approx(0.0)
    assert results(lin=0.3, quad=0.3, apple_1=0.2).relative_error(Method("apple", 1.0)) is None


def test_best_takes_the_best_alpha_of_the_set() -> None:
    r = results(lin=0.3, **{"apple_0.25": 0.1, "apple_1": 0.2})
    assert r.best("apple") == Method("apple", 0.25)
    assert r.best("ssm") is None


def test_published_tables_have_the_headings_the_right_way_round() -> None:
    figures = published()
    assert len(figures) == 30
    ratios = [sets["apple(1)"][1] / sets["lin"][1] for sets in figures.values()]
    assert statistics.median(ratios) == pytest.approx(2.71, abs=0.01)
    cheap = [sets["apple(0.125)"][1] / sets["lin"][1] for sets in figures.values()]
    assert statistics.median(cheap) == pytest.approx(1.20, abs=0.01)
    assert {theirs for theirs, _ in PUBLISHED.values()} <= set(figures)


def test_summary_counts_what_the_paper_counts() -> None:
    good = results(lin=0.3, quad=0.2, cubic=0.1, apple_1=0.05, ssm_1=0.25)
    facts = "\n".join(summary([good], peer_rows([good])))
    assert "apple(1): relative error below 0.5 on 1 of 1 sets (100%), below 0 on 1" in facts
    assert "ssm(1): relative error below 0.5 on 0 of 1" in facts
    assert "apple against ssm: smaller error in 1 cells, larger in 0" in facts


# ---- methods and sets ----
def test_the_peer_makes_five_rounds_in_one_pass() -> None:
    assert Method("vw-apple", 0.25).peer_options(1000).split() == [
        "--stage_poly", "--sched_exponent", "0.25", "--batch_sz", "167", "--batch_sz_no_doubling",
    ]  # fmt: skip
    assert Method("vw-lin").peer_options(1000) == ""


def test_all_methods_of_the_issue_are_there() -> None:
    labels = {m.label for m in all_methods(peer=True)}
    assert {"lin", "quad", "cubic", *(f"{n}({a:g})" for n in ("apple", "ssm", "vw-apple") for a in ALPHAS)} <= labels
    assert not any(m.by_peer for m in all_methods(peer=False))


def test_cost_is_the_most_there_can_be() -> None:
    X = sparse.csr_matrix(np.ones((4, 10), np.float32))
    assert generated(Method("lin"), X) == 11
    assert generated(Method("apple", 1.0), X) == 1 + 10 * (1 + 2.5 * 10)


def test_the_largest_class_stands_against_the_rest() -> None:
    frame = pd.DataFrame({"x": np.arange(6.0)})
    several = Dataset("s", "multiclass", frame, np.array(list("abbbcc")))
    assert two_classes(several).y.tolist() == [-1, 1, 1, 1, -1, -1]
    two = Dataset("t", "binary", frame, np.array([0, 1, 1, 1, 1, 0]))
    assert two_classes(two).y.tolist() == [-1, 1, 1, 1, 1, -1]
    assert "covtype" in SETS and "covtype_binary" not in SETS


def test_splits_keep_raw_numbers_or_scale_them() -> None:
    dataset = Dataset("d", "binary", pd.DataFrame({"x": np.arange(50) + 100.0}), np.tile([1.0, -1.0], 25))
    raw, scaled = splits(dataset, 0, scaled=False), splits(dataset, 0, scaled=True)
    assert raw.train.X.data.min() >= 100 and scaled.train.X.data.max() <= 1
    assert len(raw.train) == 40 and raw.nonzeros == 1.0
    assert raw.error(raw.test.y) == 0.0 and raw.error(-raw.test.y) == 1.0


def test_a_run_goes_on_where_it_stopped_and_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": rng.random(300), "z": rng.random(300), "label": rng.integers(0, 2, 300)}).to_parquet(
        tmp_path / "own.parquet"
    )
    monkeypatch.setattr(apple, "all_methods", lambda peer, alphas: [Method(n) for n in ("lin", "quad", "cubic")])
    command = ["apple", "--data", str(tmp_path), "--results", str(tmp_path), "--sets", "own", "--seeds", "2"]
    command += ["--rates", "0.5", "--no-peer", "--scratch", str(tmp_path)]
    assert main(command) == 0
    log = Log(tmp_path / "apple.jsonl", fresh=False)
    assert sum(record["kind"] == "run" for record in log.records) == 6
    assert main(command) == 0
    assert Log(tmp_path / "apple.jsonl", fresh=False).records == log.records
    text = (tmp_path / "apple.md").read_text()
    assert "own (300 × " in text and "lin" in text
    assert (tmp_path / "apple-figures" / "figure6.png").exists()


def test_a_method_over_the_limit_is_left_out(tmp_path: Path) -> None:
    dataset = Dataset("d", "binary", pd.DataFrame({"x": np.arange(50.0)}), np.tile([1.0, -1.0], 25))
    args = argparse.Namespace(loss="squared", scaled=False, seeds=1, cell_seconds=1e-9, rates=(0.5,), scratch=tmp_path)
    log = Log(tmp_path / "log.jsonl", fresh=True)
    apple.Runner(dataset, [Method("lin")], args, log).run()
    (record,) = log.records
    assert record["left_out"].startswith("about") and "error" not in record


def test_converged_sets_have_figures_of_peers() -> None:
    known = apple_converged.known_peers()
    assert known["letter"]["poly2"] == (0.0573, 1.4)
    names = apple_converged.converged_sets()
    assert {"letter", "satimage", "covtype"} <= set(names) and names.index("letter") < names.index("covtype")


# ---- OpenML ----
def test_without_a_network_the_message_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*args: object, **options: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    assert main(["fetch", "nomao", "--data", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: OpenML cannot be reached (no route to host)") and message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_fetched_set_is_ready_for_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": pd.Categorical(["a", "b", "a"])})
    found = SimpleNamespace(data=frame, target=pd.Series(pd.Categorical(["yes", "no", "yes"])))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *args, **options: found)
    assert main(["fetch", "tiny", "--data", str(tmp_path)]) == 0
    dataset = load(tmp_path, "tiny")
    assert dataset.task == "binary" and dataset.y.tolist() == ["yes", "no", "yes"]
    assert dataset.categorical == ["c"]
    with pytest.raises(fetch.FetchError, match="letters, digits"):
        fetch.download("../etc")


# ---- planted monomials ----
@pytest.mark.parametrize("kind", ["dense", "binary", "sparse"])
def test_planted_targets_are_what_they_say(kind: str) -> None:
    case = Planted(kind, 400, 60, 3, terms=2, noise=0.0)
    X, y, planted = case.sample(3)
    dense = X.toarray().astype(np.float64)
    expected = sum(dense[:, list(m)].prod(axis=1) + 0.1 * dense[:, m[0]] for m in planted)
    np.testing.assert_allclose(y, expected, atol=1e-6)
    again, y_again, _ = case.sample(3)
    assert (again != X).nnz == 0 and (y == y_again).all()
    assert X.min() >= 0 and len({f for m in planted for f in m}) == 6


def test_planted_cases_span_the_degrees_and_the_widths() -> None:
    assert {case.degree for case in CASES} == {2, 3, 4}
    assert max(case.d for case in CASES) == 100_000


def test_small_test_parts_are_compared_over_several_splits(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl", fresh=False)
    for seed, error in enumerate((0.1, 0.3)):
        log.add(
            kind="converged", set="tiny", rows=50, seed=seed, learner="apple", error=error, seconds=1.0, test_rows=20
        )
    log.add(kind="converged", set="tiny", rows=10, seed=0, learner="apple", error=0.9, seconds=1.0, test_rows=20)
    mean = apple_converged._mean_of(log, "apple", "tiny")
    assert mean is not None
    assert (mean["error"], mean["splits"], mean["test_rows"]) == (pytest.approx(0.2), 2, 40)
    assert apple_converged._mean_of(log, "poly2", "tiny") is None


def test_splits_are_several_where_the_test_part_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(rows: int, official: bool = False) -> Dataset:
        X = pd.DataFrame({"x": np.arange(rows)})
        return Dataset("made", "binary", X, np.arange(rows) % 2, is_train=np.arange(rows) < 90 if official else None)

    args = argparse.Namespace(data=None, most_rows=None)
    for dataset, expected in ((made(100), 10), (made(10_000), 1), (made(100, official=True), 1)):
        monkeypatch.setattr(apple_converged, "load", lambda folder, name, dataset=dataset: dataset)
        parts = apple_converged._splits("made", args)
        assert len(parts) == expected
        assert len({tuple(p.test.X["x"]) for p in parts}) == expected


@pytest.mark.parametrize(("task", "expected"), [("binary", {5: 1, 8: -1}), ("multiclass", {5: 1, 4: 1})])
def test_cubic_is_timed_on_documents_of_middle_length(task: str, expected: dict[int, int]) -> None:
    lengths, y = [9, 1, 3, 4, 5, 8, 9], np.array([1.0, 1, 1, 1, 1, -1, -1])
    X = sparse.csr_matrix(np.arange(9)[None, :] < np.array(lengths)[:, None], dtype=np.float32)
    training = InMemory(ArraySource(X, y))
    picked = Bench(task, None, training, training, "auto")._middling(2)
    (chunk,) = picked.chunks()
    assert dict(zip(np.diff(chunk.indptr).tolist(), chunk.labels.tolist(), strict=True)) == expected
    assert picked.n_examples == 2


def test_speed_bars_are_over_parsed_data() -> None:
    def timing(seconds: float, features: int = 100) -> Timing:
        return Timing("made", Job("made", "vw"), [Outcome(seconds=seconds, cpu_seconds=seconds, features=features)])

    timings = {"pomona lin": timing(1.0), "pomona lin, text": timing(2.0)}
    timings |= {"pomona apple(1)": timing(2.0, 400), "vw apple(1)": timing(12.0, 300)}
    timings |= {"pomona apple(1), text": timing(3.0), "vw apple(1), text": timing(12.0)}
    found = {v["text"]: (v["value"], v["pass"]) for v in apple_speed.bars({"made": timings}, (1.0,))}
    assert found["made, alpha 1: features a second"] == (pytest.approx(8.0), True)
    assert found["made, alpha 1: time"] == (6.0, True)
    assert found["median time / linear at alpha 1, parsed data, 1 sets"] == (2.0, True)
    assert found["median time / linear at alpha 1, from text, 1 sets"] == (1.5, True)
    timings["vw apple(1)"].outcomes.clear()  # it took too long
    assert "made, alpha 1: time" not in {v["text"] for v in apple_speed.bars({"made": timings}, (1.0,))}
