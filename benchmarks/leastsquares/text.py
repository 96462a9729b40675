"""20 newsgroups and Reuters: the text recipe of appendix A.2.2 beside the online learner (Table 2)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.leastsquares import Setting, timed
from benchmarks.options import say, table
from pomona import OnlineClassifier, StagewiseClassifier
from pomona.leastsquares.arrays import Place
from pomona.leastsquares.rows import ArrayRows
from pomona.leastsquares.spectrum import spectrum

#: Words met less often than this in training are left out (appendix A.2.2).
MIN_COUNT = 3
#: Error in percent of Vowpal Wabbit, liblinear and stagewise, and the condition number, in the paper.
PAPER = {"20newsgroups": ((12.4, 13.8, 11.7), 19.8), "reuters21578": ((2.75, 2.73, 2.77), 14.0)}
#: The paper's λ = 30 over its 15,000 training examples.
RIDGE = 30 / 15_000
#: "We split the data into 15000 for training and the rest for testing" (appendix A.2.2).
NEWS_TRAIN = 15_000
WORD = re.compile(r"[a-z0-9]+")
#: The largest classes of Reuters stand for the four of RCV1.
REUTERS_CLASSES = 4


def text(setting: Setting) -> bool:
    rows = []
    for name, (paper, condition) in PAPER.items():
        X, y, X_test, y_test = load(setting, name)
        place = Place.of(None, "float32")
        found = spectrum(ArrayRows(X, place))
        print(
            f"{name}: {X.shape[0]:,} × {X.shape[1]:,}, condition {found.condition:.3g} (the paper's set:"
            f" {condition:g}); {found.advice()}"
        )
        for method, model in contenders(setting.quick).items():
            say(f"{name}, {method}")
            with timed() as clock:
                model.fit(X, y)
            error = 100 * float(np.mean(model.predict(X_test) != y_test))
            theirs = paper[0] if "online" in method else paper[2]
            rows.append([f"{name}, {method}", f"{error:.2f}", f"{theirs:.2f}", f"{clock.seconds:.1f}"])
            setting.log.add(part="text", name=name, method=method, error=error, seconds=clock.seconds)
    print(table(["text", "error %", "paper's error % on its set", "seconds"], rows))
    print("Reuters-21578, its four largest topics, stands for RCV1.")
    return True


def contenders(quick: bool) -> dict[str, Any]:
    stagewise: dict[str, Any] = {"generator": "gradient", "ridge": RIDGE, "precision": "float32", "memory": 2 << 30}
    few: dict[str, Any] = {"n_stages": 4} if quick else {}
    return {
        "online": OnlineClassifier(passes=5),
        "stagewise, blocks of 500, 2 passes": StagewiseClassifier(block_size=500, **stagewise, **few),
        "stagewise, 2 blocks of 2000": StagewiseClassifier(
            block_size=2000, n_stages=2, generator_options={"every_stage": True}, **stagewise
        ),
    }


def load(setting: Setting, name: str) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Logarithms of the counts of words, as CSR, with the paper's split of 20 newsgroups and Reuters' own."""
    path = setting.data / f"{name}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"{name} needs {path}: give its folder with --data")
    frame = pd.read_parquet(path)
    frame = frame[frame["split"].isin(["train", "test"]) & (frame["label"].astype(str) != "")]
    if name == "reuters21578":
        # Stories of one topic, among the most frequent.
        topics = frame["topics"].astype(str)
        frame = frame[topics == frame["label"].astype(str)]
        frequent = frame["label"].astype(str).value_counts().index[:REUTERS_CLASSES]
        frame = frame[frame["label"].astype(str).isin(frequent)]
    words = [Counter(WORD.findall(document.lower())) for document in frame["text"].astype(str)]
    train = (frame["split"] == "train").to_numpy()
    if name == "20newsgroups":
        train = np.random.default_rng(0).permutation(len(frame)) < NEWS_TRAIN
    totals: Counter[str] = Counter()
    for counts, used in zip(words, train, strict=True):
        if used:
            totals.update(counts)
    columns = {word: j for j, word in enumerate(sorted(word for word, total in totals.items() if total >= MIN_COUNT))}
    kept = [[(columns[word], count) for word, count in counts.items() if word in columns] for counts in words]
    indptr = np.cumsum([0, *map(len, kept)])
    pairs = np.array([pair for row in kept for pair in row], np.float64).reshape(-1, 2)
    values = np.log1p(pairs[:, 1]).astype(np.float32)
    X = sparse.csr_matrix((values, pairs[:, 0].astype(np.int32), indptr), shape=(len(kept), len(columns)))
    X.sort_indices()
    y = frame["label"].astype(str).to_numpy()
    order = np.random.default_rng(0).permutation(np.flatnonzero(train))
    order = order[:2000] if setting.quick else order
    return X[order], y[order], X[~train], y[~train]
