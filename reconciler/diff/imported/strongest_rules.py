"""Finds each topic's strongest rules: tried from the strictest down, judged as a plan judges them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, repeat
from operator import mul

from reconciler.diff.broken import broken_partitions
from reconciler.diff.compare import compare
from reconciler.diff.managed import is_declared, is_ignored
from reconciler.diff.mirrors import is_copy
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES, Cluster, Topic
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import Balance, Desired, DesiredTopic, Placement, Spread
from reconciler.model.imported import Adopted, Deviation
from reconciler.model.in_sync import waiting_leader
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

RACKS, MIXED_FACTOR, DEAD, LEADERLESS, COLLIDES = "KR271", "KR272", "KR273", "KR274", "KR275"
CONFIG, REASSIGNING, UNNAMEABLE = "KR276", "KR278", "KR279"
SHOWN = 8
_NAME = re.compile("[a-zA-Z0-9._-]{1,249}")
_MIN_ISR = "min.insync.replicas"
_CHANCE = Fraction(1, 1_000_000)
"""A rule that random placement would keep more often than this is not taken for one."""

IsWritable = Callable[[str, str], bool]
"""Whether a config's key and value can be written so that they are read as they are."""


def adopted(base: Desired, observed: Cluster, is_writable: IsWritable) -> Adopted:
    """Return every topic that nothing declares and `topics.ignore` leaves, with the strongest rules it keeps.

    Declared so in the cluster of `base`, and without any balance, nothing is to be changed. What cannot be declared so
    is left out. A topic that a pattern covers is declared, and so is one that a mirror makes.
    """
    names = [name for name in observed.topics if is_undeclared(base, observed, name)]
    draft = _Draft(base, observed)
    for name in names:
        _add(draft, observed.topics[name], is_writable)
    _leave_misnamed_out(draft)
    _descend(draft)
    _leave_changing_out(draft)
    return Adopted(
        topics=dict(sorted(draft.topics.items())),
        left_out=dict(sorted(draft.left_out.items())),
        deviations=tuple(sorted(draft.deviations, key=lambda each: (each.topic or "", each.code, each.message))),
    )


def is_undeclared(base: Desired, observed: Cluster, name: str) -> bool:
    """Whether an import is to declare that topic."""
    if is_ignored(base, name) or observed.topics[name].is_internal:
        return False
    return not is_declared(base, name) and not is_copy(base, name)


def judged(base: Desired, topics: Mapping[str, DesiredTopic]) -> Desired:
    """Return these topics as all that is declared for the cluster of `base`, with no balance and no elections."""
    # Only listed topics: that others are not among these does not make them unwanted.
    policy = replace(base.cluster.topics, is_all_managed=False)
    cluster = replace(base.cluster, balance=Balance(), is_election_wanted=False, topics=policy)
    return Desired(cluster, topics)


@dataclass(slots=True)
class _Draft:
    """The topics as far as they are found, what of them is weaker than the rule, and how many rules were tried."""

    base: Desired
    observed: Cluster
    topics: dict[str, DesiredTopic] = field(default_factory=dict)
    left_out: dict[str, DesiredTopic] = field(default_factory=dict)
    deviations: list[Deviation] = field(default_factory=list)

    def desired(self) -> Desired:
        """Return what these topics come to, beside the cluster's own document."""
        return judged(self.base, dict(self.topics))

    def leave_out(self, name: str, code: str, why: str) -> None:
        """Take a topic out of what is declared."""
        self.left_out[name] = self.topics.pop(name)
        self.deviations = [each for each in self.deviations if each.topic != name]
        self.deviations.append(Deviation(code, why, name, is_left_out=True))


def _add(draft: _Draft, topic: Topic, is_writable: IsWritable) -> None:
    factors = sorted({len(partition.target_replicas) for partition in topic.partitions})
    factor = factors[0] if len(factors) == 1 else None
    whys = {key: _why_unwritable(key, value, factor, is_writable) for key, value in sorted(topic.configs.items())}
    for key, why in whys.items():
        if why:
            draft.deviations.append(Deviation(CONFIG, f"{key} {why}; it is not written, and stays", topic.name))
    if len(factors) > 1:
        numbers = " and ".join(map(str, factors))
        message = f"its partitions have {numbers} replicas: no replicationFactor is written, each keeps its own"
        draft.deviations.append(Deviation(MIXED_FACTOR, message, topic.name))
    moving = [str(each.partition) for each in topic.partitions if each.is_reassigning]
    if moving:
        message = f"{_partitions(moving, len(topic.partitions))} being reassigned: the target is taken as reached"
        draft.deviations.append(Deviation(REASSIGNING, message, topic.name))
    draft.topics[topic.name] = DesiredTopic(
        topic.name,
        partitions=len(topic.partitions) or None,
        replication_factor=factor,
        config={key: topic.configs[key] for key, why in whys.items() if not why},
    )


def _why_unwritable(key: str, value: str, factor: int | None, is_writable: IsWritable) -> str:
    if key in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
        return "belongs to a reassignment"
    if value == UNREADABLE:
        return "was removed from Kafka and has no value that can be read"
    if key == _MIN_ISR:
        if not (value.isascii() and value.isdigit()) or int(value) < 1 or str(int(value)) != value:
            return "is no whole number of at least 1"
        if factor is not None and int(value) > factor:
            return f"is {value}, above replicationFactor {factor}, which Kafka takes instead"
    return "" if is_writable(key, value) else "has a value that a file cannot hold as it is"


def _leave_misnamed_out(draft: _Draft) -> None:
    """Leave out what no document could name, or not beside another one."""
    first: dict[str, str] = {name.replace(".", "_"): name for name in draft.base.topics}
    for name in sorted(draft.topics):
        if name in {".", ".."} or not _NAME.fullmatch(name):
            draft.leave_out(name, UNNAMEABLE, "Kafka would not take such a name")
            continue
        other = first.setdefault(name.replace(".", "_"), name)
        if other != name:
            draft.leave_out(name, COLLIDES, f"its name collides with {other}: in metrics, Kafka takes . and _ for one")


def _descend(draft: _Draft) -> None:
    """Give each topic the first rule on its way down that none of its partitions breaks."""
    evidence = _evidence_of(draft.observed)
    ladders = {name: _ladder(evidence, draft.observed.topics[name]) for name in draft.topics}
    strictest = {name: ladder[0] for name, ladder in ladders.items()}
    pending = sorted(draft.topics)
    against: dict[str, Sequence[str]] = {}
    while pending:
        for name in pending:
            draft.topics[name] = replace(draft.topics[name], placement=ladders[name][0])
        desired = draft.desired()
        rules = topic_rules(desired, draft.observed)
        broken: dict[str, list[str]] = {}
        for first, *_ in broken_partitions(desired, draft.observed, rules, rules.keys() - {*pending}):
            broken.setdefault(first.topic_partition.topic, []).append(str(first.topic_partition.partition))
        pending = [name for name in pending if name in broken and len(ladders[name]) > 1]
        for name in pending:
            against.setdefault(name, broken[name])
            ladders[name] = ladders[name][1:]
    for name, partitions in against.items():
        _tell_weaker(draft, name, partitions, strictest[name])


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Where the brokers stand that hold anything: a broker that is new and empty says nothing about a topic."""

    rack_of: Mapping[int, str | None]
    brokers_in: Mapping[str, int]
    is_racked: bool

    def leader_racks(self, topic: Topic) -> frozenset[str] | None:
        """Return the racks of all preferred leaders, where replicas stand in others too and chance is ruled out."""
        lists = [partition.target_replicas for partition in topic.partitions if partition.target_replicas]
        led = self._racks(replicas[0] for replicas in lists)
        held = self._racks(replica for replicas in lists for replica in replicas)
        if led is None or held is None or led == held:
            return None
        of_each = ([self.rack_of.get(replica) in led for replica in replicas] for replicas in lists)
        return led if _is_no_chance(Fraction(sum(are_in), len(are_in)) for are_in in of_each) else None

    def only_racks(self, topic: Topic) -> frozenset[str] | None:
        """Return the racks of all replicas, where brokers in others hold something and chance is ruled out."""
        replicas = [replica for partition in topic.partitions for replica in partition.target_replicas]
        held = self._racks(replicas)
        if held is None or held >= self.brokers_in.keys():
            return None
        share = Fraction(sum(self.brokers_in.get(rack, 0) for rack in held), sum(self.brokers_in.values()))
        return held if _is_no_chance(repeat(share, len(replicas))) else None

    def _racks(self, brokers: Iterable[int]) -> frozenset[str] | None:
        """Return the racks of these brokers; None where one has none, or a name that no file could hold."""
        racks = {self.rack_of.get(broker) for broker in brokers}
        named = frozenset(rack for rack in racks if rack and rack.isprintable())
        return named if len(named) == len(racks) else None


def _is_no_chance(shares: Iterable[Fraction]) -> bool:
    """Whether all of these, each as probable as its share, would hardly come about by chance."""
    return any(chance <= _CHANCE for chance in accumulate(shares, mul))


def _evidence_of(observed: Cluster) -> _Evidence:
    """Return where the brokers stand that hold replicas of any topic."""
    rack_of = {broker.id: broker.rack for broker in observed.brokers.values()}
    used = {replica for _, partition in observed.partitions() for replica in partition.target_replicas}
    return _Evidence(
        rack_of=rack_of,
        brokers_in=Counter(rack for broker, rack in rack_of.items() if rack and broker in used),
        is_racked=len(set(rack_of.values())) > 1,
    )


def _ladder(evidence: _Evidence, topic: Topic) -> Sequence[Placement]:
    """Return the placements to try, the strongest first; the last asks for nothing."""
    if not evidence.is_racked:
        return (Placement(),)
    leader, only = evidence.leader_racks(topic), evidence.only_racks(topic)
    spreads = (Spread.STRICT, Spread.PREFER, Spread.IGNORE) if leader or only else (Spread.STRICT, Spread.PREFER)
    tried = [Placement(racks_spread=spread, racks_leader=leader, racks_only=only) for spread in spreads]
    return [*tried, Placement()]


def _tell_weaker(draft: _Draft, name: str, partitions: Sequence[str], wanted: Placement) -> None:
    got = draft.topics[name].placement
    if got == wanted:
        return
    whom = _partitions(partitions, len(draft.observed.topics[name].partitions))
    if got.racks_spread is Spread.PREFER:
        message = f"racks: {whom} not spread strictly, as some rack has too few brokers; prefer is written"
    else:
        message = f"racks: {whom} not spread over the racks; no rack rule is written, so nothing moves for it"
    draft.deviations.append(Deviation(RACKS, message, name))


def _leave_changing_out(draft: _Draft) -> None:
    """Leave out what a plan would change even so: replicas on dead brokers, leaders that are missing."""
    desired = draft.desired()
    changes = compare(desired, draft.observed, topic_rules(desired, draft.observed))
    why: dict[str, tuple[str, str]] = {}
    for rule in changes.broken_rules:
        why.setdefault(rule.topic_partition.topic, (DEAD, f"partition {rule.topic_partition.partition}: {rule.detail}"))
    for each in changes.elections:
        key = each.topic_partition
        why.setdefault(key.topic, (LEADERLESS, f"partition {key.partition} has no leader that may lead"))
    for partition in changes.leaderless:
        key = partition.topic_partition
        why.setdefault(key.topic, (LEADERLESS, f"partition {key.partition} has no leader"))
    for change in changes.topic_changes:
        why.setdefault(change.topic, (DEAD, "a plan would change it"))
    # A plan replaces dead replicas only if the file places the topic, which it does once it says how many there are.
    for key, present in draft.observed.partitions():
        dead = [replica for replica in present.target_replicas if not draft.observed.is_alive(replica)]
        if dead:
            why.setdefault(key.topic, (DEAD, f"partition {key.partition}: broker {dead[0]} is not alive"))
    for name, (code, reason) in sorted(why.items()):
        if name in draft.topics:
            draft.leave_out(name, code, f"{reason}; declared, a plan would change it at once")


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
