"""The choices of the online learner, checked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomona.errors import OptionError
from pomona.online.heuristics import Heuristic, rule_of
from pomona.options import LearnOptions
from pomona.task import Task

#: In the order of ``pm_loss``.
LOSSES = ("squared", "logistic", "hinge", "quantile", "poisson", "softmax")
#: When epochs of apple end, and how its products learn.
SCHEDULES = ("auto", "early", "equal")
PRODUCTS = ("auto", "joint", "residual")
UPDATES = ("adaptive", "adagrad", "sgd", "ftrl")
INTERACTIONS = ("linear", "quadratic", "cubic")
ALL_FIELDS, NO_FIELD = -1, -2


def degree_of(options: LearnOptions) -> int:
    """Largest number of factors in a feature, for choices that depend on it; apple counts as pairs."""
    return 2 if options.learner == "apple" else most_factors(options.interactions)


def most_factors(interactions: str | Sequence[str]) -> int:
    """Largest number of factors in a feature."""
    terms = (interactions,) if isinstance(interactions, str) else interactions
    named = {"linear": 1, "quadratic": 2, "cubic": 3}
    return max((named.get(term) or term.count("*") + 1 for term in terms), default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineParameters:
    """What fixes an online learner besides the data.

    ``adaptive``, ``normalized`` and ``invariant`` switch the three refinements of the update: a step size for each
    weight from its squared gradients, features scaled by their largest value, and steps that are right for
    any importance weight. With none of them the update is plain SGD with the step ``learning_rate / sqrt(t)``, or
    ``learning_rate / (l2 (t + 1))`` when there is an ``l2``.
    """

    loss: str = "logistic"
    n_outputs: int = 1
    adaptive: bool = True
    normalized: bool = True
    invariant: bool = True
    ftrl: bool = False
    learning_rate: float = 0.5
    l1: float = 0.0
    l2: float = 0.0
    quantile: float = 0.5
    ftrl_beta: float = 1.0
    interactions: tuple[str, ...] = ("linear",)
    squares: bool = True
    intercept: bool = True
    #: Clip predictions to the range of the labels seen so far.
    bounded: bool = False
    #: When a value is larger than all before, its weight follows the scale half of the way; False: in full, as in
    #: Vowpal Wabbit.
    gentle: bool = True
    #: Rescale weights after predicting, as Vowpal Wabbit does; for comparisons with it.
    peer_order: bool = False
    bits: int | None = None
    memory: int = 1 << 30
    float64: bool = False

    @classmethod
    def from_options(cls, options: LearnOptions, task: Task) -> OnlineParameters:
        """Check the options of a user and fill in what follows from the task."""
        check(options)
        loss = options.loss or ("squared" if task.kind == "regression" else "logistic")
        if task.kind != "regression" and loss in ("quantile", "poisson"):
            raise OptionError(f"the loss {loss!r} is for regression; the task is {task.kind}")
        if task.kind == "regression" and loss in ("logistic", "hinge"):
            raise OptionError(f"the loss {loss!r} is for classification; the task is regression")
        if task.kind == "multiclass" and options.multiclass == "softmax" and loss == "logistic":
            loss = "softmax"
        adaptive = options.update in ("adaptive", "adagrad")
        refined = options.update == "adaptive"
        interactions = options.interactions
        return cls(
            loss=loss,
            n_outputs=task.n_outputs,
            adaptive=adaptive,
            normalized=refined and options.normalized,
            invariant=refined and options.invariant,
            ftrl=options.update == "ftrl",
            learning_rate=options.learning_rate,
            l1=options.l1,
            l2=options.l2,
            quantile=options.quantile,
            interactions=(interactions,) if isinstance(interactions, str) else tuple(interactions),
            squares=options.squares,
            intercept=options.intercept,
            bounded=loss in ("squared", "quantile"),
            bits=options.bits,
            memory=options.memory,
        )

    @property
    def real(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self.float64 else np.float32

    @property
    def real_bytes(self) -> int:
        return 8 if self.float64 else 4

    @property
    def regularized(self) -> bool:
        return not self.ftrl and (self.l1 > 0 or self.l2 > 0)

    @property
    def hashes_features(self) -> bool:
        """Whether single features are hashed; beside products only these are, once they outgrow their table."""
        return self.bits is not None and self.degree == 1

    @property
    def stride(self) -> int:
        """Numbers in a slot: see ``pm_online`` in native/pomona.h."""
        blocks = 3 if self.ftrl else 1 if self.shared else 2
        return 4 if self.n_outputs == 1 else 4 + blocks * self.padded_outputs

    @property
    def shared(self) -> bool:
        """Whether the classes of a feature share one sum of squared gradients."""
        return self.loss == "softmax" and self.n_outputs > 1 and self.adaptive and not self.ftrl

    @property
    def keeps_sums(self) -> bool:
        """Whether sums of squared gradients are kept."""
        return self.adaptive or self.ftrl

    @property
    def sums(self) -> slice:
        """Where the sums of squared gradients stand in a slot."""
        if self.n_outputs == 1:
            return slice(1, 2)
        return slice(2, 3) if self.shared else slice(4 + self.padded_outputs, 4 + self.padded_outputs + self.n_outputs)

    @property
    def padded_outputs(self) -> int:
        """Room for classes in a slot: a multiple of four."""
        return -(-self.n_outputs // 4) * 4

    @property
    def degree(self) -> int:
        """Largest number of factors in a feature."""
        return most_factors(self.interactions)

    def products(self, fields: Sequence[str]) -> NDArray[np.int32]:
        """The fields to multiply, each set of fields in every order (see native/example.h)."""
        rows: set[tuple[int, int, int]] = set()
        number = {name: i for i, name in enumerate(fields)}
        for term in self.interactions:
            if term in ("quadratic", "cubic"):
                rows.add((ALL_FIELDS, ALL_FIELDS, NO_FIELD))
            if term == "cubic":
                rows.add((ALL_FIELDS, ALL_FIELDS, ALL_FIELDS))
            names = term.split("*")
            if term in INTERACTIONS or not all(name in number for name in names):
                continue
            if "cubic" in self.interactions or ("quadratic" in self.interactions and len(names) == 2):
                continue  # among all products already
            for order in set(itertools.permutations([number[name] for name in names])):
                rows.add((order[0], order[1], order[2] if len(order) == 3 else NO_FIELD))
        return np.array(sorted(rows), np.int32).reshape(-1, 3)

    def header(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> OnlineParameters:
        # The first models were not gentle, and do not say so.
        return cls(**{"gentle": False, **header, "interactions": tuple(header["interactions"])})


def _check_apple(options: LearnOptions, demand: Callable[[bool, str, object], None]) -> None:
    if options.heuristic != "auto":
        rule_of(options.heuristic)
    known = options.alpha == "auto" or (not isinstance(options.alpha, str) and 0 <= options.alpha <= 4)
    demand(known, "alpha must be auto or a number from 0 to 4", options.alpha)
    demand(options.epochs >= 1, "epochs must be a whole number >= 1", options.epochs)
    demand(options.schedule in SCHEDULES, f"the schedule must be one of {', '.join(SCHEDULES)}", options.schedule)
    demand(options.products in PRODUCTS, f"products must be one of {', '.join(PRODUCTS)}", options.products)
    demand(options.grow in ("all", "first"), "grow must be all or first", options.grow)
    demand(options.degree is None or options.degree >= 1, "degree must be None or >= 1", options.degree)
    rounds = () if options.rounds is None else tuple(options.rounds)
    rising = all(a < b for a, b in zip((0, *rounds), rounds, strict=False))
    demand(rising, "rounds must be rising numbers of examples above 0", options.rounds)
    demand(options.update != "ftrl", "apple needs the update adaptive, adagrad or sgd", options.update)
    linear = options.interactions == "linear" or tuple(options.interactions) in ((), ("linear",))
    demand(linear, "apple makes products of its own: interactions must be linear", options.interactions)


def check(options: LearnOptions) -> None:
    """Raise an OptionError for the first option outside its range."""

    def demand(holds: bool, rule: str, got: object) -> None:
        if not holds:
            raise OptionError(f"{rule}; got {got!r}")

    demand(options.loss in (None, *LOSSES[:-1]), f"the loss must be one of {', '.join(LOSSES[:-1])}", options.loss)
    demand(options.update in UPDATES, f"the update must be one of {', '.join(UPDATES)}", options.update)
    demand(options.multiclass in ("softmax", "ovr"), "multiclass must be softmax or ovr", options.multiclass)
    demand(0 < options.learning_rate < np.inf, "the learning rate must be a number > 0", options.learning_rate)
    demand(0 <= options.l1 < np.inf, "l1 must be a number >= 0", options.l1)
    demand(0 <= options.l2 < np.inf, "l2 must be a number >= 0", options.l2)
    demand(0 < options.quantile < 1, "the quantile must lie between 0 and 1", options.quantile)
    demand(options.bits is None or 10 <= options.bits <= 30, "bits must be None or 10 to 30", options.bits)
    demand(options.passes >= 1, "passes must be a whole number >= 1", options.passes)
    demand(0 <= options.holdout < 1, "the hold-out share must be at least 0 and below 1", options.holdout)
    demand(options.patience >= 1, "patience must be a whole number >= 1", options.patience)
    demand(options.shuffle_buffer >= 1, "the shuffle buffer must be at least 1", options.shuffle_buffer)
    demand(options.learner in ("online", "apple"), "the learner must be online or apple", options.learner)
    if options.learner == "apple":
        _check_apple(options, demand)
    demand(options.memory >= 1 << 20, "the memory limit must be at least 1 MiB", options.memory)
    terms = (options.interactions,) if isinstance(options.interactions, str) else options.interactions
    for term in terms:
        demand(
            term in INTERACTIONS or 1 <= term.count("*") <= 2,
            "interactions must be linear, quadratic, cubic, or two or three fields as in a*b",
            term,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppleParameters:
    """What fixes the growth of the features besides the data."""

    alpha: float | str = 1.0
    heuristic: str | Heuristic = "weight"
    #: Another rule takes its place where products turn out to learn what the base features leave, in rows of at most so
    #: many of these.
    adapts: int = 0
    epochs: int = 6
    #: Largest degree of a monomial; None: the number of epochs.
    degree: int | None = None
    fallback: bool = False
    #: "joint", "residual", or "auto": found out in the first round.
    products: str = "joint"
    #: Names of the fields whose features are multiplied; none: all.
    expand: tuple[str, ...] = ()
    #: At most 2**bits base features and as many products have weights of their own, beyond which products are hashed;
    #: None: base features as the memory allows, and the usual number of products (``pomona.online.products``).
    bits: int | None = None

    @classmethod
    def from_options(cls, options: LearnOptions, adapts: int = 0) -> AppleParameters:
        return cls(
            alpha=options.alpha,
            heuristic=options.heuristic,
            adapts=adapts,
            epochs=options.epochs,
            degree=options.degree,
            fallback=options.fallback,
            products=options.products,
            expand=tuple(options.expand),
            bits=options.bits,
        )

    @property
    def most_factors(self) -> int:
        return self.epochs if self.degree is None else self.degree

    def header(self) -> dict[str, Any]:
        # A function cannot go to a file: the model predicts and learns on, but its parents no longer change.
        own = self.heuristic if isinstance(self.heuristic, str) else None
        return {**asdict(self), "heuristic": own}
