"""Models of least squares written by earlier versions load, and predict what they predicted then.

Seeds stand in for features in these files, so that a change of the random streams would show here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pomona.leastsquares.learner import CalibratedLearnOptions, GLSLearnOptions, StagewiseLearnOptions
from pomona.model import load, train
from pomona.options import ReadOptions

GOLDEN = Path(__file__).parent.parent / "golden"
TABLE = "a,b,c,d,kind\n" + "".join(
    f"{i % 7},{(i * i) % 11},{(3 * i) % 5},{i % 2},{('low', 'middle', 'high')[(i % 7 + (i * i) % 11) % 3]}\n"
    for i in range(80)
)
LEARN: dict[str, Any] = {
    "gls-v1": GLSLearnOptions(max_steps=20),
    "cls-v1": CalibratedLearnOptions(max_rounds=3),
    "fourier-v1": StagewiseLearnOptions(block_size=12, n_stages=2, inner="calibrated"),
    "logits-v1": StagewiseLearnOptions(
        generator="logits", generator_options={"pca": 2}, block_size=12, n_stages=2, inner="logistic", n_models=2
    ),
    "polynomials-v1": StagewiseLearnOptions(generator="polynomials", block_size=12, n_stages=2, holdout=0.2),
    "gradient-v1": StagewiseLearnOptions(generator="gradient", block_size=2),
    "convolution-v1": StagewiseLearnOptions(
        generator="convolution",
        generator_options={"shape": [2, 2, 1], "patch": 1, "masks": "kmeans"},
        block_size=16,
        n_stages=1,
    ),
}


def table(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("name", LEARN)
def test_old_models_predict_as_they_did(name, tmp_path):
    model = load(GOLDEN / f"{name}.pomona")
    predicted = np.concatenate(list(model.predict(table(tmp_path))))
    np.testing.assert_allclose(predicted, json.loads((GOLDEN / f"{name}.json").read_text()), atol=1e-5)


def regenerate(folder: Path) -> None:
    for name, learn in LEARN.items():
        model = train(table(folder), read=ReadOptions(target="kind"), learn=learn)
        model.summary |= {"data": "data.csv", "seconds": 0.0}
        for report in getattr(model.learner.model, "reports", []):
            report.seconds = 0.0
        model.save(GOLDEN / f"{name}.pomona")
        predicted = np.concatenate(list(model.predict(table(folder))))
        (GOLDEN / f"{name}.json").write_text(json.dumps(np.round(predicted, 9).tolist()) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        regenerate(Path(folder))
