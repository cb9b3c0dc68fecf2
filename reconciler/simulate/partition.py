"""Changes one partition as Kafka's controller does: reassign, cancel, new ISR, election, a broker that dies or returns.

Compared with the controller's own Java code, version by version, in `tests/admin/contract.py`.
"""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.cluster import Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Controller, Denied

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
    if denied is not None:
        return denied
    factor = len(partition.target_replicas)
    is_guarded = not is_replication_factor_change_allowed and controller.has_replication_factor_guard
    if is_guarded and factor != len(target):
        message = f"The replication factor is changed from {factor} to {len(target)}"
        return Denied("INVALID_REPLICATION_FACTOR", message)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    # Kafka leaves the former lists in place where the new ones are empty.
    changed = partition.on_replicas(target + removing, new_size=0)
    changed = replace(
        changed,
        adding_replicas=adding or partition.adding_replicas,
        removing_replicas=removing or partition.removing_replicas,
    )
    return with_isr(changed, changed.isr, controller)


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
    return with_isr(reverted, isr, controller)


def with_isr(partition: Partition, isr: Sequence[int], controller: Controller) -> Partition:
    """Return the partition with the ISR that its leader reported, a reassignment ended if that completes it.

    The leader stays while it lives and is in sync; else the first such replica leads, or nobody.
    """
    partition, isr = _ended_if_complete(partition, tuple(isr), controller)
    leader = _first_valid((partition.leader, *partition.replicas), isr, controller)
    return replace(partition, isr=isr or partition.isr, leader=leader)


def with_preferred_leader(partition: Partition, controller: Controller) -> Partition | Denied:
    """Return the partition after a preferred election."""
    if partition.leader == partition.replicas[0]:
        return Denied("ELECTION_NOT_NEEDED")
    # Kafka prefers the present leader to any other replica: an election that cannot be had changes nothing.
    order = (partition.replicas[0], partition.leader, *partition.replicas[1:])
    leader = _first_valid(order, partition.isr, controller)
    if leader == partition.leader:
        return Denied("PREFERRED_LEADER_NOT_AVAILABLE")
    return replace(partition, leader=leader)


def without_broker(partition: Partition, broker_id: int, controller: Controller) -> Partition:
    """Return the partition once that broker no longer lives, as `controller`, which has noticed it, leaves it.

    The last in-sync replica stays in the ISR, without a leader: Kafka elects no other, which could lack records.
    """
    if broker_id not in partition.isr:
        return partition
    return with_isr(partition, [replica for replica in partition.isr if replica != broker_id], controller)


def with_returned_broker(partition: Partition, controller: Controller) -> Partition:
    """Return the partition with a leader, if it had none and one of its in-sync or eligible replicas lives again."""
    if partition.leader is not None:
        return partition
    elected = _first_valid(partition.replicas, partition.elr or (), controller)
    isr = partition.isr or (() if elected is None else (elected,))
    return with_isr(partition, isr, controller)


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
        if broker_id in controller.cordoned:
            text = f"includes broker {broker_id}, but all its log directories are cordoned."
            return _invalid(f"The manual partition assignment {text}")
        if broker_id == previous:
            return _invalid(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        return _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return None


def _ended_if_complete(partition: Partition, isr: Replicas, controller: Controller) -> tuple[Partition, Replicas]:
    """Return the partition and its ISR without the removed replicas, where that ISR ends the reassignment."""
    kept_isr = tuple(replica for replica in isr if replica not in partition.removing_replicas)
    target = partition.target_replicas
    if not partition.is_reassigning or not kept_isr or not target:
        return partition, isr
    adding, removing = partition.adding_replicas, partition.removing_replicas
    is_complete = set(kept_isr).issuperset(target)
    if not controller.is_every_target_awaited:
        # A replica may be in the target and still be listed as added: see `reassigned` over a move in flight.
        is_complete = set(kept_isr).issuperset(adding) and (is_complete or len(adding) >= len(removing))
    if not is_complete:
        return partition, isr
    ended = replace(partition.on_replicas(target, new_size=0), adding_replicas=(), removing_replicas=())
    return ended, kept_isr


def _first_valid(order: Sequence[int | None], isr: Replicas, controller: Controller) -> int | None:
    return next((one for one in order if one in isr and one in controller.alive), None)


def _invalid(message: str) -> Denied:
    return Denied("INVALID_REPLICA_ASSIGNMENT", message)
