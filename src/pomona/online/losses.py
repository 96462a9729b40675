"""Losses of many predictions at once, for held-out examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pomona.online.parameters import OnlineParameters


def losses(parameters: OnlineParameters, raw: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The loss of each raw prediction, as the kernel counts it (native/loss.h)."""
    if parameters.loss == "softmax":
        known = labels < raw.shape[1]
        top = raw.max(axis=1)
        total = np.log(np.exp(raw - top[:, None]).sum(axis=1)) + top
        picked = raw[np.arange(len(raw)), np.where(known, labels, 0).astype(np.int64)]
        return np.asarray(total - np.where(known, picked, -50.0))
    if raw.ndim == 2:
        signs = np.where(np.arange(raw.shape[1]) == labels[:, None], 1.0, -1.0)
        return np.asarray(_single(parameters, raw, signs).sum(axis=1))
    return _single(parameters, raw, labels)


def _single(parameters: OnlineParameters, p: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    tau = parameters.quantile
    if parameters.loss == "squared":
        return np.asarray((p - y) ** 2)
    if parameters.loss == "logistic":
        return np.logaddexp(0.0, -y * p)
    if parameters.loss == "hinge":
        return np.maximum(0.0, 1.0 - y * p)
    if parameters.loss == "quantile":
        return np.where(y > p, tau * (y - p), (1 - tau) * (p - y))
    return np.asarray(np.exp(p) - y * p)
