"""Models: training, predicting, files, and looking inside."""

from pomona.model.pipeline import Model, load
from pomona.model.train import Progress, train

__all__ = ["Model", "Progress", "load", "train"]
