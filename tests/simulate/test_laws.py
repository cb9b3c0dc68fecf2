"""Laws that hold for whatever is asked of a simulated cluster, in any order."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
    Partition,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.events import fence, unfence
from reconciler.simulate.progress import advance, copies, rates
from reconciler.simulate.requests import elect_preferred_leaders, reassign

pytestmark = pytest.mark.long

BROKERS = range(1, 7)
KEYS = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("sms", 0))
VERSIONS = ("3.9", "4.1", "4.3", None)
DAY = 24 * 60 * 60 * 1000

replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True).map(tuple)
sizes = st.integers(0, 10**9)
Step = tuple[str, int, Sequence[int], int]
steps = st.tuples(
    st.sampled_from(("alter", "cancel", "elect", "sleep", "kill", "return")),
    st.integers(0, 5),
    replica_lists,
    st.integers(1, 20_000),
)


@st.composite
def clusters(draw: st.DrawFn, fenced: Sequence[int] = ()) -> Cluster:
    """Draw three partitions, everything in sync."""
    lines = []
    for key in KEYS:
        replicas = draw(replica_lists)
        leader = draw(st.sampled_from(replicas))
        lines.append(f"{key}: {','.join(map(str, replicas))} leader {leader} size {draw(sizes)}")
    return small_cluster(*lines, fenced=fenced, kafka_version=draw(st.sampled_from(VERSIONS)))


def taken(cluster: Cluster, step: Step) -> Cluster:
    """Return the cluster after one event."""
    what, index, replicas, milliseconds = step
    key, broker_id = KEYS[index % len(KEYS)], index + 1
    events: dict[str, Callable[[], Cluster]] = {
        "alter": lambda: reassign(cluster, {key: replicas}).cluster,
        "cancel": lambda: reassign(cluster, {key: None}).cluster,
        "elect": lambda: elect_preferred_leaders(cluster, [key]).cluster,
        "sleep": lambda: advance(cluster, milliseconds),
        "kill": lambda: fence(cluster, broker_id),
        "return": lambda: unfence(cluster, broker_id),
    }
    return events[what]()


def partition_of(cluster: Cluster, key: TopicPartition = KEYS[0]) -> Partition:
    found = cluster.partition(key)
    assert found is not None
    return found


def partitions(cluster: Cluster) -> list[Partition]:
    return [partition for _, partition in cluster.partitions()]


def used(cluster: Cluster) -> dict[tuple[int, str], int]:
    """Return the bytes that each log dir has lost of its free space."""
    return {
        (broker.id, log_dir.path): (log_dir.total_bytes or 0) - (log_dir.usable_bytes or 0)
        for broker in cluster.brokers.values()
        for log_dir in broker.log_dirs
    }


def held(cluster: Cluster) -> dict[tuple[int, str], int]:
    """Return the bytes of the replicas in each log dir."""
    bytes_in = {(broker.id, log_dir.path): 0 for broker in cluster.brokers.values() for log_dir in broker.log_dirs}
    for partition in partitions(cluster):
        for broker_id, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes, strict=True):
            bytes_in[broker_id, path or ""] += size or 0
    return bytes_in


@settings(max_examples=75)
@given(clusters(), st.lists(steps, max_size=25))
def test_every_state_is_one_that_kafka_could_be_in(cluster: Cluster, events: list[Step]) -> None:
    for event in events:
        cluster = taken(cluster, event)
        for partition in partitions(cluster):
            assert len(set(partition.replicas)) == len(partition.replicas) > 0
            assert partition.isr or (partition.leader is None and partition.elr)
            assert set(partition.isr) <= set(partition.replicas)
            assert len(set(partition.isr)) == len(partition.isr)
            assert set(partition.adding_replicas) <= set(partition.replicas)
            assert set(partition.removing_replicas) <= set(partition.replicas)
            assert partition.target_replicas
            assert len(partition.sizes) == len(partition.log_dirs) == len(partition.replicas)
            assert None not in partition.log_dirs
            living = [replica for replica in partition.isr if cluster.is_alive(replica)]
            assert (partition.leader in living) if living else (partition.leader is None)


@settings(max_examples=50)
@given(clusters(), st.lists(steps, max_size=25))
def test_a_log_dirs_free_bytes_follow_what_it_holds(cluster: Cluster, events: list[Step]) -> None:
    before = {place: used(cluster)[place] - size for place, size in held(cluster).items()}
    for event in events:
        cluster = taken(cluster, event)
        assert {place: used(cluster)[place] - size for place, size in held(cluster).items()} == before


@settings(max_examples=50)
@given(clusters(), st.tuples(replica_lists, replica_lists, replica_lists))
def test_a_reassignment_to_living_brokers_ends_in_its_target(
    cluster: Cluster, targets: Sequence[Sequence[int]]
) -> None:
    wanted = dict(zip(KEYS, targets, strict=True))
    ended = advance(reassign(cluster, wanted).cluster, DAY)
    for key, partition in ended.partitions():
        assert partition.replicas == wanted[key]
        assert set(partition.isr) == set(wanted[key])
        assert not partition.is_reassigning
        was = partition_of(cluster, key)
        assert partition.leader == (was.leader if was.leader in wanted[key] else wanted[key][0])
        assert set(partition.sizes) == set(was.sizes)


@settings(max_examples=50)
@given(clusters(), replica_lists, st.lists(st.integers(1, 5_000), max_size=6))
def test_no_move_has_fewer_replicas_than_the_fewer_of_now_and_wanted(
    cluster: Cluster, target: Sequence[int], waits: list[int]
) -> None:
    was = partition_of(cluster)
    floor = min(len(was.replicas), len(target))
    cluster = reassign(cluster, {KEYS[0]: target}).cluster
    for wait in (0, *waits):
        cluster = advance(cluster, wait)
        partition = partition_of(cluster)
        assert len(partition.isr) >= floor
        assert len(partition.target_replicas) >= floor


@settings(max_examples=50)
@given(clusters(), replica_lists, st.integers(0, 5_000))
def test_cancel_restores_the_set_of_replicas_but_not_always_their_order(
    cluster: Cluster, target: Sequence[int], wait: int
) -> None:
    was = partition_of(cluster)
    moving = advance(reassign(cluster, {KEYS[0]: target}).cluster, wait)
    partition = partition_of(moving)
    if not partition.is_reassigning:
        return
    cancelled = partition_of(reassign(moving, {KEYS[0]: None}).cluster)
    assert set(cancelled.replicas) == set(was.replicas)
    assert not cancelled.is_reassigning
    kept = [replica for replica in target if replica in was.replicas]
    assert list(cancelled.replicas) == kept + sorted(set(was.replicas) - set(kept))


@settings(max_examples=50)
@given(clusters(fenced=(6,)), replica_lists.filter(lambda replicas: 6 in replicas))
def test_a_reassignment_to_a_dead_broker_is_accepted_and_never_ends(cluster: Cluster, target: Sequence[int]) -> None:
    was = partition_of(cluster)
    if 6 in was.replicas:
        return
    outcome = reassign(cluster, {KEYS[0]: target})
    assert outcome.answers[KEYS[0]] is None
    assert 6 in partition_of(advance(outcome.cluster, DAY)).adding_replicas


@settings(max_examples=50)
@given(
    clusters(),
    st.tuples(replica_lists, replica_lists, replica_lists),
    st.dictionaries(st.sampled_from(BROKERS), st.integers(0, 10**8)),
    st.sampled_from(("*", "0:1,0:2,1:3,1:4", "")),
)
def test_no_pipe_carries_more_than_it_may_and_every_copy_is_held_by_a_full_one(
    cluster: Cluster, targets: Sequence[Sequence[int]], limits: dict[int, int], listed: str
) -> None:
    cluster = with_throttles(reassign(cluster, dict(zip(KEYS, targets, strict=True))).cluster, limits, listed)
    running = copies(cluster)
    speeds = rates(cluster, running, network_bytes_per_second=10**8)
    for broker_id in BROKERS:
        out = sum(speed for copy, speed in zip(running, speeds, strict=True) if copy.leader == broker_id)
        into = sum(speed for copy, speed in zip(running, speeds, strict=True) if copy.follower == broker_id)
        assert max(out, into) <= 10**8
        if listed == "*" and broker_id in limits:
            assert max(out, into) <= limits[broker_id]
    if not limits and running:
        fair = 10**8 // len(running)
        assert all(speed >= fair for speed in speeds)


@settings(max_examples=25)
@given(clusters(), st.tuples(replica_lists, replica_lists, replica_lists))
def test_the_next_join_comes_when_it_was_said_to_come(cluster: Cluster, targets: Sequence[Sequence[int]]) -> None:
    cluster = reassign(cluster, dict(zip(KEYS, targets, strict=True))).cluster
    running = copies(cluster)
    speeds = zip(running, rates(cluster, running), strict=True)
    wait = min((-(-(copy.remaining or 0) * 1000 // speed) for copy, speed in speeds if speed), default=0)
    if not wait:
        return
    assert len(copies(advance(cluster, wait - 1))) == len(copies(cluster))
    assert len(copies(advance(cluster, wait))) < len(copies(cluster))


def with_throttles(cluster: Cluster, limits: dict[int, int], listed: str) -> Cluster:
    lists = {LEADER_THROTTLED_REPLICAS: listed, FOLLOWER_THROTTLED_REPLICAS: listed}
    topics = {name: replace(topic, configs=lists) for name, topic in cluster.topics.items()}
    brokers = {
        broker.id: replace(broker, configs=_rates(limits[broker.id]) if broker.id in limits else {})
        for broker in cluster.brokers.values()
    }
    return replace(cluster, topics=topics, brokers=brokers)


def _rates(limit: int) -> dict[str, str]:
    return {LEADER_THROTTLED_RATE: str(limit), FOLLOWER_THROTTLED_RATE: str(limit)}
