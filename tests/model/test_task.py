"""Targets to numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pomona.errors import DataFormatError
from pomona.task import MAX_COMPARED, Task


def slowly(task: Task, labels: NDArray[np.generic]) -> list[float]:
    first, step = (-1, 2) if task.kind == "binary" else (0, 1)
    return [first + step * task.classes.index(label) for label in labels.tolist()]


@given(
    st.lists(st.integers(-5, 5) | st.sampled_from([2**53, 2**53 + 1, -(2**60)]), min_size=1, unique=True),
    st.sampled_from([np.int64, np.float64]),
    st.data(),
)
def test_every_label_gets_the_code_of_its_class(classes: list[int], kind: type, data: st.DataObject) -> None:
    known = np.unique(np.array(classes, kind))
    labels = np.array(data.draw(st.lists(st.sampled_from(known.tolist()), max_size=30)), kind)
    task = Task("binary" if len(known) == 2 else "multiclass", known.tolist())
    assert task.encode(labels).tolist() == slowly(task, labels)
    assert len(task.classes) == len(known)


@pytest.mark.parametrize("n_classes", [3, MAX_COMPARED, MAX_COMPARED + 1])
def test_a_class_met_late_is_added(n_classes: int) -> None:
    task = Task("multiclass", list(range(n_classes)))
    assert task.encode(np.array([0.0, 77.0, 1.0, 77.0])).tolist() == [0, n_classes, 1, n_classes]
    assert task.classes[-1] == 77


def test_a_third_class_or_none_is_an_error_in_a_binary_task() -> None:
    task = Task("binary", [-1.0, 1.0])
    with pytest.raises(DataFormatError, match=r"f.vw:12: the task is binary .* the target here is 3.0"):
        task.encode(np.array([1.0, -1.0, 3.0]), file="f.vw", first_line=10)
    with pytest.raises(DataFormatError, match="the target is missing"):
        task.encode(np.array([1.0, np.nan]))
