"""What lies above a disk's limit bounds what its relief copies."""

from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import small_cluster
from proof.worsening import claims

from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Limits
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove
from reconciler.render import as_proof
from reconciler.workflow.plan import Planner


def _filled(observed: Cluster, total: int) -> Cluster:
    """Give each broker one disk of that size, with its replicas on it and nothing else."""
    used = dict.fromkeys(observed.brokers, 0)
    for _, partition in observed.partitions():
        for broker_id, size in zip(partition.replicas, partition.sizes, strict=True):
            used[broker_id] += size or 0
    brokers = {
        b: replace(broker, log_dirs=(LogDir("/d", total, total - used[b]),)) for b, broker in observed.brokers.items()
    }
    return replace(observed, brokers=brokers)


@pytest.mark.parametrize(
    ("sizes", "factor", "copied", "bound"),
    [
        ([40, 30, 20], 1, 20, 10),  # 90 used, 80 allowed: the least that fits is a partition of 20
        ([40, 30, 10, 10], 1, 10, 10),  # 10 above, and 10 leave
        ([40, 30, 10, 10], 2, 100, 90),  # the prices prove the copies of second replicas, and 10 more leave beside them
    ],
)
def test_a_relief_is_bounded_by_what_lies_above_the_limit(
    sizes: list[int], factor: int, copied: int, bound: int
) -> None:
    observed = small_cluster(*(f"t-{n}: 1 size {size}" for n, size in enumerate(sizes)), brokers=(1, 2, 3))
    limits = Limits(disk_use=Fraction(8, 10))
    desired = Desired(DesiredCluster("c", limits=limits), {"t": DesiredTopic("t", replication_factor=factor)})
    observed = _filled(observed, 100)
    plan = Planner().plan_or_remedies(desired, observed)
    assert (plan.proof.value, plan.proof.lower_bound) == (copied, bound), plan.proof
    text = as_proof.text(prove(plan, desired, observed))
    assert ("no plan copies fewer than" in text) == (copied > 0), text


def test_what_one_full_disk_gives_to_another_is_no_relief_that_a_plan_has_to_copy() -> None:
    observed = _filled(
        small_cluster("a-0: 1 size 90", "t-0: 2 size 90", "t-1: 2 size 5", "t-2: 2 size 11", brokers=(1, 2)), 200
    )
    cluster = DesiredCluster("c", balance=Balance(replicas=Even()), limits=Limits(disk_use=Fraction(1, 10)))
    desired = Desired(cluster, {name: DesiredTopic(name, replication_factor=1) for name in "at"})
    plan = Planner().plan_or_remedies(desired, observed)
    (stage,) = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    assert [(str(move.topic_partition), move.bytes) for move in stage.moves] == [("t-1", 5)]
    assert as_proof.text(prove(plan, desired, observed)).startswith("Proved")
    larger = replace(stage.moves[0], topic_partition=TopicPartition("t", 2), bytes=11)
    _, worse = next(claims(replace(plan, stages=(replace(stage, moves=(larger,)),)), desired, observed))
    assert not as_proof.text(prove(worse, desired, observed)).startswith("Proved")
