"""Writes sparse rows as VW text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from scipy import sparse

BLOCK = 20_000


def rows_as_text(X: sparse.csr_matrix, names: Sequence[str], form: str = ".6g") -> Iterator[str]:
    """Each row as ``name:value name:value …``."""
    columns = [names[column] for column in X.indices.tolist()]
    values = [f":{value:{form}}" for value in X.data.tolist()]
    start = 0
    for stop in X.indptr[1:].tolist():
        pairs = zip(columns[start:stop], values[start:stop], strict=True)
        yield " ".join([f"{column}{value}" for column, value in pairs])
        start = stop


def write_vw(path: Path, X: sparse.csr_matrix, labels: Sequence[object]) -> None:
    """One line an example, features named ``f`` and their column.

    The letter makes the peer hash the name: it takes plain numbers as they are, and then maps many products of
    neighbours to one slot.
    """
    partial = path.with_name(path.name + ".partial")
    names = [f"f{column}" for column in range(X.shape[1])]
    with open(partial, "w") as out:
        for start in range(0, X.shape[0], BLOCK):
            rows = rows_as_text(X[start : start + BLOCK], names)
            block = zip(labels[start : start + BLOCK], rows, strict=True)
            out.write("".join([f"{label} | {row}\n" for label, row in block]))
    partial.replace(path)
