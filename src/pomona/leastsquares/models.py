"""What the algorithms of the family leave behind: models that predict blocks of rows and go to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from pomona.errors import ModelFileError, OptionError
from pomona.learner import State
from pomona.leastsquares.arrays import Array, Place, to_numpy
from pomona.leastsquares.cls import Calibration
from pomona.leastsquares.generators import GENERATORS
from pomona.leastsquares.links import Identity, Link, link_named
from pomona.leastsquares.projections import PROJECTIONS
from pomona.leastsquares.stagewise import Stage, StageReport, Stagewise


@dataclass
class LinearModel:
    """g(Wx), from Algorithm 1."""

    W: Array
    link: Link
    kind: str
    place: Place
    fit_intercept: bool = True
    algorithm: ClassVar[str] = "gls"

    @property
    def d(self) -> int:
        return int(self.W.shape[0]) - int(self.fit_intercept)

    def staged(self, X: Array) -> Iterator[Array]:
        yield self.raw(X)

    def raw(self, X: Array) -> Array:
        W = self.place.put(self.W)
        U = X @ W[: self.d, :]
        return U + W[self.d :, :] if self.fit_intercept else U

    def means(self, U: Array) -> Array:
        return finished(U, self.link, self.kind)

    def state(self) -> State:
        header = {"link": _link_name(self.link), "kind": self.kind, "fit_intercept": self.fit_intercept}
        return State({**header, **_place_header(self.place)}, {"W": to_numpy(self.W)})

    @classmethod
    def from_state(cls, state: State) -> LinearModel:
        h = state.header
        return cls(state.arrays["W"], link_named(h["link"]), h["kind"], _place(h), h["fit_intercept"])


@dataclass
class CalibratedModel:
    """The rounds of Algorithm 2, replayed."""

    rounds: list[tuple[Array, Array]]
    calibration: Calibration
    kind: str
    place: Place
    algorithm: ClassVar[str] = "cls"

    @property
    def d(self) -> int:
        return int(self.rounds[0][0].shape[0]) - 1

    def staged(self, X: Array) -> Iterator[Array]:
        """Predictions after each round."""
        xp, place, d = self.place.xp, self.place, self.d
        k = int(self.rounds[0][0].shape[1])
        # The products with all rounds at once: one pass over X.
        W = xp.concat([place.put(W) for W, _ in self.rounds], axis=1)
        P = X @ W[:d, :] + W[d:, :]
        Y = place.zeros(int(X.shape[0]), k)
        for t, (_, C) in enumerate(self.rounds):
            fitted = Y + P[:, t * k : (t + 1) * k]
            Y = PROJECTIONS[self.kind](self.calibration(place, fitted) @ place.put(C))
            yield Y

    def raw(self, X: Array) -> Array:
        *_, last = self.staged(X)
        return last

    def means(self, U: Array) -> Array:
        return U

    def state(self) -> State:
        own = [function for function in self.calibration.given if not isinstance(function, str)]
        if own:
            raise OptionError("a model with calibration functions of your own cannot go to a file: pickle it instead")
        header = {"calibration": list(self.calibration.given), "kind": self.kind, **_place_header(self.place)}
        arrays = {f"round_{t}_W": to_numpy(W) for t, (W, _) in enumerate(self.rounds)}
        arrays |= {f"round_{t}_C": to_numpy(C) for t, (_, C) in enumerate(self.rounds)}
        return State({**header, "rounds": len(self.rounds)}, arrays)

    @classmethod
    def from_state(cls, state: State) -> CalibratedModel:
        h, a = state.header, state.arrays
        rounds = [(a[f"round_{t}_W"], a[f"round_{t}_C"]) for t in range(h["rounds"])]
        return cls(rounds, Calibration(h["calibration"]), h["kind"], _place(h))


@dataclass
class AveragedModel:
    """The mean of stagewise models over disjoint generated features (section 3.2); of one, that model itself."""

    models: Sequence[Stagewise]
    algorithm: ClassVar[str] = "stagewise"
    reports: list[StageReport] = field(default_factory=list)

    @property
    def d(self) -> int:
        return self.models[0].d

    @property
    def kind(self) -> str:
        return self.models[0].kind

    @property
    def place(self) -> Place:
        return self.models[0].place

    def staged(self, X: Array) -> Iterator[Array]:
        """Mean predictions of the first t stages of every model (all of a model that has fewer)."""
        runs = [model.staged(X) for model in self.models]
        latest: list[Array] = [None] * len(runs)
        for _ in range(max(len(model.stages) for model in self.models)):
            latest = [next(run, before) for run, before in zip(runs, latest, strict=True)]
            yield sum(latest[1:], latest[0]) / len(latest)

    def raw(self, X: Array) -> Array:
        total = self.models[0].raw(X)
        for model in self.models[1:]:
            total = total + model.raw(X)
        return total / len(self.models)

    def means(self, U: Array) -> Array:
        return finished(U, self.models[0].link, self.kind)

    def state(self) -> State:
        first = self.models[0]
        generator = first.generator
        if getattr(generator, "kind", None) not in GENERATORS:
            raise OptionError("a model with a generator of your own cannot go to a file: pickle it instead")
        if any(not isinstance(function, str) for function in first.calibration.given):
            raise OptionError("a model with calibration functions of your own cannot go to a file: pickle it instead")
        header = {
            "generator": {"kind": generator.kind, **generator.parameters()},
            "inner": first.inner,
            "kind": first.kind,
            "d": first.d,
            "k": first.k,
            "calibration": list(first.calibration.given),
            "models": [[[stage.number, stage.size] for stage in model.stages] for model in self.models],
            "reports": [asdict(report) for report in self.reports],
            **_place_header(first.place),
        }
        arrays = {f"learnt.{name}": value for name, value in generator.learnt.items()}
        for m, model in enumerate(self.models):
            # Prediction is made in working precision, which the weights are kept in.
            arrays |= {f"W_{m}_{t}": to_numpy(first.place.put(stage.W)) for t, stage in enumerate(model.stages)}
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State) -> AveragedModel:
        h, a = state.header, state.arrays
        parameters = dict(h["generator"])
        generator = GENERATORS[parameters.pop("kind")](**parameters)
        generator.learnt = {name[len("learnt.") :]: value for name, value in a.items() if name.startswith("learnt.")}
        models = []
        for m, stages in enumerate(h["models"]):
            made = [Stage(number, size, a[f"W_{m}_{t}"]) for t, (number, size) in enumerate(stages)]
            calibration = Calibration(h["calibration"])
            models.append(Stagewise(generator, h["inner"], h["kind"], h["d"], h["k"], _place(h), calibration, made))
        return cls(models, [StageReport(**report) for report in h["reports"]])


Fitted = LinearModel | CalibratedModel | AveragedModel
MODELS: dict[str, Any] = {kind.algorithm: kind for kind in (LinearModel, CalibratedModel, AveragedModel)}


def finished(U: Array, link: Link, kind: str) -> Array:
    """Predictions as means: through the link or, where that is the identity, projected onto probabilities."""
    return PROJECTIONS[kind](U) if isinstance(link, Identity) else link(U)


def _link_name(link: Link) -> str:
    name = getattr(link, "name", None)
    if not isinstance(name, str):
        raise OptionError("a model with a link of your own cannot go to a file: pickle it instead")
    return name


def _place_header(place: Place) -> dict[str, str]:
    return {"precision": place.precision}


def _place(header: dict[str, Any]) -> Place:
    if header["precision"] not in ("float32", "float64"):
        raise ModelFileError(f"the precision must be float32 or float64, got {header['precision']!r}")
    return Place.of(None, header["precision"])
