"""``pomona demo``: linear and quadratic learning side by side, on data made here."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomona.cli import common, predict, train
from pomona.cli.parser import Parser, whole
from pomona.words import count_words

if TYPE_CHECKING:
    from pomona.cli.score import Score
    from pomona.model import Model

DESCRIPTION = """\
Makes a small set of clicks in which pairs of features matter, trains a linear
and a quadratic model with the same code as 'pomona train', and shows their
losses, what the second one found, and what to type next. Takes seconds."""

EXAMPLES = """\
  pomona demo
  pomona demo --examples 1000000
  pomona demo --folder clicks"""

FIELDS = {
    "device": ("phone", "tablet", "desktop"),
    "topic": ("games", "news", "recipes", "travel", "sport"),
    "hour": ("morning", "noon", "evening", "night"),
}
#: Log-odds of a click that a feature adds alone, and with another; for a linear model the pairs cancel out.
ALONE = {"sport": 0.8, "night": -0.6, "tablet": 0.5}
PAIRS = {
    ("phone", "games"): 2.0,
    ("desktop", "games"): -2.0,
    ("desktop", "travel"): 1.8,
    ("phone", "travel"): -1.8,
    ("evening", "recipes"): 1.6,
    ("morning", "recipes"): -1.6,
    ("morning", "news"): 1.4,
    ("night", "news"): -1.4,
}
#: Pages tell nothing: a good learner leaves them alone.
PAGES = 200


def parser() -> Parser:
    """The options of the command."""
    result = common.make_parser("demo", "[options]", DESCRIPTION, EXAMPLES)
    group = result.add_argument_group("demo")
    group.add_argument(
        "--examples",
        type=whole(1000, 100_000_000),
        default=100_000,
        metavar="N",
        help="how many (default: 100000)",
    )
    group.add_argument("--folder", metavar="FOLDER", help="where the files go (default: a temporary folder)")
    group.add_argument("--help", "-h", action="help", help="show this")
    return result


def interrupted(args: argparse.Namespace) -> str:
    """What to say after Ctrl-C."""
    return "stopped"


def run(args: argparse.Namespace) -> int:
    """Make the data, train twice, compare."""
    if args.folder:
        folder = Path(args.folder)
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix="pomona-demo-"))
    print(f"Making {args.examples:,} clicks to learn from, and a quarter as many to test, in\n{folder}\n")
    best = [
        write_clicks(folder / "train.vw", args.examples, 0),
        write_clicks(folder / "test.vw", args.examples // 4, 1),
    ]
    models: dict[str, Model[Any]] = {}
    scores: dict[str, Score] = {}
    for name, options in (("linear", []), ("quadratic", ["--interactions", "quadratic"])):
        arguments = ["train.vw", *options, "-o", f"{name}.pomona"]
        print(f"$ pomona train {' '.join(arguments)}", flush=True)
        models[name] = _train(folder, arguments)
        scores[name] = predict.evaluate(models[name], str(folder / "test.vw"))
    print(_comparison(models, scores, best[1]))
    print(_findings(models["quadratic"]))
    print(_next_steps(folder))
    return 0


def write_clicks(path: Path, examples: int, seed: int) -> float:
    """Write VW text and return the log loss of who knows the true probabilities."""
    import numpy as np

    rng = np.random.default_rng(seed)
    picks = {field: rng.integers(len(words), size=examples) for field, words in FIELDS.items()}
    pages = rng.integers(PAGES, size=examples)
    odds = sum(value * _has(picks, word) for word, value in ALONE.items())
    for (first, second), value in PAIRS.items():
        odds += value * _has(picks, first) * _has(picks, second)
    probability = 1.0 / (1.0 + np.exp(-odds))
    clicked = rng.random(examples) < probability
    columns = [[f"|{field} {words[i]}" for i in picks[field].tolist()] for field, words in FIELDS.items()]
    lines = (
        f"{1 if click else -1} {' '.join(features)} |page p{page}\n"
        for click, page, *features in zip(clicked.tolist(), pages.tolist(), *columns, strict=True)
    )
    path.write_text("".join(lines))
    return float(-np.log(np.where(clicked, probability, 1.0 - probability)).mean())


def _has(picks: dict[str, Any], word: str) -> Any:
    field = next(field for field, words in FIELDS.items() if word in words)
    return picks[field] == FIELDS[field].index(word)


def _train(folder: Path, arguments: list[str]) -> Model[Any]:
    """Train as the command does, with the paths inside the folder."""
    placed = [str(folder / word) if word.endswith((".vw", ".pomona")) else word for word in arguments]
    args = train.parser().parse([*placed, "--quiet"])
    return train.train_and_save(args)


def _comparison(models: dict[str, Model[Any]], scores: dict[str, Score], best: float) -> str:
    rows: list[tuple[str, list[str], str]] = [
        ("loss while learning", [f"{model.summary['loss']:.4f}" for model in models.values()], ""),
        (
            "loss on new data",
            [f"{score.figures()['log_loss']:.4f}" for score in scores.values()],
            f"{best:.4f}",
        ),
        ("error on new data", [f"{100 * score.figures()['error']:.1f} %" for score in scores.values()], ""),
        ("weights", [f"{model.summary['weights']:,}" for model in models.values()], ""),
        (
            "examples a second",
            [count_words(model.summary["examples"] / model.summary["seconds"]) for model in models.values()],
            "",
        ),
    ]
    lines = [f"\n{'':<22}{'linear':>12}{'quadratic':>12}{'best possible':>16}"]
    lines += [f"{name:<22}{cells[0]:>12}{cells[1]:>12}{last:>16}".rstrip() for name, cells, last in rows]
    return "\n".join(lines)


def _findings(model: Model[Any]) -> str:
    from pomona.model.inspect import top_features

    lines = ["\nWhat the quadratic model is surest of (+ means more clicks):\n"]
    lines += [f"  {entry['weight']:>+8.3f}  {entry['feature']}" for entry in top_features(model, len(PAIRS))]
    return "\n".join(lines)


def _next_steps(folder: Path) -> str:
    # After `make demo` the program is in an environment that the shell does not look into.
    found = shutil.which("pomona") is not None
    return "\n".join(
        [
            "\nType next:",
            *([] if found else [f"  export PATH={Path(sys.executable).parent}:$PATH"]),
            f"  cd {folder}",
            "  pomona inspect quadratic.pomona --top 20",
            "  pomona predict quadratic.pomona test.vw | head",
            "  pomona train train.vw --interactions device*topic --passes 3",
            "  pomona train --help",
        ]
    )
