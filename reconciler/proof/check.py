"""Checks a plan: its moves followed, its values counted again, and the bound of each objective computed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.cluster import REMOTE_STORAGE, Cluster
from reconciler.model.desired import Desired
from reconciler.model.loads import Loads
from reconciler.model.plan import Bound, Plan, PriceLevel, Proof, TieredBytes, Verdict
from reconciler.model.problem import RENAMED, STILL_READ
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import Ints, NotProved, is_new, stacked
from reconciler.proof.bounds import Measure, leader_bounds, leader_measures, replica_bounds, replica_measures
from reconciler.proof.budgeted import budget_of, traded_bounds, within_budget
from reconciler.proof.demands import Demands, demands_of
from reconciler.proof.loaded import NETWORK_IN, Carried, carried_of, is_loaded, loaded_bound, outside_bands
from reconciler.proof.log_dirs import has_dir_wishes
from reconciler.proof.objectives import (
    BALANCES,
    BYTES,
    LEADERS_CHANGED,
    REPLICAS_BALANCE,
    SPREAD,
    TOPICS_BALANCE,
    first_cost,
    objectives_of,
    refuse_other_levels,
    refuse_unasked,
)
from reconciler.proof.reached import Reached, reached
from reconciler.proof.relief import relieved_bytes
from reconciler.proof.states import BrokenLimit, refuse_broken_states


def prove(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None = None) -> Verdict:
    """Return whether the plan is best in its end, as `prove_end` says, and safe in every state between (`states`)."""
    return _verdict(plan, desired, observed, loads, has_states=True)


def prove_end(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None = None) -> Verdict:
    """Return whether the plan is best in each objective in turn for these states, leaders for its own replica sets.

    If measured loads are balanced, no plan is known to be best: the verdict bounds the copied bytes, perhaps with a
    gap, and leaves the other objectives open. The plan was made with `loads`.

    Everything is computed anew: rules from the states, the end from the moves, values from that end, bounds from the
    plan's prices. These may be any whole numbers: wrong ones only give a weaker bound. The check believes
    three more things, which the plan's text prints: the topics that it is confined to, its budget, and its violations.
    """
    return _verdict(plan, desired, observed, loads, has_states=False)


def _verdict(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None, *, has_states: bool) -> Verdict:
    try:
        demands = demands_of(desired, observed, plan.source.only, _spared(plan))
        end, budget = reached(plan, demands), budget_of(plan)
        is_within_bands = demands.is_anything_open and _is_within_bands(plan.proof, desired, demands)
        refuse_unasked(plan.proof.levels, has_budget=budget is not None, has_loads=is_within_bands)
        levels: tuple[PriceLevel, ...]
        if is_within_bands:
            _refuse_unknown_loads(plan.proof, loads)
            carried = carried_of(demands, loads)
            levels = (_check_loaded(plan, demands, desired, end, carried),)
            unproved = tuple(_unproved_within_bands(desired, demands, end, carried))
        else:
            levels, unproved = _check_levels(plan, demands, desired, end, budget)
            _refuse_other_summary(plan.proof, levels, demands, end)
        _refuse_other_shares(plan, demands, end)
        _refuse_other_bytes(plan, demands, observed, end)
        if has_states:
            refuse_broken_states(plan, desired, observed, demands, end)
    except NotProved as wrong:
        return Verdict(str(wrong), is_limit_broken=isinstance(wrong, BrokenLimit))
    rows, fixed = demands.rows, demands.fixed
    ends = ((rows, end.replicas), (fixed, fixed.replicas))
    return Verdict(
        None,
        tuple(Bound(level.objective, level.value, level.lower_bound) for level in levels),
        first_cost(demands),
        sum(int((part.is_there & is_new(after, part.now).any(axis=1)).sum()) for part, after in ends),
        is_within_bands,
        tuple(_notes(plan, desired)),
        budget if any(level.weight for level in levels) else None,
        unproved=unproved,
    )


def _spared(plan: Plan) -> Collection[str]:
    """Return the words of the violations that say which topics the plan leaves, although the files want them gone."""
    messages = (problem.message for problem in plan.violations if problem.code in {STILL_READ, RENAMED})
    return {word.strip(",;:") for message in messages for word in message.split()}


def _is_within_bands(proof: Proof, desired: Desired, demands: Demands) -> bool:
    """Whether loads are balanced, or the plan was made like one that balances them because a limit asked for that."""
    has_limits = bool(desired.cluster.limits.rates) or any(room is not None for room in demands.brokers.capacity.room)
    return is_loaded(desired.cluster.balance) or (has_limits and len(proof.levels) == 1)


def _notes(plan: Plan, desired: Desired) -> Iterator[str]:
    if plan.source.only:
        yield f"This is shown among the plans for the same topics alone: {', '.join(plan.source.only)}."
    if has_dir_wishes(plan, desired):
        yield "How much moves between the log dirs of one broker, and how even these become, is not part of the proof."


def _unproved_within_bands(
    desired: Desired, demands: Demands, end: Reached, carried: Mapping[TopicPartition, Carried]
) -> Iterator[str]:
    """Yield the objectives that a plan within bands is neither as good as can be in nor shown to be best in."""
    balance = desired.cluster.balance
    for _, measures in (replica_measures(demands, balance, end), leader_measures(demands, balance, end)):
        yield from (name for name in (SPREAD, *BALANCES) if name in measures and not measures[name].is_ideal)
    yield from outside_bands(demands, end, balance, carried)
    if not is_loaded(balance):
        yield LEADERS_CHANGED


def _check_levels(
    plan: Plan, demands: Demands, desired: Desired, end: Reached, budget: int | None
) -> tuple[tuple[PriceLevel, ...], tuple[str, ...]]:
    """Return the levels, computed anew, and the objectives that are not proved; raise NotProved where a level fails."""
    balance, every, first = desired.cluster.balance, plan.proof.levels, first_cost(demands)
    counted, measures = replica_measures(demands, balance, end)
    objectives = objectives_of(desired, demands, is_yielding=SPREAD in measures)
    if not demands.is_anything_open:
        objectives = replace(objectives, may_miss=frozenset((*objectives.replicas, *objectives.leaders)))
    led, leader_measured = leader_measures(demands, balance, end)
    if budget is not None:
        objectives = within_budget(plan, budget, objectives, measures)
    refuse_other_levels(every, (*objectives.replicas, *objectives.leaders), objectives)
    of_replicas = [level for level in every if level.objective in objectives.replicas]
    of_leaders = [level for level in every if level.objective in objectives.leaders]
    if budget is None:
        bounds = replica_bounds(demands, counted, measures, of_replicas)
    else:
        bounds = [bound for _, bound in traded_bounds(demands, counted, measures, of_replicas, budget)]
    if objectives.may_be_loose and first == BYTES and budget is None:
        relief = relieved_bytes(demands, end)
        pairs = zip(of_replicas, bounds, strict=True)
        bounds = [max(bound, relief) if level.objective == BYTES else bound for level, bound in pairs]
    # The levels after a loose one would be bounded among other plans, so only the last level may be loose.
    loose = {name for name in objectives.may_be_loose if of_replicas and of_replicas[-1].objective == name}
    levels = [*_checked(of_replicas, measures, bounds, loose)]
    bounds = leader_bounds(demands, led, leader_measured, of_leaders, end)
    levels += _checked(of_leaders, leader_measured, bounds, ())
    # A budget is the plan's own word, and its balance is the best for that budget alone.
    tight = {level.objective for level in levels if level.value == level.lower_bound and not level.weight}
    shown = {first, *tight}
    unproved = (name for name in (*objectives.replicas, *objectives.leaders) if name not in shown)
    return tuple(levels), tuple(unproved) if demands.is_anything_open else ()


def _check_loaded(
    plan: Plan, demands: Demands, desired: Desired, end: Reached, carried: Mapping[TopicPartition, Carried]
) -> PriceLevel:
    """Return the level of what is copied; raise NotProved where its value is another, or its prices prove less."""
    first, proof, balance = first_cost(demands), plan.proof, desired.cluster.balance
    measures = replica_measures(demands, balance, end)[1]
    measure, is_yielding = measures[first], SPREAD in measures
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
        loaded_bound(demands, end, balance, each, copy=measure.copy, carried=carried, is_yielding=is_yielding)
        for each in (level, zero_prices)
    )
    if first == BYTES:
        bound = max(bound, relieved_bytes(demands, end))
    if level.lower_bound > max(0, bound):
        raise NotProved(f"{first}: the prices prove only {bound}, but the proof claims {level.lower_bound}")
    if bound > measure.value:
        raise NotProved(f"{first}: this check is at fault, its bound {bound} is above the value {measure.value}")
    return replace(level, lower_bound=max(0, bound))


def _refuse_unknown_loads(proof: Proof, loads: Loads | None) -> None:
    is_priced = any(level.load_prices.get(NETWORK_IN) for level in proof.levels)
    if is_priced and loads is None:
        raise NotProved(f"there are prices of {NETWORK_IN}, which only the loads tell that the plan was made with")


def _checked(
    levels: Sequence[PriceLevel], measures: Mapping[str, Measure], bounds: Sequence[int], may_exceed: Collection[str]
) -> Iterator[PriceLevel]:
    """Yield the levels with their values and bounds; the value of one that is weighed may be above its bound too."""
    for level, proved in zip(levels, bounds, strict=True):
        value, is_open = measures[level.objective].value, level.objective in may_exceed or level.weight > 0
        # No objective is below 0, whatever the prices say.
        bound = max(proved, 0) if is_open else proved
        if level.value != value:
            raise NotProved(f"{level.objective}: the proof says {level.value}, but the plan reaches {value}")
        if bound > value:
            raise NotProved(f"{level.objective}: this check is at fault, its bound {bound} is above the value {value}")
        if bound < value and not is_open:
            raise NotProved(f"{level.objective}: the prices prove only {bound}, but the plan reaches {value}")
        if level.lower_bound > bound or (level.lower_bound < bound and not is_open):
            raise NotProved(
                f"{level.objective}: the proof claims the bound {level.lower_bound}, but its prices prove {bound}"
            )
        yield replace(level, value=value, lower_bound=bound)


def _refuse_other_summary(proof: Proof, levels: Sequence[PriceLevel], demands: Demands, end: Reached) -> None:
    """Raise NotProved where the proof's own objective, value, bound or prices are not those of its levels."""
    first = first_cost(demands)
    copies, claimed = _level_of(levels, first), _level_of(proof.levels, first)
    value, bound = copies.value if copies is not None else 0, claimed.lower_bound if claimed is not None else 0
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


def _refuse_other_bytes(plan: Plan, demands: Demands, observed: Cluster, end: Reached) -> None:
    """Raise NotProved if the proof counts other bytes of tiered topics than the observed state has."""
    moves = end.moves
    tiered = {name for name, topic in observed.topics.items() if topic.configs.get(REMOTE_STORAGE) == "true"}
    is_tiered = np.array([name in tiered for name in moves.topics], dtype=np.bool_)[moves.topic]
    row = end.moved[(moves.copies > 0) & is_tiered]
    is_unknown = {*(demands.snapshot.untiered[row] < 0).tolist()}
    counted = None if not is_unknown else TieredBytes.LOCAL if True in is_unknown else TieredBytes.UNTIERED
    if plan.proof.tiered is not counted:
        words = {None: "no", TieredBytes.LOCAL: "local", TieredBytes.UNTIERED: "untiered"}
        says, are = words[plan.proof.tiered], words[counted]
        raise NotProved(f"the proof says that it counts {says} bytes of tiered topics; the plan copies {are} ones")


def _refuse_other_shares(plan: Plan, demands: Demands, end: Reached) -> None:
    """Raise NotProved where the balance that the plan says it reaches is another than its moves reach."""
    lists = stacked([end.replicas, demands.fixed.replicas])
    counts, led = _counts(lists), _counts(lists[:, 0])
    for broker_id in sorted({*plan.balance_after, *counts}):
        share = plan.balance_after.get(broker_id)
        says = (share.replicas, share.leaders) if share is not None else (0, 0)
        ends = counts.get(broker_id, 0), led.get(broker_id, 0)
        if says != ends:
            raise NotProved(
                f"the plan says that broker {broker_id} ends with {says[0]} replicas and leads {says[1]}, "
                f"but it ends with {ends[0]} and leads {ends[1]}"
            )


def _counts(brokers: Ints) -> dict[int, int]:
    """Return how often each broker is named."""
    ids, counts = np.unique(brokers[brokers >= 0], return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))
