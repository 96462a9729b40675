"""Parquet files and Arrow files (IPC file, IPC stream, Feather)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from pomona.chunk import Source
from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source.files import InputFile, empty_file
from pomona.source.table import ARROW_ERRORS, Place, StreamTable, Table, one_line, schema_difference, slices

#: Bytes a value of a dictionary column, at most: the numbers of up to some ten thousand distinct strings.
MAX_CODE_BYTES = 2.5
#: Rows decoded at a time: one page or a few, so that memory does not grow with the size of row groups.
BATCH_ROWS = 1 << 15
PARQUET_MAGIC, ARROW_MAGIC, OLD_FEATHER_MAGIC = b"PAR1", b"ARROW1", b"FEA1"


def _name(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _same_columns(expected: pa.Schema, found: pa.Schema, file: str, first: str) -> None:
    if expected.names != found.names or expected.types != found.types:
        raise DataFormatError(
            f"the columns must be those of {first}, but {schema_difference(expected, found)}", file=file
        )


def _first_bytes(file: str, kind: str) -> bytes:
    stream = InputFile(file).open()
    try:
        head = stream.peek(8)
    finally:
        stream.close()
    if not head:
        raise empty_file(file)
    if stream.compression:
        raise DataFormatError(
            f"{kind} must not be compressed as a whole, but this is {stream.compression}: decompress it", file=file
        )
    return head


def _parquet_file(file: str, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    if _first_bytes(file, "a Parquet file")[:4] != PARQUET_MAGIC:
        raise DataFormatError("this is not a Parquet file: it does not begin with PAR1", file=file)
    try:
        return pq.ParquetFile(file, read_dictionary=dictionaries, pre_buffer=False)
    except ARROW_ERRORS as error:
        raise _damaged_parquet(error, file) from error


def _damaged_parquet(error: Exception, file: str) -> DataFormatError:
    if "magic bytes" in str(error) or "footer" in str(error):
        return DataFormatError("the Parquet file is cut short: its end is missing, copy it again", file=file)
    return DataFormatError(f"the Parquet file is damaged: {one_line(error)}", file=file)


def _small_dictionaries(file: str, names: Sequence[str]) -> list[str]:
    """Columns of strings that are stored by the numbers of few distinct ones: those are read much faster.

    The columns must have been read before: pyarrow aborts the program where their metadata is damaged.
    """
    parquet = _parquet_file(file)
    found = []
    group = parquet.metadata.row_group(0) if parquet.metadata.num_row_groups else None
    flat = {parquet.schema.column(i).path: i for i in range(len(parquet.schema))}
    for name in names:
        if group is None or name not in flat or not pa.types.is_string(parquet.schema_arrow.field(name).type):
            continue
        chunk = group.column(flat[name])
        stored = any("DICTIONARY" in encoding for encoding in chunk.encodings)
        if stored and chunk.total_uncompressed_size <= MAX_CODE_BYTES * chunk.num_values:
            found.append(name)
    parquet.close()
    return found


class ParquetTable(Table):
    """One or several Parquet files with the same columns, read one after the other."""

    def __init__(self, files: Sequence[str], options: ReadOptions) -> None:
        self._files = list(files)
        opened = [_parquet_file(file) for file in self._files]
        schema = opened[0].schema_arrow
        self._dictionaries: list[str] = []
        rows = []
        for file, parquet in zip(self._files, opened, strict=True):
            _same_columns(schema, parquet.schema_arrow, file, self._files[0])
            rows.append(parquet.metadata.num_rows)
            parquet.close()
        self._columns = [name for name in schema.names if name not in options.ignore]
        self._total, self._done = sum(rows), 0
        super().__init__(_name(self._files), schema, self._total)

    @property
    def reads_cheaply(self) -> bool:
        return True

    def select(self, types: Mapping[str, pa.DataType]) -> None:
        wanted = [name for name in self.schema.names if name in types]
        self._columns = wanted or self._columns
        self.head(1)
        if self._dictionaries != (small := _small_dictionaries(self._files[0], self._columns)):
            self._dictionaries = small
            self._forget_head()

    def fraction_read(self) -> float | None:
        return self._done / self._total if self._total else None

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self._done = 0
        for file in self._files:
            row = 1
            parquet = _parquet_file(file, self._dictionaries)
            try:
                for batch in parquet.iter_batches(BATCH_ROWS, columns=self._columns, use_threads=True):
                    yield batch, Place(file, row)
                    row += len(batch)
                    self._done += len(batch)
            except ARROW_ERRORS as error:
                raise _damaged_parquet(error, file) from error
            finally:
                parquet.close()


def open_parquet(files: Sequence[str], options: ReadOptions) -> ParquetTable:
    """Open Parquet files with equal columns."""
    return ParquetTable(files, options)


class ArrowTable(Table):
    """One or several Arrow IPC files, memory-mapped: nothing is copied unless the file is compressed."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)
        schema = open_ipc(self._files[0]).schema
        for file in self._files[1:]:
            _same_columns(schema, open_ipc(file).schema, file, self._files[0])
        self._fraction = 0.0
        super().__init__(_name(self._files), schema)

    def fraction_read(self) -> float | None:
        return self._fraction

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        for number, file in enumerate(self._files):
            row = 1
            for part, batch in ipc_batches(open_ipc(file), file):
                for piece in slices(batch):
                    yield piece, Place(file, row)
                    row += len(piece)
                self._fraction = (number + part) / len(self._files)
        self._fraction = 1.0


def open_ipc(file: str) -> Any:
    """A reader of an IPC file (or Feather) or an IPC stream; which of them is found from the first bytes."""
    magic = _first_bytes(file, "an Arrow file")
    if magic[:4] == OLD_FEATHER_MAGIC:
        raise DataFormatError(
            "this is Feather version 1, which is no longer read: write it again with a newer pyarrow",
            file=file,
        )
    is_file = magic[:6] == ARROW_MAGIC
    try:
        mapped = pa.memory_map(file)
        return pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)
    except ARROW_ERRORS as error:
        if is_file:
            raise DataFormatError("the Arrow file is cut short or damaged: copy it again", file=file) from error
        raise DataFormatError(
            "this is not an Arrow file: it begins with neither ARROW1 nor a schema", file=file
        ) from error


def ipc_batches(reader: Any, file: str) -> Iterator[tuple[float, pa.RecordBatch]]:
    """Batches with the share of the file that lies behind each.

    They are checked in full: the functions of pyarrow trust the offsets of strings, and would crash.
    """
    try:
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            total = reader.num_record_batches
            for number in range(total):
                batch = reader.get_batch(number)
                batch.validate(full=True)
                yield (number + 1) / total, batch
        else:
            for batch in reader:
                batch.validate(full=True)
                yield 0.0, batch
    except ARROW_ERRORS as error:
        raise DataFormatError(f"the Arrow file is damaged or cut short: {one_line(error)}", file=file) from error


def open_arrow(files: Sequence[str], options: ReadOptions) -> Table | Source:
    """Open Arrow IPC files, streams or Feather files; ``"-"`` is a stream on standard input.

    A file of chunks, as ``pomona convert`` writes it, gives a source of chunks.
    """
    from pomona.source.cache import CacheSource, is_cache

    if list(files) == ["-"]:
        try:
            reader = pa.ipc.open_stream(sys.stdin.buffer)
        except ARROW_ERRORS as error:
            raise DataFormatError("this is not an Arrow stream", file="<stdin>") from error
        return StreamTable(reader.schema, reader, "<stdin>")
    if is_cache(open_ipc(files[0]).schema):
        if len(files) > 1:
            raise DataFormatError("files of chunks cannot be read together: give one of them", file=files[1])
        return CacheSource(files[0])
    return ArrowTable(files)
