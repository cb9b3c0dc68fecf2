"""Plans of two stages for two partitions on three brokers, and the clusters they were made for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import election, move, plan_of

from reconciler.model.cluster import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_RATE, Cluster
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

Replicas = tuple[int, ...]
RATE = 1000
PER_BROKER = 1
TIMEOUT_SECONDS = 150
"""Longer than metadata may be old (120 s), so that the shorter of the two comes first."""


@dataclass(frozen=True)
class Case:
    """One plan and its cluster; `foreign` is what another administrator may ask for."""

    name: str
    before: Cluster
    plan: Plan
    foreign: Mapping[TopicPartition, Replicas] = field(default_factory=dict)

    @cached_property
    def chains(self) -> Mapping[TopicPartition, tuple[tuple[int, Replicas, Replicas], ...]]:
        """The moves of each partition: the stage's number, from, to."""
        found: dict[TopicPartition, tuple[tuple[int, Replicas, Replicas], ...]] = {}
        for stage in self.plan.stages:
            for one in stage.moves if isinstance(stage, ReassignStage) else ():
                key = one.topic_partition
                found[key] = (*found.get(key, ()), (stage.number, one.from_replicas, one.to_replicas))
        return found

    def lists(self, key: TopicPartition) -> tuple[Replicas, ...]:
        """Return the lists that the plan takes a partition through."""
        chain = self.chains[key]
        return (chain[0][1], *(after for _, _, after in chain))


def _case(name: str, before: Cluster, stages: tuple[ReassignStage, ...], foreign: Mapping[str, Replicas]) -> Case:
    cluster = replace(
        before,
        brokers={id_: replace(one, log_dirs=(), configs=dict(one.configs)) for id_, one in before.brokers.items()},
        topics={
            topic.name: replace(topic, partitions=tuple(replace(one, log_dirs=()) for one in topic.partitions))
            for topic in before.topics.values()
        },
    )
    plan = plan_of(stages, cluster, per_broker=PER_BROKER, timeout_seconds=TIMEOUT_SECONDS, election_batch=1)
    keys = {str(key): key for key, _ in cluster.partitions()}
    return Case(name, cluster, plan, {keys[name]: replicas for name, replicas in foreign.items()})


def moves() -> Case:
    """Two copies to one broker, one after the other; then a copy back, a change of order, and who leads."""
    before = small_cluster(
        "a-0: 1,2",
        "a-1: 2,1",
        brokers=range(1, 4),
        configs={"a": {FOLLOWER_THROTTLED_REPLICAS: "1:1"}},
        rates={1: {LEADER_THROTTLED_RATE: "5"}},
    )
    first = ReassignStage(
        1, (move("a-0", "1,2", "3,2"), move("a-1", "2,1", "2,3")), RATE, elections=(election("a-0", 3),)
    )
    second = ReassignStage(
        2, (move("a-0", "3,2", "3,1"), move("a-1", "2,3", "3,2")), RATE, elections=(election("a-1", 3),)
    )
    return _case("moves", before, (first, second), {"a-0": (2, 1), "a-1": (1, 3)})


def factors() -> Case:
    """A partition gets a replica and one loses one, without a throttle; then both are led by others."""
    before = small_cluster("a-0: 1,2", "a-1: 2,1,3", brokers=range(1, 4), configs={"a": {"min.insync.replicas": "2"}})
    first = ReassignStage(1, (move("a-0", "1,2", "1,2,3"), move("a-1", "2,1,3", "2,1")))
    second = ReassignStage(
        2,
        (move("a-0", "1,2,3", "3,1,2"), move("a-1", "2,1", "3,1")),
        elections=(election("a-0", 3), election("a-1", 3)),
    )
    return _case("factors", before, (first, second), {"a-0": (2, 1), "a-1": (1, 2, 3)})


CASES = {one.name: one for one in (moves(), factors())}
