"""Words for figures and labels, as people like to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def task_words(kind: str, classes: Sequence[Any]) -> str:
    """``binary, classes -1 and 1``."""
    if not classes:
        return kind
    shown = [label_words(label) for label in classes]
    if len(shown) > 6:
        return f"{kind}, {len(shown)} classes: {', '.join(shown[:5])}, …"
    if len(shown) == 1:
        return f"{kind}, class {shown[0]}"
    return f"{kind}, classes {', '.join(shown[:-1])} and {shown[-1]}"


def label_words(label: Any) -> str:
    """A class as the data has it: whole numbers without a point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def error_words(error: OSError) -> str:
    """The system's reason, to stand after a colon."""
    return error.strerror.lower() if error.strerror else str(error)


def count_words(number: float) -> str:
    """``950``, ``12.3k``, ``4.5M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * limit:
            return f"{number / limit:.3g}{unit}" if number < 999.5 * limit else f"{number / limit:.0f}{unit}"
    return f"{number:.0f}"


def loss_words(loss: float) -> str:
    """Five decimals, or four digits where the unit of the target makes the loss large."""
    return f"{loss:.5f}" if abs(loss) < 1000 else f"{loss:.4g}"


def byte_words(number: float) -> str:
    """``950 B``, ``12.3 kB``, ``4.5 MB``."""
    words = count_words(number)
    return f"{words[:-1]} {words[-1]}B" if words[-1].isalpha() else f"{words} B"


def time_words(seconds: float) -> str:
    """``0.8 s``, ``12 s``, ``3:05``, ``1:02:03``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def figure_words(summary: Mapping[str, Any]) -> str:
    """Losses and error of training: ``logistic loss 0.31 and error 12.00 %, progressive, 0.32 held out``."""
    parts = []
    if summary.get("loss") is not None:
        error = "" if summary.get("error") is None else f" and error {100 * summary['error']:.2f} %"
        when = summary.get("loss_when", "progressive")
        parts.append(f"{summary['loss_name']} loss {loss_words(summary['loss'])}{error}, {when}")
    if summary.get("held_out") is not None:
        parts.append(f"{loss_words(summary['held_out'])} held out")
    return ", ".join(parts)
