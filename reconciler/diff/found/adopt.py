"""Finds each topic's strongest rules: tried from the strictest down, judged as a plan judges them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reconciler.diff.broken import broken_rule
from reconciler.diff.compare import compare
from reconciler.diff.found.evidence import Evidence, evidence_of
from reconciler.diff.found.writable import unwritable_configs
from reconciler.diff.managed import is_ignored
from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.desired import Balance, Desired, DesiredTopic, Placement, Spread
from reconciler.model.imported import Adopted, Deviation
from reconciler.model.in_sync import waiting_leader
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

RACKS, MIXED_FACTOR, DEAD, LEADERLESS, COLLIDES = "KR271", "KR272", "KR273", "KR274", "KR275"
REASSIGNING, UNNAMEABLE = "KR278", "KR279"
SHOWN = 8
_NAME = re.compile("[a-zA-Z0-9._-]{1,249}")

IsWritable = Callable[[str, str], bool]
"""Whether a config's key and value can be written so that they are read as they are."""


def adopted(base: Desired, observed: Cluster, is_writable: IsWritable) -> Adopted:
    """Return every topic that `topics.ignore` leaves, with the strongest rules it keeps in the cluster of `base`.

    Declared so, and without any balance, nothing is to be changed. What cannot be declared so is left out.
    """
    names = [name for name in observed.topics if not is_ignored(base, name) and not observed.topics[name].is_internal]
    found = _Found(base, observed)
    for name in names:
        _draft(found, observed.topics[name], is_writable)
    _leave_misnamed_out(found)
    _descend(found)
    _leave_changing_out(found)
    return Adopted(
        topics=dict(sorted(found.topics.items())),
        left_out=dict(sorted(found.left_out.items())),
        deviations=tuple(sorted(found.deviations, key=lambda each: (each.topic or "", each.code, each.message))),
    )


@dataclass(slots=True)
class _Found:
    """The topics as far as they are found, what of them is weaker than the rule, and how many rules were tried."""

    base: Desired
    observed: Cluster
    topics: dict[str, DesiredTopic] = field(default_factory=dict)
    left_out: dict[str, DesiredTopic] = field(default_factory=dict)
    deviations: list[Deviation] = field(default_factory=list)

    def desired(self) -> Desired:
        """Return what these topics come to, beside the cluster's own document, with no balance and no elections."""
        cluster = replace(self.base.cluster, balance=Balance(), is_election_wanted=False)
        return Desired(cluster, dict(self.topics))

    def leave_out(self, name: str, code: str, why: str) -> None:
        """Take a topic out of what is declared."""
        self.left_out[name] = self.topics.pop(name)
        self.deviations = [each for each in self.deviations if each.topic != name]
        self.deviations.append(Deviation(code, why, name, is_left_out=True))


def _draft(found: _Found, topic: Topic, is_writable: IsWritable) -> None:
    factors = sorted({len(partition.target_replicas) for partition in topic.partitions})
    factor = factors[0] if len(factors) == 1 else None
    unwritable = unwritable_configs(topic.configs, factor, is_writable)
    found.deviations += [replace(each, topic=topic.name) for each in unwritable.values()]
    if len(factors) > 1:
        numbers = " and ".join(map(str, factors))
        message = f"its partitions have {numbers} replicas: no replicationFactor is written, each keeps its own"
        found.deviations.append(Deviation(MIXED_FACTOR, message, topic.name))
    moving = [str(each.partition) for each in topic.partitions if each.is_reassigning]
    if moving:
        message = f"{_partitions(moving, len(topic.partitions))} being reassigned: the target is taken as reached"
        found.deviations.append(Deviation(REASSIGNING, message, topic.name))
    found.topics[topic.name] = DesiredTopic(
        topic.name,
        partitions=len(topic.partitions) or None,
        replication_factor=factor,
        config={key: value for key, value in sorted(topic.configs.items()) if key not in unwritable},
    )


def _leave_misnamed_out(found: _Found) -> None:
    """Leave out what no document could name, or not beside another one."""
    first: dict[str, str] = {}
    for name in sorted(found.topics):
        if name in {".", ".."} or not _NAME.fullmatch(name):
            found.leave_out(name, UNNAMEABLE, "Kafka would not take such a name")
            continue
        other = first.setdefault(name.replace(".", "_"), name)
        if other != name:
            found.leave_out(name, COLLIDES, f"its name collides with {other}: in metrics, Kafka takes . and _ for one")


def _descend(found: _Found) -> None:
    """Give each topic the first rule on its way down that none of its partitions breaks."""
    evidence = evidence_of(found.observed)
    ladders = {name: _ladder(evidence, found.observed.topics[name]) for name in found.topics}
    strictest = {name: ladder[0] for name, ladder in ladders.items()}
    pending = sorted(found.topics)
    against: dict[str, Sequence[str]] = {}
    while pending:
        for name in pending:
            found.topics[name] = replace(found.topics[name], placement=ladders[name][0])
        desired = found.desired()
        rules = topic_rules(desired, found.observed)
        broken = {name: _breaking(found, desired, rules[name]) for name in pending}
        pending = [name for name in pending if broken[name] and len(ladders[name]) > 1]
        for name in pending:
            against.setdefault(name, broken[name])
            ladders[name] = ladders[name][1:]
    for name, partitions in against.items():
        _tell_weaker(found, name, partitions, strictest[name])


def _ladder(evidence: Evidence, topic: Topic) -> Sequence[Placement]:
    """Return the placements to try, the strongest first; the last asks for nothing."""
    if not evidence.is_racked:
        return (Placement(),)
    leader, only = evidence.leader_racks(topic), evidence.only_racks(topic)
    spreads = (Spread.STRICT, Spread.PREFER, Spread.IGNORE) if leader or only else (Spread.STRICT, Spread.PREFER)
    tried = [Placement(racks_spread=spread, racks_leader=leader, racks_only=only) for spread in spreads]
    return [*tried, Placement()]


def _breaking(found: _Found, desired: Desired, rules: TopicRules) -> Sequence[str]:
    """Return the partitions of a topic that break one of its rules."""
    name = rules.topic
    return [
        str(partition.partition)
        for partition in found.observed.topics[name].partitions
        if broken_rule(desired, found.observed, rules, TopicPartition(name, partition.partition), partition)
    ]


def _tell_weaker(found: _Found, name: str, partitions: Sequence[str], wanted: Placement) -> None:
    got = found.topics[name].placement
    if got == wanted:
        return
    whom = _partitions(partitions, len(found.observed.topics[name].partitions))
    if got.racks_spread is Spread.PREFER:
        message = f"racks: {whom} not spread strictly, as some rack has too few brokers; prefer is written"
    else:
        message = f"racks: {whom} not spread over the racks; no rack rule is written, so nothing moves for it"
    found.deviations.append(Deviation(RACKS, message, name))


def _leave_changing_out(found: _Found) -> None:
    """Leave out what a plan would change even so: replicas on dead brokers, leaders that are missing."""
    desired = found.desired()
    changes = compare(desired, found.observed, topic_rules(desired, found.observed))
    why: dict[str, tuple[str, str]] = {}
    for rule in changes.broken_rules:
        why.setdefault(rule.topic_partition.topic, (DEAD, f"partition {rule.topic_partition.partition}: {rule.detail}"))
    for each in changes.elections:
        key = each.topic_partition
        why.setdefault(key.topic, (LEADERLESS, f"partition {key.partition} has no leader that may lead"))
    for change in changes.topic_changes:
        why.setdefault(change.topic, (DEAD, "a plan would change it"))
    for name, (code, reason) in sorted(why.items()):
        if name in found.topics:
            found.leave_out(name, code, f"{reason}; declared, a plan would change it at once")


def _partitions(numbers: Sequence[str], total: int) -> str:
    """Return which partitions, as the beginning of a sentence: `2 of 12 partitions (3, 7) are`."""
    word = "is" if len(numbers) == 1 else "are"
    return f"{len(numbers)} of {total} partitions ({named_some(numbers, SHOWN)}) {word}"


def elections_wanted(desired: Desired, observed: Cluster) -> Iterator[TopicPartition]:
    """Yield the declared partitions whose preferred leader is in sync and does not lead: a plan would elect it."""
    for name in desired.topics:
        for partition in observed.topics[name].partitions:
            if waiting_leader(partition) is not None:
                yield TopicPartition(name, partition.partition)
