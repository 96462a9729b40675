"""Projections against a quadratic program and against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pomona.leastsquares.projections import onto_cube, onto_simplex
from tests.reference.least_squares import project, project_sorted


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_simplex_equals_the_quadratic_program(k):
    V = np.random.default_rng(k).standard_normal((30, k)) * 2
    np.testing.assert_allclose(onto_simplex(V), [project(v) for v in V], atol=1e-6)


@settings(max_examples=200, deadline=None)
@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(-50, 50)))
def test_simplex_equals_exhaustive_search(v):
    found = onto_simplex(v[None, :])[0]
    np.testing.assert_allclose(found, project_sorted(v), atol=1e-9)
    assert found.min() >= 0
    assert abs(found.sum() - 1) < 1e-9


@settings(max_examples=50, deadline=None)
@given(arrays(np.float64, (4, 5), elements=st.floats(-5, 5)), arrays(np.float64, (4, 5), elements=st.floats(0, 1)))
def test_projecting_never_moves_away_from_a_point_of_the_set(V, other):
    inside = (other + 1e-3) / (other + 1e-3).sum(axis=1, keepdims=True)
    for project_onto, point in ((onto_simplex, inside), (onto_cube, other)):
        before, after = ((V - point) ** 2).sum(axis=1), ((project_onto(V) - point) ** 2).sum(axis=1)
        assert (after <= before + 1e-9).all()


def test_points_of_the_set_stay():
    P = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(onto_simplex(P), P, atol=1e-15)
    np.testing.assert_array_equal(onto_cube(P), P)


def test_cube():
    np.testing.assert_array_equal(onto_cube(np.array([[-1.0, 0.5, 2.0]])), [[0.0, 0.5, 1.0]])
