"""Explains one partition in sentences: what happens, why, why these brokers, and why nothing cheaper."""

from collections.abc import Iterable, Iterator

from reconciler.model.explanation import (
    Added,
    Alternative,
    Cause,
    Counts,
    Explanation,
    Judgement,
    NewLeader,
    Removed,
    StepOfPartition,
)
from reconciler.model.move import Reason
from reconciler.model.words import listed, number, size
from reconciler.render.escape import visible
from reconciler.render.facts import place, replica_list

_LABEL = 20
_CAUSES = {
    Cause.DEAD: "it is not alive",
    Cause.DRAINING: "it is declared draining",
    Cause.ABSENT: "it is declared absent",
    Cause.NOT_ALLOWED: "the topic's placement does not allow it",
    Cause.ASSIGNMENT: "placement.assignment does not name it",
    Cause.FEWER_REPLICAS: "one replica less is wanted",
    Cause.RACKS: "its rack would hold too many",
    Cause.BALANCE: "balance takes a replica from it",
}


def explanation(found: Explanation, *, root: str = "") -> str:
    """Return the explanation, one label a line."""
    if not found.steps:
        return f"{found.topic_partition}   not touched by this plan\n"
    lines = [_head(found)]
    rows = list(_rows(found, root))
    lines += [f"  {label:<{_LABEL}}{visible(words)}" for label, words in rows]
    return "\n".join(lines) + "\n"


def _head(found: Explanation) -> str:
    lists = replica_list(found.after)
    if found.before != found.after:
        lists = f"{replica_list(found.before)} -> {lists}" if found.before else f"new: {lists}"
    data = _data(found) if any(step.added for step in found.steps) else "no data"
    return f"{visible(str(found.topic_partition))}   {lists}   {data}"


def _data(found: Explanation) -> str:
    return size(found.bytes) if found.is_size_known else "size unknown"


def _rows(found: Explanation, root: str) -> Iterator[tuple[str, str]]:
    for step in found.steps:
        yield f"stage {step.stage}", _step(step)
    if found.reason is not None:
        where = "" if found.reason is Reason.DEAD_BROKER else place(found.at, root)
        yield "why", f"{_why(found)}{f' ({where})' if where else ''}"
    for added in found.added:
        yield from _added_rows(found, added)
    for removed in found.removed:
        yield f"why not broker {removed.broker_id}", _removed(removed)
    if found.leader is not None:
        yield f"why leader {found.leader.new}", _leader(found.leader)
    if found.is_least and found.bytes:
        yield "why not less", "no plan that keeps the rules and the balance copies less in all; show --prove checks it"


def _step(step: StepOfPartition) -> str:
    if step.elected is not None:
        by_then = f"broker {step.source} leads by then" if step.source is not None else "nobody leads by then"
        return f"broker {step.elected}, the preferred leader, is elected; {by_then}"
    if step.log_dirs:
        return ", ".join(f"from {one.from_dir} to {one.to_dir} on broker {one.broker}" for one in step.log_dirs)
    if step.is_created:
        return f"created on {replica_list(step.to_replicas)}"
    parts = []
    if step.added:
        source = f"leader {step.source}" if step.source is not None else "whoever leads once one of its brokers is back"
        parts.append(f"copied from {source} to {_brokers(step.added)}")
    if step.removed:
        parts.append(f"dropped from {_brokers(step.removed)}")
    return ", then ".join(parts) or f"reordered to {replica_list(step.to_replicas)}"


def _why(found: Explanation) -> str:
    leaving = [one.broker_id for one in found.removed if one.cause in {Cause.DRAINING, Cause.ABSENT, Cause.DEAD}]
    barred = [one.broker_id for one in found.removed if one.cause is Cause.NOT_ALLOWED]
    words = {
        Reason.ASSIGNMENT: "placement.assignment names these replicas",
        Reason.DRAINING: f"{_brokers(leaving) or 'a broker of it'} {_is(leaving)} to be emptied",
        Reason.REPLICATION_FACTOR: f"replicationFactor {len(found.before)} -> {len(found.after)}",
        Reason.RACKS: "its replicas do not stand in racks as the rules ask",
        Reason.ELIGIBILITY: f"{_brokers(barred) or 'a broker of it'} may not hold it",
        Reason.DEAD_BROKER: f"{_brokers(leaving) or 'a broker of it'} {_is(leaving)} not alive",
        Reason.BALANCE: "balance of replicas",
        Reason.LEADERS: "who is to lead it",
        Reason.NEW_PARTITION: "a new partition",
        Reason.LOG_DIRS: "balance of log dirs",
    }
    return words[found.reason] if found.reason is not None else ""


def _added_rows(found: Explanation, added: Added) -> Iterator[tuple[str, str]]:
    parts = [f"in place of broker {added.in_place_of}"] if added.in_place_of is not None else []
    if added.full:
        taken = [f"{rack or 'none'} ({_brokers(held)})" for rack, held in added.full]
        hold = "hold all they may" if len(taken) > 1 else "holds all it may"
        parts.append(f"rack{'s' if len(taken) > 1 else ''} {listed(taken)} {hold}")
    in_rack = f"in rack {added.rack} " if added.rack else ""
    parts.append(f"{in_rack}it holds {_counts(added.counts)}")
    yield f"why broker {added.broker_id}", "; ".join(parts)
    for other in added.alternatives:
        yield "", _alternative(found, added, other)
    if added.others:
        yield "", f"{number(added.others)} more brokers could take it, none of them for less"
    if added.barred:
        yield "", f"may not take it: {listed(f'broker {one.broker_id} ({one.why})' for one in added.barred)}"
    if not added.alternatives and not added.others and found.reason is not Reason.ASSIGNMENT:
        yield "", "no other broker may take it, all else as planned"
    yield from _instead(found, added)


def _instead(found: Explanation, added: Added) -> Iterator[tuple[str, str]]:
    other = added.instead
    if other is not None and other.bytes * len(found.added) >= found.bytes:
        way = f"from broker {added.in_place_of} to broker {added.broker_id}"
        smallest = f"{other.topic_partition}, {size(other.bytes)}"
        yield "why this partition", f"of those that stay, the smallest that could go {way} is {smallest}"


def _alternative(found: Explanation, added: Added, other: Alternative) -> str:
    holds = f"holds {_counts(other.counts, is_share_told=other.counts.share != added.counts.share)}"
    broker = f"broker {other.broker_id}"
    if other.broker_id in found.before:
        return f"{broker} {_kept(other)} ({holds})"
    match other.verdict:
        case Judgement.AS_GOOD:
            return f"{broker} would do as well, trading places with another partition ({holds}): a fixed order decides"
        case Judgement.COSTS_MORE:
            return f"{broker} instead: the plan would copy at least {_extra(other)} more ({holds})"
        case Judgement.LESS_EVEN:
            return f"{broker} instead: the counts would be less even ({holds})"
        case Judgement.LOADS:
            return f"{broker} could take it too ({holds}): all loads together decide, not this move alone"


def _kept(other: Alternative) -> str:
    """Return what would follow if a broker that holds the partition now had kept it."""
    match other.verdict:
        case Judgement.AS_GOOD:
            return "could keep it, another partition moving instead for no more: a fixed order decides"
        case Judgement.COSTS_MORE:
            return f"keeping it: the plan would copy at least {_extra(other)} more"
        case Judgement.LESS_EVEN:
            return "keeping it: the counts would be less even"
        case Judgement.LOADS:
            return "could keep it, all loads together deciding otherwise"


def _extra(other: Alternative) -> str:
    return f"{number(other.extra)} replicas" if other.is_counted_in_replicas else size(other.extra)


def _removed(removed: Removed) -> str:
    return f"{_CAUSES[removed.cause]}; it holds {_counts(removed.counts)}"


def _leader(leader: NewLeader) -> str:
    words = {
        Cause.ASSIGNMENT: "placement.assignment names it first",
        Cause.GONE: f"broker {leader.old}, which led, gives its replica up",
        Cause.MAINTENANCE: f"broker {leader.old} is in maintenance",
        Cause.LEADER_RACKS: f"broker {leader.old} is in no rack to lead from",
    }
    old = "" if leader.old_counts is None else f"broker {leader.old} leads {_counts(leader.old_counts)}; "
    return (
        f"{words.get(leader.cause, 'balance of leaders')}: {old}broker {leader.new} leads {_counts(leader.new_counts)}"
    )


def _counts(counts: Counts, *, is_share_told: bool = True) -> str:
    told = f"{number(counts.before)} now"
    told += f", {number(counts.after)} after" if counts.after != counts.before else " and after"
    if counts.bytes_before is not None and counts.bytes_after is not None:
        told += f", {size(counts.bytes_before)} now, {size(counts.bytes_after)} after"
    share = "" if counts.share is None or not is_share_told else f", its share being {counts.share:,g}"
    return f"{told}{share}"


def _brokers(broker_ids: Iterable[int]) -> str:
    ids = list(broker_ids)
    return f"broker{'s' if len(ids) > 1 else ''} {listed(ids)}" if ids else ""


def _is(broker_ids: list[int]) -> str:
    return "are" if len(broker_ids) > 1 else "is"
