"""scikit-learn's own checks, without a single expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from pomona import CalibratedLSClassifier, GLSClassifier, StagewiseClassifier, StagewiseRegressor

ESTIMATORS = [
    GLSClassifier(),
    GLSClassifier(link="identity", fit_intercept=False),
    GLSClassifier(accelerate=False),
    CalibratedLSClassifier(),
    StagewiseClassifier(),
    StagewiseClassifier(inner="logistic", block_size=32, n_stages=3),
    StagewiseClassifier(inner="calibrated", generator="sample"),
    StagewiseClassifier(generator="gradient", n_models=2),
    StagewiseClassifier(generator="logits", generator_options={"pca": 2, "standardize": True}, n_stages=2),
    StagewiseRegressor(),
    StagewiseRegressor(generator="polynomials", inner="calibrated", n_stages=3),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator", [GLSClassifier(), CalibratedLSClassifier(), StagewiseClassifier(), StagewiseRegressor()]
)
def test_every_parameter_is_checked(estimator):
    check_param_validation(type(estimator).__name__, estimator)
