"""Which brokers hold each partition: the replica sets, by minimum-cost flows in the contract's order of objectives."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel, Proof
from reconciler.planner.costs import HeldCost
from reconciler.planner.demand import Demand
from reconciler.planner.evenness import Asked, asked_of_replicas, imbalance
from reconciler.planner.levels import Shares, evened, is_open, least_cost
from reconciler.planner.rows import Bools, Rows, classes, free_choices, kinds_of
from reconciler.planner.shortlist import Classes
from reconciler.planner.sift import Cost, Solved
from reconciler.planner.turns import turns


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """Who holds what [slots, brokers], and the proof that no choice copies less."""

    held: Bools
    proof: Proof


def place_replicas(demand: Demand, balance: Balance) -> ReplicaSets:
    """Return the least movement to a placement that keeps every rule and is as balanced as asked for.

    Where a size is unknown, replicas are counted before bytes.
    """
    if not demand.slots:
        return ReplicaSets(demand.rows.allowed, Proof())
    asked = list(asked_of_replicas(demand, balance))
    rows, kinds, levels = _balanced(demand, asked)
    choices = kinds.choices.take(kinds.of_row)
    is_known = demand.is_size_known
    least = least_cost(rows, choices, _bytes(demand) if is_known else _copies(demand), kinds)
    objective = "bytes" if is_known else "replicas"
    levels.append(price_level(objective, least.value, demand, least))
    proof = Proof(objective, least.value, least.bound, _joint_prices(demand, levels))
    for name, cost in _tie_breaks(demand, balance):
        if not is_open(rows, least.choices):
            break
        least = evened(rows, least.choices, cost) if isinstance(cost, Shares) else least_cost(rows, least.choices, cost)
        if name:
            value = imbalance(cost, rows, least.placed) if isinstance(cost, Shares) else least.value
            levels.append(price_level(name, value, demand, least))
    return ReplicaSets(least.placed > 0, replace(proof, levels=tuple(levels)))


def price_level(objective: str, value: int, demand: Demand, solved: Solved) -> PriceLevel:
    """Return an objective that was solved to its optimum, with the prices of its solution."""
    ids = demand.bench.ids
    broker_price = solved.broker_price.tolist()
    topic_prices = {}
    if len(solved.price) == len(ids) * len(demand.topics) and ids:
        of_topic = (solved.price.reshape(-1, len(ids)) - solved.broker_price).tolist()
        topic_prices = {
            topic: {broker_id: price for broker_id, price in zip(ids, prices, strict=True) if price}
            for topic, prices in zip(demand.topics, of_topic, strict=True)
            if any(prices)
        }
    return PriceLevel(objective, value, value, dict(zip(ids, broker_price, strict=True)), topic_prices)


def _balanced(demand: Demand, asked: list[Asked]) -> tuple[Rows, Classes, list[PriceLevel]]:
    """Return the rows, and the choices of their classes whose counts are as balanced as the rules allow.

    Only counts matter here, so partitions of the same demand are one row: the solutions of the classes are those of
    the partitions, since the demands are flows and a flow of n equal ones is n flows.
    """
    has_cells = any(each.shares.is_cells for each in asked)
    rows = demand.rows if has_cells else replace(demand.rows, topic=np.zeros_like(demand.topic))
    picked, of_row = classes(rows, kinds_of(demand.kinds.rows)[demand.kind])
    choices = free_choices(picked, len(demand.topics) if has_cells else 0)
    levels = []
    for each in asked:
        solved = evened(picked, choices, each.shares)
        choices = solved.choices
        levels.append(price_level(each.objective, imbalance(each.shares, picked, solved.placed), demand, solved))
    return rows, Classes(picked, choices, of_row), levels


def _tie_breaks(demand: Demand, balance: Balance) -> Iterator[tuple[str, Cost | Shares]]:
    """Yield what decides between equals, in the contract's order: copies, a better balance, leaders kept, turns.

    Before leaders, the fewest replicas out of sync stay: a move ends only once all that stay are in sync. What is
    proved has a name.
    """
    yield ("replicas", _copies(demand)) if demand.is_size_known else ("bytes", _bytes(demand))
    if not isinstance(balance.replicas, Even):
        yield "evenness", Shares(demand.base, demand.bench.capacity)
    if any(slot.lagging for slot in demand.slots):
        yield "", _lagging_kept(demand)
    yield "", _leaders_kept(demand)
    if demand.is_new.any():
        yield "", turns(demand.slots, demand.bench)


def _bytes(demand: Demand) -> HeldCost:
    """Return the bytes that each choice copies; a new partition starts empty."""
    return HeldCost(demand.size, demand.replicas, np.zeros_like(demand.replicas))


def _copies(demand: Demand) -> HeldCost:
    return HeldCost((~demand.is_new).astype(np.int64), demand.replicas, np.zeros_like(demand.replicas))


def _lagging_kept(demand: Demand) -> HeldCost:
    """Return one for each present replica that is out of sync."""
    at = np.zeros_like(demand.replicas)
    for number, slot in enumerate(demand.slots):
        if slot.lagging:
            at[number, : len(slot.replicas)] = [replica in slot.lagging for replica in slot.replicas]
    return HeldCost(np.zeros(len(at), dtype=np.int64), demand.replicas, at)


def _leaders_kept(demand: Demand) -> HeldCost:
    """Return a gain for the present preferred leader, where it may lead."""
    first = demand.replicas[:, :1]
    number = np.arange(len(first))
    may_lead = (first[:, 0] >= 0) & demand.kinds.leadable[demand.kind, np.maximum(first[:, 0], 0)]
    at = np.zeros_like(first)
    at[number[may_lead], 0] = -1
    return HeldCost(np.zeros(len(first), dtype=np.int64), first, at)


def _joint_prices(demand: Demand, levels: list[PriceLevel]) -> dict[int, int]:
    """Return prices that hold without the balance being given: those of the balance weigh more than any copy can save.

    The bound they give: over all partitions the cheapest legal replica set at its cost and these prices, less the
    prices of the best-balanced counts.
    """
    *balances, last = levels
    prices = list(last.prices.values())
    largest = int(demand.size.max(initial=1)) if last.objective == "bytes" else 1
    weight = int(demand.kinds.rows.need.max(initial=0)) * (largest + max(prices) - min(prices)) + 1 if prices else 1
    first = (
        balances[0].prices
        if balances and balances[0].objective == "replicas balance"
        else dict.fromkeys(last.prices, 0)
    )
    joint = {broker_id: price + weight * first[broker_id] for broker_id, price in last.prices.items()}
    least = min(joint.values(), default=0)
    return {broker_id: price - least for broker_id, price in joint.items()}
