"""Finds rights that this user lacks, one by one, and what cannot be done without each."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Finding, NeededRight
from reconciler.model.lock import LOCK_GROUP, OFFSETS_TOPIC
from reconciler.model.problem import Severity
from reconciler.model.vitals import CLUSTER, GROUP, TOPIC, Rights
from reconciler.model.words import few

READERS = ("snapshot", "diff", "plan", "apply", "status", "cancel", "doctor")
GROUP_READERS = ("snapshot", "diff", "plan", "topics", "groups")
WRITERS = ("apply", "cancel", "doctor --fix throttles")


class _Need(NamedTuple):
    operation: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    severity: Severity = Severity.WARNING
    only: str | None = None


_NEEDS = (
    _Need("Describe", CLUSTER, READERS, "log dirs, reassignments, the active controller", Severity.ERROR),
    _Need("DescribeConfigs", CLUSTER, READERS, "brokers' configs", Severity.ERROR),
    _Need("Alter", CLUSTER, ("apply", "cancel"), "moves and elections"),
    _Need("AlterConfigs", CLUSTER, WRITERS, "throttle rates of brokers"),
    _Need("Create", CLUSTER, ("apply",), "new topics, unless it is granted on each of them", Severity.NOTE),
    _Need("Describe", TOPIC, READERS, "partitions and who holds them", Severity.ERROR),
    _Need("DescribeConfigs", TOPIC, READERS, "topics' configs", Severity.ERROR),
    _Need("Alter", TOPIC, ("apply",), "new partitions"),
    _Need("AlterConfigs", TOPIC, WRITERS, "throttled replicas, and configs"),
    _Need("Delete", TOPIC, ("apply",), "deleting topics, which topics.delete allows"),
    _Need("Read", GROUP, ("apply", "cancel"), "the lock that keeps two runs apart", only=LOCK_GROUP),
    _Need("Read", TOPIC, WRITERS, "the run's record in the cluster, without which they go on", only=OFFSETS_TOPIC),
    _Need("Describe", GROUP, GROUP_READERS, "who reads a topic, without which they go on"),
)
_SEVERITY = {(need.operation, need.resource): need.severity for need in _NEEDS}


def needed_rights(rights: Rights, desired: Desired | None) -> tuple[NeededRight, ...]:
    """Return every right that some verb needs on this cluster, and where this user lacks it."""
    return tuple(_needed(need, rights) for need in _NEEDS if _is_needed(need, rights, desired))


def findings(needed: Sequence[NeededRight]) -> Iterator[Finding]:
    """Yield a finding for each right that is missing: an error where nothing can be read without it."""
    for right in needed:
        if right.is_granted:
            continue
        where = "the cluster" if right.resource == CLUSTER else f"{right.resource} {few(right.lacking)}"
        severity = _SEVERITY[right.operation, right.resource]
        yield Finding(
            "KR630" if severity is Severity.ERROR else "KR631",
            severity,
            f"this user lacks the right {right.operation} on {where}: {', '.join(right.verbs)} "
            f"{'need' if len(right.verbs) > 1 else 'needs'} it for {right.purpose}",
            f"kafka-acls --add --allow-principal User:NAME --operation {right.operation} {_option(right)}",
            topics=right.lacking if right.resource == TOPIC else (),
        )


def _is_needed(need: _Need, rights: Rights, desired: Desired | None) -> bool:
    if need.resource == GROUP:
        return any(_is_of(need, group) for group in rights.groups)
    if need.only is not None:
        return need.only in rights.topics
    return need.operation != "Delete" or (desired is not None and desired.cluster.topics.is_delete_allowed)


def _needed(need: _Need, rights: Rights) -> NeededRight:
    asked = {CLUSTER: {}, GROUP: rights.groups, TOPIC: rights.topics}[need.resource]
    without = [name for name, held in asked.items() if need.operation not in held and _is_of(need, name)]
    if need.resource == TOPIC and need.operation == "Describe":
        without += rights.hidden
    is_granted = need.operation in rights.cluster if need.resource == CLUSTER else not without
    return NeededRight(
        need.operation, need.resource, need.verbs, need.purpose, is_granted=is_granted, lacking=tuple(sorted(without))
    )


def _is_of(need: _Need, name: str) -> bool:
    """Whether a need is about this topic or group; only the verbs that hold the lock need anything of its group."""
    return name == need.only if need.only is not None else need.resource != GROUP or name != LOCK_GROUP


def _option(right: NeededRight) -> str:
    if right.resource == CLUSTER:
        return "--cluster"
    return f"--{right.resource} {right.lacking[0] if len(right.lacking) == 1 else repr('*')}"
