"""Weights of the columns themselves, where a model is linear in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.model import Model

Floats = NDArray[np.float64]


def linear_weights(model: Model[Any], names: Sequence[str]) -> tuple[Floats, Any]:
    """``coef`` and ``intercept`` in scikit-learn's shapes; an AttributeError where columns have no single weight."""
    learner = model.learner
    columns = None if learner.column_rows is None else learner.column_rows.columns()
    shared = learner.parameters.bits is not None or (columns is not None and len(columns) >= learner.tables.row_limit)
    if learner.parameters.degree > 1 or shared:
        raise AttributeError("coef_ needs a model without interactions and without a hashed table: use top_terms")
    weights, inverse_scales = learner.weights_of(0)
    if learner.parameters.normalized:
        weights = weights * inverse_scales.reshape([-1] + [1] * (weights.ndim - 1))
    outputs = model.task.n_outputs
    weights = weights.reshape(-1, outputs)
    coef, intercept = np.zeros((outputs, len(names))), learner.intercepts()
    if model.encoder is None:
        if columns is None:
            columns = np.arange(min(learner.n_columns, len(weights), len(names)))
        coef[:, columns] = weights[: len(columns)].T
    else:
        rows = dict(zip(learner.names.names, learner.names.rows.tolist(), strict=True))
        for column in model.encoder.columns:
            if len(column.parts) != 1 or column.parts[0].kind != _native.RAW or column.parts[0].of:
                raise AttributeError(f"coef_ needs numeric columns as they are, but {column.name!r} is encoded")
            if column.name not in rows:
                continue
            shift, scale = column.parts[0].points
            w = weights[rows[column.name]] * scale
            coef[:, names.index(column.name)] = w
            intercept = intercept - w * shift
    if model.task.kind == "regression":
        return coef[0] * model.target.scale, float(intercept[0] * model.target.scale + model.target.shift)
    return coef, intercept
