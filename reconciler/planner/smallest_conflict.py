"""Searches for the smallest set of rules that leaves a partition no place, and for the single changes that do.

Subsets of its rules are tried, the smallest first: five are about brokers and five about placement at the most. Then as
few brokers are kept in each as still conflict. Brokers of one rack are alike to the rules, so counts by rack decide.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from reconciler.diff.rules import NO_RACK, with_racks
from reconciler.model.cluster import Cluster
from reconciler.model.in_sync import MIN_ISR, whole_number
from reconciler.model.problem import Location
from reconciler.model.words import in_brackets, labelled
from reconciler.planner.to_place import PartitionToPlace


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule in words; `bars` are the brokers that it keeps out, `is_strict` is a demand on the whole set.

    If `is_leaving`, the rack of a barred broker does not count for the strict rule. `state` is that of the barred
    brokers, if they are kept out for their state; `cure` is the change of any other rule.
    """

    words: str
    bars: frozenset[int] = frozenset()
    cure: str = ""
    is_strict: bool = False
    is_leaving: bool = False
    state: "BrokersInState | None" = None


@dataclass(frozen=True, slots=True)
class BrokersInState:
    """Brokers [ids, sorted] in one state, with the line of each where it was written.

    `word` is the state in words. `cure` takes the brokers in words, and `it` or `them`.
    """

    at: Mapping[int, Location | None]
    word: str
    cure: str
    is_leaving: bool = False

    def rule(self, broker_ids: Collection[int]) -> Rule:
        """Return what is said of these brokers."""
        words = self._words({b: self.at[b] for b in sorted(broker_ids)}) if broker_ids else ""
        return Rule(words, frozenset(broker_ids), is_leaving=self.is_leaving, state=self)

    def _words(self, places: Mapping[int, Location | None]) -> str:
        first, *others = dict.fromkeys(places.values())
        if not others:
            return f"{labelled('broker', places)} {'is' if len(places) == 1 else 'are'} {self.word}{in_brackets(first)}"
        return (
            f"brokers {', '.join(f'{broker_id}{in_brackets(at)}' for broker_id, at in places.items())} are {self.word}"
        )


@dataclass(frozen=True, slots=True)
class Dispute:
    """A partition and all rules that bind it."""

    observed: Cluster
    partition: PartitionToPlace
    rules: Sequence[Rule]

    def smallest_conflict(self) -> Sequence[Rule]:
        """Return the fewest rules that cannot hold together, each of as few brokers as are needed for that.

        Of equally few, those come first that conflict with the racks that count beside all other rules. A rack stops to
        count for the strict rule only if the rule that makes its brokers leave is among them.
        """
        causes: list[Rule] = []
        for size in range(len(self.rules) + 1):
            conflicts = [chosen for chosen in combinations(self.rules, size) if not self.can_place(chosen)]
            lasting = (chosen for chosen in conflicts if not self.can_place(chosen, leaving=self.rules))
            if conflicts:
                causes = [*next(lasting, conflicts[0])]
                break
        for place, cause in enumerate(causes):
            if cause.state is not None:
                causes[place] = self._of_fewest(cause.state, [*causes[:place], *causes[place + 1 :]])
        return causes

    def needs_factor(self, causes: Sequence[Rule]) -> bool:
        """Whether the number of replicas has a part in the conflict: one replica would find its place."""
        is_given = self.partition.rules.rack_replicas is not None or bool(self.partition.fixed)
        return is_given or (self.partition.need > 1 and self.can_place(causes, need=1))

    def allows_lower_factor(self) -> bool:
        """Whether a lower factor, not below a declared min ISR, is enough by itself."""
        partition = self.partition
        declared, lowest = partition.rules.declared, 1
        if partition.rules.rack_replicas is not None:
            return False
        if declared is not None:
            lowest = max(1, whole_number(declared.config.get(MIN_ISR)) or 1)
        needs = range(max(lowest - len(partition.fixed), 0), partition.need)
        return any(self.can_place(self.rules, need=need) for need in needs)

    def cures(self, cause: Rule) -> Iterator[str]:
        """Yield the change of that cause which is enough by itself, with all rules in force, if there is one."""
        rules = self.partition.rules
        if cause.state is not None:
            yield from self._cures_of_state(cause, cause.state)
        elif cause.is_strict and rules.rack_replicas is not None:
            single = (replace(rules, rack_replicas=((rack, 1),)) for rack, _ in rules.rack_replicas)
            partitions = (replace(self.partition, need=1, rules=each) for each in single)
            if any(replace(self, partition=each).can_place(self.rules) for each in partitions):
                yield cause.cure
        elif self.can_place([rule for rule in self.rules if rule is not cause]):
            yield cause.cure

    def _cures_of_state(self, cause: Rule, state: BrokersInState) -> Iterator[str]:
        """Yield which brokers have to leave that state, if that is enough: rather those that the cause names."""
        beside = [rule for rule in self.rules if rule.state is not state]

        def is_enough(broker_ids: Collection[int]) -> bool:
            return self.can_place([*beside, state.rule(state.at.keys() - {*broker_ids})])

        useful = sorted(self._open_but_for(state, beside), key=lambda b: (b not in cause.bars, b))
        if not is_enough(useful):
            return
        groups = sorted(self._by_rack(useful), key=lambda group: (not cause.bars.isdisjoint(group), -group[0]))
        chosen, causing = _fewest(groups, is_enough), sorted(cause.bars)
        may_be_any = cause.bars.issubset(useful) and len(chosen) == 1 < len(causing)
        is_any = may_be_any and all(is_enough(group[:1]) for group in self._by_rack(causing))
        words = "one of them" if is_any else labelled("broker", chosen)
        yield state.cure.format(words, "it" if len(chosen) == 1 else "them")

    def _of_fewest(self, state: BrokersInState, beside: Sequence[Rule]) -> Rule:
        """Return the rule of as few brokers in that state as conflict with the other causes."""

        def is_conflict(broker_ids: Collection[int]) -> bool:
            return not self.can_place([*beside, state.rule(broker_ids)])

        causing = self._open_but_for(state, beside)
        groups = self._by_rack(causing if is_conflict(causing) else [b for b in state.at if b in self.observed.brokers])
        # If either of two racks is enough for the conflict, the one with fewer brokers is named, or the first broker's.
        return state.rule(_fewest(sorted(groups, key=lambda group: (-len(group), -group[0])), is_conflict))

    def _open_but_for(self, state: BrokersInState, beside: Sequence[Rule]) -> list[int]:
        """Return the brokers that nothing but this state keeps from taking a replica."""
        barred = _barred(beside) - self._must_leave(state.at)
        known = (broker_id for broker_id in state.at if broker_id in self.observed.brokers)
        return [broker_id for broker_id in known if broker_id not in barred and broker_id not in self.partition.fixed]

    def _by_rack(self, broker_ids: Iterable[int]) -> list[list[int]]:
        """Return these brokers by rack. Those in one rack are alike to the rules: any of them stand for the others."""
        groups: dict[object, list[int]] = {}
        leaving = self._must_leave(broker_ids)
        for broker_id in broker_ids:
            groups.setdefault((self.observed.brokers[broker_id].rack, broker_id in leaving), []).append(broker_id)
        return [*groups.values()]

    def _must_leave(self, broker_ids: Iterable[int]) -> frozenset[int]:
        """Return on which of these brokers a topic that no file declares is; it moves only if one of them leaves."""
        replicas = self.partition.replicas if self.partition.rules.declared is None else ()
        return frozenset(replicas).intersection(broker_ids)

    def can_place(
        self, rules: Sequence[Rule], *, leaving: Sequence[Rule] | None = None, need: int | None = None
    ) -> bool:
        """Whether enough brokers remain, in the racks that the rules want, when just these rules hold.

        `leaving` are the rules that say which racks count, by default the same. `need` is the number of replicas to be
        found, by default the partition's own.
        """
        need = self.partition.need if need is None else need
        is_leaving = any(rule.is_leaving and self._must_leave(rule.bars) for rule in rules)
        if need == 0 or (self.partition.rules.declared is None and not is_leaving):
            return True
        open_ids = self.observed.brokers.keys() - _barred(rules) - {*self.partition.fixed}
        room = Counter(self.observed.brokers[broker_id].rack or NO_RACK for broker_id in open_ids)
        if room.total() < need or not any(rule.is_strict for rule in rules):
            return room.total() >= need
        bounds = self._rack_bounds(rules if leaving is None else leaving, room, need)
        return all(room[rack] >= low for rack, (low, _) in bounds.items()) and (
            sum(min(bounds[rack][1], count) for rack, count in room.items()) >= need
        )

    def _rack_bounds(self, leaving: Sequence[Rule], room: Iterable[str], need: int) -> Mapping[str, tuple[int, int]]:
        """Return the fewest and most replicas of each rack, those counted whose brokers do not leave."""
        gone = _barred([rule for rule in leaving if rule.is_leaving])
        names = {one.rack or NO_RACK for broker_id, one in self.observed.brokers.items() if broker_id not in gone}
        rules = with_racks(self.partition.rules, names)
        racks = {*rules.racks, *dict(rules.rack_replicas or ()), *room}
        bounds = {rack: rules.rack_bounds(need, rack) for rack in racks}
        if rules.rack_replicas is None and rules.has_rackless:
            bounds = {rack: (0, high) for rack, (_, high) in bounds.items()}
            bounds[NO_RACK] = 0, max(rules.rack_bounds(need)[1], replicas_in_no_rack(self.partition))
        return bounds


def replicas_in_no_rack(partition: PartitionToPlace) -> int:
    """Return how many replicas of the partition are in no rack."""
    return sum(partition.rules.rack_of.get(replica, NO_RACK) == NO_RACK for replica in partition.replicas)


def _barred(rules: Iterable[Rule]) -> frozenset[int]:
    return frozenset[int]().union(*(rule.bars for rule in rules))


def _fewest(groups: Sequence[Sequence[int]], is_enough: Callable[[Collection[int]], bool]) -> list[int]:
    """Return as many first brokers of each group as are needed, so that none can be left out; all are enough."""
    counts = [len(group) for group in groups]

    def first(place: int, count: int) -> list[int]:
        chosen = [*counts[:place], count, *counts[place + 1 :]]
        return [b for group, number in zip(groups, chosen, strict=True) for b in group[:number]]

    last_counts: list[int] = []
    # A rack that stops to count may loosen the rule, so one round does not always do.
    while counts != last_counts:
        last_counts = [*counts]
        for place in range(len(groups)):
            short = -1
            while counts[place] - short > 1:
                middle = (counts[place] + short) // 2
                if is_enough(first(place, middle)):
                    counts[place] = middle
                else:
                    short = middle
    return sorted(first(0, counts[0])) if groups else []
