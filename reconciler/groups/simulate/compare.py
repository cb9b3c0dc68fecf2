"""Compares a real group before and after a change: who would own what, under each assignor."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.groups.model.simulation import Comparison, Outcome, Scenario, Sharing, Step
from reconciler.groups.simulate.change import GroupChange, changed_members, grown_topics, told
from reconciler.groups.simulate.live import labels, own_assignor, present_members
from reconciler.groups.simulate.simulation import (
    TOPIC_ORDER_UNKNOWN,
    is_topic_order_unknown,
    moved_partitions,
    owners,
    sensitive_from_step,
    simulate,
    stats_of,
)
from reconciler.model.assignment import Assignment, Assignor
from reconciler.model.cluster import Cluster, Group
from reconciler.model.topic_partition import TopicPartition

NOW = "now"
# States of a group, classic and KIP-848, in which members do not yet own what they will.
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_HASH_ORDER = "which member gets which partition follows the order of a hash map in Kafka: it may differ"
_NEW_IDS = "Kafka makes the ids of new members, and their order decides who gets which partition: it may differ"


def compare(
    cluster: Cluster,
    group: Group,
    change: GroupChange,
    assignors: Sequence[Assignor],
    loads: Mapping[TopicPartition, int] | None = None,
) -> Comparison:
    """Return what each member owns now and would own after the change; `loads`: bytes per second of a partition.

    Raises InvalidInput for a change that cannot be.
    """
    present = present_members(group)
    members = changed_members(group, present, change)
    read = {name for member in members for name in member.subscription}
    topics = {name: topic for name, topic in grown_topics(cluster, change.partitions).items() if name in read}
    scenario = Scenario(topics, (Step(members),), group.group_id)
    assigned: Assignment = {member.member_id: dict(member.owned or {}) for member in present}
    before = owners(present, assigned)
    now = Sharing(NOW, assigned, stats_of(present, assigned, None), bytes_per_second=_load(assigned, loads))
    after = []
    for assignor in assignors:
        outcome = simulate(scenario, assignor)[0]
        after.append(
            Sharing(
                assignor.name,
                outcome.assignment,
                stats_of(members, outcome.assignment, before),
                len(outcome.rounds),
                tuple(moved_partitions(members, outcome.assignment, before)),
                _load(outcome.assignment, loads),
                _doubts(scenario, assignor, outcome, change.added),
            )
        )
    return Comparison(
        group.group_id,
        group.state,
        own_assignor(group),
        tuple(told(cluster, change)),
        now,
        tuple(after),
        labels(group, [*{member.member_id: member for member in (*present, *members)}.values()]),
        tuple(_notes(group, scenario, change, loads)),
    )


def _load(assignment: Assignment, loads: Mapping[TopicPartition, int] | None) -> dict[str, int] | None:
    if loads is None:
        return None
    return {member_id: sum(loads.get(key, 0) for key in _keys(topics)) for member_id, topics in assignment.items()}


def _keys(topics: Mapping[str, Sequence[int]]) -> Iterator[TopicPartition]:
    return (TopicPartition(topic, partition) for topic, owned in topics.items() for partition in owned)


def _doubts(scenario: Scenario, assignor: Assignor, outcome: Outcome, new: Collection[str]) -> tuple[str, ...]:
    """Return in sentences what of the outcome Kafka's own may have otherwise."""
    found = []
    if sensitive_from_step(scenario, assignor, (outcome,)) is not None:
        found.append(_HASH_ORDER)
    if any(_renamed(scenario, assignor, new, prefix) != outcome.assignment for prefix in ("!", "~") if new):
        found.append(_NEW_IDS)
    if is_topic_order_unknown(scenario, assignor):
        found.append(TOPIC_ORDER_UNKNOWN)
    return tuple(found)


def _renamed(scenario: Scenario, assignor: Assignor, new: Collection[str], prefix: str) -> Assignment:
    """Return the outcome under the members' own names, had the new ones other ids."""
    names = {prefix + name: name for name in new}
    members = tuple(
        replace(member, member_id=prefix + member.member_id) if member.member_id in new else member
        for member in scenario.steps[0].members
    )
    outcome = simulate(replace(scenario, steps=(Step(members),)), assignor)[0]
    return {names.get(member_id, member_id): topics for member_id, topics in outcome.assignment.items()}


def _notes(
    group: Group, scenario: Scenario, change: GroupChange, loads: Mapping[TopicPartition, int] | None
) -> Iterator[str]:
    members = scenario.steps[0].members
    names = sorted({name for member in members for name in member.subscription})
    if group.state in REBALANCING:
        yield f"the group is rebalancing ({group.state}): what its members own now is not complete"
    missing = [name for name in names if name not in scenario.topics]
    if missing:
        yield f"subscribed, but there is no such topic: {', '.join(missing)}"
    if change.partitions and any(member.rack for member in members):
        yield "members have racks, and those of the new partitions are known only once they are placed"
    if loads is not None:
        keys = [
            TopicPartition(name, n)
            for name in names
            if name in scenario.topics
            for n in range(scenario.topics[name].partitions)
        ]
        unknown = sum(key not in loads for key in keys)
        if unknown:
            yield f"{unknown} of {len(keys)} partitions have no measured load and count as 0"
