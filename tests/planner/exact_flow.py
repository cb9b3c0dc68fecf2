"""A second oracle, for clusters too large to enumerate: successive shortest paths over the brokers, in plain Python.

A convex minimum-cost flow (partition -> rack within the partition -> broker -> sink). Replicas are placed one at a
time; each placement follows the cheapest path of exchanges between brokers, so that every step is optimal for what is
placed so far. All costs are Python integers, the objectives weighted so that one never outweighs the one before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, floor, lcm

from helpers.plans.oracle import Demand, Problem, leader_options

from reconciler.model.desired import BalanceTarget, Even, Off, Within
from reconciler.model.topic_partition import TopicPartition

HOPS = 1024
"""Costs are multiplied by this, and each exchange costs one: of equal paths the shortest is taken, and it is simple."""

Marginal = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Row:
    """One partition's choice: how many brokers, what each costs, and the bounds of each rack."""

    need: int
    cost: Mapping[int, int]
    bounds: Mapping[str, tuple[int, int]]


@dataclass(slots=True)
class _State:
    """What is placed so far, and for each pair of brokers the exchanges that may be the cheapest."""

    rows: Sequence[Row]
    rack_of: Mapping[int, str]
    penalty: int
    held: list[set[int]]
    racks: list[Counter[str]]
    count: Counter[int]
    exchanges: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)

    def rack_cost(self, row: int, rack: str, number: int) -> int:
        """Return what the number-th replica in a rack costs: below the least one it saves, above the most it costs."""
        low, high = self.rows[row].bounds.get(rack, (0, 0))
        if number <= low:
            return -self.penalty
        return 0 if number <= high else self.penalty

    def exchange_cost(self, row: int, source: int, destination: int) -> int | None:
        """Return the cost of moving a row's replica, None where it is not there or may not go there."""
        cost, held = self.rows[row].cost, self.held[row]
        if source not in held or destination in held or destination not in cost:
            return None
        change = cost[destination] - cost[source]
        here, there = self.rack_of[source], self.rack_of[destination]
        if here != there:
            change += self.rack_cost(row, there, self.racks[row][there] + 1)
            change -= self.rack_cost(row, here, self.racks[row][here])
        return change

    def cheapest(self, source: int, destination: int) -> tuple[int, int] | None:
        """Return the cheapest exchange (cost, row) between two brokers; entries that no longer hold are dropped."""
        heap = self.exchanges.get((source, destination), [])
        while heap:
            cost, row = heap[0]
            if self.exchange_cost(row, source, destination) == cost:
                return cost, row
            heappop(heap)
        return None

    def put(self, row: int, broker_id: int, *, instead_of: int | None = None) -> None:
        """Place a replica, and note the exchanges that it makes possible."""
        if instead_of is not None:
            self.held[row].remove(instead_of)
            self.racks[row][self.rack_of[instead_of]] -= 1
            self.count[instead_of] -= 1
        self.held[row].add(broker_id)
        self.racks[row][self.rack_of[broker_id]] += 1
        self.count[broker_id] += 1
        for source in self.held[row]:
            for destination in self.rows[row].cost:
                change = self.exchange_cost(row, source, destination)
                if change is not None:
                    heappush(self.exchanges.setdefault((source, destination), []), (change, row))


def least_flow(
    rows: Sequence[Row], rack_of: Mapping[int, str], brokers: Sequence[int], marginal: Marginal, penalty: int
) -> list[frozenset[int]]:
    """Return who holds each row at the least total cost; `marginal(broker, n)` is what its n-th replica costs."""
    state = _State(
        rows=rows,
        rack_of=rack_of,
        penalty=penalty * HOPS,
        held=[set() for _ in rows],
        racks=[Counter() for _ in rows],
        count=Counter(),
    )
    for number, row in enumerate(rows):
        for _ in range(row.need):
            _place_one(state, number, brokers, marginal)
    return [frozenset(held) for held in state.held]


def _place_one(state: _State, row: int, brokers: Sequence[int], marginal: Marginal) -> None:
    """Find the cheapest path by Bellman-Ford and follow it from the end."""
    cost, via = _distances(state, row, brokers)
    end = min(cost, key=lambda broker_id: cost[broker_id] + marginal(broker_id, state.count[broker_id] + 1) * HOPS)
    path = []
    while end in via:
        source, moved = via[end]
        path.append((moved, source, end))
        end = source
    for moved, source, destination in path:
        state.put(moved, destination, instead_of=source)
    state.put(row, end)


def _distances(state: _State, row: int, brokers: Sequence[int]) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    cost = {
        broker_id: price
        + state.rack_cost(row, state.rack_of[broker_id], state.racks[row][state.rack_of[broker_id]] + 1)
        for broker_id, price in state.rows[row].cost.items()
        if broker_id not in state.held[row]
    }
    arcs = [
        (source, destination, found)
        for source in brokers
        for destination in brokers
        if source != destination and (found := state.cheapest(source, destination)) is not None
    ]
    via: dict[int, tuple[int, int]] = {}
    is_changing = True
    while is_changing:
        is_changing = False
        for source, destination, (change, moved) in arcs:
            if source in cost and (destination not in cost or cost[source] + change + 1 < cost[destination]):
                cost[destination] = cost[source] + change + 1
                via[destination] = (source, moved)
                is_changing = True
    return cost, via


def is_for_flow(problem: Problem) -> bool:
    """Whether the flow speaks of this problem: no leader racks, no undeclared topic to drain, sizes known, brokers."""
    free = [demand for demand in problem.demands if demand.settled is None]
    return (
        bool(problem.capacity)
        and problem.is_size_known
        and all(demand.leader_racks is None and not demand.must_hold for demand in free)
    )


def flow_placement(problem: Problem, target: BalanceTarget) -> dict[TopicPartition, frozenset[int]]:
    """Return a best placement of a problem that `is_for_flow`."""
    free = [demand for demand in problem.demands if demand.settled is None]
    settled = {d.topic_partition: frozenset(d.settled) for d in problem.demands if d.settled is not None}
    weights = _Weights.of(problem)
    rows = [
        Row(
            demand.need,
            {broker_id: weights.cost(demand, broker_id) * HOPS for broker_id in sorted(demand.allowed)},
            demand.bounds,
        )
        for demand in free
    ]
    base = Counter(b for replicas in settled.values() for b in replicas if b in problem.capacity)
    total = sum(demand.need for demand in free) + sum(base.values())
    marginal = _marginal(problem, target, base, total, weights)
    penalty = weights.balance * 2 * (total + 1) ** 2 * lcm(*problem.capacity.values())
    held = least_flow(rows, problem.rack_of, problem.brokers, marginal, penalty)
    return settled | {demand.topic_partition: replicas for demand, replicas in zip(free, held, strict=True)}


@dataclass(frozen=True, slots=True)
class _Weights:
    """One unit of each objective, each more than all the following ones can add up to."""

    balance: int
    bytes: int
    copies: int
    squares: int

    @staticmethod
    def of(problem: Problem) -> "_Weights":
        total = sum(demand.need for demand in problem.demands) + 1
        largest = max((demand.size or 0 for demand in problem.demands), default=0) + 1
        squares = 2 * total
        copies = squares * 4 * total * total * lcm(*problem.capacity.values())
        of_bytes = copies * 2 * total
        return _Weights(of_bytes * 2 * total * largest, of_bytes, copies, squares)

    def cost(self, demand: Demand, broker_id: int) -> int:
        """Return what it costs that this broker holds the partition; keeping a preferred leader saves one."""
        is_leader_kept = bool(demand.current) and demand.current[0] == broker_id and broker_id in demand.leading
        copied = demand.copied([broker_id])
        return copied * ((demand.size or 0) * self.bytes + self.copies) - int(is_leader_kept)


def _marginal(problem: Problem, target: BalanceTarget, base: Counter[int], total: int, weights: _Weights) -> Marginal:
    scale = lcm(*problem.capacity.values())
    bands = {b: _band(problem, target, b, total) for b in problem.brokers} if isinstance(target, Within) else {}

    def of(broker_id: int, number: int) -> int:
        held = base[broker_id] + number
        square = (2 * held - 1) * (scale // problem.capacity[broker_id])
        if isinstance(target, Even):
            return square * weights.balance
        if isinstance(target, Off):
            return square * weights.squares
        low, high = bands[broker_id]
        step = -1 if held <= low else int(held > high)
        return step * weights.balance + square * weights.squares

    return of


def _band(problem: Problem, target: Within, broker_id: int, total: int) -> tuple[int, int]:
    share = Fraction(total * problem.capacity[broker_id], sum(problem.capacity.values()))
    low, high = share * (1 - target.fraction), share * (1 + target.fraction)
    return min(ceil(low), floor(share)), max(floor(high), ceil(share))


def flow_leaders(
    problem: Problem, target: BalanceTarget, placed: Mapping[TopicPartition, Iterable[int]]
) -> dict[TopicPartition, int]:
    """Return best preferred leaders of these replicas."""
    rows = []
    for demand in problem.demands:
        options = leader_options(demand, sorted(placed[demand.topic_partition]))
        now = demand.current[:1]
        rows.append(Row(1, {b: int(bool(now) and b not in now) * HOPS for b in options}, {"": (0, 1)}))
    scale = lcm(*problem.capacity.values())
    weight = len(rows) + 1

    def marginal(broker_id: int, number: int) -> int:
        if not isinstance(target, Even) or broker_id not in problem.capacity:
            return 0
        return (2 * number - 1) * (scale // problem.capacity[broker_id]) * weight

    rackless = dict.fromkeys(problem.rack_of, "")
    held = least_flow(rows, rackless, problem.brokers, marginal, 0)
    return {demand.topic_partition: min(one) for demand, one in zip(problem.demands, held, strict=True)}
