"""A model: the task, the encoder of a table where there is one, and the learner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pomona.chunk import Chunk, Source
from pomona.errors import ModelFileError, OptionError
from pomona.learner import Learner, State
from pomona.model import file
from pomona.model.families import family
from pomona.options import EncodeOptions, ReadOptions
from pomona.source import open_source
from pomona.task import Task

if TYPE_CHECKING:
    from pomona.encode import TableEncoder

DEFAULT_READ = ReadOptions()
L = TypeVar("L", bound=Learner)


@dataclass(frozen=True, slots=True)
class TargetScale:
    """Regression targets are learnt as ``(y - shift) / scale``: step sizes do not know the unit of the target."""

    shift: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, labels: NDArray[np.float64], loss: str, weights: NDArray[np.float64] | None = None) -> TargetScale:
        if loss not in ("squared", "quantile") or not len(labels):
            return cls()
        shift = float(np.average(labels, weights=weights))
        scale = float(np.sqrt(np.average((labels - shift) ** 2, weights=weights)))
        return cls(shift, scale if np.isfinite(scale) and scale > 0 else 1.0)


class Model(Generic[L]):
    """What training gives: predicts, explains itself, and goes to a file.

    Parameters
    ----------
    task : what is predicted.
    learner : what has learnt.
    encoder : turns the columns of a table into features; None for data that comes as features.
    target : scale of regression targets.
    summary : how it was trained, as plain JSON values.
    options : the options it was trained with, by group (read, encode, learn).
    """

    def __init__(
        self,
        task: Task,
        learner: L,
        encoder: TableEncoder | None = None,
        target: TargetScale | None = None,
        summary: dict[str, Any] | None = None,
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.task, self.learner, self.encoder = task, learner, encoder
        self.target = target or TargetScale()
        self.summary = summary or {}
        self.options = options or {}

    # ---- predicting ----
    def predict(self, data: Any, read: ReadOptions = DEFAULT_READ) -> Iterator[NDArray[np.float64]]:
        """Predictions chunk by chunk.

        Probabilities of the second class (binary), of all classes (n, K) (multi-class), or values (regression).
        """
        for chunk in self.chunks(data, read):
            yield self.finish(self.raw_predict(chunk))

    def chunks(self, data: Any, read: ReadOptions = DEFAULT_READ) -> Iterator[Chunk]:
        """New data as this model needs it; labels may be missing."""
        return self.source(data, read).chunks()

    def source(self, data: Any, read: ReadOptions = DEFAULT_READ) -> Source:
        source: Any = open_source(data, self._reading(read)) if not hasattr(data, "chunks") else data
        if hasattr(source, "batches"):
            if self.encoder is None:
                raise OptionError(f"the model was trained on sparse features; {source.name} is a table of columns")
            from pomona.encode import EncodedSource  # needs pyarrow, which sparse text does not

            source = EncodedSource(source, self.encoder, need_labels=False)
        elif self.encoder is not None and not hasattr(source, "encoder"):
            raise OptionError(f"the model was trained on a table of columns; {source.name} holds sparse features")
        return source  # type: ignore[no-any-return]

    def _reading(self, read: ReadOptions) -> ReadOptions:
        """New data is read as the training data was, but for what belongs to the file itself."""
        own = {name: getattr(read, name) for name in ("format", "header", "on_error", "threads")}
        return ReadOptions(**{**self.options.get("read", {}), **own})

    def raw_predict(self, chunk: Chunk) -> NDArray[np.float64]:
        """Margins or scores as the learner computes them."""
        return self.learner.predict(chunk)

    def finish(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raw predictions to probabilities or values."""
        finished = self.learner.finish(raw, self.task)
        if self.task.kind == "regression":
            return np.asarray(finished * self.target.scale + self.target.shift)
        return finished

    # ---- looking inside ----
    def changed_options(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        changed = {}
        learn = family(self.learner.family).options_class()
        for group, kind in (("read", ReadOptions), ("encode", EncodeOptions), ("learn", learn)):
            given = self.options.get(group, {})
            for field in fields(kind):
                # A file gives lists back where there were tuples.
                pair = given.get(field.name, field.default), field.default
                value, default = (list(v) if isinstance(v, tuple) else v for v in pair)
                if value != default:
                    changed[field.name] = value
        return changed

    def columns(self) -> dict[str, str]:
        """Kind of each column of a table; empty for sparse features."""
        return {} if self.encoder is None else {column.name: column.kind for column in self.encoder.columns}

    # ---- files ----
    def state(self) -> State:
        learner = self.learner.state()
        header: dict[str, Any] = {
            "learner": self.learner.family,
            "task": self.task.header(),
            "target": asdict(self.target),
            "summary": self.summary,
            "options": self.options,
            self.learner.family: learner.header,
        }
        arrays = {f"{self.learner.family}.{name}": array for name, array in learner.arrays.items()}
        if self.encoder is not None:
            encoder = self.encoder.state()
            header["encoder"] = encoder.header
            arrays |= {f"encoder.{name}": array for name, array in encoder.arrays.items()}
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State) -> Model[L]:
        header = state.header

        def part(name: str) -> State:
            prefix = name + "."
            arrays = {key[len(prefix) :]: a for key, a in state.arrays.items() if key.startswith(prefix)}
            return State(header[name], arrays)

        made_by = family(header["learner"])
        encoder = made_by.encoder_class().from_state(part("encoder")) if "encoder" in header else None
        return cls(
            Task.from_header(header["task"]),
            made_by.learner_class().from_state(part(header["learner"])),
            encoder,
            TargetScale(**header["target"]),
            header["summary"],
            header["options"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies hold what a model file holds, so they give the same bits back."""
        return Model.from_state, (self.state(),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which appears when it is complete."""
        file.save(path, self.state())


def load(path: str | os.PathLike[str]) -> Model[Any]:
    """Read a model file; nothing in it is executed."""
    state = file.load(path)
    try:
        return Model.from_state(state)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{os.fspath(path)}: the parts of the model do not fit together ({error!r})") from error
