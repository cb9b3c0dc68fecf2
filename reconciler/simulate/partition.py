"""One partition's transitions: reassign, cancel, new ISR, preferred election, a broker that leaves or comes back."""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.cluster import Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.answers import Denied
from reconciler.simulate.controller import Controller

Replicas = tuple[int, ...]


def reassigned(
    partition: Partition,
    target: Sequence[int],
    controller: Controller,
    *,
    is_replication_factor_change_allowed: bool = True,
) -> Partition | Denied:
    """Return the partition once the controller accepted a new target; a reorder and a shrink have ended at once.

    A target over a reassignment in flight replaces it: the first target's new replicas are then being removed.
    """
    target = tuple(target)
    denied = validate_assignment(target, controller)
    if denied is None and not is_replication_factor_change_allowed and controller.has_replication_factor_guard:
        denied = _factor_change(partition, target)
    if denied is not None:
        return denied
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    # Kafka leaves the former lists in place where the new ones are empty.
    changed = partition.on_replicas(target + removing, new_size=0)
    changed = replace(
        changed,
        adding_replicas=adding or partition.adding_replicas,
        removing_replicas=removing or partition.removing_replicas,
    )
    return _settled(changed, changed.isr, controller)


def cancelled(topic_partition: TopicPartition, partition: Partition, controller: Controller) -> Partition | Denied:
    """Return the partition without the replicas being added; neither the former order nor factor is restored."""
    if not partition.is_reassigning:
        return Denied("NO_REASSIGNMENT_IN_PROGRESS")
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding_replicas)
    if not isr:
        topic, number = topic_partition
        return Denied(
            "INVALID_REPLICA_ASSIGNMENT",
            f"Unable to revert partition assignment for {topic}:{number} because it would require an unclean "
            "leader election.",
        )
    kept = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    reverted = replace(partition.on_replicas(kept, new_size=0), adding_replicas=(), removing_replicas=())
    return _settled(reverted, isr, controller)


def with_isr(partition: Partition, isr: Sequence[int], controller: Controller) -> Partition:
    """Return the partition with the ISR that its leader reported; that may end a reassignment."""
    return _settled(partition, tuple(isr), controller)


def with_preferred_leader(partition: Partition, controller: Controller) -> Partition | Denied:
    """Return the partition after a preferred election."""
    if partition.leader == partition.replicas[0]:
        return Denied("ELECTION_NOT_NEEDED")
    order = (partition.replicas[0], partition.leader, *partition.replicas[1:])
    leader = _first_valid(order, partition.isr, controller)
    if leader == partition.leader:
        return Denied("PREFERRED_LEADER_NOT_AVAILABLE")
    return replace(partition, leader=leader)


def without_broker(partition: Partition, broker_id: int, controller: Controller) -> Partition:
    """Return the partition once that broker no longer lives; the last in-sync replica stays listed, without a leader.

    `controller` is the one that has noticed it.
    """
    if broker_id not in partition.isr:
        return partition
    return _settled(partition, tuple(replica for replica in partition.isr if replica != broker_id), controller)


def with_returned_broker(partition: Partition, controller: Controller) -> Partition:
    """Return the partition with a leader, if it had none and one of its in-sync or eligible replicas lives again."""
    if partition.leader is not None:
        return partition
    elected = _first_valid(partition.replicas, partition.elr or (), controller)
    isr = partition.isr or (() if elected is None else (elected,))
    return _settled(partition, isr, controller)


def validate_assignment(
    replicas: Sequence[int], controller: Controller, replication_factor: int | None = None
) -> Denied | None:
    """Return why Kafka refuses that assignment, None where it takes it. A fenced broker is taken."""
    if not replicas:
        return _invalid("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in controller.registered:
            return _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            return _invalid(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        return _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return None


def _settled(partition: Partition, isr: Replicas, controller: Controller) -> Partition:
    """Return the partition with its reassignment ended, if that ISR allows it, and with a living in-sync leader."""
    partition, isr = _ended_if_complete(partition, isr, controller)
    leader = partition.leader
    if leader is None or not _is_valid_leader(leader, isr, controller):
        leader = _first_valid(partition.replicas, isr, controller)
    return replace(partition, isr=isr or partition.isr, leader=leader)


def _ended_if_complete(partition: Partition, isr: Replicas, controller: Controller) -> tuple[Partition, Replicas]:
    if not partition.is_reassigning:
        return partition, isr
    kept_isr = tuple(replica for replica in isr if replica not in partition.removing_replicas)
    target = partition.target_replicas
    if not kept_isr or not target or not _is_complete(partition, kept_isr, controller):
        return partition, isr
    ended = replace(partition.on_replicas(target, new_size=0), adding_replicas=(), removing_replicas=())
    return ended, kept_isr


def _is_complete(partition: Partition, kept_isr: Replicas, controller: Controller) -> bool:
    has_target = set(kept_isr).issuperset(partition.target_replicas)
    if controller.is_every_target_awaited:
        return has_target
    has_added = set(kept_isr).issuperset(partition.adding_replicas)
    return has_added and (has_target or len(partition.adding_replicas) >= len(partition.removing_replicas))


def _first_valid(order: Sequence[int | None], isr: Replicas, controller: Controller) -> int | None:
    return next((one for one in order if one is not None and _is_valid_leader(one, isr, controller)), None)


def _is_valid_leader(broker_id: int, isr: Replicas, controller: Controller) -> bool:
    return broker_id in isr and broker_id in controller.alive


def _factor_change(partition: Partition, target: Replicas) -> Denied | None:
    current = len(partition.target_replicas)
    if current == len(target):
        return None
    return Denied("INVALID_REPLICATION_FACTOR", f"The replication factor is changed from {current} to {len(target)}")


def _invalid(message: str) -> Denied:
    return Denied("INVALID_REPLICA_ASSIGNMENT", message)
