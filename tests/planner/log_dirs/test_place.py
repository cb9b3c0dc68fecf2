"""Moves inside brokers cost the least there is, by an oracle that tries all places; and the next plan is empty."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from helpers.depth import parts
from planner.log_dirs.dir_worlds import after, is_closed, overfull, reached, wanted, world

from reconciler.files.plan_file import plan_text
from reconciler.model.cluster import Broker, Cluster, FutureReplica, LogDir, Partition, Topic
from reconciler.model.desired import (
    Balance,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredLogDir,
    DesiredTopic,
    Limits,
    LogDirState,
    Placement,
    Protection,
    Within,
)
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import DISK_USE, PlacementInfeasible
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.plan import plan_of

GIB = 1 << 30
EVEN = Balance(log_dirs=Within(Fraction(1, 10)))


def plan_or_none(desired: Desired, observed: Cluster) -> Plan | None:
    try:
        return plan_of(desired, observed)
    except PlacementInfeasible as refused:
        if not {one.code for one in refused.problems} <= {"KR351", "KR352", "KR353", "KR354"}:
            raise
        return None


@pytest.mark.long
@parts("seeds", range(0, 300, 8), deep=range(4000))
def test_no_places_cost_less_than_those_of_the_plan(seeds: range) -> None:
    told = {"refused": 0, "moved": 0, "asked": 0, "known": 0, "overfull": 0}
    for seed in seeds:
        desired, observed = world(seed)
        plan = plan_or_none(desired, observed)
        wishes = {broker: wanted(desired, observed, broker) for broker in observed.brokers}
        assert (plan is None) == any(one.is_refused for one in wishes.values()), seed
        if plan is None:
            told["refused"] += 1
            continue
        moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        # Where a disk would be too full all the same, other replicas leave the broker: the oracle does not know of it.
        is_known = all(move.topic_partition.topic == "goes" for move in moves)
        for broker, one in wishes.items():
            if one.costs is not None and is_known:
                # The oracle leaves a log dir too full if nothing is asked of its broker. A plan relieves it.
                costs = reached(desired, observed, broker, plan)
                assert costs == one.costs or costs[1] < one.costs[1], (seed, broker)
        told["moved"] += plan.summary.dir_moves > 0
        told["asked"] += any(move.log_dirs for move in moves)
        told["known"] += is_known
        limit = desired.cluster.limits.disk_use
        told["overfull"] += limit is not None and bool(overfull(plan, observed, limit))
        is_told = any(one.code in {"KR413", "KR816"} for one in (*plan.violations, *plan.warnings))
        assert is_told or not overfull(plan, observed, Fraction(1) if limit is None else limit), seed
        if plan.summary.dir_bytes:
            assert plan.least_dir_bytes == plan.summary.dir_bytes, seed
    assert told.pop("overfull") > 0
    assert min(told.values()) > len(seeds) // 20, told


@pytest.mark.long
@parts("seeds", range(0, 300, 15), deep=range(2000))
def test_after_the_plan_log_dirs_that_drain_are_empty_and_the_next_plan_is_too(seeds: range) -> None:
    for seed in seeds:
        desired, observed = world(seed)
        plan = plan_or_none(desired, observed)
        # An assignment that is written holds, even onto a broker whose log dirs are all closed: then Kafka chooses.
        if plan is None or any(is_closed(desired, observed, broker) for broker in observed.brokers):
            continue
        reached_cluster = after(observed, plan)
        for broker in desired.cluster.brokers.values():
            draining = {one.path for one in broker.log_dirs if one.state is LogDirState.DRAINING}
            lying = {
                partition.log_dirs[0]
                for topic in reached_cluster.topics.values()
                for partition in topic.partitions
                if partition.replicas == (broker.id,)
            }
            assert not draining & lying, (seed, broker.id)
        following = plan_of(desired, reached_cluster)
        # What drains into a log dir may fill it, and nothing leaves a cordoned one inside its broker. A log dir that is
        # named as too full may be relieved by the next plan.
        assert following.is_empty or DISK_USE in {one.code for one in plan.violations}, seed
        assert plan_of(desired, after(reached_cluster, following)).is_empty, seed


def cluster(sizes: dict[str, list[int]], totals: dict[str, int], *, broker: int = 1) -> Cluster:
    """Return one broker with partitions of these sizes, by log dir."""
    flat = [(path, size) for path, several in sizes.items() for size in several]
    partitions = tuple(
        Partition(number, broker, (broker,), (broker,), sizes=(size,), log_dirs=(path,))
        for number, (path, size) in enumerate(flat)
    )
    dirs = tuple(LogDir(path, total, total - sum(sizes.get(path, ()))) for path, total in totals.items())
    return Cluster(
        "id", brokers={broker: Broker(broker, log_dirs=dirs)}, topics={"t": Topic("t", partitions=partitions)}
    )


def declared(**more: object) -> Desired:
    return Desired(DesiredCluster("c", **more), {"t": DesiredTopic("t")})  # type: ignore[arg-type]


def draining(path: str = "/d1", broker: int = 1) -> dict[int, DesiredBroker]:
    return {broker: DesiredBroker(broker, log_dirs=(DesiredLogDir(path, LogDirState.DRAINING),))}


def closed(*states: str) -> dict[int, DesiredBroker]:
    dirs = (DesiredLogDir(f"/d{number}", LogDirState(state)) for number, state in enumerate(states, start=1))
    return {1: DesiredBroker(1, log_dirs=tuple(dirs))}


def dir_moves(plan: Plan) -> list[tuple[int, int, str, str]]:
    return [
        (stage.number, move.topic_partition.partition, move.from_dir, move.to_dir)
        for stage in plan.stages
        if isinstance(stage, LogDirsStage)
        for move in stage.moves
    ]


def test_of_a_full_and_an_empty_disk_both_end_half_full_and_nothing_leaves_the_broker() -> None:
    observed = cluster({"/d1": [9 * GIB] * 10}, {"/d1": 100 * GIB, "/d2": 100 * GIB})
    plan = plan_of(declared(balance=EVEN), observed)
    assert plan.summary.bytes == 0
    assert plan.summary.dir_bytes == plan.least_dir_bytes == 45 * GIB
    assert plan_of(declared(balance=EVEN), after(observed, plan)).is_empty


def test_a_log_dir_twice_as_large_takes_twice_as_much() -> None:
    observed = cluster({"/d1": [10] * 9}, {"/d1": 100, "/d2": 200})
    assert len(dir_moves(plan_of(declared(balance=EVEN), observed))) == 6


def test_a_plan_without_the_words_is_what_it_was() -> None:
    observed = cluster({"/d1": [9 * GIB] * 10}, {"/d1": 100 * GIB, "/d2": 100 * GIB})
    plan = plan_of(declared(), observed)
    assert plan.is_empty
    assert "logDirMoves" not in plan_text(plan)
    assert plan.least_dir_bytes is None


@pytest.mark.long
def test_the_same_states_give_the_same_bytes() -> None:
    for seed in range(8):
        desired, observed = world(seed)
        first, second = plan_or_none(desired, observed), plan_or_none(*world(seed))
        assert (first and plan_text(first)) == (second and plan_text(second))


def test_a_draining_log_dir_gives_all_to_the_others_and_says_why() -> None:
    observed = cluster({"/d1": [10, 0], "/d2": [5]}, {"/d1": 100, "/d2": 100})
    plan = plan_of(declared(brokers=draining()), observed)
    assert [(number, start, end) for _, number, start, end in dir_moves(plan)] == [(0, "/d1", "/d2"), (1, "/d1", "/d2")]
    assert {move.reason for stage in plan.stages if isinstance(stage, LogDirsStage) for move in stage.moves} == {
        Reason.DRAINING
    }


def test_replicas_that_a_topic_protects_do_not_move_for_a_balance_and_are_named_where_they_must() -> None:
    observed = cluster({"/d1": [10] * 4}, {"/d1": 100, "/d2": 100})
    kept = {"t": DesiredTopic("t", protect=frozenset({Protection.MOVE}))}
    plan = plan_of(replace(declared(balance=EVEN), topics=kept), observed)
    assert plan.is_empty
    assert [one.code for one in plan.warnings] == ["KR836"]
    with pytest.raises(PlacementInfeasible, match="protect names move, but log dir /d1 of broker 1 is draining"):
        plan_of(replace(declared(brokers=draining()), topics=kept), observed)


@pytest.mark.parametrize(
    ("brokers", "sizes", "code", "words"),
    [
        (draining("/d3"), [1], "KR350", "broker 1 has no log dir /d3; did you mean /d"),
        (closed("draining", "draining"), [1], "KR351", "all log dirs of broker 1 are declared draining"),
        (closed("draining", "cordoned"), [1], "KR354", "log dir /d1 of broker 1 cannot be emptied: every other log"),
        (draining(), [60, 60], "KR352", "120 B have to go, and the broker's other log dirs have 100 B free, 20 B less"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    brokers: dict[int, DesiredBroker], sizes: list[int], code: str, words: str
) -> None:
    observed = cluster({"/d1": sizes}, {"/d1": 200, "/d2": 100})
    with pytest.raises(PlacementInfeasible) as refused:
        plan_of(declared(brokers=brokers), observed)
    assert [one.code for one in refused.value.problems] == [code]
    assert words in refused.value.problems[0].message


def test_a_disk_that_must_be_overfilled_is_a_violation_and_not_a_refusal() -> None:
    observed = cluster({"/d1": [60, 30]}, {"/d1": 100, "/d2": 100})
    plan = plan_of(declared(brokers=draining(), limits=Limits(disk_use=Fraction(8, 10))), observed)
    assert [one.code for one in plan.violations] == ["KR413"]


def test_where_nobody_knows_what_lies_where_nothing_moves_and_that_is_told() -> None:
    observed = cluster({"/d1": [10] * 4}, {"/d1": 100, "/d2": 100})
    (topic,) = observed.topics.values()
    untold = replace(topic, partitions=tuple(replace(one, log_dirs=()) for one in topic.partitions))
    plan = plan_of(declared(balance=EVEN), replace(observed, topics={"t": untold}))
    assert plan.is_empty
    assert [one.code for one in plan.warnings] == ["KR837"]


def two_brokers(second: dict[str, list[int]], moving: int, totals: dict[str, int]) -> tuple[Desired, Cluster]:
    """Return broker 1 with a replica of so many bytes, which the files place on broker 2."""
    one, two = cluster({"/d1": [moving]}, {"/d1": 1000}), cluster(second, totals, broker=2)
    topics = {"a": replace(one.topics["t"], name="a"), "t": two.topics["t"]}
    observed = Cluster("id", brokers={**one.brokers, **two.brokers}, topics=topics)
    goes = DesiredTopic("a", placement=Placement(assignment=((2,),)))
    return replace(declared(), topics={"a": goes, "t": DesiredTopic("t")}), observed


def test_an_arriving_replica_is_asked_where_kafka_would_overfill_a_disk_and_only_there() -> None:
    # Kafka takes /d1, which has fewer logs.
    desired, observed = two_brokers({"/d1": [70], "/d2": [5, 5]}, 20, {"/d1": 100, "/d2": 100})
    without = plan_of(desired, observed)
    assert [move.log_dirs for stage in without.stages if isinstance(stage, ReassignStage) for move in stage.moves] == [
        {}
    ]
    limited = replace(desired, cluster=replace(desired.cluster, limits=Limits(disk_use=Fraction(8, 10))))
    plan = plan_of(limited, observed)
    assert [move.log_dirs for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves] == [
        {2: "/d2"}
    ]
    assert plan.violations == ()
    assert plan.predicted_log_dirs == {}


def test_a_disk_is_emptied_first_where_what_arrives_needs_the_room() -> None:
    desired, observed = two_brokers({"/d1": [40], "/d2": [40]}, 75, {"/d1": 100, "/d2": 100})
    cluster_ = replace(desired.cluster, balance=EVEN, limits=Limits(disk_use=Fraction(8, 10)))
    plan = plan_of(replace(desired, cluster=cluster_), observed)
    assert plan.violations == ()
    assert overfull(plan, observed, Fraction(8, 10)) == set()
    assert [type(stage) for stage in plan.stages] == [LogDirsStage, ReassignStage]


@pytest.mark.long
def test_the_disks_of_60_brokers_come_within_their_bands_and_close_to_the_bound() -> None:
    desired, observed = fleet(60, 120)
    plan = plan_of(desired, observed)
    assert plan.summary.bytes == 0
    assert plan.least_dir_bytes is not None
    assert plan.least_dir_bytes <= plan.summary.dir_bytes <= plan.least_dir_bytes * Fraction(101, 100)
    assert [one.code for one in plan.warnings if one.code == "KR836"] == []


def fleet(brokers: int, replicas: int) -> tuple[Desired, Cluster]:
    """Return brokers with four disks each, of which the first has most."""
    random = Random(7)
    topics, nodes = {}, {}
    for id_ in range(brokers):
        sizes = [int(random.lognormvariate(20, 0.8)) for _ in range(replicas)]
        paths = [f"/d{min(4, 1 + int(random.expovariate(1.0)))}" for _ in sizes]
        total = sum(sizes) // 2
        used = {f"/d{number}": 0 for number in range(1, 5)}
        for path, size in zip(paths, sizes, strict=True):
            used[path] += size
        nodes[id_] = Broker(id_, log_dirs=tuple(LogDir(path, total, total - held) for path, held in used.items()))
        topics[f"t{id_:03}"] = Topic(
            f"t{id_:03}",
            partitions=tuple(
                Partition(number, id_, (id_,), (id_,), sizes=(size,), log_dirs=(path,))
                for number, (path, size) in enumerate(zip(paths, sizes, strict=True))
            ),
        )
    desired = Desired(DesiredCluster("c", balance=EVEN), {name: DesiredTopic(name) for name in topics})
    return desired, Cluster("id", brokers=nodes, topics=topics)


def test_a_copy_that_is_under_way_goes_on_and_is_not_planned_anew() -> None:
    observed = cluster({"/d1": [30, 10], "/d2": [5]}, {"/d1": 100, "/d2": 100, "/d3": 100})
    (broker,) = observed.brokers.values()
    future = FutureReplica(TopicPartition("t", 0), "/d3", 12)
    dirs = tuple(replace(one, usable_bytes=88) if one.path == "/d3" else one for one in broker.log_dirs)
    copying = replace(observed, brokers={1: replace(broker, log_dirs=dirs, future_replicas=(future,))})
    plan = plan_of(declared(brokers=draining(), limits=Limits(disk_use=Fraction(1, 2))), copying)
    assert sorted(dir_moves(plan)) == [(1, 0, "/d1", "/d3"), (1, 1, "/d1", "/d2")]
    assert plan.violations == ()
    # A balance takes it for what it will be: 30 bytes in /d3, and nothing else has to move.
    even = Balance(log_dirs=Within(Fraction(1, 1)))
    assert plan_of(declared(balance=even), copying).is_empty
