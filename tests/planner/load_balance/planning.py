"""From a desired state, a cluster and loads to what the planner decides; and random small clusters with loads."""

from dataclasses import replace
from fractions import Fraction
from random import Random

from helpers.clusters.random_clusters import Size, random_cluster
from helpers.plans.oracle import Problem, problem_of

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, BalanceTarget, Desired, Even, Off, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.planner.place import Placed, plan_placement

TINY = Size(brokers=4, topics=2, partitions=6, replication_factor=2)


def planned_with(desired: Desired, observed: Cluster, loads: Loads | None) -> Placed:
    """Return what the planner decides with these loads."""
    rules = topic_rules(desired, observed)
    return plan_placement(desired, observed, rules, compare(desired, observed, rules), loads=loads)


def random_loads(seed: int, size: Size = TINY) -> tuple[Desired, Cluster, Loads, Problem]:
    """Return a random cluster with loads of all partitions and a balance that asks for disks at least."""
    desired, observed = random_cluster(seed, size)
    random = Random(seed)
    problem = problem_of(desired, observed)
    loads = {
        demand.topic_partition: PartitionLoad(random.randint(0, 40), random.randint(0, 60), random.randint(1, 50))
        for demand in problem.demands
    }
    balance = Balance(
        replicas=_count_target(random),
        leaders=_count_target(random),
        disk=_within(random),
        network_in=random.choice([Off(), _within(random)]),
        network_out=random.choice([Off(), _within(random)]),
    )
    return replace(desired, cluster=replace(desired.cluster, balance=balance)), observed, Loads(loads), problem


def _within(random: Random) -> BalanceTarget:
    return Within(Fraction(random.choice([2, 4, 6, 9, 12]), 10))


def _count_target(random: Random) -> BalanceTarget:
    targets: list[BalanceTarget] = [Off(), Off(), Even(), Within(Fraction(1, 2))]
    return random.choice(targets)
