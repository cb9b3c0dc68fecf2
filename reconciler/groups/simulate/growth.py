"""Warns of what growing a topic does to its keys and to the groups that read it.

The verb `plan` hands `growth_warnings` to the house, which knows nothing of assignors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.model.simulation import Member, Scenario, Step, partition_counts, spread
from reconciler.groups.simulate.live import own_assignor, present_members, subscribed_topic
from reconciler.groups.simulate.simulation import moved_partitions, owners, simulate
from reconciler.model.assignment import Assignment, Assignor
from reconciler.model.change import AlterConfigs, CreatePartitions, TopicChange
from reconciler.model.cluster import Cluster, Group, Partition
from reconciler.model.problem import Problem, Severity
from reconciler.model.words import named_some

CLEANUP_POLICY, COMPACT = "cleanup.policy", "compact"
READ, COMPACTED, LATEST = "KR831", "KR832", "KR833"
_MOST_GROUPS = 10
_KEYS = "if it is keyed, keys map elsewhere"


def growth_warnings(observed: Cluster, topic_changes: Sequence[TopicChange]) -> tuple[Problem, ...]:
    """Return a warning for each topic to grow that is compacted or that groups read, with what becomes of each group.

    Where the new partitions are placed already, their racks are known, and the assignors use them.
    """
    growths = [change for change in topic_changes if isinstance(change, CreatePartitions)]
    if not growths:
        return ()
    compacted = _compacted(observed, growths, topic_changes)
    grown = _grown(observed, growths)
    readers = [group for group in observed.groups if group.topics & {growth.topic for growth in growths}]
    becomes = {group.group_id: _becomes(grown, group) for group in readers}
    found: list[Problem] = []
    for growth in growths:
        groups = [group for group in readers if growth.topic in group.topics]
        found += _of_topic(growth, groups, becomes, is_compacted=growth.topic in compacted)
    return (*found, *_latest(readers))


def _compacted(
    observed: Cluster, growths: Sequence[CreatePartitions], topic_changes: Sequence[TopicChange]
) -> set[str]:
    """Return which of them are compacted now or will be: their records have keys, by which they are cleaned."""
    will_be = {
        change.topic
        for change in topic_changes
        if isinstance(change, AlterConfigs) and COMPACT in change.set.get(CLEANUP_POLICY, "")
    }
    return will_be | {
        growth.topic for growth in growths if COMPACT in observed.topics[growth.topic].configs.get(CLEANUP_POLICY, "")
    }


def _of_topic(
    growth: CreatePartitions, groups: Sequence[Group], becomes: Mapping[str, str], *, is_compacted: bool
) -> Iterator[Problem]:
    counts = f"topic {growth.topic}: partitions {growth.from_count} -> {growth.to_count}"
    if is_compacted:
        message = (
            f"{counts}; it is compacted, so its records have keys, and keys map elsewhere: the old partition keeps a "
            "key's last value for ever, beside the new one's; copying into a new topic is safer"
        )
        yield Problem(COMPACTED, message, growth.at, Severity.WARNING)
    if groups:
        told = [f"group {group.group_id} {becomes[group.group_id]}" for group in groups[:_MOST_GROUPS]]
        told += [f"and {len(groups) - _MOST_GROUPS} more groups"] if len(groups) > _MOST_GROUPS else []
        keys = "keys map elsewhere" if is_compacted else _KEYS
        yield Problem(READ, "; ".join((counts, keys, *told)), growth.at, Severity.WARNING)


def _latest(readers: Sequence[Group]) -> Iterator[Problem]:
    if not readers:
        return
    names = named_some((group.group_id for group in readers), _MOST_GROUPS)
    message = (
        f"{names}: members with auto.offset.reset=latest miss what is written to new partitions before they see "
        "them, as long as metadata.max.age.ms (5 min); set earliest first (KAFKA-20030)"
    )
    yield Problem(LATEST, message, None, Severity.WARNING)


def _becomes(grown: Cluster, group: Group) -> str:
    """Return what becomes of the group: `(range) 4-4-4 -> 6-6-6, 6 partitions change owner`."""
    if not group.members:
        return "has offsets, but no members now"
    own = own_assignor(group)
    if own is None or own not in ASSIGNORS:
        return f"(assignor {own or 'unknown'}): its result is not known here"
    present = present_members(group)
    before: Assignment = {member.member_id: dict(member.owned or {}) for member in present}
    after = _after(grown, present, ASSIGNORS[own])
    moved = len(moved_partitions(present, after, owners(present, before)))
    counts = f"({own}) {spread(partition_counts(before).values())} -> {spread(partition_counts(after).values())}"
    return f"{counts}, {moved} partition{'' if moved == 1 else 's'} change{'s' if moved == 1 else ''} owner"


def _after(grown: Cluster, present: tuple[Member, ...], assignor: Assignor) -> Assignment:
    names = {name for member in present for name in member.subscription}
    topics = {name: subscribed_topic(grown, grown.topics[name]) for name in sorted(names & grown.topics.keys())}
    return simulate(Scenario(topics, (Step(present),)), assignor)[0].assignment


def _grown(observed: Cluster, growths: Sequence[CreatePartitions]) -> Cluster:
    """Return the cluster with the new partitions, on the replicas that they are to have."""
    topics = dict(observed.topics)
    for growth in growths:
        new = tuple(
            Partition(number, None, tuple(growth.assignment.get(number, ())), ())
            for number in range(growth.from_count, growth.to_count)
        )
        topics[growth.topic] = replace(topics[growth.topic], partitions=(*topics[growth.topic].partitions, *new))
    return replace(observed, topics=topics)
