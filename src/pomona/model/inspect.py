"""What a model is, how it was trained, and what it learnt: as a dictionary, as text, as a picture."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

from pomona.atomic import replacing
from pomona.errors import MissingDependencyError, OptionError
from pomona.words import byte_words, figure_words, label_words, task_words

if TYPE_CHECKING:
    from pomona.model.pipeline import Model

#: Classes stand side by side up to this many; beyond it only the class with the strongest weight is shown.
_MAX_COLUMNS = 4
_WIDTH = 79
#: Options that the command line calls by another name.
_SHOWN_AS = {"cuttings": "models"}


def describe(model: Model[Any], top: int = 20) -> dict[str, Any]:
    """Everything ``pomona inspect`` tells, as plain JSON values.

    Parameters
    ----------
    model : a trained or loaded model.
    top : how many features to name, the strongest first; ``ranked_by`` says what makes them so.
    """
    return {
        "learner": model.learner.family,
        "task": model.task.header(),
        "training": model.summary,
        "options": model.changed_options(),
        "columns": model.columns(),
        **model.learner.inspect(model.task, top),
    }


def top_features(model: Model[Any], top: int) -> list[dict[str, Any]]:
    """The strongest features of a model: see :meth:`pomona.learner.Learner.inspect`."""
    found: list[dict[str, Any]] = model.learner.inspect(model.task, top)["top"]
    return found


# ---- text ----


def as_text(report: dict[str, Any], name: str) -> str:
    """The report for people, in 80 columns."""
    facts = {
        "trained on": _training_words(report["training"]),
        "loss": figure_words(report["training"]),
        "options": ", ".join(_option_words(name, value) for name, value in report["options"].items()),
        "columns": ", ".join(f"{column} ({kind})" for column, kind in report["columns"].items()),
        **report["facts"],
    }
    if about := report.get("file"):
        facts["made by"] = f"{about['made_by']}, file format {about['version']}, {byte_words(about['bytes'])}"
    lines = [f"{name}: {report['learner']} learner, {task_words(**report['task'])}"]
    for heading, words in facts.items():
        if words:
            indent = f"  {heading:<12}"
            lines += textwrap.wrap(
                words,
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=" " * len(indent),
                break_on_hyphens=False,
            )
    return "\n".join([*lines, *_top_lines(report)])


def _training_words(training: dict[str, Any]) -> str:
    passes = training["passes"]
    values = f", {training['features']:,} feature values" if "features" in training else ""
    return f"{training['data']}: {training['examples']:,} examples{values} in {passes} pass{'es' if passes > 1 else ''}"


def _option_words(name: str, value: Any) -> str:
    name = _SHOWN_AS.get(name, name).replace("_", "-")
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}"


def _top_lines(report: dict[str, Any]) -> list[str]:
    top = report["top"]
    if not top:
        return ["", report.get("no_top", "no feature has a weight other than zero")]
    classes = [label_words(label) for label in report["task"]["classes"]] if "weights" in top[0] else []
    side_by_side = 0 < len(classes) <= _MAX_COLUMNS
    heads = classes if side_by_side else ["class", "weight"] if classes else ["weight"]
    lines = ["", f"top {len(top)} features by {report.get('ranked_by', '|weight| · scale')}", ""]
    lines.append("  " + "".join(f"{head[:10]:>11}" for head in heads) + f"{'scale':>11}  feature")
    for entry in top:
        if side_by_side:
            cells = [f"{weight:+.4f}" for weight in entry["weights"]]
        else:
            cells = ([label_words(entry["class"])[:10]] if classes else []) + [f"{entry['weight']:+.4f}"]
        lines.append("  " + "".join(f"{cell:>11}" for cell in cells) + f"{entry['scale']:>11.4g}  {entry['feature']}")
    return lines


# ---- picture ----


def plot(report: dict[str, Any], path: str | os.PathLike[str], title: str = "") -> None:
    """Draw the top features as bars of weight times scale; needs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError('drawing needs matplotlib: install it with pip install "pomona[plot]"') from None
    kind = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise OptionError(f"a picture's name must end in .png, .svg or .pdf; got {os.fspath(path)!r}")
    top = report["top"][::-1]
    figure = Figure(figsize=(8, 1 + 0.28 * max(len(top), 3)), layout="constrained")
    axes = figure.add_subplot()
    sizes = [entry["weight"] * entry["scale"] for entry in top]
    labels = [entry["feature"] + (f"  → {label_words(entry['class'])}" if "class" in entry else "") for entry in top]
    axes.barh(range(len(top)), sizes, color=["#b2434f" if size < 0 else "#3b6ea5" for size in sizes])
    axes.set_yticks(range(len(top)), labels)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("weight · scale")
    axes.set_title(title)
    with replacing(path) as file:
        figure.savefig(file, format=kind, dpi=150)
