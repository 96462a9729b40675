"""With the peer's order of rescaling, the learner follows Vowpal Wabbit's progressive loss on the same stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pomona.online.learner import OnlineLearner
from pomona.online.parameters import OnlineParameters
from pomona.source import open_source

vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit is not installed: pip install vowpalwabbit")
pytestmark = pytest.mark.peer

LOSSES = {
    "squared": ("value", "--loss_function squared"),
    "logistic": ("sign", "--loss_function logistic"),
    "hinge": ("sign", "--loss_function hinge"),
    "quantile": ("value", "--loss_function quantile --quantile_tau 0.3"),
    "poisson": ("count", "--loss_function poisson"),
}
#: The peer's options, and how near the losses must be: it hashes some products to one slot, we do not.
EXPANSIONS = {"linear": ("", 1e-3), "quadratic": (" -q ::", 1e-2)}
N_EXAMPLES = 3000
N_FEATURES = 40


def write_stream(path: Path, kind: str, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sparse rows with values from 0.5 to 1; returns the labels and the weights.

    Scales grow all along, but not by so much that the peer's order makes predictions explode: after that the
    smallest difference of rounding grows without bound, in its own builds too.
    """
    rng = np.random.default_rng(5)
    truth = rng.standard_normal(N_FEATURES)
    lines, labels, weights = [], [], []
    for _ in range(N_EXAMPLES):
        present = np.sort(rng.choice(N_FEATURES, rng.integers(3, 12), replace=False))
        values = np.round(rng.uniform(0.5, 1, len(present)), 5)
        score = float(truth[present] @ values) / 3 + 0.5 * rng.standard_normal()
        labels.append({
            "value": round(score, 5),
            "sign": 1 if score > 0 else -1,
            "count": int(rng.poisson(np.exp(np.clip(score, -2, 1.5)))),
        }[kind])  # fmt: skip
        weights.append(float(rng.choice([0.5, 1.0, 2.5])) if weighted else 1.0)
        features = " ".join(f"f{f}:{x}" for f, x in zip(present, values, strict=True))
        lines.append(f"{labels[-1]} {weights[-1]} | {features}\n")
    path.write_text("".join(lines))
    return np.array(labels, np.float64), np.array(weights)


def peer_loss(path: Path, arguments: str) -> float:
    workspace = vowpalwabbit.Workspace(f"-d {path} --quiet -b 22 {arguments}")
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()
    workspace.finish()
    return float(loss)


def own_loss(path: Path, parameters: OnlineParameters) -> float:
    source = open_source(path)
    learner = OnlineLearner(parameters, source.fields)
    for chunk in source.chunks():
        learner.learn(chunk, np.asarray(chunk.labels, np.float64))
    loss, weight = learner.loss_sums
    return loss / weight


def as_deviance(loss: float, labels: np.ndarray, weights: np.ndarray) -> float:
    """The peer reports the Poisson deviance: 2 (y log y - y) more than twice the loss that both minimise."""
    saturated = labels * np.log(labels + 1e-6) - labels
    return 2 * (loss + float(np.average(saturated, weights=weights)))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_progressive_loss_follows_the_peer(loss: str, expansion: str, weighted: bool, tmp_path: Path) -> None:
    kind, arguments = LOSSES[loss]
    path = tmp_path / "stream.vw"
    labels, weights = write_stream(path, kind, weighted)
    options, tolerance = EXPANSIONS[expansion]
    expected = peer_loss(path, arguments + options)
    bounded = loss in ("squared", "quantile", "hinge")
    parameters = OnlineParameters(loss=loss, quantile=0.3, interactions=(expansion,), peer_order=True, bounded=bounded)
    own = own_loss(path, parameters)
    if loss == "poisson":
        own = as_deviance(own, labels, weights)
    assert own == pytest.approx(expected, rel=tolerance)
