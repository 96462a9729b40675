"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from pomona import ALRClassifier, AnJEClassifier, KDBClassifier, MDLDiscretizer

ESTIMATORS = [
    ALRClassifier(),
    ALRClassifier(order=1, start="zero", calibrate=False),
    ALRClassifier(selection="mi", hierarchical=True, threshold=0.9),
    AnJEClassifier(),
    KDBClassifier(),
    MDLDiscretizer(),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
