"""Where the epochs of apple end."""

from __future__ import annotations

import math

#: How much earlier than equal epochs the early ones end: products that appear sooner have more to learn from.
EARLY = 1.5


def equal_epochs(examples: int, epochs: int) -> list[int]:
    """Ends of all epochs but the last: ``examples`` in equal parts."""
    length = -(-examples // epochs)
    return [length * k for k in range(1, epochs) if length * k < examples]


def early_epochs(examples: int, epochs: int) -> list[int]:
    """Ends of all epochs but the last, the first of them being the shortest."""
    ends = (math.ceil(examples * (k / epochs) ** EARLY) for k in range(1, epochs))
    return sorted({end for end in ends if end < examples})
