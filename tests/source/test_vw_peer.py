"""Lines of VW text mean here what they mean to Vowpal Wabbit."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pomona.source import open_source

pytestmark = pytest.mark.peer

LINES = [
    "1 |a x:2 y",
    "1 2 0.5 'tag|a x",
    "tag| x",
    "1 2 tag|a x",
    "'t |a x",
    "1 't2 |a x:0 y |b z",
    "-1| a b c",
    "|a x |c y|b z",
    "1 |a:0.5 x:3 y",
    "-1.5e1 |a\tx\ty:-.25 ",
    "2 3 |",
    " 1 | 7 8:2",
]


@pytest.fixture(scope="module")
def peer() -> object:
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    return vowpalwabbit.Workspace(quiet=True, noconstant=True)


@pytest.mark.parametrize("line", LINES)
def test_same_meaning(tmp_path: Path, peer: object, line: str) -> None:
    import vowpalwabbit.pyvw

    example = peer.example(line)  # type: ignore[attr-defined]
    label = example.get_simplelabel_label()
    spaces = [vowpalwabbit.pyvw.NamespaceId(example, i) for i in range(example.num_namespaces())]
    values = [example.feature_weight(space, i) for space in spaces for i in range(example.num_features_in(space))]
    expected = (example.get_simplelabel_weight(), example.get_simplelabel_initial(), example.get_tag(), sorted(values))
    peer.finish_example(example)  # type: ignore[attr-defined]

    path = tmp_path / "a.vw"
    path.write_text(line + "\n")
    (chunk,) = open_source(path).chunks()  # type: ignore[union-attr]
    weight = 1.0 if chunk.weights is None else chunk.weights[0]
    base = 0.0 if chunk.offsets is None else chunk.offsets[0]
    tag = "" if chunk.tags is None else chunk.tags[0]
    assert (weight, base, tag, sorted(chunk.values.tolist())) == expected
    # The peer's mark for a label that is missing is the largest float.
    missing = label == np.finfo(np.float32).max
    assert math.isnan(chunk.labels[0]) if missing else chunk.labels[0] == label
