"""What a model is, how it was trained, and what it learnt: as a dictionary, as text, as a picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pomona.errors import MissingDependencyError

if TYPE_CHECKING:
    from pomona.model.pipeline import Model

#: Classes side by side up to this many; beyond it only the class with the strongest weight is named.
_MAX_COLUMNS = 4
_WIDTH = 79


def describe(model: Model, top: int = 20) -> dict[str, Any]:
    """Everything ``pomona inspect`` knows, as plain JSON values.

    Parameters
    ----------
    model : a trained or loaded model.
    top : how many features to name, those with the largest ``|weight| * scale`` first.
    """
    return {
        "learner": model.summary.get("learner", "online"),
        "task": model.task.header(),
        "training": model.summary,
        "options": model.changed_options(),
        "columns": model.columns(),
        "table": model.table(),
        "top": top_features(model, top),
    }


def top_features(model: Model, top: int) -> list[dict[str, Any]]:
    """The strongest features: name, weight and scale; for many classes, the class of the strongest weight."""
    terms = model.terms()
    weights = np.atleast_2d(np.asarray(terms.weights, np.float64).T).T
    strength = np.abs(weights) * np.asarray(terms.scales, np.float64)[:, None]
    best = strength.max(axis=1, initial=0.0)
    top = min(top, len(best))
    # A partial sort: models have millions of rows. Ties are broken by row, so that reports are stable.
    chosen = np.argpartition(-best, top - 1)[:top] if top else np.empty(0, np.int64)
    chosen = chosen[np.lexsort((chosen, -best[chosen]))]
    result = []
    for row, name in zip(chosen.tolist(), terms.names(chosen), strict=True):
        entry: dict[str, Any] = {"feature": name, "strength": float(best[row])}
        if weights.shape[1] == 1:
            entry["weight"] = float(weights[row, 0])
        else:
            strongest = int(strength[row].argmax())
            entry["class"] = model.task.classes[strongest]
            entry["weight"] = float(weights[row, strongest])
            entry["weights"] = weights[row].tolist()
        entry["scale"] = float(terms.scales[row])
        result.append(entry)
    return result
