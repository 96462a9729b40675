"""The ``vowpalwabbit`` wheel, driven natively: its constructor reads and learns the whole file by itself."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.contenders import Clock, Job, Outcome


def missing() -> str | None:
    return None if find_spec("vowpalwabbit") else 'pip install "vowpalwabbit>=9.9"'


def expansion(interactions: str) -> str:
    """The options for all products up to a degree; cubic alone would leave degree 2 out."""
    return {"linear": "", "quadratic": " -q ::", "cubic": " -q :: --cubic :::"}[interactions]


def arguments(job: Job) -> str:
    """Its command line for a job, without the cache."""
    if job.format != "vw":
        raise ValueError(f"vw reads VW text; got {job.format!r}")
    line = f"-d {job.data} --quiet --loss_function {job.loss} -l {job.learning_rate}"
    line += expansion(job.interactions)
    if job.bits is not None:
        line += f" -b {job.bits}"
    if job.work == "parse":
        line += " --noop"
    if job.passes > 1:
        line += f" --passes {job.passes} --holdout_off"
    return line + " " + str(job.extra.get("vw", ""))


def prepare(job: Job) -> None:
    if not job.cached and job.passes == 1:
        return
    from vowpalwabbit import Workspace

    cache = job.cache_path("vw")
    cache.parent.mkdir(parents=True, exist_ok=True)
    if not cache.exists():
        partial = cache.with_name(cache.name + ".making")
        # -d must be there: with --cache_file alone it reads nothing, and says nothing. -k: no stale cache.
        Workspace(f"-d {job.data} --quiet --noop -k --cache_file {partial}").finish()
        shutil.move(partial, cache)


def run(job: Job) -> Outcome:
    from vowpalwabbit import Workspace

    line = arguments(job)
    if job.cached or job.passes > 1:
        cache = job.cache_path("vw")
        if not cache.exists():
            raise FileNotFoundError(f"the cache {cache} is missing: prepare the job first")
        line += f" --cache_file {cache}"
    if job.extra.get("count"):  # it counts features only where it may say so
        line = line.replace(" --quiet", "")
    clock = Clock()
    with clock.running():
        workspace = Workspace(line, enable_logging=bool(job.extra.get("count")))
        examples = workspace.get_weighted_examples()
        loss = workspace.get_sum_loss() / max(examples, 1)
        workspace.finish()
    if examples == 0 and Path(job.data).stat().st_size > 0:
        raise RuntimeError("vw processed no example: its cache or its data was not read")
    return clock.outcome(loss=loss, examples=int(examples), features=_features(workspace, job))


def _features(workspace: Any, job: Job) -> int | None:
    if not job.extra.get("count"):
        return None
    return int(re.findall(r"total feature number = (\d+)", "\n".join(workspace.get_log()))[-1])
