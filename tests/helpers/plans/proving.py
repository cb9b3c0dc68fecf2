"""Plans to prove, made without stages, and what the proof's bounds must be, by enumeration."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from helpers.plans.oracle import Demand, Problem, leader_options, legal_sets, squares
from helpers.plans.planning import planned

from reconciler.model.budget import Budget
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, BalanceTarget, Desired, Even, Off
from reconciler.model.plan import Plan, PriceLevel, Source
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import Placed


def provable_plan(desired: Desired, observed: Cluster) -> Plan:
    """Return what the planner decides as a plan of one stage."""
    return plan_of_placed(desired, observed, planned(desired, observed))


def plan_of_placed(desired: Desired, observed: Cluster, placed: Placed, budget: Budget | None = None) -> Plan:
    """Return these placements as a plan of one stage."""
    return Plan(
        cluster_name=desired.cluster.name,
        cluster_id=observed.cluster_id,
        source=Source(desired.digest, budget=budget),
        topic_changes=placed.topic_changes,
        stages=(ReassignStage(1, placed.moves),) if placed.moves else (),
        proof=placed.proof,
        balance_before=placed.balance_before,
        balance_after=placed.balance_after,
        budgeted=placed.budgeted,
    )


def with_levels(plan: Plan, levels: Iterable[PriceLevel]) -> Plan:
    """Return the plan with other levels in its proof."""
    return replace(plan, proof=replace(plan.proof, levels=tuple(levels)))


def replica_bounds_by_enumeration(problem: Problem, balance: Balance, levels: Sequence[PriceLevel]) -> list[int]:
    """Return the bound that prices give on each objective: every legal set tried, and every count."""
    choices = [(demand, legal_sets(demand, problem.rack_of)) for demand in problem.demands]
    certain = {demand.topic_partition: tuple(demand.settled or demand.must_hold) for demand, _ in choices}
    return _bounds(problem, (balance.replicas, balance.topics), levels, choices, certain)


def leader_bounds_by_enumeration(
    problem: Problem, balance: Balance, placed: Mapping[TopicPartition, Sequence[int]], levels: Sequence[PriceLevel]
) -> list[int]:
    """Return the same for preferred leaders among these replicas."""
    choices = [
        (demand, [(leader,) for leader in leader_options(demand, placed[demand.topic_partition])])
        for demand in problem.demands
    ]
    certain = {demand.topic_partition: tuple(demand.settled or ())[:1] for demand, _ in choices}
    return _bounds(problem, (balance.leaders, balance.topics), levels, choices, certain)


Holder = tuple[str, int]
"""A topic and a broker; every topic together has no name."""
Choices = Sequence[tuple[Demand, Sequence[tuple[int, ...]]]]


def _bounds(
    problem: Problem,
    targets: tuple[BalanceTarget, BalanceTarget],
    levels: Sequence[PriceLevel],
    choices: Choices,
    certain: Mapping[TopicPartition, tuple[int, ...]],
) -> list[int]:
    held, totals = _held(choices, certain)
    counts = {
        (topic, broker_id): range(held[topic, broker_id], held[topic, broker_id] + still_open + 1)
        for topic, still_open in totals.items()
        for broker_id in problem.brokers
    }
    possible: dict[Holder, list[int]] = {holder: list(some) for holder, some in counts.items()}
    left = [list(sets) for _, sets in choices]
    bounds = []
    for level in levels:
        bound = 0
        for number, (demand, _) in enumerate(choices):
            worth = {replicas: _paid(problem, level, demand, replicas) for replicas in left[number]}
            bound += min(worth.values())
            left[number] = [replicas for replicas, value in worth.items() if value == min(worth.values())]
        for (topic, broker_id), some in possible.items():
            whole = totals[topic] + sum(held[topic, other] for other in problem.brokers)
            target = _target(level.objective, targets, topic)
            price = (level.topic_prices.get(topic, {}) if topic else level.prices).get(broker_id, 0)
            worth_of = {n: _uneven(problem, target, broker_id, n, whole) - price * n for n in some}
            bound += min(worth_of.values())
            possible[topic, broker_id] = [n for n, value in worth_of.items() if value == min(worth_of.values())]
        bounds.append(bound)
    return bounds


def _held(
    choices: Choices, certain: Mapping[TopicPartition, tuple[int, ...]]
) -> tuple[Counter[Holder], dict[str, int]]:
    """Return what is certain to be held, and how many are still open, in all and by topic."""
    held: Counter[Holder] = Counter()
    totals: Counter[str] = Counter()
    for demand, sets in choices:
        sure = certain[demand.topic_partition]
        for topic in ("", demand.topic_partition.topic):
            held.update((topic, broker_id) for broker_id in sure)
            totals[topic] += len(sets[0]) - len(sure)
    return held, dict(totals)


def _target(objective: str, targets: tuple[BalanceTarget, BalanceTarget], topic: str) -> BalanceTarget:
    if objective == "evenness":
        return Off() if topic else Even()
    is_by_topic = objective in {"topics balance", "topic leaders balance"}
    if not objective.endswith("balance") or is_by_topic != bool(topic):
        return Off()
    return targets[1] if topic else targets[0]


def _paid(problem: Problem, level: PriceLevel, demand: Demand, replicas: Sequence[int]) -> int:
    of_topic = level.topic_prices.get(demand.topic_partition.topic, {})
    weighed = [b for b in replicas if b in problem.capacity]
    return _cost(level.objective, demand, replicas) + sum(level.prices.get(b, 0) + of_topic.get(b, 0) for b in weighed)


def _cost(objective: str, demand: Demand, replicas: Sequence[int]) -> int:
    if objective == "bytes":
        return demand.bytes_copied(replicas)
    if objective == "replicas":
        return demand.copied(replicas)
    if objective == "leaders changed":
        return int(bool(demand.current) and replicas[0] != demand.current[0])
    return 0


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
