"""Lists single changes of the desired state that may let a refused plan fit, the mildest kinds first.

A change is tried on `thinned` states: one of each kind of topic and partition, as far as rules tell them apart. What
holds there holds for all, and is quick to check again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from reconciler.diff.managed import managed_topics
from reconciler.diff.rules import (
    LEAVING,
    NO_RACK,
    TopicRules,
    barred_by,
    cordoned_brokers,
    cordoned_by_kafka,
    topic_rules,
)
from reconciler.diff.what_if import OPTION, racks, with_broker, with_declared
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Placement, Protection, Spread
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, whole_number
from reconciler.model.plan import Plan
from reconciler.model.problem import Edit, Location
from reconciler.model.stage import moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import few

JOINING = "broker"
"""The kind of change that may be made twice: two brokers join."""
TWICE = ("one more broker joins", "two more brokers join")


class States(NamedTuple):
    """What is desired and what is observed."""

    desired: Desired
    observed: Cluster


@dataclass(frozen=True, slots=True)
class Part:
    """One line to edit. `topics` are those that it changes, if it is about topics; `make` gets them too."""

    kind: str  # parts of one kind differ in the broker, rack or line alone
    words: str
    at: Location | None
    make: Callable[[States, Collection[str]], States]  # may be applied to states that other parts made
    topics: tuple[str, ...] = ()

    @property
    def edit(self) -> Edit:
        """The edit in words."""
        return Edit(f"{self.words}, for {few(self.topics)}" if self.topics else self.words, self.at)


@dataclass(frozen=True, slots=True)
class Change:
    """One change, for all topics that need it: a part for each line."""

    parts: tuple[Part, ...]

    @property
    def kind(self) -> str:
        """The kind of all its parts."""
        return self.parts[0].kind

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The lines to edit."""
        return tuple(part.edit for part in self.parts)

    def make(self, states: States) -> States:
        """Return the changed states."""
        return made(states, self.parts)


def made(states: States, parts: Iterable[Part]) -> States:
    """Return the states with these parts changed, one after another."""
    for group in grouped(parts):
        states = group[0].make(states, [name for part in group for name in part.topics])
    return states


def grouped(parts: Iterable[Part]) -> list[tuple[Part, ...]]:
    """Return the parts, those of one change of topics together."""
    groups: list[tuple[Part, ...]] = []
    for part in parts:
        if part.topics and groups and groups[-1][0].make is part.make:
            groups[-1] = (*groups[-1], part)
        else:
            groups.append((part,))
    return groups


def changes_for(states: States, topics: Sequence[str]) -> list[Change]:
    """Return every single change that may help these topics to find their places, in the order to be tried."""
    declared = managed_topics(states.desired, states.observed)
    concerned = {name: declared[name] for name in sorted(topics) if name in declared}
    known, brokers = racks(states.observed), states.observed.brokers

    def prefer(spread: Spread | None) -> Spread | None:
        return Spread.PREFER if spread is Spread.STRICT else spread

    return [
        *broker_changes(states),
        *_of_placement(concerned, "spread", "racks.spread", "racks.spread is prefer, not strict", prefer),
        *_of_placement(concerned, "spread", "racks.replicas", "racks.replicas is left out", lambda _: None),
        *_naming(concerned, "brokers.only", brokers),
        *_naming(concerned, "brokers.except", brokers),
        *_naming(concerned, "racks.only", known),
        *factor_changes(states, concerned),
        *joining_changes(states),
        *_of_topics(concerned, "protect", "protect", lambda _: "protect does not name move", _free_to_move),
        *_of_placement(concerned, "assignment", "assignment", "placement.assignment is left out", lambda _: None),
    ]


def broker_changes(states: States) -> Iterator[Change]:
    """Yield the changes that let one broker that is there hold replicas again; what is only supposed stays so."""
    texts = {
        BrokerState.DRAINING: ("kept", "broker {} stays active", BrokerState.ACTIVE),
        BrokerState.ABSENT: ("kept", "broker {} is declared draining, not absent", BrokerState.DRAINING),
        BrokerState.CORDONED: ("uncordoned", "broker {} is active, not cordoned", BrokerState.ACTIVE),
    }
    for state, (kind, text, then) in texts.items():
        for broker in states.desired.cluster.brokers.values():
            is_supposed = broker.at is not None and broker.at.file == OPTION
            if broker.state is state and broker.id in states.observed.brokers and not is_supposed:
                part = Part(kind, text.format(broker.id), broker.at, partial(_with_state, broker.id, then))
                yield Change((part,))
    for broker_id in sorted(cordoned_by_kafka(*states)):
        declared = states.desired.cluster.broker(broker_id)
        if declared.state is BrokerState.ACTIVE:
            words = f"broker {broker_id} is declared active, though Kafka has cordoned it"
            make = partial(_with_state, broker_id, BrokerState.ACTIVE)
            yield Change((Part("uncordoned", words, declared.at, make),))


def _with_state(broker_id: int, state: BrokerState, states: States, _: Collection[str]) -> States:
    broker = replace(states.desired.cluster.broker(broker_id), state=state, has_state=True)
    return States(with_declared(states.desired, broker), states.observed)


def joining_changes(states: States) -> Iterator[Change]:
    """Yield one more broker in each rack, its disks those of a peer; first in racks where no broker may take more."""
    closed = cordoned_brokers(*states) | _brokers_in(states, LEAVING)
    taking = {b.rack for b in states.observed.brokers.values() if not b.is_fenced and b.id not in closed}
    known: list[str | None] = [*sorted(racks(states.observed), key=lambda rack: (rack in taking, rack))]
    for rack in known or [None]:
        where = f" in rack {rack}" if rack is not None else ""
        yield Change((Part(JOINING, f"{TWICE[0]}{where}", None, partial(_with_new_broker, rack)),))


def _with_new_broker(rack: str | None, states: States, _: Collection[str]) -> States:
    broker_id = 1 + max([0, *states.observed.brokers, *states.desired.cluster.brokers])
    return States(states.desired, with_broker(states.observed, broker_id, rack)[0])


def factor_changes(states: States, concerned: Mapping[str, DesiredTopic]) -> Iterator[Change]:
    """Yield one replica less for each topic, where none would be left with fewer than its min ISR."""

    def wanted(topic: DesiredTopic) -> int:
        there = states.observed.topics.get(topic.name)
        held = [len(partition.target_replicas) for partition in there.partitions] if there else []
        return topic.replication_factor or max(held, default=0)

    def words(topic: DesiredTopic) -> str:
        return f"replicationFactor is {wanted(topic) - 1}, not {wanted(topic)}"

    def lowered(topic: DesiredTopic) -> DesiredTopic:
        return replace(topic, replication_factor=wanted(topic) - 1)

    # Replicas by rack say how many there are: another factor alone would contradict them.
    is_by_rack = any(topic.placement.racks_replicas for topic in concerned.values())
    if not is_by_rack and all(wanted(topic) > max(1, _min_isr(states, topic)) for topic in concerned.values()):
        yield from _of_topics(concerned, "factor", "replicationFactor", words, lowered)


def _min_isr(states: States, topic: DesiredTopic) -> int:
    there = states.observed.topics.get(topic.name)
    text = topic.config.get(MIN_ISR) or (there.configs.get(MIN_ISR) if there else None)
    return whole_number(text) or brokers_min_isr(states.observed)


def _naming(concerned: Mapping[str, DesiredTopic], path: str, names: Iterable[int | str]) -> Iterator[Change]:
    """Yield the changes that name one broker or rack more where a placement names only some, or except one less."""
    is_except = path == "brokers.except"

    def edited(name: int | str, written: frozenset[int | str] | None) -> frozenset[int | str] | None:
        if written is None:
            return None
        return written - {name} if is_except else written | {name}

    for name in names:
        kind, words = path.partition(".")[0], f"does not name {name}" if is_except else f"names {name} too"
        yield from _of_placement(concerned, kind, path, f"{path} {words}", partial(edited, name))


def _free_to_move(topic: DesiredTopic) -> DesiredTopic:
    return replace(topic, protect=topic.protect - {Protection.MOVE})


def _of_placement(
    concerned: Mapping[str, DesiredTopic], kind: str, path: str, words: str, edited: Callable[[Any], object]
) -> Iterator[Change]:
    """Yield the change of one field of the placement, where it changes any."""
    field = path.replace(".", "_")

    def relaxed(topic: DesiredTopic) -> DesiredTopic:
        changed: Any = {field: edited(getattr(topic.placement, field))}
        return replace(topic, placement=replace(topic.placement, **changed))

    return _of_topics(concerned, kind, f"placement.{path}", lambda _: words, relaxed)


def _of_topics(
    concerned: Mapping[str, DesiredTopic],
    kind: str,
    path: str,
    words: Callable[[DesiredTopic], str],
    relaxed: Callable[[DesiredTopic], DesiredTopic],
) -> Iterator[Change]:
    """Yield the change of those topics that are others when relaxed, if any; one edit a line that says it."""
    topics = {name: topic for name, topic in concerned.items() if relaxed(topic) != topic}
    lines: dict[tuple[str, str], list[DesiredTopic]] = {}
    for topic in topics.values():
        lines.setdefault((str(topic.where(path) or ""), words(topic)), []).append(topic)

    def make(states: States, names: Collection[str]) -> States:
        known = {
            name: relaxed(states.desired.topics.get(name, topics[name]))
            for name in names
            if name in states.desired.topics or name in states.observed.topics
        }
        changed = dict(sorted({**states.desired.topics, **known}.items()))
        return States(replace(states.desired, topics=changed), states.observed)

    if topics:
        yield Change(
            tuple(
                Part(kind, text, alike[0].where(path), make, tuple([topic.name for topic in alike]))
                for (_, text), alike in sorted(lines.items())
            )
        )


def loses_racks(states: States, changed: States, plan: Plan | None = None) -> bool:
    """Whether a partition ends in fewer racks than its living replicas are in; without a plan, whether it has to.

    Racks that its placement does not allow are not counted, and a topic that ignores racks has none to lose. Both
    states hold the same topics; the plan is of the changed one.
    """
    rules, fenced = topic_rules(*changed), {b.id for b in states.observed.brokers.values() if b.is_fenced}
    moves = moves_of(plan.stages) if plan else ()
    ends = {move.topic_partition: frozenset(move.to_replicas) for move in moves}
    for name, topic in states.observed.topics.items():
        rule = rules[name]
        placement = rule.declared.placement if rule.declared else Placement()
        if rule.spread is Spread.IGNORE or rule.assignment is not None or rule.rack_replicas is not None:
            continue
        gone = fenced | {b for b, rack in rule.rack_of.items() if barred_by(placement, b, rack) is not None}
        lists = ((one, frozenset(one.target_replicas)) for one in topic.partitions)
        for replicas, end in {(now, ends.get(TopicPartition(name, one.partition), now)) for one, now in lists}:
            after = end if plan else rule.receivable | (rule.keepable & replicas)
            factor = len(end) if plan else rule.target_factor([*replicas])
            if len(_known_racks(rule, after)) < min(len(_known_racks(rule, replicas - gone)), factor):
                return True
    return False


def _known_racks(rule: TopicRules, broker_ids: Iterable[int]) -> set[str]:
    return {rule.rack_of.get(broker_id, NO_RACK) for broker_id in broker_ids} - {NO_RACK}


def of_topics(states: States, topics: Collection[str]) -> States:
    """Return the states with these topics alone, none of them declared by a pattern."""
    declared = managed_topics(states.desired, states.observed)
    wanted = {name: declared[name] for name in sorted(topics) if name in declared}
    there = {name: states.observed.topics[name] for name in sorted(topics) if name in states.observed.topics}
    return States(replace(states.desired, topics=wanted, patterns=()), replace(states.observed, topics=there))


def thinned(states: States, topics: Collection[str]) -> States:
    """Return the states with these topics alone, and of alike ones, and of their alike partitions, one each.

    What can be placed depends on rules, on the number of replicas, and on those that a cordoned broker may keep; of an
    undeclared topic, on all that stay beside those that leave. How many racks are kept depends on the racks.
    """
    declared = managed_topics(states.desired, states.observed)
    keeping = cordoned_brokers(*states) | _brokers_in(states, {BrokerState.ABSENT})
    restricted = keeping | _brokers_in(states, {*BrokerState} - {BrokerState.ACTIVE})
    restricted |= {broker_id for broker_id in states.observed.brokers if not states.observed.is_alive(broker_id)}
    rack_of = {broker_id: broker.rack or NO_RACK for broker_id, broker in states.observed.brokers.items()}
    barred: dict[Placement, frozenset[int]] = {}
    alone = of_topics(states, topics)
    kept: dict[str, Topic] = {}
    wanted: dict[str, DesiredTopic] = {}
    seen: set[object] = set()
    for name in sorted(topics):
        topic, there = declared.get(name), states.observed.topics.get(name)
        placement = topic.placement if topic else Placement()
        if placement not in barred:
            barred[placement] = frozenset(b for b, rack in rack_of.items() if barred_by(placement, b, rack) is not None)
        likeness = partial(_likeness, restricted | barred[placement], rack_of)
        partitions = () if there is None else _unlike(there, topic, likeness)
        key = (
            topic and (topic.placement, topic.replication_factor, topic.protect, topic.is_absent),
            there and (there.is_internal, frozenset(map(likeness, partitions))),
        )
        if key in seen and not (topic and topic.placement.assignment):
            continue
        seen.add(key)
        if there is not None:
            kept[name] = replace(there, partitions=partitions)
        if topic is not None:
            wanted[name] = replace(topic, partitions=_count(topic, there, len(partitions)))
    return States(replace(alone.desired, topics=wanted), replace(alone.observed, topics=kept))


def _brokers_in(states: States, kinds: Collection[BrokerState]) -> frozenset[int]:
    return frozenset(one.id for one in states.desired.cluster.brokers.values() if one.state in kinds)


def _count(topic: DesiredTopic, there: Topic | None, kept: int) -> int | None:
    """Return a partition count that, for the partitions kept, grows the topic exactly where it is to grow."""
    if there is None or topic.placement.assignment is not None:
        return topic.partitions
    is_growing = topic.partitions is not None and topic.partitions > len(there.partitions)
    return kept + 1 if is_growing else None


def _unlike(there: Topic, topic: DesiredTopic | None, likeness: Callable[[Partition], object]) -> Sequence[Partition]:
    if topic is not None and (topic.placement.assignment is not None or Protection.MOVE in topic.protect):
        return there.partitions
    first: dict[object, Partition] = {}
    for partition in there.partitions:
        first.setdefault(likeness(partition), partition)
    return tuple(replace(partition, partition=number) for number, partition in enumerate(first.values()))


def _likeness(telling: frozenset[int], rack_of: Mapping[int, str], partition: Partition) -> object:
    """Return what partitions have in common whose replicas are on the same of these brokers, others in alike racks."""
    replicas = partition.target_replicas
    others = sorted(rack_of.get(broker_id, NO_RACK) for broker_id in replicas if broker_id not in telling)
    return telling.intersection(replicas), tuple(others)
