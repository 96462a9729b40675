"""ALR^n and its selective forms: sALR^n (Algorithm 1), hsALR^n (Algorithm 3) and hsALR^n(*) (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona._native.tuples import Codes, Labels
from pomona.errors import NumericError, OptionError
from pomona.higherorder.coded import CodedData
from pomona.higherorder.counts import FEATURE_BYTES, TupleCounts, count_tuples, joined
from pomona.higherorder.discriminative import Discriminative, TupleModel, generative_model
from pomona.higherorder.judge import Judge, Verdict, best
from pomona.higherorder.options import MAX_AUTO_ORDER, ALROptions
from pomona.higherorder.pilot import Pilots, Plan, number_kept, rescaled
from pomona.higherorder.recode import Recode
from pomona.higherorder.tuples import TupleSet, all_tuples, grown
from pomona.learner import Step

Report = Callable[[Step], None]
Weights = tuple[NDArray[np.float32], NDArray[np.float32]]
#: Shares kept below the top level where the threshold is to be found: of tuples, and of features.
LOWER_SHARE, FEATURE_SHARE = 0.8, 0.1
#: passes="auto" stops after so many passes without gain, and never makes more than the limit.
PATIENCE, MOST_PASSES = 2, 20
#: First passes, in which all plans are tried side by side.
DUEL_PASSES = 1


@dataclass
class Outcome:
    """A trained model and what there is to say about its training."""

    model: TupleModel
    recode: Recode | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Chosen:
    """Features to learn, and how."""

    counts: TupleCounts
    #: One for each start that may be used, the one that did best on the sample first, and others worth a try.
    plans: list[Plan]
    recode: Recode | None = None


class ALRTrainer:
    """One training of ALR^n on coded data."""

    def __init__(self, data: CodedData, options: ALROptions, report: Report) -> None:
        self.data, self.options, self.report = data, options, report
        self.class_counts = data.class_counts()
        self.pilots: Pilots | None = None

    def run(self) -> Outcome:
        chosen = self._features() if self.options.feature_selection else self._tuples()
        learner, plan, weights, verdicts, number = self._passes(chosen)
        model = learner.model(weights)
        verdict = verdicts[number]
        if self.options.calibrate:
            model = model.scaled(verdict.factor)
        facts = {
            "order": chosen.counts.tuples.order,
            "tuples": len(chosen.counts.tuples),
            "features_kept": model.index.n_rows,
            "parameters": model.n_parameters,
            "start": "generative" if plan.generative else "zero",
            "learning_rate": plan.eta,
            "l2": plan.l2,
            "discriminative_passes": len(verdicts),
            "pass_kept": number,
            "loss_name": "logistic",
            "held_out": verdict.loss if verdict.n else None,
            "held_out_error": verdict.error if verdict.n else None,
        }
        return Outcome(model, chosen.recode, facts)

    # ---- which features ----
    def _blocks(self) -> Iterator[tuple[Codes, Labels]]:
        return self.data.blocks()

    def _count(self, tuples: TupleSet, lower: TupleCounts | None = None, recode: Recode | None = None) -> TupleCounts:
        blocks = self._blocks if recode is None else lambda: recode.blocks(self.data.blocks())
        counts = count_tuples(
            tuples, blocks, self.class_counts, self.options.memory, lower=lower, min_count=self.options.min_count
        )
        words = f"order {tuples.order}: {len(tuples):,} tuples, {counts.index.n_rows:,} features counted"
        self.report(Step(words))
        return counts

    def _tuples(self) -> _Chosen:
        self.pilots = Pilots(self.data, self.options)
        if self.options.hierarchical:
            return self._levels()
        order = self.options.order
        counts = self._best_order() if order == "auto" else self._count_order(order)
        return self._selected(counts, self.options.threshold)

    def _count_order(self, order: int) -> TupleCounts:
        return self._count(TupleSet(all_tuples(self.data.width, order), self.data.sizes))

    def _best_order(self) -> TupleCounts:
        """Orders rise while AnJE gains on the validation rows (section 5.1.1); among those, pilots of ALR decide."""
        assert self.pilots is not None
        judge, found = self.pilots.judge, {}
        verdicts: dict[int, Verdict] = {}
        last: Verdict | None = None
        for order in range(1, min(MAX_AUTO_ORDER, self.data.width) + 1):
            try:
                counts = self._count_order(order)
            except OptionError:
                if order == 1:
                    raise
                break  # beyond the memory limit
            found[order] = counts
            if not len(judge):
                break
            generative = judge.verdict(generative_model(counts, self.data.width).scores_of(judge.cv))
            if last is not None and generative.error >= last.error:
                break
            last = generative
            verdicts[order] = self.pilots.plans(counts)[0].verdict or generative
        return found[best(verdicts) if verdicts else min(found)]

    def _selected(self, counts: TupleCounts, threshold: float | int | str) -> _Chosen:
        """Doing tuple selection; nothing is counted again, for the counts of what is kept are there."""
        assert self.pilots is not None
        plans = self.pilots.plans(counts)
        total = len(counts.tuples)
        if self.options.selection == "none" or total <= 1:
            return _Chosen(counts, plans)
        # A generative start hides what a tuple has learnt, so tuples are judged from zero where that is allowed.
        judged = next((plan for plan in plans if not plan.generative), plans[0])
        scores = self._scores(counts, judged)
        if threshold == "auto":
            places = self.pilots.best_share(counts, judged, scores)
        else:
            order = np.argsort(-scores, kind="stable")
            assert not isinstance(threshold, str)
            places = sorted(order[: number_kept(threshold, total)].tolist())
        self.report(Step(f"{len(places):,} of {total:,} tuples selected by {self.options.selection}"))
        kept = counts if len(places) == total else counts.take(places)
        if kept is counts:
            return _Chosen(kept, plans)
        longer = [replace(plan, eta=rescaled(plan.eta, total, len(places))) for plan in plans]
        # How much longer steps may be shows with all the data only: half of it is tried too.
        return _Chosen(kept, [*longer, *[replace(plan, eta=plan.eta / 2) for plan in longer if not plan.generative]])

    def _scores(self, counts: TupleCounts, plan: Plan) -> NDArray[np.float64]:
        assert self.pilots is not None
        if self.options.selection == "mi":
            return counts.mutual_information()
        return self.pilots.cv_scores(counts, plan)

    def _levels(self) -> _Chosen:
        """Bottom-up: pairs of all attributes, then tuples whose parts were selected; no selection among attributes."""
        order = min(int(self.options.order), self.data.width)
        members = all_tuples(self.data.width, min(2, order))
        lower = self.options.threshold if self.options.threshold != "auto" else LOWER_SHARE
        while True:
            counts = self._count(TupleSet(members, self.data.sizes))
            level = counts.tuples.order
            if level >= order:
                return self._selected(counts, self.options.threshold)
            kept = self._selected(counts, lower).counts.tuples.members
            members = grown(kept, self.data.width)
            if not members:
                raise OptionError(
                    f"no tuple of order {level + 1} has all its parts among the {len(kept)} selected at order {level}:"
                    " raise threshold, or lower order"
                )

    # ---- single features ----
    def _features(self) -> _Chosen:
        """hsALR^n(*): levels of attributes first, then combinations of kept features.

        Features of all orders go into the model: a row whose rare levels were left out still has its common ones.
        """
        threshold = FEATURE_SHARE if self.options.threshold == "auto" else self.options.threshold
        order = min(int(self.options.order), self.data.width)
        single = self._count(TupleSet(all_tuples(self.data.width, 1), self.data.sizes))
        kept = self._kept_features(single, threshold)
        if order == 1:
            self.pilots = Pilots(self.data, self.options)
            return _Chosen(kept, self.pilots.plans(kept))
        recode = Recode.keeping(kept)
        self.pilots = Pilots(self.data, self.options, recode.rows)
        levels = [recode.recoded(kept)]
        while len(levels) < order:
            members = grown(levels[-1].tuples.members, len(recode.sizes))
            counts = self._count(TupleSet(members, recode.sizes), levels[-1], recode)
            levels.append(self._kept_features(counts, threshold))
        every = joined(levels)
        return _Chosen(every, self.pilots.plans(every), recode)

    def _kept_features(self, counts: TupleCounts, threshold: float | int) -> TupleCounts:
        """The features that add most to the mutual information of their tuples."""
        total = counts.index.n_rows
        n = number_kept(threshold, total)
        information = np.abs(counts.feature_information())
        information[0] = -1
        wanted = np.zeros(len(information), np.bool_)
        wanted[np.argsort(-information, kind="stable")[:n]] = True
        self.report(Step(f"order {counts.tuples.order}: {n:,} of {total:,} features kept"))
        return counts.keep(wanted)

    # ---- passes ----
    def _passes(self, chosen: _Chosen) -> tuple[Discriminative, Plan, Weights, dict[int, Verdict], int]:
        """Discriminative passes; the weights of the pass that did best on the validation rows.

        Which plan is better shows with all the data only: the first pass teaches all, and the best one goes on.
        """
        recode = chosen.recode
        cv = self.data.cv if recode is None else recode.rows(self.data.cv)
        judge = Judge(cv, self.options.calibrate)
        runs = [_Run(self._parameters(chosen.counts, plan), plan) for plan in self._affordable(chosen)]
        limit = MOST_PASSES if self.options.passes == "auto" else int(self.options.passes)
        patience = PATIENCE if self.options.passes == "auto" else limit
        verdicts: dict[int, Verdict] = {}
        kept, plan, kept_number, number = runs[0].learner.weights(), runs[0].plan, 0, 0
        while number < limit:
            number += 1
            blocks = self.data.blocks(np.random.default_rng([self.options.seed, 77, number]))
            for block in blocks if recode is None else recode.blocks(blocks):
                for run in runs:
                    run.learn(block)
            found = {i: judge.verdict(run.learner.scores(cv)) for i, run in enumerate(runs)} if len(judge) else {}
            first = best(found) if found else 0
            if number >= min(DUEL_PASSES, limit) or not found:
                runs, found, first = [runs[first]], {0: found[first]} if found else {}, 0
            verdicts[number] = found[first] if found else Verdict(0.0, float(-number))
            held_out = verdicts[number].loss if found else None
            loss = [run.mean_loss() for run in runs][first]
            self.report(Step(f"pass {number}: progressive", loss, held_out, number / limit))
            if not self.options.early_stop or best(verdicts) == number:
                kept, plan, kept_number = runs[first].learner.weights(), runs[first].plan, number
            elif number - kept_number >= patience:
                break
        return runs[0].learner, plan, kept, verdicts, kept_number

    def _affordable(self, chosen: _Chosen) -> list[Plan]:
        """As many plans as there is memory for, and one where there is no way to judge them."""
        needed = FEATURE_BYTES * max(len(self.class_counts), 3) * max(chosen.counts.index.n_rows, 1)
        many = self.options.memory // needed if len(self.data.cv) else 1
        return chosen.plans[: max(int(many), 1)]

    def _parameters(self, counts: TupleCounts, plan: Plan) -> Discriminative:
        return Discriminative(
            counts, self.data.width, generative_start=plan.generative, scaled=self.options.preconditioner
        )


@dataclass
class _Run:
    """One training, and its progressive loss in the running pass."""

    learner: Discriminative
    plan: Plan
    loss: float = 0.0
    n: int = 0

    def learn(self, block: tuple[Codes, Labels]) -> None:
        figures = self.learner.learn([block], self.plan.eta, self.plan.l2)
        if figures is None:
            raise NumericError(
                f"the scores overflowed with the step size {self.plan.eta:g}: give a smaller learning_rate"
            )
        self.loss += figures[0] * len(block[1])
        self.n += len(block[1])

    def mean_loss(self) -> float:
        """The progressive loss since the last call."""
        mean = self.loss / max(self.n, 1)
        self.loss, self.n = 0.0, 0
        return mean
