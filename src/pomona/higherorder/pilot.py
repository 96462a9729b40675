"""Pilots: short training on a sample, from which step size, start, penalty, tuples and order are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pomona.higherorder.coded import CodedData, Rows
from pomona.higherorder.counts import TupleCounts
from pomona.higherorder.discriminative import Discriminative
from pomona.higherorder.judge import Judge, Verdict, best, climb, recursive, rmse
from pomona.higherorder.options import ALROptions

#: A pilot learns this share of the rows, or this many if that is more, in so many passes.
SHARE, LEAST_ROWS, PASSES = 0.25, 1 << 14, 2
#: Penalties that l2="auto" compares.
PENALTIES = (0.0, 1e-5, 1e-4, 1e-3)
#: Shares of the tuples that threshold="auto" compares.
SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1)
#: Step size without validation rows to choose it on.
DEFAULT_ETA = 0.01


@dataclass(frozen=True, slots=True)
class Plan:
    """How the parameters are to be learnt."""

    generative: bool
    eta: float
    l2: float = 0.0
    verdict: Verdict | None = None


class Pilots:
    """Tries plans on a sample of the training rows and judges them on the validation rows."""

    def __init__(self, data: CodedData, options: ALROptions, recode: Callable[[Rows], Rows] | None = None) -> None:
        self.options, self.width = options, data.width
        rows = data.sample(max(int(SHARE * len(data)), min(len(data), LEAST_ROWS)))
        cv = data.cv
        self.sample, self.cv = (rows, cv) if recode is None else (recode(rows), recode(cv))
        self.judge = Judge(self.cv, options.calibrate)

    def parameters(self, counts: TupleCounts, generative: bool) -> Discriminative:
        return Discriminative(counts, self.width, generative_start=generative, scaled=self.options.preconditioner)

    def train(self, learner: Discriminative, rows: Rows, eta: float, l2: float = 0.0) -> bool:
        """Short training from the beginning; False where the scores overflow."""
        learner.reset()
        for number in range(PASSES):
            if learner.learn(rows.blocks(np.random.default_rng([self.options.seed, number])), eta, l2) is None:
                return False
        return True

    def verdict(self, learner: Discriminative, eta: float, l2: float = 0.0) -> Verdict:
        if not self.train(learner, self.sample, eta, l2):
            return Verdict(1.0, float("inf"), n=len(self.judge))
        return self.judge.verdict(learner.scores(self.cv))

    # ---- step size and start ----
    def plans(self, counts: TupleCounts) -> list[Plan]:
        """Step size and penalty for each start that may be used, the best first."""
        starts = {"zero": [False], "generative": [True], "auto": [False, True]}[self.options.start]
        l2 = 0.0 if self.options.l2 == "auto" else self.options.l2
        if not len(self.judge):
            return [Plan(starts[0], self.options.learning_rate or DEFAULT_ETA, l2)]
        plans = [self._search(self.parameters(counts, generative), generative) for generative in starts]
        first = best({i: plan.verdict for i, plan in enumerate(plans) if plan.verdict is not None})
        plans = [plans[first], *plans[:first], *plans[first + 1 :]]
        if self.options.l2 == "auto":
            found = self._penalised(counts, plans[0])
            plans = [found, *[replace(plan, l2=found.l2) for plan in plans[1:]]]
        return plans

    def _search(self, learner: Discriminative, generative: bool) -> Plan:
        l2 = 0.0 if self.options.l2 == "auto" else self.options.l2
        eta = self.options.learning_rate
        if eta is None and self.options.line_search == "recursive":
            eta = self._recursive(learner, l2)
        if eta is not None:
            return Plan(generative, eta, l2, self.verdict(learner, eta, l2))
        eta, verdict = climb(lambda tried: self.verdict(learner, tried, l2))
        return Plan(generative, eta, l2, verdict)

    def _recursive(self, learner: Discriminative, l2: float) -> float:
        """As in the paper: learn on nine tenths of the validation rows, judge on the rest."""
        cut = len(self.cv) * 9 // 10
        train, test = self.cv.first(cut), self.cv.after(cut)

        def evaluate(eta: float) -> float:
            return rmse(learner.scores(test), test.labels) if self.train(learner, train, eta, l2) else float("inf")

        return recursive(evaluate)

    def _penalised(self, counts: TupleCounts, plan: Plan) -> Plan:
        learner = self.parameters(counts, plan.generative)
        verdicts = {l2: self.verdict(learner, plan.eta, l2) for l2 in PENALTIES}
        l2 = best(verdicts)
        return replace(plan, l2=l2, verdict=verdicts[l2])

    # ---- tuples ----
    def cv_scores(self, counts: TupleCounts, plan: Plan) -> NDArray[np.float64]:
        """CVScore of each tuple: the loss that validation rows gain when it is taken out of a pilot."""
        learner = self.parameters(counts, plan.generative)
        if not len(self.judge) or not self.train(learner, self.sample, plan.eta, plan.l2):
            return counts.mutual_information()
        return learner.drops(self.cv)

    def best_share(self, counts: TupleCounts, plan: Plan, scores: NDArray[np.float64]) -> list[int]:
        """The tuples with the highest scores, as many as do best on the validation rows."""
        order = np.argsort(-scores, kind="stable")
        choices = {max(1, round(share * len(order))): None for share in SHARES}
        verdicts = {}
        for n in choices:
            if not len(self.judge):
                return sorted(order.tolist())
            part = counts.take(sorted(order[:n].tolist()))
            learner = self.parameters(part, plan.generative)
            verdicts[n] = self.verdict(learner, rescaled(plan.eta, len(order), n), plan.l2)
        return sorted(order[: best(verdicts)].tolist())


def rescaled(eta: float, before: int, after: int) -> float:
    """Fewer tuples share the same score, so each makes longer steps."""
    return eta * before / after


def number_kept(threshold: float | int, total: int) -> int:
    """A share, or a number, of what there is; at least one."""
    wanted = threshold if isinstance(threshold, int) else round(threshold * total)
    return max(1, min(int(wanted), total))
