"""Where predictions go: text, CSV or Parquet, to standard output or to a file that appears complete."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from pomona.atomic import check_writable, replacing


class Writer(Protocol):
    """Takes the columns of one chunk after the other."""

    def write(self, columns: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def open_writer(kind: str, path: str | None) -> Iterator[Writer]:
    """A writer of ``text``, ``csv`` or ``parquet``; without a path to standard output."""
    if path is None:
        sys.stdout.flush()
        yield _make(kind, sys.stdout.buffer)
        return
    check_writable(path)
    with replacing(path) as file:
        writer = _make(kind, file)
        try:
            yield writer
        finally:
            writer.close()


def _make(kind: str, file: BinaryIO) -> Writer:
    kinds: dict[str, Callable[[BinaryIO], Writer]] = {
        "text": TextWriter,
        "csv": CsvWriter,
        "parquet": ParquetWriter,
    }
    return kinds[kind](file)


def _cells(values: Any, digits: int) -> list[str]:
    """Numbers with so many digits, strings as they are."""
    if isinstance(values, list):
        return values
    return list(map(f"%.{digits}g".__mod__, values.tolist()))


class TextWriter:
    """One line an example, blanks between columns; flushed with each chunk, so that nobody need wait."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, columns: dict[str, Any]) -> None:
        cells = [_cells(values, 6) for values in columns.values()]
        lines = cells[0] if len(cells) == 1 else list(map(" ".join, zip(*cells, strict=True)))
        if lines:
            self.file.write(("\n".join(lines) + "\n").encode())
            self.file.flush()

    def close(self) -> None:
        """Nothing is held back."""


class CsvWriter:
    """A line of names, then one line an example."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.begun = file, False

    def write(self, columns: dict[str, Any]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self.begun:
            writer.writerow(columns)
            self.begun = True
        # Nine digits bring a float32 back exactly.
        writer.writerows(zip(*(_cells(values, 9) for values in columns.values()), strict=True))
        self.file.write(text.getvalue().encode())
        self.file.flush()

    def close(self) -> None:
        """Nothing is held back."""


class ParquetWriter:
    """Row groups of a chunk each."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.writer: Any = None

    def write(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        batch = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.file, batch.schema, compression="zstd")
        self.writer.write_batch(batch)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
