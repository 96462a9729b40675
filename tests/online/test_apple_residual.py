"""Residual learning of apple, where products learn what base features leave; and how its tables grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pomona._buffers import HUGE
from pomona.online import products
from pomona.online.apple import AppleLearner
from pomona.online.epochs import equal_epochs
from pomona.online.learner import OnlineLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.online.products import AppleTables
from tests.online.streams import FIELDS, as_chunk, random_labels, random_rows

ROUNDS = equal_epochs(400, 6)
SOFTMAX = {"loss": "softmax", "n_outputs": 3}


def learnt(online: dict[str, Any], kind: str, **apple: Any) -> tuple[AppleLearner, OnlineLearner, Any]:
    """An apple whose products learn the rest and a linear learner, both from the same examples, and these."""
    rows = random_rows(400, 12, 0.4, seed=7)
    labels, chunk = random_labels(rows, kind, seed=8), as_chunk(rows, ids=False)
    parameters = OnlineParameters(**online)
    learner = AppleLearner(parameters, FIELDS, AppleParameters(products="residual", **apple))
    learner.plan(ROUNDS)
    linear = OnlineLearner(parameters, FIELDS)
    learner.learn(chunk, labels)
    linear.learn(chunk, labels)
    return learner, linear, chunk


@pytest.mark.parametrize(("online", "kind"), [({}, "sign"), (SOFTMAX, "class")], ids=["logistic", "softmax"])
def test_without_their_products_features_predict_as_a_linear_learner(online: dict[str, Any], kind: str) -> None:
    learner, linear, chunk = learnt(online, kind)
    whole = learner.predict(chunk)
    learner.set_weights(1, np.zeros(0, np.int64), np.zeros((0, learner.parameters.n_outputs)))
    alone = learner.predict(chunk)
    np.testing.assert_allclose(alone, linear.predict(chunk), rtol=1e-4, atol=1e-5)
    assert np.abs(whole - alone).max() > 0.01


def test_products_are_scored_as_if_they_counted_in_full() -> None:
    learner, _, _ = learnt({}, "sign")
    slots = learner.grown.appeared(1)
    known = learner._statistics(1, slots, np.full(len(slots), 2))
    weights, inverse = learner.weights_of(1, slots)
    np.testing.assert_allclose(known.weight, 2 * weights * inverse)


@pytest.mark.parametrize(
    ("bits", "outputs", "slots"), [(18, 1, 2**18), (18, 81, 2**15), (10, 81, 2**10), (None, 81, 2**20)]
)
def test_hashed_products_of_many_classes_stay_in_the_caches(bits: int | None, outputs: int, slots: int) -> None:
    parameters = OnlineParameters(loss="softmax" if outputs > 1 else "logistic", n_outputs=outputs)
    tables = AppleTables(parameters, bits, picky=False, moments=False)
    assert tables.largest == slots
    assert bits is None or outputs == 1 or tables.largest * tables.slot_bytes <= products.HASHED_BYTES


@pytest.mark.parametrize("last", [0, 1, products.PIECE - 1, products.PIECE, 2 * products.PIECE + 5])
def test_rows_that_have_appeared_are_counted_from_the_end(last: int) -> None:
    tables = AppleTables(OnlineParameters(), None, picky=False, moments=False)
    assert tables.rows_appeared() == 0
    tables._extend(0, 2 * products.PIECE + 10)
    assert tables.rows_appeared() == 0
    tables.slots[0][[0, last], 2] = 1.0
    assert tables.rows_appeared() == last + 1


def test_a_table_that_is_beyond_its_limit_grows_where_it_is() -> None:
    tables = AppleTables(OnlineParameters(), 10, picky=False, moments=False)
    size = HUGE // tables.slot_bytes  # smaller ones are copied
    tables._extend(0, size)
    place = tables.slots[0].ctypes.data
    tables.slots[0][-1] = 1.0
    tables._extend(0, 4 * size)
    assert tables.slots[0].ctypes.data == place
    assert (tables.slots[0][size - 1] == 1.0).all() and not tables.slots[0][size:].any()
