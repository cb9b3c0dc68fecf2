"""Explains why a partition cannot be placed: the smallest set of rules that cannot hold together, with their lines.

Subsets of its rules are tried, the smallest first: five are about brokers and five about placement at the most.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations

from reconciler.diff.broken import by_rack
from reconciler.diff.rules import NO_RACK, TopicRules, cordoned_by_kafka
from reconciler.model.change import BrokenRule
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Spread
from reconciler.model.problem import Location, Problem
from reconciler.model.words import MANY, in_brackets, labelled, named_some
from reconciler.planner.to_place import PartitionsToPlace, PartitionToPlace

TAKING = frozenset({BrokerState.ACTIVE, BrokerState.MAINTENANCE})
_BY_KAFKA = "cordoned by Kafka (cordoned.log.dirs)", "uncordon {}, or declare it active"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule in words; `bars` says which brokers it keeps out, `is_strict` is a demand on the whole set.

    `state` is that of the brokers that are kept out for their state.
    """

    words: str
    cure: str
    bars: Callable[[int], bool] = lambda _: False
    is_strict: bool = False
    state: "_State | None" = None


@dataclass(frozen=True, slots=True)
class _State:
    """Brokers [ids, sorted] in one state, with the line of each where it was written, in words; `cure` takes a name."""

    at: Mapping[int, Location | None]
    word: str
    cure: str

    def rule(self, named: Collection[int], wanted: str = "one") -> _Rule:
        """Return what is told of the named brokers, `wanted` of which have to be in another state."""
        cure = self.cure.format(f"{wanted} of them" if len(named) > 1 else _listed(named))
        return _Rule(
            self._words({b: self.at[b] for b in sorted(named)}), cure, frozenset(named).__contains__, state=self
        )

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
        why = _unknown_rack(observed, partition.rules) or ("KR301", *_explained(desired, observed, partition))
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
        # Topics with the same placement share the set of brokers itself.
        key = (id(partition.rules.receivable), partition.need, partition.fixed, partition.is_new, kept)
        if key not in known:
            rules, is_assigned = _rules(desired, observed, partition), bool(partition.fixed and partition.need == 0)
            known[key] = not _wrong_fixed(partition, rules) if is_assigned else _can_place(observed, partition, rules)
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


def _explained(desired: Desired, observed: Cluster, partition: PartitionToPlace) -> tuple[str, Location | None]:
    """Return the smallest conflict in words, and the line to look at first."""
    declared = partition.rules.declared
    rules = _rules(desired, observed, partition)
    if partition.fixed and partition.need == 0 and declared is not None:
        at = declared.where("placement.assignment")
        causes = _wrong_fixed(partition, rules)
        told = "; ".join(cause.words for cause in causes)
        return f"assignment names {_listed(partition.fixed)}{in_brackets(at)}, but {told}. Change one of them.", at
    at = declared.where("replicationFactor") if declared else None
    subsets = (chosen for size in range(len(rules) + 1) for chosen in combinations(rules, size))
    smallest = next((chosen for chosen in subsets if not _can_place(observed, partition, chosen)), ())
    causes = _only_needed(observed, partition, smallest)
    wanted = len(partition.fixed) + partition.need
    factor = f"replicationFactor is {wanted}{in_brackets(at)}" if at else f"it has {wanted} replicas"
    words = ", ".join(cause.words for cause in causes) or f"only {len(observed.brokers)} brokers are registered"
    cures = "; or ".join(cause.cure for cause in causes) or "add brokers"
    lower = "Lower replicationFactor; or " if partition.rules.rack_replicas is None else ""
    message = f"{factor}, {words}. {lower}{cures if lower else cures[0].upper() + cures[1:]}."
    return message, at or (declared.where("") if declared else None)


def _only_needed(observed: Cluster, partition: PartitionToPlace, causes: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the causes without the brokers that have no part in the conflict."""
    kept = list(causes)
    for place, cause in enumerate(causes):
        if cause.state is not None:
            others = [*kept[:place], *kept[place + 1 :]]
            kept[place] = _of_needed(observed, partition, cause.state, others)
    return kept


def _of_needed(observed: Cluster, partition: PartitionToPlace, state: _State, others: Sequence[_Rule]) -> _Rule:
    """Return what is told of the brokers in that state without those that have no part in the conflict.

    These are brokers that another cause bars as well, and racks whose brokers could be let in without any use.
    """

    def conflicting(broker_ids: Collection[int]) -> bool:
        rules = [*others, state.rule(broker_ids)] if broker_ids else others
        return not _can_place(observed, partition, rules)

    own = [b for b in state.at if b not in partition.fixed and not any(other.bars(b) for other in others)]
    by_rack: dict[str, list[int]] = {}
    for broker_id in own:
        by_rack.setdefault(observed.brokers[broker_id].rack or NO_RACK, []).append(broker_id)
    named = [b for rack, there in by_rack.items() if _is_needed(rack, by_rack, conflicting) for b in there]
    named = named if conflicting(named) else own
    firsts = (there[0] for there in by_rack.values())
    is_one_enough = any(not conflicting([b for b in named if b != first]) for first in firsts)
    return state.rule(named, "one" if is_one_enough else "more than one")


def _is_needed(rack: str, by_rack: Mapping[str, Sequence[int]], conflicting: Callable[[Collection[int]], bool]) -> bool:
    """Whether a rack's brokers have a part in the conflict: what stays of it without other racks, hangs on them."""
    left = dict(by_rack)
    for other in [*(each for each in by_rack if each != rack), rack]:
        there = left.pop(other)
        if not conflicting([b for each in left.values() for b in each]):
            left[other] = there
    return rack in left


def _can_place(observed: Cluster, partition: PartitionToPlace, rules: Sequence[_Rule]) -> bool:
    """Whether enough brokers remain, in the racks that the rules want, when just these rules hold."""
    if partition.need == 0:
        return True
    barred = {broker_id for broker_id in observed.brokers for rule in rules if rule.bars(broker_id)}
    open_ids = observed.brokers.keys() - barred - {*partition.fixed}
    room = Counter(observed.brokers[broker_id].rack or NO_RACK for broker_id in open_ids)
    if sum(room.values()) < partition.need:
        return False
    if not any(rule.is_strict for rule in rules):
        return True
    needed = {*partition.rules.racks, *dict(partition.rules.rack_replicas or ())}
    bounds = {rack: partition.rules.rack_bounds(partition.need, rack) for rack in {*needed, *room}}
    return all(room[rack] >= bounds[rack][0] for rack in needed) and (
        sum(min(bounds[rack][1], room[rack]) for rack in room) >= partition.need
    )


def _wrong_fixed(partition: PartitionToPlace, rules: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the rules that an explicit assignment breaks."""
    barring = ((rule, [replica for replica in partition.fixed if rule.bars(replica)]) for rule in rules)
    wrong = [rule.state.rule(barred) if rule.state else rule for rule, barred in barring if barred]
    if partition.rules.spread is Spread.STRICT and partition.rules.rack_excess(partition.fixed):
        wrong += [rule for rule in rules if rule.is_strict]
    return wrong


def _rules(desired: Desired, observed: Cluster, partition: PartitionToPlace) -> list[_Rule]:
    rules = [*_broker_rules(desired, observed, partition)]
    if partition.rules.declared is not None:
        rules += _topic_rules(partition.rules, partition.rules.declared)
    return rules


def _broker_rules(desired: Desired, observed: Cluster, partition: PartitionToPlace) -> Iterator[_Rule]:
    registered = [*observed.brokers, *(replica for replica in partition.fixed if replica not in observed.brokers)]
    declared = {b: desired.cluster.broker(b) for b in registered}
    closed = [b for b in sorted(cordoned_by_kafka(desired, observed)) if declared[b].state in TAKING]
    cordoned = [b for b in registered if declared[b].state is BrokerState.CORDONED]
    for found, word, cure in (
        ([b for b in registered if declared[b].state is BrokerState.DRAINING], "declared draining", "keep {} active"),
        ([b for b in registered if declared[b].state is BrokerState.ABSENT], "declared absent", "declare {} active"),
        # A cordoned broker keeps what it has.
        ([b for b in cordoned if b not in partition.replicas], "cordoned", "uncordon {}"),
        ([b for b in closed if b not in partition.replicas], *_BY_KAFKA),
    ):
        if found:
            yield _State({b: declared[b].at for b in found}, word, cure).rule(found)
    dead = [broker_id for broker_id in registered if not observed.is_alive(broker_id)]
    if dead:
        yield _State(dict.fromkeys(dead), "not alive", "start {}").rule(dead)


def _topic_rules(rules: TopicRules, declared: DesiredTopic) -> Iterator[_Rule]:
    placement = declared.placement
    only, but, racks = placement.brokers_only, placement.brokers_except, placement.racks_only

    def words(path: str, said: str) -> str:
        return f"{path} {said}{in_brackets(declared.where(f'placement.{path}'))}"

    if only is not None:
        yield _Rule(words("brokers.only", f"names {_sorted(only)}"), "name more brokers", lambda b: b not in only)
    if but:
        yield _Rule(words("brokers.except", f"names {_sorted(but)}"), "except fewer brokers", but.__contains__)
    if racks is not None:
        named = words("racks.only", f"names {_sorted(racks)}")
        yield _Rule(named, "name more racks", lambda b: rules.rack_of.get(b, NO_RACK) not in racks)
    if placement.racks_replicas is not None:
        wanted = words("racks.replicas", f"wants {by_rack(placement.racks_replicas)}")
        yield _Rule(wanted, "want fewer in a rack", is_strict=True)
    if placement.racks_spread is Spread.STRICT:
        spread = words("racks.spread", f"is strict over racks {', '.join(rack or 'none' for rack in rules.racks)}")
        yield _Rule(spread, "let racks.spread be prefer", is_strict=True)


def _named(message: str, places: Iterable[Location | None]) -> tuple[Location, ...]:
    """Return which of these places the message names, sorted."""
    return tuple(sorted({place for place in places if place and f"({place})" in message}))


def _listed(broker_ids: Collection[int]) -> str:
    return labelled("broker", sorted(broker_ids))


def _sorted(names: Iterable[int] | Iterable[str]) -> str:
    return ", ".join(map(str, sorted(names)))
