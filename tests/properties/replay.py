"""A plan walked through by hand, and what is wrong with its stages: shares no code with staging or simulate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from helpers.plans.oracle import Demand, Problem, rack_excess

from reconciler.model.change import CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, MovePolicy
from reconciler.model.move import Election, Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, TopicsStage, elections_of
from reconciler.model.topic_partition import TopicPartition

NO_EXCESS = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Held:
    """One partition between two stages."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int | None


@dataclass(frozen=True, slots=True)
class Replay:
    """The state of each partition before the first stage and after each, and all that was found wrong."""

    states: tuple[Mapping[TopicPartition, Held], ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a stage may not do."""

    problem: Problem
    demands: Mapping[TopicPartition, Demand]
    alive: frozenset[int]
    unfit_leaders: frozenset[int]
    policy: MovePolicy


def replayed(desired: Desired, observed: Cluster, problem: Problem, plan: Plan) -> Replay:
    """Return every state that the plan passes through, and the faults of its stages."""
    rules = _Rules(
        problem=problem,
        demands={demand.topic_partition: demand for demand in problem.demands},
        alive=frozenset(b for b, broker in observed.brokers.items() if not broker.is_fenced),
        unfit_leaders=frozenset(
            broker.id
            for broker in desired.cluster.brokers.values()
            if broker.state in {BrokerState.DRAINING, BrokerState.ABSENT, BrokerState.MAINTENANCE}
        ),
        policy=desired.cluster.moves,
    )
    state: dict[TopicPartition, Held] = {
        key: Held(partition.replicas, frozenset(partition.isr), partition.leader)
        for key, partition in observed.partitions()
    }
    states: list[Mapping[TopicPartition, Held]] = [dict(state)]
    faults: list[str] = []
    for number, stage in enumerate(plan.stages, start=1):
        match stage:
            case TopicsStage():
                changes = [plan.topic_changes[position] for position in stage.changes]
                created, found = _created(changes, rules)
                state |= created
            case ReassignStage():
                found = [*_stage_faults(stage, rules), *_move_faults(stage, state, rules)]
                state |= {m.topic_partition: _moved(state[m.topic_partition], m, rules) for m in stage.moves}
            case ElectStage() | LogDirsStage():
                found = []
        for each in elections_of(stage):
            found += _election_faults(each, state)
            state[each.topic_partition] = replace(state[each.topic_partition], leader=each.leader)
        faults += [f"stage {number}: {fault}" for fault in found]
        faults += [f"stage {stage.number} is numbered wrongly"] if stage.number != number else []
        states.append(dict(state))
    return Replay(tuple(states), tuple(faults))


def reached_cluster(observed: Cluster, state: Mapping[TopicPartition, Held]) -> Cluster:
    """Return the cluster in that state; every replica of a partition has the size that a copy of it had before."""
    topics = {}
    for name in sorted({key.topic for key in state}):
        numbers = sorted(key for key in state if key.topic == name)
        before = observed.topics.get(name, Topic(name))
        topics[name] = replace(before, partitions=tuple(_partition(observed, key, state[key]) for key in numbers))
    return replace(observed, topics=topics)


def _partition(observed: Cluster, key: TopicPartition, held: Held) -> Partition:
    before = observed.partition(key)
    size = before.bytes_to_copy if before else 0
    return Partition(
        key.partition,
        leader=held.leader,
        replicas=held.replicas,
        isr=tuple(replica for replica in held.replicas if replica in held.isr),
        sizes=(size,) * len(held.replicas) if size is not None else (),
    )


def _created(changes: Sequence[TopicChange], rules: _Rules) -> tuple[dict[TopicPartition, Held], list[str]]:
    created: dict[TopicPartition, Held] = {}
    faults = []
    for change in changes:
        if isinstance(change, CreateTopic | CreatePartitions):
            for number, replicas in change.assignment.items():
                key = TopicPartition(change.topic, number)
                created[key] = Held(replicas, frozenset(replicas), replicas[0])
                if not rules.alive.issuperset(replicas) or len(set(replicas)) != len(replicas):
                    faults.append(f"{key} is created on {replicas}")
    return created, faults


def _moved(held: Held, move: Move, rules: _Rules) -> Held:
    """Return what Kafka makes of it: all live target replicas in sync, a leader that goes replaced in target order."""
    isr = frozenset(move.to_replicas) & rules.alive
    leader = held.leader if held.leader in isr else next((b for b in move.to_replicas if b in isr), None)
    return Held(move.to_replicas, isr, leader)


def _stage_faults(stage: ReassignStage, rules: _Rules) -> Iterator[str]:
    """Yield what the stage as a whole does too much of."""
    if len(stage.moves) > rules.policy.per_stage:
        yield f"{len(stage.moves)} partitions, perStage is {rules.policy.per_stage}"
    if len({move.topic_partition for move in stage.moves}) != len(stage.moves):
        yield "a partition moves twice"


def _move_faults(stage: ReassignStage, state: Mapping[TopicPartition, Held], rules: _Rules) -> Iterator[str]:
    for move in stage.moves:
        held = state[move.topic_partition]
        yield from (
            f"{move.topic_partition} {held} {move.to_replicas}: {fault}" for fault in _faults(held, move, rules)
        )


def _faults(held: Held, move: Move, rules: _Rules) -> Iterator[str]:
    """Yield what is wrong with one move from that state."""
    demand, target = rules.demands[move.topic_partition], move.to_replicas
    if move.from_replicas != held.replicas:
        yield "starts somewhere else"
    if len(set(target)) != len(target) or not target:
        yield "names a broker twice, or none"
    live = [replica for replica in held.replicas if replica in rules.alive]
    if len(target) < min(len(live), demand.need):
        yield "has fewer replicas than before and than wanted"
    if not demand.allowed.issuperset(move.added):
        yield "adds a replica where none may go"
    if len(move.added) > rules.policy.per_partition and len(live) == len(held.replicas):
        yield "copies more replicas at once than perPartition"
    yield from _spread_faults(demand, held, target, rules.problem)
    heirs = (held.isr & rules.alive) - rules.unfit_leaders
    if held.leader in move.removed and held.leader in rules.unfit_leaders and heirs - {held.leader}:
        yield "takes the data before the leadership"


def _spread_faults(demand: Demand, held: Held, target: tuple[int, ...], problem: Problem) -> Iterator[str]:
    """Yield a fault where a strict spread, by the bounds of as many replicas, held before and no longer does."""
    is_kept_before, is_kept_after = (_is_spread(problem, demand, replicas) for replicas in (held.replicas, target))
    if not demand.is_yielding and is_kept_before and not is_kept_after:
        yield "breaks its racks"


def _is_spread(problem: Problem, demand: Demand, replicas: tuple[int, ...]) -> bool:
    racks = demand.counted_racks
    low, high = len(replicas) // len(racks), -(-len(replicas) // len(racks))
    bounds = {rack: (low if rack in racks else 0, high) for rack in set(problem.rack_of.values())}
    return rack_excess(replace(demand, bounds=bounds), problem.rack_of, replicas) == NO_EXCESS


def _election_faults(election: Election, state: Mapping[TopicPartition, Held]) -> Iterator[str]:
    held = state[election.topic_partition]
    if held.replicas[0] != election.leader or election.leader not in held.isr:
        yield f"{election} of {held}"
    if held.leader == election.leader:
        yield f"{election}: it leads already"
