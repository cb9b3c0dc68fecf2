"""Tells of stages that copy and do not come closer to their end: first by a warning, at last by the end of the run."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.apply.partition_path import PlanPaths
from reconciler.apply.stage_memory import StageMemory
from reconciler.apply.steps import FailRun, Warn
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import CopyingStage
from reconciler.model.words import named_some

CRAWL = timedelta(seconds=300)
"""How long bytes may arrive without any replica coming closer to its leader before that is told."""


def crawl(stage: CopyingStage, in_flight: Iterable[object], memory: StageMemory, now: datetime) -> Warn | None:
    """Return a warning where bytes arrive and no replica comes closer: as much is written as the throttle lets in."""
    is_copying = memory.copied_bytes > memory.copied_when_progressed
    if now - memory.progressed_at < CRAWL or not is_copying or "crawl" in memory.warned:
        return None
    rate = stage.throttle_bytes_per_second
    cause = "the network or the disks are" if rate is None else f"the throttle of {rate} bytes a second is"
    names = named_some(map(str, in_flight))
    text = f"{names} came no closer to the end in {CRAWL.seconds} s although data arrives: {cause} too slow for what is"
    hint = "written meanwhile; raise the rate of the run: reconciler throttle PLAN RATE"
    told = f"{text} {hint}; or cancel and plan with a higher moves.throttle"
    return Warn("crawl", Problem("KR723", told, severity=Severity.WARNING))


def stalled(
    paths: PlanPaths, stage: CopyingStage, unfinished: Iterable[object], memory: StageMemory, now: datetime
) -> FailRun | None:
    """Return the end of a run whose stage has made no progress for the plan's time-out."""
    seconds = paths.plan.timeout_seconds
    if now - memory.progressed_at < timedelta(seconds=seconds):
        return None
    text = f"stage {stage.number} made no progress for {seconds} s: {named_some(map(str, unfinished))}"
    bad_disks = [disk.told(broker) for broker, disk in sorted(memory.bad_disks.items())]
    hint = f"see that their brokers, disks and throttle (moves.throttle) let data through, then {paths.again}"
    return FailRun(Problem("KR702", "; ".join([text, *bad_disks, hint])))
