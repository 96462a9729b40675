"""What is to be predicted: finds the task from the first targets and turns targets into numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.errors import DataFormatError, OptionError

Kind = Literal["binary", "multiclass", "regression"]
KINDS: tuple[Kind, ...] = ("binary", "multiclass", "regression")
#: Wish for a binary or a multi-class task, whichever the target shows.
CLASSIFICATION = "classification"

#: A numeric target with more distinct whole numbers than this is taken as a quantity, not as classes.
MAX_INFERRED_CLASSES = 100
#: Up to this many classes, comparing numbers with each is faster than sorting them.
MAX_COMPARED = 8
#: Whole numbers below are told apart in double precision.
EXACT = 2**53


@dataclass(slots=True)
class Task:
    """Binary, multi-class or regression, with the classes in the order of their codes."""

    kind: Kind
    #: Class labels, numbers or strings; empty for regression.
    classes: list[Any]

    @classmethod
    def infer(cls, labels: NDArray[Any], wanted: str | None = None) -> Task:
        """Find the task from a sample of targets, or check the one that was asked for."""
        if wanted is not None and wanted not in (*KINDS, CLASSIFICATION):
            raise OptionError(f"the task must be one of {', '.join(KINDS)}; got {wanted!r}")
        numeric = labels.dtype.kind in "iufb"
        if numeric and not np.isfinite(labels.astype(np.float64)).all():
            raise DataFormatError("the target has values that are missing or not finite: remove those rows")
        classes = _distinct(labels, numeric)
        kind = wanted or cls._guess(labels, classes, numeric)
        if kind == CLASSIFICATION:
            kind = "binary" if len(classes) <= 2 else "multiclass"
        if kind == "regression":
            if not numeric:
                raise OptionError(f"regression needs a numeric target; got text such as {classes[0]!r}")
            return cls("regression", [])
        if kind == "binary" and len(classes) > 2:
            raise OptionError(
                f"the task 'binary' needs two classes; the target has {len(classes)}, such as {classes[:3]}"
            )
        return cls(kind, classes)  # type: ignore[arg-type]

    @staticmethod
    def _guess(labels: NDArray[Any], classes: list[Any], numeric: bool) -> str:
        if len(classes) <= 2:
            return "binary"
        if not numeric:
            return "multiclass"
        whole = bool(np.all(labels.astype(np.float64) == np.floor(labels.astype(np.float64))))
        return "multiclass" if whole and len(classes) <= MAX_INFERRED_CLASSES else "regression"

    @property
    def n_outputs(self) -> int:
        """Columns of a raw prediction: 1, or the number of classes."""
        return len(self.classes) if self.kind == "multiclass" else 1

    def encode(self, labels: NDArray[Any], *, file: str = "", first_line: int = 0) -> NDArray[np.float64]:
        """Numbers for a learner: the value itself, -1/+1, or the code of the class.

        A class never met before is added to a multi-class task, and is an error in a binary one that has two.
        """
        if self.kind == "regression":
            return self._numbers(labels, file, first_line)
        first, step = (-1.0, 2.0) if self.kind == "binary" else (0.0, 1.0)
        codes = self._compared(labels, first, step)
        return first + step * self._codes(labels, file, first_line) if codes is None else codes

    def _numbers(self, labels: NDArray[Any], file: str, first_line: int) -> NDArray[np.float64]:
        if labels.dtype.kind not in "iufb":
            raise DataFormatError(
                f"expected a number as the target, got {str(labels[0])!r}", file=file, line=first_line
            )
        numbers = labels.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            line = first_line + int(bad[0]) if first_line else 0
            raise DataFormatError(
                f"expected a finite number as the target, got {numbers[bad[0]]}", file=file, line=line
            )
        return numbers

    def _compared(self, labels: NDArray[Any], first: float, step: float) -> NDArray[np.float64] | None:
        """``first + step * code`` of numbers that are all known and of few classes; None of others."""
        if len(self.classes) > MAX_COMPARED or labels.dtype.kind not in "iufb":
            return None
        if not all(isinstance(label, (int, float)) and abs(label) < EXACT for label in self.classes):
            return None
        classes = np.array(self.classes, np.float64)
        return _native.label_codes(np.ascontiguousarray(labels, np.float64), classes, first, step)

    def _codes(self, labels: NDArray[Any], file: str, first_line: int) -> NDArray[np.float64]:
        known = {label: code for code, label in enumerate(self.classes)}
        distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        for position, label in sorted(zip(first.tolist(), distinct.tolist(), strict=True)):
            if label in known:
                continue
            line = first_line + position if first_line else 0
            if label != label:
                raise DataFormatError("the target is missing: expected a class", file=file, line=line)
            if self.kind == "binary" and len(known) >= 2:
                raise DataFormatError(
                    f"the task is binary with the classes {self.classes[0]!r} and {self.classes[1]!r}, but the target"
                    f" here is {label!r}: give the task multiclass, or regression, if that is meant",
                    file=file,
                    line=line,
                )
            known[label] = len(self.classes)
            self.classes.append(label)
        numbers = np.array([known[label] for label in distinct.tolist()], np.float64)
        return numbers[inverse.reshape(-1)]

    def header(self) -> dict[str, Any]:
        return {"kind": self.kind, "classes": self.classes}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Task:
        return cls(header["kind"], list(header["classes"]))


def _distinct(labels: NDArray[Any], numeric: bool) -> list[Any]:
    """The labels in rising order. Most often there are two, which are found sooner than by sorting."""
    if numeric and len(labels):
        lowest, highest = labels.min(), labels.max()
        if ((labels == lowest) | (labels == highest)).all():
            return [lowest.item(), highest.item()] if lowest != highest else [lowest.item()]
    distinct: list[Any] = np.unique(labels).tolist()
    return distinct
