"""Algorithms 1, 2 and 3 of Agarwal et al. (2014), written out in plain NumPy from the pseudocode.

X is n × d, Y is n × k, W is d × k (the paper's Wᵀ). A ridge is added where the paper has none; 0 turns it off.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def softmax(U):
    out = np.empty_like(U)
    for i, u in enumerate(U):
        e = np.exp(u - u.max())
        out[i] = e / e.sum()
    return out


def logistic_loss(X, Y, W, ridge=0.0):
    """Eq. 13 for the softmax link, averaged (eq. 15), plus the penalty."""
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        u = x @ W
        total += np.log(np.exp(u - u.max()).sum()) + u.max() - y @ u
    return total / len(X) + ridge / 2 * (W**2).sum()


def algorithm_1(X, Y, g, L, steps, W=None, ridge=0.0, offset=0.0):
    """Generalized least squares, eq. 14: the weights after each step."""
    n, d = X.shape
    W = np.zeros((d, Y.shape[1])) if W is None else W
    Sigma = X.T @ X / n
    path = []
    for _ in range(steps):
        residual = (g(X @ W + offset) - Y).T @ X / n
        W = W - np.linalg.inv(L * Sigma + ridge * np.eye(d)) @ (residual.T + ridge * W)
        path.append(W)
    return path


def accelerated(X, Y, g, L, steps, ridge=0.0):
    """Algorithm 1 with Nesterov's momentum in the metric of Σ (section 4), begun anew when it points uphill."""
    n, d = X.shape
    W = V = np.zeros((d, Y.shape[1]))
    M = L * X.T @ X / n + ridge * np.eye(d)
    t, path = 1, []
    for _ in range(steps):
        gradient = X.T @ (g(X @ V) - Y) / n + ridge * V
        new = V - np.linalg.solve(M, gradient)
        t = 1 if (gradient * (new - W)).sum() > 0 else t + 1
        V = new + (t - 1) / (t + 2) * (new - W)
        W = new
        path.append(W)
    return path


def project(v):
    """The nearest point of the simplex, as a quadratic program."""
    start = np.full(len(v), 1 / len(v))
    sums = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones_like(p)}
    answer = minimize(
        lambda p: ((p - v) ** 2).sum(),
        start,
        jac=lambda p: 2 * (p - v),
        bounds=[(0, None)] * len(v),
        constraints=[sums],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert answer.success, answer.message
    return answer.x


def project_sorted(v):
    """The nearest point of the simplex, by trying every number of elements above zero."""
    best, distance = None, np.inf
    order = np.argsort(-v)
    for r in range(1, len(v) + 1):
        p = np.zeros(len(v))
        p[order[:r]] = v[order[:r]] - (v[order[:r]].sum() - 1) / r
        if (p >= 0).all() and ((p - v) ** 2).sum() < distance:
            best, distance = p, ((p - v) ** 2).sum()
    return best


def algorithm_2(X, Y, functions, rounds, clip, ridge=0.0):
    """Calibrated least squares, eq. 18 and 19: the rounds' weights, and predictions after each half round."""
    n, d = X.shape
    predictions = np.zeros_like(Y)
    weights, path = [], []
    for _ in range(rounds):
        W = np.linalg.solve(X.T @ X / n + ridge * np.eye(d), X.T @ (Y - predictions) / n)
        fitted = predictions + X @ W
        G = np.concatenate([function(fitted) for function in functions], axis=1)
        C = np.linalg.lstsq(G, Y, rcond=None)[0]
        predictions = np.array([clip(row) for row in G @ C])
        weights.append((W, C))
        path += [fitted, predictions]
    return weights, path


def algorithm_3(blocks, Y, inner, ridge):
    """Stagewise regression over blocks of features: predictions after each stage."""
    n = len(Y)
    predictions = np.zeros_like(Y)
    path = []
    for Z in blocks:
        extra = [predictions] if inner == "calibrated" else []
        A = np.concatenate([Z, *extra, np.ones((n, 1))], axis=1)
        penalty = ridge * np.eye(A.shape[1])
        penalty[-1, -1] = 0.0
        W = np.linalg.solve(A.T @ A / n + penalty, A.T @ (Y - predictions) / n)
        predictions = predictions + A @ W
        path.append(predictions)
    return path
