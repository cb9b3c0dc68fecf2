"""Changes desired and observed state as a question supposes, and tells how well partitions are in either.

It is pure, so that the same plan is made as of real states.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from difflib import get_close_matches

from reconciler.diff.managed import managed_topics
from reconciler.model.cluster import Broker, Cluster, LogDir
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredTopic
from reconciler.model.in_sync import brokers_min_isr, needed_in_sync
from reconciler.model.problem import InvalidInput, Location, Problem, ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import (
    ESCAPED_COMMA,
    AddBroker,
    Affected,
    DrainBroker,
    FailBroker,
    FailRack,
    Health,
    SetPartitions,
    SetReplicationFactor,
    Supposition,
)
from reconciler.model.words import in_brackets, labelled
from reconciler.simulate.events import fence_all, register

OPTION = "--what-if"
KINDS = "drain=ID, add=ID@RACK, fail=ID, fail-rack=RACK, replicationFactor=TOPIC:N, partitions=TOPIC:N"
_MOST = 2**31 - 1
"""Kafka's own numbers of brokers, partitions and replicas are signed 32 bits."""
_SHOWN = 10
_COMMA = re.compile(r"(?<!\\),")


class NotASupposition(ReconcilerError):
    """The text of a what-if means nothing."""

    code = "KR005"


class _Senseless(Exception):
    """Why a supposition cannot be meant for this cluster."""


@dataclass(frozen=True, slots=True)
class Supposed:
    """The two states as they would be, and what was taken for granted beside what was said."""

    desired: Desired
    observed: Cluster
    assumptions: tuple[str, ...] = ()


def suppositions(texts: Sequence[str]) -> tuple[Supposition, ...]:
    """Return what these texts suppose, each one or more of KINDS with commas between; raises NotASupposition.

    A comma in the name of a rack has a backslash before it.
    """
    parts = [part.strip() for text in texts for part in _COMMA.split(text)]
    return tuple(_supposition(part.replace(ESCAPED_COMMA, ",")) for part in parts)


def suppose(desired: Desired, observed: Cluster, supposed: Sequence[Supposition]) -> Supposed:
    """Return both states with each supposition made true, in the order given.

    What is supposed is placed at `--what-if:1` and so on, so that no finding names a line that does not say it. Raises
    InvalidInput with every supposition that makes no sense for this cluster.
    """
    at = Supposed(desired, observed)
    problems = list(_repeated(supposed))
    for number, one in enumerate(supposed, start=1):
        try:
            at = _made_true(at, one, Location(OPTION, number))
        except _Senseless as error:
            problems.append(_problem(f"{one}: {error}"))
    if problems:
        raise InvalidInput(problems)
    return at


def with_broker(observed: Cluster, broker_id: int, rack: str | None) -> tuple[Cluster, str]:
    """Return the cluster with one empty broker more, and in words which disks it was given: those of a peer.

    The peer is the broker with the least disk capacity in its rack, or in the cluster where the rack is new.
    """
    peer = _peer(observed, rack)
    dirs = () if peer is None else tuple(LogDir(one.path, one.total_bytes, one.total_bytes) for one in peer.log_dirs)
    disks = f"disks like those of broker {peer.id}" if peer is not None and dirs else "disks of unknown size"
    where = f" in rack {rack}" if rack is not None else ""
    new = "" if rack is None or _of_rack(observed, rack) else f"; rack {rack} is new"
    words = f"broker {broker_id} joins{where}, empty, with {disks}{new}"
    return register(observed, Broker(broker_id, rack, log_dirs=dirs)), words


def with_declared(desired: Desired, broker: DesiredBroker) -> Desired:
    """Return the desired state with that broker declared so."""
    brokers = dict(sorted({**desired.cluster.brokers, broker.id: broker}.items()))
    return replace(desired, cluster=replace(desired.cluster, brokers=brokers))


def racks(observed: Cluster) -> list[str]:
    """Return the racks that brokers tell."""
    return sorted({broker.rack for broker in observed.brokers.values() if broker.rack})


def health(cluster: Cluster) -> Health:
    """Return which partitions are under-replicated, under min ISR and offline."""
    default = brokers_min_isr(cluster)
    under_replicated, under_min_isr, offline = [], [], []
    for name, topic in cluster.topics.items():
        for partition in topic.partitions:
            key = TopicPartition(name, partition.partition)
            if partition.leader is None or not set(partition.isr).issuperset(partition.target_replicas):
                under_replicated.append(key)
            if partition.leader is None:
                offline.append(key)
            elif len(partition.isr) < needed_in_sync(topic, partition, default):
                under_min_isr.append(key)
    return Health(_affected(under_replicated), _affected(under_min_isr), _affected(offline))


def _affected(keys: Sequence[TopicPartition]) -> Affected:
    return Affected(len(keys), tuple(str(key) for key in sorted(keys)[:_SHOWN]))


def _supposition(text: str) -> Supposition:
    kind, is_given, value = text.partition("=")
    if is_given and value:
        match kind:
            case "drain":
                return DrainBroker(_id(value, text))
            case "add":
                broker_id, at, rack = value.partition("@")
                if at and not rack:
                    raise NotASupposition(f"{text!r}: name the rack after the @")
                return AddBroker(_id(broker_id, text), rack if at else None)
            case "fail":
                return FailBroker(_id(value, text))
            case "fail-rack":
                return FailRack(value)
            case "replicationFactor":
                return SetReplicationFactor(*_topic_and_number(value, text))
            case "partitions":
                return SetPartitions(*_topic_and_number(value, text))
    hint = "" if is_given or not text else f"; write a comma in the name of a rack as {ESCAPED_COMMA}"
    raise NotASupposition(f"{text!r} is not one of {KINDS}{hint}")


def _id(text: str, whole: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _MOST:
        raise NotASupposition(f"{whole!r}: {text!r} is no broker id")
    return int(text)


def _topic_and_number(text: str, whole: str) -> tuple[str, int]:
    topic, _, number = text.rpartition(":")
    if not topic or not number.isascii() or not number.isdigit() or not 0 < int(number) <= _MOST:
        raise NotASupposition(f"{whole!r}: write TOPIC:N, N being at least 1")
    return topic, int(number)


def _repeated(supposed: Sequence[Supposition]) -> Iterator[Problem]:
    seen: set[tuple[type[Supposition], int | str]] = set()
    for one in supposed:
        key = type(one), astuple(one)[0]  # the first field says what it is about
        if key in seen:
            yield _problem(f"{one}: this is supposed twice; keep one of them")
        seen.add(key)


def _made_true(at: Supposed, one: Supposition, where: Location) -> Supposed:
    """Return both states with that supposition true; raises _Senseless where it cannot be meant."""
    match one:
        case DrainBroker():
            # A broker that is gone for good may still be in lists of replicas: declared draining, it is planned away.
            if not any(one.broker_id in partition.replicas for _, partition in at.observed.partitions()):
                _require_registered(at, one.broker_id)
            broker = replace(at.desired.cluster.broker(one.broker_id), state=BrokerState.DRAINING, at=where)
            return replace(at, desired=with_declared(at.desired, broker))
        case AddBroker():
            return _joined(at, one)
        case FailBroker():
            _require_registered(at, one.broker_id)
            return _without(at, [one.broker_id], f"broker {one.broker_id} is down")
        case FailRack():
            return _failed(at, one.rack)
        case SetReplicationFactor():
            topic = replace(_declared(at, one.topic), replication_factor=one.replication_factor)
            return _with_topic(at, topic, "replicationFactor", where)
        case SetPartitions():
            topic, there = _declared(at, one.topic), at.observed.topics.get(one.topic)
            if there is not None and one.partitions < len(there.partitions):
                raise _Senseless(f"it has {len(there.partitions)} partitions, and Kafka cannot take any away")
            return _with_topic(at, replace(topic, partitions=one.partitions), "partitions", where)


def _require_registered(at: Supposed, broker_id: int) -> None:
    if broker_id not in at.observed.brokers:
        known = ", ".join(map(str, sorted(at.observed.brokers)))
        raise _Senseless(f"no broker {broker_id} is registered; known are {known}")


def _joined(at: Supposed, one: AddBroker) -> Supposed:
    if one.broker_id in at.observed.brokers:
        raise _Senseless(f"broker {one.broker_id} is registered already; give the new one another id")
    declared = at.desired.cluster.broker(one.broker_id)
    if declared.state in {BrokerState.ABSENT, BrokerState.DRAINING}:
        place = in_brackets(declared.at)
        raise _Senseless(f"broker {one.broker_id} is declared {declared.state}{place}: it would receive nothing")
    known = racks(at.observed)
    if one.rack is None and known:
        raise _Senseless(f"say in which rack: add={one.broker_id}@RACK; known are {', '.join(known)}")
    observed, words = with_broker(at.observed, one.broker_id, one.rack)
    return replace(at, observed=observed, assumptions=(*at.assumptions, words))


def _failed(at: Supposed, rack: str) -> Supposed:
    failing = [broker.id for broker in _of_rack(at.observed, rack)]
    if not failing:
        known = racks(at.observed)
        hint = _near(rack, known) if known else "no broker tells its rack"
        raise _Senseless(f"no broker is in rack {rack!r}; {hint}")
    return _without(at, failing, f"rack {rack} is down: {labelled('broker', failing)}")


def _without(at: Supposed, failing: Sequence[int], words: str) -> Supposed:
    return replace(at, observed=fence_all(at.observed, failing), assumptions=(*at.assumptions, words))


def _declared(at: Supposed, name: str) -> DesiredTopic:
    """Return what is declared of that topic, nothing at all where no document speaks of it."""
    topic = managed_topics(at.desired, at.observed).get(name)
    if topic is None and name not in at.observed.topics:
        near = _near(name, [*at.observed.topics, *at.desired.topics])
        raise _Senseless(f"no topic {name!r} is observed or declared; {near}")
    topic = topic or DesiredTopic(name)
    if topic.is_absent:
        raise _Senseless(f"topic {name} is declared absent{in_brackets(topic.where('state'))}")
    if topic.placement.assignment is not None:
        place = in_brackets(topic.where("placement.assignment"))
        raise _Senseless(f"its replicas are written one by one{place}: change that instead")
    return topic


def _with_topic(at: Supposed, topic: DesiredTopic, field: str, where: Location) -> Supposed:
    """Return the desired state with that topic, of which one field stands at that place."""
    is_known = topic.name in managed_topics(at.desired, at.observed)
    words = f"topic {topic.name}, which no document names, is managed as if one did"
    topic = replace(topic, at={**topic.at, field: where})
    desired = replace(at.desired, topics=dict(sorted({**at.desired.topics, topic.name: topic}.items())))
    return replace(at, desired=desired, assumptions=at.assumptions if is_known else (*at.assumptions, words))


def _peer(observed: Cluster, rack: str | None) -> Broker | None:
    peers = _of_rack(observed, rack) if rack is not None else []
    known = [(total, broker.id) for broker in peers or observed.brokers.values() if (total := _capacity(broker))]
    return observed.brokers[min(known)[1]] if known else None


def _capacity(broker: Broker) -> int:
    """Return the bytes of the broker's log dirs, 0 unless each is known."""
    sizes = [one.total_bytes for one in broker.log_dirs]
    return sum(size for size in sizes if size is not None) if None not in sizes else 0


def _of_rack(observed: Cluster, rack: str) -> list[Broker]:
    return [broker for broker in observed.brokers.values() if broker.rack == rack]


def _near(name: str, known: Sequence[str]) -> str:
    some = sorted(set(known))
    close = get_close_matches(name, some, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(some[:10])}{', and others' if some[10:] else ''}"


def _problem(message: str) -> Problem:
    return Problem("KR307", f"{OPTION} {message}")
