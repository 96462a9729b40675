"""Tables for least squares: numeric columns stay one column each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pomona.encode.table import DEFAULT_ENCODE, DEFAULT_READ, TableEncoder
from pomona.options import EncodeOptions, ReadOptions
from pomona.source.table import TableSource


class NumberEncoder(TableEncoder):
    """The encoder of tables, which leaves numbers as they are unless it is told otherwise.

    Second-order steps do not depend on the units of columns, and random features grow from distances between rows.
    """

    @classmethod
    def fit(
        cls,
        source: TableSource,
        read: ReadOptions = DEFAULT_READ,
        encode: EncodeOptions = DEFAULT_ENCODE,
        **more: Any,
    ) -> TableEncoder:
        encode = replace(encode, numeric="raw") if encode.numeric == "auto" else encode
        # Columns that do not change cost little, and images need all of theirs.
        return super().fit(source, read, encode, **{"keep_constant": True, **more})
