"""Finds out what data is, by its type, the suffix of a file, or its first bytes, and opens it.

A format, or a kind of object, is one line in a table below; its module is imported when it is first used.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pomona.chunk import Source
from pomona.errors import DataFormatError, OptionError
from pomona.options import ReadOptions
from pomona.source.files import InputFile, find_files, is_path

if TYPE_CHECKING:
    from pomona.source.table import TableSource

_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_VW_LINE = re.compile(rb"[ \t]*(?:%s[ \t]+){0,3}(?:'?[^ \t|,]*[ \t]*)?\|" % _NUMBER)
_SVMLIGHT_LINE = re.compile(
    rb"(?:%s(?:,%s)*)?(?:[ \t]+qid:\d+)?(?:(?:^|[ \t]+)\d+:%s)*[ \t\r]*(?:#.*)?$" % ((_NUMBER,) * 3)
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files."""

    name: str
    suffixes: tuple[str, ...]
    #: ``module:function``, called with the paths and the options.
    opener: str
    #: Whether a file without a known suffix has this format, from the beginning of its decompressed content.
    fits: Callable[[bytes], bool] = lambda head: False


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """Objects in memory whose class comes from one of these packages."""

    packages: tuple[str, ...]
    #: ``module:function``, called with the object and the options.
    opener: str


def _lines(head: bytes, skip: bytes = b"") -> list[bytes]:
    """The first complete lines of a file, without blank ones and those that begin with ``skip``."""
    end = head.rfind(b"\n")
    lines = (head[:end] if end >= 0 else head).splitlines()[:100]
    return [line for line in lines if line.strip() and not (skip and line.lstrip().startswith(skip))]


def _is_vw(head: bytes) -> bool:
    lines = _lines(head)
    return bool(lines) and all(_VW_LINE.match(line) for line in lines)


def _is_svmlight(head: bytes) -> bool:
    lines = _lines(head, skip=b"#")
    return any(b":" in line for line in lines) and all(_SVMLIGHT_LINE.match(line) for line in lines)


def _is_delimited(head: bytes, delimiter: bytes) -> bool:
    first = _lines(head)[:1]
    others = [mark for mark in (b",", b"\t") if mark != delimiter]
    if not first or b"\0" in head:
        return False
    return first[0].count(delimiter) > max(first[0].count(mark) for mark in others)


#: In the order in which their ``fits`` are asked.
FORMATS: list[Format] = [
    Format("parquet", (".parquet", ".pq"), "pomona.source.parquet:open_parquet", lambda head: head[:4] == b"PAR1"),
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc", ".arrows"),
        "pomona.source.parquet:open_arrow",
        lambda head: head[:6] == b"ARROW1" or head[:4] in (b"FEA1", b"\xff\xff\xff\xff"),
    ),
    Format("vw", (".vw",), "pomona.source.vw:open_vw", _is_vw),
    Format("svmlight", (".svm", ".svmlight", ".libsvm"), "pomona.source.svmlight:open_svmlight", _is_svmlight),
    Format("svmlight-multilabel", (), "pomona.source.svmlight:open_svmlight"),
    Format("tsv", (".tsv", ".tab"), "pomona.source.csv:open_csv", lambda head: _is_delimited(head, b"\t")),
    Format("csv", (".csv",), "pomona.source.csv:open_csv", lambda head: _is_delimited(head, b",")),
]

OBJECTS: list[ObjectKind] = [
    ObjectKind(("numpy", "scipy"), "pomona.source.arrays:open_array"),
    ObjectKind(("pandas", "polars", "pyarrow"), "pomona.source.table:open_frame"),
]


def open_source(data: Any, options: ReadOptions | None = None) -> Source | TableSource:
    """Open data for reading, whatever it is.

    Parameters
    ----------
    data : a path, a pattern such as ``"day*.vw.gz"``, a directory, a list of these, ``"-"`` for standard
        input, or an array or table in memory. Files may be compressed by gzip, zstd, bz2, xz or lz4.
    options : how to read it; without ``options.format`` the format is found from suffix and content.

    Returns
    -------
    Source or TableSource
        Text with sparse examples and arrays give a source of chunks, tables a source of record batches.
    """
    options = options or ReadOptions()
    if is_path(data) or (isinstance(data, (list, tuple)) and data and all(is_path(item) for item in data)):
        paths = find_files(data)
        form = _named(options.format) if options.format else _format_of([InputFile(path) for path in paths])
        source: Source | TableSource = _function(form.opener)(paths, options)
        return source
    kind = _kind_of(data)
    if kind is None:
        raise OptionError(
            "data must be a path, a list of paths, '-', a NumPy or SciPy array, or a pandas, polars or"
            f" pyarrow table; got {type(data).__module__}.{type(data).__qualname__}"
        )
    opened: Source | TableSource = _function(kind.opener)(data, options)
    return opened


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _named(name: str) -> Format:
    for form in FORMATS:
        if form.name == name:
            return form
    names = ", ".join(form.name for form in FORMATS)
    raise OptionError(f"the format must be one of {names}; got {name!r}")


def _format_of(files: list[InputFile]) -> Format:
    found = [(file, _by_suffix(file) or _by_content(file)) for file in files]
    first_file, form = found[0]
    for file, other in found[1:]:
        if other is not form:
            raise DataFormatError(
                f"expected {form.name} like {first_file.name}, got {other.name}: files read together must"
                " have one format",
                file=file.name,
            )
    return form


def _by_suffix(file: InputFile) -> Format | None:
    suffix = file.suffix()
    return next((form for form in FORMATS if suffix in form.suffixes), None)


def _by_content(file: InputFile) -> Format:
    head = file.head()
    for form in FORMATS:
        if form.fits(head):
            return form
    raise DataFormatError(
        "cannot tell the format from the name or the content: name it, one of "
        + ", ".join(form.name for form in FORMATS),
        file=file.name,
    )


def _kind_of(data: Any) -> ObjectKind | None:
    packages = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    for kind in OBJECTS:
        if packages & set(kind.packages):
            return kind
    # What speaks the Arrow C stream interface, and iterators of batches, are for the opener of frames.
    if hasattr(type(data), "__arrow_c_stream__") or hasattr(type(data), "__next__"):
        return next(kind for kind in OBJECTS if "pyarrow" in kind.packages)
    return None
