"""Models written by earlier versions load, and predict what they predicted then; `make golden` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pomona.higherorder.options import ALROptions, AnJEOptions, KDBOptions
from pomona.model import load, train
from pomona.options import LearnOptions, ReadOptions

GOLDEN = Path(__file__).parent.parent / "golden"
TEXT = "".join(
    f"{1 if (i % 3 == 0) == (i % 2 == 0) else -1} '{i} |a x{i % 3} y:{i % 5} |b z{i % 2}\n" for i in range(60)
)
TABLE = "age,sex,kind\n" + "".join(
    f"{20 + i % 40},{'Male' if i % 2 else ''},{('low', 'middle', 'high')[i % 7 % 3]}\n" for i in range(60)
)
MODELS = {
    "text-v1": (TEXT, "data.vw", ReadOptions(), LearnOptions(interactions="quadratic", passes=2)),
    "hashed-v1": (TEXT, "data.vw", ReadOptions(), LearnOptions(bits=10, l1=1e-4)),
    "table-v1": (TABLE, "data.csv", ReadOptions(target="kind"), LearnOptions()),
    "apple-v1": (TEXT, "data.vw", ReadOptions(), LearnOptions(learner="apple", rounds=(10, 20, 40), heuristic="ssm")),
    "alr-v1": (TABLE, "data.csv", ReadOptions(target="kind"), ALROptions(order=2)),
    "anje-v1": (TABLE, "data.csv", ReadOptions(target="kind"), AnJEOptions()),
    "kdb-v1": (TABLE, "data.csv", ReadOptions(target="kind"), KDBOptions()),
}


def data_file(name: str, folder: Path) -> str:
    path = folder / MODELS[name][1]
    path.write_text(MODELS[name][0])
    return str(path)


@pytest.mark.parametrize("name", MODELS)
def test_old_models_predict_as_they_did(name: str, tmp_path: Path) -> None:
    model = load(GOLDEN / f"{name}.pomona")
    predicted = np.concatenate(list(model.predict(data_file(name, tmp_path))))
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    # Sums of 32-bit numbers: a later version may add them in another order.
    np.testing.assert_allclose(predicted, expected, rtol=1e-6)


def regenerate(folder: Path, names: list[str]) -> None:
    for name in names:
        _, _, read, learn = MODELS[name]
        data = data_file(name, folder)
        model = train(data, read=read, learn=learn)
        # Nothing in the files may depend on where and when they were written.
        model.summary |= {"data": Path(data).name, "seconds": 0.0}
        model.save(GOLDEN / f"{name}.pomona")
        predicted = np.concatenate(list(model.predict(data)))
        (GOLDEN / f"{name}.json").write_text(json.dumps(predicted.tolist()) + "\n")


if __name__ == "__main__":  # names of models, or all of them
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        regenerate(Path(folder), sys.argv[1:] or list(MODELS))
