"""The scikit-learn face of pomona; the only place that imports scikit-learn."""

from pomona.estimators.apple import AppleClassifier, AppleRegressor
from pomona.estimators.classifier import OnlineClassifier
from pomona.estimators.regressor import OnlineRegressor

__all__ = ["AppleClassifier", "AppleRegressor", "OnlineClassifier", "OnlineRegressor"]
