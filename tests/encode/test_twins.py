"""The native encoders equal their Python twins."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pomona import _native
from pomona.encode.bins import bin_names, edges, knots, number_name
from pomona.encode.columns import Part, fill_numbers, string_buffers
from tests.reference import encode as twin

numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
rising = st.lists(finite, min_size=2, max_size=40, unique=True).map(sorted)


def native_rows(part: Part, array: pa.Array, missing: int = 7) -> list[dict[int, float]]:
    column = np.zeros(1, _native.COLUMN)
    fill_numbers(column[0], array)
    column["kind"], column["marks_missing"], column["missing"] = part.kind, 1, missing
    column["points"], column["n_points"] = part.points.ctypes.data, len(part.points)
    column["ids"], column["n_ids"] = part.ids.ctypes.data, len(part.ids)
    indptr, ids, values, _ = _native.encode_columns(column, len(array))
    return [
        dict(zip(ids[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in zip(indptr, indptr[1:], strict=False)
    ]


def expected(part: Part, x: float | None, missing: int = 7) -> dict[int, float]:
    if x is None or x != x:
        return {missing: 1.0}
    if part.kind == _native.HAT:
        row = twin.hat(x, part.points.tolist())
    elif part.kind == _native.BINS:
        row = {twin.bin_of(x, part.points.tolist()): 1.0}
    else:
        row = {0: twin.share(*part.points.tolist(), x)}
    rounded = {int(part.ids[k]): float(np.float32(v)) for k, v in row.items()}
    return {k: v for k, v in rounded.items() if v}


@pytest.mark.parametrize("kind", [_native.HAT, _native.BINS, _native.RAMP])
@given(points=rising, values=st.lists(st.one_of(st.none(), numbers), max_size=600))
@example(points=[-1.7e308, 1.7e308], values=[0.0, 1.7e308, -1.7e308, float("inf"), float("-inf")])
@example(points=[0.0, 5e-324], values=[0.0, 5e-324, 1.0])
@settings(max_examples=150, deadline=None)
def test_numbers(kind: int, points: list[float], values: list[float | None]) -> None:
    part = Part.make(kind, "x", points[:2] if kind == _native.RAMP else points)
    array = pa.array(values, pa.float64())
    assert native_rows(part, array) == [expected(part, x) for x in values]
    if len(values) > 3:  # a slice of an Arrow array begins in the middle of its buffers
        assert native_rows(part, array.slice(3)) == [expected(part, x) for x in values[3:]]


@pytest.mark.parametrize(
    "type_",
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    + [pa.float32(), pa.float64(), pa.bool_()],
)
def test_every_type_of_number(type_: pa.DataType) -> None:
    values = [None, 1, 0, 1] if type_ == pa.bool_() else [None, 0, 3, 100]
    part = Part.make(_native.HAT, "x", [0.0, 2.0, 50.0])
    rows = native_rows(part, pa.array(values).cast(type_))
    assert rows == [expected(part, None if x is None else float(x)) for x in values]


@given(values=st.lists(finite, min_size=3, max_size=300), bins=st.integers(2, 20))
@settings(deadline=None)
def test_bins_and_knots_follow_the_mass(values: list[float], bins: int) -> None:
    distinct, counts = np.unique(np.array(values), return_counts=True)
    if len(distinct) < 3:
        return
    points, cuts = knots(distinct, counts, bins), edges(distinct, counts, bins)
    assert (np.diff(points) > 0).all() and (np.diff(cuts) > 0).all()
    assert set(points) <= set(distinct)
    assert points[0] == distinct[0] and points[-1] == distinct[-1]
    heavy = distinct[counts * bins >= len(values)]
    assert len(points) <= max(bins, len(heavy) + 2)
    assert set(heavy) <= set(points)
    # Every bin holds something, and a heavy value shares its bin with nothing.
    holders = [twin.bin_of(x, cuts.tolist()) for x in distinct.tolist()]
    assert set(holders) == set(range(len(cuts) + 1))
    if len(distinct) > bins:
        for value in heavy:
            assert holders.count(twin.bin_of(value, cuts.tolist())) == 1


def test_few_values_have_a_knot_and_a_bin_each() -> None:
    distinct, counts = np.array([1.0, 2.0, 4.0]), np.array([5, 1, 1])
    assert knots(distinct, counts, 16).tolist() == [1.0, 2.0, 4.0]
    assert edges(distinct, counts, 16).tolist() == [1.5, 3.0]


@given(finite)
def test_names_of_numbers_give_them_back(x: float) -> None:
    assert float(number_name(x)) == x


def test_names_of_bins() -> None:
    assert bin_names("age", np.array([30.0, 35.5])) == ["age ≤ 30", "age in (30, 35.5]", "age > 35.5"]


texts = st.text(st.sampled_from("abAB01_ .,-'éÉ中文かな—“”×\U00020001\n"), max_size=40)


@given(st.lists(texts, max_size=30), st.integers(1, 4), st.integers(0, 3))
@example(["the cat the cat", "", "naïve — café"], 3, 2)
@settings(deadline=None)
def test_words_and_grams(rows: list[str], ngrams: int, skips: int) -> None:
    data, offsets = string_buffers(pa.array([row.lower() for row in rows], pa.string()))
    indptr, ids, values = _native.text_rows(data, offsets, 5, ngrams, skips)
    for row, (a, b) in enumerate(zip(indptr, indptr[1:], strict=False)):
        wanted = twin.text_row(rows[row].lower(), 5, ngrams, skips)
        assert dict(zip(ids[a:b].tolist(), values[a:b].tolist(), strict=True)) == pytest.approx(wanted, rel=1e-6)
        assert (np.diff(ids[a:b].astype(object)) > 0).all()


def test_more_grams_than_expected() -> None:
    text = " ".join("abcdefghij"[i * i % 10] for i in range(1000))
    data, offsets = string_buffers(pa.array(["x", text, "y"]))
    indptr, ids, values = _native.text_rows(data, offsets, 5, 3, 0)
    found = dict(zip(ids[indptr[1] : indptr[2]].tolist(), values[indptr[1] : indptr[2]].tolist(), strict=True))
    words = text.split()
    grams = Counter(tuple(words[i : i + n]) for n in (1, 2, 3) for i in range(len(words) - n + 1))
    length = math.sqrt(sum(math.log1p(count) ** 2 for count in grams.values()))
    wanted = {twin.gram_id(gram, 5): math.log1p(count) / length for gram, count in grams.items()}
    assert found == pytest.approx(wanted, rel=1e-6)
    assert indptr.tolist()[0] == 0 and indptr[1] == 1 and indptr[3] - indptr[2] == 1


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_words_of_any_bytes(rows: list[bytes]) -> None:
    data, offsets = string_buffers(pa.array(rows, pa.large_binary()))
    bounds, starts, ends, _ = _native.words(data, offsets, 0)
    assert (starts < ends).all()
    for row, (a, b) in enumerate(zip(bounds, bounds[1:], strict=False)):
        assert ((starts[a:b] >= offsets[row]) & (ends[a:b] <= offsets[row + 1])).all()


@pytest.mark.parametrize("offsets", [[0, 9], [3, 1], [-1, 2]])
def test_offsets_outside_the_data_are_refused(offsets: list[int]) -> None:
    data = np.frombuffer(b"abc def", np.uint8)
    for call in (lambda o: _native.words(data, o, 0), lambda o: _native.text_rows(data, o, 0)):
        with pytest.raises(ValueError, match="stay inside"):
            call(np.array(offsets, np.int64))


def test_damaged_dictionary_codes_are_refused() -> None:
    column = np.zeros(1, _native.COLUMN)
    codes = pa.array([0, 1, 5], pa.int8())
    fill_numbers(column[0], codes)
    ids = np.array([11, 12], np.uint64)
    column["kind"], column["ids"], column["n_ids"] = _native.CODES, ids.ctypes.data, 2
    with pytest.raises(_native.BadCellError, match="row 2 of column 0"):
        _native.encode_columns(column, 3)
