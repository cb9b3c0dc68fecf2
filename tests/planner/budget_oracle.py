"""What a budget of bytes can buy, found apart from the planner: every count of replicas and the least bytes to it."""

from collections.abc import Mapping
from fractions import Fraction

from helpers.plans.oracle import Problem, legal_sets, outside, squares

from reconciler.model.desired import BalanceTarget, Even, Within

Counts = tuple[int, ...]


def least_bytes(problem: Problem) -> Mapping[Counts, int]:
    """Return for each count of replicas per broker that legal sets can give the fewest bytes copied for it."""
    column = {broker_id: place for place, broker_id in enumerate(problem.brokers)}
    found: dict[Counts, int] = {(0,) * len(column): 0}
    for demand in problem.demands:
        longer: dict[Counts, int] = {}
        for replicas in legal_sets(demand, problem.rack_of):
            copied = demand.bytes_copied(replicas)
            for counts, spent in found.items():
                more = list(counts)
                for replica in replicas:
                    if replica in column:
                        more[column[replica]] += 1
                key = tuple(more)
                longer[key] = min(longer.get(key, spent + copied), spent + copied)
        found = longer
    return found


def imbalance(problem: Problem, target: BalanceTarget, counts: Counts) -> int | Fraction:
    """Return how far counts are from what is asked for."""
    of = dict(zip(problem.brokers, counts, strict=True))
    if isinstance(target, Even):
        return squares(problem.capacity, of)
    return outside(problem.capacity, of, target.fraction) if isinstance(target, Within) else 0


def best_within(
    problem: Problem, target: BalanceTarget, known: Mapping[Counts, int], budget: int
) -> tuple[int | Fraction, int]:
    """Return the least imbalance that the budget buys and the fewest bytes for it; of the least bytes, where even
    these are more."""
    budget = max(budget, min(known.values()))
    return min((imbalance(problem, target, counts), spent) for counts, spent in known.items() if spent <= budget)
