"""``pomona predict``: score new data with a model."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomona.cli import common
from pomona.cli.parser import Parser, one_of
from pomona.errors import OptionError
from pomona.options import ReadOptions
from pomona.words import label_words

if TYPE_CHECKING:
    from pomona.cli.score import Score
    from pomona.model import Model

DESCRIPTION = """\
Scores every example, in order: for two classes the probability of the second,
for more the class, for regression the value. Predictions stream to standard
output, one line an example, or to a file that appears when it is complete.
Labels are not needed; where the data has them, the error is reported."""

EXAMPLES = """\
  pomona predict clicks.pomona new.vw.gz > scores.txt
  tail -f live.vw | pomona predict clicks.pomona - --format vw
  pomona predict adult.pomona new.parquet -o scores.parquet
  pomona predict letters.pomona new.csv --proba -o scores.csv"""

OUTPUT_FORMATS = ("text", "csv", "parquet")
SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def parser() -> Parser:
    """The options of the command."""
    result = common.make_parser("predict", "MODEL DATA [DATA ...] [-o FILE] [options]", DESCRIPTION, EXAMPLES)
    result.add_argument("model", metavar="MODEL", help="file written by pomona train")
    result.add_argument("data", nargs="+", metavar="DATA", help="files, quoted globs, folders, or - for stdin")
    result.add_argument("-o", "--output", metavar="FILE", help="file for the predictions (default: stdout)")
    group = result.add_argument_group("predictions")
    group.add_argument(
        "--output-format",
        type=one_of(*OUTPUT_FORMATS),
        metavar="NAME",
        help="text, csv or parquet (default: by the name of FILE, else text)",
    )
    for name, text in (
        ("proba", "probabilities, of all classes where there are more than two"),
        ("labels", "classes instead of probabilities"),
        ("raw", "what the model computes before it becomes a probability"),
    ):
        group.add_argument(f"--{name}", action="store_const", const=name, dest="show", help=text)
    common.add_read_options(result)
    common.add_report_options(result, "print figures as one JSON object at the end; needs -o")
    return result


def interrupted(args: argparse.Namespace) -> str:
    """What to say after Ctrl-C."""
    return f"stopped: {args.output} was not written" if args.output else "stopped"


def run(args: argparse.Namespace) -> int:
    """Predict, write, report."""
    from pomona.cli.output import open_writer
    from pomona.cli.score import Score
    from pomona.model import load

    kind = args.output_format or SUFFIXES.get(Path(args.output or "").suffix.lower(), "text")
    if kind == "parquet" and not args.output:
        raise OptionError("--output-format parquet needs a file: give -o")
    if args.json and not args.output:
        raise OptionError("--json needs a file for the predictions: give -o")
    model = load(args.model)
    if args.show in ("proba", "labels") and model.task.kind == "regression":
        raise OptionError(f"--{args.show} needs classes; {args.model} predicts numbers")
    source = model.source(common.inputs(args.data), common.read_options(args))
    score = Score(model.task)
    start = time.perf_counter()
    with open_writer(kind, args.output) as writer:
        for chunk in source.chunks():
            raw = model.raw_predict(chunk)
            predicted = model.finish(raw)
            writer.write(columns(model, args.show, raw, predicted))
            score.add(chunk, predicted)
    if args.json:
        common.print_json({"path": args.output, **score.figures(), "seconds": time.perf_counter() - start})
    elif not args.quiet:
        sys.stdout.flush()
        common.note_skipped(getattr(source, "table", source))
        common.note(*score.lines())
    return 0


def evaluate(model: Model[Any], data: str) -> Score:
    """How well a model predicts a file with labels."""
    from pomona.cli.score import Score

    score = Score(model.task)
    for chunk in model.chunks(data, ReadOptions()):
        score.add(chunk, model.finish(model.raw_predict(chunk)))
    return score


def columns(model: Model[Any], show: str | None, raw: Any, predicted: Any) -> dict[str, Any]:
    """Name and values of each column of the output."""
    task = model.task
    names = [label_words(label) for label in task.classes]
    if show == "raw":
        return {"raw": raw} if raw.ndim == 1 else {f"raw_{name}": raw[:, i] for i, name in enumerate(names)}
    if task.kind == "regression":
        return {"prediction": predicted}
    if task.kind == "multiclass" and show == "proba":
        return {name: predicted[:, i] for i, name in enumerate(names)}
    if task.kind == "binary" and show != "labels":
        return {"probability": predicted}
    codes = predicted.argmax(axis=1) if task.kind == "multiclass" else (predicted > 0.5).astype(int)
    return {"label": [names[code] for code in codes.tolist()]}
