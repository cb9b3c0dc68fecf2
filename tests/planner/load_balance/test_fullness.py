"""Disks of unequal size: as full as each other, by the fewest bytes, as an exact solver finds it on small clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

import pytest
from helpers.depth import parts
from helpers.plans.planning import cluster_after, replicas_after
from helpers.plans.proving import plan_of_placed
from ortools.sat.python import cp_model
from planner.load_balance.planning import planned_with

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Spread, Within
from reconciler.model.desired import Placement as Rules
from reconciler.proof.check import prove_end

TOPIC, RACKS = "t", ("a", "b", "c")

pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True)
class _Case:
    """Brokers with disks of these sizes, of which others use some bytes; one topic on them, and what is asked for."""

    total: Mapping[int, int]
    foreign: Mapping[int, int]
    partitions: tuple[Partition, ...]
    within: Fraction
    spread: Spread

    @property
    def factor(self) -> int:
        return len(self.partitions[0].replicas)

    def size(self, partition: Partition) -> int:
        return partition.sizes[0] or 0

    def used(self, lists: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
        """Return the bytes in use of each broker with these replicas of each partition."""
        used = dict(self.foreign)
        for partition in self.partitions:
            for broker_id in lists[partition.partition]:
                used[broker_id] += self.size(partition)
        return used

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return the least and the most that each broker may hold: the mean fullness, less and more the band."""
        everything = sum(self.foreign.values()) + sum(map(self.size, self.partitions)) * self.factor
        fullness = Fraction(everything, sum(self.total.values()))
        ends = (1 - self.within, 1 + self.within)
        shares = {one: [fullness * size * end for end in ends] for one, size in self.total.items()}
        return {one: (-(-low // 1), high // 1) for one, (low, high) in shares.items()}

    def excess(self, lists: Mapping[int, tuple[int, ...]]) -> float:
        """Return all that is outside, in parts of fair shares."""
        used, limits = self.used(lists), self.limits()
        mean = sum(used.values()) / sum(self.total.values())
        return sum(
            max(0, used[one] - high, low - used[one]) / (mean * self.total[one]) for one, (low, high) in limits.items()
        )

    def states(self) -> tuple[Desired, Cluster]:
        present = {partition.partition: partition.replicas for partition in self.partitions}
        brokers = {
            one: Broker(one, RACKS[one % len(RACKS)], log_dirs=(LogDir("/d", size, size - self.used(present)[one]),))
            for one, size in self.total.items()
        }
        placement = Rules(racks_spread=self.spread)
        desired = DesiredCluster("c", balance=Balance(disk=Within(self.within)))
        topics = {TOPIC: Topic(TOPIC, self.partitions)}
        return Desired(desired, {TOPIC: DesiredTopic(TOPIC, placement=placement)}), Cluster("c", brokers, topics)


def _case(seed: int) -> _Case:
    random = Random(seed)
    brokers, factor = random.randint(3, 6), random.choice([1, 2, 2, 3])
    held, partitions = dict.fromkeys(range(brokers), 0), []
    for number in range(random.randint(8, 13)):
        size, replicas = random.randint(5, 60), tuple(random.sample(range(brokers), factor))
        partitions.append(Partition(number, replicas[0], replicas, replicas, sizes=(size,) * factor))
        for broker_id in replicas:
            held[broker_id] += size
    parts = {one: random.choice([1, 2, 4, 8]) for one in held}
    parts[0] = 3  # never all alike
    unit = max(sum(held.values()) // sum(parts.values()), *(2 * held[one] // parts[one] for one in held)) + 1
    total = {one: part * unit for one, part in parts.items()}
    foreign = {one: random.choice([0, 0, size // 10]) for one, size in total.items()}
    spread = random.choice([Spread.STRICT, Spread.IGNORE])
    return _Case(total, foreign, tuple(partitions), Fraction(random.choice([5, 10, 20]), 100), spread)


def _solved(case: _Case) -> tuple[bool, int, dict[int, tuple[int, ...]]] | None:
    """Return whether the band can be kept, the fewest bytes with the least outside it, and a placement of these.

    None where the solver does not prove it in so many steps.
    """
    model, brokers = cp_model.CpModel(), sorted(case.total)
    held = {(p.partition, b): model.new_bool_var("") for p in case.partitions for b in brokers}
    present = {(p.partition, b) for p in case.partitions for b in p.replicas}
    racks = {rack: [b for b in brokers if RACKS[b % len(RACKS)] == rack] for rack in RACKS}
    racks = {rack: there for rack, there in racks.items() if there}
    for p in case.partitions:
        model.add(sum(held[p.partition, b] for b in brokers) == case.factor)
        for there in racks.values() if case.spread is Spread.STRICT else ():
            count = sum(held[p.partition, b] for b in there)
            model.add_linear_constraint(count, case.factor // len(racks), -(-case.factor // len(racks)))
    outside = []
    for b, (low, high) in case.limits().items():
        used = case.foreign[b] + sum(case.size(p) * held[p.partition, b] for p in case.partitions)
        excess = model.new_int_var(0, 1 << 30, "")
        model.add(excess >= used - int(high))
        model.add(excess >= int(low) - used)
        outside.append(10**8 // case.total[b] * excess)
    size = {p.partition: case.size(p) for p in case.partitions}
    copied = sum(size[key[0]] * each for key, each in held.items() if key not in present)
    for goal in (sum(outside), copied):
        model.minimize(goal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = 3
        if solver.solve(model) != cp_model.OPTIMAL:
            return None
        model.add(goal <= round(solver.objective_value))
    found = {n: tuple(b for b in brokers if solver.value(held[n, b])) for n in size}
    return not any(solver.value(each) for each in outside), round(solver.objective_value), found


@parts("seeds", range(4, 100, 12), deep=range(100))
def test_unequal_disks_are_as_even_as_an_exact_solver_makes_them_by_as_few_bytes(seeds: range) -> None:
    kept = solved = 0
    for seed in seeds:
        case = _case(seed)
        desired, observed = case.states()
        placed = planned_with(desired, observed, None)
        lists = {key.partition: replicas for key, replicas in replicas_after(observed, placed).items()}
        found = _solved(case)
        if found is None:
            continue
        solved += 1
        can_be_kept, least, best = found
        assert case.excess(lists) <= case.excess(best) + 1e-6, seed
        if can_be_kept:
            kept += 1
            used = case.used(lists)
            fullness = {one: used[one] / size for one, size in case.total.items()}
            mean = sum(used.values()) / sum(case.total.values())
            assert max(fullness.values()) <= mean * (1 + float(case.within)) + 1e-9, seed
            assert placed.proof.lower_bound <= placed.proof.value == least, seed
        plan = plan_of_placed(desired, observed, placed)
        assert prove_end(plan, desired, observed).wrong is None, seed
        # What is usable then is what the replicas of then leave.
        reached = cluster_after(observed, placed.moves, placed.topic_changes)
        there = replace(case, partitions=tuple(reached.topics[TOPIC].partitions))
        assert not planned_with(*there.states(), None).moves, seed
    assert 0.9 * len(seeds) <= solved
    assert len(seeds) / 3 < kept < solved


def test_disks_of_one_size_are_balanced_as_if_no_size_were_known() -> None:
    for seed in range(5):
        case = _case(seed)
        desired, observed = case.states()
        alike = {one: (LogDir("/d", 1 << 20, 1 << 10),) for one in observed.brokers}
        plain, known = (
            Cluster(
                "c",
                {one: Broker(one, b.rack, log_dirs=dirs.get(one, ())) for one, b in observed.brokers.items()},
                observed.topics,
            )
            for dirs in ({}, alike)
        )
        assert planned_with(desired, plain, None) == planned_with(desired, known, None)


def test_a_weight_that_is_written_takes_the_place_of_all_sizes() -> None:
    case = _case(1)
    desired, observed = case.states()
    written = {0: DesiredBroker(0, weights={"disk": 3}), 1: DesiredBroker(1, weights={"leaders": 2})}
    plain = Cluster("c", {one: Broker(one, b.rack) for one, b in observed.brokers.items()}, observed.topics)
    weighed = Desired(DesiredCluster("c", brokers=written, balance=desired.cluster.balance), desired.topics)
    assert planned_with(weighed, observed, None).moves == planned_with(weighed, plain, None).moves
    assert planned_with(weighed, observed, None).moves != planned_with(desired, observed, None).moves
