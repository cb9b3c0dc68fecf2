"""Plans to prove, made without stages, and what the proof's bounds must be, by enumeration."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from helpers.oracle import Demand, Problem, leader_options, legal_sets, squares
from helpers.planning import planned

from reconciler.model.cluster import Cluster
from reconciler.model.desired import BalanceTarget, Desired, Even, Off
from reconciler.model.plan import Plan, PriceLevel, Source
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

Level = tuple[str, Mapping[int, int]]
"""The name of an objective, and prices of brokers."""


def provable_plan(desired: Desired, observed: Cluster) -> Plan:
    """Return what the planner decides as a plan of one stage."""
    placed = planned(desired, observed)
    return Plan(
        cluster_name=desired.cluster.name,
        cluster_id=observed.cluster_id,
        source=Source(desired.digest),
        topic_changes=placed.topic_changes,
        stages=(ReassignStage(1, placed.moves),) if placed.moves else (),
        proof=placed.proof,
        balance_before=placed.balance_before,
        balance_after=placed.balance_after,
    )


def with_levels(plan: Plan, levels: Iterable[PriceLevel]) -> Plan:
    """Return the plan with other levels in its proof."""
    return replace(plan, proof=replace(plan.proof, levels=tuple(levels)))


def replica_bounds_by_enumeration(problem: Problem, target: BalanceTarget, levels: Sequence[Level]) -> list[int]:
    """Return the bound that prices give on each objective: every legal set tried, and every count."""
    choices = [(demand, legal_sets(demand, problem.rack_of)) for demand in problem.demands]
    certain = [b for demand, _ in choices for b in demand.settled or demand.must_hold]
    return _bounds(problem, target, levels, choices, Counter(certain))


def leader_bounds_by_enumeration(
    problem: Problem, target: BalanceTarget, placed: Mapping[TopicPartition, Sequence[int]], levels: Sequence[Level]
) -> list[int]:
    """Return the same for preferred leaders among these replicas."""
    choices = [
        (demand, [(leader,) for leader in leader_options(demand, placed[demand.topic_partition])])
        for demand in problem.demands
    ]
    certain = [demand.settled[0] for demand, _ in choices if demand.settled]
    return _bounds(problem, target, levels, choices, Counter(certain))


def _bounds(
    problem: Problem,
    target: BalanceTarget,
    levels: Sequence[Level],
    choices: Sequence[tuple[Demand, Sequence[tuple[int, ...]]]],
    certain: Counter[int],
) -> list[int]:
    held = sum(certain[broker_id] for broker_id in problem.brokers)
    still_open = sum(len(sets[0]) for _, sets in choices) - sum(certain.values())
    counts = {b: list(range(certain[b], certain[b] + still_open + 1)) for b in problem.brokers}
    left = [list(sets) for _, sets in choices]
    bounds = []
    for objective, prices in levels:
        is_balance = objective.endswith("balance")
        bound = 0
        for number, (demand, _) in enumerate(choices):
            worth = {
                replicas: (0 if is_balance else _cost(objective, demand, replicas))
                + sum(prices[b] for b in replicas if b in problem.capacity)
                for replicas in left[number]
            }
            bound += min(worth.values())
            left[number] = [replicas for replicas, value in worth.items() if value == min(worth.values())]
        for broker_id in problem.brokers:
            paid = {
                count: (_uneven(problem, target, broker_id, count, held + still_open) if is_balance else 0)
                - prices[broker_id] * count
                for count in counts[broker_id]
            }
            bound += min(paid.values())
            counts[broker_id] = [count for count, value in paid.items() if value == min(paid.values())]
        bounds.append(bound)
    return bounds


def _cost(objective: str, demand: Demand, replicas: Sequence[int]) -> int:
    if objective == "bytes":
        return demand.bytes_copied(replicas)
    if objective == "replicas":
        return demand.copied(replicas)
    return int(bool(demand.current) and replicas[0] != demand.current[0])


def _uneven(problem: Problem, target: BalanceTarget, broker_id: int, count: int, total: int) -> int:
    """Return one broker's part in how far counts that add up to `total` are from the target."""
    if isinstance(target, Even):
        return squares(problem.capacity, {broker_id: count})
    if isinstance(target, Off):
        return 0
    share = Fraction(total * problem.capacity[broker_id], sum(problem.capacity.values()))
    low = min(ceil(share * (1 - target.fraction)), floor(share))
    high = max(floor(share * (1 + target.fraction)), ceil(share))
    return max(0, low - count, count - high)
