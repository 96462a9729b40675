"""How good predictions were, where the data has labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pomona.chunk import Chunk
    from pomona.task import Task

#: A class predicted impossible costs this probability's logarithm, not infinity.
_LEAST = 1e-15


class Score:
    """Weighted means over all labelled examples: error and log loss, or squared and absolute error."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.examples = self.labelled = 0
        self.weight = self.first = self.second = 0.0

    def add(self, chunk: Chunk, predicted: NDArray[Any]) -> None:
        """Count one chunk; ``predicted`` is as :meth:`pomona.Model.predict` gives it."""
        self.examples += len(chunk)
        if chunk.labels is None or not len(chunk):
            return
        known = chunk.labels == chunk.labels
        if not known.any():
            return
        labels, predicted = chunk.labels[known], predicted[known]
        weights = np.ones(len(labels)) if chunk.weights is None else chunk.weights[known]
        if self.task.kind == "regression":
            miss = labels.astype(np.float64) - predicted
            first, second = miss * miss, np.abs(miss)
        else:
            first, second = self._class_losses(labels, predicted)
        self.labelled += len(labels)
        self.weight += float(weights.sum())
        self.first += float(weights @ first)
        self.second += float(weights @ second)

    def _class_losses(self, labels: NDArray[Any], predicted: NDArray[Any]) -> tuple[Any, Any]:
        codes = {label: code for code, label in enumerate(self.task.classes)}
        distinct, inverse = np.unique(labels, return_inverse=True)
        # A class the model never met is always an error.
        truth = np.array([codes.get(label, -1) for label in distinct.tolist()])[inverse.reshape(-1)]
        if predicted.ndim == 1:
            predicted = np.column_stack([1.0 - predicted, predicted])
        of_truth = np.where(truth >= 0, predicted[np.arange(len(truth)), truth], 0.0)
        log_loss = -np.log(np.maximum(of_truth, _LEAST))
        return log_loss, (predicted.argmax(axis=1) != truth).astype(np.float64)

    def figures(self) -> dict[str, Any]:
        """The counts and, where there were labels, the means."""
        result: dict[str, Any] = {"examples": self.examples, "labelled": self.labelled}
        if self.weight > 0:
            names = ("squared_error", "absolute_error") if self.task.kind == "regression" else ("log_loss", "error")
            result |= {names[0]: self.first / self.weight, names[1]: self.second / self.weight}
        return result

    def lines(self) -> list[str]:
        """One line for people, none where there were no labels."""
        figures = self.figures()
        if self.weight <= 0:
            return []
        labelled = f"{self.labelled:,} labelled examples"
        if self.task.kind == "regression":
            return [
                f"{labelled}: root mean squared error {figures['squared_error'] ** 0.5:.6g},"
                f" mean absolute error {figures['absolute_error']:.6g}"
            ]
        return [f"{labelled}: error {100 * figures['error']:.2f} %, log loss {figures['log_loss']:.5f}"]
