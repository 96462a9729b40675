"""Methods of ``python -m benchmarks higher-order``: ours and those beside them, all with one signature.

A method is fitted on the columns of a training part and gives class probabilities of a test part. Names are built from
their options, so that a figure that sweeps one is a list of names: ``sALR3-cvscore-0.4``, ``hsALR3-mi-0.8``,
``ALR3-plain@2`` (two passes), ``ALR3*4`` (the mean of four models).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from pomona import ALRClassifier, AnJEClassifier, KDBClassifier, MDLDiscretizer

#: Memory limit of our models: covtype with all tuples of order 4 needs 1.3 GB.
MEMORY = 1 << 33


@dataclass
class Fitted:
    """What one method did on one training part."""

    probabilities: NDArray[np.float64]
    classes: NDArray[Any]
    #: Seconds of training: by the clock, and of all cores together.
    wall: float
    cpu: float
    parameters: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def fit(method: str, X: pd.DataFrame, y: NDArray[Any], X_test: pd.DataFrame) -> Fitted:
    """Train a method by its name, and predict."""
    estimator = make(method)
    wall, cpu = time.perf_counter(), time.process_time()
    estimator.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    p = estimator.predict_proba(X_test)
    facts, parameters = {}, getattr(estimator, "n_parameters_", None)
    if hasattr(estimator, "model_"):
        names = ("order", "tuples", "start", "learning_rate", "pass_kept", "l2", "passes", "k", "attributes")
        facts = {name: estimator.model_.summary[name] for name in names if name in estimator.model_.summary}
    return Fitted(p, estimator.classes_, wall, cpu, parameters, facts)


def make(method: str) -> Any:
    """The estimator of this name."""
    if method in FIXED:
        return FIXED[method]()
    match = re.fullmatch(
        r"(hs|s|)ALR(\d|auto)(\(\*\))?(?:-(mi|cvscore))?(?:-([\d.]+))?(?:-(\w+))?(?:@(\d+))?(?:\*(\d+))?", method
    )
    if match is None:
        raise ValueError(f"there is no method {method!r}")
    kind, order, features, selection, threshold, word, passes, models = match.groups()
    options: dict[str, Any] = {"order": order if order == "auto" else int(order), "memory": MEMORY}
    options |= {"hierarchical": kind == "hs" and not features, "feature_selection": bool(features)}
    if selection:
        options["selection"] = selection
    if threshold:
        options["threshold"] = float(threshold)
    options |= WORDS[word] if word else {}
    if passes:
        options |= {"passes": int(passes), "early_stop": False}
    if models:
        options["n_models"] = int(models)
    return ALRClassifier(**options)


#: Last parts of names: how weights begin, whether steps are scaled.
WORDS: dict[str, dict[str, Any]] = {
    "plain": {"start": "zero", "preconditioner": False},
    "zero": {"start": "zero"},
    "generative": {"start": "generative"},
    "l2": {"l2": "auto"},
}


def _categories(kind: Any) -> Any:
    def chosen(X: pd.DataFrame) -> list[str]:
        return [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]

    return make_column_transformer((kind, chosen), remainder="passthrough", sparse_threshold=0)


def _ordinal() -> Any:
    return _categories(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))


def _forest() -> Any:
    return RandomForestClassifier(100, n_jobs=2, random_state=0)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


#: Methods without options in their names.
FIXED: dict[str, Callable[[], Any]] = {
    "NB": lambda: AnJEClassifier(order=1),
    **{f"A{n}JE": (lambda n=n: AnJEClassifier(order=n, memory=MEMORY)) for n in (2, 3, 4)},
    **{f"KDB{k}": (lambda k=k: KDBClassifier(k=k, selective=False, memory=MEMORY)) for k in (1, 2, 3)},
    **{f"SKDB{k}": (lambda k=k: KDBClassifier(k=k, memory=MEMORY)) for k in (1, 2, 3)},
    "SKDB": lambda: KDBClassifier(k=4, memory=MEMORY),
    "LR": lambda: make_pipeline(
        MDLDiscretizer(), OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300)
    ),
    "RF": lambda: make_pipeline(_ordinal(), _forest()),
    "RF-bins": lambda: make_pipeline(MDLDiscretizer(), _forest()),
    "LightGBM": lambda: make_pipeline(_ordinal(), _lightgbm()),
}
