"""pyarrow alone: how long a table takes to be read, with nothing learnt from it."""

from __future__ import annotations

from benchmarks.contenders import Clock, Job, Outcome


def missing() -> str | None:
    return None


def run(job: Job) -> Outcome:
    """Reads batch by batch and keeps nothing, or with ``extra["whole"]`` the whole table at once."""
    if job.format not in ("csv", "parquet"):
        raise ValueError(f"pyarrow reads csv and parquet; got {job.format!r}")
    clock = Clock()
    read = _whole if job.extra.get("whole") else _stream
    # Its first use loads libraries that are not to be timed.
    from pyarrow import csv, parquet  # noqa: F401

    with clock.running():
        examples = read(job)
    return clock.outcome(examples=examples)


def _stream(job: Job) -> int:
    from pyarrow import csv, parquet

    batches = csv.open_csv(job.data) if job.format == "csv" else parquet.ParquetFile(job.data).iter_batches()
    return sum(batch.num_rows for batch in batches)


def _whole(job: Job) -> int:
    from pyarrow import csv, parquet

    read = csv.read_csv if job.format == "csv" else parquet.read_table
    return int(read(job.data).num_rows)
