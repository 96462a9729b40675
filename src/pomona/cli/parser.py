"""Parsing of arguments: one-line messages, help that reads well in 80 columns, checked values."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

USAGE_ERROR = 2


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Options as ``-o, --output FILE``, the same in every version of Python."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=79)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return str(action.metavar or action.dest)
        names = ", ".join(action.option_strings)
        return names if action.nargs == 0 else f"{names} {action.metavar or action.dest.upper()}"


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line and say what to do."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Complain in one line and leave with the exit code for wrong usage."""
        if match := re.fullmatch(r"argument (?:-\w/)?([\w-]+): (.*)", message, re.DOTALL):
            name, rest = match.groups()
            message = f"{name} {rest}" if rest.startswith("must ") else f"{name}: {rest}"
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse files and options in any order, with a guess at what a misspelt option was meant to be."""
        parsed, unknown = self.parse_known_intermixed_args(arguments)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            self.error(unknown_word("option" if unknown[0].startswith("-") else "argument", unknown[0], known))
        return parsed


def unknown_word(kind: str, word: str, known: Iterable[str]) -> str:
    """``unknown KIND 'word'``, with the names that are close to it."""
    bare = word.split("=")[0]
    close = difflib.get_close_matches(bare, list(known), n=2)
    return f"unknown {kind} {bare!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")


# ---- values: each function checks one kind, in scikit-learn's words ----

Check = Callable[[str], Any]


def _refuse(rule: str, got: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"must be {rule}; got {got}")


def number(
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Check:
    """A finite number inside bounds."""
    limits = [
        f"{sign} {bound:g}"
        for sign, bound in ((">=", least), (">", above), ("<=", most), ("<", below))
        if bound is not None
    ]
    rule = " ".join(["a number", " and ".join(limits)]).strip()

    def check(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            _refuse(rule, repr(text))
        inside = (
            math.isfinite(value)
            and (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
        return value if inside else _refuse(rule, text)

    return check


def auto_or(check: Check) -> Check:
    """``auto``, or what another check takes."""

    def either(text: str) -> Any:
        if text == "auto":
            return text
        try:
            return check(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(str(error).replace("must be ", "must be auto or ", 1)) from None

    return either


def whole(least: int, most: int | None = None) -> Check:
    """A whole number inside bounds."""
    rule = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"

    def check(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            _refuse(rule, repr(text))
        return value if value >= least and (most is None or value <= most) else _refuse(rule, text)

    return check


def wholes(text: str) -> list[int]:
    """Rising whole numbers above 0 with commas between them."""
    rule = "rising whole numbers with commas between, such as 1000,5000"
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        _refuse(rule, repr(text))
    numbers = [int(part) for part in parts]
    return numbers if all(a < b for a, b in zip((0, *numbers), numbers, strict=False)) else _refuse(rule, repr(text))


def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(text: str) -> str:
        return text if text in words else _refuse(f"one of {', '.join(words)}", repr(text))

    return check


def joined(*words: str) -> Check:
    """``auto``, or some of a few words with plus signs between them."""

    def check(text: str) -> str:
        parts = text.split("+")
        if text == "auto" or (set(parts) <= set(words) and len(set(parts)) == len(parts)):
            return text
        _refuse(f"auto, or some of {', '.join(words)} with + between", repr(text))

    return check


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name for name in text.split(",") if name] or _refuse("a name, or names with commas between", repr(text))


def size(text: str) -> int:
    """Bytes: ``500M``, ``2G``, ``1.5GiB`` or a plain number."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match or float(match[1]) == 0:
        _refuse("a size such as 500M or 2G", repr(text))
    return int(float(match[1]) * 1024 ** ("KMGT".find(match[2].upper()) + 1 if match[2] else 0))


def interactions(text: str) -> str:
    """``linear``, ``quadratic``, ``cubic`` or a product of two or three fields."""
    factors = text.split("*")
    if text in ("linear", "quadratic", "cubic") or (2 <= len(factors) <= 3 and all(factors)):
        return text
    _refuse("linear, quadratic, cubic or fields with * between, such as age*sex", repr(text))
