"""Encoding of tables."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pomona.chunk import Chunk
from pomona.encode import EncodedSource, TableEncoder
from pomona.errors import DataFormatError
from pomona.learner import State
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.csv import open_csv
from pomona.source.table import open_frame


def rows_of(chunk: Chunk) -> list[dict[str, float]]:
    """Each row as names with values."""
    assert chunk.names is not None
    names = chunk.names(np.arange(len(chunk.indices)))
    return [
        {names[i]: round(float(chunk.values[i]), 6) for i in range(chunk.indptr[r], chunk.indptr[r + 1])}
        for r in range(len(chunk))
    ]


def encoded(columns: dict[str, list[object]], numeric: str = "raw", **read: object) -> list[dict[str, float]]:
    table = open_frame(pa.table(columns))
    encoder = TableEncoder.fit(table, ReadOptions(**read), EncodeOptions(numeric=numeric))
    return [row for chunk in EncodedSource(table, encoder).chunks() for row in rows_of(chunk)]


def test_every_kind_of_column_has_names_and_values() -> None:
    rows = encoded(
        {
            "age": [20.0, 40.0, None],
            "job": ["clerk", None, "cook"],
            "member": [True, False, None],
            "zip": [94110, 10001, 94110],
            "same": [1, 1, 1],
        },
        categorical=["zip"],
    )
    assert rows == [
        {"age": 20.0, "job=clerk": 1.0, "member": 1.0, "zip=94110": 1.0},
        {"age": 40.0, "job is missing": 1.0, "zip=10001": 1.0},
        {"age is missing": 1.0, "job=cook": 1.0, "member is missing": 1.0, "zip=94110": 1.0},
    ]


@pytest.mark.parametrize(
    ("numeric", "expected"),
    [
        ("hat", [{"x≈1": 1.0}, {"x≈2": 1.0}, {"x≈4": 1.0}]),
        ("onehot", [{"x ≤ 1.5": 1.0}, {"x in (1.5, 3]": 1.0}, {"x > 3": 1.0}]),
        ("hat+raw", [{"x≈1": 1.0, "x": 1.0}, {"x≈2": 1.0, "x": 2.0}, {"x≈4": 1.0, "x": 4.0}]),
    ],
)
def test_numbers_by_encoding(numeric: str, expected: list[dict[str, float]]) -> None:
    assert encoded({"x": [1.0, 2.0, 4.0]}, numeric) == expected


def test_numbers_and_their_neighbours() -> None:
    rows = encoded({"x": [0.0, 10.0, 20.0, 5.0, None, float("nan")]}, "hat")
    assert rows[3] == {"x≈5": 1.0} and rows[4] == rows[5] == {"x is missing": 1.0}
    table = open_frame(pa.table({"x": [0.0, 10.0, 20.0]}))
    encoder = TableEncoder.fit(table, ReadOptions(), EncodeOptions(numeric="hat"))
    later = encoder.encode(pa.record_batch({"x": [2.5, -9.0, 1e300, float("inf")]}))
    assert rows_of(later) == [{"x≈0": 0.75, "x≈10": 0.25}, {"x≈0": 1.0}, {"x≈20": 1.0}, {"x≈20": 1.0}]


def test_two_values_are_one_indicator() -> None:
    assert encoded({"x": [3, 7, 3]}, "hat") == [{}, {"x=7": 1.0}, {}]
    assert encoded({"x": [0, 1, 0]}, "onehot") == [{}, {"x": 1.0}, {}]


def test_standard_has_mean_zero_and_deviation_one() -> None:
    rows = encoded({"x": [1.0, 2.0, 3.0, None]}, "standard")
    values = [row["x"] for row in rows[:3] if "x" in row]
    assert values == pytest.approx([-(1.5**0.5), 1.5**0.5], abs=1e-5) and rows[3] == {"x is missing": 1.0}


def test_dates_become_numbers() -> None:
    when = [dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 3, 5, 18), None]
    rows = encoded({"t": when}, "hat")
    assert rows == [
        {},
        {"t.day=19787.75": 1.0, "t.month=3": 1.0, "t.weekday": 1.0, "t.hour=18": 1.0},
        {"t is missing": 1.0},
    ]
    assert encoded({"t": [day.date() for day in when[:2]]}, "hat")[1] == {
        "t.day=19787": 1.0,
        "t.month=3": 1.0,
        "t.weekday": 1.0,
    }


def test_text_columns_are_words_scaled_to_length_one() -> None:
    rows = encoded({"t": ["The cat, the dog!", "", None, "Ünï"], "n": [1, 2, 3, 4]}, text=["t"], ignore=["n"])
    two, one = np.log1p(2), np.log1p(1)
    length = np.sqrt(two**2 + 2 * one**2)
    assert rows[0] == {
        "t:the": pytest.approx(two / length, abs=1e-6),
        "t:cat": pytest.approx(one / length, abs=1e-6),
        "t:dog": pytest.approx(one / length, abs=1e-6),
    }
    assert rows[1:] == [{}, {}, {"t:ünï": 1.0}]


def test_grams_have_names() -> None:
    rows = encoded({"t": ["a b c", "x"]}, text=["t"], ngrams=2, skips=1)
    assert set(rows[0]) == {"t:a", "t:b", "t:c", "t:a b", "t:b c", "t:a c"}


def test_prose_is_found() -> None:
    prose = [f"this is sentence number {i} of a long and quite boring story" for i in range(50)]
    table = open_frame(pa.table({"t": prose, "c": ["u", "v"] * 25}))
    assert [column.kind for column in TableEncoder.fit(table).columns] == ["text", "category"]
    assert TableEncoder.fit(table, ReadOptions(categorical=["t"])).columns[0].kind == "category"


def random_table(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    holes = rng.random(n) < 0.1
    return pa.table(
        {
            "n": pa.array(np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)), mask=holes),
            "i": rng.integers(0, 50, n).astype(np.int16),
            "c": pa.array([f"level {i}" for i in rng.integers(0, 20, n)], mask=holes),
            "d": pa.array([f"d{i}" for i in rng.integers(0, 5, n)]).dictionary_encode(),
            "b": rng.random(n) < 0.5,
            "t": [" ".join(f"w{i}" for i in rng.integers(0, 30, 8)) for _ in range(n)],
            "when": pa.array(rng.integers(0, 10**9, n), pa.timestamp("s")),
            "y": rng.integers(0, 3, n),
            "w": rng.random(n),
        }
    )


READ = ReadOptions(target="y", weight="w", text=["t"], ngrams=2)


@pytest.mark.parametrize("numeric", ["raw", "standard", "hat", "onehot", "hat+raw", "onehot+standard"])
def test_the_size_of_batches_does_not_matter(numeric: str) -> None:
    table = random_table(1000)
    options = EncodeOptions(numeric=numeric, sample_rows=700)
    found = []
    for size in (1, 7, 256, 1000):
        source = open_frame(iter(table.to_batches(max_chunksize=size)))
        encoder = TableEncoder.fit(source, READ, options)
        chunks = list(EncodedSource(source, encoder).chunks())
        found.append([np.concatenate([getattr(c, a) for c in chunks]) for a in ("indices", "values", "fields")])
        found[-1] += [np.concatenate([getattr(c, a) for c in chunks]) for a in ("labels", "weights")]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_only_the_sample_is_looked_at() -> None:
    table = random_table(1000)
    options = EncodeOptions(numeric="hat+onehot+standard", sample_rows=333)
    whole = TableEncoder.fit(open_frame(table), READ, options)
    part = TableEncoder.fit(open_frame(table[:333]), READ, options)
    assert whole.state().header == part.state().header
    np.testing.assert_array_equal(whole.state().arrays["points"], part.state().arrays["points"])
    less = TableEncoder.fit(open_frame(table[:332]), READ, options)
    assert less.state().arrays["points"].tolist() != part.state().arrays["points"].tolist()


@pytest.mark.parametrize("numeric", ["raw", "standard", "hat", "onehot", "hat+raw"])
def test_a_saved_encoder_encodes_the_same(numeric: str) -> None:
    table = open_frame(random_table(300))
    encoder = TableEncoder.fit(table, READ, EncodeOptions(numeric=numeric))
    saved = encoder.state()
    again = TableEncoder.from_state(State(json.loads(json.dumps(saved.header)), dict(saved.arrays)))
    (batch,) = table.batches()
    a, b = encoder.encode(batch), again.encode(batch)
    for name in ("indptr", "indices", "values", "fields", "labels", "weights"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert rows_of(a) == rows_of(b) and again.fields == encoder.fields and again.types() == encoder.types()


def test_no_row_holds_an_id_twice() -> None:
    table = open_frame(random_table(300))
    encoder = TableEncoder.fit(table, READ, EncodeOptions(numeric="hat+onehot+raw"))
    for chunk in EncodedSource(table, encoder).chunks():
        for row in range(len(chunk)):
            ids = chunk.indices[chunk.indptr[row] : chunk.indptr[row + 1]].tolist()
            assert len(set(ids)) == len(ids)


def fitted(columns: dict[str, list[object]], **read: object) -> TableEncoder:
    return TableEncoder.fit(open_frame(pa.table(columns)), ReadOptions(**read), EncodeOptions(numeric="raw"))


def test_prediction_needs_no_target_and_takes_new_levels_and_columns() -> None:
    encoder = fitted({"c": ["u", "v"], "x": [1.0, 2.0], "y": [0, 1], "w": [1.0, 1.0]}, target="y", weight="w")
    chunk = encoder.encode(pa.record_batch({"new": [1], "x": [5], "c": ["never met"]}))
    assert chunk.labels is None and chunk.weights is None
    assert rows_of(chunk) == [{"c=never met": 1.0, "x": 5.0}]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"c": ["u"]}, "f.csv: there is no column 'x' for the model, which was trained with it: its columns are c"),
        (
            {"c": ["u"], "x": ["word"]},
            "f.csv: column 'x' held numbers in training, but is string here: give the column the type it had",
        ),
        (
            {"c": ["u"], "x": [[1]]},
            "f.csv: column 'x' held numbers in training, but is list<item: int64> here:"
            " give the column the type it had",
        ),
    ],
)
def test_prediction_refuses_other_columns(batch: dict[str, list[object]], message: str) -> None:
    encoder = fitted({"c": ["u", "v"], "x": [1.0, 2.0]})
    with pytest.raises(DataFormatError) as caught:
        encoder.encode(pa.record_batch(batch), file="f.csv")
    assert str(caught.value) == message


def test_levels_are_the_same_whatever_the_type() -> None:
    encoder = fitted({"c": ["1", "2", "x"]})
    expected = rows_of(encoder.encode(pa.record_batch({"c": ["1", None, "2"]})))
    for array in (
        pa.array(["1", None, "2"], pa.large_string()),
        pa.array(["1", None, "2"], pa.string_view()),
        pa.array(["1", "", "2"]).dictionary_encode(),
        pa.array(["1", None, "2"]).dictionary_encode(),
        pa.array([b"1", None, b"2"]),
        pa.array([1, None, 2]),
        pa.array([1.0, None, 2.0]),
        pa.array([1.0, float("nan"), 2.0]),
        pa.array([1, None, 2]).dictionary_encode(),
    ):
        assert rows_of(encoder.encode(pa.record_batch({"c": array}))) == expected
    assert expected == [{"c=1": 1.0}, {"c is missing": 1.0}, {"c=2": 1.0}]


def test_csv_is_read_with_the_types_of_training(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("c,x\n1,3\n2,4\n")
    encoder = fitted({"c": ["1", "2", "x"], "x": [1.0, 2.0, 3.0]})
    (chunk,) = EncodedSource(open_csv([str(path)], ReadOptions()), encoder).chunks()
    assert rows_of(chunk) == [{"c=1": 1.0, "x": 3.0}, {"c=2": 1.0, "x": 4.0}]


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([1, 2]), "i", [1, 2]),
        (pa.array([1.0, 2.0]), "i", [1, 2]),
        (pa.array([1.5, 2.0]), "f", [1.5, 2.0]),
        (pa.array([True, False]), "b", [True, False]),
        (pa.array(["u", "é"]), "U", ["u", "é"]),
        (pa.array(["u", "é"]).dictionary_encode(), "U", ["u", "é"]),
        (pa.array([3, 4]).dictionary_encode(), "i", [3, 4]),
    ],
)
def test_labels(array: pa.Array, kind: str, expected: list[object]) -> None:
    table = open_frame(pa.table({"x": [1, 2], "y": array}))
    (chunk,) = EncodedSource(table, TableEncoder.fit(table, ReadOptions(target="y"))).chunks()
    assert chunk.labels is not None and chunk.labels.dtype.kind == kind and chunk.labels.tolist() == expected


def test_missing_labels_do_not_matter_for_prediction() -> None:
    table = open_frame(pa.table({"x": [1, 2], "y": ["u", None]}))
    encoder = TableEncoder.fit(table, ReadOptions(target="y"))
    (chunk,) = EncodedSource(table, encoder, need_labels=False).chunks()
    assert chunk.labels is None and len(chunk) == 2


def test_targets_and_weights_may_be_given_apart() -> None:
    table = open_frame(pa.table({"x": range(20_000)}))
    y, w = np.arange(20_000), np.arange(20_000.0)
    chunks = list(EncodedSource(table, TableEncoder.fit(table), y=y, weights=w).chunks())
    assert len(chunks) > 1
    np.testing.assert_array_equal(np.concatenate([c.labels for c in chunks]), y)  # type: ignore[misc]
    np.testing.assert_array_equal(np.concatenate([c.weights for c in chunks]), w)  # type: ignore[misc]


def test_threads_stop_with_their_reader_and_pass_errors_on() -> None:
    before, made = threading.active_count(), []

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(100):
            made.append(i)
            yield pa.record_batch({"x": [0.0, 1.0, 2.0], "w": [1.0, 1.0, -1.0 if i == 50 else 1.0]})

    def opened() -> EncodedSource:
        made.clear()
        table = open_frame(batches())
        read = ReadOptions(weight="w")
        return EncodedSource(table, TableEncoder.fit(table, read, EncodeOptions(sample_rows=3)))

    chunks = opened().chunks()
    assert len(next(chunks)) == 3
    chunks.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before and len(made) < 50
    found = []
    with pytest.raises(DataFormatError, match=":153: a weight must be finite and not negative, but 'w' is -1.0 here"):
        found.extend(opened().chunks())
    assert threading.active_count() == before
    found.clear()
    with pytest.raises(DataFormatError):
        for chunk in opened().chunks():
            found.append(chunk)
    assert [chunk.first_line for chunk in found] == list(range(1, 151, 3))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([decimal.Decimal("1.5"), decimal.Decimal("-2.25"), decimal.Decimal("9")]),
        pa.array([1.5, -2.25, 9.0], pa.float16()),
        pa.array([1500, -2250, 9000], pa.duration("ms")),
        pa.array([15, 22, 90], pa.time32("s")),
        pa.array([15, 22, 90], pa.time64("us")),
        pa.array([1.5, -2.25, 9.0]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_other_types_of_numbers(array: pa.Array) -> None:
    rows = encoded({"x": array}, "standard")  # type: ignore[dict-item]
    values = [row["x"] for row in rows]
    assert np.mean(values) == pytest.approx(0, abs=1e-5) and np.std(values) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
def test_times_of_any_unit_and_zone(unit: str, tz: str | None) -> None:
    seconds = pa.array([0, 86_400 * 40 + 3600 * 5, None, 86_400 * 100], pa.timestamp("s"))
    expected = encoded({"t": seconds}, "hat")  # type: ignore[dict-item]
    assert encoded({"t": seconds.cast(pa.timestamp(unit, tz))}, "hat") == expected  # type: ignore[dict-item]


def test_date64_is_a_date() -> None:
    days = pa.array([0, 40, 100], pa.date32())
    assert encoded({"t": days.cast(pa.date64())}, "hat") == encoded({"t": days}, "hat")  # type: ignore[dict-item]


def test_columns_that_never_change_are_dropped() -> None:
    table = open_frame(pa.table({"a": [1, 1], "b": ["u", "u"], "c": [None, None], "d": [True, True], "e": [1, 2]}))
    encoder = TableEncoder.fit(table)
    assert encoder.dropped == ["a", "b", "c", "d"] and encoder.fields == ["e"]
    assert encoded({"a": [5, None, 5]}) == [{}, {"a is missing": 1.0}, {}]


def test_a_table_without_features_gives_empty_rows() -> None:
    assert encoded({"a": [1, 1], "y": [0, 1]}, target="y") == [{}, {}]


def test_a_new_dictionary_in_every_batch() -> None:
    first = pa.record_batch({"c": pa.array(["u", "v"]).dictionary_encode()})
    second = pa.record_batch({"c": pa.array(["v", "w"]).dictionary_encode()})
    table = open_frame(iter([first, second]))
    encoder = TableEncoder.fit(table)
    rows = [row for chunk in EncodedSource(table, encoder).chunks() for row in rows_of(chunk)]
    assert rows == [{"c=u": 1.0}, {"c=v": 1.0}, {"c=v": 1.0}, {"c=w": 1.0}]


def test_first_labels_are_those_of_the_chunks_without_encoding() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "c"]})
    read = ReadOptions(target="y")
    encoder = TableEncoder.fit(open_frame(table), read, EncodeOptions())
    source = EncodedSource(open_frame(table), encoder)
    found = source.first_labels(3)
    assert found is not None and found.tolist() == ["a", "b", "a"]
    assert [label for chunk in source.chunks() for label in chunk.labels] == ["a", "b", "a", "c"]
    missing = pa.table({"x": [1.0, 2.0], "y": ["a", None]})
    assert EncodedSource(open_frame(missing), encoder).first_labels(3) is None
    given = EncodedSource(open_frame(table), encoder, y=np.array([5, 6, 7, 8]))
    first = given.first_labels(2)
    assert first is not None and first.tolist() == [5, 6]
