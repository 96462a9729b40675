"""apple: adaptive polynomial expansion (Agarwal, Beygelzimer, Hsu, Langford and Telgarsky, 2014)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk
from pomona.errors import OptionError
from pomona.learner import State
from pomona.online.epochs import early_epochs, equal_epochs
from pomona.online.heuristics import Statistics, rule_of
from pomona.online.learner import OnlineLearner
from pomona.online.parameters import AppleParameters, OnlineParameters
from pomona.online.parents import ROOT, Parents
from pomona.online.products import PIECE, AppleTables
from pomona.online.ranking import TINY, highest, without
from pomona.online.tables import taken
from pomona.options import LearnOptions
from pomona.task import Task

#: Where the number of examples is not known, rounds take place after this many and then whenever it has doubled.
FIRST_ROUND = 1000
#: How parents are chosen where products learn what the base features leave: that is little, so what is sure counts.
RESIDUAL_RULE = "evidence"
#: In rows of more features, unless they are of text, the products of what is frequent would take too long.
LONGEST_ROW, LONGEST_TEXT = 50, 1 << 30
#: Base features are many and rare where so many times as many have appeared as an example has.
RARE = 32
#: What a round may add to an example, unless it is said how many parents a round makes: examples of up to 128 features
#: get all products of two.
MOST_PRODUCTS = 1 << 14
#: Rounds to come in a stream of unknown size, for a guess of how many products there will be.
LIKELY_ROUNDS = 5


class AppleLearner(OnlineLearner):
    """Marks the monomials that matter as parents while it learns, and multiplies them with the base features.

    The features are the base features and all x_i m with m a parent, one feature a monomial whatever the path to it. At
    the end of an epoch the s^alpha monomials with the best score that are no parents yet become parents, s being the
    mean number of base features of an example (Algorithm 1). The cost of an example depends on its features and on the
    parents that it has, never on all parents.

    Products learn together with the base features, all weights following the error of the whole prediction, or they
    learn what the base features leave, which go on as if they were alone. The latter suits words and other features
    that are many and rare: products of these are mostly chance, and would take from the base features what these can
    learn from every example.

    Parameters
    ----------
    parameters : the choices of the online learner.
    apple : how features grow.
    fields : names of the fields (namespaces, columns).
    """

    family: ClassVar[str] = "apple"
    hashing: ClassVar[int] = 3

    def __init__(
        self, parameters: OnlineParameters, fields: Sequence[str] = (), apple: AppleParameters | None = None
    ) -> None:
        self.apple = apple or AppleParameters()
        self.rule = rule_of(self.apple.heuristic) if self.apple.heuristic is not None else None
        self.parents = Parents(parameters.squares)
        #: Numbers of examples after which a round takes place; None: at doubling numbers.
        self.schedule: list[int] | None = None
        self.planned = False
        self._expandable = np.zeros(0, np.bool_)
        self._field_marks = np.zeros(0, np.uint8)
        super().__init__(parameters, fields)
        self._model.residual = self.apple.products == "residual"

    def _new_tables(self) -> AppleTables:
        picky = self.rule is not None and self.rule.trial is not None
        return AppleTables(self.parameters, self.apple.bits, picky, self.rule is not None and self.rule.moments)

    @property
    def uses_fields(self) -> bool:
        return bool(self.apple.expand)

    def plan(self, schedule: Sequence[int] | None) -> None:
        """Fix the numbers of examples after which rounds take place; None: doubling, for streams of unknown size."""
        self.planned = True
        self.schedule = None if schedule is None else sorted(schedule)
        self._set_pause()

    def freeze(self) -> None:
        """No more rounds."""
        self.plan([])

    # ---- learning ----
    def learn(
        self, chunk: Chunk, labels: NDArray[np.float64], order: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Learn the examples in order; rounds take place between them, by the schedule."""
        chunk = self._rows(chunk, grow=True)
        if self.apple.expand:
            self._note_expandable(chunk)
        return super().learn(chunk, labels, order)

    def _grow(self, n_rows: int) -> None:
        tables = self.grown
        tables.products_used = int(self.parents.describe().used)
        before = len(tables.slots[0]), tables.block
        tables.grow_for(self.parents, n_rows)
        if (len(tables.slots[0]), tables.block) == before and tables.block == 0 and not tables.hashed[1]:
            tables.grow_keys(self.parents)
        self._point()

    def _pause(self) -> None:
        """End of an epoch: choose parents (Algorithm 1, lines 6 and 7)."""
        tables = self.grown
        tables.products_used = int(self.parents.describe().used)
        if self.rule is not None:
            mean = self._model.nonzeros / self._model.examples
            size = self._new_parents(mean)
            rows = self._begin(mean, size) if not len(self.parents) else 0
            chosen = self._choose(size)
            if self.rule.trial is not None:
                self._join(size)
            self.parents.add(chosen)
            tables.grow_blocks(self.parents, rows)
            tables.forget_moments()
            tables.may_prune = True
        self._point()
        self._set_pause()

    def _new_parents(self, mean: float) -> int:
        """How many parents a round makes."""
        alpha = self.apple.alpha
        size = min(mean, MOST_PRODUCTS / max(mean, 1.0)) if isinstance(alpha, str) else mean**alpha
        return max(1, math.floor(size))

    def _begin(self, mean: float, size: int) -> int:
        """The first round: what rests on the features that have appeared. How many rows they take."""
        rows, count, rare = self.grown.rows_appeared(), 0, False
        for start in range(0, rows, PIECE):
            count += len(self.grown.appeared(0, start, start + PIECE))
            if rare := count > RARE * mean:  # enough: there may be millions
                break
        self._adapt(rare, mean)
        if rare:
            rounds = LIKELY_ROUNDS if self.schedule is None else len(self.schedule)
            self.grown.leave_blocks(self.parents, rows, size * rounds)
        return rows

    def _adapt(self, rare: bool, mean: float) -> None:
        """What is left to find out of how products learn, and by which rule parents are chosen."""
        if self.apple.products == "auto":
            self._model.residual = rare
        if self.apple.adapts:
            learns_rest = self._model.residual and mean <= self.apple.adapts
            heuristic = RESIDUAL_RULE if learns_rest else self.apple.heuristic
            self.apple = replace(self.apple, heuristic=heuristic, adapts=0)
            self.rule = rule_of(heuristic)

    def _choose(self, size: int) -> list[tuple[int, int]]:
        """The links of the new parents, the best first."""
        assert self.rule is not None
        fallback = self.apple.fallback
        if self.rule.core and not (fallback or self.apple.expand or self.parameters.regularized):
            return self._choose_by_core(size, self.rule.core)
        wanted = size - 1 if fallback else size
        best: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        least = TINY
        for numbers, statistics in self._candidates(in_pieces=self.rule.by_itself and not fallback):
            # In single precision, so that what is equal but for the last bits of sums ties.
            scores = np.asarray(self.rule.parents(statistics), np.float32)
            if scores.shape != (len(numbers),):
                raise OptionError(
                    f"the heuristic must give one score a monomial: {len(numbers)}; got shape {scores.shape}"
                )
            top, least = highest(scores, wanted, least)
            best.append((numbers[top], scores[top]))
        best_numbers, their_scores = (np.concatenate(parts) for parts in zip(*best, strict=True))
        chosen = self._ranked(_pairs(self._links(best_numbers)), their_scores)[:wanted]
        if fallback and len(chosen) < len(numbers):  # all of them: there was one piece
            chosen.append(self._simplest(self._links(numbers), statistics.degree, scores, chosen))
        return chosen

    def _choose_by_core(self, size: int, score: str) -> list[tuple[int, int]]:
        """The same where the core can score the candidates: one call a table."""
        if self.apple.most_factors < 2:
            return []
        tables, parents = self.grown, self.parents
        complete = parents.degrees + 1 >= self.apple.most_factors
        rows, at = _native.best_slots(self._model, 0, score, size, np.sort(parents.single_rows()), None)
        places, there = _native.best_slots(self._model, 1, score, size, tables.places_of(parents), complete)
        links = [(ROOT, row) for row in rows.tolist()]
        links += zip(*(numbers.tolist() for numbers in tables.products_at(places)), strict=True)
        return self._ranked(links, np.concatenate([at, there]))[:size]

    def _candidates(self, in_pieces: bool) -> Iterator[tuple[NDArray[np.int64], Statistics]]:
        """Monomials that may become parents, as numbers of the slots of both tables, and what is known of them.

        In pieces, which stay in a near cache, or all at once.
        """
        sizes = [len(slots) for slots in self.grown.slots]
        excluded = [np.sort(self.parents.single_rows()), self.grown.places_of(self.parents)]
        ranges = [(t, i, i + PIECE) for t, size in enumerate(sizes) for i in range(0, max(size, 1), PIECE)]
        pieces = (self._piece(t, start, stop, excluded[t]) for t, start, stop in ranges)
        if in_pieces:
            yield from pieces
            return
        numbers, statistics = zip(*pieces, strict=True)
        yield np.concatenate(numbers), Statistics.joined(statistics)

    def _piece(
        self, table: int, start: int, stop: int, excluded: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Statistics]:
        """The candidates in these slots of a table."""
        first, last = np.searchsorted(excluded, (start, stop))
        places = without(self.grown.appeared(table, start, stop), excluded[first:last])
        if table == 0 and self.apple.expand:
            places = places[places < len(self._expandable)]
            places = places[self._expandable[places]]
        degree = np.broadcast_to(1, len(places))
        if table == 1:
            degree = self.parents.degrees[self.grown.parents_at(places)] + 1
        low = degree < self.apple.most_factors
        if not low.all():
            places, degree = places[low], degree[low]
        return places + table * len(self.grown.slots[0]), self._statistics(table, places, degree)

    def _links(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Parent and row of candidates."""
        links = np.stack([np.full(len(numbers), ROOT), numbers], 1)
        products = numbers >= len(self.grown.slots[0])
        links[products] = np.stack(self.grown.products_at(numbers[products] - len(self.grown.slots[0])), 1)
        return links

    def _statistics(self, table: int, places: NDArray[np.int64], degree: NDArray[np.int64]) -> Statistics:
        """What is known of the features in these slots of a table."""
        assert self.rule is not None
        w, s = self.weights_of(table, places)
        if table == 1 and self._model.residual:
            w = w / _native.PRODUCT_SHARE  # as if they counted in full
        inverse = np.where(s > 0, s, 1.0) if self.parameters.normalized else np.ones(len(s))
        nothing = np.broadcast_to(0.0, (len(places), 3 + self.parameters.n_outputs))
        sums = taken(self.grown.moments[table], places) if self.grown.keeps_moments else nothing
        return Statistics(
            weight=w * inverse.reshape([-1] + [1] * (w.ndim - 1)),
            scale=1 / inverse,
            degree=degree,
            evidence=self.grown.evidence(table, places) if self.rule.evidence else nothing[:, 0],
            count=sums[:, 2],
            moment=sums[:, 0],
            error_moment=sums[:, 1],
            gradient=sums[:, 3:],
        )

    def _ranked(self, links: list[tuple[int, int]], scores: NDArray[np.float32]) -> list[tuple[int, int]]:
        """Links by falling score; of equal ones those of lower degree come first, then of smaller rows."""
        monomials = [self.parents.product(*link) for link in links]
        ranks = zip((-scores).tolist(), map(len, monomials), monomials, links, strict=True)
        return [link for *_, link in sorted(ranks)]

    def _simplest(
        self,
        links: NDArray[np.int64],
        degree: NDArray[np.int64],
        scores: NDArray[np.float32],
        chosen: list[tuple[int, int]],
    ) -> tuple[int, int]:
        """The fall-back rule of section 2.4: a monomial of the smallest degree that is left."""
        gone = set(chosen)
        left = np.array([link not in gone for link in _pairs(links)], np.bool_)
        left &= degree == degree[left].min()
        finite = np.where(scores > 0, scores, 0.0)
        left &= finite == finite[left].max()
        return min(_pairs(links[left]), key=lambda link: self.parents.product(*link))

    def _join(self, size: int) -> None:
        """Of the products on trial, those with the best score become features."""
        tables = self.grown
        assert self.rule is not None and self.rule.trial is not None and tables.joined is not None
        slots = np.flatnonzero((tables.moments[1][:, 2] > 0) & (tables.joined == 0))
        links = np.stack(tables.products_at(slots), 1)
        known = self._statistics(1, slots, self.parents.degrees[links[:, 0]] + 1)
        scores = np.asarray(self.rule.trial(known), np.float32)
        top, _ = highest(scores, size)
        slot_of = dict(zip(_pairs(links[top]), slots[top], strict=True))
        best = self._ranked(_pairs(links[top]), scores[top])[:size]
        tables.joined[[slot_of[link] for link in best]] = 1

    def _most_rows(self, width: int) -> int:
        # Weights are shared, but rows tell which products an example has: those of features that it lacks cost time.
        own = self.grown.may_wrap and width <= _native.ColumnRows.WIDEST
        return width if own else super()._most_rows(width)

    # ---- the kernel's view ----
    @property
    def grown(self) -> AppleTables:
        """The tables, those of products included."""
        assert isinstance(self.tables, AppleTables)
        return self.tables

    def _configure(self) -> None:
        super()._configure()
        self._point()

    def _point(self) -> None:
        self.grown.describe_parents(self._model, self.parents)
        struct = self.parents.describe()
        if self.apple.expand:
            marks = [name in self.apple.expand for name in self.fields]
            if len(marks) != len(self._field_marks):
                self._field_marks = np.array(marks, np.uint8)
            struct.fields, struct.n_fields = self._field_marks.ctypes.data, len(self._field_marks)

    def _set_pause(self) -> None:
        done = self._model.examples
        if self.schedule is None:
            self._model.pause_at = FIRST_ROUND * 2 ** max(0, math.floor(math.log2(max(done, 1) / FIRST_ROUND)) + 1)
        else:
            self._model.pause_at = next((t for t in self.schedule if t > done), 0)

    def _struct(self, chunk: Chunk, labels: NDArray[np.float64] | None) -> _native.ChunkStruct:
        if self.apple.expand:
            self._point()  # namespaces may have come
        return super()._struct(chunk, labels)

    def _note_expandable(self, chunk: RowChunk) -> None:
        """Mark the rows whose field takes part: only they may become parents."""
        names = np.array([name in self.apple.expand for name in self.fields], np.bool_)
        rows = chunk.indices
        fields = chunk.fields if chunk.fields is not None else rows if self.n_columns else np.zeros(len(rows), np.int64)
        wanted = rows[(fields < len(names)) & names[np.minimum(fields, len(names) - 1)]] if len(names) else rows[:0]
        if len(wanted) and int(wanted.max()) >= len(self._expandable):
            grown = np.zeros(max(int(wanted.max()) + 1, 2 * len(self._expandable)), np.bool_)
            grown[: len(self._expandable)] = self._expandable
            self._expandable = grown
        self._expandable[wanted] = True

    @property
    def _id_bits(self) -> int | None:
        return self.apple.bits

    # ---- looking inside ----
    @property
    def product_gain(self) -> float:
        return float(self._model.product_gain) if self._model.residual else 1.0

    @property
    def gentle_tables(self) -> int:
        return min(super().gentle_tables, 1)  # products appear late, and small at first

    def factors_at(self, table: int, slots: list[int]) -> dict[int, tuple[int, ...]]:
        """The rows of the features whose product stands in each of these slots."""
        if table == 0:
            return {slot: (slot,) for slot in slots}
        owners, rows = self.grown.products_at(np.array(slots, np.int64))
        products = [self.parents.product(*link) for link in zip(owners.tolist(), rows.tolist(), strict=True)]
        return dict(zip(slots, products, strict=True))

    def degrees_of(self, tables: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of factors of the features in these slots of these tables."""
        degrees = np.ones(len(slots), np.int64)
        products = tables == 1
        if products.any():
            degrees[products] += self.parents.degrees[self.grown.products_at(slots[products])[0]]
        return degrees

    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        """How full the tables are, how the features grew, and the strongest of them."""
        report = super().inspect(task, top)
        degrees = np.bincount(self.parents.degrees, minlength=1)[1:].tolist() if len(self.parents) else []
        by_degree = ", ".join(f"{count:,} of degree {i + 1}" for i, count in enumerate(degrees) if count)
        rounds = self.parents.rounds[-1] + 1 if len(self.parents) else 0
        words = f"{len(self.parents):,} chosen in {rounds} rounds" + (f": {by_degree}" if by_degree else "")
        if self._model.residual:
            share = self.product_gain * _native.PRODUCT_SHARE
            words += f"; products learn what the other features leave, and count {share:.0%}"
        return {**report, "parents": degrees, "facts": {**report["facts"], "parents": words}}

    # ---- state ----
    def state(self) -> State:
        """Everything that is needed to go on from here, or to predict, elsewhere."""
        state, tables = super().state(), self.grown
        header = {
            **state.header,
            "apple": self.apple.header(),
            "parents": self.parents.header(),
            "schedule": None if self.schedule is None else list(self.schedule),
            "nonzeros": int(self._model.nonzeros),
            "residual": bool(self._model.residual),
            "block": tables.block,
            "may_prune": tables.may_prune,
            "homes": tables.homes,
        }
        arrays = dict(state.arrays)
        if tables.block == 0:
            taken = np.flatnonzero(tables.owners_known())
            arrays |= {"taken": taken, "owners": tables.owners[taken]}
        if tables.keeps_moments:
            arrays |= {f"moments{i}": sums for i, sums in enumerate(tables.moments)}
        if tables.joined is not None:
            arrays["joined"] = np.flatnonzero(tables.joined)
        if self.apple.expand:
            arrays["expandable"] = np.flatnonzero(self._expandable)
        return State(header, arrays)

    @classmethod
    def _new(cls, header: dict[str, Any]) -> AppleLearner:
        apple = AppleParameters(**{**header["apple"], "expand": tuple(header["apple"]["expand"])})
        if apple.adapts is True:  # an earlier build, which did so with text alone
            apple = replace(apple, adapts=LONGEST_TEXT)
        return cls(OnlineParameters.from_header(header["parameters"]), header["fields"], apple)

    @classmethod
    def from_state(cls, state: State) -> AppleLearner:
        """The learner that :meth:`state` described."""
        learner, header, arrays = super().from_state(state), state.header, state.arrays
        assert isinstance(learner, AppleLearner)
        tables = learner.grown
        learner.parents = Parents.from_header(header["parents"], learner.parameters.squares)
        learner._model.nonzeros = header["nonzeros"]
        learner._model.residual = header.get("residual", False)
        tables.block = header["block"]
        tables.may_prune = header.get("may_prune", True)
        tables.check_size(len(learner.parents))
        if tables.block == 0:
            # The core follows these numbers without a look: a file may hold anything.
            if len(arrays["owners"]) and int(arrays["owners"][:, 0].max()) >= len(learner.parents):
                raise ValueError("a product belongs to a parent that does not exist")
            tables.owners = np.zeros((len(tables.slots[1]), 2), np.uint32)
            tables.owners[arrays["taken"]] = arrays["owners"]
            tables.products_used = len(arrays["taken"])
        if tables.keeps_moments:
            tables.moments = [arrays[f"moments{i}"].copy() for i in (0, 1)]
        if tables.joined is not None:
            tables.joined = np.zeros(len(tables.slots[1]), np.uint8)
            tables.joined[arrays["joined"]] = 1
        if learner.apple.expand:
            learner._expandable = np.zeros(int(arrays["expandable"].max(initial=-1)) + 1, np.bool_)
            learner._expandable[arrays["expandable"]] = True
        if tables.block == 0 and not tables.hashed[1] and header.get("homes", 1) != tables.homes:
            tables.find_again(learner.parents)
        learner._point()
        learner.plan(header["schedule"])
        return learner


def _pairs(links: NDArray[np.int64]) -> list[tuple[int, int]]:
    return [(parent, row) for parent, row in links.tolist()]


def new_learner(
    parameters: OnlineParameters, fields: Sequence[str], options: LearnOptions, numeric: str | None, text: bool
) -> OnlineLearner:
    """The learner that the options ask for.

    ``numeric`` is the encoding of numbers, None for sparse features; ``text``: whether there are columns of text.
    """
    if options.learner == "apple":
        longest = LONGEST_TEXT if text else LONGEST_ROW if numeric is None else 0
        adapts = longest if options.heuristic == "auto" else 0
        if options.heuristic == "auto":
            # The weight of a number depends on its unit. Beside hat functions, which have none, plain weights would
            # leave the numbers themselves out.
            options = replace(options, heuristic="scaled")
        # Rows are numbered, not hashed: a feature that may be multiplied must be known.
        return AppleLearner(replace(parameters, bits=None), fields, AppleParameters.from_options(options, adapts))
    return OnlineLearner(parameters, fields)


def plan_rounds(learner: OnlineLearner, options: LearnOptions, examples: int | None) -> None:
    """Fix when the features of an apple learner grow, once and for all.

    ``examples`` is the number in one pass; None: not known, so that rounds take place at doubling numbers.
    """
    if not isinstance(learner, AppleLearner) or learner.planned:
        return
    if options.rounds is not None:
        learner.plan(options.rounds)
    elif examples is not None:
        passes = options.passes if options.grow == "all" else 1
        early = options.passes == 1 if options.schedule == "auto" else options.schedule == "early"
        epochs = early_epochs if early else equal_epochs
        learner.plan(epochs(examples * passes, options.epochs))
    else:
        learner.plan(None)
