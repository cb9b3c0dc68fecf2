"""On tiny clusters every legal placement is tried: a cap that any of them keeps is kept, whatever the bands ask for."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible
from planner.load_balance.enumerated import MEASURES, carried, placements, sets
from planner.load_balance.planning import random_loads

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, Desired
from reconciler.model.loads import Loads
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.load_balance.measured import measured
from reconciler.planner.load_balance.place import placed_with_loads
from reconciler.planner.placement_task import eligible_brokers, placement_task
from reconciler.planner.to_place import partitions_to_place

DISK, NETWORK_IN = MEASURES.index("disk"), MEASURES.index("networkIn")
Lists = Mapping[TopicPartition, tuple[int, ...]]
Caps = Mapping[int, Mapping[int, int]]

pytestmark = pytest.mark.long


def _placed(desired: Desired, observed: Cluster, loads: Loads, caps: Caps) -> Lists:
    """Return who holds each partition, in the end, with these caps."""
    rules = topic_rules(desired, observed)
    partitions, unmoved = partitions_to_place(desired, observed, rules, compare(desired, observed, rules), None)
    task = placement_task(partitions, unmoved, eligible_brokers(desired, observed))
    balance = desired.cluster.balance
    sizes = [(key, each.bytes_to_copy) for key, _ in unmoved if (each := observed.partition(key)) is not None]
    of = measured(partitions, sizes, balance, loads).of
    replicas, leaders, _ = placed_with_loads(task, unmoved, balance, of, caps)
    ids = task.eligible.ids
    found: dict[TopicPartition, tuple[int, ...]] = dict(unmoved)
    for row, key in enumerate(partitions.keys(np.arange(len(partitions)))):
        members = [ids[column] for column in replicas.held[row].tolist() if column >= 0]
        members += [ids[column] for column in task.fixed[row].tolist() if column >= 0 and ids[column] not in members]
        leader = ids[int(leaders.column[row])]
        found[key] = (leader, *(one for one in members if one != leader))
    return found


def _above(problem: Problem, loads: Loads, lists: Lists, caps: Caps) -> int:
    held = carried(problem, loads, lists)
    return sum(max(0, held[measure][one] - most) for measure, each in caps.items() for one, most in each.items())


def _can_be_kept(problem: Problem, loads: Loads, caps: Caps) -> bool | None:
    """Return whether any legal placement keeps the caps, None where there are too many to try."""
    every = placements(problem, sets, 20_000)
    return None if every is None else any(not _above(problem, loads, lists, caps) for lists in every)


@parts("seeds", range(0, 300, 8), deep=range(300))
@pytest.mark.parametrize("is_balanced", [False, True], ids=["caps alone", "caps and bands"])
def test_caps_that_a_placement_keeps_are_kept_whatever_the_bands_ask_for(seeds: range, *, is_balanced: bool) -> None:
    seen = {True: 0, False: 0}
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        if not is_feasible(problem):
            continue
        if not is_balanced:
            desired = replace(desired, cluster=replace(desired.cluster, balance=Balance()))
        random = Random(seed)
        present = _placed(desired, observed, loads, {})
        held = carried(problem, loads, present)
        caps = {}
        for measure in random.choice([(DISK,), (NETWORK_IN,), (DISK, NETWORK_IN)]):
            most = sum(held[measure].values()) * random.choice([9, 10, 12, 15]) // 10 // max(1, len(problem.capacity))
            caps[measure] = {one: most for one in problem.capacity if random.random() < 0.8}
        can_be = _can_be_kept(problem, loads, caps)
        if can_be is None:
            continue
        above = _above(problem, loads, _placed(desired, observed, loads, caps), caps)
        assert (above == 0) == can_be, (seed, caps, above)
        seen[can_be] += _above(problem, loads, present, caps) > 0
    assert seen[True] > len(seeds) / 15, seen
    assert seen[False] > len(seeds) / 25, seen
