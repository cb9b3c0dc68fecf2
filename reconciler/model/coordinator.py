"""Finds which broker coordinates a group: the leader of the partition of `__consumer_offsets` that its id falls on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.cluster import Cluster
from reconciler.model.java_hash import text_hash
from reconciler.model.move import Move
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ReassignStage, Stage, elections_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

OFFSETS_TOPIC = "__consumer_offsets"
OTHER_COORDINATOR = "KR920"
# A hash is a 32-bit int: from the smallest one on, the unsigned number that stands for it is negative in Java.
_SMALLEST_INT, _INTS = 1 << 31, 1 << 32


def offsets_partition(group_id: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that holds the group: `Utils.abs(hashCode) % partitions` in Kafka.

    `partitions` is the partition count of that topic, at least 1.
    """
    number = text_hash(group_id)
    if number == _SMALLEST_INT:  # Kafka's Utils.abs is 0 for the smallest int, whose absolute value is no int
        return 0
    return min(number, _INTS - number) % partitions


@dataclass(frozen=True, slots=True)
class Coordination:
    """A group's place: its partition of `__consumer_offsets`, and the broker that leads it, None for none."""

    group_id: str
    partition: int
    broker: int | None


def coordination(group_id: str, cluster: Cluster) -> Coordination | None:
    """Return the group's place, None while the cluster has no `__consumer_offsets`, or shows none."""
    topic = cluster.topics.get(OFFSETS_TOPIC)
    if topic is None or not topic.partitions:
        return None
    number = offsets_partition(group_id, len(topic.partitions))
    partition = topic.partition(number)
    return Coordination(group_id, number, partition.leader if partition is not None else None)


@dataclass(frozen=True, slots=True)
class CoordinatorChange:
    """A group whose coordinator a plan moves: from the present leader to the one that the plan ends with."""

    group_id: str
    partition: int
    from_broker: int | None
    to_broker: int | None


def coordinator_changes(stages: Iterable[Stage], observed: Cluster) -> tuple[CoordinatorChange, ...]:
    """Return the observed groups whose coordinator is another broker once these stages have run, by group id.

    A coordinator moves with its partition's leader: when the plan elects another one, or when the leader is no longer
    among the replicas; Kafka then takes the first of the new list that is in sync.
    """
    return _changes(leaders_after(stages, observed), observed)


def _changes(leaders: Mapping[int, int | None], observed: Cluster) -> tuple[CoordinatorChange, ...]:
    found = (coordination(group.group_id, observed) for group in observed.groups)
    return tuple(
        CoordinatorChange(each.group_id, each.partition, each.broker, leaders[each.partition])
        for each in found
        if each is not None and leaders.get(each.partition, each.broker) != each.broker
    )


def coordinator_warnings(stages: Iterable[Stage], observed: Cluster) -> tuple[Problem, ...]:
    """Return the warning that groups get other coordinators, which are named where groups were observed."""
    leaders = leaders_after(stages, observed)
    moved = [number for number, leader in leaders.items() if leader != _leader(observed, number)]
    changes = _changes(leaders, observed)
    if changes:
        named = named_some(f"{each.group_id} ({each.from_broker} -> {each.to_broker})" for each in changes)
        who = f"{len(changes)} groups get" if len(changes) > 1 else "1 group gets"
        message = f"{who} another coordinator: {named}; each commits again once that has loaded it"
    elif moved and not observed.groups:
        count = f"{len(moved)} partitions" if len(moved) > 1 else "1 partition"
        message = (
            f"{count} of {OFFSETS_TOPIC} get another leader, and the groups there another coordinator: "
            "`groups describe --plan PLAN` names them"
        )
    else:
        return ()
    return (Problem(OTHER_COORDINATOR, message, severity=Severity.WARNING),)


def leaders_after(stages: Iterable[Stage], observed: Cluster) -> Mapping[int, int | None]:
    """Return the leader of each partition of `__consumer_offsets` that the stages touch, once they have run."""
    leaders: dict[int, int | None] = {}
    for stage in stages:
        for move in _of_offsets(stage) if isinstance(stage, ReassignStage) else ():
            number = move.topic_partition.partition
            leader = leaders[number] if number in leaders else _leader(observed, number)
            leaders[number] = leader if leader in move.to_replicas else move.to_replicas[0]
        elected = (each for each in elections_of(stage) if each.topic_partition.topic == OFFSETS_TOPIC)
        leaders |= {each.topic_partition.partition: each.leader for each in elected}
    return leaders


def _of_offsets(stage: ReassignStage) -> Iterable[Move]:
    from reconciler.model.move_table import Moves

    moves = Moves.of(stage.moves)
    return moves.part(moves.rows_of_topics({OFFSETS_TOPIC}))


def _leader(observed: Cluster, number: int) -> int | None:
    partition = observed.partition(TopicPartition(OFFSETS_TOPIC, number))
    return partition.leader if partition is not None else None
