"""scikit-learn's own checks, without a single expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pomona import OnlineClassifier, OnlineRegressor

VARIANTS = [{}, {"interactions": "quadratic"}, {"numeric": "raw"}, {"bits": 18}]
OTHERS = [{"multiclass": "ovr"}, {"loss": "hinge"}, {"update": "adagrad"}, {"numeric": "onehot+standard"}]


@parametrize_with_checks(
    [kind(**options) for kind in (OnlineClassifier, OnlineRegressor) for options in VARIANTS]
    + [OnlineClassifier(**options) for options in OTHERS]
    + [OnlineRegressor(loss="quantile")]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_every_parameter_is_checked(kind):
    from sklearn.utils.estimator_checks import check_param_validation

    check_param_validation(kind.__name__, kind())
