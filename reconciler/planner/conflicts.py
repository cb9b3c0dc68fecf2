"""Explains why a partition cannot be placed: the smallest set of rules that cannot hold together, with their lines."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from reconciler.diff.broken import by_rack
from reconciler.diff.rules import NO_RACK, TopicRules, cordoned_by_kafka, with_racks
from reconciler.model.change import BrokenRule
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Spread
from reconciler.model.problem import Location, Problem
from reconciler.model.words import MANY, in_brackets, labelled, named_some
from reconciler.planner.smallest_conflict import BrokersInState, Dispute, Rule, replicas_in_no_rack
from reconciler.planner.to_place import PartitionsToPlace, PartitionToPlace

TAKING = frozenset({BrokerState.ACTIVE, BrokerState.MAINTENANCE})


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
        nowhere = replicas_in_no_rack(partition) if partition.rules.has_rackless else 0
        # Topics with the same placement share the set of brokers itself.
        key = (id(partition.rules.receivable), partition.need, partition.fixed, partition.is_new, kept, nowhere)
        if key not in known:
            rules, is_assigned = _rules(desired, observed, partition), bool(partition.fixed and partition.need == 0)
            is_kept = not (is_assigned and _broken_by_assignment(observed, partition, rules))
            known[key] = is_kept and Dispute(observed, partition, rules).can_place(rules)
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
    declared, rules = partition.rules.declared, _rules(desired, observed, partition)
    if partition.fixed and partition.need == 0 and declared is not None:
        at = declared.where("placement.assignment")
        names = f"assignment names {_listed(partition.fixed)}{in_brackets(at)}"
        causes = _broken_by_assignment(observed, partition, rules)
        return [(f"{names}, but {cause.words}. Change one of them.", at) for cause in causes]
    at, start = (declared.where(path) if declared else None for path in ("replicationFactor", ""))
    dispute = Dispute(observed, partition, rules)
    causes = dispute.smallest_conflict()
    words = ", ".join(cause.words for cause in causes) or f"only {len(observed.brokers)} brokers are registered"
    cures = [cure for cause in causes for cure in dispute.cures(cause)] if causes else ["add brokers"]
    if not dispute.needs_factor(causes):
        return [(f"no broker may hold it: {words}. {_sentence(cures)}", start)]
    wanted = len(partition.fixed) + partition.need
    factor = f"replicationFactor is {wanted}{in_brackets(at)}" if at else f"it has {wanted} replicas"
    lower = "lower replicationFactor" if declared else "declare it with a lower replicationFactor"
    cures = [lower, *cures] if dispute.allows_lower_factor() else cures
    return [(f"{factor}, {words}. {_sentence(cures)}", at or start)]


def _sentence(cures: Sequence[str]) -> str:
    text = "; or ".join(cures) or "no single change is enough"
    return f"{text[0].upper()}{text[1:]}."


def _broken_by_assignment(observed: Cluster, partition: PartitionToPlace, rules: Sequence[Rule]) -> Sequence[Rule]:
    """Return the rules that an explicit assignment breaks, each broker in a state by itself."""
    broken: list[Rule] = []
    for rule in rules:
        barred = sorted(rule.bars.intersection(partition.fixed))
        broken += [rule.state.rule([broker_id]) for broker_id in barred] if rule.state else [rule][: len(barred)]
    # If a rack does not count because all its brokers leave, what is on these brokers is the conflict.
    of_all = with_racks(partition.rules, {broker.rack or NO_RACK for broker in observed.brokers.values()})
    is_spread = 0 in {partition.rules.rack_excess(partition.fixed), of_all.rack_excess(partition.fixed)}
    if partition.rules.spread is Spread.STRICT and not is_spread:
        broken += [rule for rule in rules if rule.is_strict]
    return broken


def _rules(desired: Desired, observed: Cluster, partition: PartitionToPlace) -> list[Rule]:
    registered = [*observed.brokers, *(replica for replica in partition.fixed if replica not in observed.brokers)]
    rules = [*_broker_rules(desired, observed, partition, registered)]
    if partition.rules.declared is not None:
        rules += _topic_rules(partition.rules, partition.rules.declared, registered)
    return rules


def _broker_rules(
    desired: Desired, observed: Cluster, partition: PartitionToPlace, registered: Sequence[int]
) -> Iterator[Rule]:
    declared = {b: desired.cluster.broker(b) for b in registered}
    by_kafka = cordoned_by_kafka(desired, observed)
    # A cordoned broker keeps what it has.
    new = [b for b in registered if b not in partition.replicas]

    def state(broker_ids: Iterable[int], word: str, cure: str, *, is_leaving: bool = False) -> Iterator[Rule]:
        places = {b: declared[b].at for b in broker_ids}
        if places:
            yield BrokersInState(places, word, cure, is_leaving).rule(places)

    def having(state: BrokerState, broker_ids: Sequence[int] = registered) -> list[int]:
        return [b for b in broker_ids if declared[b].state is state]

    yield from state(having(BrokerState.DRAINING), "declared draining", "keep {} active", is_leaving=True)
    yield from state(having(BrokerState.ABSENT), "declared absent", "declare {} active", is_leaving=True)
    yield from state(having(BrokerState.CORDONED, new), "cordoned", "uncordon {}")
    closed = [b for b in new if b in by_kafka and declared[b].state in TAKING]
    yield from state(closed, "cordoned by Kafka (cordoned.log.dirs)", "uncordon {0}, or declare {1} active")
    dead = [b for b in registered if not observed.is_alive(b)]
    if dead:
        yield BrokersInState(dict.fromkeys(dead), "not alive", "start {}").rule(dead)


def _topic_rules(rules: TopicRules, declared: DesiredTopic, registered: Sequence[int]) -> Iterator[Rule]:
    placement = declared.placement
    only, but, racks = placement.brokers_only, placement.brokers_except, placement.racks_only

    def words(path: str, said: str) -> str:
        return f"{path} {said}{in_brackets(declared.where(f'placement.{path}'))}"

    def barring(text: str, cure: str, allowed: Callable[[int], bool]) -> Rule:
        return Rule(text, frozenset(b for b in registered if not allowed(b)), cure, is_leaving=True)

    if only is not None:
        yield barring(words("brokers.only", f"names {_sorted(only)}"), "name more brokers", only.__contains__)
    if but:
        yield barring(words("brokers.except", f"names {_sorted(but)}"), "except fewer brokers", lambda b: b not in but)
    if racks is not None:
        named = words("racks.only", f"names {_sorted(racks)}")
        yield barring(named, "name more racks", lambda b: rules.rack_of.get(b, NO_RACK) in racks)
    if placement.racks_replicas is not None:
        wanted = words("racks.replicas", f"wants {by_rack(placement.racks_replicas)}")
        yield Rule(wanted, cure="want fewer in a rack", is_strict=True)
    if placement.racks_spread is Spread.STRICT:
        spread = words("racks.spread", f"is strict over racks {', '.join(rack or 'none' for rack in rules.racks)}")
        yield Rule(spread, cure="let racks.spread be prefer", is_strict=True)


def _named(message: str, places: Iterable[Location | None]) -> tuple[Location, ...]:
    """Return which of these places the message names, sorted."""
    return tuple(sorted({place for place in places if place and f"({place})" in message}))


def _listed(broker_ids: Collection[int]) -> str:
    return labelled("broker", sorted(broker_ids))


def _sorted(names: Iterable[int] | Iterable[str]) -> str:
    return ", ".join(map(str, sorted(names)))
