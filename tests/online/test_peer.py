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
#: The peer's options for the same monomials.
EXPANSIONS = {"linear": "", "quadratic": " -q ::"}
#: How values are drawn. Normal values make scales grow by much and often, and the peer's predictions explode now and
#: then: it rescales after predicting.
STREAMS = {
    "mild": lambda rng, n: rng.uniform(0.5, 1, n),
    "normal": lambda rng, n: rng.standard_normal(n),
}
#: From here on the square of the gradient of the Poisson loss, (e^p - y)^2, does not fit the peer's 32 bits: the sums
#: of squared gradients of all features of the example become infinite, and their weights never move again.
OVERFLOW = 0.5 * np.log(np.finfo(np.float32).max)
N_EXAMPLES = 3000
N_FEATURES = 40


def write_stream(path: Path, values: str, kind: str, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sparse rows; returns the labels and the weights."""
    rng = np.random.default_rng(6)
    truth = rng.standard_normal(N_FEATURES)
    lines, labels, weights = [], [], []
    for _ in range(N_EXAMPLES):
        present = np.sort(rng.choice(N_FEATURES, rng.integers(3, 12), replace=False))
        x = np.round(STREAMS[values](rng, len(present)), 5)
        score = float(truth[present] @ x) / 3 + 0.5 * rng.standard_normal()
        labels.append({
            "value": round(score, 5),
            "sign": 1 if score > 0 else -1,
            "count": int(rng.poisson(np.exp(np.clip(score, -2, 1.5)))),
        }[kind])  # fmt: skip
        weights.append(float(rng.choice([0.5, 1.0, 2.5])) if weighted else 1.0)
        features = " ".join(f"f{f}:{v}" for f, v in zip(present, x, strict=True))
        lines.append(f"{labels[-1]} {weights[-1]} | {features}\n")
    path.write_text("".join(lines))
    return np.array(labels, np.float64), np.array(weights)


def run_peer(path: Path, arguments: str) -> tuple[float, np.ndarray]:
    """Progressive loss and predictions; 24 bits are enough for it to give each product a slot of its own."""
    predictions = path.with_suffix(".predictions")
    workspace = vowpalwabbit.Workspace(f"-d {path} --quiet -b 24 -p {predictions} {arguments}")
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()
    workspace.finish()
    return float(loss), np.loadtxt(predictions)


def run_own(path: Path, parameters: OnlineParameters) -> tuple[float, np.ndarray]:
    source = open_source(path)
    learner = OnlineLearner(parameters, source.fields)
    chunks = list(source.chunks())
    predictions = [learner.learn(chunk, np.asarray(chunk.labels, np.float64)) for chunk in chunks]
    loss, weight = learner.loss_sums
    return loss / weight, np.concatenate(predictions)


def as_deviance(loss: float, labels: np.ndarray, weights: np.ndarray) -> float:
    """The peer reports the Poisson deviance: 2 (y log y - y) more than twice the loss that both minimise."""
    saturated = labels * np.log(labels + 1e-6) - labels
    return 2 * (loss + float(np.average(saturated, weights=weights)))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("values", STREAMS)
@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_follows_the_peer(loss: str, expansion: str, values: str, weighted: bool, tmp_path: Path) -> None:
    """The same progressive loss, and each prediction, up to rounding."""
    kind, arguments = LOSSES[loss]
    path = tmp_path / "stream.vw"
    labels, weights = write_stream(path, values, kind, weighted)
    expected, peer = run_peer(path, arguments + EXPANSIONS[expansion])
    bounded = loss in ("squared", "quantile", "hinge")
    parameters = OnlineParameters(
        loss=loss, quantile=0.3, interactions=(expansion,), peer_order=True, gentle=False, bounded=bounded
    )
    own_loss, own = run_own(path, parameters)
    overflows = np.flatnonzero(np.abs(peer) > OVERFLOW) if loss == "poisson" else []
    if len(overflows):
        assert values == "normal"
        peer, own = peer[: overflows[0] + 1], own[: overflows[0] + 1]
    else:
        own_loss = as_deviance(own_loss, labels, weights) if loss == "poisson" else own_loss
        assert own_loss == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(own, peer, rtol=1e-2, atol=1e-2)


def test_follows_the_peer_as_the_poisson_loss_explodes(tmp_path: Path) -> None:
    """At a lower rate predictions stay in the peer's range, though the loss is hundreds of times that of a constant."""
    path = tmp_path / "stream.vw"
    labels, weights = write_stream(path, "normal", "count", False)
    expected, peer = run_peer(path, "--loss_function poisson -q :: -l 0.1")
    parameters = OnlineParameters(
        loss="poisson", interactions=("quadratic",), peer_order=True, gentle=False, learning_rate=0.1
    )
    own_loss, own = run_own(path, parameters)
    assert np.abs(peer).max() < OVERFLOW and expected > 100
    assert as_deviance(own_loss, labels, weights) == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(own, peer, rtol=1e-2, atol=1e-2)
