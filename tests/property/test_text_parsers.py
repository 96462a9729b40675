"""The native parsers of text and their slow twins agree, on good lines and on any bytes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pomona import _native
from pomona.options import ReadOptions
from pomona.source.svmlight import SvmlightParser
from pomona.source.vw import VwParser
from tests.reference.hashing import hash_bytes, mix
from tests.reference.parse_svmlight import parse_svmlight
from tests.reference.parse_vw import parse_vw
from tests.reference.text import MalformedError, Row

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=3).map(str),
    st.integers(-(10**12), 10**12).map(str),
    st.from_regex(r"[-+]?[0-9]{1,25}\.[0-9]{0,25}([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from("0 -0 1 .5 5. 1e5 1E-5 +3 1e39 -1e39 1e-50 1e999 1e-999 nan inf -Inf 1e 1e+ . - +-1 0x10".split()),
    st.sampled_from(["16777217", "0.1000000014901161193847656250000001", "3.4028235e38", "3.4028236e38"]),
).map(str.encode)
names = st.one_of(
    st.text("abcxyz019_^", min_size=1, max_size=4).map(str.encode),
    st.text(min_size=1, max_size=20).map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.binary(min_size=1, max_size=40),
)
blanks = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b"\r", b" \t "])


@st.composite
def vw_lines(draw: st.DrawFn) -> bytes:
    line = draw(blanks) if draw(st.integers(0, 9)) == 0 else b""
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3, 4]))):
        line += draw(numbers) + draw(blanks)
    line += draw(st.sampled_from([b"", b"", b"'tag", b"'tag ", b"tag", b"' "]))
    for _ in range(draw(st.integers(0, 3))):
        line += b"|" + draw(st.one_of(st.just(b""), st.sampled_from([b"a", b"b"]), names))
        line += b":" + draw(numbers) if draw(st.integers(0, 4)) == 0 else b""
        for _ in range(draw(st.integers(0, 6))):
            line += draw(blanks) + draw(names)
            line += b":" + draw(numbers) if draw(st.booleans()) else b""
        line += draw(st.sampled_from([b"", b" "]))
    return line


@st.composite
def svmlight_lines(draw: st.DrawFn) -> bytes:
    line = b",".join(draw(st.lists(numbers, max_size=3, min_size=1))) if draw(st.integers(0, 5)) else b""
    if draw(st.integers(0, 5)) == 0:
        line += draw(blanks) + b"qid:" + draw(st.sampled_from([b"1", b"12345678901", b"-1", b"", b"x"]))
    for _ in range(draw(st.integers(0, 6))):
        index = draw(st.one_of(st.integers(0, 9), st.integers(0, 2**64 + 5)))
        line += draw(blanks) + b"%d:" % index + draw(numbers)
    return line + draw(st.sampled_from([b"", b"", b" ", b" # comment", b"#", b" x", b" -1:2"]))


def texts(lines: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    several = st.lists(lines, max_size=6).map(lambda parts: b"\n".join([*parts, b""]) or b"\n")
    # The fast ways to read numbers and names end some bytes before the text does: try both sides.
    padded = st.tuples(several, st.sampled_from([b"", b"\n" * 100])).map(b"".join)
    return st.one_of(padded, st.binary(max_size=200).map(lambda b: b + b"\n"))


def check(rows: _native.TextRows, expected: list[Row], bad: list[MalformedError]) -> None:
    assert len(rows.labels) == len(expected)
    np.testing.assert_array_equal(rows.labels, [row.label for row in expected])
    for i, row in enumerate(expected):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        assert rows.ids[part].tolist() == [feature[0] for feature in row.features]
        assert rows.values[part].tobytes() == np.array([f[1] for f in row.features], np.float32).tobytes()
    assert rows.n_bad == len(bad)
    if bad:
        check_error(rows.error, bad[0])


def check_error(found: _native.TextError | None, expected: MalformedError) -> None:
    assert found is not None
    assert (found.line, found.column, found.message) == (expected.line, expected.column, expected.message)


@pytest.mark.parametrize("width", [3, 40, 150, 600, 3000])
@pytest.mark.parametrize("repeated", [0, 1, 3, 5])
def test_repeated_features_are_found_in_rows_of_any_length(width: int, repeated: int) -> None:
    rng = np.random.default_rng(width + repeated)
    lines = []
    for _ in range(20):
        words = rng.choice(10**6, width, replace=False)
        words = np.concatenate([words, rng.choice(words, repeated)])
        rng.shuffle(words)
        lines.append("1 |a " + " ".join(f"w{word}:{rng.integers(1, 9)}" for word in words))
    text = ("\n".join(lines) + "\n").encode()
    found = VwParser(ReadOptions()).parse(np.frombuffer(text, np.uint8))
    rows, _, _ = parse_vw(text)
    assert isinstance(found, _native.TextRows)
    check(found, rows, [])
    assert len(found.ids) == 20 * width


@settings(max_examples=400, deadline=None)
@given(texts(vw_lines()), st.booleans(), st.integers(1, 3), st.integers(0, 2), st.booleans())
@example(b"1 2 3 4 |a\n", False, 1, 0, False)
@example(b"|a x:1:2\n", False, 1, 0, False)
@example(b"|a :1\n", False, 1, 0, False)
@example(b"1| a b\n", False, 1, 0, False)
@example(b"|a:1e-30 b:1 c:1e-20 d:3 e |a:0 b c\n", False, 3, 1, False)
@example(b"|a x\n|b:1e30 x y z\n", True, 3, 0, False)
def test_vw_agrees_with_twin(text: bytes, skip: bool, ngrams: int, skips: int, some: bool) -> None:
    chosen = ("a", "") if some else ()
    options = ReadOptions(on_error="skip" if skip else "stop", ngrams=ngrams, skips=skips, ngram_namespaces=chosen)
    parser = VwParser(options)
    found = parser.parse(np.frombuffer(text, np.uint8))
    try:
        rows, spaces, bad = parse_vw(
            text,
            skip_bad=skip,
            ngrams=ngrams,
            skips=skips,
            gram_namespaces=tuple(name.encode() for name in chosen),
        )
    except MalformedError as error:
        assert isinstance(found, _native.TextError)
        check_error(found, error)
        return
    assert isinstance(found, _native.TextRows)
    check(found, rows, bad)
    if not rows:
        return
    chunk = parser.chunk(np.frombuffer(text, np.uint8), found, "file", 1)
    assert parser.fields == [name.decode("utf-8", "backslashreplace") for name in spaces]
    assert (chunk.tags or [""] * len(rows)) == [row.span.decode("utf-8", "backslashreplace") for row in rows]
    weights = np.ones(len(rows)) if chunk.weights is None else chunk.weights
    offsets = np.zeros(len(rows)) if chunk.offsets is None else chunk.offsets
    np.testing.assert_array_equal(weights, [row.weight for row in rows])
    np.testing.assert_array_equal(offsets, [row.base for row in rows])
    fields = np.zeros(chunk.nnz, np.uint16) if chunk.fields is None else chunk.fields
    assert fields.tolist() == [feature[2] for row in rows for feature in row.features]
    assert chunk.names is not None
    names = [feature[3] for row in rows for feature in row.features]
    assert list(chunk.names(np.arange(chunk.nnz))) == names


@settings(max_examples=400, deadline=None)
@given(texts(svmlight_lines()), st.booleans())
@example(b"1,2:3 4:5\n", False)
@example(b"qid:3 1:2 qid:4\n", False)
@example(b" 1:2\n1:2\n#\n", False)
def test_svmlight_agrees_with_twin(text: bytes, skip: bool) -> None:
    parser = SvmlightParser(ReadOptions(on_error="skip" if skip else "stop"), multilabel=True)
    found = parser.parse(np.frombuffer(text, np.uint8))
    try:
        rows, bad = parse_svmlight(text, skip_bad=skip)
    except MalformedError as error:
        assert isinstance(found, _native.TextError)
        check_error(found, error)
        return
    assert isinstance(found, _native.TextRows)
    check(found, rows, bad)
    if not rows:
        return
    chunk = parser.chunk(np.frombuffer(text, np.uint8), found, "file", 1)
    assert chunk.names is not None
    names = [feature[3] for row in rows for feature in row.features]
    assert list(chunk.names(np.arange(chunk.nnz))) == names
    assert chunk.labels is not None
    for label, row in zip(chunk.labels.tolist(), rows, strict=True):
        assert sorted(label.split(",")) == sorted(row.span.decode().split(","))


@given(st.binary(max_size=60), st.integers(0, 2**64 - 1))
def test_hash_agrees_with_twin(name: bytes, seed: int) -> None:
    assert _native.hash_name(name, seed) == hash_bytes(name, seed)


@given(st.integers(0, 2**64 - 1))
def test_mix_agrees_with_twin(column: int) -> None:
    ids = _native.mix(np.array([column], np.uint64))
    assert ids[0] == mix(column)
    assert _native.unmix(ids)[0] == column


def test_hash_spreads() -> None:
    """A flipped bit of a short name flips half the bits of the id, and a million names do not collide."""
    rng = np.random.default_rng(0)
    flips = np.zeros(64)
    trials = 2000
    for _ in range(trials):
        name = bytearray(rng.bytes(int(rng.integers(1, 24))))
        before = _native.hash_name(bytes(name))
        name[rng.integers(len(name))] ^= 1 << int(rng.integers(8))
        change = before ^ _native.hash_name(bytes(name))
        flips += [change >> bit & 1 for bit in range(64)]
    assert abs(flips / trials - 0.5).max() < 0.06
    ids = {_native.hash_name(b"f%d" % i) & 0xFFFFFFFFFF for i in range(100_000)}
    assert len(ids) >= 100_000 - 1


@pytest.mark.parametrize(
    "text", ["0.1", "123456.789", "1e-7", "0.12345678901234567", "1234567.1234567", "16777217", "8388608.5"]
)
def test_numbers_are_exact(text: str) -> None:
    """Each value is the nearest double, rounded to the nearest float, wherever in the text it stands."""
    for after in (b"", b"\n" * 80):
        line = b"%b |a x:%b\n" % (text.encode(), text.encode()) + after
        rows = _native.parse_text(np.frombuffer(line, np.uint8), "vw")
        assert isinstance(rows, _native.TextRows)
        assert rows.labels[0] == float(text)
        assert rows.values[0] == np.float32(float(text))


def test_numbers_between_two_floats_are_rounded_right() -> None:
    """Midpoints of neighbouring floats, and the doubles beside them: where a shortcut would show."""
    rng = np.random.default_rng(0)
    low = np.exp(rng.uniform(-6, 12, 2000)).astype(np.float32)
    middle = (low.astype(np.float64) + np.nextafter(low, np.float32(np.inf)).astype(np.float64)) / 2
    doubles = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
    text = b"|a " + b" ".join(b"x%d:%s" % (i, repr(x).encode()) for i, x in enumerate(doubles.tolist())) + b"\n"
    rows = _native.parse_text(np.frombuffer(text, np.uint8), "vw")
    assert isinstance(rows, _native.TextRows)
    np.testing.assert_array_equal(rows.values, doubles.astype(np.float32))


@pytest.mark.parametrize(
    ("form", "empty", "row"),
    [("vw", b"1 |%b\n", b"1 |b 1:2 2:3\n"), ("svmlight", b"#%b\n", b"1 1:2 2:3\n")],
)
def test_a_long_text_may_hold_most_features_at_one_place(
    form: Literal["vw", "svmlight"], empty: bytes, row: bytes
) -> None:
    """How much a long text holds is guessed from pieces of it; here they see next to nothing."""
    n = 70_000 // len(row)
    text = empty % (b"a" * 110_000) + n * row + empty % (b"a" * 1_320_000)
    rows = _native.parse_text(np.frombuffer(text, np.uint8), form)
    assert isinstance(rows, _native.TextRows)
    assert rows.n_lines == n + 2 and len(rows.ids) == 2 * n
    assert np.all(rows.values.reshape(n, 2) == [2, 3])


@pytest.mark.parametrize("number", ["0", "7", "-3", "+4", "-0", "12", "-", "+", "x", ".", "5.", ".5"])
def test_numbers_of_a_character_or_two(number: str) -> None:
    """Labels and counts have a way of their own."""
    parsed = _native.parse_text(np.frombuffer(f"{number} |a x:{number} y:1.5\n".encode(), np.uint8), "vw")
    try:
        expected = float(number)
    except ValueError:
        assert isinstance(parsed, _native.TextError)
        return
    assert isinstance(parsed, _native.TextRows)
    assert parsed.labels[0] == expected
    np.testing.assert_array_equal(parsed.values, [expected, 1.5] if expected else [1.5])


@pytest.mark.parametrize("form", ["vw", "svmlight"])
def test_short_decimals_are_read_as_the_nearest_float(form: Literal["vw", "svmlight"]) -> None:
    rng = np.random.default_rng(0)
    texts = [f"{m / 10**k:.{k}f}" for k in range(1, 7) for m in rng.integers(1, 10 ** (k + 1), 20_000).tolist()]
    texts = [sign + text for text in texts for sign in ("", "-")]
    line = "1 |" if form == "vw" else "1"
    line += "".join(f" {i}:{text}" for i, text in enumerate(texts)) + "\n"
    rows = _native.parse_text(np.frombuffer(line.encode(), np.uint8), form)
    assert isinstance(rows, _native.TextRows)
    # In two steps, as Python rounds to double first: it is never near enough to a middle to matter here.
    assert np.array_equal(rows.values, np.array(texts, np.float64).astype(np.float32))
