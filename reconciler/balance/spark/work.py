"""Counts what a block of Spark jobs cost: how many there were, what they shuffled, the CPU of their tasks.

It asks the Java of the driver, where there is one: Spark Connect tells none of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAIT_MILLIS = 10_000
_NANOS = 10**9


@dataclass(frozen=True, slots=True)
class Work:
    """What jobs cost."""

    jobs: int
    shuffled_bytes: int
    """What tasks wrote for others to read."""
    cpu_seconds: float
    """Of all tasks; planning and the start of Java are not in it."""


@dataclass(slots=True)
class Counted:
    """What the jobs of a block cost, once it is over; None where it cannot be told."""

    work: Work | None = None


@contextmanager
def counted_work(session: "SparkSession") -> Iterator[Counted]:
    """Yield what holds the work of the block's jobs afterwards; jobs of others in the same Spark do not count."""
    context, counted, tag = session.sparkContext, Counted(), f"reconciler-{uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield counted
        counted.work = _work(context._jsc.sc(), tag)  # noqa: SLF001 - Python has no way to these figures
    finally:
        context.removeJobTag(tag)


def _work(context: Any, tag: str) -> Work | None:  # noqa: ANN401 - a Java object
    """Return the sums over the stages of the jobs with that tag; figures of Spark's own pages, none of its promises."""
    from py4j.protocol import Py4JError

    try:
        context.listenerBus().waitUntilEmpty(_WAIT_MILLIS)
        store = context.statusStore()
        jobs = list(context.statusTracker().getJobIdsForTag(tag))
        told = (store.job(job).stageIds().mkString(",") for job in jobs)
        stages = {int(stage) for listed in told for stage in listed.split(",") if stage}
        # A stage whose result was there already has run in an earlier job, or not at all.
        run = [store.lastStageAttempt(stage) for stage in sorted(stages)]
        shuffled = sum(stage.shuffleWriteBytes() for stage in run)
        return Work(len(jobs), shuffled, sum(stage.executorCpuTime() for stage in run) / _NANOS)
    except (Py4JError, TypeError):
        return None
