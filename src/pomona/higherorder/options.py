"""What a user may ask of the learners over tuples: the same words in Python and on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pomona.errors import OptionError

SELECTIONS = ("none", "mi", "cvscore")
STARTS = ("auto", "zero", "generative")
SEARCHES = ("sample", "recursive")
#: Bytes that maps, counts and parameters may take.
MEMORY = 1 << 32
#: Orders that ``order="auto"`` tries, at most.
MAX_AUTO_ORDER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ALROptions:
    """Higher-order logistic regression: ALR^n, sALR^n, hsALR^n."""

    learner: str = "alr"
    task: str | None = None
    #: Attributes of a tuple; "auto": chosen on the validation rows.
    order: int | Literal["auto"] = 2
    #: "mi": tuples with the highest mutual information; "cvscore": those whose loss on validation rows hurts most.
    selection: str = "none"
    #: What is kept: a share of the tuples (or features), a number of them, or "auto".
    threshold: float | int | Literal["auto"] = "auto"
    #: Build tuples level by level, each from those selected at the level below.
    hierarchical: bool = False
    #: Select single features (value combinations) instead of tuples, level by level.
    feature_selection: bool = False
    #: Where weights begin: at 0, at AnJE's, or at what is better on the validation rows.
    start: str = "auto"
    #: Whether steps are multiplied by |log P(F|y)|.
    preconditioner: bool = True
    #: AdaGrad's step size; None: searched.
    learning_rate: float | None = None
    #: Where it is searched: on a quarter of the rows, or on validation rows alone, as in Algorithms 4 and 5.
    line_search: str = "sample"
    passes: int | Literal["auto"] = 5
    early_stop: bool = True
    #: Pull of weights to zero at each step; "auto": chosen on the validation rows.
    l2: float | Literal["auto"] = 0.0
    #: Scale the scores at the end so that the loss on the validation rows is least.
    calibrate: bool = True
    #: Features that occur less often are left out.
    min_count: int = 1
    memory: int = MEMORY
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnJEOptions:
    """Averaged n-join estimators: the generative twin of ALR^n; naive Bayes at order 1."""

    learner: str = "anje"
    task: str | None = None
    order: int | Literal["auto"] = 2
    memory: int = MEMORY
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KDBOptions:
    """Bayesian networks in which each attribute has the class and up to k attributes as parents."""

    learner: str = "kdb"
    task: str | None = None
    #: Parents, at most; with ``selective`` the largest number tried.
    k: int = 2
    #: Choose k and the number of attributes by leave-one-out loss, in a pass more.
    selective: bool = True
    memory: int = MEMORY
    seed: int = 0


def check_alr(options: ALROptions) -> None:
    """Refuse values outside their range."""
    _one_of("selection", options.selection, SELECTIONS)
    _one_of("start", options.start, STARTS)
    _one_of("line_search", options.line_search, SEARCHES)
    check_order(options.order)
    t = options.threshold
    if t != "auto" and not (isinstance(t, int) and t >= 1 or isinstance(t, float) and 0 < t <= 1):
        raise OptionError(f"threshold must be 'auto', a share between 0 and 1, or a number of 1 or more; got {t!r}")
    if options.passes != "auto" and options.passes < 1:
        raise OptionError(f"passes must be 'auto', or 1 or more; got {options.passes!r}")
    if options.l2 != "auto" and not options.l2 >= 0:
        raise OptionError(f"l2 must be 'auto', or 0 or more; got {options.l2!r}")
    if options.learning_rate is not None and not options.learning_rate > 0:
        raise OptionError(f"learning_rate must be above 0; got {options.learning_rate!r}")
    if options.order == "auto" and (options.hierarchical or options.feature_selection):
        raise OptionError("order='auto' is for tuples without hierarchy: give a number with hierarchical=True")


def check_order(order: int | str) -> None:
    if order != "auto" and not (isinstance(order, int) and 1 <= order <= 8):
        raise OptionError(f"order must be 'auto' or 1 to 8; got {order!r}")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise OptionError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
