"""Why a replica goes to this broker: what the rules leave, and what the plan's prices say of every other broker."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.desired import BrokerState
from reconciler.model.explanation import Added, Alternative, Barred, Verdict
from reconciler.model.grounds import BrokerGround, Swap
from reconciler.planner.explain_path import moves_of
from reconciler.planner.explain_view import View, counts_of, placement_of

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
