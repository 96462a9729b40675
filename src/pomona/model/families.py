"""The families of learners by name; each is imported when it is first asked for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from pomona.errors import ModelFileError


@dataclass(frozen=True, slots=True)
class Family:
    """Where a family lives, as ``module:class``."""

    learner: str
    options: str
    #: What turns the columns of a table into chunks for it.
    encoder: str = "pomona.encode:TableEncoder"

    def learner_class(self) -> Any:
        return _named(self.learner)

    def options_class(self) -> Any:
        return _named(self.options)

    def encoder_class(self) -> Any:
        return _named(self.encoder)


#: By the name in model files, which is also the ``learner`` of the options.
FAMILIES = {
    "online": Family("pomona.online.learner:OnlineLearner", "pomona.options:LearnOptions"),
    "apple": Family("pomona.online.apple:AppleLearner", "pomona.options:LearnOptions"),
    "gls": Family(
        "pomona.leastsquares.learner:GLSLearner",
        "pomona.leastsquares.learner:GLSLearnOptions",
        "pomona.leastsquares.encoder:NumberEncoder",
    ),
    "cls": Family(
        "pomona.leastsquares.learner:CalibratedLearner",
        "pomona.leastsquares.learner:CalibratedLearnOptions",
        "pomona.leastsquares.encoder:NumberEncoder",
    ),
    "stagewise": Family(
        "pomona.leastsquares.learner:StagewiseLearner",
        "pomona.leastsquares.learner:StagewiseLearnOptions",
        "pomona.leastsquares.encoder:NumberEncoder",
    ),
    **{
        name: Family(
            f"pomona.higherorder.learner:{title}Learner",
            f"pomona.higherorder.options:{title}Options",
            "pomona.higherorder.coder:AttributeCoder",
        )
        for name, title in (("alr", "ALR"), ("anje", "AnJE"), ("kdb", "KDB"))
    },
}


def family(name: str) -> Family:
    """The family of this name."""
    if name not in FAMILIES:
        raise ModelFileError(f"the model was made by the learner {name!r}, which this version of pomona does not have")
    return FAMILIES[name]


def _named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
