"""The smallest change of the desired state that would let a refused plan fit: single changes first, then pairs."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil

from reconciler.diff.compare import compare
from reconciler.diff.managed import managed_topics
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, Limits
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    CHANGED_PARTITIONS,
    DELETIONS,
    DISK_USE,
    MOVED_BYTES,
    Edit,
    InvalidInput,
    PlacementInfeasible,
    Remedy,
)
from reconciler.model.stage import ReassignStage
from reconciler.planner.conflicts import frozen_conflicts, unplaceable
from reconciler.planner.placement_task import partitions_to_place
from reconciler.planner.remedy_changes import (
    JOINING,
    TWICE,
    Change,
    States,
    broker_changes,
    changes_for,
    factor_changes,
    joining_changes,
    partition_count,
    thinned,
)

__all__ = ["ORDINARY", "THOROUGH", "Effort", "States", "conflicting", "remedies_of_conflict", "remedies_of_violations"]

MOST = 3
_EACH_KIND = 6
_PAIRS = 600

MakePlan = Callable[[Desired, Cluster], Plan]


@dataclass(frozen=True, slots=True)
class Effort:
    """How many plans may be made to verify remedies, and of how many partitions in all; counts, never time."""

    plans: int
    partitions: int


ORDINARY = Effort(plans=10, partitions=10_000)
THOROUGH = Effort(plans=40, partitions=200_000)


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


def remedies_of_conflict(
    states: States, only: Collection[str] | None, make_plan: MakePlan, effort: Effort
) -> tuple[Remedy, ...]:
    """Return up to MOST remedies for rules that cannot hold together, each of another kind, the mildest first.

    What a limit then forbids is raised with it. A remedy that the effort leaves no plan for is checked against every
    rule on the whole cluster, and says that it was not planned.
    """
    topics = conflicting(states, only)
    if not topics:
        return ()
    changes = changes_for(states, sorted(topics))
    thin = thinned(states, topics)
    search = _Search(states, only, make_plan, effort)
    for combos in (_singles(changes), _pairs(changes)):
        fitting = (combo for combo in combos if not conflicting(_applied(thin, combo), only))
        found = search.verified(fitting)
        if found:
            return found
    return ()


def remedies_of_violations(states: States, plan: Plan, make_plan: MakePlan, effort: Effort) -> tuple[Remedy, ...]:
    """Return up to MOST remedies for limits that a plan goes over: the limits raised, a broker more, fewer replicas.

    None where it deletes too much: whether that is meant is not for a search to say.
    """
    if any(problem.code in DELETIONS for problem in plan.violations):
        return ()
    search = _Search(states, None, make_plan, effort)
    found = search.with_raised_limits(states, plan, ())
    growing = {move.topic_partition.topic for move in moves_of(plan) if move.reason is Reason.REPLICATION_FACTOR}
    declared = managed_topics(states.desired, states.observed)
    concerned = {name: declared[name] for name in sorted(growing) if name in declared}
    factors = factor_changes(states, concerned) if concerned else ()
    changes = [*broker_changes(states), *factors, *joining_changes(states)]
    found += search.planned(_singles(changes), MOST - len(found))
    return tuple(found or search.planned(_pairs(changes), MOST))


def conflicting(states: States, only: Collection[str] | None) -> frozenset[str]:
    """Return the topics whose rules cannot all be kept; those on a broker declared absent among them."""
    desired, observed = states
    rules = topic_rules(desired, observed)
    try:
        changes = compare(desired, observed, rules)
    except InvalidInput:
        return frozenset(rules)
    partitions, _ = partitions_to_place(desired, observed, rules, changes, only)
    broken = [found for found in changes.broken_rules if only is None or found.topic_partition.topic in only]
    frozen = {found.topic_partition.topic for found in broken if any(True for _ in frozen_conflicts(rules, (found,)))}
    absent = {broker.id for broker in desired.cluster.brokers.values() if broker.state is BrokerState.ABSENT}
    held = {key.topic for key, one in observed.partitions() if absent.intersection(one.target_replicas)}
    return frozenset(
        held | frozen | {partition.topic_partition.topic for partition in unplaceable(desired, observed, partitions)}
    )


class _Search:
    """Verifies candidates by planning with them, as long as the effort lasts."""

    def __init__(self, states: States, only: Collection[str] | None, make_plan: MakePlan, effort: Effort) -> None:
        self._states = states
        self._only = only
        self._make_plan = make_plan
        self._effort = effort
        self._thin: States | None = None

    def verified(self, combos: Iterator[Sequence[Change]]) -> tuple[Remedy, ...]:
        """Return the first MOST of these that fit, each of other kinds of change."""
        told: set[tuple[str, ...]] = set()
        found: list[Remedy] = []
        for combo in combos:
            kinds = _kinds(combo)
            remedy = None if kinds in told else self._fitting(combo)
            if remedy is not None:
                told.add(kinds)
                found.append(remedy)
            if len(found) == MOST:
                break
        return tuple(found)

    def planned(self, combos: Iterator[Sequence[Change]], most: int) -> list[Remedy]:
        """Return the first of these with which a plan keeps every limit, each of other kinds of change."""
        told: set[tuple[str, ...]] = set()
        found: list[Remedy] = []
        for combo in combos:
            if len(found) == most or not self._may_plan():
                break
            kinds = _kinds(combo)
            if kinds not in told:
                plan = self._plan(_applied(self._states, combo))
                if plan is not None and not plan.violations:
                    told.add(kinds)
                    found.append(Remedy(_edits(combo)))
        return found

    def with_raised_limits(self, states: States, plan: Plan, edits: tuple[Edit, ...]) -> list[Remedy]:
        """Return the edits with the limits that the plan of these states needs raised, where that is enough.

        The count and the bytes of a plan are what they are; how full disks get is known when it was staged again.
        """
        raised = raised_limits(states, plan)
        if raised is None:
            return []
        if raised.least_percent is None:
            return [Remedy((*edits, *raised.edits))]
        low, high = raised.least_percent, FULL
        known = {percent: self._keeps(states, raised.with_disk_use(percent)) for percent in (low, high)}
        while high - low > 1 and known[high] and not known[low]:
            middle = (low + high) // 2
            known[middle] = self._keeps(states, raised.with_disk_use(middle))
            low, high = (low, middle) if known[middle] else (middle, high)
        fitting = [percent for percent, is_kept in sorted(known.items()) if is_kept]
        return [Remedy((*edits, *raised.with_disk_use(fitting[0]).edits))] if fitting else []

    def _keeps(self, states: States, raised: RaisedLimits) -> bool:
        plan = self._plan(with_limits(states, raised.limits)) if self._may_plan() else None
        return plan is not None and not plan.violations

    def _fitting(self, combo: Sequence[Change]) -> Remedy | None:
        states = _applied(self._states, combo)
        if not self._may_plan():
            return None if self._is_conflict(combo) else Remedy(_edits(combo), is_planned=False)
        plan = self._plan(states)
        if plan is None or not plan.violations:
            return Remedy(_edits(combo)) if plan is not None else None
        return next(iter(self.with_raised_limits(states, plan, _edits(combo))), None)

    def _is_conflict(self, combo: Sequence[Change]) -> bool:
        """Whether the rules of any topic cannot be kept with these changes."""
        if self._thin is None:
            known = {*self._states.observed.topics, *self._states.desired.topics}
            self._thin = thinned(self._states, known if self._only is None else self._only)
        return bool(conflicting(_applied(self._thin, combo), self._only))

    def _may_plan(self) -> bool:
        return self._effort.plans > 0 and self._effort.partitions >= partition_count(self._states.observed)

    def _plan(self, states: States) -> Plan | None:
        size = partition_count(self._states.observed)
        self._effort = Effort(self._effort.plans - 1, self._effort.partitions - size)
        try:
            return self._make_plan(*states)
        except (PlacementInfeasible, InvalidInput):
            return None


def _singles(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    return ((change,) for change in changes)


def _pairs(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield pairs of the first few changes of each kind, those of early changes first; a change may stand twice."""
    kept: list[Change] = []
    for change in changes:
        if sum(other.kind == change.kind for other in kept) < _EACH_KIND:
            kept.append(change)
    pairs = sorted(combinations_with_replacement(range(len(kept)), 2), key=lambda pair: (sum(pair), pair))
    meaningful = [(one, other) for one, other in pairs if one != other or kept[one].kind == JOINING]
    return ((kept[one], kept[other]) for one, other in meaningful[:_PAIRS])


def _kinds(combo: Sequence[Change]) -> tuple[str, ...]:
    return tuple(sorted(change.kind for change in combo))


def _applied(states: States, combo: Sequence[Change]) -> States:
    for change in combo:
        states = change.make(states)
    return states


def _edits(combo: Sequence[Change]) -> tuple[Edit, ...]:
    """Return the edits; the same one twice is one that says so."""
    first, last = combo[0], combo[-1]
    if first is last and len(combo) > 1:
        return tuple(Edit(edit.words.replace(*TWICE)) for edit in first.edits)
    return tuple(edit for change in combo for edit in change.edits)


FULL = 100
_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


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
