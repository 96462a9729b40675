"""Generators of features (GEN in Algorithm 3), by name.

To add one, write a :class:`SeededGenerator` with the method ``generate`` and name it in :data:`GENERATORS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pomona.errors import OptionError
from pomona.leastsquares.generators.base import Features, Generator, OwnGenerator, SeededGenerator, View
from pomona.leastsquares.generators.columns import GradientOrder, SampledColumns
from pomona.leastsquares.generators.convolution import Convolution
from pomona.leastsquares.generators.monomials import Monomials
from pomona.leastsquares.generators.random import FourierFeatures, RandomLogits, RandomPolynomials

__all__ = ["GENERATORS", "Features", "Generator", "OwnGenerator", "SeededGenerator", "View", "generator_of"]

GENERATORS: dict[str, type[SeededGenerator]] = {
    kind.kind: kind
    for kind in (
        SampledColumns,
        GradientOrder,
        FourierFeatures,
        RandomLogits,
        RandomPolynomials,
        Convolution,
        Monomials,
    )
}


def generator_of(given: Any, seed: int, options: Mapping[str, Any] | None = None) -> Any:
    """The generator of that name with these options, an object as it is, or a function wrapped as one."""
    if isinstance(given, str):
        if given not in GENERATORS:
            raise OptionError(f"the generator must be one of {', '.join(GENERATORS)}, or your own; got {given!r}")
        try:
            return GENERATORS[given](seed=seed, **(options or {}))
        except TypeError as error:
            names = [name for name in GENERATORS[given]().parameters() if name != "seed"]
            raise OptionError(
                f"the generator {given!r} has the options {', '.join(names) or 'none'}; got {dict(options or {})}"
            ) from error
    if options:
        raise OptionError("options of a generator can only be given with its name: set them on the object instead")
    if hasattr(given, "generate"):
        return given
    if callable(given):
        return OwnGenerator(given, seed)
    raise OptionError(f"a generator is a name, a function f(stage, size, rng), or has a method generate; got {given!r}")
