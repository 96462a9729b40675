"""Parsed chunks in an Arrow IPC file: read again without parsing, memory-mapped and without copying.

A record batch is a chunk. Its features are one list column, so that other tools can read the file too; names
of features that the file has not met before, and what else is not a column, stand in the batch's metadata.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from pomona import _native
from pomona.atomic import replacing
from pomona.chunk import Chunk, LookUp, NameLookup, PackedNames, Source
from pomona.errors import DataFormatError, PomonaError
from pomona.source.blocks import OrderedMap, available_cores
from pomona.source.parquet import open_ipc
from pomona.source.table import ARROW_ERRORS, numpy_of, one_line, wrap
from pomona.words import error_words

#: Key of the schema's metadata that marks a file of chunks; its value is the version.
MARK = b"pomona.chunks"
VERSION = 1


def is_cache(schema: pa.Schema) -> bool:
    """Whether an Arrow file holds chunks, and not a table."""
    return MARK in (schema.metadata or {})


def _schema(chunk: Chunk) -> pa.Schema:
    index = pa.uint64() if chunk.indices.dtype == np.uint64 else pa.uint32()
    parts = [("index", index), ("value", pa.float32())]
    parts += [("field", pa.uint16())] if chunk.fields is not None else []
    columns = [
        ("features", pa.large_list(pa.struct(parts))),
        ("label", pa.float64()),
        ("label_text", pa.string()),
    ]
    columns += [("weight", pa.float64()), ("offset", pa.float64()), ("tag", pa.string())]
    return pa.schema(columns, {MARK: str(VERSION).encode()})


def _labels(chunk: Chunk) -> tuple[pa.Array, pa.Array, str]:
    """The columns of numbers and of strings, of which one is null, and the type to give back."""
    n, labels = len(chunk), chunk.labels
    if labels is None:
        return pa.nulls(n, pa.float64()), pa.nulls(n, pa.string()), ""
    if labels.dtype.kind in "iufb":
        if labels.dtype.kind in "iu" and n and max(abs(int(labels.max())), abs(int(labels.min()))) > 1 << 53:
            raise DataFormatError("a whole number as target must be below 2**53 to be cached", file=chunk.file)
        return wrap(labels.astype(np.float64)), pa.nulls(n, pa.string()), labels.dtype.str
    return pa.nulls(n, pa.float64()), pa.array(labels.tolist(), pa.string()), labels.dtype.str


class _Writer:
    """Writes chunks to an open file."""

    def __init__(self, source: Source, file: BinaryIO, with_names: bool) -> None:
        self._source, self._file, self._with_names = source, file, with_names
        self._known = _native.IdMap()
        self._n_fields = 0
        self._writer: Any = None
        self._schema: pa.Schema | None = None

    def write(self, chunk: Chunk) -> None:
        schema = _schema(chunk)
        if self._writer is None:
            self._schema = schema
            self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), schema)
        if schema != self._schema:
            raise DataFormatError("all chunks of a source must have features of one kind", file=chunk.file)
        self._writer.write_batch(self._batch(chunk, schema), custom_metadata=self._metadata(chunk))

    def finish(self) -> bool:
        """Complete the file; False when there was nothing to write."""
        if self._writer is not None:
            self._writer.close()
        return self._writer is not None

    def _batch(self, chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        parts: list[NDArray[Any]] = [chunk.indices[first:last], chunk.values[first:last]]
        parts += [chunk.fields[first:last]] if chunk.fields is not None else []
        kind = schema.field("features").type.value_type
        flat = pa.StructArray.from_arrays([wrap(part) for part in parts], fields=list(kind))
        lists = pa.LargeListArray.from_arrays(wrap(chunk.indptr - first), flat)
        number, text, _ = _labels(chunk)

        def optional(values: NDArray[Any] | None) -> pa.Array:
            return pa.nulls(len(chunk), pa.float64()) if values is None else wrap(values.astype(np.float64))

        tags = pa.array(chunk.tags, pa.string()) if chunk.tags is not None else pa.nulls(len(chunk), pa.string())
        columns = [lists, number, text, optional(chunk.weights), optional(chunk.offsets), tags]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _metadata(self, chunk: Chunk) -> dict[str, bytes]:
        about = {
            "label": _labels(chunk)[2],
            "weight": chunk.weights is not None,
            "offset": chunk.offsets is not None,
            "tag": chunk.tags is not None,
            "line": chunk.first_line,
            "file": chunk.file,
            "fields": self._source.fields[self._n_fields :],
        }
        self._n_fields = len(self._source.fields)
        found = {"pomona": json.dumps(about).encode()}
        if self._with_names and chunk.names is not None:
            first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
            ids = np.ascontiguousarray(chunk.indices[first:last], np.uint64)
            fresh = self._known.insert(ids)[1]
            names = chunk.names(fresh + first)
            packed = names if isinstance(names, PackedNames) else PackedNames.pack(names)
            found["ids"] = ids[fresh].tobytes()
            found["names"], found["name_ends"] = packed.text.tobytes(), packed.ends.tobytes()
        return found


def write_cache(
    source: Source, path: str, with_names: bool = True, progress: Callable[[int], None] | None = None
) -> int:
    """Write all chunks of a source to a file, which appears under its name once it is complete.

    Parameters
    ----------
    with_names : whether to keep the names of features.
    progress : called with the number of examples written so far.

    Returns
    -------
    int
        Examples written.
    """
    count = 0
    with replacing(path) as file:
        writer = _Writer(source, file, with_names)
        for chunk in source.chunks():
            writer.write(chunk)
            count += len(chunk)
            if progress is not None:
                progress(count)
        if not writer.finish():
            raise DataFormatError("there are no examples: nothing to write", file=source.name)
    return count


class CacheSource:
    """Chunks read from a file that :func:`write_cache` wrote; their arrays are views of the file."""

    reads_cheaply = True
    rewinds = True
    look_up: LookUp | None = None

    def __init__(self, path: str) -> None:
        self.name = path
        self._reading = threading.Lock()
        self.fields: list[str] = []
        self._reader = open_ipc(path)
        schema = self._reader.schema
        if not is_cache(schema) or not isinstance(self._reader, pa.ipc.RecordBatchFileReader):
            raise DataFormatError("this is not a file of chunks written by pomona", file=path)
        if (found := schema.metadata[MARK]) != str(VERSION).encode():
            raise DataFormatError(
                f"the chunks have version {found.decode(errors='replace')}, but {VERSION} is needed:"
                " write the file again",
                file=path,
            )
        self._n_chunks = self._reader.num_record_batches
        self._done = 0
        self._older_names: tuple[int, dict[int, str]] = (0, {})
        self.n_examples: int | None = self._count()

    def _count(self) -> int:
        try:
            return sum(self._reader.get_batch(number).num_rows for number in range(self._n_chunks))
        except ARROW_ERRORS as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataFormatError:
        return DataFormatError(f"the file of chunks is damaged: {one_line(error)}; write it again", file=self.name)

    def _get(self, number: int) -> tuple[pa.RecordBatch, dict[str, bytes]]:
        try:
            with self._reading:
                batch, metadata = self._reader.get_batch_with_custom_metadata(number)
            for name in ("label_text", "tag"):
                batch.column(name).validate(full=True)
            batch.validate()
            found = {key.decode(): metadata[key] for key in metadata.keys()}
            json.loads(found["pomona"])
            return batch, found
        except (*ARROW_ERRORS, KeyError, ValueError, AttributeError) as error:
            raise self._damaged(error) from error

    def fraction_read(self) -> float | None:
        return self._done / self._n_chunks if self._n_chunks else None

    def chunks(self) -> Iterator[Chunk]:
        fields: list[str] = []
        threads = available_cores()
        loaded = OrderedMap(iter(range(self._n_chunks)), self._load, threads, 2 * threads)
        with contextlib.closing(iter(loaded)) as results:
            for number, (chunk, new_fields) in enumerate(results):
                self._done = number
                fields += new_fields
                self.fields = max(self.fields, list(fields), key=len)
                yield chunk
        self._done = self._n_chunks

    def _load(self, number: int) -> tuple[Chunk, list[str]]:
        batch, metadata = self._get(number)
        about = json.loads(metadata["pomona"])
        chunk = self._chunk(number, batch, about, metadata)
        for array in (chunk.indices, chunk.values):  # brings the pages of the file in while others learn
            array[:: mmap.PAGESIZE // array.itemsize].max(initial=0)
        ids: Any = chunk.indices
        found = None if self.look_up is None or ids.dtype != np.uint64 else self.look_up(ids)
        return chunk if found is None else replace(chunk, rows=found), about["fields"]

    def _chunk(self, number: int, batch: pa.RecordBatch, about: dict[str, Any], metadata: dict[str, bytes]) -> Chunk:
        features = batch.column("features")
        indptr: NDArray[np.int64] = numpy_of(features.offsets)
        flat = features.values
        parts = [numpy_of(flat.field(i)) for i in range(flat.type.num_fields)]
        if len(indptr) and (indptr[0] < 0 or indptr[-1] > len(flat) or (np.diff(indptr) < 0).any()):
            raise DataFormatError("the file of chunks is damaged: lists overlap; write it again", file=self.name)
        return Chunk(
            indptr=indptr,
            indices=parts[0],
            values=parts[1],
            fields=parts[2] if len(parts) > 2 else None,
            labels=_labels_back(batch, about["label"]),
            weights=numpy_of(batch.column("weight")) if about["weight"] else None,
            offsets=numpy_of(batch.column("offset")) if about["offset"] else None,
            tags=batch.column("tag").to_pylist() if about["tag"] else None,
            names=self._lookup(number, parts[0], metadata) if "names" in metadata else None,
            first_line=about["line"],
            file=about["file"],
        )

    def _lookup(self, number: int, indices: NDArray[Any], metadata: dict[str, bytes]) -> NameLookup:
        def names(positions: NDArray[np.int64]) -> list[str] | PackedNames:
            ids = indices[positions].astype(np.uint64)
            new, packed = _names_in(metadata)
            if np.array_equal(ids, new):  # a learner that has met what the file has met
                return packed
            numbers = _native.IdMap()
            numbers.insert(new)
            places = numbers.find(ids)
            if (places != _native.NO_ROW).all():
                try:
                    return PackedNames(*_native.take_strings(packed.text, np.append(np.int64(0), packed.ends), places))
                except ValueError as error:
                    raise self._damaged(error) from error
            known = _by_id(new, packed)
            if not all(id_ in known for id_ in ids.tolist()):
                known |= self._names_before(number)
            return [known[id_] for id_ in ids.tolist()]

        return names

    def _names_before(self, number: int) -> dict[int, str]:
        done, known = self._older_names
        for earlier in range(done, number):
            ids, packed = _names_in(self._get(earlier)[1])
            known |= _by_id(ids, packed)
        self._older_names = max(done, number), known
        return known


def _names_in(metadata: dict[str, bytes]) -> tuple[NDArray[np.uint64], PackedNames]:
    """Ids first met in a chunk, with their names."""
    packed = PackedNames(np.frombuffer(metadata["names"], np.uint8), np.frombuffer(metadata["name_ends"], np.int64))
    return np.frombuffer(metadata["ids"], np.uint64), packed


def _by_id(ids: NDArray[np.uint64], names: PackedNames) -> dict[int, str]:
    return {id_: names[i] for i, id_ in enumerate(ids.tolist())}


def _labels_back(batch: pa.RecordBatch, dtype: str) -> NDArray[Any] | None:
    if not dtype:
        return None
    kind = np.dtype(dtype)
    if kind.kind in "iufb":
        return numpy_of(batch.column("label")).astype(kind, copy=False)
    return np.array(batch.column("label_text").to_pylist(), kind)


class CachingSource:
    """A source whose first complete pass writes a cache that later passes read.

    Parameters
    ----------
    directory : where to put the temporary file; by default where temporary files belong.

    :meth:`close` removes the file, as does the end of the program.
    """

    reads_cheaply = True

    def __init__(self, source: Source, directory: str | None = None) -> None:
        self._source = source
        self._folder = tempfile.mkdtemp(prefix="pomona-", dir=directory)
        self._cache: CacheSource | None = None
        self._complete = False
        self._current: Source = source
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, True)

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def fields(self) -> list[str]:
        return self._source.fields

    @property
    def n_examples(self) -> int | None:
        return self._cache.n_examples if self._cache else self._source.n_examples

    @property
    def rewinds(self) -> bool:
        return self._complete or self._source.rewinds

    def fraction_read(self) -> float | None:
        return self._current.fraction_read()

    def chunks(self) -> Iterator[Chunk]:
        if not self._complete:
            yield from self._first_pass()
        elif self._cache is not None:
            self._current = self._cache
            yield from self._cache.chunks()

    def _first_pass(self) -> Iterator[Chunk]:
        path = os.path.join(self._folder, "chunks.arrow")
        with self._writing(path):
            file = open(path, "wb")
        try:
            writer = _Writer(self._source, file, with_names=False)
            for chunk in self._source.chunks():
                with self._writing(path):
                    writer.write(chunk)
                yield chunk
            with self._writing(path):
                found = writer.finish()
                file.close()
            self._cache, self._complete = CacheSource(path) if found else None, True
        finally:
            with contextlib.suppress(OSError):
                file.close()
            if not self._complete:
                os.unlink(path)

    @contextlib.contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PomonaError(
                f"cannot write the cache {path}: {error_words(error)}: free some space, or set TMPDIR to a larger disk"
            ) from error

    def close(self) -> None:
        """Remove the temporary file."""
        self._cache, self._complete, self._current = None, False, self._source
        self._remove()

    def __enter__(self) -> CachingSource:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
