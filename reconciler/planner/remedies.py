"""Searches for the smallest change of the desired state that lets a refused plan fit: single changes, then pairs.

Each remedy that is told was planned with, or says that it was not.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil
from typing import Any

from reconciler.diff.compare import compare
from reconciler.diff.managed import managed_topics
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired
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
    Part,
    States,
    broker_changes,
    changes_for,
    factor_changes,
    grouped,
    joining_changes,
    loses_racks,
    made,
    of_topics,
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

    No part of a remedy can be left out, and none leaves a partition in fewer racks than it has to. What a limit then
    forbids is raised with it. A remedy that the effort leaves no plan for is checked against every rule on the whole
    cluster, and says that it was not planned.
    """
    topics = conflicting(states, only)
    if not topics:
        return ()
    changes = changes_for(states, sorted(topics))
    search = _Search(states, only, make_plan, effort, of_topics(states, topics), thinned(states, topics))
    for combos in (((change,) for change in changes), _pairs(changes)):
        remedies = search.first(_parts_of(combos), search.fitting)
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
    raised = search.with_raised_limits(states, plan)
    found = [Remedy(_edits(search.smallest(raised)))] if raised else []
    moves = moves_of(plan.stages)
    growing = {move.topic_partition.topic for move in moves if move.reason is Reason.REPLICATION_FACTOR}
    declared = managed_topics(states.desired, states.observed)
    concerned = {name: declared[name] for name in sorted(growing) if name in declared}
    factors = factor_changes(states, concerned) if concerned else ()
    changes = [*broker_changes(states), *factors, *joining_changes(states)]
    found += search.first(_parts_of((change,) for change in changes), search.passing, MOST - len(found))
    return tuple(found or search.first(_parts_of(_pairs(changes)), search.passing))


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


Parts = tuple[Part, ...]


@dataclass(slots=True)
class _Search:
    """Verifies candidates by planning with them, as long as the effort lasts.

    `concerned` are the states with the topics in conflict alone, and `thin` one of each kind of these.
    """

    states: States
    only: Collection[str] | None
    make_plan: MakePlan
    effort: Effort
    concerned: States | None = None
    thin: States | None = None
    whole: States | None = None  # the whole cluster thinned, once it is asked for
    plans: dict[Parts, Plan | None] = field(default_factory=dict)

    def first(
        self, candidates: Iterable[Parts], judged: Callable[[Parts], tuple[Parts, bool] | None], limit: int = MOST
    ) -> list[Remedy]:
        """Return the first of these that are judged to be remedies, each of other kinds of change.

        `judged` returns the parts that are needed, and whether a plan was made with them.
        """
        kinds: set[tuple[str, ...]] = set()
        remedies: list[Remedy] = []
        for parts in candidates:
            if len(remedies) == limit:
                break
            needed, is_planned = (judged(parts) if _kinds(parts) not in kinds else None) or ((), False)
            if needed and _kinds(needed) not in kinds:
                remedies.append(Remedy(_edits(needed), is_planned))
            kinds.update({_kinds(parts), _kinds(needed)} if needed else ())
        return remedies

    def keeps_rules(self, parts: Parts) -> bool:
        """Whether all topics that were in conflict find their places with these changes, in as many racks as now."""
        if self.thin is None:
            return True
        changed = made(self.thin, parts)
        return not conflicting(changed, self.only) and not loses_racks(self.thin, changed)

    def passing(self, parts: Parts) -> tuple[Parts, bool] | None:
        """Return the parts where a plan with them keeps every limit; None also where no plan may be made any more."""
        return (self.smallest(parts), True) if self._is_enough(parts) else None

    def fitting(self, parts: Parts) -> tuple[Parts, bool] | None:
        """Return the parts where a plan fits with them, limits raised as far as it needs, or, unplanned, the rules."""
        if not self.keeps_rules(parts):
            return None
        if not self._may_plan:
            return None if self._is_conflict(parts) else (self.smallest(parts, is_planned=False), False)
        plan = self._planned(parts)
        raised = self.with_raised_limits(made(self.states, parts), plan) if plan is not None and plan.violations else ()
        if plan is None or (plan.violations and not raised) or self._loses_racks(parts, plan):
            return None
        return self.smallest((*parts, *raised)), True

    def smallest(self, parts: Parts, *, is_planned: bool = True) -> Parts:
        """Return the parts without those that can be left out, tried one by one, and for no topic without need."""
        groups = grouped(parts)
        for place, group in enumerate(groups):
            needed = self._in_conflict(_joined([*groups[:place], *groups[place + 1 :]]))
            narrowed = (replace(part, topics=tuple(t for t in part.topics if t in needed)) for part in group)
            fewer = [*groups[:place], tuple(part for part in narrowed if part.topics), *groups[place + 1 :]]
            if any(fewer) and fewer != groups and self._is_enough(_joined(fewer), is_planned=is_planned):
                groups = fewer
        return _joined(groups)

    def with_raised_limits(self, states: States, plan: Plan) -> Parts:
        """Return the limits to raise so far as the plan of these states needs; none where that is not enough.

        The count and the bytes of a plan are what they are. How full disks get is known only when it was staged again:
        the least share that passes is found by halving.
        """
        codes = {problem.code for problem in plan.violations}
        if not codes <= {*LIMITS}:
            return ()
        raised = tuple(_raised(states, plan, codes))
        if DISK_USE not in codes:
            return raised
        low, high = _fullest(plan), FULL
        if low > high:
            return ()
        known = {percent: self._keeps(states, raised, percent) for percent in (low, high)}
        while high - low > 1 and known[high] and not known[low]:
            middle = (low + high) // 2
            known[middle] = self._keeps(states, raised, middle)
            low, high = (low, middle) if known[middle] else (middle, high)
        enough = [percent for percent, is_kept in sorted(known.items()) if is_kept]
        return (*raised, _disk_use(states, enough[0])) if enough else ()

    def _keeps(self, states: States, raised: Parts, percent: int) -> bool:
        """Whether the plan keeps these limits, and that share of the disks."""
        plan = self._plan(made(states, (*raised, _disk_use(states, percent))))
        return plan is not None and not plan.violations

    def _loses_racks(self, parts: Parts, plan: Plan | None = None) -> bool:
        """Whether a partition of a topic in conflict ends in fewer racks by that plan, or has to without one."""
        return self.concerned is not None and loses_racks(self.concerned, made(self.concerned, parts), plan)

    def _in_conflict(self, parts: Parts) -> frozenset[str]:
        """Return the topics that are still in conflict with these changes."""
        return frozenset() if self.concerned is None else conflicting(made(self.concerned, parts), self.only)

    def _is_enough(self, parts: Parts, *, is_planned: bool = True) -> bool:
        """Whether a plan with these changes keeps rules, racks and limits; unplanned, where none is made, the rules."""
        if not self.keeps_rules(parts):
            return False
        plan = self._planned(parts)
        if parts in self.plans:
            return plan is not None and not plan.violations and not self._loses_racks(parts, plan)
        return not is_planned and not self._is_conflict(parts)

    def _is_conflict(self, parts: Parts) -> bool:
        """Whether the rules of any topic cannot be kept with these changes."""
        if self.whole is None:
            known = {*self.states.observed.topics, *self.states.desired.topics}
            self.whole = thinned(self.states, known if self.only is None else self.only)
        return bool(conflicting(made(self.whole, parts), self.only))

    @property
    def _size(self) -> int:
        return sum(len(topic.partitions) for topic in self.states.observed.topics.values())

    @property
    def _may_plan(self) -> bool:
        return self.effort.plans > 0 and self.effort.partitions >= self._size

    def _planned(self, parts: Parts) -> Plan | None:
        """Return the plan with these changes, made once; None where there is none, or no effort is left."""
        if parts not in self.plans and self._may_plan:
            self.plans[parts] = self._plan(made(self.states, parts))
        return self.plans.get(parts)

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


def _parts_of(combos: Iterable[Sequence[Change]]) -> Iterator[Parts]:
    return (tuple(part for change in combo for part in change.parts) for combo in combos)


def _joined(groups: Iterable[Parts]) -> Parts:
    return tuple(part for group in groups for part in group)


def _kinds(parts: Parts) -> tuple[str, ...]:
    return tuple(sorted({part.kind for part in parts}))


def _edits(parts: Parts) -> tuple[Edit, ...]:
    """Return the edits; the same one twice is one that says so."""
    count = Counter(part.edit for part in parts)
    return tuple(Edit(edit.words.replace(*TWICE), edit.at) if count[edit] > 1 else edit for edit in count)


def _raised(states: States, plan: Plan, codes: Collection[str]) -> Iterator[Part]:
    """Yield the limits of partitions and bytes raised so far that the plan keeps them."""
    if CHANGED_PARTITIONS in codes:
        yield _more_partitions(states, plan)
    if MOVED_BYTES in codes:
        moved, words = _rounded_up(plan.summary.bytes)
        yield _limit(states, "movedBytes", words, moved_bytes=moved)


def _more_partitions(states: States, plan: Plan) -> Part:
    """Return the limit that lets so many partitions change, as the share or the number that was written."""
    changed = plan.summary.partitions
    if not isinstance(states.desired.cluster.limits.changed_partitions, Fraction):
        return _limit(states, "changedPartitions", str(changed), changed_partitions=changed)
    percent = ceil(Fraction(100 * changed, sum(len(topic.partitions) for topic in states.observed.topics.values())))
    return _limit(states, "changedPartitions", f"{percent}%", changed_partitions=Fraction(percent, 100))


def _disk_use(states: States, percent: int) -> Part:
    return _limit(states, "diskUse", f"{percent}%", disk_use=Fraction(percent, 100))


def _limit(states: States, name: str, text: str, **limit: int | Fraction) -> Part:
    """Return the part that sets one limit."""

    def make(states: States, _: Collection[str]) -> States:
        cluster: Any = states.desired.cluster
        limits = replace(cluster.limits, **limit)
        return States(replace(states.desired, cluster=replace(cluster, limits=limits)), states.observed)

    return Part(f"limits.{name}", f"limits.{name} is {text}", states.desired.cluster.limits.at.get(name), make)


def _fullest(plan: Plan) -> int:
    """Return how many percent of its disks the fullest broker that receives something uses at the worst moment.

    If none receives anything, disks are too full that may not be relieved: of one, then, that is so now.
    """
    receiving = {broker_id for move in moves_of(plan.stages) for broker_id in move.added}
    known = [id_ for id_ in plan.disk_peak if plan.disk_capacity.get(id_)]
    used = {id_: ceil(Fraction(100 * plan.disk_peak[id_], plan.disk_capacity[id_])) for id_ in known}
    return max((used[id_] for id_ in known if id_ in receiving), default=max(used.values(), default=FULL + 1))


def _rounded_up(count: int) -> tuple[int, str]:
    """Return a whole number of the largest unit that rounds up by a tenth at most, and how it is written."""
    for name, unit in UNITS:
        whole = -(-count // unit)
        if (whole * unit - count) * 10 <= count:
            return whole * unit, f"{whole}{name}"
    return count, f"{count}B"
