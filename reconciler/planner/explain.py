"""Explains why one partition moves as it does, from what the plan keeps alone: its grounds, its prices, its shares.

Nothing is planned again. The rules are resolved again from the plan's grounds; what another broker would have cost is
the difference of two prices of the plan's proof.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from reconciler.diff.rules import LEAVING, TopicRules, barred_by, topic_rules
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker, Cluster, LogDir, Topic
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Placement
from reconciler.model.explanation import (
    Added,
    Alternative,
    Barred,
    Cause,
    Counts,
    Explanation,
    FullRack,
    Judgement,
    NewLeader,
    Removed,
    StepOfPartition,
)
from reconciler.model.grounds import UNDECLARED, BrokerGround, PlacementGround, Swap
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of, moves_of
from reconciler.model.topic_partition import TopicPartition

ALTERNATIVES, BARRED = 3, 5
"""So many other brokers are named for each replica, the nearest first: a screen's worth; the rest are counted."""
BY_COPIES = ("bytes", "replicas")
"""The objectives that decide last between brokers; what comes after them carries no prices."""
_RANK = {Judgement.AS_GOOD: 0, Judgement.COSTS_MORE: 1, Judgement.LESS_EVEN: 2, Judgement.LOADS: 3}


@dataclass(frozen=True, slots=True)
class View:
    """One partition's way through one plan."""

    plan: Plan
    key: TopicPartition
    moves: tuple[Move, ...]  # in the order of their stages
    before: tuple[int, ...]
    after: tuple[int, ...]
    placement: Placement  # as the topic's was declared; its assignment is not kept
    is_assigned: bool  # whether its replicas are written one by one
    rules: TopicRules  # as the planner resolved them

    @property
    def added(self) -> tuple[int, ...]:
        """Brokers that get a replica."""
        return tuple(one for one in self.after if one not in self.before)

    @property
    def removed(self) -> tuple[int, ...]:
        """Brokers that give one up."""
        return tuple(one for one in self.before if one not in self.after)

    def rack(self, broker_id: int) -> str:
        """Return a broker's rack."""
        ground = self.plan.grounds.brokers.get(broker_id)
        return ground.rack if ground is not None else ""

    def counts(self, broker_id: int, *, of_leaders: bool = False) -> Counts:
        """Return the broker's replicas, or preferred leaders, and its share of those on the brokers that stay."""
        what, plan = "leaders" if of_leaders else "replicas", self.plan
        before, after = (each.get(broker_id) for each in (plan.balance_before, plan.balance_after))
        now, then = (getattr(one, what) if one else 0 for one in (before, after))
        fair = self._fair(broker_id, what, sum(getattr(one, what) for one in plan.balance_after.values()))
        if of_leaders or not any(level.load_prices for level in plan.proof.levels):
            return Counts(now, then, fair)
        return Counts(now, then, fair, before.bytes if before else None, after.bytes if after else None)

    def _fair(self, broker_id: int, what: str, total: int) -> float | None:
        """Return its fair share of replicas or leaders by capacity; None for one that is not to hold anything."""
        grounds = self.plan.grounds.brokers
        staying = {id_: one for id_, one in grounds.items() if one.is_alive and one.state not in LEAVING}
        capacity = sum(ground.weight(what) for ground in staying.values())
        return round(total * staying[broker_id].weight(what) / capacity, 1) if broker_id in staying else None


def explain(plan: Plan, topic_partition: TopicPartition) -> Explanation:
    """Return why the plan does what it does to that partition, or that it does nothing.

    Raises InvalidInput where the cluster would not have such a partition.
    """
    _refuse_unknown(plan, topic_partition)
    steps = steps_of(plan, topic_partition)
    moves = tuple(move for move in moves_of(plan.stages) if move.topic_partition == topic_partition)
    created = _created_as(plan, topic_partition)
    if not moves and created is None:
        held = (one.replicas for one in plan.rollback.assignments if one.topic_partition == topic_partition)
        inside = (one.replicas for step in steps for one in step.log_dirs)
        now = next(held, next(inside, ()))
        return Explanation(topic_partition, now, now, steps)
    view = _view(plan, topic_partition, moves, created)
    return Explanation(
        topic_partition,
        view.before,
        view.after,
        steps,
        bytes=sum(move.bytes for move in moves),
        is_size_known=all(move.is_size_known for move in moves),
        reason=moves[0].reason if moves else Reason.NEW_PARTITION,
        at=moves[0].at if moves else None,
        added=tuple(_added(view)),
        removed=tuple(Removed(one, _why_removed(view, one), view.counts(one)) for one in view.removed),
        leader=_new_leader(view),
        is_least=plan.proof.value == plan.proof.lower_bound and (plan.budgeted is None or plan.budgeted.is_whole),
    )


def _refuse_unknown(plan: Plan, topic_partition: TopicPartition) -> None:
    name, topics = topic_partition.topic, plan.grounds.topics
    what, topic = str(topic_partition), topics.get(name)
    if topic is not None:
        if topic_partition.partition < topic.partitions:
            return
        why = f"{name} has partitions 0 to {topic.partitions - 1}" if topic.partitions else f"{name} has none"
    elif topics:
        what, near = f"topic {name}", get_close_matches(name, sorted(topics), n=3)
        why = f"did you mean {' or '.join(near)}?" if near else f"its cluster has {len(topics)} topics, none like it"
    elif plan.source.rolls_back:
        why = f"it goes back to what plan {plan.source.rolls_back} found, for no other reason"
    else:
        why = "it holds nothing that could be explained" if plan.stages else "it changes nothing"
    raise InvalidInput([Problem("KR308", f"{what} is not known to this plan: {why}")])


def _view(plan: Plan, key: TopicPartition, moves: tuple[Move, ...], created: tuple[int, ...] | None) -> View:
    """Return the partition's view, its topic's rules resolved again from what the plan keeps."""
    grounds, name = plan.grounds, key.topic
    number = grounds.topics[name].placement
    kept = PlacementGround() if number == UNDECLARED else grounds.placements[number]
    placement = Placement(
        racks_spread=kept.spread,
        racks_replicas=kept.racks_replicas,
        racks_only=None if kept.racks_only is None else frozenset(kept.racks_only),
        racks_leader=None if kept.racks_leader is None else frozenset(kept.racks_leader),
        brokers_only=None if kept.brokers_only is None else frozenset(kept.brokers_only),
        brokers_except=frozenset(kept.brokers_except),
    )
    declared = {id_: DesiredBroker(id_, ground.state, ground.capacity) for id_, ground in grounds.brokers.items()}
    topics = {} if number == UNDECLARED else {name: DesiredTopic(name, placement=placement)}
    brokers = {id_: _broker(id_, ground) for id_, ground in grounds.brokers.items()}
    observed = Cluster(plan.cluster_id, brokers, {name: Topic(name)})
    rules = topic_rules(Desired(DesiredCluster(plan.cluster_name, brokers=declared), topics), observed)[name]
    before = moves[0].from_replicas if moves else ()
    after = moves[-1].to_replicas if moves else created or ()
    return View(plan, key, moves, before, after, placement, kept.is_assigned, rules)


def _broker(broker_id: int, ground: BrokerGround) -> Broker:
    log_dirs = (LogDir("", is_cordoned=True),) if ground.is_cordoned else ()
    return Broker(broker_id, ground.rack or None, is_fenced=not ground.is_alive, log_dirs=log_dirs)


def _why_removed(view: View, broker_id: int) -> Cause:
    ground = view.plan.grounds.brokers.get(broker_id)
    if ground is None or not ground.is_alive:
        return Cause.DEAD
    if ground.state in LEAVING:
        return Cause.DRAINING if ground.state is BrokerState.DRAINING else Cause.ABSENT
    if view.is_assigned:
        return Cause.ASSIGNMENT
    if barred_by(view.placement, broker_id, ground.rack):
        return Cause.NOT_ALLOWED
    if not view.added:
        return Cause.FEWER_REPLICAS
    is_for_racks = any(move.reason is Reason.RACKS for move in view.moves)
    return Cause.RACKS if is_for_racks else Cause.BALANCE


def _new_leader(view: View) -> NewLeader | None:
    old, new = view.before[0] if view.before else None, view.after[0]
    if old == new or old is None:
        return None
    counts = (view.counts(one, of_leaders=True) for one in (old, new))
    return NewLeader(old, new, _why_led(view, old, new), *counts)


def _why_led(view: View, old: int, new: int) -> Cause:
    ground = view.plan.grounds.brokers.get(old)
    if view.is_assigned:
        return Cause.ASSIGNMENT
    if old not in view.after:
        return Cause.GONE
    if ground is not None and ground.state is BrokerState.MAINTENANCE:
        return Cause.MAINTENANCE
    leading = view.placement.racks_leader
    is_for_racks = leading is not None and view.rack(old) not in leading and view.rack(new) in leading
    return Cause.LEADER_RACKS if is_for_racks else Cause.BALANCE


def _added(view: View) -> Iterator[Added]:
    """Yield each broker that gets a replica, with what could have taken it instead."""
    givers = {taker: giver for giver, taker in paired(view.removed, view.added, view.rack)}
    for taker in view.added:
        giver = givers.get(taker)
        judged = [] if view.is_assigned else _alternatives(view, taker)
        yield Added(
            taker,
            view.rack(taker),
            view.counts(taker),
            in_place_of=giver,
            full=() if view.is_assigned else tuple(_full_racks(view, taker)),
            alternatives=tuple(judged[:ALTERNATIVES]),
            others=max(0, len(judged) - ALTERNATIVES),
            barred=() if view.is_assigned else tuple(_barred(view, taker))[:BARRED],
            instead=view.plan.grounds.instead.get(Swap(giver, taker)) if giver is not None else None,
        )


def paired(givers: Sequence[int], takers: Sequence[int], rack: Callable[[int], object]) -> Iterator[Swap]:
    """Yield who gives a replica to whom: brokers of one rack to one another first, the rest in their order."""
    left, rack_of = list(givers), {one: rack(one) for one in (*givers, *takers)}
    giving = {rack_of[one] for one in givers}
    for taker in sorted(takers, key=lambda one: rack_of[one] not in giving):
        if left:
            giver = next((one for one in left if rack_of[one] == rack_of[taker]), left[0])
            left.remove(giver)
            yield Swap(giver, taker)


def _alternatives(view: View, taker: int) -> list[Alternative]:
    """Return the brokers that could take the replica instead, all else as planned, the nearest first."""
    allowed = (view.rules.receivable | (view.rules.keepable & frozenset(view.before))) - frozenset(view.after)
    in_replicas = view.plan.proof.objective == "replicas"
    found = []
    for other in sorted(allowed):
        if _is_legal(view, _swapped(view.after, taker, other)):
            judgement, extra = _judgement(view, taker, other)
            found.append(Alternative(other, judgement, view.counts(other), extra, is_counted_in_replicas=in_replicas))
    return sorted(found, key=lambda one: (_RANK[one.verdict], one.extra, one.counts.after, one.broker_id))


def _swapped(replicas: Sequence[int], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if one == old else one for one in replicas)


def _is_legal(view: View, replicas: Sequence[int]) -> bool:
    """Whether these keep the rules on racks, as far as the plan's own replicas keep them."""
    return _keeps_racks(view, replicas) or not _keeps_racks(view, view.after)


def _keeps_racks(view: View, replicas: Sequence[int]) -> bool:
    limits, held = view.rules.rack_limits(len(replicas), view.before), Counter(map(view.rack, replicas))
    return held.keys() <= limits.keys() and all(low <= held[rack] <= high for rack, (low, high) in limits.items())


def _judgement(view: View, taker: int, other: int) -> tuple[Judgement, int]:
    """Return what the plan's prices say of the other broker: the first objective that tells the two apart decides.

    At the prices of an optimum a cheaper broker is never left: where one looks cheaper, the prices cannot tell.
    """
    for level in view.plan.proof.levels:
        of_topic = level.topic_prices.get(view.key.topic, {})
        is_exact = level.value == level.lower_bound and not (level.load_prices or level.shift or level.weight)
        if not is_exact or not {taker, other} <= level.prices.keys():
            break
        more = level.prices[other] + of_topic.get(other, 0) - level.prices[taker] - of_topic.get(taker, 0)
        is_last = level.objective in BY_COPIES
        if is_last and other in view.before:
            more -= _copy(view, level.objective)
        if more < 0:
            break
        if more:
            return (Judgement.COSTS_MORE, more) if is_last else (Judgement.LESS_EVEN, 0)
        if is_last:
            return Judgement.AS_GOOD, 0
    return Judgement.LOADS, 0


def _copy(view: View, objective: str) -> int:
    """Return what one copy of the partition costs."""
    return 1 if objective == "replicas" else sum(move.bytes for move in view.moves) // max(1, len(view.added))


def _full_racks(view: View, taker: int) -> Iterator[FullRack]:
    """Yield the other racks that hold as many of the partition's replicas as they may."""
    limits = view.rules.rack_limits(len(view.after), view.before)
    for rack in sorted({view.rack(one) for one in view.after} - {view.rack(taker)}):
        held = tuple(one for one in view.after if view.rack(one) == rack)
        if len(held) >= limits.get(rack, (0, 0))[1]:
            yield FullRack(rack, held)


def _barred(view: View, taker: int) -> Iterator[Barred]:
    """Yield the brokers that only a rule about themselves keeps from taking the replica."""
    limits = view.rules.rack_limits(len(view.after), view.before)
    for broker_id, ground in view.plan.grounds.brokers.items():
        is_out = broker_id not in view.rules.receivable and broker_id not in view.before
        is_rack_out = ground.rack not in limits
        if is_out and (is_rack_out or _is_legal(view, _swapped(view.after, taker, broker_id))):
            yield Barred(broker_id, _why_barred(view.placement, ground, broker_id))


def _why_barred(placement: Placement, ground: BrokerGround, broker_id: int) -> str:
    if not ground.is_alive:
        return "not alive"
    if ground.state in LEAVING:
        return ground.state.value
    by = barred_by(placement, broker_id, ground.rack)
    if by is not None:
        return f"in {by}" if by == "brokers.except" else f"not in {by}"
    return ground.state.value if ground.state is BrokerState.CORDONED else "cordoned by Kafka"


def _created_as(plan: Plan, key: TopicPartition) -> tuple[int, ...] | None:
    """Return the replicas that a new partition is created with, None for one that is there."""
    creating = (one for one in plan.topic_changes if isinstance(one, CreateTopic | CreatePartitions))
    found = (one.assignment.get(key.partition) for one in creating if one.topic == key.topic)
    return next(filter(None, found), None)


def steps_of(plan: Plan, key: TopicPartition) -> tuple[StepOfPartition, ...]:
    """Return what each stage does to the partition: created, copied, dropped, elected.

    A copy is served by whoever leads by then: the leader of before, or the one that a stage before it brought.
    """
    leader = next((one.leader for one in plan.rollback.assignments if one.topic_partition == key), None)
    steps = []
    for stage in plan.stages:
        for step in _in_stage(plan, stage, key):
            steps.append(replace(step, source=leader))
            if step.elected is not None:
                leader = step.elected
            elif step.to_replicas and leader not in step.to_replicas:
                leader = step.to_replicas[0]
    return tuple(steps)


def _in_stage(plan: Plan, stage: Stage, key: TopicPartition) -> Iterator[StepOfPartition]:
    match stage:
        case TopicsStage():
            replicas = _created_as(plan, key)
            changes = (plan.topic_changes[position] for position in stage.changes)
            names = {each.topic for each in changes if isinstance(each, CreateTopic | CreatePartitions)}
            if replicas is not None and key.topic in names:
                yield StepOfPartition(stage.number, replicas, is_created=True)
        case ReassignStage():
            for move in (one for one in stage.moves if one.topic_partition == key):
                yield StepOfPartition(stage.number, move.to_replicas, move.added, move.removed, move.bytes)
        case LogDirsStage():
            inside = tuple(one for one in stage.moves if one.topic_partition == key)
            if inside:
                yield StepOfPartition(stage.number, log_dirs=inside)
        case ElectStage():
            pass
    for election in elections_of(stage):
        if election.topic_partition == key:
            yield StepOfPartition(stage.number, elected=election.leader)
