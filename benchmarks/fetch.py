"""Download data sets from OpenML (https://www.openml.org) by name, for the other commands.

Each becomes NAME.parquet in --data with the target in the column `label`: classes as text, quantities as numbers. The
commands then take NAME among their --sets. The paper's sets that OpenML has: MagicTelescope (magic04), eeg-eye-state,
nomao, skin-segmentation, YearPredictionMSD, slice_localization. Nothing else in pomona uses the network.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError

LABEL = "label"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of data sets on OpenML")
    parser.add_argument("--version", type=int, metavar="V", help="version (default: the active one)")
    parser.add_argument("--target", metavar="COLUMN", help="column to predict (default: the set's own)")
    parser.add_argument("--force", action="store_true", help="download again what is there")


def run(args: argparse.Namespace) -> int:
    args.data.mkdir(parents=True, exist_ok=True)
    for name in args.names:
        path = args.data / f"{name}.parquet"
        if path.exists() and not args.force:
            print(f"already there: {path}")
            continue
        try:
            frame = download(name, args.version, args.target)
        except FetchError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        write(frame, path)
        print(f"written: {path}: {len(frame):,} rows, {frame.shape[1] - 1} columns")
    return 0


class FetchError(Exception):
    """A set cannot be had, and why."""


def download(name: str, version: int | None = None, target: str | None = None) -> Any:
    """The set as a frame with the target in ``label``."""
    from sklearn.datasets import fetch_openml

    if not re.fullmatch(r"[\w.()-]+", name):
        raise FetchError(f"the name of a data set has letters, digits, - and _ only; got {name!r}")
    try:
        found = fetch_openml(
            name, version=version or "active", target_column=target or "default-target", as_frame=True, parser="auto"
        )
    except URLError as error:
        raise FetchError(
            f"OpenML cannot be reached ({error.reason}): this command needs the network; without it, put the file"
            f" {name}.parquet with the target in the column {LABEL!r} into --data by hand"
        ) from error
    except (ValueError, KeyError) as error:
        raise FetchError(f"OpenML has no such data set {name!r}: {str(error).splitlines()[0]}") from error
    if found.target is None or getattr(found.target, "ndim", 1) != 1:
        raise FetchError(f"{name} does not say which column to predict: name one with --target")
    return found.data.assign(**{LABEL: found.target})


def write(frame: Any, path: Path) -> None:
    """The frame as Parquet; it appears when it is complete."""
    for column in frame.columns[frame.dtypes == "category"]:
        frame[column] = frame[column].astype(str).astype("category")
    if frame[LABEL].dtype == "category":
        frame[LABEL] = frame[LABEL].astype(str)
    partial = path.with_name(path.name + ".partial")
    frame.dropna(subset=[LABEL]).to_parquet(partial, compression="zstd")
    partial.replace(path)
