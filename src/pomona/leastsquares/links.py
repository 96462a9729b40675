"""Links g = ∇Φ of generalized linear models (section 2.2), with the Lipschitz constants of eq. 16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import array_api_compat as compat

from pomona.errors import OptionError
from pomona.leastsquares.arrays import Array


class Link(Protocol):
    """What Algorithm 1 needs to know of a link; a user's own link is any object like this."""

    @property
    def lipschitz(self) -> float:
        """L of eq. 16: |g(u) - g(v)| <= L |u - v|."""
        ...

    def __call__(self, U: Array) -> Array:
        """g for each row of U."""
        ...

    def potential(self, U: Array) -> Array:
        """Φ for each row of U, so that the loss is Φ(u) - y·u (eq. 13)."""
        ...


@dataclass(frozen=True)
class Identity:
    """g(u) = u: least squares, which Algorithm 1 solves in one step."""

    name: ClassVar[str] = "identity"
    lipschitz: float = 1.0

    def __call__(self, U: Array) -> Array:
        return U

    def potential(self, U: Array) -> Array:
        xp = compat.array_namespace(U)
        return xp.sum(U * U, axis=1) / 2


@dataclass(frozen=True)
class Softmax:
    """Multinomial logit. L = 1 is valid, 1/2 is tight (footnote 3)."""

    name: ClassVar[str] = "softmax"
    lipschitz: float = 0.5

    def __call__(self, U: Array) -> Array:
        xp = compat.array_namespace(U)
        E = xp.exp(U - xp.max(U, axis=1, keepdims=True))
        return E / xp.sum(E, axis=1, keepdims=True)

    def potential(self, U: Array) -> Array:
        xp = compat.array_namespace(U)
        top = xp.max(U, axis=1, keepdims=True)
        return top[:, 0] + xp.log(xp.sum(xp.exp(U - top), axis=1))


@dataclass(frozen=True)
class Logistic:
    """A logit for each column by itself, for multi-label targets."""

    name: ClassVar[str] = "logistic"
    lipschitz: float = 0.25

    def __call__(self, U: Array) -> Array:
        xp = compat.array_namespace(U)
        # tanh does not overflow.
        return 0.5 * (xp.tanh(0.5 * U) + 1.0)

    def potential(self, U: Array) -> Array:
        xp = compat.array_namespace(U)
        return xp.sum(xp.clip(U, min=0.0) + xp.log1p(xp.exp(-xp.abs(U))), axis=1)


LINKS: dict[str, Link] = {"identity": Identity(), "softmax": Softmax(), "logistic": Logistic()}


def link_named(name: str) -> Link:
    if name not in LINKS:
        raise OptionError(f"the link must be one of {', '.join(LINKS)}, or an object of your own; got {name!r}")
    return LINKS[name]
