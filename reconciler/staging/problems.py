"""What a reader of the plan must know of its stages: limits gone over, and what could not be counted."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Limits
from reconciler.model.move import Election, Move
from reconciler.model.problem import Location, Problem, Severity
from reconciler.staging.disk import DiskUse, capacity
from reconciler.staging.estimate import ASSUMED_BYTES_PER_SECOND
from reconciler.staging.situation import Situation
from reconciler.staging.units import percent_text, size_text

AUTO_REBALANCE = "auto.leader.rebalance.enable"
SHOWN = 10


def violations(
    moves: Sequence[Move], desired: Desired, observed: Cluster, disk: DiskUse, destinations: Iterable[int]
) -> tuple[Problem, ...]:
    """Return each limit that the plan goes over: its value, the limit, and the line to edit."""
    limits = desired.cluster.limits
    found = [_changed_partitions(moves, observed, limits), _moved_bytes(moves, limits)]
    if limits.disk_use is not None:
        found += list(_overfull(disk, sorted(destinations), observed, limits))
    return tuple(problem for problem in found if problem)


def warnings(
    moves: Sequence[Move],
    desired: Desired,
    situation: Situation,
    disk: DiskUse,
    destinations: Sequence[int],
) -> tuple[Problem, ...]:
    """Return what the plan could not count, or cannot promise."""
    observed, limits = situation.observed, desired.cluster.limits
    copying = [move for move in moves if move.added]
    found = [
        _no_throttle(copying, desired),
        _unknown_sizes(copying),
        _unknown_capacity(destinations, observed, limits),
        *_leaderless(moves, situation),
    ]
    if limits.disk_use is None:
        found += list(_overfull(disk, sorted(destinations), observed, limits))
    return tuple(problem for problem in found if problem)


def election_warnings(skipped: Sequence[Election], batches: int, observed: Cluster) -> tuple[Problem, ...]:
    """Return what the plan cannot promise about leaders; `batches` counts its election requests."""
    found = [_not_in_sync(election) for election in skipped]
    switches = [broker.configs.get(AUTO_REBALANCE) for broker in observed.brokers.values()]
    if batches > 1 and "false" not in switches:
        message = (
            f"brokers with {AUTO_REBALANCE}, which is on by default, elect preferred leaders by themselves within"
            " minutes and will not wait for this plan's election batches; set it to false on them to keep the batches"
        )
        found.append(_warning("KR814", message))
    return tuple(found)


def _warning(code: str, message: str, at: Location | None = None) -> Problem:
    return Problem(code, message, at, Severity.WARNING)


def _changed_partitions(moves: Sequence[Move], observed: Cluster, limits: Limits) -> Problem | None:
    limit = limits.changed_partitions
    if limit is None:
        return None
    changed, total = len(moves), sum(len(topic.partitions) for topic in observed.topics.values())
    most = limit * total if isinstance(limit, Fraction) else limit
    if changed <= most:
        return None
    shown = f"{percent_text(limit)} ({int(most)})" if isinstance(limit, Fraction) else str(limit)
    message = (
        f"the plan changes {changed} of {total} partitions and limits.changedPartitions is {shown}:"
        " raise it, or plan fewer topics at once with --only"
    )
    return Problem("KR411", message, limits.at.get("changedPartitions"), Severity.VIOLATION)


def _moved_bytes(moves: Sequence[Move], limits: Limits) -> Problem | None:
    copied = sum(move.bytes for move in moves)
    if limits.moved_bytes is None or copied <= limits.moved_bytes:
        return None
    message = (
        f"the plan copies {size_text(copied)} ({copied} bytes) and limits.movedBytes is"
        f" {size_text(limits.moved_bytes)}: raise it, or plan fewer topics at once with --only"
    )
    return Problem("KR412", message, limits.at.get("movedBytes"), Severity.VIOLATION)


def _overfull(disk: DiskUse, destinations: Sequence[int], observed: Cluster, limits: Limits) -> Iterator[Problem]:
    """Yield a problem for each receiving broker that at some moment holds more than its disks allow."""
    is_limited = limits.disk_use is not None
    code, severity = ("KR413", Severity.VIOLATION) if is_limited else ("KR816", Severity.WARNING)
    what = "its disks hold" if limits.disk_use is None else f"limits.diskUse {percent_text(limits.disk_use)} allows"
    for broker_id in destinations:
        allowed, peak = disk.allowed.get(broker_id), disk.peak.get(broker_id, 0)
        if allowed is None or peak <= allowed:
            continue
        total = capacity(observed.brokers[broker_id]) or 0
        message = (
            f"broker {broker_id} would hold {size_text(peak)} of {size_text(total)} at the worst moment, which is"
            f" {size_text(peak - allowed)} ({peak - allowed} bytes) more than {what}:"
            " make room on it, or let fewer replicas go there"
        )
        yield Problem(code, message, limits.at.get("diskUse"), severity)


def _no_throttle(copying: Sequence[Move], desired: Desired) -> Problem | None:
    if not copying or desired.cluster.moves.throttle_bytes_per_second is not None:
        return None
    if not any(move.bytes or not move.is_size_known for move in copying):
        return None
    message = (
        f"moves.throttle is not set: {size_text(sum(move.bytes for move in copying))} will be copied as fast as the"
        f" brokers can, beside their clients' traffic (estimates assume {size_text(ASSUMED_BYTES_PER_SECOND)}/s);"
        " set moves.throttle, 50MiB/s for example"
    )
    return _warning("KR811", message, desired.cluster.moves.at.get("throttle") or desired.cluster.at)


def _unknown_sizes(copying: Sequence[Move]) -> Problem | None:
    unknown = [str(move.topic_partition) for move in copying if not move.is_size_known]
    if not unknown:
        return None
    message = (
        f"the size of {len(unknown)} of {len(copying)} partitions to copy is unknown ({_some(unknown)}):"
        " bytes, times and disk use are at least what is shown; give the snapshot sizes to know them"
    )
    return _warning("KR812", message)


def _unknown_capacity(destinations: Sequence[int], observed: Cluster, limits: Limits) -> Problem | None:
    if limits.disk_use is None:
        return None
    unknown = [str(id_) for id_ in sorted(destinations) if (b := observed.brokers.get(id_)) and capacity(b) is None]
    if not unknown:
        return None
    message = (
        f"the disk capacity of brokers {_some(unknown)} is unknown, so limits.diskUse is not checked there:"
        " brokers from Kafka 3.3 on tell it"
    )
    return _warning("KR813", message, limits.at.get("diskUse"))


def _not_in_sync(election: Election) -> Problem:
    message = (
        f"{election.topic_partition} is not given to its preferred leader {election.leader}, which is not in sync:"
        " plan again once it is"
    )
    return _warning("KR815", message)


def _leaderless(moves: Sequence[Move], situation: Situation) -> Iterator[Problem]:
    """Yield one warning for the copies that nobody can serve."""
    without = [
        str(move.topic_partition)
        for move in moves
        if move.added and situation.partition(move.topic_partition).leader is None
    ]
    if without:
        message = (
            f"{len(without)} partitions to copy have no leader ({_some(without)}): their moves cannot end before"
            " one of their in-sync replicas is back; start its broker first"
        )
        yield _warning("KR817", message)


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def by_code(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems sorted by code, then text."""
    return tuple(sorted(problems, key=lambda problem: (problem.code, problem.message)))
