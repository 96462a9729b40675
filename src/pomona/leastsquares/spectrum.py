"""How well conditioned data is, and what the paper advises for it (section 3.3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.leastsquares.arrays import Array, to_numpy
from pomona.leastsquares.rows import Rows, gather, spread

#: Rows that the singular values are computed from.
SPECTRUM_ROWS = 2000
#: The paper compares the second singular value with the thousandth.
RANK = 1000
#: Condition numbers below this, on sparse data, are the domain of online learning (the paper: 14 and 19.8).
WELL_CONDITIONED = 100.0
SPARSE = 0.1
#: Singular values that are kept, evenly spread.
SHOWN = 20


@dataclass(frozen=True)
class Spectrum:
    """Singular values of a sample of the rows, the largest first, as shares of the largest."""

    singular_values: list[float]
    #: Second singular value over the last one that is compared, the thousandth where there are so many.
    condition: float
    rank: int
    density: float

    def advice(self) -> str:
        if self.condition < WELL_CONDITIONED and self.density < SPARSE:
            return "sparse and well conditioned: the online learner is as good here, and faster"
        if self.condition < WELL_CONDITIONED:
            return "well conditioned: the online learner may be as good, and faster"
        return "ill conditioned: second-order steps pay"

    def header(self) -> dict[str, Any]:
        return asdict(self)


def spectrum(rows: Rows, weights: NDArray[np.float64] | None = None) -> Spectrum:
    """Singular values of some rows, by the eigenvalues of the smaller matrix of products."""
    X: Array = gather(rows, spread(rows.n, weights, SPECTRUM_ROWS)[0])
    if sparse.issparse(X):
        density = X.nnz / max(X.shape[0] * X.shape[1], 1)
        K = (X @ X.T if X.shape[0] <= X.shape[1] else X.T @ X).toarray()
    else:
        X = to_numpy(X)
        density = float(np.count_nonzero(X)) / max(X.size, 1)
        K = X @ X.T if X.shape[0] <= X.shape[1] else X.T @ X
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(K.astype(np.float64))[::-1], 0.0))
    rank = max(1, min(RANK, *X.shape))
    second, last = values[min(1, len(values) - 1)], values[rank - 1]
    # float32 features say nothing about smaller singular values.
    condition = float(second / max(last, np.finfo(np.float32).eps * values[0], 1e-300))
    kept = values[: min(X.shape)]
    shown = kept[np.unique(np.linspace(0, len(kept) - 1, SHOWN).astype(int))]
    return Spectrum([float(v / max(values[0], 1e-300)) for v in shown], condition, rank, density)
