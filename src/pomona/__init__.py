"""Nonlinear learning at the cost of linear learning, on data larger than memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pomona.estimators import AppleClassifier, AppleRegressor, OnlineClassifier, OnlineRegressor
    from pomona.estimators.higher_order import ALRClassifier, AnJEClassifier, KDBClassifier
    from pomona.estimators.higher_order_discretizer import MDLDiscretizer
    from pomona.estimators.least_squares_classifiers import CalibratedLSClassifier, GLSClassifier, StagewiseClassifier
    from pomona.estimators.least_squares_regressor import StagewiseRegressor
    from pomona.model import Model, load

__version__ = "0.1.0"

#: Public name → module that defines it; imported on first use, so that ``import pomona`` stays light.
_LAZY = {
    "AppleClassifier": "pomona.estimators",
    "AppleRegressor": "pomona.estimators",
    "OnlineClassifier": "pomona.estimators",
    "OnlineRegressor": "pomona.estimators",
    "CalibratedLSClassifier": "pomona.estimators.least_squares_classifiers",
    "GLSClassifier": "pomona.estimators.least_squares_classifiers",
    "StagewiseClassifier": "pomona.estimators.least_squares_classifiers",
    "StagewiseRegressor": "pomona.estimators.least_squares_regressor",
    "ALRClassifier": "pomona.estimators.higher_order",
    "AnJEClassifier": "pomona.estimators.higher_order",
    "KDBClassifier": "pomona.estimators.higher_order",
    "MDLDiscretizer": "pomona.estimators.higher_order_discretizer",
    "Model": "pomona.model",
    "load": "pomona.model",
}

__all__ = [
    "ALRClassifier",
    "AnJEClassifier",
    "AppleClassifier",
    "AppleRegressor",
    "CalibratedLSClassifier",
    "GLSClassifier",
    "KDBClassifier",
    "MDLDiscretizer",
    "Model",
    "OnlineClassifier",
    "OnlineRegressor",
    "StagewiseClassifier",
    "StagewiseRegressor",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pomona' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
