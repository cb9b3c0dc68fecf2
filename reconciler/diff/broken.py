"""Finds rules that a partition breaks today, the most urgent first, in words, with the line that asks for each."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from reconciler.diff.leaderless import has_source
from reconciler.diff.rules import LEAVING, NO_RACK, TopicRules, barred_by
from reconciler.model.change import BrokenRule
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, Ints, alike
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Spread
from reconciler.model.move import Reason
from reconciler.model.partition_table import PartitionTable
from reconciler.model.problem import Location
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import labelled


def broken_partitions(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules], doomed: Collection[str]
) -> Iterator[tuple[BrokenRule, ...]]:
    """Yield what each partition breaks, the most urgent first; nothing for a partition that keeps all its rules.

    Two partitions whose brokers are alike to the rules break the same ones, so one of each kind is asked whether it
    breaks any. An explicit assignment names brokers, to which no others are alike.
    """
    table = table_of(observed)
    topics = [rules[name] for name in table.topics]

    def broken(rows: Ints) -> Iterator[tuple[BrokenRule, ...]]:
        for key, replicas in table.targets(rows):
            found = _broken(desired, observed, rules[key.topic], key.partition, replicas)
            yield tuple([BrokenRule(key, *each) for each in found])

    first, kind = alike(_as_rules_see_them(desired, observed, topics, table))
    of_kind = [*broken(first)]
    is_broken = np.array([bool(found) for found in of_kind], dtype=np.bool_)[kind]
    is_assigned = np.array([rule.assignment is not None for rule in topics], dtype=np.bool_)
    is_doomed = np.array([name in doomed for name in table.topics], dtype=np.bool_)
    suspect = (is_broken | is_assigned[table.topic]) & ~is_doomed[table.topic] & has_source(observed)
    # A wrong number of replicas is told without naming a broker: of all of a kind in the same words.
    is_told = np.array([[each.reason for each in found] == _NUMBER_ALONE for found in of_kind], dtype=np.bool_)[kind]
    others, rows = broken(np.flatnonzero(suspect & ~is_told)), np.flatnonzero(suspect)
    factor_at = [None if rule.declared is None else rule.declared.where("replicationFactor") for rule in topics]
    lists = (is_told[rows], table.topic[rows], table.number[rows], kind[rows])
    for told, topic, number, one in zip(*(each.tolist() for each in lists), strict=True):
        if told:
            rule, key = of_kind[one][0], TopicPartition(table.topics[topic], number)
            yield (BrokenRule(key, rule.reason, rule.detail, factor_at[topic]),)
        elif found := next(others):
            yield found


_NUMBER_ALONE = [Reason.REPLICATION_FACTOR]
_Broken = tuple[Reason, str, Location | None]
"""Why a partition has to change, in words, and the line that asks for it."""


def _as_rules_see_them(
    desired: Desired, observed: Cluster, topics: Sequence[TopicRules], table: PartitionTable
) -> list[Ints]:
    """Return columns that are equal for partitions under equal rules whose replicas, in order, are alike to these."""
    rules: dict[object, int] = {}
    of_topic = np.array([rules.setdefault(_likeness(rule), len(rules)) for rule in topics], dtype=np.int64)
    traits: dict[object, int] = {}
    sets = dict(zip(of_topic.tolist(), topics, strict=True))
    ids = table.brokers.tolist()
    # One broker more, nobody, for what is behind the last replica.
    seen = np.full((len(sets), len(ids) + 1), NONE, dtype=np.int64)
    for number, rule in sets.items():
        seen[number, :-1] = [traits.setdefault(_trait(desired, observed, rule, one), len(traits)) for one in ids]
    number = of_topic[table.topic]
    return [number, *(seen[number, place] for place in table.place.T)]


def _likeness(rule: TopicRules) -> object:
    """Return what two topics have in common where the same brokers break the rules of both."""
    is_asked = rule.is_managed, rule.has_placement, rule.assignment is None
    return rule.choice, rule.replication_factor, rule.is_frozen, *is_asked


def _trait(desired: Desired, observed: Cluster, rule: TopicRules, broker_id: int) -> object:
    is_in = tuple([broker_id in each for each in rule.fit])
    return rule.rack_of.get(broker_id, NO_RACK), is_in, _is_leaving(desired, broker_id), observed.is_alive(broker_id)


def _is_leaving(desired: Desired, broker_id: int) -> bool:
    declared = desired.cluster.brokers.get(broker_id)
    return declared is not None and declared.state in LEAVING


def _broken(
    desired: Desired, observed: Cluster, rules: TopicRules, number: int, replicas: tuple[int, ...]
) -> Iterator[_Broken]:
    """Yield each rule that a partition with these target replicas breaks, the most urgent first.

    Beside others a rule is told only if it would still be broken with those mended: a spread that is broken because a
    broker is draining is no second difference.
    """
    declared = rules.declared
    dead = [] if declared is None else [replica for replica in replicas if not observed.is_alive(replica)]
    if declared is not None and rules.has_placement and dead:
        words = f"{labelled('broker', sorted(dead))} {'is' if len(dead) == 1 else 'are'} not alive"
        yield Reason.DEAD_BROKER, words, declared.where("")
    replaced = dead if rules.has_placement else []
    # By id: lists of the same brokers in another order say the same, and name the same line.
    leaving = sorted(replica for replica in replicas if replica not in replaced and _is_leaving(desired, replica))
    if leaving:
        first = desired.cluster.broker(leaving[0])
        word = "draining" if first.state is BrokerState.DRAINING else "absent"
        yield Reason.DRAINING, f"{labelled('broker', leaving)} declared {word}", first.at
    if declared is None:
        return
    wanted = assigned(rules, number)
    if wanted is None:
        yield from _rest(rules, declared, replicas, tuple([b for b in replicas if b not in dead and b not in leaving]))
    elif wanted != replicas:
        detail = f"assignment {list(replicas)} -> {list(wanted)}"
        yield Reason.ASSIGNMENT, detail, declared.where("placement.assignment")


def assigned(rules: TopicRules, partition: int) -> tuple[int, ...] | None:
    """Return the explicit assignment of a partition, None where none is written."""
    if rules.assignment is None or partition >= len(rules.assignment):
        return None
    return rules.assignment[partition]


def _rest(
    rules: TopicRules, declared: DesiredTopic, replicas: tuple[int, ...], staying: tuple[int, ...]
) -> Iterator[_Broken]:
    """Yield what is wrong with the number of replicas, with their brokers, racks and leader."""
    factor = rules.target_factor(replicas)
    if factor != len(replicas):
        words = f"replicationFactor {len(replicas)} -> {factor}"
        yield Reason.REPLICATION_FACTOR, words, declared.where("replicationFactor")
    barred = sorted(replica for replica in staying if replica not in rules.keepable)
    if barred:
        by = barred_by(declared.placement, barred[0], rules.rack_of.get(barred[0], NO_RACK))
        path = "placement.racks.only" if by in {None, "racks.only"} else "placement.brokers"
        yield Reason.ELIGIBILITY, f"{labelled('broker', barred)} not allowed by {path}", declared.where(path)
    kept = tuple(replica for replica in staying if replica not in barred)
    is_alone = kept == replicas and factor == len(replicas)
    if _is_spread_broken(rules, replicas) and (is_alone or _is_crowded(rules, kept, factor, replicas)):
        held = ", ".join(sorted(rules.rack_of.get(replica, "") or "none" for replica in replicas))
        wrong, path = f"racks {held} do not spread", "placement.racks.spread"
        if rules.rack_replicas is not None:
            wrong, path = f"racks {held}, not {by_rack(rules.rack_replicas)}", "placement.racks.replicas"
        yield Reason.RACKS, wrong, declared.where(path)
    if _is_leader_misplaced(rules, replicas) and replicas[0] in kept:
        words = f"broker {replicas[0]} is not to be the preferred leader"
        yield Reason.LEADERS, words, declared.where("placement.racks.leader")


def by_rack(wanted: Sequence[tuple[str, int]]) -> str:
    """Return how many replicas each rack is to hold, in words."""
    return " and ".join(f"{count} in {rack}" for rack, count in wanted)


def _is_spread_broken(rules: TopicRules, replicas: tuple[int, ...]) -> bool:
    binding = {Spread.STRICT} if rules.is_frozen else {Spread.STRICT, Spread.PREFER}
    if rules.spread not in binding or rules.rack_excess(replicas) == 0:
        return False
    held = Counter(rules.rack_of.get(replica, "") for replica in replicas)
    limits = rules.rack_limits(len(replicas), replicas)
    return any(not low <= held[rack] <= high for rack, (low, high) in limits.items())


def _is_crowded(rules: TopicRules, kept: tuple[int, ...], factor: int, replicas: tuple[int, ...]) -> bool:
    """Whether a rack would hold too many of the replicas that stay, were there as many as there should be."""
    held = Counter(rules.rack_of.get(replica, "") for replica in kept)
    limits = rules.rack_limits(factor, replicas)
    return any(held[rack] > high for rack, (_, high) in limits.items())


def _is_leader_misplaced(rules: TopicRules, replicas: tuple[int, ...]) -> bool:
    """Whether another replica is to lead, and the first one is not; a frozen list stays in its order."""
    tiers = (rules.leadable, rules.leadable_at_need)
    first = next((tier for tier in tiers if not tier.isdisjoint(replicas)), None)
    return not rules.is_frozen and bool(replicas) and first is not None and replicas[0] not in first
