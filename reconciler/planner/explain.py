"""Why one partition moves as it does, from what the plan keeps alone: its grounds, its prices, its shares."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from reconciler.diff.rules import LEAVING, TopicRules, is_allowed, topic_rules
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
    NewLeader,
    Removed,
    StepOfPartition,
    Verdict,
)
from reconciler.model.grounds import BrokerGround, PlacementGround, Swap
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class View:
    """One partition's way through one plan."""

    plan: Plan
    key: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def rules(self) -> TopicRules:
        """The rules of the topic, as the planner resolved them."""
        return _rules(self.plan, self.key.topic)

    @property
    def placement(self) -> PlacementGround | None:
        """What is declared of the topic's placement, None where nobody declared it."""
        number = self.plan.grounds.topics[self.key.topic].placement
        return None if number is None else self.plan.grounds.placements[number]

    @property
    def is_assigned(self) -> bool:
        """Whether its replicas are written one by one."""
        return self.placement is not None and self.placement.is_assigned

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


def explain(plan: Plan, topic_partition: TopicPartition) -> Explanation:
    """Return why the plan does what it does to that partition, or that it does nothing.

    Raises InvalidInput where the cluster would not have such a partition.
    """
    _refuse_unknown(plan, topic_partition)
    steps = steps_of(plan, topic_partition)
    moves = moves_of(plan, topic_partition)
    created = created_as(plan, topic_partition)
    if not moves and created is None:
        held = held_before(plan, topic_partition)
        return Explanation(topic_partition, held, held, steps)
    before = moves[0].from_replicas if moves else ()
    after = moves[-1].to_replicas if moves else created or ()
    view = View(plan, topic_partition, before, after)
    return Explanation(
        topic_partition,
        before,
        after,
        steps,
        bytes=sum(move.bytes for move in moves),
        is_size_known=all(move.is_size_known for move in moves),
        reason=moves[0].reason if moves else Reason.NEW_PARTITION,
        at=moves[0].at if moves else None,
        added=tuple(added_brokers(view)),
        removed=tuple(_removed(view)),
        leader=_new_leader(view),
        is_least=plan.proof.value == plan.proof.lower_bound,
        is_counted_in_replicas=plan.proof.objective == "replicas",
    )


def _refuse_unknown(plan: Plan, topic_partition: TopicPartition) -> None:
    name, number = topic_partition
    topics = plan.grounds.topics
    topic = topics.get(name)
    if topic is not None and number < topic.partitions:
        return
    if topic is not None:
        known = f"{name} has partitions 0 to {topic.partitions - 1}" if topic.partitions else f"{name} has none"
        raise InvalidInput([Problem("KR308", f"{topic_partition} is not known to this plan: {known}")])
    if not topics:
        why = "it holds nothing that could be explained" if plan.stages else "it changes nothing"
        if plan.source.rolls_back:
            why = f"it goes back to what plan {plan.source.rolls_back} found, for no other reason"
        raise InvalidInput([Problem("KR308", f"{topic_partition} is not known to this plan: {why}")])
    near = get_close_matches(name, sorted(topics), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"its cluster has {len(topics)} topics, none like it"
    raise InvalidInput([Problem("KR308", f"topic {name} is not known to this plan: {hint}")])


def _removed(view: View) -> Iterator[Removed]:
    for broker_id in view.removed:
        yield Removed(broker_id, _why_removed(view, broker_id), counts_of(view, broker_id))


def _why_removed(view: View, broker_id: int) -> Cause:
    ground = view.plan.grounds.brokers.get(broker_id)
    if ground is None or not ground.is_alive:
        return Cause.DEAD
    if ground.state in LEAVING:
        return Cause.DRAINING if ground.state is BrokerState.DRAINING else Cause.ABSENT
    if view.is_assigned:
        return Cause.ASSIGNMENT
    if not is_allowed(placement_of(view.placement), broker_id, ground.rack):
        return Cause.NOT_ALLOWED
    if not view.added:
        return Cause.FEWER_REPLICAS
    is_for_racks = any(move.reason is Reason.RACKS for move in moves_of(view.plan, view.key))
    return Cause.RACKS if is_for_racks else Cause.BALANCE


def _new_leader(view: View) -> NewLeader | None:
    old, new = view.before[0] if view.before else None, view.after[0]
    if old == new or old is None:
        return None
    return NewLeader(old, new, _why_led(view, old), leader_counts_of(view, old), leader_counts_of(view, new))


def _why_led(view: View, old: int) -> Cause:
    ground = view.plan.grounds.brokers.get(old)
    if view.is_assigned:
        return Cause.ASSIGNMENT
    if old not in view.after:
        return Cause.GONE
    if ground is not None and ground.state is BrokerState.MAINTENANCE:
        return Cause.MAINTENANCE
    leading = view.placement.racks_leader if view.placement is not None else None
    if leading is not None and view.rack(old) not in leading:
        return Cause.LEADER_RACKS
    return Cause.BALANCE


ALTERNATIVES = 3
BARRED = 5
BY_COPIES = ("bytes", "replicas")


def added_brokers(view: View) -> Iterator[Added]:
    """Yield each broker that gets a replica, with what could have taken it instead."""
    givers = dict(_swaps(view))
    rules = view.rules
    for taker in view.added:
        giver = givers.get(taker)
        found = _alternatives(view, rules, taker)
        instead = view.plan.grounds.instead.get(Swap(giver, taker)) if giver is not None else None
        yield Added(
            taker,
            view.rack(taker),
            counts_of(view, taker),
            in_place_of=giver,
            full=tuple(_full_racks(view, rules, taker)),
            alternatives=tuple(found[:ALTERNATIVES]),
            others=max(0, len(found) - ALTERNATIVES),
            barred=tuple(_barred(view, rules, taker))[:BARRED],
            instead=instead,
        )


def _swaps(view: View) -> Iterator[tuple[int, int]]:
    """Yield each broker that takes a replica with the one that gives it: of its own rack if there is one."""
    givers = list(view.removed)
    for taker in sorted(view.added, key=lambda one: all(view.rack(one) != view.rack(other) for other in givers)):
        if givers:
            near = [one for one in givers if view.rack(one) == view.rack(taker)]
            giver = (near or givers)[0]
            givers.remove(giver)
            yield taker, giver


def _alternatives(view: View, rules: TopicRules, taker: int) -> list[Alternative]:
    """Return the brokers that could take the replica instead, all else as planned, the nearest first."""
    if view.is_assigned:
        return []
    allowed = (rules.receivable | (rules.keepable & frozenset(view.before))) - frozenset(view.after)
    legal = [one for one in sorted(allowed) if _is_legal(view, rules, _swapped(view.after, taker, one))]
    return sorted((_judged(view, taker, one) for one in legal), key=_nearness)


def _swapped(replicas: Sequence[int], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if one == old else one for one in replicas)


def _is_legal(view: View, rules: TopicRules, replicas: Sequence[int]) -> bool:
    """Whether these keep the rules on racks, as far as the plan's own replicas keep them."""
    return _keeps_racks(view, rules, replicas) or not _keeps_racks(view, rules, view.after)


def _keeps_racks(view: View, rules: TopicRules, replicas: Sequence[int]) -> bool:
    limits, held = rules.rack_limits(len(replicas), view.before), _by_rack(view, replicas)
    for rack in {*limits, *held}:
        low, high = limits.get(rack, (0, 0))
        if not low <= len(held.get(rack, ())) <= high:
            return False
    leading = view.placement.racks_leader if view.placement is not None else None
    return leading is None or any(view.rack(one) in leading for one in replicas)


def _by_rack(view: View, replicas: Collection[int]) -> Mapping[str, tuple[int, ...]]:
    held: dict[str, list[int]] = {}
    for one in replicas:
        held.setdefault(view.rack(one), []).append(one)
    return {rack: tuple(ids) for rack, ids in sorted(held.items())}


def _judged(view: View, taker: int, other: int) -> Alternative:
    """Return what the plan's prices say of the other broker: the first objective that tells the two apart decides."""
    counts = counts_of(view, other)
    levels = view.plan.proof.levels
    for level in levels:
        of_topic = level.topic_prices.get(view.key.topic, {})
        is_exact = level.value == level.lower_bound and not level.load_prices and not level.shift
        if not is_exact or not {taker, other} <= level.prices.keys():
            return Alternative(other, Verdict.LOADS, counts)
        more = level.prices[other] + of_topic.get(other, 0) - level.prices[taker] - of_topic.get(taker, 0)
        is_last = level.objective in BY_COPIES
        if is_last and other in view.before:
            more -= _copy(view, level.objective)
        if more < 0:
            return Alternative(other, Verdict.LOADS, counts)
        if more:
            verdict = Verdict.COSTS_MORE if is_last else Verdict.LESS_EVEN
            return Alternative(other, verdict, counts, more if is_last else 0)
        if is_last:
            return Alternative(other, Verdict.AS_GOOD, counts)
    return Alternative(other, Verdict.LOADS, counts)


def _copy(view: View, objective: str) -> int:
    """Return what one copy of the partition costs."""
    if objective == "replicas":
        return 1
    moved = sum(move.bytes for move in moves_of(view.plan, view.key))
    return moved // max(1, len(view.added))


_RANK = {Verdict.AS_GOOD: 0, Verdict.COSTS_MORE: 1, Verdict.LESS_EVEN: 2, Verdict.LOADS: 3}


def _nearness(one: Alternative) -> tuple[int, int, int, int]:
    return _RANK[one.verdict], one.extra, one.counts.after, one.broker_id


def _full_racks(view: View, rules: TopicRules, taker: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the other racks that hold as many of the partition's replicas as they may."""
    if view.is_assigned:
        return
    limits = rules.rack_limits(len(view.after), view.before)
    others = _by_rack(view, [one for one in view.after if one != taker])
    for rack, held in others.items():
        if rack != view.rack(taker) and len(held) >= limits.get(rack, (0, 0))[1]:
            yield rack, held


def _barred(view: View, rules: TopicRules, taker: int) -> Iterator[Barred]:
    """Yield the brokers that only a rule about themselves keeps from taking the replica."""
    if view.is_assigned:
        return
    limits = rules.rack_limits(len(view.after), view.before)
    for broker_id, ground in view.plan.grounds.brokers.items():
        is_out = broker_id not in rules.receivable and broker_id not in view.before
        is_rack_out = ground.rack not in limits
        if is_out and (is_rack_out or _is_legal(view, rules, _swapped(view.after, taker, broker_id))):
            yield Barred(broker_id, _why_barred(view, ground, broker_id))


def _why_barred(view: View, ground: BrokerGround, broker_id: int) -> str:
    if not ground.is_alive:
        return "not alive"
    if ground.state in LEAVING:
        return ground.state.value
    placement = placement_of(view.placement)
    if placement.brokers_only is not None and broker_id not in placement.brokers_only:
        return "not in brokers.only"
    if broker_id in placement.brokers_except:
        return "in brokers.except"
    if placement.racks_only is not None and ground.rack not in placement.racks_only:
        return "not in racks.only"
    return ground.state.value if ground.state is BrokerState.CORDONED else "cordoned by Kafka"


def _rules(plan: Plan, topic: str) -> TopicRules:
    """Return the topic's rules, resolved again from what the plan keeps of brokers and placements."""
    grounds = plan.grounds
    number = grounds.topics[topic].placement
    brokers = {
        broker_id: DesiredBroker(broker_id, ground.state, ground.capacity)
        for broker_id, ground in grounds.brokers.items()
    }
    topics = {}
    if number is not None:
        kept = grounds.placements[number]
        topics[topic] = DesiredTopic(topic, placement=placement_of(kept))
    observed = Cluster(
        plan.cluster_id,
        {id_: _broker(id_, one) for id_, one in grounds.brokers.items()},
        {topic: Topic(topic)},
    )
    return topic_rules(Desired(DesiredCluster(plan.cluster_name, brokers=brokers), topics), observed)[topic]


def _broker(broker_id: int, ground: BrokerGround) -> Broker:
    log_dirs = (LogDir("", is_cordoned=True),) if ground.is_cordoned else ()
    return Broker(broker_id, ground.rack or None, is_fenced=not ground.is_alive, log_dirs=log_dirs)


def placement_of(kept: PlacementGround | None) -> Placement:
    """Return the placement that a topic was declared with; none was, nothing is written."""
    if kept is None:
        return Placement()
    return Placement(
        racks_spread=kept.spread,
        racks_only=None if kept.racks_only is None else frozenset(kept.racks_only),
        racks_leader=None if kept.racks_leader is None else frozenset(kept.racks_leader),
        brokers_only=None if kept.brokers_only is None else frozenset(kept.brokers_only),
        brokers_except=frozenset(kept.brokers_except),
    )


def counts_of(view: View, broker_id: int) -> Counts:
    """Return the broker's replicas, and its share of those on the brokers that stay."""
    before, after = view.plan.balance_before, view.plan.balance_after
    held = [share.replicas if (share := found.get(broker_id)) else 0 for found in (before, after)]
    fair = _share(view.plan, broker_id, sum(one.replicas for one in after.values()))
    if not any(level.load_prices for level in view.plan.proof.levels):
        return Counts(held[0], held[1], fair)
    size = [share.bytes if (share := found.get(broker_id)) else None for found in (before, after)]
    return Counts(held[0], held[1], fair, size[0], size[1])


def leader_counts_of(view: View, broker_id: int) -> Counts:
    """Return the broker's preferred leaders, and its share of them."""
    before, after = view.plan.balance_before, view.plan.balance_after
    held = [share.leaders if (share := found.get(broker_id)) else 0 for found in (before, after)]
    return Counts(held[0], held[1], _share(view.plan, broker_id, sum(one.leaders for one in after.values())))


def _share(plan: Plan, broker_id: int, total: int) -> float | None:
    """Return the broker's fair share by capacity; None for one that is not to hold anything."""
    staying = {id_: ground for id_, ground in plan.grounds.brokers.items() if ground.is_alive and not _leaves(ground)}
    capacity = sum(ground.capacity for ground in staying.values())
    return round(total * staying[broker_id].capacity / capacity, 1) if broker_id in staying else None


def _leaves(ground: BrokerGround) -> bool:
    return ground.state in LEAVING


def moves_of(plan: Plan, key: TopicPartition) -> tuple[Move, ...]:
    """Return the partition's moves, in the order of their stages."""
    stages = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    return tuple(move for stage in stages for move in stage.moves if move.topic_partition == key)


def created_as(plan: Plan, key: TopicPartition) -> tuple[int, ...] | None:
    """Return the replicas that a new partition is created with, None for one that is there."""
    for change in plan.topic_changes:
        if isinstance(change, CreateTopic | CreatePartitions) and change.topic == key.topic:
            found = change.assignment.get(key.partition)
            if found is not None:
                return found
    return None


def held_before(plan: Plan, key: TopicPartition) -> tuple[int, ...]:
    """Return the replicas of a touched partition before the plan."""
    found = (one.replicas for one in plan.rollback.assignments if one.topic_partition == key)
    return next(found, ())


def steps_of(plan: Plan, key: TopicPartition) -> tuple[StepOfPartition, ...]:
    """Return what each stage does to the partition; a copy is served by whoever leads by then."""
    leader = next((one.leader for one in plan.rollback.assignments if one.topic_partition == key), None)
    steps = []
    for stage in plan.stages:
        step = _step(plan, stage, key, leader)
        if step is not None:
            steps.append(step)
            leader = _leader_after(step, leader)
    return tuple(steps)


def _step(plan: Plan, stage: Stage, key: TopicPartition, leader: int | None) -> StepOfPartition | None:
    match stage:
        case TopicsStage():
            replicas = created_as(plan, key)
            names = {
                change.topic
                for change in (plan.topic_changes[position] for position in stage.changes)
                if isinstance(change, CreateTopic | CreatePartitions)
            }
            is_here = replicas is not None and key.topic in names
            return StepOfPartition(stage.number, replicas or (), is_created=True) if is_here else None
        case ReassignStage():
            move = next((one for one in stage.moves if one.topic_partition == key), None)
            if move is None:
                return None
            return StepOfPartition(stage.number, move.to_replicas, move.added, move.removed, move.bytes, leader)
        case ElectStage():
            elected = next((one.leader for one in stage.elections if one.topic_partition == key), None)
            return None if elected is None else StepOfPartition(stage.number, source=leader, elected=elected)


def _leader_after(step: StepOfPartition, leader: int | None) -> int | None:
    if step.elected is not None:
        return step.elected
    return leader if leader in step.to_replicas else step.to_replicas[0]
