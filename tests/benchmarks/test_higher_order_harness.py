"""The experiment on higher-order logistic regression: names of methods, folds, one quick run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.higher_order import OURS, one
from benchmarks.higher_order_figures import PUBLISHED
from benchmarks.higher_order_methods import FIXED, make
from benchmarks.higher_order_sets import BARS, SETS, halves


def test_names_say_what_is_meant() -> None:
    found = make("hsALR3-mi-0.8")
    assert (found.order, found.hierarchical, found.selection, found.threshold) == (3, True, "mi", 0.8)
    assert make("sALR4-cvscore").threshold == "auto"
    assert make("hsALR2(*)-0.1").feature_selection
    assert make("ALRauto").order == "auto"
    assert not make("ALR2-plain").preconditioner
    with pytest.raises(ValueError, match="no method 'XYZ'"):
        make("XYZ")


def test_every_method_that_is_named_exists() -> None:
    named = {method for _, method in [*BARS, *PUBLISHED]} | {m for methods in OURS.values() for m in methods}
    for method in named:
        assert method in FIXED or make(method) is not None
    assert {name for name, _ in BARS} == set(SETS)


def test_folds_are_halves() -> None:
    X, y = pd.DataFrame({"x": np.arange(11)}), np.arange(11)
    parts = [part for _, _, part in halves(X, y, 2, 2)]
    assert len(parts) == 4
    for part in parts:
        assert sorted([*part.y, *part.y_test]) == list(range(11))
    assert parts[0].y.tolist() == parts[1].y_test.tolist()


@pytest.mark.data
@pytest.mark.parametrize("method", ["NB", "ALR2", "LR", "RF-bins"])
def test_one_run(data_dir: Path, method: str) -> None:
    from benchmarks.higher_order_sets import read

    X, y = read(data_dir, "letter", 2000)
    _, _, part = next(iter(halves(X, y, 1, 1)))
    figures = one(method, part)
    assert 0 < figures["error"] < 0.5
    assert 0 < figures["log_loss"] < 3
