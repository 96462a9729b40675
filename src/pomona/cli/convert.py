"""``pomona convert``: turn files into ones that are faster to read."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pomona.atomic import check_writable, replacing
from pomona.cli import common
from pomona.cli.parser import Parser, one_of
from pomona.errors import DataFormatError, OptionError
from pomona.words import byte_words, time_words

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIPTION = """\
Converts between file formats, in bounded memory. VW and svmlight text become
an .arrow file of parsed examples, from which training reads many times faster
than from text. Tables (CSV, TSV, Parquet, Arrow) become one another. The new
file appears when it is complete."""

EXAMPLES = """\
  pomona convert clicks.vw.gz clicks.arrow
  pomona convert 'day_*.csv' days.parquet
  pomona convert adult.parquet adult.csv"""

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
OUTPUT_FORMATS = ("csv", "tsv", "parquet", "arrow")


def parser() -> Parser:
    """The options of the command."""
    result = common.make_parser("convert", "IN [IN ...] OUT [options]", DESCRIPTION, EXAMPLES)
    result.add_argument("paths", nargs="+", metavar="IN", help="files, quoted globs, folders, or - for stdin")
    # For the help alone: the last path is the output.
    result.add_argument("output", nargs="?", metavar="OUT", help="file to write: .arrow, .parquet, .csv or .tsv")
    result.add_argument_group("output").add_argument(
        "--output-format",
        type=one_of(*OUTPUT_FORMATS),
        metavar="NAME",
        help=f"{', '.join(OUTPUT_FORMATS)} (default: by the name of OUT)",
    )
    common.add_read_options(result)
    common.add_report_options(result, "print sizes and rate as one JSON object")
    return result


def interrupted(args: argparse.Namespace) -> str:
    """What to say after Ctrl-C."""
    return "stopped: nothing was written"


def run(args: argparse.Namespace) -> int:
    """Convert and report."""
    from pomona.source import open_source

    *paths, output = args.paths + ([args.output] if args.output else [])
    if not paths:
        raise OptionError("convert needs an input and an output: pomona convert IN OUT")
    kind = args.output_format or SUFFIXES.get(Path(output).suffix.lower())
    if kind is None:
        raise OptionError(
            f"the name of the output must end in .arrow, .parquet, .csv or .tsv; got {output!r}:"
            " rename it or give --output-format"
        )
    check_writable(output)
    if os.path.exists(output) and not os.path.isfile(output):
        raise OptionError(f"the output must be a file that can be replaced; {output} is a device or a pipe")
    start = time.perf_counter()
    source: Any = open_source(common.inputs(paths), common.read_options(args))
    if hasattr(source, "batches"):
        rows = _convert_table(source, kind, output)
    elif kind == "arrow":
        rows = _convert_text(source, output)
    else:
        raise OptionError(f"{source.name} holds sparse examples, which only an .arrow file can; got {output!r}")
    _report(args, paths, output, rows, time.perf_counter() - start)
    return 0


def _convert_text(source: Any, output: str) -> int:
    from pomona.source.cache import write_cache

    return int(write_cache(source, output))


def _convert_table(source: Any, kind: str, output: str) -> int:
    import pyarrow as pa

    rows = 0
    try:
        with replacing(output) as file, _writer(kind, file, source.schema) as writer:
            for batch in source.batches():
                writer.write_batch(batch)
                rows += batch.num_rows
    except pa.ArrowException as error:
        raise DataFormatError(f"cannot be written as {kind}: {error}", file=source.name) from error
    return rows


@contextlib.contextmanager
def _writer(kind: str, file: BinaryIO, schema: pa.Schema) -> Iterator[Any]:
    """A pyarrow writer with the method ``write_batch``."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            yield writer
    elif kind == "arrow":
        import pyarrow as pa

        with pa.ipc.new_file(file, schema) as writer:
            yield writer
    else:
        import pyarrow.csv as pc

        options = pc.WriteOptions(delimiter="\t" if kind == "tsv" else ",", quoting_style="needed")
        with pc.CSVWriter(file, schema, write_options=options) as writer:
            yield writer


def _report(args: argparse.Namespace, paths: list[str], output: str, rows: int, seconds: float) -> None:
    read = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    written = os.path.getsize(output)
    if args.json:
        figures = {
            "path": output,
            "rows": rows,
            "bytes_read": read,
            "bytes_written": written,
            "seconds": seconds,
        }
        common.print_json(figures)
    elif not args.quiet:
        rate = f", {byte_words(read / seconds)}/s" if read else ""
        common.note(
            f"{output}: {rows:,} examples, {byte_words(read)} read,"
            f" {byte_words(written)} written, {time_words(seconds)}{rate}"
        )
