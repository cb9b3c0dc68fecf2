"""Chooses which brokers hold each partition: replica sets, by minimum-cost flows in the contract's order of objectives.

First the balance asked for, then the fewest bytes, then the fewest copies, then what decides between equals.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from reconciler.model.budget import Budgeted
from reconciler.model.columns import NONE, Bools, Ints
from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel, Proof
from reconciler.planner.costs import Cost, Wanted, copies, no_cost, seats, turns
from reconciler.planner.objectives import CountTargets, asked_of_replicas, evened, price_level, solved_in_order
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Demand, Standing, classes, free_choices, one_a_class, rows_at


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """The chosen replicas, beside those that are fixed."""

    held: Ints  # [partitions, most]: columns, -1 beyond the last
    proof: Proof  # that no choice as balanced as this copies less
    balanced: Standing | None = None  # what is as balanced as asked for, whatever it copies
    faces: tuple[Standing, ...] = ()  # what the last levels of the proof leave, each: the first is what is copied
    budgeted: Budgeted | None = None  # what they are beside the whole plan's, where there is a budget


def copied(task: PlacementTask) -> tuple[tuple[str, Cost], tuple[str, Cost]]:
    """Return what is to be copied least, by its name in the proof: bytes, then replicas.

    Where a size is unknown, replicas are counted before bytes.
    """
    of_bytes = "bytes", copies(task.size, task.replicas)
    of_replicas = "replicas", copies((~task.is_new).astype(np.int64), task.replicas)
    return (of_bytes, of_replicas) if task.is_size_known else (of_replicas, of_bytes)


def place_replicas(task: PlacementTask, balance: Balance) -> ReplicaSets:
    """Return the least movement to a placement that keeps every rule and is as balanced as asked for."""
    if not task.partitions:
        return ReplicaSets(np.zeros((0, 1), dtype=np.int64), Proof())
    asked = list(asked_of_replicas(task, balance))
    has_cells = any(targets.is_cells for _, targets in asked)
    standing, levels = balanced(task, asked, has_cells=has_cells)
    return least_movement(task, balance, standing, levels)


def least_movement(
    task: PlacementTask,
    balance: Balance,
    standing: Standing,
    levels: Sequence[PriceLevel],
    ties: Sequence[CountTargets] = (),
) -> ReplicaSets:
    """Return the least movement among these choices, which `levels` led to.

    `ties` decide first between equals. Then nothing but what is copied is proved.
    """
    first, second = copied(task)
    following: Iterable[tuple[str, Cost | CountTargets]] = chain([second], _tie_breaks(task, balance))
    if ties:
        following = [*(("", tie) for tie in ties), *(("", tie) for _, tie in following)]
    chosen = solved_in_order(task, standing, task.replicas, first, following)
    least, *more = chosen.levels
    if _is_led(task).any():
        # Racks that are to lead were decided before evenness: among all plans it may be better than here.
        more = [replace(level, lower_bound=0) if level.objective == "evenness" else level for level in more]
    levels = [*levels, least]
    # Prices of a balance within a budget hold bytes already.
    joint = _joint_prices(task, [level for level in levels if not level.weight])
    proof = Proof(least.objective, least.value, chosen.bound, joint, levels=(*levels, *more))
    return ReplicaSets(chosen.table, proof, standing, tuple(chosen.faces))


def balanced(
    task: PlacementTask, asked: Sequence[tuple[str, CountTargets]], *, has_cells: bool
) -> tuple[Standing, list[PriceLevel]]:
    """Return the choices of which the counts are as balanced as the rules allow; with cells, topics are told apart.

    Only counts matter here, so partitions with the same choice are one row, and so are those of topics that are alike:
    the solutions of the classes are those of the partitions, since they are flows, and a flow of n equal ones is n
    flows.
    """
    number = np.flatnonzero(task.need > 0)
    topic = task.topic[number] if has_cells else np.zeros_like(number)
    rules, rule = task.rule_classes.rows, task.rule_class[number]
    picked, of_row, count = classes(rules, rule, topic)
    rule_of = np.zeros_like(count)
    rule_of[of_row] = rule
    group = _alike_topics(task, picked.topic, rule_of, count) if has_cells else np.zeros(1, dtype=np.int64)
    alike, of_class, _ = classes(rules, rule_of, group[picked.topic])
    by_class = one_a_class(alike, np.bincount(of_class, weights=count).astype(np.int64))
    choices = free_choices(by_class, int(group.max()) + 1 if has_cells else 0, task.most, task.least)
    standing = Standing.of(by_class, choices, np.arange(len(by_class.count)), len(by_class.count))
    levels = []
    for objective, each in asked:
        targets = each.alike(group) if each.is_cells else each
        found = evened(standing, targets)
        standing = found.left
        levels.append(price_level(objective, targets.imbalance(standing), task, found.of_topics(group)))
    choices = standing.choices.of_topics(of_class, group, picked.brokers) if has_cells else standing.choices
    replicas = rows_at(task.replicas, number)
    demand = Demand(picked, of_row, replicas, np.ones_like(of_row))
    return Standing.of(demand, choices.spread(of_row, replicas), number, len(task.partitions)), levels


def _alike_topics(task: PlacementTask, topic: Ints, rule: Ints, count: Ints) -> Ints:
    """Return a number for each topic, equal for topics with as many partitions of each class and as many that stay."""
    order = np.lexsort((rule, topic))
    ends = np.cumsum(np.bincount(topic, minlength=len(task.topics)))[:-1]
    numbers = np.split(np.column_stack([rule, count])[order], ends)
    found: dict[bytes, int] = {}
    keys = (own.tobytes() + base.tobytes() for own, base in zip(numbers, task.base_of_topic, strict=True))
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)


def _tie_breaks(task: PlacementTask, balance: Balance) -> Iterator[tuple[str, Cost | CountTargets]]:
    """Yield what decides between equals, in the contract's order: a better balance, leaders kept, turns.

    What is proved has a name. A replica in a rack that is to lead comes first, as nothing is copied for it later.
    """
    if _is_led(task).any():
        yield "", _in_leader_racks(task, _is_led(task))
    if not isinstance(balance.replicas, Even):
        capacity = task.eligible.capacity["replicas"]
        yield "evenness", CountTargets(task.base, capacity)
    # The fewest replicas out of sync stay: a move ends only once all that stay are in sync.
    if task.partitions.lagging:
        yield "", _lagging_kept(task)
    yield "", _leaders_kept(task)
    if task.is_new.any():
        yield "", replace(no_cost(task.replicas), turns=turns(task.partitions, task.eligible))


def _is_led(task: PlacementTask) -> Bools:
    """Return [partitions] which are to be led from some of the racks or brokers that may hold them."""
    of_class = (task.rule_classes.leadable != task.rule_classes.leadable_at_need).any(axis=1)
    found: Bools = of_class[task.rule_class] & (task.need > 0)
    return found


def _in_leader_racks(task: PlacementTask, is_led: Bools) -> Cost:
    """Return a gain for one replica in a rack that is to lead: the first that is there, else one in a rack in turn."""
    rows, rack, rule_class = task.rule_classes.rows, task.eligible.rack, task.rule_class
    leads = (task.replicas >= 0) & task.rule_classes.leadable[rule_class[:, None], task.replicas] & is_led[:, None]
    at = np.where(leads & (np.cumsum(leads, axis=1) == 1), -1, 0)
    wanted = Wanted(rack, np.full(len(is_led), NONE, dtype=np.int64))
    lacks = is_led & ~leads.any(axis=1)
    for one in np.unique(rule_class[lacks]).tolist():
        allowed, leadable = rows.allowed[one], task.rule_classes.leadable[one]
        may = np.flatnonzero(allowed & leadable & (rows.high[one, rack] > 0))
        # Where a rack may hold several, one replica there is enough; where it has others too, one of these is none.
        is_wide = (rows.high[one] > 1) | np.isin(np.arange(wanted.racks), rack[allowed & ~leadable])
        if len(may) and not ((rows.low[one] > 0) & ~is_wide)[rack[may]].any():
            may = may[np.lexsort((rack[may], seats(rack)[may]))]
            mine = np.flatnonzero(lacks & (rule_class == one))
            broker = may[task.partitions.number[mine] % len(may)]
            wanted.number[mine] = np.where(is_wide[rack[broker]], wanted.racks + broker, rack[broker])
    return Cost(np.zeros(len(at), dtype=np.int64), at, wanted)


def _lagging_kept(task: PlacementTask) -> Cost:
    """Return one for each present replica that is out of sync."""
    at = np.zeros_like(task.replicas)
    for row, lagging in task.partitions.lagging.items():
        at[row] = np.isin(task.partitions.replicas[row], [*lagging])
    return Cost(np.zeros(len(at), dtype=np.int64), at)


def _leaders_kept(task: PlacementTask) -> Cost:
    """Return a gain for the present preferred leader, where it may lead."""
    first = task.replicas[:, 0]
    may_lead = (first >= 0) & task.rule_classes.leadable[task.rule_class, first]
    at = np.zeros_like(task.replicas)
    at[may_lead, 0] = -1
    return Cost(np.zeros(len(at), dtype=np.int64), at)


def _joint_prices(task: PlacementTask, levels: Sequence[PriceLevel]) -> dict[int, int]:
    """Return one price a broker for balance and copies together; balance prices outweigh any saving in copies.

    The bound they give: over all partitions the cheapest legal replica set at its cost and these prices, less the
    prices of the best-balanced counts.
    """
    *balances, last = levels
    prices = list(last.prices.values())
    largest = int(task.size.max(initial=1)) if last.objective == "bytes" else 1
    span = max(prices, default=0) - min(prices, default=0)
    weight = int(task.rule_classes.rows.need.max(initial=0)) * (largest + span) + 1
    has_balance = bool(balances) and balances[0].objective == "replicas balance"
    first = balances[0].prices if has_balance else dict.fromkeys(last.prices, 0)
    joint = {broker_id: price + weight * first[broker_id] for broker_id, price in last.prices.items()}
    least = min(joint.values(), default=0)
    return {broker_id: price - least for broker_id, price in joint.items()}
