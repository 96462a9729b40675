"""The laws of learning from a stream."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pomona.chunk import Chunk
from pomona.errors import ModelFileError, NumericError, OptionError
from pomona.online.learner import OnlineLearner
from pomona.online.parameters import OnlineParameters
from pomona.online.terms import Terms, factors
from tests.online.streams import FIELDS, as_chunk, random_labels, random_rows

VARIANTS = {
    "exact": {},
    "hashed": {"bits": 12},
    "quadratic": {"interactions": ("quadratic",)},
    "cubic within bits": {"interactions": ("cubic",), "bits": 16},
    "products outgrow bits": {"interactions": ("quadratic",), "bits": 12},
    "fields": {"interactions": ("a*b", "c*c")},
    "products outgrow memory": {"interactions": ("quadratic",), "memory": 1 << 20},
    "features outgrow memory": {"memory": 1 << 20, "l1": 1e-4},
    "softmax": {"loss": "softmax", "n_outputs": 2},
    "ftrl": {"ftrl": True, "adaptive": False, "normalized": False, "invariant": False, "l1": 0.1},
    "regularised": {"l1": 1e-3, "l2": 1e-3},
}


def make(variant: str) -> OnlineLearner:
    return OnlineLearner(OnlineParameters(**VARIANTS[variant]), FIELDS)


def stream(variant: str, n: int = 400) -> tuple[Chunk, np.ndarray]:
    wide = "outgrow" in variant
    rows = random_rows(n, 30_000 if wide else 12, 0.002 if wide else 0.4, seed=7)
    labels = random_labels(rows, "class" if variant == "softmax" else "sign", seed=8)
    return as_chunk(rows, ids=True), labels


def weights(learner: OnlineLearner) -> list[np.ndarray]:
    return [*learner.tables.slots, *learner.tables.touched, learner.tables.intercept]


def same(a: OnlineLearner, b: OnlineLearner) -> bool:
    pairs = zip(weights(a), weights(b), strict=True)
    # The kernel adds up the losses of a call first, so the last bits of their sums depend on the calls.
    losses = np.allclose(a.loss_sums, b.loss_sums, rtol=1e-13, atol=0)
    return losses and all(x.shape == y.shape and (x == y).all() for x, y in pairs)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_size_of_chunks_does_not_matter(variant: str) -> None:
    chunk, labels = stream(variant)
    whole, parts = make(variant), make(variant)
    whole.learn(chunk, labels)
    start = 0
    for size in [1, 2, 0, 50, 7, 340]:
        parts.learn(chunk.slice(start, start + size), labels[start : start + size])
        start += size
    assert start == len(chunk)
    assert whole.tables.hashed == parts.tables.hashed
    assert same(whole, parts)


# Where a table has become a hashed one, a feature never met before collides when it is learnt, but not before.
@pytest.mark.parametrize("variant", [v for v in VARIANTS if "outgrow" not in v])
def test_predicting_changes_nothing_and_equals_the_prediction_before_learning(variant: str) -> None:
    chunk, labels = stream(variant, 60)
    learner, untouched = make(variant), make(variant)
    for i in range(len(chunk)):
        example, label = chunk.slice(i, i + 1), labels[i : i + 1]
        before = learner.predict(example)
        np.testing.assert_array_equal(before, learner.predict(example))
        progressive = learner.learn(example, label)
        if before.ndim > 1:
            progressive = progressive[:, : before.shape[1]]  # a class that is new has no prediction before
        # Features never met before are summed as zeros when learning, and left out when predicting.
        np.testing.assert_allclose(before, progressive, rtol=1e-5, atol=1e-6)
        untouched.learn(example, label)
    assert same(learner, untouched)


@pytest.mark.parametrize("variant", VARIANTS)
def test_stopping_and_going_on_equals_never_stopping(variant: str) -> None:
    chunk, labels = stream(variant)
    straight, stopped = make(variant), make(variant)
    straight.learn(chunk, labels)
    stopped.learn(chunk.slice(0, 150), labels[:150])
    resumed = OnlineLearner.from_state(stopped.state())
    np.testing.assert_array_equal(resumed.predict(chunk), stopped.predict(chunk))
    resumed.learn(chunk.slice(150, 400), labels[150:])
    assert same(straight, resumed)
    assert list(resumed.names.names) == list(straight.names.names)


@pytest.mark.parametrize("variant", VARIANTS)
def test_input_is_left_alone(variant: str) -> None:
    chunk, labels = stream(variant, 50)
    copies = [a.copy() for a in (chunk.indptr, chunk.indices, chunk.values, labels)]
    learner = make(variant)
    learner.learn(chunk, labels, np.arange(len(chunk))[::-1].copy())
    learner.predict(chunk)
    for copy, original in zip(copies, (chunk.indptr, chunk.indices, chunk.values, labels), strict=True):
        np.testing.assert_array_equal(copy, original)


@pytest.mark.parametrize("variant", VARIANTS)
def test_predicting_before_learning_gives_nothing_away(variant: str) -> None:
    chunk, _ = stream(variant, 5)
    assert not make(variant).predict(chunk).any()


def test_an_order_is_followed() -> None:
    chunk, labels = stream("quadratic", 80)
    order = np.random.default_rng(0).permutation(80)[:50]
    ordered, by_hand = make("quadratic"), make("quadratic")
    by_hand.prepare(chunk)  # features are numbered as they come, not as they are learnt
    ordered.learn(chunk, labels, order)
    for e in order.tolist():
        by_hand.learn(chunk.slice(e, e + 1), labels[e : e + 1])
    assert same(ordered, by_hand)


def test_the_order_of_features_does_not_matter() -> None:
    rows = random_rows(200, 10, 0.5, seed=3)
    labels = random_labels(rows, "sign", seed=4)
    reverse = [dict(reversed(row.items())) for row in rows]
    for interactions in (("linear",), ("quadratic",)):
        parameters = OnlineParameters(interactions=interactions, float64=True)
        one, other = OnlineLearner(parameters), OnlineLearner(parameters)
        first = one.learn(as_chunk(rows, ids=True), labels)
        np.testing.assert_allclose(first, other.learn(as_chunk(reverse, ids=True), labels), rtol=1e-9, atol=1e-12)


def test_the_number_of_features_is_the_closed_form() -> None:
    d, n = 9, 5
    rows = [{f: 1.0 + f for f in range(d)} for _ in range(n)]
    for interactions, squares, expected in [
        ("linear", True, d),
        ("quadratic", True, d + d * (d + 1) // 2),
        ("quadratic", False, d + d * (d - 1) // 2),
        ("cubic", True, d + d * (d + 1) // 2 + d * (d + 1) * (d + 2) // 6),
        ("cubic", False, d + d * (d - 1) // 2 + d * (d - 1) * (d - 2) // 6),
        ("a*b", True, d + 9),
        ("a*b*c", True, d + 27),
    ]:
        learner = OnlineLearner(OnlineParameters(interactions=(interactions,), squares=squares), FIELDS)
        learner.learn(as_chunk(rows, ids=True), np.ones(n))
        assert learner.features == n * (expected + 1)
        assert sum(int(np.count_nonzero(t.any(axis=1))) for t in learner.tables.slots) == expected


def test_weight_zero_and_missing_labels_are_not_learnt() -> None:
    chunk, labels = stream("quadratic", 40)
    skipped = np.arange(40) % 3 == 0
    by_weight, by_label, without = make("quadratic"), make("quadratic"), make("quadratic")
    for learner in (by_weight, by_label, without):
        learner.prepare(chunk)
    zero = Chunk(chunk.indptr, chunk.indices, chunk.values, weights=np.where(skipped, 0.0, 1.0), names=chunk.names)
    by_weight.learn(zero, labels)
    by_label.learn(chunk, np.where(skipped, np.nan, labels))
    without.learn(chunk, labels, np.flatnonzero(~skipped))
    assert same(by_weight, without)
    assert same(by_label, without)


@pytest.mark.parametrize("value", [1e38, -3e38, 1e-38, 1e-45, 0.0, 3.4e38])
@pytest.mark.parametrize("variant", ["exact", "quadratic", "softmax", "hashed"])
def test_extreme_values_stay_finite(variant: str, value: float) -> None:
    rows = [{0: value, 1: 1.0}, {0: 1.0, 1: -value}, {0: value, 2: value}] * 20
    learner = make(variant)
    labels = np.array([1.0, -1.0, 1.0] * 20) if variant != "softmax" else np.array([1.0, 0.0, 1.0] * 20)
    with np.errstate(over="ignore"):
        predictions = learner.learn(as_chunk(rows, ids=True), labels)
    assert np.isfinite(predictions).all()
    assert all(np.isfinite(table).all() for table in weights(learner))


def test_divergence_is_found_and_named() -> None:
    parameters = OnlineParameters(loss="squared", adaptive=False, normalized=False, invariant=False, learning_rate=1e30)
    rows = [{0: 1e3}] * 50
    with pytest.raises(NumericError, match=r"example \d+ is not a finite number: lower the learning rate"):
        OnlineLearner(parameters).learn(as_chunk(rows, ids=True), np.ones(50))


def test_columns_and_names_do_not_mix() -> None:
    learner = make("exact")
    learner.learn(as_chunk([{0: 1.0}], ids=True), np.ones(1))
    with pytest.raises(OptionError, match="knows features by name"):
        learner.predict(as_chunk([{0: 1.0}], ids=False))
    learner = make("exact")
    learner.learn(as_chunk([{0: 1.0}], ids=False), np.ones(1))
    with pytest.raises(OptionError, match="knows columns by number"):
        learner.predict(as_chunk([{0: 1.0}], ids=True))


def test_a_new_class_in_the_middle() -> None:
    rows = random_rows(90, 6, 0.5, seed=5)
    labels = np.repeat([0.0, 1.0, 4.0], 30)
    learner = OnlineLearner(OnlineParameters(loss="softmax", n_outputs=2))
    predictions = learner.learn(as_chunk(rows, ids=True), labels)
    assert predictions.shape == (90, 5) and np.isfinite(predictions).all()
    assert learner.predict(as_chunk(rows, ids=True)).argmax(axis=1)[-20:].tolist().count(4) >= 18


@pytest.mark.parametrize("bits", [None, 18])
def test_every_weight_has_the_name_of_its_monomial(bits: int | None) -> None:
    rows = [{0: 1.0, 1: 2.0, 5: 3.0}, {1: 1.0, 7: 1.0}]
    learner = OnlineLearner(OnlineParameters(interactions=("cubic",), bits=bits))
    learner.learn(as_chunk(rows, ids=True), np.array([1.0, -1.0]))
    terms = Terms.of(learner)
    names = set(terms.names(np.arange(len(terms))))
    assert {"f0", "f7", "f0 · f0", "f0 · f5", "f1 · f7 · f7", "f0 · f1 · f5"} <= names
    assert len(names) == len(terms) == 3 + 6 + 10 + 1 + 2 + 3
    assert "f5 · f7" not in names


def test_hashed_products_have_names() -> None:
    rows = [{0: 1.0, 1: 2.0, 300: 3.0}, {1: 1.0, 200: 1.0}]
    learner = OnlineLearner(OnlineParameters(interactions=("cubic",), bits=14))
    learner.learn(as_chunk(rows, ids=False), np.array([1.0, -1.0]))
    assert learner.tables.hashed == [False, True, True]
    terms = Terms.of(learner)
    names = set(terms.names(np.arange(len(terms))))
    assert {"f0 · f0", "f0 · f300", "f1 · f200 · f200", "f0 · f1 · f300"} <= names
    assert len(names) == len(terms) == 3 + 6 + 10 + 1 + 2 + 3


def test_products_hashed_in_another_way_are_refused() -> None:
    learner = OnlineLearner(OnlineParameters(interactions=("quadratic",), bits=10))
    learner.learn(as_chunk([{0: 1.0, 300: 3.0}], ids=False), np.array([1.0]))
    state = learner.state()
    del state.header["hashing"]
    with pytest.raises(ModelFileError, match="products hashed as by an earlier version of pomona: train it again"):
        OnlineLearner.from_state(state)


def test_factors_number_multisets_in_order() -> None:
    assert [factors(2, slot) for slot in range(4)] == [(0, 0), (1, 0), (1, 1), (2, 0)]
    assert [factors(3, slot) for slot in range(5)] == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 0, 0)]


@pytest.mark.parametrize("interactions", ["linear", "quadratic", "cubic"])
def test_memory_of_a_hashed_table_does_not_grow(interactions: str) -> None:
    learner = OnlineLearner(OnlineParameters(interactions=(interactions,), bits=10))
    for seed in range(20):
        rows = random_rows(20, 3000, 0.01, seed=seed)
        learner.learn(as_chunk(rows, ids=True), random_labels(rows, "sign", seed=seed))
    assert [len(slots) for slots in learner.tables.slots] == [1024] * learner.parameters.degree
    assert learner.tables.hashed == [interactions == "linear", True, True][: learner.parameters.degree]


def test_hashed_products_in_vectors_as_one_by_one() -> None:
    """Neighbours stand in a row, or begin at the end of the table and go on at its start; many share a slot."""
    rng = np.random.default_rng(3)
    rows = [{k: float(x) for k, x in enumerate(rng.uniform(-1, 1, 20))} for _ in range(150)]
    labels = rng.choice([-1.0, 1.0], len(rows))
    found = []
    for float64 in (False, True):
        learner = OnlineLearner(
            OnlineParameters(interactions=("cubic",), bits=10, float64=float64, learning_rate=0.1), FIELDS
        )
        found.append(learner.learn(as_chunk(rows, ids=False, first=200), labels))
        assert learner.tables.hashed == [False, True, True]
    np.testing.assert_allclose(found[0], found[1], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("adaptive", [True, False])
def test_growing_values_in_float32_as_in_float64(adaptive: bool, bits: int | None) -> None:
    """Quads of slots are rescaled together in float32, also where two of them are one slot (4 bits)."""
    rng = np.random.default_rng(0)
    rows = [{k: float(rng.normal() * 1.01**i) for k in rng.permutation(40)[:11]} for i in range(400)]
    labels = rng.choice([-1.0, 1.0], len(rows))
    found = []
    for float64 in (False, True):
        parameters = OnlineParameters(
            adaptive=adaptive, invariant=adaptive, bits=bits, float64=float64, learning_rate=0.1
        )
        learner = OnlineLearner(parameters, FIELDS)
        found.append(learner.learn(as_chunk(rows, ids=True), labels))
    np.testing.assert_allclose(found[0], found[1], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("growth", [0.5, 1.0, 2.0, 5.0, 100.0, 1e30])
def test_a_value_larger_than_all_before_counts_for_less(growth: float, outputs: int) -> None:
    """Its effect grows with its root up to 4 times the largest, and comes back to that of the largest at 16 times."""
    parameters = OnlineParameters(loss="squared", n_outputs=outputs, intercept=False)
    learner = OnlineLearner(parameters)
    learner.learn(as_chunk([{0: 2.0}], ids=True), np.array([1.0]))
    largest, other = (learner.predict(as_chunk([{0: x}], ids=True)) for x in (2.0, 2.0 * growth))
    factor = growth if growth <= 1 else max(1.0, min(growth, 16 / growth) ** 0.5)
    np.testing.assert_allclose(other, factor * largest, rtol=1e-6)
    scaled = learner.scaled(np.array([2.0 * growth], np.float32), np.array([0.5], np.float32), np.array([0]))
    np.testing.assert_allclose(scaled, factor, rtol=1e-6)
    plain = OnlineLearner(replace(parameters, gentle=False))
    plain.learn(as_chunk([{0: 2.0}], ids=True), np.array([1.0]))
    np.testing.assert_allclose(plain.predict(as_chunk([{0: 2.0 * growth}], ids=True)), min(growth, 1.0) * largest)


@pytest.mark.parametrize(("kind", "loss"), [("sign", "logistic"), ("class", "softmax")])
def test_mistakes_are_what_the_predictions_say(kind: str, loss: str) -> None:
    rows = random_rows(300, 12, 0.4, 3)
    labels, weights = random_labels(rows, kind, 4), np.random.default_rng(5).integers(0, 4, 300).astype(float)
    learner = OnlineLearner(OnlineParameters(loss=loss, n_outputs=3 if kind == "class" else 1))
    order = np.random.default_rng(6).permutation(300)[:200]
    predictions = learner.learn(as_chunk(rows, ids=True, weights=weights), labels, order)[order]
    wrong = predictions.argmax(1) != labels[order] if kind == "class" else (predictions > 0) != (labels[order] > 0)
    assert learner.mistakes == weights[order] @ wrong > 0


def test_mistakes_of_a_model_that_did_not_count_them_are_not_known() -> None:
    learner = make("exact")
    chunk, labels = stream("exact")
    learner.learn(chunk, labels)
    state = learner.state()
    assert OnlineLearner.from_state(state).mistakes == learner.mistakes > 0
    del state.header["running"]["mistakes"]
    old = OnlineLearner.from_state(state)
    old.learn(chunk, labels)
    assert np.isnan(old.mistakes)
    assert np.isnan(OnlineLearner.from_state(old.state()).mistakes)


@pytest.mark.parametrize("interactions", [("quadratic",), ("cubic",), ("a*b",)], ids=str)
@pytest.mark.parametrize("bits", [None, 10])
def test_examples_arranged_beforehand_give_the_same_bits(interactions: tuple[str, ...], bits: int | None) -> None:
    rows = random_rows(200, 40, 0.3, seed=1)
    rows[7], rows[8] = {}, {3: 1.0}
    labels = random_labels(rows, "sign", seed=2)
    plain, arranged = (OnlineLearner(OnlineParameters(interactions=interactions, bits=bits), FIELDS) for _ in range(2))
    chunk = plain.prepare(as_chunk(rows, ids=True))
    rising = arranged.arranged(arranged.prepare(as_chunk(rows, ids=True)))
    assert chunk.indices.tolist() != rising.indices.tolist()
    for start, stop in itertools.pairwise(chunk.indptr.tolist()):
        parts = [
            [tuple(array[k] for array in (c.indices, c.values, c.fields)) for k in range(start, stop)]
            for c in (chunk, rising)
        ]
        assert parts[1] == sorted(parts[0])
    np.testing.assert_array_equal(plain.learn(chunk, labels), arranged.learn(rising, labels))
    assert arranged.arranged(rising) is rising
