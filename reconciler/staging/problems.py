"""Finds the limits that a plan's stages break, and what could not be counted."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import nlargest
from itertools import chain
from typing import NamedTuple

import numpy as np

from reconciler.diff.rules import LEAVING
from reconciler.model.change import DeleteTopic, TopicChange, class_of, destruction
from reconciler.model.cluster import AUTO_REBALANCE, Broker, Cluster
from reconciler.model.desired import Desired, DesiredCluster, Limits, MovePolicy
from reconciler.model.disk_space import deleted_bytes
from reconciler.model.effect import EffectClass
from reconciler.model.loads import Loads
from reconciler.model.move import DirMove, Election
from reconciler.model.move_table import Moves
from reconciler.model.problem import (
    CHANGED_PARTITIONS,
    DELETED_BYTES,
    DELETED_TOPICS,
    DISK_USE,
    MOVED_BYTES,
    Problem,
    Severity,
    warning,
)
from reconciler.model.stage import ReassignStage, Stage
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, few, named_some, percent, rate, size
from reconciler.staging.disk import DiskUse
from reconciler.staging.estimate import ASSUMED_BYTES_PER_SECOND, Served, served_moves
from reconciler.staging.step import Situation

# So many names stand in a message; the whole list is in the plan's JSON.
# Left out in a rollback, which has no --only.
PLAN_FEWER = ", or plan fewer topics at once with --only"


class Overfull(NamedTuple):
    """A disk that holds more than it may: while something comes in, or in the end."""

    broker_id: int
    place: str  # " in /d1", in a sentence; empty for all disks of the broker
    filled: int  # bytes at the most while something comes in; 0 where nothing does
    end: int  # bytes in the end; 0 where nothing is to stay on the broker
    allowed: int
    total: int

    @property
    def excess(self) -> int:
        """The bytes that it holds too many."""
        return max(self.filled, self.end) - self.allowed


def overfull_disks(
    disk: DiskUse,
    desired: Desired,
    observed: Cluster,
    changes: Sequence[TopicChange],
    relieved: Collection[int] | None,
) -> Sequence[Overfull]:
    """Return the disks that the run fills beyond `limits.diskUse`, or leaves so; without one, beyond their size.

    The end counts on the `relieved` brokers that are to keep replicas. What the plan deletes is gone in the end.
    """
    limit, found = desired.cluster.limits.disk_use, []
    deleted = deleted_bytes(observed, [change.topic for change in changes if isinstance(change, DeleteTopic)])
    for broker_id, broker in sorted(observed.brokers.items()):
        is_leaving = desired.cluster.broker(broker_id).state in LEAVING or not observed.is_alive(broker_id)
        has_end = limit is not None and not is_leaving and (relieved is None or broker_id in relieved)
        for path, filled, held, allowed, total in _disks(disk, broker):
            end = held - deleted.get((broker_id, path), 0) if has_end else 0
            if max(filled, end) > allowed:
                name = path or (broker.log_dirs[0].path if len(broker.log_dirs) == 1 else "")
                found.append(Overfull(broker_id, f" in {name}" if name else "", filled, end, allowed, total))
    return found


def violations(moves: Moves, desired: Desired, observed: Cluster, full: Sequence[Overfull]) -> Iterator[Problem]:
    """Yield each limit that the plan goes over: its value, the limit, and the line to edit."""
    limits = desired.cluster.limits
    yield from _changed_partitions(moves, observed, limits)
    yield from _moved_bytes(moves, limits)
    if limits.disk_use is not None:
        yield from _overfull(full, limits)


def deletion_violations(changes: Sequence[TopicChange], cluster: DesiredCluster) -> Iterator[Problem]:
    """Yield each limit of deletion that the changes go over; a document with `state: absent` counts too."""
    deleted = sorted(change.topic for change in changes if isinstance(change, DeleteTopic))
    limits = cluster.limits
    if len(deleted) > limits.deleted_topics:
        written = "" if "deletedTopics" in limits.at else ", the default"
        message = (
            f"the plan deletes {len(deleted)} topics ({named_some(deleted, MANY)}) and limits.deletedTopics is"
            f" {limits.deleted_topics}{written}: bring back what declares them, or raise it if all of them are to go"
        )
        yield Problem(DELETED_TOPICS, message, limits.at.get("deletedTopics", cluster.at), Severity.VIOLATION)
    yield from _deleted_bytes(changes, limits)


def _deleted_bytes(changes: Sequence[TopicChange], limits: Limits) -> Iterator[Problem]:
    """Yield the violation of that limit; what cannot be counted is over it, or nothing would hold it back."""
    lost, most = destruction(changes), limits.deleted_bytes
    if lost is None or most is None or (lost.is_size_known and lost.bytes <= most):
        return
    names = sorted({change.topic for change in changes if class_of(change) is EffectClass.DESTROYS})
    of_topics = f"of {len(names)} topics ({named_some(names, MANY)})" if len(names) > 1 else f"of topic {names[0]}"
    limit = f"limits.deletedBytes is {size(most)}"
    if lost.bytes > most:
        more = "" if lost.is_size_known else " at least"
        message = f"the plan deletes{more} {size(lost.bytes)} ({lost.bytes} bytes) {of_topics} and {limit}"
        message += ": keep what is not to go, or raise it"
    else:
        message = (
            f"the plan deletes records {of_topics}, how many bytes is not known, and {limit}: keep what is not to go,"
            " plan where all sizes are told, or take the limit out"
        )
    yield Problem(DELETED_BYTES, message, limits.at.get("deletedBytes"), Severity.VIOLATION)


def warnings(
    moves: Moves,
    desired: Desired,
    situation: Situation,
    disk: DiskUse,
    destinations: Sequence[int],
    *,
    full: Sequence[Overfull],
    inside: Sequence[DirMove] = (),
) -> Iterator[Problem]:
    """Yield what the plan could not count, or cannot promise."""
    observed, limits = situation.observed, desired.cluster.limits
    copying = moves.part(np.flatnonzero(moves.copies > 0))
    is_copying = bool((copying.bytes.astype(bool) | ~copying.is_size_known).any())
    is_copying |= any(move.bytes or not move.is_size_known for move in inside)
    if is_copying and desired.cluster.moves.throttle_bytes_per_second is None:
        yield _no_throttle(sum(copying.bytes.tolist()) + sum(move.bytes for move in inside), desired.cluster)
    yield from _unknown_sizes(copying)
    yield from _unknown_disks([id_ for id_ in destinations if id_ not in disk.dirs], observed, limits)
    yield from _doubtful_log_dirs(disk, limits)
    yield from _lagging_kept(moves, situation)
    if limits.disk_use is None:
        yield from _overfull(full, limits)


def copies_above_limit(steps: Moves, policy: MovePolicy) -> Iterator[Problem]:
    """Yield a warning for the steps that copy more replicas of a partition at once than `perPartition` allows."""
    rows = np.flatnonzero(steps.copies > policy.per_partition)
    if not len(rows):
        return
    named = [f"{step.topic_partition}: {len(step.added)}" for step in steps.part(rows)]
    whose = "1 partition" if len(named) == 1 else f"{len(named)} partitions"
    message = (
        f"moves.perPartition is {policy.per_partition}, and more replicas of {whose} are copied at once"
        f" ({named_some(named, MANY)}): Kafka ends no reassignment to a replica that is dead, so all dead replicas of a"
        " partition are replaced together; start their brokers first, or lower moves.throttle to spare the leaders"
    )
    yield warning("KR883", message, policy.at.get("perPartition"))


def election_warnings(skipped: Sequence[Election], batches: int, observed: Cluster) -> Iterator[Problem]:
    """Yield what the plan cannot promise about leaders; `batches` counts its election requests."""
    for election in skipped:
        what = f"{election.topic_partition} is not given to its preferred leader {election.leader}"
        yield warning("KR815", f"{what}, which is not in sync: plan again once it is")
    switches = observed.in_force(AUTO_REBALANCE)
    if batches > 1 and (not switches or "true" in switches.values()):
        on = ", ".join(str(broker_id) for broker_id, switch in switches.items() if switch == "true")
        whose = f"brokers {on}, where {AUTO_REBALANCE} is on" if on else f"brokers with {AUTO_REBALANCE}, on by default"
        message = (
            f"{whose}, elect preferred leaders by themselves within minutes and will not wait for this plan's election"
            " batches; set it to false on brokers and controllers to keep the batches"
        )
        yield warning("KR814", message)


def _changed_partitions(moves: Moves, observed: Cluster, limits: Limits) -> Iterator[Problem]:
    limit = limits.changed_partitions
    changed, total = len(moves), sum(len(topic.partitions) for topic in observed.topics.values())
    most = limit * total if isinstance(limit, Fraction) else limit
    if limit is not None and most is not None and changed > most:
        shown = f"{percent(limit, digits=4)} ({int(most)})" if isinstance(limit, Fraction) else str(limit)
        told = f"the plan changes {changed} of {total} partitions and limits.changedPartitions is {shown}"
        at = limits.at.get("changedPartitions")
        yield Problem(CHANGED_PARTITIONS, f"{told}: raise it{PLAN_FEWER}", at, Severity.VIOLATION)


def _moved_bytes(moves: Moves, limits: Limits) -> Iterator[Problem]:
    copied = sum(moves.bytes.tolist())
    if limits.moved_bytes is not None and copied > limits.moved_bytes:
        most = size(limits.moved_bytes)
        message = (
            f"the plan copies {size(copied)} ({copied} bytes) and limits.movedBytes is {most}: raise it{PLAN_FEWER}"
        )
        yield Problem(MOVED_BYTES, message, limits.at.get("movedBytes"), Severity.VIOLATION)


def _overfull(full: Sequence[Overfull], limits: Limits) -> Iterator[Problem]:
    """Yield a problem for each disk that holds more than it may while something comes in, or in the end."""
    is_limited = limits.disk_use is not None
    code, severity = (DISK_USE, Severity.VIOLATION) if is_limited else ("KR816", Severity.WARNING)
    for one in full:
        is_filled = one.filled >= one.end
        when = " at the worst moment" if is_filled else " in the end"
        advice = "make room on it, or let fewer replicas go there" if is_filled else "make room on it, or raise it"
        message = (
            f"broker {one.broker_id} would hold {size(max(one.filled, one.end))} of {size(one.total)}{one.place}{when},"
            f" which is {size(one.excess)} ({one.excess} bytes) more than {_allowed_by(limits)}: {advice}"
        )
        yield Problem(code, message, limits.at.get("diskUse"), severity)


def _disks(disk: DiskUse, broker: Broker) -> Iterator[tuple[str | None, int, int, int, int]]:
    """Yield of each watched disk its path, None for all of the broker, and its bytes.

    These are the most while something comes in, in the end, at the most allowed, and in all.
    """
    if broker.id in disk.dirs:
        for one in disk.dirs[broker.id].dirs:
            yield one.path, one.filled, one.held, one.allowed, one.total
    elif broker.id in disk.allowed:
        filled, held = disk.filled.get(broker.id, 0), disk.held[broker.id]
        yield None, filled, held, disk.allowed[broker.id], broker.total_bytes or 0


def _allowed_by(limits: Limits) -> str:
    share = limits.disk_use
    return "its disks hold" if share is None else f"limits.diskUse {percent(share, digits=4)} allows"


def _doubtful_log_dirs(disk: DiskUse, limits: Limits) -> Iterator[Problem]:
    """Yield a warning for each log dir that may become too full if Kafka's choice is not the predicted one."""
    for broker_id, dirs in disk.dirs.items():
        for one in dirs.dirs:
            if one.filled <= one.allowed < one.doubtful:
                message = (
                    f"broker {broker_id} would hold at most {size(one.filled)} of {size(one.total)} in"
                    f" {one.path} as predicted, but {size(one.doubtful)}, more than {_allowed_by(limits)}, if the"
                    " largest new replicas went there: Kafka puts each into the log dir with the fewest logs, in an"
                    " order that nobody knows; let fewer arrive in one stage (moves.perStage), or copy with"
                    " Kafka's own tool and the dirs named (show -o kafka-json --log-dirs)"
                )
                yield warning("KR825", message, limits.at.get("diskUse"))


def _unknown_disks(destinations: Sequence[int], observed: Cluster, limits: Limits) -> Iterator[Problem]:
    """Yield a warning for brokers whose disks are of unknown size, and one where nobody knows what lies in which."""
    unknown = [id_ for id_ in destinations if id_ in observed.brokers and observed.brokers[id_].total_bytes is None]
    if limits.disk_use is not None and unknown:
        message = (
            f"the disk capacity of brokers {named_some(unknown, MANY)} is unknown, so limits.diskUse is not checked"
            " there: brokers from Kafka 3.3 on tell it"
        )
        yield warning("KR813", message, limits.at.get("diskUse"))
    several = [id_ for id_ in destinations if len(observed.brokers[id_].log_dirs) > 1]
    if limits.disk_use is not None and several:
        message = (
            f"what lies in which log dir of brokers {named_some(several, MANY)} is unknown, so limits.diskUse is"
            " checked for all of a broker's dirs together; a snapshot of the live cluster tells it"
        )
        yield warning("KR826", message, limits.at.get("diskUse"))


def _no_throttle(copied: int, cluster: DesiredCluster) -> Problem:
    message = (
        f"moves.throttle is not set: {size(copied)} will be copied as fast as the brokers can, beside their clients'"
        f" traffic (estimates assume {rate(ASSUMED_BYTES_PER_SECOND)}); set moves.throttle, 50MiB/s for example"
    )
    return warning("KR811", message, cluster.moves.at.get("throttle") or cluster.at)


def _unknown_sizes(copying: Moves) -> Iterator[Problem]:
    unknown = [*map(str, copying.part(np.flatnonzero(~copying.is_size_known)).topic_partitions())]
    if unknown:
        message = (
            f"the size of {len(unknown)} of {len(copying)} partitions to copy is unknown ({named_some(unknown, MANY)}):"
            " bytes, times and disk use are at least what is shown; give the snapshot sizes to know them"
        )
        yield warning("KR812", message)


def _lagging_kept(moves: Moves, situation: Situation) -> Iterator[Problem]:
    """Yield a warning for the moves that keep a replica out of sync where a living one in sync goes."""
    table = table_of(situation.observed)
    if not table.lagging.any():
        return None
    rows = moves.rows_in(table)
    is_lagging = (rows >= 0) & np.any(table.lagging, axis=1)[rows]
    told = []
    for move in moves.part(np.flatnonzero(is_lagging)):
        partition = situation.partition(move.topic_partition)
        kept = [str(id_) for id_ in sorted(partition.lagging.intersection(move.to_replicas))]
        gone = [str(id_) for id_ in sorted(situation.alive.intersection(partition.isr).difference(move.to_replicas))]
        if kept and gone:
            told.append(f"{move.topic_partition} keeps {', '.join(kept)}, drops {', '.join(gone)}")
    if told:
        count = "1 partition keeps a replica" if len(told) == 1 else f"{len(told)} partitions keep replicas"
        message = (
            f"{count} out of sync where one in sync goes ({named_some(told, MANY, '; ')}), as the rules, the fewest"
            " bytes or even counts ask: Kafka ends such a change only once what stays is in sync, and apply waits for"
            " it as long as moves.timeout says; see to these brokers first, or plan again once they are in sync"
        )
        yield warning("KR829", message)


def by_code(*problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems sorted by code, then text."""
    return tuple(sorted(chain(*problems), key=lambda problem: (problem.code, problem.message)))


TOO_SLOW, NOT_MEASURED = "KR414", "KR828"


def throttle_violations(
    stages: Sequence[Stage], observed: Cluster, policy: MovePolicy, loads: Loads
) -> tuple[Problem, ...]:
    """Return a violation for each stage that could never end: a broker must take in, or send, what its throttle allows.

    A new replica is held back until it is in sync, and so is what is written meanwhile (Kafka's documentation,
    "Limiting bandwidth usage during data migration"). Only measured rates count.
    """
    return tuple(
        problem
        for stage, served in served_moves(stages, observed).by_stage(stages)
        if stage.throttle_bytes_per_second is not None
        for problem in _of_stage(stage.number, stage.throttle_bytes_per_second, served, policy, loads)
    )


def throttle_warnings(stages: Sequence[Stage], policy: MovePolicy, loads: Loads) -> tuple[Problem, ...]:
    """Return a warning where partitions are copied under a throttle whose rates the loads do not have."""
    throttled = [s for s in stages if isinstance(s, ReassignStage) and s.throttle_bytes_per_second is not None]
    copied = sorted({move.topic_partition for stage in throttled for move in stage.moves if move.added})
    unknown = [str(key) for key in copied if _bytes_in(loads, key) is None]
    if not unknown:
        return ()
    names = few(unknown)
    message = (
        f"what producers write into {len(unknown)} of {len(copied)} partitions to copy is not measured ({names}): a"
        " throttle at or below it would never let them end; apply tells it when they come no closer"
    )
    return (warning(NOT_MEASURED, message, policy.at.get("throttle")),)


def _of_stage(number: int, throttle: int, served: Served, policy: MovePolicy, loads: Loads) -> Iterator[Problem]:
    incoming: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for move, source in served:
        # Kafka throttles no replica that is in sync (KIP-73): only what new ones fetch passes the throttle.
        written = _bytes_in(loads, move.topic_partition) or 0
        for broker in move.added:
            incoming["take in", broker].append(written)
        if source is not None:
            incoming["send", source] += [written] * len(move.added)
    # So many of them are in flight at once, and these may be the busiest.
    at_once = {slot: sum(nlargest(policy.per_broker, rates)) for slot, rates in incoming.items()}
    worst = max(at_once.items(), key=lambda item: (item[1], item[0]), default=None)
    if worst is not None and worst[1] >= throttle:
        (verb, broker), needed = worst
        message = (
            f"stage {number} would never end: beside the copy, broker {broker} has to {verb} {rate(needed)}"
            f" ({needed} bytes a second) that producers write into the partitions on the move, and moves.throttle is"
            f" {rate(throttle)}: raise it, or let fewer replicas move at once (moves.perBroker)"
        )
        yield Problem(TOO_SLOW, message, policy.at.get("throttle"), Severity.VIOLATION)


def _bytes_in(loads: Loads, key: TopicPartition) -> int | None:
    return loads.of[key].bytes_in if key in loads.of else None
