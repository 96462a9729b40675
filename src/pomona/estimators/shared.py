"""What every estimator of pomona can do."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from pomona.source.arrays import ColumnNames


class PomonaEstimator(BaseEstimator):
    """Base of all estimators; not for direct use."""

    random_state: Any

    def _seed(self) -> int:
        """``random_state`` as a whole number; anything but a number gives another one every time."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _names(self) -> Sequence[str]:
        """Names of the columns of X: its own, or x0, x1 …"""
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return ColumnNames(self.n_features_in_)
