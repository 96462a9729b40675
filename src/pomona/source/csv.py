"""CSV and TSV files, read by pyarrow in bounded memory.

Types are found from the first megabytes, not from the first block. Whole numbers are read as numbers that may
have a fraction, so only a change between numbers, dates and words can fail later; the error names the row.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source.table import Place, Table, check_names, cut, one_line, os_error

#: Bytes from which types, delimiter and header are found.
SAMPLE_BYTES = 8 << 20
BLOCK_BYTES = 1 << 20
DELIMITERS = ",\t;|"
#: Texts that stand for a missing number, besides pyarrow's own list.
NULLS = [*pa_csv.ConvertOptions().null_values, "?", "None"]


@dataclass(slots=True)
class _Input:
    """An open file: the text as a stream, and how far the file itself has been read."""

    stream: Any
    raw: Any
    size: int | None

    def fraction(self) -> float | None:
        try:
            return min(1.0, self.raw.tell() / self.size) if self.size else None
        except ValueError:  # closed: all of it was read
            return 1.0


def open_text(path: str) -> _Input:
    """Open a plain or compressed file for reading; the compression is found from the first bytes."""
    try:
        raw = open(path, "rb")
        size = os.fstat(raw.fileno()).st_size
        magic = raw.read(6)
        raw.seek(0)
    except OSError as error:
        raise os_error(error, path) from error
    if magic[:2] == b"\x1f\x8b":
        return _Input(gzip.GzipFile(fileobj=raw), raw, size)
    if magic[:3] == b"BZh":
        return _Input(bz2.BZ2File(raw), raw, size)
    if magic == b"\xfd7zXZ\x00":
        return _Input(lzma.LZMAFile(raw), raw, size)
    for codec, mark in (("zstd", b"\x28\xb5\x2f\xfd"), ("lz4", b"\x04\x22\x4d\x18")):
        if magic[:4] == mark:
            return _Input(pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec), raw, size)
    return _Input(raw, raw, size)


class _Rejoined(io.RawIOBase):
    """Bytes that were read ahead, then the rest of the stream they came from."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if len(self._head):
            n = min(len(buffer), len(self._head))
            buffer[:n] = self._head[:n]
            self._head = self._head[n:]
            return n
        data = self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is needed to read a file: delimiter, names, types, and whether the first line holds the names."""

    delimiter: str
    #: The first line as it stands, where it holds names; else empty.
    header_cells: list[str]
    names: list[str]
    types: dict[str, pa.DataType]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip() in NULLS and text.strip() != ""
    return True


def find_delimiter(lines: Sequence[str]) -> str:
    """The character that cuts the first lines into the same number of cells, more than one."""
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        usual = max(set(widths), key=widths.count, default=1)
        score = (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: no numbers, nothing twice, and unlike the rows below."""
    first, below = rows[0], rows[1:]
    if any(_number(cell) for cell in first) or len(set(first)) < len(first):
        return False
    for position in range(len(first)):
        column = [row[position] for row in below if position < len(row) and row[position]]
        if column and all(map(_number, column)):
            return True
    values = [{row[position] for row in below if position < len(row)} for position in range(len(first))]
    return not any(cell in column for cell, column in zip(first, values, strict=True))


def _sample_text(sample: bytes, file: str) -> str:
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataFormatError("the file is UTF-16, but UTF-8 is expected: convert it, as with 'iconv'", file=file)
    if not sample.strip():
        raise DataFormatError("the file is empty: expected rows of a table", file=file)
    return sample[: 1 << 16].decode("utf-8-sig", errors="replace")


def find_dialect(sample: bytes, complete: bool, file: str, options: ReadOptions) -> Dialect:
    """Delimiter, header, names and types of a file from its first bytes."""
    text = _sample_text(sample, file)
    lines = text.splitlines(keepends=True)
    lines = lines[:-1] if len(lines) > 1 and (not complete or len(sample) > 1 << 16) else lines
    plain = file.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2").removesuffix(".xz")
    if options.format == "tsv" or plain.endswith((".tsv", ".tab")):
        delimiter = "\t"
    else:
        delimiter = find_delimiter(lines[:50])
    try:
        rows = [row for row in csv.reader(lines[:1000], delimiter=delimiter) if row]
    except csv.Error:  # a NUL or a huge cell: judged by the real reader below
        rows = [line.rstrip("\r\n").split(delimiter) for line in lines[:1000]]
    header = has_header(rows) if options.header is None else options.header
    names = [cell or f"x{i}" for i, cell in enumerate(rows[0])] if header else [f"x{i}" for i in range(len(rows[0]))]
    check_names(names, file)
    types = _find_types(sample, complete, delimiter, header, names, file)
    for name in (*options.categorical, *options.text):
        if name in types:
            types[name] = pa.string()
    return Dialect(delimiter, rows[0] if header else [], names, types)


def _find_types(
    sample: bytes, complete: bool, delimiter: str, header: bool, names: list[str], file: str
) -> dict[str, pa.DataType]:
    if not complete:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    try:
        found = pa_csv.read_csv(
            pa.BufferReader(sample),
            read_options=pa_csv.ReadOptions(
                block_size=len(sample) + 1, autogenerate_column_names=not header, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda row: "skip"
            ),
            convert_options=pa_csv.ConvertOptions(null_values=NULLS, check_utf8=False),
        ).schema.types
    except pa.ArrowInvalid as error:
        raise DataFormatError(f"cannot be read as CSV: {one_line(error)}", file=file) from error
    return {name: _roomy(type_) for name, type_ in zip(names, found, strict=True)}


def _roomy(found: pa.DataType) -> pa.DataType:
    """The type to read a column as, given that later rows may hold more than the first ones."""
    if pa.types.is_integer(found):
        return pa.float64()
    if pa.types.is_null(found) or pa.types.is_time(found) or pa.types.is_binary(found):
        return pa.string()
    if pa.types.is_timestamp(found) and found.tz is None:
        return pa.timestamp("ns")
    return found


class CsvTable(Table):
    """One or several CSV files with the same columns, read one after the other."""

    def __init__(self, files: Sequence[str], options: ReadOptions) -> None:
        self._files, self._options = list(files), options
        self._stdin_head: bytes | None = None
        first = self._open(self._files[0])
        try:
            sample = first.stream.read(SAMPLE_BYTES)
            while len(sample) < SAMPLE_BYTES and (more := first.stream.read(SAMPLE_BYTES - len(sample))):
                sample += more
        except (OSError, EOFError, pa.ArrowException, lzma.LZMAError) as error:
            raise self._broken(error, files[0]) from error
        self._dialect = find_dialect(sample, len(sample) < SAMPLE_BYTES, self._label(files[0]), options)
        if "-" in self._files:
            self._stdin_head = sample
        else:
            first.stream.close()
            first.raw.close()
        schema = pa.schema(list(self._dialect.types.items()))
        name = self._label(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        self._sizes = [os.path.getsize(file) if file != "-" else 0 for file in self._files]
        self._current: _Input | None = None
        self._number = 0
        self._types = {n: t for n, t in self._dialect.types.items() if n not in options.ignore}
        super().__init__(name, schema)

    @property
    def rewinds(self) -> bool:
        return "-" not in self._files

    @property
    def reads_cheaply(self) -> bool:
        return False

    @staticmethod
    def _label(file: str) -> str:
        return "<stdin>" if file == "-" else file

    def _open(self, file: str) -> _Input:
        if file != "-":
            return open_text(file)
        return _Input(io.BufferedReader(_Rejoined(self._stdin_head or b"", sys.stdin.buffer)), sys.stdin.buffer, None)

    def select(self, types: Mapping[str, pa.DataType]) -> None:
        wanted = {name: types[name] for name in self._dialect.names if name in types}
        if wanted != self._types:
            self._types = wanted
            self._forget_head()

    def fraction_read(self) -> float | None:
        if self._current is None or not sum(self._sizes):
            return None
        before = sum(self._sizes[: self._number])
        here = (self._current.fraction() or 0.0) * self._sizes[self._number]
        return (before + here) / sum(self._sizes)

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self.skipped = 0
        for number, file in enumerate(self._files):
            self._number = number
            self._current = self._open(file)
            try:
                yield from self._read_file(file, self._current.stream)
            finally:
                self._current.stream.close()
                self._current.raw.close()

    def _read_file(self, file: str, stream: Any) -> Iterator[tuple[pa.RecordBatch, Place]]:
        label, bad_rows = self._label(file), []
        dialect = self._dialect

        def handle(row: Any) -> str:
            bad_rows.append(row)
            return "skip" if self._options.on_error == "skip" else "error"

        line = 2 if dialect.header_cells else 1
        try:
            reader = pa_csv.open_csv(
                stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, "r"),
                read_options=pa_csv.ReadOptions(
                    block_size=BLOCK_BYTES,
                    use_threads=False,  # the streaming reader gains nothing by threads and loses row numbers
                    column_names=None if dialect.header_cells else dialect.names,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=handle
                ),
                convert_options=pa_csv.ConvertOptions(
                    null_values=NULLS, column_types=self._raw_types(), include_columns=list(self._raw_types())
                ),
            )
            for batch in reader:
                yield batch.rename_columns(list(self._types)), Place(label, line)
                line += len(batch) + len(bad_rows)
                self.skipped += len(bad_rows)
                bad_rows.clear()
            self.skipped += len(bad_rows)
        except KeyError as error:
            raise DataFormatError(
                f"the columns must be those of {self._files[0]}, but {one_line(error)}", file=label
            ) from error
        except (pa.ArrowInvalid, OSError, EOFError, lzma.LZMAError) as error:
            self._explain(error, label, bad_rows[-1] if bad_rows else None)

    def _raw_types(self) -> dict[str, pa.DataType]:
        """Types by the names that stand in the file: an unnamed column has the name ''."""
        unnamed = {f"x{i}": "" for i, name in enumerate(self._dialect.header_cells) if not name}
        return {unnamed.get(name, name): type_ for name, type_ in self._types.items()}

    def _explain(self, error: Exception, file: str, bad_row: Any) -> NoReturn:
        """Turn an error of the reader into one that says what to do."""
        text = str(error)
        if bad_row is not None and "columns, got" in text:
            raise DataFormatError(
                f"expected {bad_row.expected_columns} columns, got {bad_row.actual_columns}"
                f" in {cut(bad_row.text)}: mend the row, or leave such rows out with --on-error skip",
                file=file,
                line=bad_row.number or 0,
            ) from error
        found = re.match(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\S+): (.*)", text, re.S)
        if found:
            column, line = self._dialect.names[int(found[1])], int(found[2])
            raise DataFormatError(self._wrong_value(column, found[3], found[4]), file=file, line=line) from error
        if "straddl" in text:
            raise DataFormatError(
                f"a row is longer than {BLOCK_BYTES >> 20} MiB: look for a quote that is never closed",
                file=file,
            ) from error
        if "Empty CSV" in text:
            raise DataFormatError("the file is empty: expected rows of a table", file=file) from error
        raise self._broken(error, file) from error

    def _broken(self, error: Exception, file: str) -> DataFormatError:
        if isinstance(error, EOFError | lzma.LZMAError | gzip.BadGzipFile) or "ompress" in str(error):
            return DataFormatError(f"the compressed file is damaged or cut short: {one_line(error)}", file=file)
        if isinstance(error, OSError) and not isinstance(error, pa.ArrowInvalid):
            return os_error(error, file)
        return DataFormatError(f"cannot be read as CSV: {one_line(error)}", file=file)

    @staticmethod
    def _wrong_value(column: str, type_: str, problem: str) -> str:
        if "UTF8" in problem:
            return f"column {column!r} holds text that is not UTF-8: convert the file, as with 'iconv'"
        value = re.match(r"invalid value '(.*)'$", problem, re.S)
        wanted = {"double": "a number", "bool": "true or false"}.get(type_.partition("[")[0], "a date")
        return (
            f"expected {wanted} in column {column!r}, got {cut(value[1]) if value else problem};"
            f" if the column holds words, say so with --categorical {column}"
        )


def open_csv(files: Sequence[str], options: ReadOptions) -> CsvTable:
    """Open CSV or TSV files, ``"-"`` being standard input."""
    return CsvTable(files, options)
