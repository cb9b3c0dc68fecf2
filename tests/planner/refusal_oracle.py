"""Reads the sentences of a refusal and makes true what they say, by hand: rules named, cures, remedies."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from helpers.plans.oracle import declared_topic, is_feasible, problem_of
from planner.remedy_oracle import State

from reconciler.diff.managed import managed_topics
from reconciler.model.cluster import Broker
from reconciler.model.desired import (
    BrokerState,
    DesiredBroker,
    DesiredTopic,
    Placement,
    Protection,
    Spread,
)
from reconciler.model.problem import Problem

STATES = {
    "declared draining": BrokerState.DRAINING,
    "declared absent": BrokerState.ABSENT,
    "cordoned": BrokerState.CORDONED,
    "not alive": None,
}
FIELDS = {
    "brokers.only": "brokers_only",
    "brokers.except": "brokers_except",
    "racks.only": "racks_only",
    "racks.replicas": "racks_replicas",
    "racks.spread": "racks_spread",
}


@dataclass(frozen=True)
class Refusal:
    """What a problem says of one partition.

    `named` are its rules: (state, broker), (field of the placement, ) or (factor, ).
    """

    topic: str
    number: int
    named: frozenset[tuple[object, ...]]
    is_assigned: bool
    cures: tuple[str, ...]


def refusal_of(problem: Problem) -> Refusal:
    """Return what a KR301 says."""
    text = re.sub(r" \([\w./-]+:\d+\)", "", problem.message)
    text = re.sub(r" The same holds for .*$", "", text)
    found = re.fullmatch(r"(?P<topic>.+)-(?P<number>\d+) cannot be placed: (?P<said>.+?)\. (?P<cures>.+)\.", text)
    assert found, problem.message
    said = found["said"]
    named: set[tuple[object, ...]] = set()
    for state, kind in STATES.items():
        for ids in re.findall(rf"brokers? ([\d, ]+) (?:is|are) {state}(?=,|$)", said):
            named |= {(kind, int(broker_id)) for broker_id in ids.split(",")}
    named |= {(field,) for path, field in FIELDS.items() if path in said}
    named |= {("factor",)} if re.match("replicationFactor is|it has", said) else set()
    cures = tuple(found["cures"].split("; or "))
    return Refusal(found["topic"], int(found["number"]), frozenset(named), said.startswith("assignment"), cures)


def is_placeable(state: State, refusal: Refusal) -> bool:
    """Whether that partition finds a place, by enumeration."""
    problem = problem_of(*state)
    key = refusal.topic, refusal.number
    return is_feasible(replace(problem, demands=tuple(each for each in problem.demands if each.topic_partition == key)))


def with_rules_alone(state: State, refusal: Refusal, named: frozenset[tuple[object, ...]]) -> State:
    """Return the state in which nothing but these rules binds the partition."""
    desired, observed = state
    topic = declared_topic(desired, refusal.topic)
    kept = {kind: {each[1] for each in named if each[0] is kind} for kind in STATES.values()}
    brokers = {
        broker_id: DesiredBroker(broker_id, kind)
        for kind, ids in kept.items()
        if kind is not None
        for broker_id in ids
        if isinstance(broker_id, int)
    }
    living = {b: replace(one, is_fenced=b in kept[None]) for b, one in observed.brokers.items()}
    desired = replace(desired, cluster=replace(desired.cluster, brokers=brokers))
    observed = replace(observed, brokers=living)
    if topic is None:
        return desired, observed
    empty = Placement(
        racks_spread=Spread.IGNORE, assignment=topic.placement.assignment if refusal.is_assigned else None
    )
    written = {field: getattr(topic.placement, field) for field in FIELDS.values() if (field,) in named}
    factor = _factor(state, topic) if ("factor",) in named or refusal.is_assigned else 1
    topic = replace(topic, placement=replace(empty, **written), replication_factor=factor)
    return replace(desired, topics={**desired.topics, topic.name: topic}), observed


def _factor(state: State, topic: DesiredTopic) -> int | None:
    there = state[1].topics.get(topic.name)
    return topic.replication_factor or (len(there.partitions[0].target_replicas) if there else None)


def cured(state: State, refusal: Refusal, cure: str) -> Iterator[State]:
    """Yield every state that the cure may mean: `one of them` is any."""
    lowered = re.sub("^[A-Z]", lambda first: first[0].lower(), cure)
    match lowered:
        case "lower replicationFactor" | "declare it with a lower replicationFactor":
            topic = declared_topic(state[0], refusal.topic)
            assert (topic is None) == lowered.startswith("declare")
            topic = topic or DesiredTopic(refusal.topic)
            lower = (
                _with_topic(state, replace(topic, replication_factor=n)) for n in range(1, _factor(state, topic) or 1)
            )
            yield next((each for each in lower if is_placeable(each, refusal)), state)
            return
        case "name more brokers" | "except fewer brokers" | "name more racks" | "let racks.spread be prefer":
            path = {
                "name more brokers": "brokers.only",
                "except fewer brokers": "brokers.except",
                "name more racks": "racks.only",
            }
            field = FIELDS[path.get(lowered, "racks.spread")]
            nothing = {"brokers_except": frozenset(), "racks_spread": Spread.PREFER}.get(field)
            yield _with_placement(state, refusal.topic, **{field: nothing})
            return
        case "add brokers":
            yield (
                state[0],
                replace(state[1], brokers={**state[1].brokers, **{b: Broker(b, "new") for b in range(500, 510)}}),
            )
            return
    words = re.fullmatch(r"(keep|start|uncordon|declare) (?:brokers? ([\d, ]+)|one of them)(?: active)?", lowered)
    assert words, cure
    kinds = {
        "start": None,
        "keep": BrokerState.DRAINING,
        "uncordon": BrokerState.CORDONED,
        "declare": BrokerState.ABSENT,
    }
    named = [each[1] for each in refusal.named if len(each) > 1 and each[0] is kinds[words[1]]]
    chosen: list[set[object]] = (
        [{int(each) for each in words[2].split(",")}] if words[2] else [{each} for each in named]
    )
    for ids in chosen:
        yield _started(state, ids) if words[1] == "start" else _active(state, ids)


def _started(state: State, ids: set[object]) -> State:
    brokers = {b: replace(one, is_fenced=one.is_fenced and b not in ids) for b, one in state[1].brokers.items()}
    return state[0], replace(state[1], brokers=brokers)


def _active(state: State, ids: set[object]) -> State:
    declared = {b: one for b, one in state[0].cluster.brokers.items() if b not in ids}
    return replace(state[0], cluster=replace(state[0].cluster, brokers=declared)), state[1]


def _with_topic(state: State, topic: DesiredTopic) -> State:
    return replace(state[0], topics={**state[0].topics, topic.name: topic}), state[1]


def _with_placement(state: State, name: str, **fields: object) -> State:
    topic = declared_topic(state[0], name)
    assert topic is not None
    return _with_topic(state, replace(topic, placement=replace(topic.placement, **fields)))  # type: ignore[arg-type]


Step = Callable[[State], State]


def steps_of(words: str) -> list[Step]:
    """Return the smallest steps of an edit of a remedy: one for each topic, broker or joining broker."""
    text, _, topics = words.partition(", for ")
    if topics:
        return [partial(_edited, text, name) for name in re.split(", | and ", topics)]
    if found := re.fullmatch(r"(one|two) more brokers? joins?(?: in rack (.+))?", text):
        return [partial(_joined, found[2])] * (1 if found[1] == "one" else 2)
    found = re.fullmatch(r"broker (\d+) (stays active|is active, not cordoned|is declared draining, not absent)", text)
    assert found, words
    if found[2].startswith("is declared"):
        return [partial(_declared, int(found[1]), BrokerState.DRAINING)]
    return [partial(_declared, int(found[1]), BrokerState.ACTIVE)]


def _declared(broker_id: int, then: BrokerState, state: State) -> State:
    brokers = {**state[0].cluster.brokers, broker_id: DesiredBroker(broker_id, then)}
    return replace(state[0], cluster=replace(state[0].cluster, brokers=brokers)), state[1]


def _joined(rack: str | None, state: State) -> State:
    new = 1 + max(state[1].brokers)
    return state[0], replace(state[1], brokers={**state[1].brokers, new: Broker(new, rack)})


def _edited(text: str, name: str, state: State) -> State:
    topic = managed_topics(*state)[name]
    return _with_topic(state, _edited_topic(text, topic))


def _edited_topic(text: str, topic: DesiredTopic) -> DesiredTopic:
    placement = topic.placement
    path, _, rest = text.partition(" ")
    name = rest.removeprefix("names ").removeprefix("does not name ").removesuffix(" too")
    match path:
        case "replicationFactor":
            return replace(topic, replication_factor=int(rest.removeprefix("is ").split(",")[0]))
        case "protect":
            return replace(topic, protect=topic.protect - {Protection.MOVE})
        case "racks.spread":
            placement = replace(placement, racks_spread=Spread.PREFER)
        case "placement.assignment":
            placement = replace(placement, assignment=None)
        case "brokers.except":
            placement = replace(placement, brokers_except=placement.brokers_except - {int(name)})
        case "brokers.only":
            placement = replace(placement, brokers_only=(placement.brokers_only or frozenset()) | {int(name)})
        case "racks.only":
            placement = replace(placement, racks_only=(placement.racks_only or frozenset()) | {name})
    assert placement != topic.placement, text
    return replace(topic, placement=placement)


def followed(state: State, steps: Sequence[Step]) -> State:
    """Return the state after these steps."""
    for step in steps:
        state = step(state)
    return state
