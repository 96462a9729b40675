"""The methods of the paper's experiment, and what a run of each will cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.onehot import features_per_row

ALPHAS = (0.125, 0.25, 0.5, 0.75, 1.0)
EPOCHS = 6
BASELINES = ("lin", "quad", "cubic")


def reach(known: Any) -> Any:
    """|w| times the scale times the root of the number of examples that had the feature.

    A weight is known to about one over that root, so a rare feature needs a larger weight to be chosen before a
    frequent one, and the products of a frequent feature have more to learn from.
    """
    size = np.abs(known.weight).reshape(len(known.scale), -1).sum(axis=1)
    return size * known.scale * np.sqrt(known.count)


#: Our expansions by their heuristic for parents; "apple" is the paper's.
HEURISTICS: dict[str, Any] = {
    "apple": "weight",
    "ssm": "ssm",
    "scaled": "scaled",
    "evidence": "evidence",
    "reach": reach,
    "default": "auto",
}
#: As in the paper: equal epochs, and all weights learn together. The others leave that to pomona.
PAPER = ("apple", "ssm")
AS_PUBLISHED = {"schedule": "equal", "products": "joint"}
#: What a user gets who asks for nothing: pomona's own encoding of the columns.
DEFAULT = "default"
INTERACTIONS = {"lin": "linear", "quad": "quadratic", "cubic": "cubic"}
PEER = "vw-apple"
PEER_BASELINES = ("vw-lin", "vw-quad", "vw-cubic")


@dataclass(frozen=True)
class Method:
    """What learns, and with how many parents where it expands."""

    name: str
    alpha: float | None = None

    @property
    def label(self) -> str:
        return self.name if self.alpha is None else f"{self.name}({self.alpha:g})"

    @property
    def by_peer(self) -> bool:
        return self.name.startswith("vw-")

    @property
    def base(self) -> str:
        """lin, quad, cubic or apple: what decides about the cost."""
        name = self.name.removeprefix("vw-")
        return name if name in BASELINES else "apple"

    def options(self) -> dict[str, Any]:
        """For pomona's ``LearnOptions``."""
        if self.base != "apple":
            return {"interactions": INTERACTIONS[self.base]}
        options = {"learner": "apple", "alpha": self.alpha, "heuristic": HEURISTICS[self.name], "epochs": EPOCHS}
        return {**options, **AS_PUBLISHED} if self.name in (*PAPER, PEER) else options

    def peer_options(self, rows: int) -> str:
        """For the command line of Vowpal Wabbit; its cubic alone would leave degree 2 out."""
        if self.base != "apple":
            return {"lin": "", "quad": " -q ::", "cubic": " -q :: --cubic :::"}[self.base]
        return (
            f" --stage_poly --sched_exponent {self.alpha:g} --batch_sz {math.ceil(rows / EPOCHS)}"
            " --batch_sz_no_doubling"
        )


def all_methods(peer: bool, alphas: tuple[float, ...] = ALPHAS) -> list[Method]:
    """Everything that is compared, the cheap baselines first."""
    methods = [Method(name) for name in BASELINES]
    methods += [Method(name, alpha) for name in HEURISTICS for alpha in alphas]
    if peer:
        methods += [Method(name) for name in PEER_BASELINES] + [Method(PEER, alpha) for alpha in alphas]
    return methods


#: Features a second, pessimistic: a cell is judged by them before it is run.
RATES = {"lin": 20e6, "quad": 60e6, "cubic": 40e6, "apple": 40e6}
PEER_RATES = {"lin": 15e6, "quad": 60e6, "cubic": 40e6, "apple": 8e6}


def generated(method: Method, X: sparse.csr_matrix) -> float:
    """Mean number of features of a row; for an expansion the most there can be, all parents in every row."""
    if method.base != "apple":
        return features_per_row(X, INTERACTIONS[method.base])
    k = np.diff(X.indptr).astype(np.float64)
    parents = max(1.0, float(k.mean())) ** (method.alpha or 0.0)
    # Parents grow by s^alpha a round: (0 + 1 + … + 5) / 6 = 2.5 of that in the mean.
    return float(np.mean(1 + k * (1 + (EPOCHS - 1) / 2 * parents)))


#: Products of more columns than this do not fit a cache: every one of them is a wait for memory.
WIDE = {"lin": 1 << 20, "quad": 1 << 11, "cubic": 1 << 8, "apple": 1 << 16}
WIDE_FACTOR = 5.0


def seconds_a_row(method: Method, X: sparse.csr_matrix) -> float:
    """What a row costs at the pessimistic rates."""
    rates = PEER_RATES if method.by_peer else RATES
    wide = X.shape[1] > WIDE[method.base]
    return generated(method, X) / rates[method.base] * (WIDE_FACTOR if wide else 1.0)
