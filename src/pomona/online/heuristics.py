"""Which monomials deserve to be multiplied: scores by which apple chooses its parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from pomona.errors import OptionError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a heuristic may look at: one entry a monomial.

    ``h`` below is the weight of an example, ``m`` the value of the monomial and ``r`` the derivative of the loss by the
    prediction; sums run over the examples of the current epoch. All after ``degree`` are zero for heuristics that do
    not look at them (a function of one's own may).
    """

    #: Weights of the features as they are in the data: (n,), or (n, outputs).
    weight: Floats
    #: Largest magnitude of the feature.
    scale: Floats
    degree: NDArray[np.int64]
    #: Sum of squared gradients since the feature first appeared, of the feature divided by its scale, over all outputs.
    evidence: Floats
    #: Examples of this epoch that had the feature.
    count: Floats
    #: Sum of h m^2.
    moment: Floats
    #: Sum of h r^2 m^2.
    error_moment: Floats
    #: Sum of h r m, by output: (n, outputs).
    gradient: Floats

    @classmethod
    def joined(cls, parts: Sequence[Statistics]) -> Statistics:
        """Statistics of the monomials of all parts."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})


Heuristic = Callable[[Statistics], Floats]


def by_weight(known: Statistics) -> Floats:
    """Magnitude of the weight, summed over the outputs: Algorithm 1 of the paper."""
    size = np.abs(known.weight)
    return size if size.ndim == 1 else size.sum(axis=1)


def by_scaled_weight(known: Statistics) -> Floats:
    """Magnitude of the weight times the scale of the feature: what it can do to a prediction."""
    return by_weight(known) * known.scale


def by_evidence(known: Statistics) -> Floats:
    """Scaled weight times the root of its evidence: what a feature can do, and how sure it is.

    With adaptive steps a weight moves by about 1 / sqrt(evidence) at a time, so this counts by how many steps it
    has moved in one direction. A rare feature, whose few steps are large, no longer comes before a frequent one.
    """
    sure = np.sqrt(known.evidence) if known.evidence.any() else 1.0  # plain steps keep no sums
    return by_scaled_weight(known) * sure


def by_ssm(known: Statistics) -> Floats:
    """E[r^2 m^2] / E[m^2], the rule of Sanger, Sutton and Matheus (1992)."""
    return _ratio(known.error_moment, known.moment)


def by_trial_fit(known: Statistics) -> Floats:
    """Weight of the least-squares fit of the derivative by the monomial alone."""
    return _ratio(np.abs(known.gradient).sum(axis=1), known.moment)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


@dataclass(frozen=True, slots=True)
class Rule:
    """How parents are chosen and, for the picky ones, which of their products join the features."""

    parents: Heuristic
    #: Score of a product on trial; None: all products take part at once.
    trial: Heuristic | None = None
    #: Whether sums of squared gradients, and sums over the epoch, are looked at.
    evidence: bool = False
    moments: bool = False
    #: Whether the score of a monomial depends on its own statistics alone.
    by_itself: bool = True
    #: The name by which the core computes the score of ``parents``; None: it does not.
    core: str | None = None


RULES = {
    "weight": Rule(by_weight, core="weight"),
    "scaled": Rule(by_scaled_weight, core="scaled"),
    "evidence": Rule(by_evidence, evidence=True, core="evidence"),
    "ssm": Rule(by_ssm, moments=True),
    "picky-weight": Rule(by_weight, by_trial_fit, moments=True, core="weight"),
    "picky-ssm": Rule(by_ssm, by_ssm, moments=True),
}


def rule_of(heuristic: str | Heuristic) -> Rule:
    """The rule of this name, or one made of a function of one's own."""
    if callable(heuristic):
        return Rule(heuristic, evidence=True, moments=True, by_itself=False)
    if heuristic not in RULES:
        raise OptionError(
            f"the heuristic must be one of {', '.join(RULES)}, or a function of the statistics; got {heuristic!r}"
        )
    return RULES[heuristic]
