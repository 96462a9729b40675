"""Columns of a table to codes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pomona.errors import DataFormatError, OptionError
from pomona.higherorder.attributes import UNSEEN
from pomona.higherorder.coded import chunk_codes
from pomona.higherorder.coder import AttributeCoder
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.table import open_frame


def fit(frame: Any, read: ReadOptions | None = None, **encode: Any) -> AttributeCoder:
    return AttributeCoder.fit(open_frame(frame), read or ReadOptions(target="y"), EncodeOptions(**encode))


def codes(coder: AttributeCoder, frame: Any) -> np.ndarray:
    return np.concatenate([chunk_codes(coder.encode(batch)) for batch in open_frame(frame).batches()])


def people(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, n).astype(float)
    age[::10] = np.nan
    job = rng.choice(["cook", "nurse", "", "baker"], n)
    y = np.where(np.nan_to_num(age) > 40, "yes", "no")
    return pd.DataFrame({"age": age, "job": job, "one": 1.0, "gone": np.nan, "y": y})


def test_numbers_categories_and_missing_values() -> None:
    frame = people()
    coder = fit(frame)
    assert [a.name for a in coder.attributes] == ["age", "job"]
    assert coder.dropped == ["one", "gone"]
    found = codes(coder, frame)
    age, job = coder.attributes
    assert [age.level(int(c)) for c in found[:2, 0]] == [
        "age is missing",
        f"age {'>' if frame.age[1] > 40 else '≤'} 40",
    ]
    expected = [f"job = {text}" if text else "job is missing" for text in frame.job]
    assert [job.level(int(code)) for code in found[:, 1]] == expected
    assert found.max(axis=0).tolist() == [2, 3]


def test_levels_never_seen() -> None:
    coder = fit(people())
    new = pd.DataFrame({"age": [200.0, -5.0], "job": ["pilot", None]})
    assert codes(coder, new)[:, 0].tolist() == [1, 0]
    assert codes(coder, new)[:, 1].tolist() == [UNSEEN, 3]


def test_missing_only_when_predicting() -> None:
    frame = pd.DataFrame({"a": list("xyxy") * 10, "b": np.arange(40.0), "y": [0] * 20 + [1] * 20})
    coder = fit(frame)
    assert codes(coder, pd.DataFrame({"a": [None], "b": [np.nan]})).tolist() == [[UNSEEN, 2]]


def test_columns_of_which_one_is_one_are_an_attribute() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 300)
    frame = pd.DataFrame({f"Soil_Type{i + 1}": (kind == i).astype(np.int8) for i in range(4)})
    frame["y"] = kind % 2
    coder = fit(frame)
    (soil,) = coder.attributes
    assert soil.kind == "group"
    assert codes(coder, frame)[:, 0].tolist() == kind.tolist()
    assert soil.level(2) == "Soil_Type = 3"
    both = frame.head(1).assign(Soil_Type1=1, Soil_Type2=1)
    assert codes(coder, both).tolist() == [[UNSEEN]]


def test_columns_that_overlap_stay_apart() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"bit{i}": rng.integers(0, 2, 200) for i in range(4)})
    frame["y"] = frame.bit0
    assert [a.kind for a in fit(frame).attributes] == ["number"] * 4


def test_dates_give_parts() -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(400)]
    frame = pa.table({"day": days, "y": [d.weekday() >= 5 for d in days]})
    coder = fit(frame)
    assert "day.weekday" in [a.name for a in coder.attributes]
    weekday = [a.name for a in coder.attributes].index("day.weekday")
    assert len(np.unique(codes(coder, frame)[:, weekday])) == 2


def test_numbers_said_to_be_categories() -> None:
    frame = pd.DataFrame({"k": [3, 1, 2, 3] * 10, "y": [0, 1, 1, 0] * 10})
    coder = fit(frame, ReadOptions(target="y", categorical=["k"]))
    assert coder.attributes[0].kind == "category"
    assert coder.attributes[0].level(0) == "k = 3"


def test_equal_frequency_on_demand() -> None:
    frame = pd.DataFrame({"x": np.arange(100.0), "y": [0, 1] * 50})
    assert codes(fit(frame, numeric="onehot", bins=5), frame).max() == 4


def test_a_coder_comes_back_from_its_state() -> None:
    frame = people().assign(**{f"kind{i}": (np.arange(200) % 3 == i).astype(int) for i in range(3)})
    coder = fit(frame)
    again = AttributeCoder.from_state(coder.state())
    assert np.array_equal(codes(again, frame), codes(coder, frame))
    assert [a.level(0) for a in again.attributes] == [a.level(0) for a in coder.attributes]
    assert again.types() == coder.types()


def test_ten_thousand_levels() -> None:
    names = np.array([f"user {i}" for i in range(10_000)])
    frame = pd.DataFrame({"user": np.tile(names, 2), "y": [0] * 10_000 + [1] * 10_000})
    coder = fit(frame)
    found = codes(coder, frame)[:, 0]
    assert found[:10_000].tolist() == found[10_000:].tolist() == list(range(10_000))
    assert coder.attributes[0].level(77) == "user = user 77"


def test_bad_tables() -> None:
    with pytest.raises(DataFormatError, match="expected a finite number in column 'x', got inf"):
        fit(pd.DataFrame({"x": [1.0, np.inf, 2.0], "y": [0, 1, 0]}))
    with pytest.raises(DataFormatError, match=r"column 'x' has the type list.*ignore it"):
        fit(pa.table({"x": [[1], [2]], "y": [0, 1]}))
    with pytest.raises(DataFormatError, match="no column 'z' for the target"):
        fit(people(), ReadOptions(target="z"))
    with pytest.raises(DataFormatError, match="name the column to predict"):
        fit(people(), ReadOptions())
    with pytest.raises(OptionError, match="takes no weights"):
        fit(people(), ReadOptions(target="y", weight="age"))
    with pytest.raises(OptionError, match="numbers become bins here"):
        fit(people(), numeric="hat")
    with pytest.raises(DataFormatError, match="no rows"):
        fit(people().head(0))
    with pytest.raises(DataFormatError, match="no column 'job' for the model"):
        codes(fit(people()), people().drop(columns="job"))
