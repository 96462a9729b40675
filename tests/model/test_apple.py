"""apple from files and arrays: schedules, options, files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pomona import AppleClassifier, AppleRegressor, load
from pomona.errors import OptionError
from pomona.model import train
from pomona.model.inspect import as_text, describe
from pomona.online.heuristics import by_scaled_weight
from pomona.options import EncodeOptions, LearnOptions, ReadOptions

APPLE = LearnOptions(learner="apple")


def text(path: Path, n: int = 600) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        words = [f"w{i}" for i in range(8) if rng.random() < 0.5]
        label = 1 if ("w1" in words) == ("w2" in words) else -1
        lines.append(f"{label} |t {' '.join(words)}\n")
    path.write_text("".join(lines))
    return path


def table(path: Path, n: int = 900) -> Path:
    rng = np.random.default_rng(1)
    a, b, c = rng.uniform(-1, 1, (3, n))
    rows = "".join(f"{x},{y},{z},{int(x * y > 0)}\n" for x, y, z in zip(a, b, c, strict=True))
    path.write_text("a,b,c,label\n" + rows)
    return path


def rounds(model: Any) -> int:
    return len(set(model.learner.parents.rounds))


def test_a_text_of_unknown_length_has_the_rounds_of_its_epochs(tmp_path: Path) -> None:
    model = train(text(tmp_path / "a.vw"), learn=APPLE)
    assert rounds(model) == 5
    assert model.learner.schedule == [41, 116, 213, 327, 457]  # 600 (k / 6)^1.5
    equal = train(text(tmp_path / "a.vw"), learn=dataclasses.replace(APPLE, schedule="equal"))
    assert equal.learner.schedule == [100, 200, 300, 400, 500]


def test_compressed_text_tells_no_length_so_that_rounds_double(tmp_path: Path) -> None:
    import gzip

    plain = text(tmp_path / "a.vw", 2500).read_bytes()
    (tmp_path / "a.vw.gz").write_bytes(gzip.compress(plain))
    model = train(tmp_path / "a.vw.gz", learn=APPLE)
    assert model.learner.schedule is None
    assert rounds(model) == 2


def test_epochs_extend_over_all_passes_or_the_first(tmp_path: Path) -> None:
    path = text(tmp_path / "a.vw")
    over_all = train(path, learn=dataclasses.replace(APPLE, passes=3))
    first = train(path, learn=dataclasses.replace(APPLE, passes=3, grow="first"))
    assert over_all.learner.schedule == [300, 600, 900, 1200, 1500]  # equal: there is enough to learn from
    early = train(path, learn=dataclasses.replace(APPLE, passes=3, schedule="early"))
    assert early.learner.schedule == [123, 347, 637, 980, 1370]
    assert first.learner.schedule == []  # and frozen since
    assert rounds(over_all) == rounds(first) == 5


def test_products_of_many_rare_features_learn_what_these_leave(tmp_path: Path) -> None:
    """Found out in the first round, kept in the model, and the same as asking for it."""
    rng = np.random.default_rng(5)
    lines = [f"{rng.choice([-1, 1])} | {' '.join(f'w{i}' for i in rng.integers(0, 3000, 9))}\n" for _ in range(600)]
    (tmp_path / "words.vw").write_text("".join(lines))
    few = train(text(tmp_path / "few.vw"), learn=APPLE)
    assert "residual" in few.learner.state().header and not few.learner.state().header["residual"]
    states = []
    for kind in ("auto", "residual", "joint"):
        model = train(tmp_path / "words.vw", learn=dataclasses.replace(APPLE, products=kind, alpha=1.0))
        model.save(tmp_path / "a.pomona")
        states.append(load(tmp_path / "a.pomona").learner.state())
    auto, residual, joint = states
    assert auto.header["residual"] and not joint.header["residual"]
    assert (auto.arrays["slots1"] == residual.arrays["slots1"]).all()
    assert (auto.arrays["slots0"] != joint.arrays["slots0"]).any()


@pytest.mark.parametrize(
    ("kind", "products", "rule"),
    [("text", "residual", "evidence"), ("text", "joint", "scaled"), ("category", "residual", "scaled")],
)
def test_the_rule_for_parents_follows_the_data_and_how_products_learn(
    tmp_path: Path, kind: str, products: str, rule: str
) -> None:
    rng = np.random.default_rng(3)
    words = [" ".join(f"w{i}" for i in range(8) if rng.random() < 0.5) for _ in range(600)]
    labels = [int(("w1" in row) == ("w2" in row)) for row in words]
    read = ReadOptions(
        target="label", text=["a"] if kind == "text" else [], categorical=[] if kind == "text" else ["a"]
    )
    data = pa.table({"a": words, "label": labels})
    options = dataclasses.replace(APPLE, products=products)
    found = [train(data, read=read, learn=dataclasses.replace(options, heuristic=name)) for name in ("auto", rule)]
    assert found[0].learner.parents.header() == found[1].learner.parents.header()
    found[0].save(tmp_path / "a.pomona")
    assert load(tmp_path / "a.pomona").learner.apple.heuristic == rule


def test_base_features_learn_as_if_they_were_alone(tmp_path: Path) -> None:
    path = text(tmp_path / "a.vw")
    apart = train(path, learn=dataclasses.replace(APPLE, products="residual"))
    alone = train(path, learn=dataclasses.replace(APPLE, degree=1))
    used = len(alone.learner.tables.slots[0])
    assert (apart.learner.tables.slots[0][:used, :2] == alone.learner.tables.slots[0][:, :2]).all()
    assert apart.summary["loss"] < alone.summary["loss"]


def test_rounds_by_numbers_of_examples(tmp_path: Path) -> None:
    model = train(text(tmp_path / "a.vw"), learn=dataclasses.replace(APPLE, rounds=(50, 250)))
    assert rounds(model) == 2


def test_a_reloaded_model_needs_no_option_and_predicts_the_same_bits(tmp_path: Path) -> None:
    path = text(tmp_path / "a.vw")
    model = train(path, learn=dataclasses.replace(APPLE, alpha=1.2, heuristic="ssm"))
    model.save(tmp_path / "a.pomona")
    again = load(tmp_path / "a.pomona")
    a, b = (np.concatenate(list(m.predict(path))) for m in (model, again))
    assert a.tobytes() == b.tobytes()
    report = as_text(describe(again, 5), "a")
    assert "apple learner" in report
    assert "chosen in 5 rounds" in report
    assert "t:w1 · t:w2" in report


def test_parents_do_not_depend_on_units(tmp_path: Path) -> None:
    assert train(text(tmp_path / "a.vw"), learn=APPLE).learner.apple.heuristic == "scaled"
    columns = table(tmp_path / "t.csv")
    for numeric in ("auto", "raw"):
        encode = EncodeOptions(numeric=numeric)
        model = train(columns, read=ReadOptions(target="label"), encode=encode, learn=APPLE)
        assert model.learner.apple.heuristic == "scaled"


def test_a_function_is_known_to_the_file_by_its_name(tmp_path: Path) -> None:
    model = train(text(tmp_path / "a.vw"), learn=dataclasses.replace(APPLE, heuristic=by_scaled_weight))
    model.save(tmp_path / "a.pomona")
    assert load(tmp_path / "a.pomona").options["learn"]["heuristic"] == "by_scaled_weight"


def test_a_column_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    learn = dataclasses.replace(APPLE, expand=("a", "d"))
    with pytest.raises(OptionError, match="expand names the column 'd', which is not among a, b, c"):
        train(table(tmp_path / "t.csv"), read=ReadOptions(target="label"), learn=learn)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -0.5}, "alpha must be auto or a number from 0 to 4; got -0.5"),
        ({"alpha": float("nan")}, "alpha must be auto or a number from 0 to 4; got nan"),
        ({"alpha": "many"}, "alpha must be auto or a number from 0 to 4; got 'many'"),
        ({"epochs": 0}, "epochs must be a whole number >= 1; got 0"),
        ({"degree": 0}, "degree must be None or >= 1; got 0"),
        ({"schedule": "late"}, "the schedule must be one of auto, early, equal; got 'late'"),
        ({"products": "none"}, "products must be one of auto, joint, residual; got 'none'"),
        ({"grow": "none"}, "grow must be all or first; got 'none'"),
        ({"rounds": (5, 5)}, r"rounds must be rising numbers of examples above 0; got \(5, 5\)"),
        ({"heuristic": "luck"}, "the heuristic must be one of weight, scaled, .* or a function .*; got 'luck'"),
        ({"update": "ftrl"}, "apple needs the update adaptive, adagrad or sgd; got 'ftrl'"),
        ({"interactions": "quadratic"}, "apple makes products of its own: interactions must be linear"),
    ],
)
def test_malformed_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        train(text(tmp_path / "a.vw"), learn=dataclasses.replace(APPLE, **options))


def test_wide_rows_get_fewer_parents_a_round_unless_told() -> None:
    rng = np.random.default_rng(0)
    for width, alpha, expected in ((12, "auto", 12), (300, "auto", 16384 // 300), (300, 1, 300)):
        X = rng.uniform(1, 2, (600, width))
        model = AppleClassifier(alpha=alpha, numeric="raw", passes=1, epochs=3).fit(X, X[:, 0] > X[:, 1])
        assert np.bincount(model.model_.learner.parents.rounds).tolist() == [expected] * 2


def test_partial_fit_grows_at_doubling_numbers() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (2100, 5))
    y = X[:, 0] * X[:, 3] > 0
    learner = AppleClassifier(numeric="raw")
    for start in range(0, 2100, 300):
        learner.partial_fit(X[start : start + 300], y[start : start + 300], classes=[False, True])
    assert len(set(learner.model_.learner.parents.rounds)) == 2
    assert learner.score(X, y) == 1.0


def test_terms_are_named_and_ordered() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 6))
    y = 2 * X[:, 1] * X[:, 4] - X[:, 2]
    terms = AppleRegressor(numeric="raw").fit(X, y).terms_
    assert set(terms["name"][:2]) == {"x1 · x4", "x2"}
    assert (np.abs(terms["weight"] * terms["scale"])[2:] < 0.1).all()
    assert terms["degree"][list(terms["name"]).index("x1 · x4")] == 2


def test_memory_does_not_grow_once_the_parents_are_fixed() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0], (6000, 12))
    y = X[:, 0] * X[:, 1] > 0
    sizes = []
    learner = AppleClassifier(numeric="raw")
    for start in range(0, 6000, 500):
        learner.partial_fit(X[start : start + 500], y[start : start + 500], classes=[False, True])
        if start == 1500:
            learner.model_.learner.freeze()
        sizes.append(learner.model_.learner.tables.nbytes)
    assert len(set(sizes[4:])) == 1


@pytest.mark.parametrize(("words", "rule"), [(5, "evidence"), (60, "scaled")])
def test_short_sparse_rows_whose_products_learn_the_rest_choose_by_evidence(
    tmp_path: Path, words: int, rule: str
) -> None:
    rng = np.random.default_rng(4)
    lines = [f"{rng.choice([-1, 1])} | {' '.join(f'w{i}' for i in rng.integers(0, 9000, words))}\n" for _ in range(600)]
    (tmp_path / "a.vw").write_text("".join(lines))
    assert train(tmp_path / "a.vw", learn=APPLE).learner.apple.heuristic == rule


def interacting(n: int, matter: bool) -> str:
    """Rows of three fields, of which the first two decide together, or nothing does; and a field of many values."""
    rng = np.random.default_rng(n)
    a, b, c = rng.integers(0, 6, n), rng.integers(0, 6, n), rng.integers(0, 500, n)
    odd = (a + b) % 2 == 1 if matter else rng.random(n) < 0.5
    labels = np.where(rng.random(n) < 0.2, rng.random(n) < 0.5, odd)
    rows = zip(np.where(labels, 1, -1), a, b, c, strict=True)
    return "".join(f"{y} |a a{i} |b b{j} |c c{k}\n" for y, i, j, k in rows)


def test_products_count_as_much_as_they_have_earned(tmp_path: Path) -> None:
    for name, matter in (("some", True), ("none", False)):
        (tmp_path / f"{name}.vw").write_text(interacting(12_000, matter))
        (tmp_path / f"{name}-new.vw").write_text(interacting(4_000, matter))
        learn = dataclasses.replace(APPLE, products="residual", alpha=1.5)
        apple = train(tmp_path / f"{name}.vw", learn=learn)
        linear = train(tmp_path / f"{name}.vw", learn=dataclasses.replace(learn, learner="online"))
        gain = apple.learner.product_gain
        assert apple.summary["loss"] < linear.summary["loss"] + 0.01
        assert (gain > 1.5) if matter else (gain < 0.5)
        assert f"count {gain / 2:.0%}" in apple.learner.inspect(apple.task, 1)["facts"]["parents"]
        if matter:
            assert apple.summary["error"] < 0.3 < linear.summary["error"]


def test_examples_of_later_passes_do_not_judge_products(tmp_path: Path) -> None:
    (tmp_path / "none.vw").write_text(interacting(3_000, matter=False))
    learn = dataclasses.replace(APPLE, products="residual", alpha=1.0, schedule="equal", grow="first", shuffle=False)
    gains = [
        train(tmp_path / "none.vw", learn=dataclasses.replace(learn, passes=n)).learner.product_gain for n in (1, 6)
    ]
    assert gains[0] == gains[1] < 0.5
