"""Typed tables: what a table source is, and the sources made of objects in memory."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pomona.errors import DataFormatError
from pomona.options import ReadOptions

#: Rows of a batch, at most: small enough to stay cheap, large enough to hide the cost of a call.
BATCH_ROWS = 1 << 16
#: What pyarrow raises on damaged data.
ARROW_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch begins: its file and the line (or row) of its first row; 0 when unknown."""

    file: str = ""
    line: int = 0


class TableSource(Protocol):
    """A typed table that is read a record batch at a time, in bounded memory."""

    #: What to call it in messages and progress lines.
    name: str
    #: Rows in the table, where that is known without reading it.
    n_rows: int | None
    #: Where the batch handed out last begins.
    place: Place
    #: Malformed rows left out in the running or last pass, and where and why the first of them.
    n_skipped: int
    first_skipped: DataFormatError | None

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over the table, from the beginning."""
        ...

    def head(self, rows: int) -> list[pa.RecordBatch]:
        """Exactly the first rows (or all, if there are fewer); the next pass still begins with them."""
        ...

    def select(self, types: Mapping[str, pa.DataType]) -> None:
        """Other columns need not be read; these are read as such types where the format leaves a choice.

        Strings may come as dictionaries afterwards.
        """
        ...

    def fraction_read(self) -> float | None:
        """How much of the running pass is behind us, 0 to 1; None when unknown."""
        ...

    @property
    def reads_cheaply(self) -> bool: ...

    @property
    def rewinds(self) -> bool: ...


class Table:
    """What all table sources share: a pass goes on where a look at the head stopped.

    A subclass defines ``_read``, which yields batches with their places.
    """

    def __init__(self, name: str, schema: pa.Schema, n_rows: int | None = None) -> None:
        self.name, self.n_rows = name, n_rows
        self.place = Place()
        self.n_skipped = 0
        self.first_skipped: DataFormatError | None = None
        self._schema = schema
        self._kept: list[tuple[pa.RecordBatch, Place]] = []
        self._running: Iterator[tuple[pa.RecordBatch, Place]] | None = None
        self._passes = 0
        try:
            check_names(schema.names, name)
        except UnicodeDecodeError as error:
            raise DataFormatError("the names of the columns are not UTF-8: write the file again", file=name) from error

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def reads_cheaply(self) -> bool:
        return True

    @property
    def rewinds(self) -> bool:
        return True

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        raise NotImplementedError

    def select(self, types: Mapping[str, pa.DataType]) -> None:
        pass

    def fraction_read(self) -> float | None:
        return None

    def _start(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self._passes += 1
        if self._passes > 1 and not self.rewinds:
            raise DataFormatError(
                "the data can be read once only, but another pass was asked for: save it to a file first",
                file=self.name,
            )
        return self._read()

    def head(self, rows: int) -> list[pa.RecordBatch]:
        if self._running is None:
            self._running = self._start()
        seen = sum(len(batch) for batch, _ in self._kept)
        while seen < rows and (item := next(self._running, None)) is not None:
            self._kept.append(item)
            seen += len(item[0])
        found, left = [], rows
        for batch, _ in self._kept:
            if left > 0 and len(batch):
                found.append(batch.slice(0, left))
            left -= len(batch)
        return found

    def batches(self) -> Iterator[pa.RecordBatch]:
        running, kept = self._running or self._start(), self._kept
        self._running, self._kept = None, []
        for item in kept:
            batch, self.place = item
            yield batch
        kept.clear()
        for batch, self.place in running:
            yield batch

    def _forget_head(self) -> None:
        """Drop what a look at the head has kept, because it was read in another way."""
        if self._running is not None and self.rewinds:
            self._running, self._kept = None, []


def check_names(names: Sequence[str], file: str) -> None:
    """Refuse a column name that stands twice."""
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if name in seen:
            raise DataFormatError(
                f"column names must differ, but {name!r} stands twice (again as column {number}): rename one",
                file=file,
            )
        seen.add(name)


def missing_column(name: str, names: Sequence[str], role: str, file: str) -> DataFormatError:
    """The error for a column that is not there, with the names that come close."""
    close = difflib.get_close_matches(name, names, 3, 0.6) or [n for n in names if n.lower() == name.lower()]
    listed = list(names[:8]) + (["…"] if len(names) > 8 else [])
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"its columns are {', '.join(listed)}"
    return DataFormatError(f"there is no column {name!r} for the {role}: {hint}", file=file)


def slices(batch: pa.RecordBatch, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The batch in parts of at most so many rows, without copying."""
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def numpy_of(array: pa.Array) -> NDArray[Any]:
    """Numbers as a NumPy array, NaN where missing; pyarrow's own way would import pandas."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if array.null_count:
        array = pc.fill_null(array.cast(pa.float64(), safe=False), float("nan"))
    dtype = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None or data.size == 0:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def wrap(array: NDArray[Any]) -> pa.Array:
    """Numbers of a NumPy array as an Arrow array, without a copy where they are contiguous."""
    kind = pa.from_numpy_dtype(array.dtype)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(np.ascontiguousarray(array))])


class FrameTable(Table):
    """A table in memory."""

    def __init__(self, table: pa.Table, name: str) -> None:
        super().__init__(name, table.schema, table.num_rows)
        self._table = table
        self._done = 0

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self._done = 0
        for batch in self._table.to_batches(max_chunksize=BATCH_ROWS):
            line = self._done + 1
            self._done += len(batch)
            yield batch, Place(self.name, line)

    def fraction_read(self) -> float | None:
        return self._done / self.n_rows if self.n_rows else None


class StreamTable(Table):
    """Record batches that come one after the other and cannot be asked for again."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], name: str) -> None:
        super().__init__(name, schema)
        self._batches = iter(batches)

    @property
    def rewinds(self) -> bool:
        return False

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        row = 1
        while True:
            try:
                batch = next(self._batches, None)
            except ARROW_ERRORS as error:
                raise DataFormatError(f"the stream of batches broke off: {error}", file=self.name) from error
            if batch is None:
                return
            if batch.schema.names != self.schema.names or batch.schema.types != self.schema.types:
                difference = schema_difference(self.schema, batch.schema)
                raise DataFormatError(
                    f"all batches must have the columns of the first, but {difference}",
                    file=self.name,
                    line=row,
                )
            for part in slices(batch):
                yield part, Place(self.name, row)
                row += len(part)


def schema_difference(expected: pa.Schema, found: pa.Schema) -> str:
    """The first way in which two schemas differ, in words."""
    for field in expected:
        position = found.get_field_index(field.name)
        if position < 0:
            return f"column {field.name!r} is missing"
        if found.field(position).type != field.type:
            return f"column {field.name!r} is {found.field(position).type} instead of {field.type}"
    extra = [name for name in found.names if expected.get_field_index(name) < 0]
    if extra:
        return f"column {extra[0]!r} is new"
    return f"the order is {', '.join(found.names)} instead of {', '.join(expected.names)}"


def is_frame(data: Any) -> bool:
    """Whether :func:`open_frame` can read the object; nothing is imported to find out."""
    module = type(data).__module__.partition(".")[0]
    return (
        isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader)
        or hasattr(data, "__arrow_c_stream__")
        or (module in ("pandas", "polars") and type(data).__name__ in ("DataFrame", "LazyFrame"))
        or (isinstance(data, Iterator) and not hasattr(data, "read"))
    )


def open_frame(data: Any, options: ReadOptions | None = None) -> Table:
    """A source made of a pandas or polars frame, an Arrow table, batches, or any Arrow stream."""
    name = f"<{type(data).__name__}>"
    try:
        return _open_frame(data, name)
    except pa.ArrowException as error:
        raise DataFormatError(f"cannot be taken as a table of typed columns: {one_line(error)}", file=name) from error


def _open_frame(data: Any, name: str) -> Table:
    module = type(data).__module__.partition(".")[0]
    if module == "polars" and type(data).__name__ == "LazyFrame":
        data = data.collect()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return FrameTable(data, name)
    if isinstance(data, pa.RecordBatchReader):
        return StreamTable(data.schema, data, name)
    if module == "pandas":
        return FrameTable(pa.Table.from_pandas(data, preserve_index=False), name)
    if module == "polars":
        return FrameTable(pa.table(data), name)
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return StreamTable(reader.schema, reader, name)
    return _open_iterator(data, name)


def _open_iterator(data: Iterator[Any], name: str) -> Table:
    def batches(first: Any) -> Iterator[pa.RecordBatch]:
        item = first
        while item is not None:
            if isinstance(item, pa.RecordBatch):
                yield item
            elif is_frame(item):
                yield from open_frame(item).batches()
            else:
                raise DataFormatError(
                    f"expected batches that are Arrow tables or data frames, got {type(item).__name__}",
                    file=name,
                )
            item = next(data, None)

    stream = batches(next(data, None))
    first = next(stream, None)
    if first is None:
        raise DataFormatError("there are no batches: nothing to read", file=name)

    def all_batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from stream

    return StreamTable(first.schema, all_batches(), name)


def one_line(error: Exception) -> str:
    """The message of a foreign error, short and on one line."""
    text = " ".join("; ".join(map(str, error.args)).split())
    return text if len(text) <= 200 else text[:199] + "…"


def strings_of(array: pa.Array) -> list[Any]:
    """Strings as Python objects; bytes that are not UTF-8 become replacement characters."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary()
    if not pa.types.is_binary(array.type) and not pa.types.is_large_binary(array.type):
        array = array.cast(kind)
    return [None if item is None else item.decode("utf-8", "replace") for item in array.to_pylist()]


def cut(text: str, length: int = 40) -> str:
    """A value quoted for a message."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")
