"""Explains why a partition cannot be placed: the smallest set of rules that cannot hold together, with their lines.

Subsets of its rules are tried, the smallest first: five are about brokers and five about placement at the most.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations

from reconciler.diff.broken import by_rack
from reconciler.diff.rules import NO_RACK, TopicRules, cordoned_by_kafka, with_racks
from reconciler.model.change import BrokenRule
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Spread
from reconciler.model.in_sync import MIN_ISR, whole_number
from reconciler.model.problem import Location, Problem
from reconciler.model.words import MANY, in_brackets, labelled, named_some
from reconciler.planner.to_place import PartitionsToPlace, PartitionToPlace

TAKING = frozenset({BrokerState.ACTIVE, BrokerState.MAINTENANCE})


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule in words; `bars` are the brokers that it keeps out, `is_strict` is a demand on the whole set.

    If `is_leaving`, the rack of a barred broker does not count for the strict rule. `state` is that of the barred
    brokers, if they are kept out for their state; `cure` is the change of any other rule.
    """

    words: str
    bars: frozenset[int] = frozenset()
    cure: str = ""
    is_strict: bool = False
    is_leaving: bool = False
    state: "_State | None" = None


@dataclass(frozen=True, slots=True)
class _State:
    """Brokers [ids, sorted] in one state, with the line of each where it was written.

    `word` is the state in words. `cure` takes the brokers in words, and `it` or `them`.
    """

    at: Mapping[int, Location | None]
    word: str
    cure: str
    is_leaving: bool = False

    def rule(self, broker_ids: Collection[int]) -> _Rule:
        """Return what is said of these brokers."""
        words = self._words({b: self.at[b] for b in sorted(broker_ids)}) if broker_ids else ""
        return _Rule(words, frozenset(broker_ids), is_leaving=self.is_leaving, state=self)

    def _words(self, places: Mapping[int, Location | None]) -> str:
        first, *others = dict.fromkeys(places.values())
        if not others:
            return f"{_listed(places)} {'is' if len(places) == 1 else 'are'} {self.word}{in_brackets(first)}"
        return (
            f"brokers {', '.join(f'{broker_id}{in_brackets(at)}' for broker_id, at in places.items())} are {self.word}"
        )


def placement_conflicts(desired: Desired, observed: Cluster, partitions: PartitionsToPlace) -> Iterator[Problem]:
    """Yield a problem for each topic whose partitions cannot all be placed, naming the first such partition.

    Topics that the same lines put into the same conflict share one problem.
    """
    alike: dict[tuple[str, str, Location | None], list[PartitionToPlace]] = {}
    for partition in unplaceable(desired, observed, partitions):
        unknown = _unknown_rack(observed, partition.rules)
        for why in [unknown] if unknown else [("KR301", *each) for each in _explained(desired, observed, partition)]:
            alike.setdefault(why, []).append(partition)
    for (code, words, at), found in alike.items():
        others = [partition.topic_partition.topic for partition in found[1:]]
        also = f" The same holds for {named_some(others, MANY)}." if others else ""
        message = f"{found[0].topic_partition} cannot be placed: {words}{also}"
        declared = found[0].rules.declared
        places = [*(declared.at.values() if declared else ()), *(one.at for one in desired.cluster.brokers.values())]
        yield Problem(code, message, at, beside=_named(message, places))


def _unknown_rack(observed: Cluster, rules: TopicRules) -> tuple[str, str, Location | None] | None:
    """Return the code, the words and the place of a rack that is to hold replicas and that no broker is in."""
    known = sorted({broker.rack or NO_RACK for broker in observed.brokers.values()})
    unknown = next((rack for rack, _ in rules.rack_replicas or () if rack not in known), None)
    if unknown is None or rules.declared is None:
        return None
    near = get_close_matches(unknown, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(filter(None, known)) or 'no racks'}."
    at = rules.declared.where(f"placement.racks.replicas.{unknown}")
    return "KR360", f"racks.replicas names rack {unknown}{in_brackets(at)}, and no broker is in it: {hint}", at


def unplaceable(desired: Desired, observed: Cluster, partitions: PartitionsToPlace) -> Iterator[PartitionToPlace]:
    """Yield, of each topic whose partitions cannot all be placed, the first that cannot."""
    told: set[str] = set()
    known: dict[object, bool] = {}
    for partition in partitions.unlike():
        name = partition.topic_partition.topic
        if name in told:
            continue
        kept = (partition.rules.keepable - partition.rules.receivable).intersection(partition.replicas)
        nowhere = _in_no_rack(partition) if partition.rules.has_rackless else 0
        # Topics with the same placement share the set of brokers itself.
        key = (id(partition.rules.receivable), partition.need, partition.fixed, partition.is_new, kept, nowhere)
        if key not in known:
            rules, is_assigned = _rules(desired, observed, partition), bool(partition.fixed and partition.need == 0)
            known[key] = (
                not _wrong_fixed(observed, partition, rules) if is_assigned else _can_place(observed, partition, rules)
            )
        if not known[key]:
            told.add(name)
            yield partition


def frozen_conflicts(rules: Mapping[str, TopicRules], broken: Iterable[BrokenRule]) -> Iterator[Problem]:
    """Yield a problem for each topic that must not move, but has to."""
    told: set[str] = set()
    for finding in broken:
        rule = rules[finding.topic_partition.topic]
        if rule.is_frozen and rule.declared is not None and rule.topic not in told:
            told.add(rule.topic)
            protect = rule.declared.where("protect")
            message = (
                f"{finding.topic_partition} may not move: protect names move{in_brackets(protect)}, but "
                f"{finding.detail}{in_brackets(finding.at)}. Drop one of the two."
            )
            yield Problem("KR302", message, protect, beside=_named(message, (protect, finding.at)))


def _explained(
    desired: Desired, observed: Cluster, partition: PartitionToPlace
) -> Sequence[tuple[str, Location | None]]:
    """Return smallest conflicts in words, each with the line to look at first: one, or each of an assignment."""
    declared = partition.rules.declared
    rules = _rules(desired, observed, partition)
    if partition.fixed and partition.need == 0 and declared is not None:
        at = declared.where("placement.assignment")
        names = f"assignment names {_listed(partition.fixed)}{in_brackets(at)}"
        return [
            (f"{names}, but {cause.words}. Change one of them.", at)
            for cause in _wrong_fixed(observed, partition, rules)
        ]
    at = declared.where("replicationFactor") if declared else None
    start = declared.where("") if declared else None
    causes = _only_needed(observed, partition, _smallest(observed, partition, rules))
    words = ", ".join(cause.words for cause in causes) or f"only {len(observed.brokers)} brokers are registered"
    cures = (
        [cure for cause in causes for cure in _cures(observed, partition, cause, rules)] if causes else ["add brokers"]
    )
    if not _is_factor_needed(observed, partition, causes):
        return [(f"no broker may hold it: {words}. {_sentence(cures)}", start)]
    wanted = len(partition.fixed) + partition.need
    factor = f"replicationFactor is {wanted}{in_brackets(at)}" if at else f"it has {wanted} replicas"
    lower = ["lower replicationFactor" if declared else "declare it with a lower replicationFactor"]
    lower = lower if _may_be_lower(observed, partition, rules) else []
    return [(f"{factor}, {words}. {_sentence([*lower, *cures])}", at or start)]


def _sentence(cures: Sequence[str]) -> str:
    text = "; or ".join(cures) or "no single change is enough"
    return f"{text[0].upper()}{text[1:]}."


def _smallest(observed: Cluster, partition: PartitionToPlace, rules: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the fewest of the rules that cannot hold together, rather some that conflict beside all others too.

    A rack stops to count for the strict rule only if the rule that makes its brokers leave is among them.
    """
    for size in range(len(rules) + 1):
        found = [chosen for chosen in combinations(rules, size) if not _can_place(observed, partition, chosen)]
        lasting = (chosen for chosen in found if not _can_place(observed, partition, chosen, leaving=rules))
        if found:
            return next(lasting, found[0])
    return ()


def _is_factor_needed(observed: Cluster, partition: PartitionToPlace, causes: Sequence[_Rule]) -> bool:
    """Whether the number of replicas has a part in the conflict: one replica would find its place."""
    is_given = partition.rules.rack_replicas is not None or bool(partition.fixed)
    return is_given or (partition.need > 1 and _can_place(observed, replace(partition, need=1), causes))


def _may_be_lower(observed: Cluster, partition: PartitionToPlace, rules: Sequence[_Rule]) -> bool:
    """Whether a lower factor alone lets all replicas find a place, none of them below a min ISR that is declared."""
    if partition.rules.rack_replicas is not None:
        return False
    declared, fixed = partition.rules.declared, len(partition.fixed)
    lowest = max(1, whole_number(declared.config.get(MIN_ISR)) or 1 if declared else 1) - fixed
    return any(_can_place(observed, replace(partition, need=n), rules) for n in range(max(lowest, 0), partition.need))


def _cures(observed: Cluster, partition: PartitionToPlace, cause: _Rule, rules: Sequence[_Rule]) -> Iterator[str]:
    """Yield the change of that cause which is enough by itself, with all rules in force, if there is one."""
    others = [rule for rule in rules if rule is not cause and (rule.state is None or rule.state is not cause.state)]
    if cause.state is not None:
        yield from _cures_of_state(observed, partition, cause, cause.state, others)
    elif cause.is_strict and partition.rules.rack_replicas is not None:
        racks = (replace(partition.rules, rack_replicas=((rack, 1),)) for rack, _ in partition.rules.rack_replicas)
        if any(_can_place(observed, replace(partition, need=1, rules=each), rules) for each in racks):
            yield cause.cure
    elif _can_place(observed, partition, others):
        yield cause.cure


def _cures_of_state(
    observed: Cluster, partition: PartitionToPlace, cause: _Rule, state: _State, others: Sequence[_Rule]
) -> Iterator[str]:
    """Yield which brokers have to leave that state, if that is enough: rather those that the cause names."""

    def is_enough(broker_ids: Collection[int]) -> bool:
        return _can_place(observed, partition, [*others, state.rule(state.at.keys() - {*broker_ids})])

    barred = frozenset[int]().union(*(other.bars for other in others)) - _leaving(partition, state.at)
    useful = sorted(state.at.keys() - barred - {*partition.fixed}, key=lambda b: (b not in cause.bars, b))
    if not is_enough(useful):
        return
    groups = _by_rack(observed, partition, useful)
    groups.sort(key=lambda group: (not cause.bars.isdisjoint(group), -group[0]))
    chosen, named = _fewest(groups, is_enough), sorted(cause.bars)
    is_useful = cause.bars.issubset(useful) and len(chosen) == 1 < len(named)
    is_any = is_useful and all(is_enough(group[:1]) for group in _by_rack(observed, partition, named))
    words = "one of them" if is_any else _listed(chosen)
    yield state.cure.format(words, "it" if len(chosen) == 1 else "them")


def _only_needed(observed: Cluster, partition: PartitionToPlace, causes: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the causes without the brokers that have no part in the conflict: fewer would not conflict."""
    needed = list(causes)
    for place, cause in enumerate(causes):
        if cause.state is not None:
            others = [*needed[:place], *needed[place + 1 :]]
            needed[place] = _of_needed(observed, partition, cause.state, others)
    return needed


def _of_needed(observed: Cluster, partition: PartitionToPlace, state: _State, others: Sequence[_Rule]) -> _Rule:
    """Return the rule of as few brokers in that state as conflict with the other causes."""

    def is_conflict(broker_ids: Collection[int]) -> bool:
        return not _can_place(observed, partition, [*others, state.rule(broker_ids)])

    barred = frozenset[int]().union(*(other.bars for other in others)) - _leaving(partition, state.at)
    own = [b for b in state.at if b in observed.brokers and b not in barred and b not in partition.fixed]
    groups = _by_rack(observed, partition, own if is_conflict(own) else [b for b in state.at if b in observed.brokers])
    # If either of two racks is enough for the conflict, the one with fewer brokers is named, or the first broker's.
    groups.sort(key=lambda group: (-len(group), -group[0]))
    return state.rule(_fewest(groups, is_conflict))


def _by_rack(observed: Cluster, partition: PartitionToPlace, broker_ids: Iterable[int]) -> list[list[int]]:
    """Return these brokers by rack; those in one rack are alike to the rules, so any of them stand for the others."""
    groups: dict[object, list[int]] = {}
    leaving = _leaving(partition, broker_ids)
    for broker_id in broker_ids:
        broker = observed.brokers.get(broker_id)
        groups.setdefault((broker and broker.rack, broker_id in leaving), []).append(broker_id)
    return [*groups.values()]


def _leaving(partition: PartitionToPlace, broker_ids: Iterable[int]) -> frozenset[int]:
    """Return on which of these brokers a topic that no file declares has replicas; it moves only if one is to leave."""
    return frozenset(partition.replicas).intersection(broker_ids if partition.rules.declared is None else ())


def _fewest(groups: Sequence[Sequence[int]], is_enough: Callable[[Collection[int]], bool]) -> list[int]:
    """Return as many first brokers of each group as are needed, so that none can be left out; all are enough."""
    counts = [len(group) for group in groups]

    def first(place: int, count: int) -> list[int]:
        chosen = [*counts[:place], count, *counts[place + 1 :]]
        return [b for group, number in zip(groups, chosen, strict=True) for b in group[:number]]

    before: list[int] = []
    # A rack that stops to count may loosen the rule, so one round does not always do.
    while counts != before:
        before = [*counts]
        for place in range(len(groups)):
            short = -1
            while counts[place] - short > 1:
                middle = (counts[place] + short) // 2
                if is_enough(first(place, middle)):
                    counts[place] = middle
                else:
                    short = middle
    return sorted(first(0, counts[0])) if groups else []


def _can_place(
    observed: Cluster, partition: PartitionToPlace, rules: Sequence[_Rule], leaving: Sequence[_Rule] | None = None
) -> bool:
    """Whether enough brokers remain, in the racks that the rules want, when just these rules hold.

    `leaving` are the rules that say which racks count, by default the same.
    """
    is_still = partition.rules.declared is None and not any(
        rule.is_leaving and _leaving(partition, rule.bars) for rule in rules
    )
    if partition.need == 0 or is_still:
        return True
    barred = frozenset[int]().union(*(rule.bars for rule in rules))
    open_ids = observed.brokers.keys() - barred - {*partition.fixed}
    room = Counter(observed.brokers[broker_id].rack or NO_RACK for broker_id in open_ids)
    if room.total() < partition.need:
        return False
    if not any(rule.is_strict for rule in rules):
        return True
    bounds = _rack_bounds(observed, partition, rules if leaving is None else leaving, room)
    return all(room[rack] >= low for rack, (low, _) in bounds.items()) and (
        sum(min(bounds[rack][1], count) for rack, count in room.items()) >= partition.need
    )


def _rack_bounds(
    observed: Cluster, partition: PartitionToPlace, leaving: Sequence[_Rule], room: Iterable[str]
) -> Mapping[str, tuple[int, int]]:
    """Return the fewest and most replicas of each rack, those counted whose brokers do not leave."""
    gone = frozenset[int]().union(*(rule.bars for rule in leaving if rule.is_leaving))
    names = {broker.rack or NO_RACK for broker_id, broker in observed.brokers.items() if broker_id not in gone}
    rules = with_racks(partition.rules, names)
    racks = {*rules.racks, *dict(rules.rack_replicas or ()), *room}
    bounds = {rack: rules.rack_bounds(partition.need, rack) for rack in racks}
    if rules.rack_replicas is None and rules.has_rackless:
        bounds = {rack: (0, high) for rack, (_, high) in bounds.items()}
        bounds[NO_RACK] = 0, max(rules.rack_bounds(partition.need)[1], _in_no_rack(partition))
    return bounds


def _in_no_rack(partition: PartitionToPlace) -> int:
    """Return how many replicas of the partition are in no rack."""
    return sum(partition.rules.rack_of.get(replica, NO_RACK) == NO_RACK for replica in partition.replicas)


def _wrong_fixed(observed: Cluster, partition: PartitionToPlace, rules: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the rules that an explicit assignment breaks, each broker in a state by itself."""
    wrong: list[_Rule] = []
    for rule in rules:
        barred = [replica for replica in partition.fixed if replica in rule.bars]
        wrong += [rule.state.rule([each]) for each in sorted(barred)] if rule.state else [rule][: len(barred)]
    # With racks that do not count, because all their brokers leave, what is on these brokers is the conflict.
    every = with_racks(partition.rules, {broker.rack or NO_RACK for broker in observed.brokers.values()})
    is_crowded = all(each.rack_excess(partition.fixed) for each in (partition.rules, every))
    if partition.rules.spread is Spread.STRICT and is_crowded:
        wrong += [rule for rule in rules if rule.is_strict]
    return wrong


def _rules(desired: Desired, observed: Cluster, partition: PartitionToPlace) -> list[_Rule]:
    registered = [*observed.brokers, *(replica for replica in partition.fixed if replica not in observed.brokers)]
    rules = [*_broker_rules(desired, observed, partition, registered)]
    if partition.rules.declared is not None:
        rules += _topic_rules(partition.rules, partition.rules.declared, registered)
    return rules


def _broker_rules(
    desired: Desired, observed: Cluster, partition: PartitionToPlace, registered: Sequence[int]
) -> Iterator[_Rule]:
    declared = {b: desired.cluster.broker(b) for b in registered}
    by_kafka = cordoned_by_kafka(desired, observed)
    # A cordoned broker keeps what it has.
    others = [b for b in registered if b not in partition.replicas]

    def state(broker_ids: Iterable[int], word: str, cure: str, *, is_leaving: bool = False) -> Iterator[_Rule]:
        at = {b: declared[b].at for b in broker_ids}
        if at:
            yield _State(at, word, cure, is_leaving).rule(at)

    def having(state: BrokerState, of: Sequence[int] = registered) -> list[int]:
        return [b for b in of if declared[b].state is state]

    yield from state(having(BrokerState.DRAINING), "declared draining", "keep {} active", is_leaving=True)
    yield from state(having(BrokerState.ABSENT), "declared absent", "declare {} active", is_leaving=True)
    yield from state(having(BrokerState.CORDONED, others), "cordoned", "uncordon {}")
    closed = [b for b in others if b in by_kafka and declared[b].state in TAKING]
    yield from state(closed, "cordoned by Kafka (cordoned.log.dirs)", "uncordon {0}, or declare {1} active")
    dead = [b for b in registered if not observed.is_alive(b)]
    if dead:
        yield _State(dict.fromkeys(dead), "not alive", "start {}").rule(dead)


def _topic_rules(rules: TopicRules, declared: DesiredTopic, registered: Sequence[int]) -> Iterator[_Rule]:
    placement = declared.placement
    only, but, racks = placement.brokers_only, placement.brokers_except, placement.racks_only

    def words(path: str, said: str) -> str:
        return f"{path} {said}{in_brackets(declared.where(f'placement.{path}'))}"

    def barring(text: str, cure: str, allowed: Callable[[int], bool]) -> _Rule:
        return _Rule(text, frozenset(b for b in registered if not allowed(b)), cure, is_leaving=True)

    if only is not None:
        yield barring(words("brokers.only", f"names {_sorted(only)}"), "name more brokers", only.__contains__)
    if but:
        yield barring(words("brokers.except", f"names {_sorted(but)}"), "except fewer brokers", lambda b: b not in but)
    if racks is not None:
        named = words("racks.only", f"names {_sorted(racks)}")
        yield barring(named, "name more racks", lambda b: rules.rack_of.get(b, NO_RACK) in racks)
    if placement.racks_replicas is not None:
        wanted = words("racks.replicas", f"wants {by_rack(placement.racks_replicas)}")
        yield _Rule(wanted, cure="want fewer in a rack", is_strict=True)
    if placement.racks_spread is Spread.STRICT:
        spread = words("racks.spread", f"is strict over racks {', '.join(rack or 'none' for rack in rules.racks)}")
        yield _Rule(spread, cure="let racks.spread be prefer", is_strict=True)


def _named(message: str, places: Iterable[Location | None]) -> tuple[Location, ...]:
    """Return which of these places the message names, sorted."""
    return tuple(sorted({place for place in places if place and f"({place})" in message}))


def _listed(broker_ids: Collection[int]) -> str:
    return labelled("broker", sorted(broker_ids))


def _sorted(names: Iterable[int] | Iterable[str]) -> str:
    return ", ".join(map(str, sorted(names)))
