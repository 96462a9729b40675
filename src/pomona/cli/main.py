"""The command ``pomona``: runs the command named, and turns every failure into one line and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

from pomona import __version__
from pomona.cli.parser import USAGE_ERROR, unknown_word
from pomona.errors import OptionError, PomonaError
from pomona.words import error_words

OK, FAILED, INTERRUPTED, TERMINATED = 0, 1, 130, 143

COMMANDS = {
    "train": "learn a model from files of any size",
    "predict": "score new data with a model",
    "inspect": "say what a model is, how it was trained, and what it learnt",
    "convert": "turn text into files that are faster to read",
    "demo": "see linear and quadratic learning side by side, in seconds",
}

HELP = f"""\
usage: pomona COMMAND ... [options]

Learns linear models and models with products of features, online, from data
larger than memory.

commands:
{chr(10).join(f"  {name:<9} {text}" for name, text in COMMANDS.items())}

options:
  --help     show this, or after a command the help of that command
  --version  show the version
  --debug    show where in the program an error came from

begin with:
  pomona demo
  pomona train clicks.vw.gz -o clicks.pomona
  pomona inspect clicks.pomona
  cat new.vw | pomona predict clicks.pomona - > scores.txt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 done, 1 data or file at fault, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="", file=sys.stdout if arguments else sys.stderr)
        return OK if arguments else USAGE_ERROR
    if arguments[0] in ("-V", "--version"):
        print(f"pomona {__version__}")
        return OK
    name, *rest = arguments
    if name not in COMMANDS:
        problem = unknown_word("option" if name.startswith("-") else "command", name, COMMANDS)
        print(f"pomona: error: {problem} (see pomona --help)", file=sys.stderr)
        return USAGE_ERROR
    command = importlib.import_module(f"pomona.cli.{name}")
    with _terminable():
        return _guarded(name, command, rest, debug)


def _guarded(name: str, command: Any, arguments: list[str], debug: bool) -> int:
    """Run a command; whatever goes wrong that a user may cause ends in one line."""
    try:
        args = command.parser().parse(arguments)
        try:
            code = int(command.run(args))
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            _complain(name, command.interrupted(args), debug)
            return INTERRUPTED
    except SystemExit as leaving:
        # argparse leaves this way after --help and after a complaint.
        return leaving.code if isinstance(leaving.code, int) else OK
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _drop_output()
        return OK
    except OptionError as error:
        _complain(name, str(error), debug)
        return USAGE_ERROR
    except PomonaError as error:
        _complain(name, str(error), debug)
    except OSError as error:
        _drop_output()
        _complain(name, f"{error.filename}: {error_words(error)}" if error.filename else error_words(error), debug)
    except MemoryError:
        _complain(name, "out of memory: give a smaller --memory, or fewer --interactions", debug)
    return FAILED


def _drop_output() -> None:
    """What standard output cannot take must not be tried again, and complained about, when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(name: str, message: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    # A line of progress may stand there half-written.
    start = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{start}pomona {name}: {' '.join(message.split())}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let the signal TERM unwind the program, so that temporary files go."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(TERMINATED)

    try:
        old = signal.signal(signal.SIGTERM, leave)
    except ValueError:
        # Only the main thread may set handlers.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
