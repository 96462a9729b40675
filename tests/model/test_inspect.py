"""What a model says of itself."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pomona.errors import MissingDependencyError, OptionError, PomonaError
from pomona.model import Model, load, train
from pomona.model.inspect import as_text, describe, plot, top_features
from pomona.options import EncodeOptions, LearnOptions, ReadOptions

KINDS = ("aster", "bellis", "crocus", "dahlia", "erica")


def table_model(folder: Path, n_classes: int) -> Model:
    """Classes that depend on the colour alone; a column that does not vary is dropped."""
    rng = np.random.default_rng(0)
    path = folder / "flowers.csv"
    with path.open("w") as file:
        file.write("colour,size,same,kind\n")
        for i in rng.integers(n_classes, size=600).tolist():
            file.write(f"c{i},{rng.random():.3f},x,{KINDS[i]}\n")
    return train(
        str(path),
        read=ReadOptions(target="kind"),
        encode=EncodeOptions(numeric="raw"),
        learn=LearnOptions(passes=2, holdout=0.2, l2=1e-6),
    )


def text_model(folder: Path, **options: Any) -> Model:
    """y is +1 where a and b are of the same sign, whatever each is: a product and no single feature."""
    rng = np.random.default_rng(0)
    path = folder / "products.vw"
    with path.open("w") as file:
        for a, b in rng.choice([-1, 1], size=(500, 2)).tolist():
            file.write(f"{a * b} |n a:{a} b:{b}\n")
    return train(str(path), learn=LearnOptions(interactions="quadratic", squares=False, **options))


def test_products_are_named_and_strongest(tmp_path: Path) -> None:
    top = top_features(text_model(tmp_path), 3)
    assert set(top[0]["feature"].split(" · ")) == {"n:a", "n:b"}
    assert top[0]["weight"] > 1 and top[0]["scale"] == 1
    assert abs(top[0]["weight"]) > 3 * abs(top[1]["weight"])


@pytest.mark.parametrize(
    ("update", "by"),
    [
        ("adaptive", "|weight| · √(sum of squared gradients)"),
        ("ftrl", "|weight| · √(sum of squared gradients)"),
        ("sgd", "|weight| · scale"),
    ],
)
def test_what_is_sure_comes_before_what_is_rare(tmp_path: Path, update: str, by: str) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "words.vw"
    with path.open("w") as file:
        for i, y in enumerate(rng.choice([-1, 1], 2000).tolist()):
            word = "good" if rng.random() < (0.5 + 0.15 * y) else "bad"
            file.write(f"{y} | {word} w{i % 700}\n")
    model = train(str(path), learn=LearnOptions(update=update, passes=3))
    report = describe(model, top=3)
    assert report["ranked_by"] == by and f"top 3 features by {by}" in as_text(report, "m.pomona")
    largest = max(top_features(model, 1000), key=lambda entry: abs(entry["weight"] * entry["scale"]))
    if update == "sgd":  # which keeps no sums of gradients
        assert report["top"][0] == largest
    else:
        assert largest["feature"].startswith("w")  # by chance
        assert {entry["feature"] for entry in report["top"][:2]} == {"good", "bad"}


def test_zero_features_and_more_than_there_are(tmp_path: Path) -> None:
    model = text_model(tmp_path)
    assert top_features(model, 0) == []
    assert len(top_features(model, 1000)) == 3
    assert top_features(text_model(tmp_path, l1=100.0), 5) == []


def test_the_report_holds_what_is_promised(tmp_path: Path) -> None:
    report = describe(table_model(tmp_path, 3), top=2)
    assert report["task"] == {"kind": "multiclass", "classes": list(KINDS[:3])}
    assert report["training"]["data"].endswith("flowers.csv")
    assert (report["training"]["examples"], report["training"]["passes"]) == (960, 2)
    assert report["options"] == {
        "target": "kind",
        "numeric": "raw",
        "passes": 2,
        "holdout": 0.2,
        "l2": 1e-6,
    }
    assert report["columns"] == {"colour": "category", "size": "number"}
    assert 0 < report["table"]["used"] <= report["table"]["slots"]
    entry = report["top"][0]
    assert entry["weight"] == entry["weights"][KINDS.index(entry["class"])]
    assert entry["feature"].startswith("colour=c")


def test_text_with_classes_side_by_side(tmp_path: Path) -> None:
    report = describe(table_model(tmp_path, 3), top=2)
    lines = as_text(report, "m.pomona").splitlines()
    assert lines[0] == "m.pomona: online learner, multiclass, classes aster, bellis and crocus"
    assert "  options     target kind, numeric raw, l2 1e-06, passes 2, holdout 0.2" in lines
    assert "  columns     colour (category), size (number)" in lines
    assert "        aster     bellis     crocus      scale  feature" in lines
    assert lines[-1].split()[-1].startswith("colour=c")
    assert max(map(len, lines)) < 80


def test_text_with_many_classes_names_the_strongest(tmp_path: Path) -> None:
    lines = as_text(describe(table_model(tmp_path, 5), top=2), "m.pomona").splitlines()
    assert "        class     weight      scale  feature" in lines
    assert lines[-1].split()[0] in KINDS


def test_text_of_a_model_without_weights(tmp_path: Path) -> None:
    text = as_text(describe(text_model(tmp_path, l1=100.0)), "m.pomona")
    assert text.endswith("\n\nno feature has a weight other than zero")
    assert "no squares" in text


def test_a_loaded_model_says_the_same(tmp_path: Path) -> None:
    for model in (text_model(tmp_path), table_model(tmp_path, 3)):
        model.save(tmp_path / "m.pomona")
        assert describe(load(tmp_path / "m.pomona")) == describe(model)


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = describe(table_model(tmp_path, 3), top=4)
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        plot(report, tmp_path / f"top.{kind}", "flowers")
        assert (tmp_path / f"top.{kind}").read_bytes().startswith(start)
    with pytest.raises(OptionError, match=r"a picture's name must end in .png, .svg or .pdf; got 'top.bmp'"):
        plot(report, "top.bmp")
    with pytest.raises(PomonaError, match="does not exist"):
        plot(report, tmp_path / "no" / "top.png")


def test_a_missing_extra_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_matplotlib(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    report = describe(text_model(tmp_path))
    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingDependencyError) as caught:
        plot(report, tmp_path / "top.png")
    assert str(caught.value) == 'drawing needs matplotlib: install it with pip install "pomona[plot]"'
