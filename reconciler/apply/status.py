"""Computes where a run stands now, as the cluster tells it; the journal only adds when bytes were last counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from reconciler.admin.port import Admin
from reconciler.apply.dir_moves import copied_inside, dir_moves_under_way
from reconciler.apply.journal import recorded
from reconciler.apply.leftovers import known_run
from reconciler.apply.observed import Observed, disks_of, replaced_topics
from reconciler.apply.partition_path import paths_of
from reconciler.apply.progress import LOG_INTERVAL, copied_bytes
from reconciler.apply.run_record import RunRecord
from reconciler.apply.standings import moves_under_way, stages_done, tally
from reconciler.apply.throttles import throttle_keys
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.in_sync import MIN_ISR, blocking_partitions, brokers_min_isr
from reconciler.model.move import DirMove
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import Outcome, RunEvent
from reconciler.model.stage import CopyingStage
from reconciler.model.starting import start_order
from reconciler.model.status import DirMoveStatus, LastEvent, MoveStatus, Status
from reconciler.model.tally import ARRIVED, Standing, Tally
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Quorum
from reconciler.model.words import owner_name

K = TypeVar("K", int, str)
S = TypeVar("S", MoveStatus, DirMoveStatus)


@dataclass(slots=True)
class Watcher:
    """Looks at one cluster, again and again: what cannot change much is read once, all that a run changes each time."""

    plan: Plan | None
    admin: Admin
    cluster: Cluster | None = None
    min_isr: int = 1
    previous: Status | None = None
    record: RunRecord | None = None
    cluster_name: str | None = None

    def look(self, journal_events: Sequence[RunEvent] = ()) -> Status:
        """Return where the run stands; from the second look on, also how fast it goes. Changes nothing."""
        # The controller's list comes first: what it no longer lists, the later metadata may already show.
        flights = self.admin.reassignments()
        cluster = self.cluster = self._first() if self.cluster is None else self._again(self.cluster)
        plan, record = self.plan, self.record
        if plan is None or record is None or record.plan_id != plan.id:
            record = None
        locked_by, is_lock_told = _locked_by(self.admin)
        observed = Observed(
            topics=cluster.topics,
            reassignments=flights,
            brokers=cluster.brokers,
            configs={name: topic.configs for name, topic in cluster.topics.items()},
        )
        if plan is not None:
            observed = observed.without(replaced_topics(cluster.topics, plan.topic_ids))
        paths = paths_of(plan) if plan is not None else None
        if paths is not None:
            observed = replace(observed, disks=disks_of(self.admin, cluster.brokers, paths.dir_moves))
        moves = moves_under_way(paths, observed) if paths is not None else ()
        inside = dir_moves_under_way(paths, observed) if paths is not None else ()
        alive = [broker for broker in sorted(cluster.brokers) if cluster.is_alive(broker)]
        sizes = self.admin.disks(alive, [move.topic_partition for move in moves]).replica_bytes if moves else {}
        done = stages_done(paths, _as_if_alive(observed)) if paths is not None else 0
        known = tally(paths, observed) if paths is not None else None
        now = self.admin.clock.now()
        statuses = _with_rates(self.previous, [MoveStatus(move, copied_bytes(move, sizes)) for move in moves], now)
        copies = [DirMoveStatus(move, copied_inside(move, observed)) for move in inside]
        dir_statuses = _with_rates(self.previous, copies, now)
        all_of_them: tuple[MoveStatus | DirMoveStatus, ...] = (*statuses, *dir_statuses)
        rate = _rate(all_of_them) if self.previous is not None else _told_rate(journal_events, now)
        left = sum(status.remaining_bytes for status in all_of_them)
        ours = {move.topic_partition for move in moves}
        blocking = blocking_partitions(cluster, self.min_isr)
        self.previous = Status(
            cluster_name=self.cluster_name or cluster.cluster_id,
            time=now,
            plan_id=plan.id if plan else None,
            stage=plan.stages[done].number if plan and done < len(plan.stages) else None,
            stages=len(plan.stages) if plan else 0,
            stages_done=done,
            moves=statuses,
            dir_moves=dir_statuses,
            bytes_per_second=rate,
            eta_seconds=left / rate if rate else None,
            broker_throttles=_set_now({broker.id: broker.configs for broker in cluster.brokers.values()}),
            topic_throttles=_set_now(observed.configs),
            foreign={key: one.target_replicas for key, one in sorted(flights.items()) if key not in ours},
            safe_to_stop=tuple(broker for broker in alive if broker not in blocking),
            blocking=blocking,
            start=start_order(cluster, self.min_isr),
            quorum=_quorum(self.admin),
            last_event=_last_event(journal_events),
            is_open=recorded(journal_events).is_open,
            locked_by=locked_by,
            is_lock_told=is_lock_told,
            tally=known,
            leftovers=_leftovers(plan, observed, journal_events, record),
            undoes=plan.source.rolls_back if plan else None,
            is_rolled_back=_is_rolled_back(plan, known, journal_events),
            started_by=record.started_by if record is not None else None,
            started_at=record.by.since if record is not None else None,
            throttle_bytes_per_second=record.rate if record is not None else None,
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
        planned = paths_of(self.plan).topics if self.plan is not None else frozenset()
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


def _as_if_alive(observed: Observed) -> Observed:
    """Return the look as if dead brokers were in sync and led what they are to lead.

    A run that has ended stays done when a broker dies afterwards.
    """
    alive = {broker for broker in observed.brokers if observed.is_alive(broker)}

    def seen(partition: Partition) -> Partition:
        isr = tuple(one for one in partition.replicas if one in partition.isr or one not in alive)
        first = partition.preferred_leader
        return replace(partition, isr=isr, leader=partition.leader if first in alive else first)

    topics = {
        name: replace(topic, partitions=tuple(map(seen, topic.partitions))) for name, topic in observed.topics.items()
    }
    return replace(observed, topics=topics)


def _last_event(events: Sequence[RunEvent]) -> LastEvent | None:
    return LastEvent(events[-1].time, events[-1].step, events[-1].outcome) if events else None


def _leftovers(
    plan: Plan | None, observed: Observed, events: Sequence[RunEvent], record: RunRecord | None
) -> tuple[str, ...]:
    """Return what the run has left, in words; a broker that is down may keep a rate of it."""
    if plan is None:
        return ()
    known = known_run(plan, events, observed, record)
    on = (f"{owner_name(owner)} {key}" for owner, key in known.throttles)
    return (*on, *(f"{owner_name(broker)}, which is down" for broker in known.unrestored))


def _is_rolled_back(plan: Plan | None, known: Tally | None, events: Sequence[RunEvent]) -> bool:
    """Whether moves were done, as the journal tells, and are not any more."""
    moving = {stage.number for stage in plan.stages if isinstance(stage, CopyingStage)} if plan else set()
    were_done = any(one.step == "stage" and one.outcome is Outcome.DONE and one.stage in moving for one in events)
    return were_done and known is not None and not known.of(*ARRIVED, Standing.IN_FLIGHT)


def _locked_by(admin: Admin) -> tuple[str | None, bool]:
    """Return who holds the lock, in words, None where nobody does; and whether this user may see that."""
    try:
        holder = admin.lock_holder()
    except (MissingRight, ClusterUnavailable):  # a coordinator that is silent hides nothing of the run
        return None, False
    return (str(holder) if holder is not None else None), True


def _quorum(admin: Admin) -> Quorum | None:
    try:
        return admin.quorum()
    except (MissingRight, ClusterUnavailable):  # what the controllers do hides nothing of the run
        return None


def _with_rates(previous: Status | None, statuses: Sequence[S], now: datetime) -> tuple[S, ...]:
    """Return the moves with their bytes per second since the status before, for those in flight in both."""
    if previous is None or now <= previous.time:
        return tuple(statuses)
    seconds = (now - previous.time).total_seconds()
    before = {_moving(status): status.copied_bytes for status in previous.in_flight}

    def rate(status: S) -> float | None:
        known = before.get(_moving(status))
        return None if known is None else max(0.0, (status.copied_bytes - known) / seconds)

    return tuple(replace(status, bytes_per_second=rate(status)) for status in statuses)


def _moving(status: MoveStatus | DirMoveStatus) -> tuple[TopicPartition, int | None]:
    return status.move.topic_partition, status.move.broker if isinstance(status.move, DirMove) else None


def _rate(statuses: Sequence[MoveStatus | DirMoveStatus]) -> float | None:
    """Return the bytes per second of all moves whose rate is known."""
    rates = [status.bytes_per_second for status in statuses if status.bytes_per_second is not None]
    return sum(rates) if rates else None


def _told_rate(events: Sequence[RunEvent], now: datetime) -> float | None:
    """Return the bytes per second that the journal told of last, None where that is long ago."""
    told = [one for one in events if one.step == "progress" and now - one.time <= 2 * LOG_INTERVAL]
    found = told[-1].detail.get("bytesPerSecond") if told else None
    return float(found) if type(found) is int and 0 <= found < 2**63 else None


def _set_now(configs: Mapping[K, Mapping[str, str]]) -> Mapping[K, Mapping[str, str]]:
    found = {key: throttle_keys(configs[key]) for key in sorted(configs)}
    return {key: keys for key, keys in found.items() if keys}
