"""Every error pomona raises on purpose.

Each message is one sentence: the rule, what was found, and what to do about it.
"""

from __future__ import annotations


class PomonaError(Exception):
    """Base of all errors raised by pomona."""


class OptionError(PomonaError, ValueError):
    """An option has a value outside its range, or two options contradict each other."""


class DataFormatError(PomonaError, ValueError):
    """Malformed data, with the place where it stands.

    Parameters
    ----------
    message : what was expected and what was found.
    file : name of the file, ``"<stdin>"`` or a description of the object read.
    line, column : one-based place in the file; 0 when it has none.
    """

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0) -> None:
        self.message, self.file, self.line, self.column = message, file, line, column
        place = ":".join([file] + [str(n) for n in (line, column) if n])
        super().__init__(f"{place}: {message}" if place else message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_data_format_error, (self.message, self.file, self.line, self.column))


def _data_format_error(message: str, file: str, line: int, column: int) -> DataFormatError:
    return DataFormatError(message, file=file, line=line, column=column)


class ModelFileError(PomonaError, ValueError):
    """A model file is truncated, foreign, damaged or newer than this program."""


class NumericError(PomonaError, ArithmeticError):
    """Learning produced a number that is not finite."""


class MissingDependencyError(PomonaError, ImportError):
    """An optional package is needed and not installed."""
