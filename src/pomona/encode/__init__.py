"""From tables to chunks."""

from __future__ import annotations

from pomona.encode.source import EncodedSource
from pomona.encode.table import TableEncoder

__all__ = ["EncodedSource", "TableEncoder"]
