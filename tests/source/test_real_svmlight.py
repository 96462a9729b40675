"""Real svmlight files are read as scikit-learn reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from pomona import _native
from pomona.source import open_source

pytestmark = pytest.mark.data


@pytest.mark.parametrize("name", ["rcv1_vw_sample_test", "mushroom_train", "a9a_test", "ipinyou_sample_test"])
def test_same_matrix(data_dir: Path, name: str) -> None:
    path = data_dir / f"{name}.svm.gz"
    expected, labels = load_svmlight_file(str(path), zero_based=True)
    chunks = list(open_source(path).chunks())  # type: ignore[union-attr]
    parts = []
    for chunk in chunks:
        columns = _native.unmix(chunk.indices).astype(np.int64)
        shape = (len(chunk), expected.shape[1])
        parts.append(sparse.csr_matrix((chunk.values, columns, chunk.indptr), shape=shape))
    found = sparse.vstack(parts).tocsr()
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in chunks]), labels)
    expected.eliminate_zeros()
    assert (found != expected.astype(np.float32)).nnz == 0
