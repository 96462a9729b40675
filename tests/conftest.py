"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Where the real data sets are: POMONA_DATA, or ../shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POMONA_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the real data sets are not here: set POMONA_DATA to their directory")
    return folder
