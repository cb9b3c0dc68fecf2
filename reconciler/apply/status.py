"""Where a run stands now, as the cluster tells it; the journal only adds when bytes were last counted."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from reconciler.admin.port import Admin
from reconciler.apply.checks import MIN_ISR, is_stage_done, min_isr_of
from reconciler.apply.course import Itinerary, itinerary
from reconciler.apply.observed import Observed
from reconciler.apply.progress import copied_bytes
from reconciler.apply.throttles import throttle_keys
from reconciler.apply.withdraw import moves_under_way
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.run import RunEvent
from reconciler.model.status import MoveStatus, Status
from reconciler.model.topic_partition import TopicPartition

K = TypeVar("K", int, str)


def run_status(
    plan: Plan | None, admin: Admin, journal_events: Sequence[RunEvent] = (), *, previous: Status | None = None
) -> Status:
    """Return where a run stands; with the status before it, also how fast it goes. Changes nothing."""
    cluster = admin.observe()
    observed = Observed(
        topics=cluster.topics,
        reassignments=admin.reassignments(),
        brokers=cluster.brokers,
        configs={name: topic.configs for name, topic in cluster.topics.items()},
    )
    course = itinerary(plan) if plan is not None else None
    moves = moves_under_way(course, observed) if course is not None else ()
    sizes = admin.replica_bytes([move.topic_partition for move in moves]) if moves else {}
    undone = _undone(course, observed)
    now = admin.clock.now()
    statuses = tuple(MoveStatus(move, copied_bytes(move, sizes)) for move in moves)
    rate = _rate(previous, statuses, now)
    left = sum(status.move.bytes - status.copied_bytes for status in statuses)
    ours = {move.topic_partition for move in moves}
    blocking = blocking_partitions(cluster)
    return Status(
        time=now,
        plan_id=plan.id if plan else None,
        stage=undone[0] if undone else None,
        stages=len(plan.stages) if plan else 0,
        stages_done=len(plan.stages) - len(undone) if plan else 0,
        moves=statuses,
        bytes_per_second=rate,
        eta_seconds=max(0, left) / rate if rate else None,
        broker_throttles=_set_now({broker.id: broker.configs for broker in cluster.brokers.values()}),
        topic_throttles=_set_now({name: topic.configs for name, topic in cluster.topics.items()}),
        foreign={key: one.target_replicas for key, one in sorted(observed.reassignments.items()) if key not in ours},
        safe_to_stop=tuple(b for b in sorted(cluster.brokers) if cluster.is_alive(b) and b not in blocking),
        blocking=blocking,
        last_event=journal_events[-1] if journal_events else None,
    )


def blocking_partitions(cluster: Cluster) -> Mapping[int, tuple[TopicPartition, ...]]:
    """Return, for each broker, the partitions that would be under min ISR, or more so, were it to stop."""
    found: dict[int, list[TopicPartition]] = {}
    for key, partition in cluster.partitions():
        wanted = min_isr_of(partition, cluster.topics[key.topic].configs.get(MIN_ISR))
        if len(partition.isr) <= wanted:
            for broker in partition.isr:
                found.setdefault(broker, []).append(key)
    return {broker: tuple(found[broker]) for broker in sorted(found)}


def _undone(course: Itinerary | None, observed: Observed) -> list[int]:
    stages = course.plan.stages if course else ()
    return [stage.number for stage in stages if course and not is_stage_done(course, stage, observed)]


def _rate(previous: Status | None, statuses: Sequence[MoveStatus], now: datetime) -> float | None:
    """Return the bytes per second since the status before, over the moves in flight in both."""
    if previous is None or now <= previous.time:
        return None
    before = {status.move.topic_partition: status.copied_bytes for status in previous.moves}
    both = [status for status in statuses if status.move.topic_partition in before]
    copied = sum(status.copied_bytes - before[status.move.topic_partition] for status in both)
    return max(0.0, copied / (now - previous.time).total_seconds()) if both else None


def _set_now(configs: Mapping[K, Mapping[str, str]]) -> Mapping[K, Mapping[str, str]]:
    found = {key: throttle_keys(configs[key]) for key in sorted(configs)}
    return {key: keys for key, keys in found.items() if keys}
