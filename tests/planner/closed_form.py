"""A second oracle, for clusters of any size in which every partition holds exactly one replica in each rack.

There each rack stands alone, and a replica that moves costs the same wherever it goes. So a rack is as even as can be
(floor or ceiling of its mean), each broker sheds its smallest replicas, and the brokers that keep one more are those
which save the most by it.
"""

from collections import defaultdict

from helpers.plans.oracle import Problem


def sizes_to_copy(problem: Problem) -> list[int]:
    """Return the sizes that a best plan copies for balance `even`; all ask for one replica a rack, capacities equal."""
    assert len(set(problem.capacity.values())) == 1
    assert all(set(demand.bounds.values()) == {(1, 1)} and demand.settled is None for demand in problem.demands)
    return [size for rack in sorted(set(problem.rack_of.values())) for size in _sizes_within(problem, rack)]


def _sizes_within(problem: Problem, rack: str) -> list[int]:
    """Return the sizes of the replicas to copy within a rack."""
    brokers = [broker_id for broker_id in problem.brokers if problem.rack_of[broker_id] == rack]
    kept: dict[int, list[int]] = defaultdict(list)
    copied = []
    for demand in problem.demands:
        here = [broker_id for broker_id in demand.current if broker_id in brokers]
        size = demand.size or 0
        if here:
            kept[here[0]].append(size)
        elif demand.current:
            copied.append(size)
    floor, extra = divmod(len(problem.demands), len(brokers))
    sizes = {broker_id: sorted(kept[broker_id]) for broker_id in brokers}
    over = {broker_id: len(sizes[broker_id]) - floor for broker_id in brokers}
    savings = sorted(
        ((sizes[broker_id][over[broker_id] - 1], broker_id) for broker_id in brokers if over[broker_id] > 0),
        reverse=True,
    )
    one_more = {broker_id for _, broker_id in savings[:extra]}
    for broker_id in brokers:
        copied += sizes[broker_id][: max(0, over[broker_id] - (broker_id in one_more))]
    return copied
