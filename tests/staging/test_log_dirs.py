from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import admin_of
from staging.cases import desired, key, move, rules_of

from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.change import CreatePartitions, TopicChange
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import Limits, MovePolicy
from reconciler.model.move import Move, Reason
from reconciler.model.plan import LogDirUse, Proof, Source
from reconciler.model.problem import Location, Severity
from reconciler.model.stage import ReassignStage
from reconciler.staging import safe_order
from reconciler.staging.assembly import assemble
from reconciler.staging.log_dirs import BrokerDirs, Dir
from reconciler.staging.stages import Staging, stage_moves

POLICY = MovePolicy(throttle_bytes_per_second=1)
HALF = Limits(disk_use=Fraction(1, 2), at={"diskUse": Location("cluster.yaml", 9)})
Dirs = Mapping[str, tuple[int, int | None]]


def observed(*replicas: tuple[int, str | None, int], dirs: Dirs, configs: Mapping[str, str] | None = None) -> Cluster:
    """Return brokers 1 and 2; each `(broker, path, size)` is a partition of topic t with that one replica.

    `dirs`: size and used bytes of each log dir of broker 2, None for one that is offline.
    """
    log_dirs = tuple(
        LogDir(path, None, None) if used is None else LogDir(path, total, total - used)
        for path, (total, used) in dirs.items()
    )
    partitions = tuple(
        Partition(number, broker, (broker,), (broker,), sizes=(size,), log_dirs=(path,))
        for number, (broker, path, size) in enumerate(replicas)
    )
    brokers = {
        1: Broker(1, log_dirs=(LogDir("/d", 10**6, 10**6),)),
        2: Broker(2, log_dirs=log_dirs, configs=configs or {}),
    }
    return Cluster("test", brokers=brokers, topics={"t": Topic("t", partitions)})


def staged(
    cluster: Cluster,
    *moves: Move,
    limits: Limits = HALF,
    policy: MovePolicy = POLICY,
    changes: Sequence[TopicChange] = (),
) -> Staging:
    return stage_moves(
        moves, changes, observed=cluster, desired=desired(None, policy, limits), rules=rules_of(cluster, ["t"], None)
    )


def codes(found: Staging) -> list[str]:
    return [problem.code for problem in (*found.violations, *found.warnings)]


def order(found: Staging) -> list[list[int]]:
    """Return the partitions of each stage."""
    stages = (stage for stage in found.stages if isinstance(stage, ReassignStage))
    return [[one.topic_partition.partition for one in stage.moves] for stage in stages]


def test_a_new_replica_is_predicted_in_the_dir_with_the_fewest_logs_however_full() -> None:
    cluster = observed((2, "/a", 1), (2, "/a", 1), (2, "/b", 40), (1, "/d", 20), dirs={"/a": (100, 2), "/b": (100, 40)})
    found = staged(cluster, move("t-3: 1 -> 2", size=20))
    assert found.predicted_log_dirs == {key("t-3"): {2: "/b"}}
    assert found.log_dirs == {2: (LogDirUse("/a", 2, 100), LogDirUse("/b", 60, 100))}
    assert [(one.code, one.severity, one.at) for one in found.violations] == [
        ("KR413", Severity.VIOLATION, HALF.at["diskUse"])
    ]
    assert "broker 2 would hold 60 B of 100 B in /b at the worst moment" in found.violations[0].message
    assert "(10 bytes) more than limits.diskUse 50% allows" in found.violations[0].message


def test_a_move_waits_until_the_space_in_its_log_dir_is_free() -> None:
    cluster = observed((2, "/a", 1), (2, "/a", 1), (2, "/b", 40), (1, "/d", 20), dirs={"/a": (100, 2), "/b": (100, 40)})
    found = staged(cluster, move("t-3: 1 -> 2", size=20), move("t-2: 2 -> 1", size=40))
    assert (order(found), codes(found)) == ([[2], [3]], [])
    assert found.log_dirs[2][1] == LogDirUse("/b", 40, 100)


def test_of_replicas_that_come_together_the_largest_is_reckoned_to_each_dir() -> None:
    cluster = observed((1, "/d", 30), (1, "/d", 10), dirs={"/a": (100, 0), "/b": (100, 0)})
    found = staged(cluster, move("t-0: 1 -> 2", size=30), move("t-1: 1 -> 2", size=10))
    assert order(found) == [[0, 1]]
    assert found.log_dirs == {2: (LogDirUse("/a", 30, 100), LogDirUse("/b", 30, 100))}
    assert found.predicted_log_dirs == {key("t-0"): {2: "/a"}, key("t-1"): {2: "/b"}}


def test_replicas_of_which_the_wrong_one_could_overfill_a_dir_do_not_come_together() -> None:
    cluster = observed((1, "/d", 30), (1, "/d", 10), (2, "/b", 30), dirs={"/a": (100, 0), "/b": (100, 30)})
    apart = staged(cluster, move("t-0: 1 -> 2", size=30), move("t-1: 1 -> 2", size=10))
    assert (order(apart), codes(apart)) == ([[0], [1]], [])
    assert apart.predicted_log_dirs == {key("t-0"): {2: "/a"}, key("t-1"): {2: "/a"}}


def test_a_large_replica_does_not_come_together_with_a_small_one_of_a_more_urgent_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = observed((1, "/d", 30), (1, "/d", 10), (2, "/b", 30), dirs={"/a": (100, 0), "/b": (100, 30)})
    moves = [move("t-0: 1 -> 2", size=30), move("t-1: 1 -> 2", Reason.RACKS, size=10)]
    found = staged(cluster, *moves)
    assert (order(found), codes(found)) == ([[0], [1]], [])
    monkeypatch.setattr(safe_order, "MOST_STEPS", 0)
    by_urgency = staged(cluster, *moves)
    assert order(by_urgency) == [[1], [0]]
    assert by_urgency.log_dirs[2][1] == LogDirUse("/b", 60, 100)
    assert codes(by_urgency) == ["KR413"]


def test_a_dir_that_only_another_order_of_arrival_would_overfill_is_a_warning() -> None:
    sizes = [30, 5, 30, 5]
    cluster = observed(*((1, "/d", size) for size in sizes), dirs={"/a": (200, 0), "/b": (100, 0)})
    reasons = [Reason.RACKS, Reason.RACKS, Reason.BALANCE, Reason.BALANCE]
    moves = [move(f"t-{n}: 1 -> 2", reasons[n], size=size) for n, size in enumerate(sizes)]
    found = staged(cluster, *moves, policy=MovePolicy(throttle_bytes_per_second=1, per_stage=2))
    assert (order(found), codes(found)) == ([[0, 1], [2, 3]], ["KR825"])
    assert found.log_dirs == {2: (LogDirUse("/a", 60, 200), LogDirUse("/b", 35, 100))}
    assert "at most 35 B of 100 B in /b as predicted, but 60 B, more than" in found.warnings[0].message
    roomy = observed(*((1, "/d", size) for size in sizes), dirs={"/a": (200, 0), "/b": (120, 0)})
    assert codes(staged(roomy, *moves, policy=MovePolicy(throttle_bytes_per_second=1, per_stage=2))) == []


def test_partitions_made_before_the_moves_count_as_logs() -> None:
    cluster = observed((2, "/a", 1), (1, "/d", 20), dirs={"/a": (100, 1), "/b": (100, 0)})
    grown = CreatePartitions("t", 2, 3, {2: (2, 1)})
    assert staged(cluster, move("t-1: 1 -> 2", size=20)).predicted_log_dirs == {key("t-1"): {2: "/b"}}
    assert staged(cluster, move("t-1: 1 -> 2", size=20), changes=[grown]).predicted_log_dirs == {key("t-1"): {2: "/a"}}


def test_an_offline_dir_and_a_cordoned_one_get_nothing() -> None:
    offline = observed((2, "/a", 1), (1, "/d", 20), dirs={"/a": (100, 1), "/b": (0, None)})
    found = staged(offline, move("t-1: 1 -> 2", size=20))
    assert (found.predicted_log_dirs, codes(found)) == ({key("t-1"): {2: "/a"}}, [])
    assert found.disk_peak[2] == 21
    cordoned = {"cordoned.log.dirs": "/b"}
    cluster = observed((2, "/a", 1), (1, "/d", 20), dirs={"/a": (100, 1), "/b": (100, 0)}, configs=cordoned)
    assert staged(cluster, move("t-1: 1 -> 2", size=20)).predicted_log_dirs == {key("t-1"): {2: "/a"}}
    everywhere = replace(cluster.brokers[2], configs={"cordoned.log.dirs": "*"})
    cluster = replace(cluster, brokers={**cluster.brokers, 2: everywhere})
    assert staged(cluster, move("t-1: 1 -> 2", size=20)).predicted_log_dirs == {key("t-1"): {2: "/b"}}


def test_a_replica_in_an_offline_dir_leaves_none_of_the_others() -> None:
    cluster = observed((2, "/b", 10), (2, "/a", 5), dirs={"/a": (100, 5), "/b": (0, None), "/c": (100, 0)})
    found = staged(cluster, move("t-0: 2 -> 1", size=10))
    assert found.log_dirs == {2: (LogDirUse("/a", 5, 100), LogDirUse("/c", 0, 100))}


def test_unknown_log_dirs_are_told_and_the_broker_is_checked_as_a_whole() -> None:
    cluster = observed((2, None, 40), (1, "/d", 20), dirs={"/a": (100, 40), "/b": (100, 0)})
    found = staged(cluster, move("t-1: 1 -> 2", size=20))
    assert (found.log_dirs, codes(found)) == ({}, ["KR826"])
    assert found.warnings[0].at == HALF.at["diskUse"]
    full = staged(cluster, move("t-1: 1 -> 2", size=61))
    assert codes(full) == ["KR413", "KR826"]
    assert "broker 2 would hold 101 B of 200 B at the worst moment" in full.violations[0].message


def test_a_dir_that_ends_too_full_is_packed_all_the_same() -> None:
    replicas = [(1, "/d", 10)] * 9
    cluster = observed(*replicas, dirs={"/a": (20, 0), "/b": (20, 0)})
    found = staged(cluster, *(move(f"t-{n}: 1 -> 2", size=10) for n in range(9)))
    assert len(found.stages) <= 3
    assert [problem.message.split(" in ")[1][:2] for problem in found.violations] == ["/a", "/b"]


def test_dirs_that_cannot_be_helped_do_not_slow_the_run_down() -> None:
    replicas = [(1, "/d", 10)] * 12 + [(2, "/a", 10), (2, "/b", 10)]
    moves = [move(f"t-{n}: 1 -> 2", size=10) for n in range(12)]
    leaving = [move("t-12: 2 -> 1", size=10), move("t-13: 2 -> 1", size=10)]
    cluster = observed(*replicas, dirs={"/a": (40, 10), "/b": (40, 10)})
    found = staged(cluster, *moves, *leaving)
    assert [one.code for one in found.violations] == ["KR413", "KR413"]
    assert len(found.stages) <= 5


def test_a_replica_without_data_takes_a_place_and_no_room() -> None:
    dirs = BrokerDirs([Dir("/a", 100, allowed=50, held=40, logs=0), Dir("/b", 100, allowed=50, held=0, logs=1)])
    dirs.create(key("t-0"))
    assert [(one.held, one.logs) for one in dirs.dirs] == [(40, 1), (0, 1)]


def test_a_dir_that_nothing_leaves_is_given_up_before_one_that_is_still_to_be_freed() -> None:
    dirs = BrokerDirs([Dir("/a", 100, allowed=50, held=40, logs=0), Dir("/b", 100, allowed=50, held=40, logs=0)])
    dirs.watch(20, [("/a", 30)])
    dirs.give_up(20)
    assert [one.ceiling for one in dirs.dirs] == [50, None]
    dirs.give_up()
    assert [one.ceiling for one in dirs.dirs] == [None, None]


def test_a_dir_that_took_nothing_in_is_predicted_exactly() -> None:
    dirs = BrokerDirs([Dir("/a", 100, allowed=100, held=0, logs=0), Dir("/b", 100, allowed=100, held=40, logs=1)])
    for number in range(2):
        dirs.begin(key(f"t-{number}"), 10)
        dirs.end([])
    assert [one.doubtful for one in dirs.dirs] == [20, 50]


def test_a_disk_over_its_limit_that_takes_in_nothing_before_it_is_below_is_no_violation() -> None:
    cluster = observed((2, "/a", 60), (1, "/d", 20), dirs={"/a": (100, 60)})
    found = staged(cluster, move("t-0: 2 -> 1", size=60), move("t-1: 1 -> 2", size=20))
    assert (order(found), codes(found)) == ([[0], [1]], [])
    assert found.disk_peak[2] == 60


def test_a_simulated_run_ends_where_it_was_predicted() -> None:
    before = small_cluster(*(f"a-{number}: {1 + number % 3},4 size {100 + number}" for number in range(12)))
    moves = [move(f"a-{n}: {1 + n % 3},4 -> {1 + n % 3},{5 + n % 2}", size=100 + n) for n in range(12)]
    wanted = desired(None, MovePolicy(throttle_bytes_per_second=10, per_stage=2))
    staging = stage_moves(moves, (), observed=before, desired=wanted, rules=rules_of(before, ["a"], None))
    plan = assemble(
        staging,
        observed=before,
        desired=wanted,
        source=Source("sha256:0"),
        proof=Proof(),
        balance_before={},
        balance_after={},
    )
    admin = admin_of(before)
    run_plan(plan, admin, MemoryJournal())
    assert sorted(plan.predicted_log_dirs) == sorted(one.topic_partition for one in moves)
    for name, predicted in plan.predicted_log_dirs.items():
        partition = admin.cluster.partition(name)
        assert partition is not None
        lies_in = dict(zip(partition.replicas, partition.log_dirs, strict=True))
        assert {number: lies_in[number] for number in predicted} == predicted


def test_a_replica_without_data_is_predicted_in_the_dir_with_the_fewest_logs() -> None:
    dirs = BrokerDirs([Dir("/a", 100, 100, 0, 2), Dir("/b", 100, 100, 9, 1)])
    dirs.create(key("new-0"))
    assert dirs.predicted == {key("new-0"): "/b"}


def test_what_comes_to_a_dir_and_goes_from_it_counts_there() -> None:
    one, other = Dir("/a", 100, 50, held=10, logs=3), Dir("/b", 100, 50, held=0, logs=4)
    dirs = BrokerDirs([one, other])
    dirs.begin(key("t-0"), 20, "/a")
    dirs.take("/b", 7)
    dirs.give("/a", 10)
    assert (one.held, one.logs, one.peak, one.filled) == (20, 3, 30, 30)
    assert (other.held, other.logs) == (7, 5)


def test_where_a_log_may_leave_first_a_new_replica_may_come_beside_what_is_there() -> None:
    one = Dir("/a", 100, 15, held=10, logs=1)
    dirs = BrokerDirs([one, Dir("/b", 100, 100, held=0, logs=0)])
    dirs.watch(10, [])
    dirs.begin(key("t-0"), 10)
    assert (one.most, dirs.shortfall_without("/a")) == (0, 5)
    dirs.leave("/a")
    assert one.most == 1
