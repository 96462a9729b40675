"""The learners over tuples as pomona's families: alr, anje (naive Bayes at order 1) and kdb."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk, Source
from pomona.errors import OptionError
from pomona.higherorder.alr import ALRTrainer
from pomona.higherorder.coded import CodedData, chunk_codes, collect
from pomona.higherorder.counts import TupleCounts, count_tuples
from pomona.higherorder.discriminative import TupleModel, averaged, generative_model
from pomona.higherorder.judge import Judge, Verdict, best
from pomona.higherorder.kdb import fit_kdb
from pomona.higherorder.options import (
    MAX_AUTO_ORDER,
    ALROptions,
    AnJEOptions,
    KDBOptions,
    check_alr,
    check_order,
)
from pomona.higherorder.recode import Recode
from pomona.higherorder.tuples import TupleSet, all_tuples, row_cells, row_starts
from pomona.learner import State, Step
from pomona.task import Task

Report = Callable[[Step], None]
#: Strongest features whose names are kept in the model.
NAMED = 1000
#: Passes over the source before the first one that counts: cuts and levels are learnt in one.
SURVEY_PASSES = 1
S = TypeVar("S", bound="TupleLearner")


class TupleLearner:
    """Predicts by sums over tuples of coded attributes; what learns is in the subclasses."""

    family: ClassVar[str]
    holds_out: ClassVar[bool] = False
    #: Whether several models over other cuts may be averaged.
    averages: ClassVar[bool] = False

    def __init__(self, options: Any, task: Task | None = None) -> None:
        self.options, self._task = options, task
        #: The attributes of each model to be averaged.
        self._groups: list[list[int]] = []
        self._model: TupleModel | None = None
        self._recode: Recode | None = None
        self._top: list[dict[str, Any]] = []
        self._facts: dict[str, str] = {}

    @classmethod
    def from_options(cls: type[S], options: Any, task: Task, fields: list[str]) -> S:
        """A learner that has learnt nothing."""
        if task.kind == "regression":
            raise OptionError(f"the learner {cls.family} predicts classes, but the target is a quantity")
        learner = cls(options, task)
        learner._groups = getattr(fields, "groups", [])
        if len(learner._groups) > 1 and not cls.averages:
            raise OptionError(f"the learner {cls.family} is one model over one way to cut numbers: leave cuttings at 1")
        return learner

    @property
    def model(self) -> TupleModel:
        if self._model is None:
            raise OptionError("the learner has not learnt yet: call fit first")
        return self._model

    # ---- learning ----
    def fit(self, source: Source, report: Report) -> dict[str, Any]:
        """Code the rows in one pass over the source, then learn from the coded rows."""
        options, task = self.options, self._task
        assert task is not None
        with collect(source, len(task.classes), options.memory, options.seed, cv=self._needs_cv()) as data:
            report(Step(f"{len(data) + len(data.cv):,} rows coded, {len(data.cv):,} of them held out"))
            facts = self._learn(data, report)
            self._name_top(source.fields, task, data)
            examples = len(data) + len(data.cv)
            coded = data.passes
        self._facts = {"tuples": _tuple_words(self.model)}
        passes = {"passes": SURVEY_PASSES + 1 + coded, "source_passes": SURVEY_PASSES + 1, "coded_passes": coded}
        return {"examples": examples, **passes, "weights": int(self.model.weights.size), **facts}

    def _needs_cv(self) -> bool:
        return self.holds_out

    def _learn(self, data: CodedData, report: Report) -> dict[str, Any]:
        raise NotImplementedError

    # ---- predicting ----
    def predict(self, chunk: Chunk) -> NDArray[np.float64]:
        """Scores (n,) or (n, classes)."""
        codes = chunk_codes(chunk)
        return self.model.scores(codes if self._recode is None else self._recode.codes(codes))

    def finish(self, raw: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
        """Scores to probabilities."""
        if raw.ndim == 1:
            return np.asarray(0.5 * (1 + np.tanh(0.5 * raw)))
        e = np.exp(raw - raw.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    # ---- looking inside ----
    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        return {"facts": self._facts, "top": self._top[:top], "parameters": self.model.n_parameters}

    def _name_top(self, fields: Any, task: Task, data: CodedData) -> None:
        """The features that move scores most, in words: |weight| times the deviation of the feature."""
        model = self.model
        weights = model.weights[1:].astype(np.float64)
        if weights.shape[1] > 1:
            weights = weights - weights.mean(axis=1, keepdims=True)
        if not len(weights):
            return
        rows = np.zeros(len(weights) + 1, np.int64)
        sample = data.sample(20_000)
        for codes, _ in sample.blocks():
            known = codes if self._recode is None else self._recode.codes(codes)
            rows += np.bincount(model.index.rows(known).reshape(-1), minlength=len(rows))
        share = rows[1:] / max(len(sample), 1)
        scale = np.sqrt(share * (1 - share))
        strength = np.abs(weights).max(axis=1) * scale
        places = (
            heapq.nlargest(NAMED, range(len(strength)), key=strength.__getitem__)
            if len(strength) < 1 << 16
            else (np.argpartition(-strength, NAMED)[:NAMED].tolist())
        )
        places.sort(key=lambda place: -strength[place])
        places = [place for place in places if strength[place] > 0]
        names = _names(model, self._recode, fields, [place + 1 for place in places])
        self._top = [
            _entry(name, weights[place], float(scale[place]), task) for name, place in zip(names, places, strict=True)
        ]

    # ---- files ----
    def state(self) -> State:
        model = self.model
        order = model.tuples.order
        members = np.full((len(model.tuples), order), -1, np.int32)
        for i, t in enumerate(model.tuples.members):
            members[i, : len(t)] = t
        arrays = {
            "members": members,
            "sizes": model.tuples.sizes,
            "bits": np.ascontiguousarray(model.index.words["bits"]),
            "weights": model.weights,
            "bias": model.bias,
        }
        if self._recode is not None:
            recode = self._recode
            arrays |= {"recode": recode.table, "recode_starts": recode.starts, "recode_sizes": recode.sizes}
        return State({"n_classes": model.n_classes, "top": self._top, "facts": self._facts}, arrays)

    @classmethod
    def from_state(cls: type[S], state: State) -> S:
        arrays, learner = state.arrays, cls(None)
        members = [tuple(int(a) for a in row if a >= 0) for row in arrays["members"]]
        tuples = TupleSet(members, np.ascontiguousarray(arrays["sizes"]))
        if any(a >= len(tuples.sizes) for t in members for a in t):
            raise ValueError("a tuple names an attribute that is not there")
        index = tuples.index(bits=np.ascontiguousarray(arrays["bits"]))
        weights, bias = np.ascontiguousarray(arrays["weights"]), np.ascontiguousarray(arrays["bias"])
        if weights.shape != (index.n_rows + 1, len(bias)):
            raise ValueError(f"{index.n_rows} features need as many rows of weights, got {len(weights) - 1}")
        learner._model = TupleModel(tuples, index, weights, bias, int(state.header["n_classes"]))
        if "recode" in arrays:
            learner._recode = Recode(arrays["recode"], arrays["recode_starts"], arrays["recode_sizes"])
        learner._top, learner._facts = state.header["top"], state.header["facts"]
        return learner


class ALRLearner(TupleLearner):
    """ALR^n, sALR^n, hsALR^n and hsALR^n(*)."""

    family = "alr"
    holds_out = averages = True

    @classmethod
    def from_options(cls, options: ALROptions, task: Task, fields: list[str]) -> ALRLearner:
        check_alr(options)
        learner = super().from_options(options, task, fields)
        if options.feature_selection and len(learner._groups) > 1:
            raise OptionError(
                "several models are averaged over tuples: leave feature_selection (--select-features) out,"
                " or ask for one"
            )
        return learner

    def _learn(self, data: CodedData, report: Report) -> dict[str, Any]:
        if len(self._groups) > 1:
            return self._average(data, report)
        outcome = ALRTrainer(data, self.options, report).run()
        self._model, self._recode = outcome.model, outcome.recode
        return outcome.facts

    def _average(self, data: CodedData, report: Report) -> dict[str, Any]:
        """One model after the other, each over its own cuts; the mean of their scores is one model again."""
        groups = self._groups
        models: list[TupleModel] = []
        facts: dict[str, Any] = {}
        for number, columns in enumerate(groups, start=1):
            report(Step(f"model {number} of {len(groups)}"))
            part = data.only(columns)
            outcome = ALRTrainer(part, self.options, _share(report, number - 1, len(groups))).run()
            data.passes += part.passes
            models.append(outcome.model)
            facts = facts or outcome.facts
        judge = Judge(data.cv, self.options.calibrate)
        model = averaged(models, groups, data.sizes)
        verdict = judge.verdict(model.scores_of(data.cv))
        self._model = model.scaled(verdict.factor)
        held = {"held_out": verdict.loss, "held_out_error": verdict.error} if verdict.n else {}
        size = {"tuples": len(model.tuples), "features_kept": model.index.n_rows, "parameters": model.n_parameters}
        return {**facts, **size, **held, "models": len(models)}


class AnJELearner(TupleLearner):
    """Averaged n-join estimators."""

    family = "anje"

    @classmethod
    def from_options(cls, options: AnJEOptions, task: Task, fields: list[str]) -> AnJELearner:
        check_order(options.order)
        return super().from_options(options, task, fields)

    def _needs_cv(self) -> bool:
        return bool(self.options.order == "auto")

    def _learn(self, data: CodedData, report: Report) -> dict[str, Any]:
        if self.options.order != "auto":
            counts = self._count(data, int(self.options.order))
        else:
            counts = self._best(data, report)
        self._model = generative_model(counts, data.width)
        return {"order": counts.tuples.order, "parameters": self._model.n_parameters}

    def _count(self, data: CodedData, order: int) -> TupleCounts:
        tuples = TupleSet(all_tuples(data.width, order), data.sizes)
        return count_tuples(tuples, data.blocks, data.class_counts(), self.options.memory)

    def _best(self, data: CodedData, report: Report) -> TupleCounts:
        """The order with the least error on the validation rows, rising while it falls."""
        judge = Judge(data.cv)
        verdicts: dict[int, Verdict] = {}
        found: dict[int, TupleCounts] = {}
        for order in range(1, min(MAX_AUTO_ORDER, max(data.width, 1)) + 1):
            found[order] = self._count(data, order)
            verdicts[order] = judge.verdict(generative_model(found[order], data.width).scores_of(data.cv))
            report(Step(f"order {order}: error {verdicts[order].error:.4f}", held_out=verdicts[order].loss))
            if order > 1 and verdicts[order].error >= verdicts[order - 1].error:
                break
        return found[best(verdicts)]


class KDBLearner(TupleLearner):
    """KDB and selective KDB."""

    family = "kdb"

    @classmethod
    def from_options(cls, options: KDBOptions, task: Task, fields: list[str]) -> KDBLearner:
        if not 0 <= options.k <= 7:
            raise OptionError(f"k must be 0 to 7; got {options.k}")
        return super().from_options(options, task, fields)

    def _learn(self, data: CodedData, report: Report) -> dict[str, Any]:
        self._model, facts = fit_kdb(data, self.options, report)
        return facts


def _share(report: Report, done: int, total: int) -> Report:
    """Reports of one of several trainings as parts of the whole."""

    def passed_on(step: Step) -> None:
        report(step if step.fraction is None else replace(step, fraction=(done + step.fraction) / total))

    return passed_on


def _tuple_words(model: TupleModel) -> str:
    tuples = model.tuples
    features = f"{model.index.n_rows:,} features, {model.n_parameters:,} parameters"
    return f"{len(tuples):,} of order {tuples.order}, {features}"


def _names(model: TupleModel, recode: Recode | None, fields: Any, rows: list[int]) -> list[str]:
    """Features in words: the levels of their attributes."""
    starts, cells = row_starts(model.index), row_cells(model.index, rows)
    names = []
    for row, cell in zip(rows, cells, strict=True):
        t = int(np.searchsorted(starts, row, side="right")) - 1
        left, parts = cell - int(model.index.starts[t]), []
        for attribute in model.tuples.members[t]:
            left, code = divmod(left, int(model.tuples.sizes[attribute]))
            if recode is not None:
                code = recode.old_code(attribute, code)
            known = hasattr(fields, "level")
            parts.append(fields.level(attribute, code) if known else f"{fields[attribute]} #{code}")
        names.append(" × ".join(parts))
    return names


def _entry(name: str, weights: NDArray[np.float64], scale: float, task: Task) -> dict[str, Any]:
    if len(weights) == 1:
        return {"feature": name, "weight": float(weights[0]), "scale": scale}
    k = int(np.abs(weights).argmax())
    found = {"feature": name, "class": task.classes[k], "weight": float(weights[k]), "scale": scale}
    return {**found, "weights": weights.tolist()}
