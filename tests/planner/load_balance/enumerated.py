"""What the best plan within bands must copy, by trying every legal ordered placement of every partition; tiny clusters.

The rules are those that `helpers.plans.oracle` restates; bands and loads are restated here, from the contract alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod

from helpers.plans.oracle import Demand, Problem, legal_sets, problem_of

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, BalanceTarget, Desired, Even, Off
from reconciler.model.loads import Loads
from reconciler.model.topic_partition import TopicPartition

Lists = Mapping[TopicPartition, tuple[int, ...]]
MEASURES = ("replicas", "leaders", "disk", "networkIn", "networkOut")
MOST = 60_000


@dataclass(frozen=True, slots=True)
class Least:
    """The fewest bytes of any placement within all bands, None where there is none."""

    bytes_copied: int | None


def least_within(desired: Desired, observed: Cluster, loads: Loads) -> Least | None:
    """Return the optimum, None where there are too many placements to try."""
    problem = problem_of(desired, observed)
    every = placements(problem, orders, MOST)
    if every is None:
        return None
    best: int | None = None
    for lists in every:
        copied = bytes_copied(problem, lists)
        if (best is None or copied < best) and not outside(problem, desired.cluster.balance, loads, lists):
            best = copied
    return Least(best)


def placements(
    problem: Problem, choices: Callable[[Problem, Demand], Iterable[tuple[int, ...]]], most: int
) -> Iterator[Lists] | None:
    """Return every placement by these choices of each partition, None where there are more than so many, or none."""
    every = [list(choices(problem, demand)) for demand in problem.demands]
    if not 0 < prod(map(len, every)) <= most:
        return None
    keys = [demand.topic_partition for demand in problem.demands]
    return (dict(zip(keys, lists, strict=True)) for lists in product(*every))


def bytes_copied(problem: Problem, lists: Lists) -> int:
    """Return the bytes that a placement copies."""
    return sum(demand.bytes_copied(lists[demand.topic_partition]) for demand in problem.demands)


def sets(problem: Problem, demand: Demand) -> list[tuple[int, ...]]:
    """Return each legal set; what is settled as it is ordered."""
    return legal_sets(demand, problem.rack_of) if demand.settled is None else [demand.settled]


def orders(problem: Problem, demand: Demand) -> Iterator[tuple[int, ...]]:
    """Yield each legal set once for each replica that may lead it, that one first."""
    if demand.settled is not None:
        yield demand.settled
        return
    for replicas in legal_sets(demand, problem.rack_of):
        for tier in (demand.leading, demand.leading_at_need, frozenset(replicas)):
            leaders = sorted(tier & set(replicas))
            if leaders:
                yield from ((leader, *(other for other in replicas if other != leader)) for leader in leaders)
                break


def outside(problem: Problem, balance: Balance, loads: Loads, lists: Lists) -> dict[tuple[str, int], int]:
    """Return what each broker has above (positive) or below (negative) its band, nothing for those within."""
    targets: Sequence[BalanceTarget] = (
        balance.replicas,
        balance.leaders,
        balance.disk,
        balance.network_in,
        balance.network_out,
    )
    found = {}
    capacity = sum(problem.capacity.values())
    for name, target, held in zip(MEASURES, targets, carried(problem, loads, lists), strict=True):
        if isinstance(target, Off):
            continue
        total = sum(held.values())
        for broker_id, weight in problem.capacity.items():
            share = Fraction(total * weight, capacity)
            fraction = Fraction(0) if isinstance(target, Even) else target.fraction
            low, high = ceil(share * (1 - fraction)), floor(share * (1 + fraction))
            if name in {"replicas", "leaders"}:
                low, high = min(low, floor(share)), max(high, ceil(share))
            amount = held[broker_id]
            if not low <= amount <= high:
                found[name, broker_id] = amount - high if amount > high else amount - low
    return found


def carried(problem: Problem, loads: Loads, lists: Lists) -> list[dict[int, int]]:
    """Return what each broker carries of each measure."""
    held = [dict.fromkeys(problem.capacity, 0) for _ in MEASURES]
    for key, replicas in lists.items():
        load = loads.of[key]
        assert load.bytes_in is not None
        assert load.bytes_out is not None
        assert load.size_bytes is not None
        for place, broker_id in enumerate(replicas):
            if broker_id not in problem.capacity:
                continue
            leads = place == 0
            sent = load.bytes_out + (len(replicas) - 1) * load.bytes_in if leads else 0
            for measure, amount in enumerate((1, int(leads), load.size_bytes, load.bytes_in, sent)):
                held[measure][broker_id] += amount
    return held
