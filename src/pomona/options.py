"""What a user may ask of data and of learning: the same words in Python and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read data and which part each column plays."""

    #: vw, svmlight, csv, tsv, parquet, arrow; None: found from suffix and content.
    format: str | None = None
    target: str | None = None
    weight: str | None = None
    ignore: Sequence[str] = ()
    categorical: Sequence[str] = ()
    text: Sequence[str] = ()
    #: CSV: whether the first line holds names; None: found from the content.
    header: bool | None = None
    #: svmlight: whether the first feature is 0 or 1 is only a name; ids are taken as written.
    on_error: Literal["stop", "skip"] = "stop"
    #: Threads that parse; learning is always in order, so the model does not depend on it.
    threads: int | None = None
    #: n-grams (1: words alone) and how many words they may skip, on text columns and VW namespaces.
    ngrams: int = 1
    skips: int = 0
    #: VW namespaces the n-grams apply to; empty: all.
    ngram_namespaces: Sequence[str] = ()


#: Bins by degree, where none are given: products of fine bins are too rare to learn from. (``python -m benchmarks
#: encodings`` compares them.)
BINS = {1: 16, 2: 8, 3: 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeOptions:
    """How columns of a table become features."""

    #: Numeric columns: "hat", "onehot", "raw", "standard", or "auto" (what the benchmarks found best).
    numeric: str = "auto"
    #: Bins or knots a numeric column, at most; None: :data:`BINS` by the degree of the interactions.
    bins: int | None = None
    #: Rows from which types, bins and scales are learnt.
    sample_rows: int = 50_000
    #: Tuples of attributes: ways in which a number is cut, each for a model of its own; their scores are averaged.
    cuttings: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """The online learner and its training loop."""

    #: "online", or "apple": features grow while learning.
    learner: Literal["online", "apple"] = "online"
    loss: str | None = None  # squared logistic hinge quantile poisson; None: by task
    quantile: float = 0.5
    multiclass: Literal["softmax", "ovr"] = "softmax"
    #: "adaptive" (adaptive + normalised + invariant), "adagrad", "sgd", "ftrl".
    update: str = "adaptive"
    normalized: bool = True
    invariant: bool = True
    learning_rate: float = 0.5
    l1: float = 0.0
    l2: float = 0.0
    #: "linear", "quadratic", "cubic", or products of fields: ("a*b", "a*b*c").
    interactions: str | Sequence[str] = "linear"
    squares: bool = True
    #: apple: each round makes s ** alpha monomials parents, s being the mean number of features of an example;
    #: "auto": 1, but fewer where the features of an example are so many that products would take too long.
    alpha: float | str = "auto"
    #: apple: "weight", "scaled", "evidence", "ssm", "picky-weight", "picky-ssm", a function of
    #: :class:`pomona.online.heuristics.Statistics`, or "auto": scaled, but evidence for columns of
    #: text and short sparse rows whose products learn what the others leave.
    heuristic: str | Callable[..., Any] = "auto"
    #: apple: parts of the data, with a round after each but the last.
    epochs: int = 6
    #: apple: "early", epoch k ending after the share (k / epochs) ** 1.5 of the data, "equal" parts as in the paper, or
    #: "auto": early in one pass, equal over several, where products have enough to learn from.
    schedule: Literal["auto", "early", "equal"] = "auto"
    #: apple: "joint", all weights follow the error of the whole prediction, as in the paper; "residual", base features
    #: learn as if alone and products what these leave, which count as much as they have earned; or "auto": residual
    #: where base features are many and rare.
    products: Literal["auto", "joint", "residual"] = "auto"
    #: apple: the passes over which the epochs extend: "all", or "first", after which features stay as they are.
    grow: Literal["all", "first"] = "all"
    #: apple: numbers of examples after which rounds take place, instead of epochs.
    rounds: Sequence[int] | None = None
    #: apple: most factors of a monomial; None: the number of epochs.
    degree: int | None = None
    #: apple: each round one monomial of the smallest degree that is left becomes a parent, whatever its weight.
    fallback: bool = False
    #: apple: columns or namespaces whose features are multiplied; none: all.
    expand: Sequence[str] = ()
    intercept: bool = True
    #: At most 2**bits slots a degree, hashed from the start without products; None: exact while the memory allows.
    bits: int | None = None
    #: Bytes the weight tables may take.
    memory: int = 1 << 30
    passes: int = 1
    #: Whether the weights of the strongest features are refitted by least squares in the end.
    polish: bool = False
    #: Whether the learning rate falls from pass to pass, in equal steps towards zero.
    decay: bool = False
    #: None: yes, unless VW or svmlight text is read in one pass (streams come in the order of time).
    shuffle: bool | None = None
    #: Examples that are shuffled among themselves.
    shuffle_buffer: int = 1 << 16
    #: Share of examples held out for early stopping; 0: none.
    holdout: float = 0.0
    #: Passes without gain on the held-out examples after which to stop.
    patience: int = 3
    seed: int = 0
    task: str | None = None  # binary multiclass regression; None: found from the target
    #: Factor for the weight of each class, or "balanced": inverse to its share of the first rows.
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
