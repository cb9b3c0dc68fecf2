"""Why one partition moves as it does, from what the plan keeps alone: its grounds, its prices, its shares."""

from collections.abc import Iterator
from difflib import get_close_matches

from reconciler.diff.rules import LEAVING, is_allowed
from reconciler.model.desired import BrokerState
from reconciler.model.explanation import Cause, Explanation, NewLeader, Removed
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.explain_choice import added_brokers
from reconciler.planner.explain_path import created_as, held_before, moves_of, steps_of
from reconciler.planner.explain_view import View, counts_of, leader_counts_of, placement_of


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
