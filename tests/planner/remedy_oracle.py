"""Which single changes, and which pairs, let a refused state be planned: each is made by hand and really planned."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations

from helpers.plans.planning import planned, replicas_after

from reconciler.diff.managed import managed_topics
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Placement, Protection, Spread
from reconciler.model.problem import InvalidInput, PlacementInfeasible
from reconciler.model.topic_partition import TopicPartition

State = tuple[Desired, Cluster]
Edit = Callable[[State], State]


def is_plannable(state: State) -> bool:
    """Whether there is a plan."""
    try:
        planned(*state)
    except (PlacementInfeasible, InvalidInput):
        return False
    return True


def single_changes(state: State, topics: frozenset[str]) -> Iterator[tuple[str, Edit]]:
    """Yield every single change, with the kind that it is of; those of topics change all these topics at once."""
    desired, observed = state
    for broker in desired.cluster.brokers.values():
        if broker.id in observed.brokers and broker.state in {BrokerState.DRAINING, BrokerState.ABSENT}:
            then = BrokerState.DRAINING if broker.state is BrokerState.ABSENT else BrokerState.ACTIVE
            yield "kept", _broker(broker.id, then)
        if broker.id in observed.brokers and broker.state is BrokerState.CORDONED:
            yield "uncordoned", _broker(broker.id, BrokerState.ACTIVE)
    for rack in sorted({broker.rack or "" for broker in observed.brokers.values()}):
        yield "broker", _one_more(rack)
    wanted = _factors(state, topics)
    if wanted and min(wanted.values()) > 1:
        yield "factor", _topics(topics, lambda topic: replace(topic, replication_factor=wanted[topic.name] - 1))
    yield "spread", _topics(topics, _relaxed)
    yield "protect", _topics(topics, lambda topic: replace(topic, protect=topic.protect - {Protection.MOVE}))
    yield "assignment", _topics(topics, lambda topic: _placed(topic, assignment=None))
    for rack in sorted({broker.rack or "" for broker in observed.brokers.values()}):
        yield "racks", _topics(topics, partial(_wider, "racks_only", rack))
    for one in observed.brokers:
        yield "brokers", _topics(topics, partial(_wider, "brokers_only", one))
        yield "brokers", _topics(topics, partial(_not_excepted, one))


def kinds_that_help(state: State, topics: frozenset[str]) -> set[str]:
    """Return the kinds of single change that make the state plannable, with each of these topics in as many racks."""
    return {kind for kind, edit in single_changes(state, topics) if is_help(state, edit(state), topics)}


def is_help(state: State, changed: State, topics: frozenset[str]) -> bool:
    """Whether there is a plan after the change, and it leaves no partition of these topics in fewer racks."""
    return is_plannable(changed) and not partitions_in_fewer_racks(state, changed, topics)


def partitions_in_fewer_racks(state: State, changed: State, topics: frozenset[str]) -> list[TopicPartition]:
    """Return the partitions that the plan of the changed state leaves in fewer racks than their living replicas are in.

    Not those that the files put there: by an explicit assignment, by racks that are named or replicas by rack, or
    because racks are ignored. Fewer replicas may be in fewer racks.
    """
    placed, observed, rack_of = planned(*changed), state[1], {b.id: b.rack for b in changed[1].brokers.values()}
    reached, declared, found = replicas_after(changed[1], placed), managed_topics(*changed), []
    for key, partition in observed.partitions():
        placement = declared[key.topic].placement if key.topic in declared else Placement()
        is_free = placement.assignment is None and placement.racks_replicas is None
        if key.topic not in topics or not is_free or placement.racks_spread is Spread.IGNORE:
            continue
        living = [b for b in partition.target_replicas if observed.is_alive(b) and _is_named(placement, b, rack_of)]
        before, after = ({rack_of[b] for b in each if rack_of[b]} for each in (living, reached[key]))
        if len(after) < min(len(before), len(reached[key])):
            found.append(key)
    return found


def _is_named(placement: Placement, broker_id: int, rack_of: Mapping[int, str | None]) -> bool:
    is_only = placement.brokers_only is None or broker_id in placement.brokers_only
    is_in_rack = placement.racks_only is None or rack_of[broker_id] in placement.racks_only
    return is_only and is_in_rack and broker_id not in placement.brokers_except


def is_pair_enough(state: State, topics: frozenset[str]) -> bool:
    """Whether any two single changes make the state plannable."""
    edits = [edit for _, edit in single_changes(state, topics)]
    return any(is_help(state, one(other(state)), topics) for one, other in combinations(edits, 2)) or any(
        is_help(state, one(one(state)), topics) for one in edits
    )


def _factors(state: State, topics: frozenset[str]) -> dict[str, int]:
    declared = managed_topics(*state)
    found = {}
    for name in topics & declared.keys():
        there = state[1].topics.get(name)
        held = max((len(one.target_replicas) for one in there.partitions), default=0) if there else 0
        found[name] = declared[name].replication_factor or held
    return found


def _broker(broker_id: int, then: BrokerState) -> Edit:
    def edit(state: State) -> State:
        desired, observed = state
        broker = replace(desired.cluster.brokers[broker_id], state=then)
        brokers = {**desired.cluster.brokers, broker_id: broker}
        return replace(desired, cluster=replace(desired.cluster, brokers=brokers)), observed

    return edit


def _one_more(rack: str) -> Edit:
    def edit(state: State) -> State:
        desired, observed = state
        new = max(observed.brokers) + 1
        return desired, replace(observed, brokers={**observed.brokers, new: Broker(new, rack)})

    return edit


def _topics(topics: frozenset[str], edited: Callable[[DesiredTopic], DesiredTopic]) -> Edit:
    def edit(state: State) -> State:
        declared = managed_topics(*state)
        changed = {name: edited(declared[name]) for name in topics & declared.keys()}
        return replace(state[0], topics=dict(sorted({**state[0].topics, **changed}.items()))), state[1]

    return edit


def _relaxed(topic: DesiredTopic) -> DesiredTopic:
    is_strict = topic.placement.racks_spread is Spread.STRICT
    return _placed(topic, racks_spread=Spread.PREFER) if is_strict else topic


def _not_excepted(broker_id: int, topic: DesiredTopic) -> DesiredTopic:
    return _placed(topic, brokers_except=topic.placement.brokers_except - {broker_id})


def _wider(field: str, more: object, topic: DesiredTopic) -> DesiredTopic:
    named = getattr(topic.placement, field)
    return topic if named is None else _placed(topic, **{field: named | {more}})


def _placed(topic: DesiredTopic, **fields: object) -> DesiredTopic:
    placement: Placement = replace(topic.placement, **fields)  # type: ignore[arg-type]
    return replace(topic, placement=placement)
