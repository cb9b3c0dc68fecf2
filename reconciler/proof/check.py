"""Checks a plan: its moves followed, its values counted again, and the bound of each objective computed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.cluster import REMOTE_STORAGE, Cluster
from reconciler.model.columns import beside_each_other, is_missing, sums
from reconciler.model.desired import Desired, Even, Off
from reconciler.model.loads import Loads
from reconciler.model.plan import Bound, Plan, PriceLevel, Proof, TieredBytes, Verdict
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.basics import NotProved
from reconciler.proof.bounds import (
    BYTES,
    COPIES,
    EVENNESS,
    LEADERS_BALANCE,
    LEADERS_CHANGED,
    REPLICAS_BALANCE,
    TOPIC_LEADERS_BALANCE,
    TOPICS_BALANCE,
    Measure,
    leader_bounds,
    leader_measures,
    replica_bounds,
    replica_measures,
)
from reconciler.proof.budgeted import budget_of, orders_of, traded_bounds
from reconciler.proof.demands import Demands, demands_of
from reconciler.proof.loaded import NETWORK_IN, Carried, carried_of, is_fair, is_loaded, loaded_bound
from reconciler.proof.reached import Reached, reached

_OF_REPLICAS = (REPLICAS_BALANCE, TOPICS_BALANCE)
_OF_LEADERS = (LEADERS_BALANCE, TOPIC_LEADERS_BALANCE)


def prove(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None = None) -> Verdict:
    """Return whether the plan is best in each objective in turn for these states, leaders for its own replica sets.

    Where measured loads are to be balanced, no plan is known to be best: the verdict has the bound of what is copied,
    which may leave a gap, and says nothing of the other objectives. `loads` are those that the plan was made with.

    Everything is computed anew: rules from the states, the end from the moves, values from that end, bounds from the
    plan's prices. These may be any whole numbers: wrong ones only give a weaker bound. What is taken from the plan
    is the topics that it is confined to.
    """
    is_within_bands = _is_within_bands(plan.proof, desired)
    try:
        demands = demands_of(desired, observed, plan.source.only)
        end, budget = reached(plan, demands, observed), budget_of(plan)
        levels: tuple[PriceLevel, ...]
        if is_within_bands:
            _refuse_unknown_loads(plan.proof, loads)
            levels = (_check_loaded(plan, demands, desired, end, carried_of(demands, loads)),)
        else:
            levels = tuple(_check_levels(plan, demands, desired, end, budget))
            _refuse_other_summary(plan.proof, levels, demands, end)
        _refuse_other_shares(plan, demands, end)
        _refuse_other_bytes(plan, observed)
    except NotProved as wrong:
        return Verdict(str(wrong))
    rows, decided = demands.rows, demands.decided
    ends = ((rows, end.replicas), (decided, decided.replicas))
    copied = sum(int((part.is_there & is_missing(after, part.now).any(axis=1)).sum()) for part, after in ends)
    bounds = tuple(Bound(each.objective, each.value, each.lower_bound) for each in levels)
    notes = tuple(_notes(plan, demands, desired, is_within_bands=is_within_bands))
    return Verdict(None, bounds, _first_cost(demands), copied, is_within_bands, notes, _bound_by(plan, budget))


def _bound_by(plan: Plan, budget: int | None) -> int | None:
    """Return the budget where the plan is not the whole one."""
    return budget if budget is not None and any(level.weight for level in plan.proof.levels) else None


def _is_within_bands(proof: Proof, desired: Desired) -> bool:
    """Whether loads are balanced, or a limit is kept that the best plan by counts would not keep."""
    limits = desired.cluster.limits
    has_caps = bool(limits.rates) or limits.disk_use is not None
    return is_loaded(desired.cluster.balance) or (has_caps and len(proof.levels) == 1)


def _notes(plan: Plan, demands: Demands, desired: Desired, *, is_within_bands: bool) -> Iterator[str]:
    """Yield what narrows the plans that the bounds are about; the plan's own shares are checked by then."""
    balance = desired.cluster.balance
    if plan.source.only:
        yield f"This is shown among the plans for the same topics alone: {', '.join(plan.source.only)}."
    if plan.budgeted is None and _is_yielding(plan.proof, desired):
        yield (
            "The balance of replicas yields to limits.diskUse, so this is shown among all plans that keep the rules. "
            "Whether disks allow more even counts is not checked."
        )
    shares = plan.balance_after
    counts = [shares[broker_id].replicas if broker_id in shares else 0 for broker_id in demands.brokers.ids]
    capacity = demands.brokers.capacity.replicas
    if is_within_bands and isinstance(balance.replicas, Even) and not is_fair(capacity, counts):
        yield (
            "Not every broker has its fair share of replicas, so this is shown among the plans with the same counts. "
            "Whether the rules allow more even counts is not checked."
        )


def _first_cost(demands: Demands) -> str:
    """Return what is to be copied least: bytes, unless some are unknown."""
    return BYTES if demands.is_size_known else COPIES


def _check_levels(
    plan: Plan, demands: Demands, desired: Desired, end: Reached, budget: int | None
) -> Iterator[PriceLevel]:
    """Yield the levels, replicas first, with values and bounds computed anew; raise NotProved where one fails."""
    balance = desired.cluster.balance
    first = _first_cost(demands)
    second = COPIES if first == BYTES else BYTES
    counted, measures = replica_measures(demands, balance, end)
    led, leader_measured = leader_measures(demands, balance, end)
    asked = [name for name in _OF_REPLICAS if name in measures]
    led_asked = [name for name in _OF_LEADERS if name in leader_measured]
    of_replicas = [*asked, first, second, EVENNESS]
    of_leaders = [*led_asked, LEADERS_CHANGED]
    # The second cost and evenness only break ties: a proof may be without them, and then the verdict is too.
    required = {*asked, first, *of_leaders} if demands.is_anything_open else set()
    if budget is not None:
        of_replicas = orders_of(plan, budget, asked, measures)
        required = required.difference(asked) if of_replicas[:1] == [BYTES] else required
    if _is_yielding(plan.proof, desired):
        required -= {*asked}
    _refuse_other_order(plan.proof.levels, [*of_replicas, *of_leaders], required)
    levels = [level for level in plan.proof.levels if level.objective in of_replicas]
    if budget is None:
        bounds = replica_bounds(demands, counted, measures, levels)
    else:
        bounds = [bound for _, bound in traded_bounds(demands, counted, measures, levels, budget)]
    # Disks may ask for more copies than the prices know of. Then nothing is said of what comes after these.
    is_last = bool(levels) and levels[-1].objective == first
    may_exceed = first if is_last and desired.cluster.limits.disk_use is not None else None
    yield from _require_tight(levels, measures, bounds, may_exceed)
    levels = [level for level in plan.proof.levels if level.objective in of_leaders]
    bounds = leader_bounds(demands, led, leader_measured, levels, end)
    yield from _require_tight(levels, leader_measured, bounds)


def _is_yielding(proof: Proof, desired: Desired) -> bool:
    """Whether the proof says nothing of the balance of replicas, which disks may forbid where counts alone allow it."""
    balance = desired.cluster.balance
    is_asked = not isinstance(balance.replicas, Off) or not isinstance(balance.topics, Off)
    is_told = any(level.objective in _OF_REPLICAS for level in proof.levels)
    return desired.cluster.limits.disk_use is not None and is_asked and bool(proof.levels) and not is_told


def _check_loaded(
    plan: Plan, demands: Demands, desired: Desired, end: Reached, carried: Mapping[TopicPartition, Carried]
) -> PriceLevel:
    """Return the level of what is copied; raise NotProved where its value is another, or its prices prove less."""
    first, proof, balance = _first_cost(demands), plan.proof, desired.cluster.balance
    measure = replica_measures(demands, balance, end)[1][first]
    level = _level_of(proof.levels, first)
    if level is None:
        raise NotProved(f"the proof has no prices for {first}")
    wrong = next((value for value in (proof.value, level.value) if value != measure.value), None)
    if wrong is not None:
        raise NotProved(f"{first}: the proof says {wrong}, but the plan copies {measure.value}")
    if proof.objective != first:
        raise NotProved(f"the proof's objective is {proof.objective}, but the fewest {first} are asked for")
    if proof.lower_bound != level.lower_bound:
        raise NotProved(f"{first}: the proof's bound is {proof.lower_bound}, and that of its level {level.lower_bound}")
    zero_prices = replace(level, prices={}, topic_prices={}, load_prices={})
    bound = measure.constant + max(
        loaded_bound(demands, end, balance, each, copy=measure.copy, carried=carried) for each in (level, zero_prices)
    )
    if level.lower_bound > max(0, bound):
        raise NotProved(f"{first}: the prices prove only {bound}, but the proof claims {level.lower_bound}")
    return level


def _refuse_unknown_loads(proof: Proof, loads: Loads | None) -> None:
    is_priced = any(level.load_prices.get(NETWORK_IN) for level in proof.levels)
    if is_priced and loads is None:
        raise NotProved(f"there are prices of {NETWORK_IN}, which only the loads tell that the plan was made with")


def _refuse_other_order(levels: Sequence[PriceLevel], order: Sequence[str], required: Collection[str]) -> None:
    names = [level.objective for level in levels]
    missing = [name for name in order if name in required and name not in names]
    if missing:
        raise NotProved(f"the proof has no prices for {missing[0]}, which the desired state asks for")
    fitting = [name for name in order if name in names]
    if names != fitting:
        raise NotProved(f"the proof is over {', '.join(names)}; in order it must be {', '.join(fitting or order)}")


def _require_tight(
    levels: Sequence[PriceLevel], measures: Mapping[str, Measure], bounds: Sequence[int], may_exceed: str | None = None
) -> Iterator[PriceLevel]:
    for level, bound in zip(levels, bounds, strict=True):
        value = measures[level.objective].value
        if level.value != value:
            raise NotProved(f"{level.objective}: the proof says {level.value}, but the plan reaches {value}")
        if level.weight and level.lower_bound <= bound <= value:
            # Within a budget the counts are no flow: the bound may be below.
            yield replace(level, value=value, lower_bound=level.lower_bound)
            continue
        if bound > value or (bound < value and level.objective != may_exceed):
            raise NotProved(f"{level.objective}: the prices prove only {bound}, but the plan reaches {value}")
        if level.lower_bound != bound:
            raise NotProved(
                f"{level.objective}: the proof claims the bound {level.lower_bound}, but its prices prove {bound}"
            )
        yield replace(level, value=value, lower_bound=bound)


def _refuse_other_summary(proof: Proof, levels: Sequence[PriceLevel], demands: Demands, end: Reached) -> None:
    """Raise NotProved where the proof's own objective, value, bound or prices are not those of its levels."""
    first = _first_cost(demands)
    copies = _level_of(levels, first)
    value, bound = (copies.value, copies.lower_bound) if copies is not None else (0, 0)
    if (proof.value, proof.lower_bound) != (value, bound):
        raise NotProved(
            f"the proof says {proof.value} {first} with the bound {proof.lower_bound}, but the plan copies {value}"
        )
    if copies is None:
        if end.copies:
            raise NotProved(f"the plan copies {end.copies} replicas, although nothing is asked for")
        return
    if proof.objective != first:
        raise NotProved(f"the proof's objective is {proof.objective}, but the fewest {first} are asked for")
    if _level_of(levels, TOPICS_BALANCE) is None:
        balance = _level_of(levels, REPLICAS_BALANCE)
        balance = None if balance is not None and balance.weight else balance
        _refuse_other_joint_prices(proof, balance, copies, demands, _dearest_copy(demands, first))


def _refuse_other_joint_prices(
    proof: Proof, balance: PriceLevel | None, copies: PriceLevel, demands: Demands, largest: int
) -> None:
    """Raise NotProved unless the prices are weight x those of the balance + those of the copies, the least made 0.

    The weight must be more than one partition's copies, `largest` each at most, and their prices can differ by: then a
    set that is cheapest at the joint prices is cheapest at the balance's prices first.
    """
    ids = demands.brokers.ids
    if not ids:
        return
    even = [balance.prices.get(broker_id, 0) if balance is not None else 0 for broker_id in ids]
    least = [copies.prices.get(broker_id, 0) for broker_id in ids]
    joint = [proof.joint_prices.get(broker_id, 0) for broker_id in ids]
    weight = _weight(even, least, joint)
    enough = max((kind.need for kind in demands.kinds), default=0) * (largest + max(least) - min(least))
    wanted = [price + weight * more for price, more in zip(least, even, strict=True)]
    wanted = [price - min(wanted) for price in wanted]
    if joint != wanted or weight <= enough or not proof.joint_prices.keys() <= set(ids):
        raise NotProved("the proof's prices are not those of its levels together")


def _weight(even: Sequence[int], least: Sequence[int], joint: Sequence[int]) -> int:
    """Return the weight that the balance's prices have, from two brokers where they differ; huge where none do."""
    low, high = even.index(min(even)), even.index(max(even))
    if even[low] == even[high]:
        return 1 << 200
    return ((joint[high] - joint[low]) - (least[high] - least[low])) // (even[high] - even[low])


def _level_of(levels: Sequence[PriceLevel], objective: str) -> PriceLevel | None:
    """Return the level of that objective, None where it is not there."""
    found: Mapping[str, PriceLevel] = {level.objective: level for level in levels}
    return found.get(objective)


def _dearest_copy(demands: Demands, objective: str) -> int:
    """Return what the dearest copy costs of all that could be made."""
    rows, now = demands.rows, demands.now
    takers = demands.who("takers")
    could = takers.sum(axis=1)[rows.kind] > (takers[rows.kind[:, None], np.maximum(now, 0)] & (now >= 0)).sum(axis=1)
    sizes = rows.size[could & rows.is_there]
    return int(sizes.max(initial=0)) if objective == BYTES else int(bool(len(sizes)))


def _refuse_other_bytes(plan: Plan, observed: Cluster) -> None:
    """Raise NotProved where the proof counts other bytes of tiered topics than the observed state tells."""
    table, moves = table_of(observed), plan.every_move()
    tiered = {name for name, topic in observed.topics.items() if topic.configs.get(REMOTE_STORAGE) == "true"}
    is_tiered = np.array([name in tiered for name in moves.topics], dtype=np.bool_)[moves.topic]
    copied = (moves.copies > 0) & is_tiered
    told = {*(table.untiered_bytes[moves.rows_in(table)[copied]] < 0).tolist()}
    counted = None if not told else TieredBytes.LOCAL if True in told else TieredBytes.UNTIERED
    if plan.proof.tiered is not counted:
        words = {None: "no", TieredBytes.LOCAL: "local", TieredBytes.UNTIERED: "untiered"}
        says, are = words[plan.proof.tiered], words[counted]
        raise NotProved(f"the proof says that it counts {says} bytes of tiered topics; the plan copies {are} ones")


def _refuse_other_shares(plan: Plan, demands: Demands, end: Reached) -> None:
    """Raise NotProved where the balance that the plan says it reaches is another than its moves reach."""
    one = np.ones(1, dtype=np.int64)
    lists = beside_each_other([end.replicas, demands.decided.replicas])
    counts, led = sums(lists, one), sums(lists[:, 0], one)
    for broker_id in sorted({*plan.balance_after, *counts}):
        share = plan.balance_after.get(broker_id)
        told = (share.replicas, share.leaders) if share is not None else (0, 0)
        held = counts.get(broker_id, 0), led.get(broker_id, 0)
        if told != held:
            raise NotProved(
                f"the plan says that broker {broker_id} ends with {told[0]} replicas and leads {told[1]}, "
                f"but it ends with {held[0]} and leads {held[1]}"
            )
