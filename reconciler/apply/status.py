"""Where a run stands now, as the cluster tells it; the journal only adds when bytes were last counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from reconciler.admin.port import Admin, Reassignment
from reconciler.apply.checks import is_stage_done
from reconciler.apply.course import Itinerary, itinerary
from reconciler.apply.known import is_open
from reconciler.apply.observed import Observed
from reconciler.apply.progress import copied_bytes
from reconciler.apply.throttles import throttle_keys
from reconciler.apply.withdraw import moves_under_way
from reconciler.model.cluster import Cluster
from reconciler.model.in_sync import MIN_ISR, blocking_partitions, brokers_min_isr
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight
from reconciler.model.run import RunEvent
from reconciler.model.starting import start_order
from reconciler.model.status import MoveStatus, Status
from reconciler.model.topic_partition import TopicPartition

K = TypeVar("K", int, str)


@dataclass(slots=True)
class Watcher:
    """Looks at one cluster, again and again: what cannot change much is read once, all that a run changes each time."""

    plan: Plan | None
    admin: Admin
    cluster: Cluster | None = None
    min_isr: int = 1
    previous: Status | None = None

    def look(self, journal_events: Sequence[RunEvent] = ()) -> Status:
        """Return where the run stands; from the second look on, also how fast it goes. Changes nothing."""
        flights = self.admin.reassignments()
        cluster = self.cluster = self._first() if self.cluster is None else self._again(self.cluster)
        self.previous = _status(
            self.plan,
            self.admin,
            _Seen(cluster, flights, self.min_isr, *_holder(self.admin)),
            journal_events,
            self.previous,
        )
        return self.previous

    def _first(self) -> Cluster:
        cluster = self.admin.observe()
        alive = [broker for broker in cluster.brokers if cluster.is_alive(broker)]
        self.min_isr = brokers_min_isr(cluster, self.admin.broker_settings(alive, [MIN_ISR]))
        return cluster

    def _again(self, known: Cluster) -> Cluster:
        """Return the cluster with brokers, partitions, rates, and configs of the plan's topics as they are now."""
        brokers = self.admin.brokers()
        rates = self.admin.broker_configs([broker.id for broker in brokers.values() if not broker.is_fenced])
        planned = itinerary(self.plan).topics if self.plan is not None else frozenset()
        topics = self.admin.topics({*known.topics, *planned})
        if any(partition.leader is None for topic in topics.values() for partition in topic.partitions):
            topics = self.admin.with_eligible_leaders(topics)
        configs = self.admin.topic_configs(sorted(planned & topics.keys()))
        kept = {**{name: topic.configs for name, topic in known.topics.items()}, **configs}
        return replace(
            known,
            brokers={one.id: replace(one, configs=rates.get(one.id, {})) for one in brokers.values()},
            topics={name: replace(topic, configs=kept.get(name, {})) for name, topic in topics.items()},
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    cluster: Cluster
    flights: Mapping[TopicPartition, Reassignment]
    min_isr: int
    holder: str | None
    is_lock_told: bool


def run_status(
    plan: Plan | None, admin: Admin, journal_events: Sequence[RunEvent] = (), *, previous: Status | None = None
) -> Status:
    """Return where a run stands; with the status before it, also how fast it goes. Changes nothing."""
    return Watcher(plan, admin, previous=previous).look(journal_events)


def _status(
    plan: Plan | None, admin: Admin, seen: _Seen, journal_events: Sequence[RunEvent], previous: Status | None
) -> Status:
    cluster = seen.cluster
    observed = Observed(
        topics=cluster.topics,
        reassignments=seen.flights,
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
    blocking = blocking_partitions(cluster, seen.min_isr)
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
        start=start_order(cluster, seen.min_isr),
        last_event=journal_events[-1] if journal_events else None,
        is_open=is_open(journal_events),
        holder=seen.holder,
        is_lock_told=seen.is_lock_told,
    )


def _holder(admin: Admin) -> tuple[str | None, bool]:
    """Return who holds the lock, in words, None where nobody does; and whether this user may see that."""
    try:
        holder = admin.lock_holder()
    except MissingRight:
        return None, False
    return (str(holder) if holder is not None else None), True


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
