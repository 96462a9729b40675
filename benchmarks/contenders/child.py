"""Runs one job of one contender in this process: started by :mod:`benchmarks.measure`, never by hand."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.contenders import Job, module


def _peak_mb() -> float:
    # On Linux ru_maxrss is inherited from the process that started this one; VmHWM begins afresh.
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def main() -> None:
    request = json.load(sys.stdin)
    job = Job(**request["job"])
    if job.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.cores])
    contender = module(request["contender"])
    answer: dict[str, object] = {}
    # Contenders may print; the answer goes where only the harness listens.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        try:
            if request["step"] == "prepare":
                if hasattr(contender, "prepare"):
                    contender.prepare(job)
            else:
                start = _peak_mb()
                outcome = contender.run(job)
                outcome.start_mb, outcome.peak_mb = start, _peak_mb()
                answer = asdict(outcome)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        json.dump(answer, out)


if __name__ == "__main__":
    main()
