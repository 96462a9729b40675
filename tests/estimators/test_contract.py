"""scikit-learn's own checks, without a single expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pomona import AppleClassifier, AppleRegressor, OnlineClassifier, OnlineRegressor

VARIANTS = [{}, {"interactions": "quadratic"}, {"numeric": "raw"}, {"bits": 18}]
APPLES = [{}, {"heuristic": "ssm", "numeric": "raw", "bits": 12}]
OTHERS = [{"multiclass": "ovr"}, {"loss": "hinge"}, {"update": "adagrad"}, {"numeric": "onehot+standard"}]


@parametrize_with_checks(
    [kind(**options) for kind in (OnlineClassifier, OnlineRegressor) for options in VARIANTS]
    + [OnlineClassifier(**options) for options in OTHERS]
    + [OnlineRegressor(loss="quantile")]
    + [kind(**options) for kind in (AppleClassifier, AppleRegressor) for options in APPLES]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor, AppleClassifier, AppleRegressor])
def test_every_parameter_is_checked(kind):
    from sklearn.utils.estimator_checks import check_param_validation

    check_param_validation(kind.__name__, kind())
