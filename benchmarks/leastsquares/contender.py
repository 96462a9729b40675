"""One contender of ``least-squares speed`` in a process of its own: prints its seconds and its test error as JSON.

Run as ``python -m benchmarks.leastsquares.contender NAME --data DIR --rows N --size P``. Features are random Fourier
features of MNIST; making them counts. Vowpal Wabbit reads them from a file that is written before, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.leastsquares import Images, Setting, images
from benchmarks.leastsquares.mnist import PCA, fourier
from benchmarks.options import Log

STAGEWISE = {
    "stagewise linear 256": {"inner": "linear", "block_size": 256, "n_stages": 24},
    "stagewise linear 512": {"inner": "linear", "block_size": 512, "n_stages": 20},
    "stagewise linear 1024": {"inner": "linear", "block_size": 1024, "n_stages": 8},
    "stagewise linear 2048": {"inner": "linear", "block_size": 2048, "n_stages": 4},
    "stagewise calibrated 512": {"inner": "calibrated", "block_size": 512, "n_stages": 20},
    "stagewise logistic 512": {"inner": "logistic", "block_size": 512, "n_stages": 10},
}


def scikit_learn() -> dict[str, Any]:
    """All solvers of Figure 2, and scikit-learn's own, with default penalties."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    return {
        "scikit-learn lbfgs": LogisticRegression(solver="lbfgs", max_iter=200),
        "scikit-learn newton-cholesky": LogisticRegression(solver="newton-cholesky"),
        "scikit-learn saga": LogisticRegression(solver="saga"),
        "liblinear L2 logistic": OneVsRestClassifier(LogisticRegression(solver="liblinear")),
        "liblinear L2 squared hinge, dual": LinearSVC(dual=True),
        "liblinear L2 squared hinge, primal": LinearSVC(dual=False),
        "liblinear L2 hinge, dual": LinearSVC(loss="hinge", dual=True),
        "liblinear Crammer and Singer": LinearSVC(multi_class="crammer_singer"),
        "liblinear L1 squared hinge": LinearSVC(penalty="l1", dual=False),
    }


def stagewise(data: Images, name: str) -> dict[str, Any]:
    from pomona import StagewiseClassifier

    options = {"generator_options": {"pca": PCA, "scale": 0.7}, "precision": "float32", "memory": 2 << 30}
    model = StagewiseClassifier(**options, **STAGEWISE[name]).fit(data.X, data.y)
    errors = [data.error(predicted) for predicted in model.staged_predict(data.X_test)]
    return {"curve": [[report.seconds, error] for report, error in zip(model.stages_, errors, strict=True)]}


def vowpal_wabbit(data: Images, Z: NDArray[np.float32], Z_test: NDArray[np.float32]) -> dict[str, Any]:
    import vowpalwabbit

    # Values with three decimals are looked up as text: writing them one by one would take minutes.
    words = np.array([f" :{value / 1000:.3f}" for value in range(-1000, 1001)], "S8")

    def write(path: Path, X: NDArray[np.float32], y: NDArray[np.int64]) -> None:
        with open(path, "wb") as out:
            for start in range(0, len(y), 1000):
                codes = np.clip(np.rint(X[start : start + 1000] * 1000).astype(np.int64) + 1000, 0, 2000)
                for label, row in zip(y[start : start + 1000], words[codes], strict=True):
                    out.write(b"%d |f" % (label + 1) + row.tobytes().replace(b"\0", b"") + b"\n")

    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (Path(folder) / name for name in ("train.vw", "test.vw", "model"))
        write(train, Z, data.y)
        write(test, Z_test, data.y_test)
        options = f"--quiet --oaa 10 --loss_function logistic -b 18 -d {train} -f {model}"
        start = time.perf_counter()
        vowpalwabbit.Workspace(f"{options} --passes 3 --cache_file {folder}/cache -k --holdout_off").finish()
        seconds = time.perf_counter() - start
        predictions = Path(folder) / "predictions"
        vowpalwabbit.Workspace(f"--quiet -t -i {model} -d {test} -p {predictions}").finish()
        predicted = np.array([int(float(line.split()[0])) - 1 for line in predictions.read_text().splitlines()])
    return {"seconds": seconds, "error": data.error(predicted)}


def contend(data: Images, name: str, size: int) -> dict[str, Any]:
    if name in STAGEWISE:
        return stagewise(data, name)
    start = time.perf_counter()
    Z, Z_test = fourier(data, size, seed=0)
    generated = time.perf_counter() - start
    if name == "Vowpal Wabbit":
        found = vowpal_wabbit(data, Z, Z_test)
    else:
        model = scikit_learn()[name]
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Z, data.y)
        found = {"seconds": time.perf_counter() - start, "error": data.error(model.predict(Z_test))}
    return {**found, "seconds": found["seconds"] + generated, "generated": generated}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    args = parser.parse_args()
    setting = Setting(args.data, Path(), Log(Path(tempfile.gettempdir()) / "unused.jsonl", True), True, 0.0)
    print(json.dumps(contend(images(setting, "mnist", args.rows), args.name, args.size)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
