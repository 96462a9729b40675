"""CSV and TSV files, read by pyarrow in bounded memory.

Types are found from the first megabytes, not from the first block. Whole numbers are read as numbers that may
have a fraction, so only a change between numbers, dates and words can fail later; the error names the row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from pomona.errors import DataFormatError
from pomona.options import ReadOptions
from pomona.source.files import InputFile, Stream, empty_file, guess_lines
from pomona.source.table import Place, Table, check_names, cut, one_line

#: Bytes from which types, delimiter and header are found.
SAMPLE_BYTES = 8 << 20
BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 20, 1 << 26
DELIMITERS = ",\t;|"
#: Up to here a float holds every whole number.
LARGEST_WHOLE = 1 << 53
#: Texts that stand for a missing number, besides pyarrow's own list.
NULLS = [*pa_csv.ConvertOptions().null_values, "?", "None"]


class _Utf8Check:
    """Stops at the first byte that is not UTF-8.

    pyarrow itself does not say where that is, and prints to the terminal when the row is malformed too.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._lines = 1

    def __call__(self, data: bytes, final: bool) -> None:
        try:
            self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            raise DataFormatError(
                f"the text is not UTF-8 (byte 0x{error.object[error.start]:02x}): convert the file, as with 'iconv'",
                file=self._file,
                line=self._lines + error.object[: error.start].count(b"\n"),
            ) from error
        self._lines += data.count(b"\n")


class _Readable(io.RawIOBase):
    """A stream in the shape that pyarrow reads from."""

    def __init__(self, stream: Stream, file: str) -> None:
        self._stream, self._check = stream, _Utf8Check(file)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._check(data, final=not data)
        return data


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is needed to read a file: delimiter, names, types, and whether the first line holds the names."""

    delimiter: str
    decimal: str
    #: The first line as it stands, where it holds names; else empty.
    header_cells: list[str]
    names: list[str]
    types: dict[str, pa.DataType]
    #: A row must be shorter than this.
    block_bytes: int


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
    """Whether the first row holds names: no numbers, and unlike the rows below."""
    first, below = rows[0], rows[1:]
    if any(_number(cell) for cell in first):
        return False
    for position in range(len(first)):
        column = [row[position] for row in below if position < len(row) and row[position]]
        if column and all(map(_number, column)):
            return True
    values = [{row[position] for row in below if position < len(row)} for position in range(len(first))]
    return not any(cell in column for cell, column in zip(first, values, strict=True))


def _sample_text(sample: bytes, complete: bool, file: str) -> str:
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataFormatError("the file is UTF-16, but UTF-8 is expected: convert it, as with 'iconv'", file=file)
    if not sample.removeprefix(codecs.BOM_UTF8).strip():
        raise empty_file(file)
    _Utf8Check(file)(sample, final=complete)
    return sample[: 1 << 16].decode("utf-8-sig", errors="ignore")  # a letter may be cut in two


def find_dialect(sample: bytes, complete: bool, input_file: InputFile, options: ReadOptions) -> Dialect:
    """Delimiter, header, names and types of a file from its first bytes."""
    file = input_file.name
    text = _sample_text(sample, complete, file)
    lines = text.splitlines(keepends=True)
    lines = lines[:-1] if len(lines) > 1 and (not complete or len(sample) > 1 << 16) else lines
    if options.format == "tsv" or input_file.suffix() in (".tsv", ".tab"):
        delimiter = "\t"
    else:
        delimiter = find_delimiter(lines[:50])
    try:
        rows = [row for row in csv.reader(lines[:1000], delimiter=delimiter) if row]
    except csv.Error:  # a NUL or a huge cell: judged by the real reader below
        rows = [line.rstrip("\r\n").split(delimiter) for line in lines[:1000]]
    header = has_header(rows) if options.header is None else options.header
    table, decimal = _infer(sample if complete else sample[: sample.rfind(b"\n") + 1], delimiter, header, file)
    cells = list(table.column_names) if header else []
    check_names(cells, file)
    names = [cell or f"x{i}" for i, cell in enumerate(cells)] if header else [f"x{i}" for i in range(table.num_columns)]
    types = dict(zip(names, map(_roomy, table.columns), strict=True))
    types |= {name: pa.string() for name in (*options.categorical, *options.text) if name in types}
    longest = max(map(len, sample.split(b"\n")))
    return Dialect(delimiter, decimal, cells, names, types, max(BLOCK_BYTES, min(16 * longest, MAX_BLOCK_BYTES)))


def _infer(sample: bytes, delimiter: str, header: bool, file: str) -> tuple[pa.Table, str]:
    """The first rows and the decimal point; where commas do not part columns, they may stand in numbers."""

    def read(decimal: str) -> pa.Table:
        return pa_csv.read_csv(
            pa.BufferReader(sample),
            read_options=pa_csv.ReadOptions(
                block_size=len(sample) + 1, autogenerate_column_names=not header, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda row: "skip"
            ),
            convert_options=pa_csv.ConvertOptions(null_values=NULLS, decimal_point=decimal),
        )

    def count(table: pa.Table) -> int:
        return sum(map(pa.types.is_floating, table.schema.types))

    try:
        point = read(".")
        comma = point if delimiter == "," else read(",")
    except pa.ArrowInvalid as error:
        raise DataFormatError(f"cannot be read as CSV: {one_line(error)}", file=file) from error
    return (comma, ",") if count(comma) > count(point) else (point, ".")


def _roomy(column: pa.ChunkedArray) -> pa.DataType:
    """The type to read a column as, given that later rows may hold more than the first ones."""
    found = column.type
    if pa.types.is_integer(found):
        # Whole numbers that a float cannot hold are no quantities, but names: each is a category of its own.
        ends = [abs(end) for end in pc.min_max(column).as_py().values() if end is not None]
        return pa.string() if max(ends, default=0) > LARGEST_WHOLE else pa.float64()
    if pa.types.is_null(found) or pa.types.is_time(found) or pa.types.is_binary(found):
        return pa.string()
    if pa.types.is_timestamp(found) and found.unit == "s":  # later ones may have fractions of a second
        return pa.timestamp("us", found.tz)
    return found


class CsvTable(Table):
    """One or several CSV files with the same columns, read one after the other."""

    def __init__(self, files: Sequence[str], options: ReadOptions) -> None:
        self._files, self._options = [InputFile(file) for file in files], options
        self._stdin: Stream | None = None
        first = self._files[0]
        stream = first.open()
        try:
            sample = stream.peek(SAMPLE_BYTES)
            self._dialect = find_dialect(sample, len(sample) < SAMPLE_BYTES, first, options)
        finally:
            if first.is_stdin:
                self._stdin = stream
            else:
                stream.close()
        self._sizes = [file.size or 0 for file in self._files]
        self._current: Stream | None = None
        self._number = 0
        self._types = {n: t for n, t in self._dialect.types.items() if n not in options.ignore}
        name = first.name if len(files) == 1 else f"{first.name} and {len(files) - 1} more"
        super().__init__(name, pa.schema(list(self._dialect.types.items())))

    @property
    def rewinds(self) -> bool:
        return not self._files[0].is_stdin

    @property
    def reads_cheaply(self) -> bool:
        return False

    def select(self, types: Mapping[str, pa.DataType]) -> None:
        wanted = {name: types[name] for name in self._dialect.names if name in types}
        if wanted and wanted != self._types:
            self._types = wanted
            self._forget_head()

    def guess_rows(self) -> int | None:
        """About how many rows there are, where the files tell."""
        return guess_lines(self._files)

    def fraction_read(self) -> float | None:
        total = sum(self._sizes)
        if self._current is None or not total:
            return None
        return min(1.0, (sum(self._sizes[: self._number]) + self._current.consumed) / total)

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Place]]:
        self.n_skipped, self.first_skipped = 0, None
        for number, file in enumerate(self._files):
            self._number, self._current = number, self._stdin or file.open()
            try:
                yield from self._read_file(file.name, self._current)
            finally:
                self._current.close()

    def _read_file(self, file: str, stream: Stream) -> Iterator[tuple[pa.RecordBatch, Place]]:
        bad_row: DataFormatError | None = None
        skipped_before = self.n_skipped
        dialect, types, raw_types = self._dialect, list(self._types), self._raw_types()

        def handle(row: Any) -> str:
            nonlocal bad_row
            bad_row = _wrong_width(row, file)
            if self._options.on_error == "stop":
                return "error"
            self.n_skipped += 1
            self.first_skipped = self.first_skipped or bad_row
            return "skip"

        line = 2 if dialect.header_cells else 1
        names = _header_of(stream, dialect) if dialect.header_cells else dialect.names
        try:
            reader = pa_csv.open_csv(
                pa.PythonFile(_Readable(stream, file), "r"),
                read_options=pa_csv.ReadOptions(
                    block_size=dialect.block_bytes,
                    use_threads=False,  # the streaming reader gains nothing by threads and loses row numbers
                    column_names=None if dialect.header_cells else dialect.names,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=handle
                ),
                convert_options=pa_csv.ConvertOptions(
                    null_values=NULLS,
                    decimal_point=dialect.decimal,
                    column_types=raw_types,
                    include_columns=list(raw_types),
                ),
            )
            for batch in reader:
                yield batch.rename_columns(types), Place(file, line)
                line += len(batch) + self.n_skipped - skipped_before
                skipped_before = self.n_skipped
        except KeyError as error:
            missing = str(error).partition("'")[2].rpartition("' in include_columns")[0]
            raise DataFormatError(
                f"the columns must be those of {self._files[0].name}, but column {missing!r} is missing", file=file
            ) from error
        except pa.ArrowInvalid as error:
            raise self._explain(str(error), file, names, bad_row) from error

    def _raw_types(self) -> dict[str, pa.DataType]:
        """Types by the names that stand in the file: an unnamed column has the name ''."""
        unnamed = {f"x{i}": "" for i, name in enumerate(self._dialect.header_cells) if not name}
        return {unnamed.get(name, name): type_ for name, type_ in self._types.items()}

    def _explain(self, text: str, file: str, names: Sequence[str], bad_row: DataFormatError | None) -> DataFormatError:
        """An error of the reader as one that says what to do."""
        if bad_row is not None and "columns, got" in text:
            return bad_row
        found = re.match(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\S+): (.*)", text, re.S)
        if found:
            message = _wrong_value(names[int(found[1])], found[3], found[4])
            return DataFormatError(message, file=file, line=int(found[2]))
        if "straddl" in text:
            size = self._dialect.block_bytes >> 10
            return DataFormatError(f"a row is longer than {size} KiB: look for a quote that is never closed", file=file)
        if "Empty CSV" in text:
            return empty_file(file)
        return DataFormatError(f"cannot be read as CSV: {' '.join(text.split())}", file=file)


def _header_of(stream: Stream, dialect: Dialect) -> list[str]:
    """Names of the columns of one file: not every file need have them in the same order."""
    text = stream.peek(1 << 16).decode("utf-8-sig", errors="replace")
    cells = next(csv.reader(text.splitlines(keepends=True), delimiter=dialect.delimiter), [])
    return [cell or f"x{i}" for i, cell in enumerate(cells)]


def _wrong_width(row: Any, file: str) -> DataFormatError:
    return DataFormatError(
        f"expected {row.expected_columns} columns, got {row.actual_columns} in {cut(row.text)}:"
        " mend the row, or leave such rows out with --on-error skip",
        file=file,
        line=row.number or 0,
    )


def _wrong_value(column: str, type_: str, problem: str) -> str:
    value = re.match(r"invalid value '(.*)'$", problem, re.S)
    wanted = {"double": "a number", "bool": "true or false"}.get(type_.partition("[")[0], "a date")
    return (
        f"expected {wanted} in column {column!r}, got {cut(value[1]) if value else problem};"
        f" if the column holds words, say so with --categorical {column}"
    )


def open_csv(files: Sequence[str], options: ReadOptions) -> CsvTable:
    """Open CSV or TSV files, ``"-"`` being standard input."""
    return CsvTable(files, options)
