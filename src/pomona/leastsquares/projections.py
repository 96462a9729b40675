"""Euclidean projections onto the sets that probabilities live in (``clip`` in Algorithm 2)."""

from __future__ import annotations

import array_api_compat as compat

from pomona.leastsquares.arrays import Array


def onto_simplex(V: Array) -> Array:
    """The nearest point of the probability simplex to each row of V (Duchi et al., 2008).

    The projection is max(v - theta, 0), where theta makes the row sum to 1. With u the row in falling order, theta is
    (u_1 + … + u_r - 1) / r for the largest r with u_r above that value.
    """
    xp = compat.array_namespace(V)
    k = V.shape[1]
    U = xp.sort(V, axis=1, descending=True)
    ranks = xp.arange(1, k + 1, dtype=V.dtype, device=compat.device(V))
    thetas = (xp.cumulative_sum(U, axis=1) - 1) / ranks
    # u_r > theta_r holds exactly for the first r: counting them finds the last one.
    last = xp.sum(xp.astype(U > thetas, xp.int64), axis=1, keepdims=True) - 1
    theta = xp.take_along_axis(thetas, xp.clip(last, min=0), axis=1)
    return xp.clip(V - theta, min=0.0)


def onto_cube(V: Array) -> Array:
    """The nearest point of the hypercube [0, 1]^k to each row of V, for multi-label targets."""
    return compat.array_namespace(V).clip(V, min=0.0, max=1.0)


def unclipped(V: Array) -> Array:
    """No projection: the targets are quantities."""
    return V


#: By the kind of the targets.
PROJECTIONS = {"classes": onto_simplex, "labels": onto_cube, "values": unclipped}
