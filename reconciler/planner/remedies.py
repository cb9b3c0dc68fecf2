"""Searches for the smallest change of the desired state that lets a refused plan fit: single changes, then pairs.

Each remedy that is told was planned with, or says that it was not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil

from reconciler.diff.compare import compare
from reconciler.diff.managed import managed_topics
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, Limits
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    CHANGED_PARTITIONS,
    DELETIONS,
    DISK_USE,
    LIMITS,
    MOVED_BYTES,
    Edit,
    InvalidInput,
    PlacementInfeasible,
    Remedy,
)
from reconciler.model.stage import moves_of
from reconciler.planner.conflicts import frozen_conflicts, unplaceable
from reconciler.planner.remedy_changes import (
    JOINING,
    TWICE,
    Change,
    States,
    broker_changes,
    changes_for,
    factor_changes,
    joining_changes,
    thinned,
)
from reconciler.planner.to_place import partitions_to_place

__all__ = ["ORDINARY", "THOROUGH", "Effort", "States", "conflicting", "remedies_of_conflict", "remedies_of_violations"]

MOST = 3
"""So many remedies are told: more is no help to choose."""
EACH_KIND = 6
"""So many changes of a kind stand in pairs, those of the first brokers and racks: others differ in the name alone."""
PAIRS = 600
"""So many pairs are checked against the rules, where no single change helps."""
FULL = 100  # percent of a disk
UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))  # bytes, as limits are written

MakePlan = Callable[[Desired, Cluster], Plan]


@dataclass(frozen=True, slots=True)
class Effort:
    """How many plans may be made to verify remedies, and of how many partitions in all; counts, never time."""

    plans: int
    partitions: int


ORDINARY = Effort(plans=10, partitions=10_000)
"""What may be spent unasked: nothing on a cluster of more partitions than that."""
THOROUGH = Effort(plans=40, partitions=200_000)
"""What may be spent where somebody asks for remedies: one plan of a very large cluster, or more of smaller ones."""


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
    for combos in ([(change,) for change in changes], _pairs(changes)):
        fitting = (combo for combo in combos if not conflicting(_applied(thin, combo), only))
        remedies = search.first(fitting, search.fitting)
        if remedies:
            return tuple(remedies)
    return ()


def remedies_of_violations(states: States, plan: Plan, make_plan: MakePlan, effort: Effort) -> tuple[Remedy, ...]:
    """Return up to MOST remedies for limits that a plan goes over: the limits raised, a broker more, fewer replicas.

    None where it deletes too much: whether that is meant is not for a search to say.
    """
    if any(problem.code in DELETIONS for problem in plan.violations):
        return ()
    search = _Search(states, None, make_plan, effort)
    found = search.with_raised_limits(states, plan, ())
    moves = moves_of(plan.stages)
    growing = {move.topic_partition.topic for move in moves if move.reason is Reason.REPLICATION_FACTOR}
    declared = managed_topics(states.desired, states.observed)
    concerned = {name: declared[name] for name in sorted(growing) if name in declared}
    factors = factor_changes(states, concerned) if concerned else ()
    changes = [*broker_changes(states), *factors, *joining_changes(states)]
    found += search.first([(change,) for change in changes], search.passing, MOST - len(found))
    return tuple(found or search.first(_pairs(changes), search.passing))


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


@dataclass(slots=True)
class _Search:
    """Verifies candidates by planning with them, as long as the effort lasts."""

    states: States
    only: Collection[str] | None
    make_plan: MakePlan
    effort: Effort
    thin: States | None = None  # the whole cluster thinned, once it is asked for

    def first(
        self, combos: Iterable[Sequence[Change]], judged: Callable[[Sequence[Change]], Remedy | None], most: int = MOST
    ) -> list[Remedy]:
        """Return the first of these that are judged to be remedies, each of other kinds of change."""
        kinds: set[tuple[str, ...]] = set()
        remedies: list[Remedy] = []
        for combo in combos:
            own = tuple(sorted(change.kind for change in combo))
            remedy = judged(combo) if own not in kinds else None
            if remedy is not None:
                kinds.add(own)
                remedies.append(remedy)
            if len(remedies) == most:
                break
        return remedies

    def passing(self, combo: Sequence[Change]) -> Remedy | None:
        """Return the remedy where a plan with it keeps every limit; None also where no plan may be made any more."""
        plan = self._plan(_applied(self.states, combo))
        return Remedy(_edits(combo)) if plan is not None and not plan.violations else None

    def fitting(self, combo: Sequence[Change]) -> Remedy | None:
        """Return the remedy where a plan fits with it, limits raised as far as it needs; unplanned, where rules fit."""
        if not self._may_plan:
            return None if self._is_conflict(combo) else Remedy(_edits(combo), is_planned=False)
        states = _applied(self.states, combo)
        plan = self._plan(states)
        if plan is None or not plan.violations:
            return Remedy(_edits(combo)) if plan is not None else None
        return next(iter(self.with_raised_limits(states, plan, _edits(combo))), None)

    def with_raised_limits(self, states: States, plan: Plan, edits: tuple[Edit, ...]) -> list[Remedy]:
        """Return the edits with the limits that the plan of these states needs raised, where that is enough.

        The count and the bytes of a plan are what they are. How full disks get is known only when it was staged again:
        the least share that passes is found by halving.
        """
        codes = {problem.code for problem in plan.violations}
        if not codes <= {*LIMITS}:
            return []
        limits, raised = _raised(states, plan, codes)
        if DISK_USE not in codes:
            return [Remedy((*edits, *raised))]
        low, high = _fullest(plan), FULL
        if low > high:
            return []
        known = {percent: self._keeps(states, limits, percent) for percent in (low, high)}
        while high - low > 1 and known[high] and not known[low]:
            middle = (low + high) // 2
            known[middle] = self._keeps(states, limits, middle)
            low, high = (low, middle) if known[middle] else (middle, high)
        enough = [percent for percent, is_kept in sorted(known.items()) if is_kept]
        return [
            Remedy((*edits, *raised, Edit(f"limits.diskUse is {percent}%", limits.at.get("diskUse"))))
            for percent in enough[:1]
        ]

    def _keeps(self, states: States, limits: Limits, percent: int) -> bool:
        """Whether the plan keeps these limits, and that share of the disks."""
        cluster = replace(states.desired.cluster, limits=replace(limits, disk_use=Fraction(percent, 100)))
        plan = self._plan(States(replace(states.desired, cluster=cluster), states.observed))
        return plan is not None and not plan.violations

    def _is_conflict(self, combo: Sequence[Change]) -> bool:
        """Whether the rules of any topic cannot be kept with these changes."""
        if self.thin is None:
            known = {*self.states.observed.topics, *self.states.desired.topics}
            self.thin = thinned(self.states, known if self.only is None else self.only)
        return bool(conflicting(_applied(self.thin, combo), self.only))

    @property
    def _size(self) -> int:
        return sum(len(topic.partitions) for topic in self.states.observed.topics.values())

    @property
    def _may_plan(self) -> bool:
        return self.effort.plans > 0 and self.effort.partitions >= self._size

    def _plan(self, states: States) -> Plan | None:
        """Return the plan of these states; None where there is none, or no effort is left."""
        if not self._may_plan:
            return None
        self.effort = Effort(self.effort.plans - 1, self.effort.partitions - self._size)
        try:
            return self.make_plan(*states)
        except (PlacementInfeasible, InvalidInput):
            return None


def _pairs(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield pairs of the first few changes of each kind, those of early changes first; a change may stand twice."""
    kept: list[Change] = []
    for change in changes:
        if sum(other.kind == change.kind for other in kept) < EACH_KIND:
            kept.append(change)
    pairs = sorted(combinations_with_replacement(range(len(kept)), 2), key=lambda pair: (sum(pair), pair))
    meaningful = [(one, other) for one, other in pairs if one != other or kept[one].kind == JOINING]
    return ((kept[one], kept[other]) for one, other in meaningful[:PAIRS])


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


def _raised(states: States, plan: Plan, codes: Collection[str]) -> tuple[Limits, list[Edit]]:
    """Return the limits of partitions and bytes raised so far that the plan keeps them, and the lines to edit."""
    limits, edits = states.desired.cluster.limits, []
    if CHANGED_PARTITIONS in codes:
        limits, words = _more_partitions(states, plan, limits)
        edits.append(Edit(words, limits.at.get("changedPartitions")))
    if MOVED_BYTES in codes:
        moved, words = _rounded_up(plan.summary.bytes)
        limits = replace(limits, moved_bytes=moved)
        edits.append(Edit(f"limits.movedBytes is {words}", limits.at.get("movedBytes")))
    return limits, edits


def _more_partitions(states: States, plan: Plan, limits: Limits) -> tuple[Limits, str]:
    """Return the limit that lets so many partitions change, as the share or the number that was written."""
    changed = plan.summary.partitions
    if not isinstance(limits.changed_partitions, Fraction):
        return replace(limits, changed_partitions=changed), f"limits.changedPartitions is {changed}"
    percent = ceil(Fraction(100 * changed, sum(len(topic.partitions) for topic in states.observed.topics.values())))
    return replace(limits, changed_partitions=Fraction(percent, 100)), f"limits.changedPartitions is {percent}%"


def _fullest(plan: Plan) -> int:
    """Return how many percent of its disks the fullest broker that receives something uses at the worst moment."""
    receiving = {broker_id for move in moves_of(plan.stages) for broker_id in move.added}
    known = [id_ for id_ in receiving if plan.disk_capacity.get(id_) and id_ in plan.disk_peak]
    return max(ceil(Fraction(100 * plan.disk_peak[id_], plan.disk_capacity[id_])) for id_ in known)


def _rounded_up(count: int) -> tuple[int, str]:
    """Return a whole number of the largest unit that rounds up by a tenth at most, and how it is written."""
    for name, unit in UNITS:
        whole = -(-count // unit)
        if (whole * unit - count) * 10 <= count:
            return whole * unit, f"{whole}{name}"
    return count, f"{count}B"
