"""The laws of apple: whatever the chunks, files and tables, the same features grow and the same weights are learnt."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pomona import _native
from pomona.chunk import Chunk
from pomona.errors import ModelFileError, OptionError
from pomona.learner import State
from pomona.online import products
from pomona.online.apple import AppleLearner
from pomona.online.epochs import equal_epochs
from pomona.online.heuristics import Statistics
from pomona.online.learner import OnlineLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.online.parents import ROOT
from tests.online.streams import FIELDS, as_chunk, random_labels, random_rows

#: Choices of apple, then of the online learner.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "blocks": ({}, {}),
    "by key": ({"alpha": 1.5}, {}),
    "few bits": ({"alpha": 1.5, "bits": 10}, {}),
    "ssm": ({"heuristic": "ssm"}, {}),
    "picky": ({"heuristic": "picky-weight"}, {}),
    "fields": ({"expand": ("a", "b")}, {}),
    "softmax": ({}, {"loss": "softmax", "n_outputs": 2}),
    "regularised": ({}, {"l1": 1e-3, "l2": 1e-3}),
    "residual": ({"products": "residual"}, {}),
    "residual softmax": ({"products": "residual"}, {"loss": "softmax", "n_outputs": 2}),
    "many words": ({"products": "auto"}, {}),
    "its own rule": ({"products": "residual", "adapts": 50}, {}),
    "no squares": ({"fallback": True}, {"squares": False}),
}
ROUNDS = equal_epochs(400, 6)


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param in ("by key", "few bits"):
        monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    return str(request.param)


def make(variant: str) -> AppleLearner:
    apple, online = VARIANTS[variant]
    learner = AppleLearner(OnlineParameters(**online), FIELDS, AppleParameters(**apple))
    learner.plan(ROUNDS)
    return learner


def stream(variant: str) -> tuple[Chunk, np.ndarray]:
    wide = variant in ("by key", "few bits")
    rows = random_rows(400, 60 if wide else 12, 0.15 if wide else 0.4, seed=7)
    labels = random_labels(rows, "class" if "softmax" in variant else "sign", seed=8)
    return as_chunk(rows, ids=True), labels


def same(a: AppleLearner, b: AppleLearner) -> bool:
    arrays = [
        [*x.tables.slots, *x.tables.touched, x.tables.intercept, *x.grown.moments, x.grown.owners] for x in (a, b)
    ]
    equal = all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(*arrays, strict=True))
    losses = np.allclose(a.loss_sums, b.loss_sums, rtol=1e-13, atol=0)  # but for last bits, as in test_laws.py
    return equal and losses and a.parents.monomials == b.parents.monomials


def learn_in_parts(learner: AppleLearner, chunk: Chunk, labels: np.ndarray, sizes: list[int]) -> None:
    for start, stop in itertools.pairwise(np.cumsum([0, *sizes]).tolist()):
        learner.learn(chunk.slice(start, stop), labels[start:stop])


def test_the_size_of_chunks_does_not_matter(variant: str) -> None:
    chunk, labels = stream(variant)
    whole, parts = make(variant), make(variant)
    whole.learn(chunk, labels)
    learn_in_parts(parts, chunk, labels, [1, 0, 66, 67, 3, 63, 200])
    assert len(whole.parents) > 0
    assert (whole.grown.block == 0) == (variant in ("by key", "few bits"))
    assert same(whole, parts)


def test_parents_are_the_same_when_candidates_come_in_small_pieces(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk, labels = stream(variant)
    whole, pieces = make(variant), make(variant)
    whole.learn(chunk, labels)
    monkeypatch.setattr("pomona.online.apple.PIECE", 7)
    pieces.learn(chunk, labels)
    assert len(whole.parents) > 0
    assert same(whole, pieces)


def test_predicting_changes_nothing_and_never_advances_the_schedule(variant: str) -> None:
    chunk, labels = stream(variant)
    learner, other = make(variant), make(variant)
    for start in range(0, 400, 50):
        part = slice(start, start + 50)
        learner.predict(chunk)
        learner.learn(chunk.slice(start, start + 50), labels[part])
        other.learn(chunk.slice(start, start + 50), labels[part])
    assert same(learner, other)


def test_a_learner_goes_on_from_its_state_in_the_middle_of_its_schedule(variant: str) -> None:
    chunk, labels = stream(variant)
    whole, first = make(variant), make(variant)
    whole.learn(chunk, labels)
    first.learn(chunk.slice(0, 150), labels[:150])
    again = AppleLearner.from_state(first.state())
    assert again.predict(chunk).tobytes() == first.predict(chunk).tobytes()
    again.learn(chunk.slice(150, 400), labels[150:])
    assert same(whole, again)


def test_products_are_found_where_an_earlier_version_put_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked from the slot of the key on, not from the start of a cache line."""
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    chunk, labels = stream("by key")
    learner = make("by key")
    learner.learn(chunk.slice(0, 350), labels[:350])
    state = learner.state()
    assert state.header.pop("homes") == 4
    taken, slots, owners = state.arrays["taken"], state.arrays["slots1"], state.arrays["owners"]
    keys = learner.parents.keys[owners[:, 0]] + _native.mix(owners[:, 1].astype(np.uint64))
    places: dict[int, int] = {}
    for i, key in enumerate(keys.tolist()):
        slot = key % len(slots)
        while slot in places:
            slot = (slot + 1) % len(slots)
        places[slot] = i
    order = sorted(places)
    moved = np.zeros_like(slots)
    moved[order] = slots[taken[[places[slot] for slot in order]]]
    arrays = {**state.arrays, "slots1": moved, "taken": np.array(order)}
    arrays["owners"] = owners[[places[slot] for slot in order]]
    again = AppleLearner.from_state(State(state.header, arrays))
    assert again.predict(chunk).tobytes() == learner.predict(chunk).tobytes()
    for each in (again, learner):
        each.learn(chunk.slice(350, 400), labels[350:])
    assert again.predict(chunk).tobytes() == learner.predict(chunk).tobytes()


def test_a_product_of_no_parent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    chunk, labels = stream("by key")
    learner = make("by key")
    learner.learn(chunk, labels)
    state = learner.state()
    state.arrays["owners"][5, 0] = len(learner.parents)
    with pytest.raises(ValueError, match="a parent that does not exist"):
        AppleLearner.from_state(state)


@pytest.mark.parametrize(
    ("variant", "change"),
    [("blocks", {"block": 10**6}), ("blocks", {"block": -4}), ("blocks", {"block": 0}),
     ("blocks", {"hashed": [False, True]}), ("by key", {"block": 10**6}), ("few bits", {"block": 4})],
)  # fmt: skip
def test_a_table_of_another_size_is_refused(
    variant: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if variant != "blocks":
        monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    chunk, labels = stream(variant)
    learner = make(variant)
    learner.learn(chunk, labels)
    state = learner.state()
    AppleLearner.from_state(state)
    with pytest.raises(ValueError, match=r"a table of [\d,]+ products does not go with \d+ parents"):
        AppleLearner.from_state(State({**state.header, **change}, state.arrays))


def test_tables_by_key_hold_what_blocks_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk, labels = stream("blocks")
    blocks, keys = make("blocks"), make("blocks")
    blocks.learn(chunk, labels)
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 0)
    keys.learn(chunk, labels)
    assert keys.grown.block == 0
    assert keys.parents.monomials == blocks.parents.monomials
    np.testing.assert_allclose(keys.predict(chunk), blocks.predict(chunk), rtol=1e-4)


@pytest.mark.parametrize("step", [1000, 4096])
def test_columns_far_apart_have_the_same_parents(step: int) -> None:
    """Beyond some thousand columns the kernel rules most of them out by a few bits of their number."""
    rows = random_rows(400, 30, 0.2, seed=7)
    labels = random_labels(rows, "sign", seed=8)
    near, far = (AppleLearner(OnlineParameters(float64=True), FIELDS, AppleParameters(alpha=1.5)) for _ in range(2))
    for learner, chunk in ((near, as_chunk(rows, ids=False)), (far, as_chunk(rows, ids=False, step=step))):
        learner.plan(ROUNDS)
        learner.learn(chunk, labels)
    assert far.parents.monomials == [tuple(step * row for row in m) for m in near.parents.monomials]
    assert max(map(len, near.parents.monomials)) > 2
    expected = near.predict(as_chunk(rows, ids=False))
    np.testing.assert_allclose(far.predict(as_chunk(rows, ids=False, step=step)), expected, rtol=1e-9)


def test_at_the_limit_the_strongest_products_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    monkeypatch.setattr(products, "KEY_BITS", 10)
    rows = random_rows(3000, 300, 0.05, seed=1)
    labels = random_labels(rows, "sign", seed=2)
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(alpha=1.5))
    learner.plan(equal_epochs(3000, 6))
    learner.learn(as_chunk(rows, ids=True), labels)
    assert not learner.grown.may_prune  # it has been full, and the weakest half went
    limit = int(products.FULLEST * 1024)
    assert len(learner.grown.slots[1]) == 1024
    assert 0 < np.count_nonzero(learner.grown.owners_known()) <= limit
    own = learner.grown.places_of(learner.parents)
    assert len(own) == sum(len(m) > 1 for m in learner.parents.monomials)


@pytest.mark.parametrize("bits", [None, 18])
def test_products_of_rare_features_never_stand_in_blocks(bits: int | None) -> None:
    rows = random_rows(600, 40_000, 0.001, seed=1)
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(bits=bits))
    learner.plan(equal_epochs(600, 6))
    learner.learn(as_chunk(rows, ids=True), random_labels(rows, "sign", seed=2))
    assert learner.grown.block == 0
    assert learner.grown.hashed == [False, bits is not None]
    assert len(learner.grown.appeared(1))


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_the_order_of_features_and_zeros_among_them_do_not_matter(loss: str) -> None:
    """Examples are looked at many together: most may serve as they are while others do not."""
    rows = random_rows(700, 60, 0.2, seed=1)
    rising = [dict(sorted(row.items())) for row in rows]
    mixed = [row if i % 97 == 5 else rising[i] for i, row in enumerate(rows)]
    zeros = [{**row, 70 + i % 9: 0.0} if i % 89 == 7 else row for i, row in enumerate(mixed)]
    labels = random_labels(rows, "sign", seed=2)
    several = {"n_outputs": 2} if loss == "softmax" else {}
    learners = []
    for data, part in ((rising, 700), (mixed, 700), (zeros, 700), (zeros, 33)):
        learner = AppleLearner(OnlineParameters(loss=loss, **several), FIELDS, AppleParameters())
        learner.plan(equal_epochs(700, 6))
        chunk, codes = as_chunk(data, ids=False), (labels + 1) / 2 if several else labels
        for start in range(0, 700, part):
            learner.learn(chunk.slice(start, start + part), codes[start : start + part])
        learners.append(learner)
    first, *others = learners
    expected = first.predict(as_chunk(rising, ids=False))
    for other in others:
        assert other.parents.monomials == first.parents.monomials
        np.testing.assert_allclose(other.predict(as_chunk(rising, ids=False)), expected, rtol=1e-4, atol=1e-5)


def test_without_bits_products_have_a_limit_and_base_features_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    monkeypatch.setattr(products, "KEY_BITS", 10)
    rows = random_rows(3000, 2000, 0.01, seed=1)
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(alpha=1.5))
    learner.plan(equal_epochs(3000, 6))
    learner.learn(as_chunk(rows, ids=True), random_labels(rows, "sign", seed=2))
    assert len(learner.grown.slots[1]) == 1024
    assert len(learner.grown.appeared(0)) > 1024


@pytest.mark.parametrize(("memory", "bits", "slots"), [(1, None, 10), (2**30, None, 20), (2**30, 22, 22), (96, 22, 10)])
def test_slots_of_a_table_found_by_key(memory: int, bits: int | None, slots: int) -> None:
    tables = products.AppleTables(OnlineParameters(memory=memory), bits, picky=False, moments=False)
    assert tables.largest == 1 << slots


def test_equally_weak_products_go_from_the_whole_table_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one part of it stays full, and its products are looked for through all of that part."""
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    monkeypatch.setattr(products, "KEY_BITS", 12)
    rows = random_rows(3000, 300, 0.05, seed=1)
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(alpha=1.5))
    learner.plan(equal_epochs(3000, 6))
    learner.learn(as_chunk(rows, ids=True), random_labels(rows, "sign", seed=2))
    tables = learner.grown
    tables.slots[1][:, 0] = 0.0
    taken = np.flatnonzero(tables.owners_known())
    kept = tables.strongest(taken, learner.parents)
    assert len(kept) == int(products.FULLEST * 4096) // 2 < len(taken)
    assert len(np.unique(kept)) == len(kept)
    parts = np.histogram(kept, bins=8, range=(0, 4096))[0]
    assert parts.min() > 0.8 * parts.mean()


def test_a_full_table_knows_what_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many examples at once go through a filter of absent products, a single one does not."""
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    monkeypatch.setattr(products, "KEY_BITS", 10)
    rows = random_rows(2000, 300, 0.05, seed=1)
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(alpha=1.5))
    learner.plan(equal_epochs(4000, 6))
    chunk = as_chunk(rows, ids=True)
    for _ in range(2):
        learner.learn(chunk, random_labels(rows, "sign", seed=2))
    assert np.count_nonzero(learner.grown.owners_known()) == int(products.FULLEST * 1024)
    single = np.concatenate([learner.predict(chunk.slice(i, i + 1)) for i in range(len(chunk))])
    np.testing.assert_array_equal(learner.predict(chunk), single)


@pytest.mark.parametrize("online", [{}, {"normalized": False}, {"loss": "softmax", "n_outputs": 3}], ids=str)
def test_every_slot_of_hashed_products_names_one_that_stands_there(
    online: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "LARGEST_BLOCKS", 64)
    rows = random_rows(3000, 300, 0.05, seed=1)
    learner = AppleLearner(OnlineParameters(**online), FIELDS, AppleParameters(alpha=1.5, bits=10))
    learner.plan(equal_epochs(3000, 6))
    labels = random_labels(rows, "class" if "n_outputs" in online else "sign", seed=2)
    learner.learn(as_chunk(rows, ids=False), labels)
    tables = learner.grown
    assert tables.hashed == [False, True]
    assert len(tables.slots[1]) == 1024
    appeared = tables.appeared(1)
    assert len(appeared) > 0.9 * 1024  # far more products than slots: they share them
    assert tables.owners_known()[appeared].all()
    parents, rows_there = tables.products_at(appeared)
    np.testing.assert_array_equal(products.hashed_places(parents, rows_there, 1024), appeared)
    named = list(learner.factors_at(1, appeared.tolist()).values())
    assert len(set(named)) == len(named)
    assert len(set(learner.parents.monomials)) == len(learner.parents.monomials)
    state = learner.state()
    state.header["hashing"] = OnlineLearner.hashing  # as by the builds before this one
    with pytest.raises(ModelFileError, match="hashed as by an earlier version of pomona: train it again"):
        AppleLearner.from_state(state)


@pytest.mark.parametrize("online", [{}, {"normalized": False}, {"adaptive": False}, {"float64": True}], ids=str)
@pytest.mark.parametrize("heuristic", ["weight", "scaled", "evidence"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_core_scores_as_the_heuristics_say(heuristic: str, outputs: int, online: dict[str, Any]) -> None:
    rows = random_rows(300, 40, 0.2, seed=1)
    several = {"loss": "softmax", "n_outputs": outputs} if outputs > 1 else {}
    learner = AppleLearner(OnlineParameters(**several, **online), FIELDS, AppleParameters(heuristic=heuristic))
    learner.plan([100, 200])
    learner.learn(as_chunk(rows, ids=True), random_labels(rows, "class" if outputs > 1 else "sign", seed=2))
    assert learner.rule is not None
    for table in (0, 1):
        places = learner.grown.appeared(table)
        expected = learner.rule.parents(learner._statistics(table, places, np.ones(len(places), np.int64)))
        places, expected = places[expected > 0], expected[expected > 0].astype(np.float32)
        assert len(places) > 30
        nothing = np.zeros(0, np.int64)
        slots, scores = _native.best_slots(learner._model, table, heuristic, 10**4, nothing, None)
        np.testing.assert_array_equal(slots, places)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)
        for wanted in (1, 7, len(slots) - 1):
            least = np.sort(scores)[-wanted]
            best, _ = _native.best_slots(learner._model, table, heuristic, wanted, nothing, None)
            np.testing.assert_array_equal(best, slots[scores >= least])
            left, _ = _native.best_slots(learner._model, table, heuristic, wanted, best, None)
            assert not set(left) & set(best)


def test_the_best_of_many_equal_slots_are_all_of_them() -> None:
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters())
    learner.tables.slots[0] = np.ones((20_000, 4), np.float32)
    learner.tables.slots[0][::1000, 0] = 2.0
    learner._point()
    for wanted, found in ((20, 20), (21, 20_000), (5, 20)):
        slots, _ = _native.best_slots(learner._model, 0, "scaled", wanted, np.zeros(0, np.int64), None)
        assert len(slots) == found
        assert (np.diff(slots) > 0).all()


def test_only_chosen_fields_are_multiplied() -> None:
    chunk, labels = stream("fields")
    learner = make("fields")
    learner.learn(chunk, labels)
    terms = learner.terms()
    names = terms.names(np.arange(len(terms)))
    factors = {int(part[1:]) % 3 for name in names if "·" in name for part in name.split(" · ")}
    assert factors == {0, 1}
    assert any(int(name[1:]) % 3 == 2 for name in names if "·" not in name)


def test_each_monomial_is_one_feature_and_has_its_name() -> None:
    chunk, labels = stream("blocks")
    learner = make("blocks")
    learner.learn(chunk, labels)
    terms = learner.terms()
    names = terms.names(np.arange(len(terms)))
    assert len(set(names)) == len(names)
    degrees = learner.degrees_of(terms.tables, terms.slots)
    assert degrees.tolist() == [name.count("·") + 1 for name in names]
    assert degrees.max() > 2


def test_a_degree_cap_holds_and_one_epoch_is_linear() -> None:
    chunk, labels = stream("blocks")
    for apple, most in (({"degree": 2}, 2), ({"degree": 1}, 1), ({"epochs": 1}, 1)):
        learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(**apple))
        learner.plan(equal_epochs(400, learner.apple.epochs))
        learner.learn(chunk, labels)
        terms = learner.terms()
        assert learner.degrees_of(terms.tables, terms.slots).max() == most


def test_without_a_size_rounds_come_at_doubling_numbers() -> None:
    rows = random_rows(4500, 6, 0.5, seed=1)
    learner = AppleLearner(OnlineParameters(), FIELDS)
    learner.plan(None)
    counts = []
    for start in range(0, 4500, 100):
        learner.learn(
            as_chunk(rows[start : start + 100], ids=True), random_labels(rows[start : start + 100], "sign", 1)
        )
        counts.append(len(learner.parents))
    grown = [100 * (i + 1) for i in range(1, 45) if counts[i] > counts[i - 1]]
    assert grown == [1000, 2000, 4000]


def test_a_heuristic_of_ones_own() -> None:
    chunk, labels = stream("blocks")

    def rarest(known: Statistics) -> np.ndarray:
        assert known.gradient.shape == (len(known.weight), 1)
        return np.where(known.count > 0, 1 / np.maximum(known.count, 1), 0.0)

    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(heuristic=rarest, alpha=0.0))
    learner.plan([200])
    learner.learn(chunk, labels)
    counts = np.bincount(learner.prepare(chunk.slice(0, 200)).indices[: int(chunk.indptr[200])])
    assert learner.parents.monomials == [(int(np.argmin(counts)),)]
    state = learner.state()
    assert AppleLearner.from_state(state).predict(chunk).tobytes() == learner.predict(chunk).tobytes()


def test_a_heuristic_must_give_one_score_a_monomial() -> None:
    chunk, labels = stream("blocks")
    learner = AppleLearner(OnlineParameters(), FIELDS, AppleParameters(heuristic=lambda known: np.zeros(3)))
    learner.plan([200])
    with pytest.raises(OptionError, match=r"one score a monomial: 12; got shape \(3,\)"):
        learner.learn(chunk, labels)


def test_a_class_that_comes_late() -> None:
    chunk, labels = stream("softmax")
    late = np.where(labels == 2, 0.0, labels)
    late[300:] = labels[300:]
    for wide in (False, True):
        learner = AppleLearner(OnlineParameters(loss="softmax", n_outputs=2), FIELDS)
        learner.plan(ROUNDS)
        if wide:
            learner.grown._to_keys(learner.parents)
            learner._point()
        learner.learn(chunk, late)
        assert learner.predict(chunk).shape == (400, 3)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_features_that_share_a_row_make_no_parent_twice(loss: str) -> None:
    """With few bits an example may have two features of one row. Its products have room for one parent each."""
    outputs = 2 if loss == "softmax" else 1
    few_bits = AppleParameters(bits=10, alpha=0.0, heuristic="scaled")
    learner = AppleLearner(OnlineParameters(loss=loss, n_outputs=outputs), FIELDS, few_bits)
    learner.plan([50])
    n, ids = 200, np.array([7, 7 + (1 << 20), 8], np.uint64)  # the first two differ in higher bits alone
    values = np.tile(np.array([1.0, 1.0, 0.01], np.float32), n)
    chunk = Chunk(np.arange(0, 3 * n + 1, 3), np.tile(ids, n), values)
    learner.learn(chunk, np.ones(n))
    assert len(learner.parents) == 1 and learner.parents.links[0].tolist() == [ROOT, 0]
    assert learner.features == 50 * 4 + 150 * 7  # three features, three products and the intercept
