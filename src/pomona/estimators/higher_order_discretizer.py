"""Supervised discretisation as a scikit-learn transformer."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pomona.estimators import inputs
from pomona.estimators.higher_order_base import DISCRETIZE, dense
from pomona.estimators.shared import PomonaEstimator
from pomona.higherorder.attributes import UNSEEN
from pomona.higherorder.coded import chunk_codes
from pomona.higherorder.coder import AttributeCoder
from pomona.options import EncodeOptions, ReadOptions


class MDLDiscretizer(OneToOneFeatureMixin, TransformerMixin, PomonaEstimator):
    """Columns to small whole numbers: bins for numbers, levels for categories.

    Numbers are cut where the class entropy of the two sides is least, and each side again, as long as the gain pays for
    the description of the cut (Fayyad and Irani, 1993).

    Parameters
    ----------
    method : {"mdl", "frequency"}, default="mdl"
        Cuts by that rule, or into ``bins`` of equal frequency.
    bins : int or None, default=None
        Bins of equal frequency; None: 10.
    categorical : list of str or int, optional
        Columns (names or numbers) that hold categories though their type is numeric.

    Attributes
    ----------
    cuts_ : list of ndarray or None
        Rising cuts of each column; bin i holds the values above ``cuts[i-1]`` up to ``cuts[i]``. None for categories.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a frame with names.

    Examples
    --------
    >>> import numpy as np
    >>> from pomona import MDLDiscretizer
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = (X[:, 0] >= 10) & (X[:, 0] < 30)
    >>> binned = MDLDiscretizer().fit(X, y)
    >>> [cuts.tolist() for cuts in binned.cuts_]
    [[9.5, 29.5]]
    >>> binned.transform([[3.0], [12.0], [np.nan]]).tolist()
    [[0], [1], [3]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(set(DISCRETIZE))],
        "bins": [Interval(Integral, 2, None, closed="left"), None],
        "categorical": ["array-like", None],
    }

    def __init__(self, *, method: str = "mdl", bins: int | None = None, categorical: Any = None) -> None:
        self.method = method
        self.bins = bins
        self.categorical = categorical

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> MDLDiscretizer:
        """Learn cuts and levels.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
        """
        if hasattr(X, "tocsr"):
            dense(self, X, reset=True)
        X, y = inputs.checked_pair(self, X, y, reset=True, numeric=False)
        check_classification_targets(y)
        _, codes = np.unique(y, return_inverse=True)
        names = self._names()
        read = ReadOptions(categorical=inputs.column_names(self.categorical, names, "categorical"))
        bins = None if self.bins is None else int(self.bins)
        encode = EncodeOptions(numeric=DISCRETIZE[self.method], bins=bins)
        table = inputs.table_of(X, names)
        self.coder_ = AttributeCoder.fit(table, read, encode, labels=codes.astype(np.int32), every_column=True)
        self.cuts_ = [getattr(attribute, "cuts", None) for attribute in self.coder_.attributes]
        return self

    def transform(self, X: Any) -> NDArray[np.int64]:
        """Bins and levels.

        Parameters
        ----------
        X : as in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            From 0; missing values come after the last bin or level, and categories never seen are -1.
        """
        check_is_fitted(self, "coder_")
        rows = dense(self, X, reset=False)
        coder: Any = self.coder_
        parts = [chunk_codes(chunk) for chunk in inputs.chunks_of(rows, self._names(), coder)]
        codes = np.concatenate(parts)
        return np.where(codes == UNSEEN, -1, codes.astype(np.int64))
