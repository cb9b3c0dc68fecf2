"""The limits that a plan would keep: each raised as far as the plan needs it, and written as people write them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from reconciler.model.desired import Limits
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import CHANGED_PARTITIONS, DISK_USE, MOVED_BYTES, Edit
from reconciler.model.stage import ReassignStage
from reconciler.planner.remedy_changes import States, partition_count

FULL = 100
_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


@dataclass(frozen=True, slots=True)
class RaisedLimits:
    """Limits that let a plan pass, and the lines to edit.

    `least_percent`: what `diskUse` needs at least, None where it stays as it is; one log dir may need more.
    """

    limits: Limits
    edits: tuple[Edit, ...]
    least_percent: int | None = None

    def with_disk_use(self, percent: int) -> "RaisedLimits":
        """Return the same with that share of the disks."""
        edit = Edit(f"limits.diskUse is {percent}%", self.limits.at.get("diskUse"))
        return RaisedLimits(replace(self.limits, disk_use=Fraction(percent, 100)), (*self.edits, edit))


def raised_limits(states: States, plan: Plan) -> RaisedLimits | None:
    """Return the limits raised so far that the plan keeps them, None where that is not to be had by limits."""
    limits = states.desired.cluster.limits
    codes = {problem.code for problem in plan.violations}
    edits = []
    if CHANGED_PARTITIONS in codes:
        limits, words = _more_partitions(states, plan, limits)
        edits.append(Edit(words, limits.at.get("changedPartitions")))
    if MOVED_BYTES in codes:
        moved, words = _rounded_up(plan.summary.bytes)
        limits = replace(limits, moved_bytes=moved)
        edits.append(Edit(f"limits.movedBytes is {words}", limits.at.get("movedBytes")))
    percent = _fullest(plan) if DISK_USE in codes else None
    is_enough = codes <= {CHANGED_PARTITIONS, MOVED_BYTES, DISK_USE} and (percent or 0) <= FULL
    return RaisedLimits(limits, tuple(edits), percent) if is_enough else None


def _more_partitions(states: States, plan: Plan, limits: Limits) -> tuple[Limits, str]:
    """Return the limit that lets so many partitions change, as the share or the number that was written."""
    changed = plan.summary.partitions
    if not isinstance(limits.changed_partitions, Fraction):
        return replace(limits, changed_partitions=changed), f"limits.changedPartitions is {changed}"
    percent = ceil(Fraction(100 * changed, partition_count(states.observed)))
    return replace(limits, changed_partitions=Fraction(percent, 100)), f"limits.changedPartitions is {percent}%"


def _fullest(plan: Plan) -> int:
    """Return how many percent of its disks the fullest broker that receives something uses at the worst moment."""
    receiving = {broker_id for move in moves_of(plan) for broker_id in move.added}
    known = [id_ for id_ in receiving if plan.disk_capacity.get(id_) and id_ in plan.disk_peak]
    return max(ceil(Fraction(100 * plan.disk_peak[id_], plan.disk_capacity[id_])) for id_ in known)


def _rounded_up(count: int) -> tuple[int, str]:
    """Return a whole number of the largest unit that rounds up by a tenth at most, and how it is written."""
    for name, unit in _UNITS:
        whole = -(-count // unit)
        if (whole * unit - count) * 10 <= count:
            return whole * unit, f"{whole}{name}"
    return count, f"{count}B"


def with_limits(states: States, limits: Limits) -> States:
    """Return the states with these limits declared."""
    cluster = replace(states.desired.cluster, limits=limits)
    return States(replace(states.desired, cluster=cluster), states.observed)


def moves_of(plan: Plan) -> Iterator[Move]:
    """Return every move of the plan, in order."""
    return (move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves)
