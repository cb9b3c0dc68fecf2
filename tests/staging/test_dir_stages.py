"""Moves inside brokers in stages: no larger than asked for, as long as the busiest broker takes, safe in every part."""

from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster, LogDir
from reconciler.model.desired import MovePolicy
from reconciler.model.move import DirMove, Reason
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.dir_stages import dir_stages
from reconciler.staging.disk import DiskUse
from reconciler.staging.step import Steps

MIB = 1 << 20


def move(number: int, size: int, start: str = "/d1", end: str = "/d2", broker: int = 1) -> DirMove:
    return DirMove(TopicPartition("t", number), broker, start, end, size, Reason.LOG_DIRS)


def disk(**used: int) -> DiskUse:
    dirs = tuple(LogDir(f"/{path}", 100, 100 - held) for path, held in used.items())
    return DiskUse(
        Cluster("id", brokers={1: Broker(1, log_dirs=dirs), 2: Broker(2, log_dirs=dirs)}), Steps.of([]), None
    )


def test_what_does_not_fit_beside_the_others_waits_until_room_is_free() -> None:
    # /d2 takes 40 of /d1 once its own 50 have gone to /d3.
    sets = disk(d1=60, d2=80, d3=0).moved_inside([move(0, 40), move(1, 50, "/d2", "/d3")])
    assert [[one.topic_partition.partition for one in some] for some in sets] == [[1], [0]]


def test_disks_that_can_only_change_places_are_overfilled_by_the_least_and_that_counts() -> None:
    used = disk(d1=60, d2=80)
    sets = used.moved_inside([move(0, 60), move(1, 80, "/d2", "/d1")])
    assert [[one.topic_partition.partition for one in some] for some in sets] == [[0], [1]]
    assert used.excess == 40
    assert {one.path: one.peak for one in used.dirs[1].dirs} == {"/d1": 80, "/d2": 140}


def test_what_drains_goes_first_and_brokers_take_turns() -> None:
    drained = replace(move(3, 1, broker=2), reason=Reason.DRAINING)
    (some,) = disk(d1=20, d2=0).moved_inside([move(0, 5), move(1, 9), move(2, 3, broker=2), drained])
    assert [(one.broker, one.topic_partition.partition) for one in some] == [(1, 1), (2, 3), (1, 0), (2, 2)]


def test_a_stage_holds_no_more_than_asked_for_and_takes_as_long_as_its_busiest_broker() -> None:
    moves = [move(0, 100 * MIB), move(1, 50 * MIB), move(2, 100 * MIB, broker=2)]
    policy = MovePolicy(throttle_bytes_per_second=10 * MIB, per_stage=2)
    stages = [*dir_stages([moves], policy)]
    assert [len(stage.moves) for stage in stages] == [2, 1]
    assert [stage.estimated_seconds for stage in stages] == [5 + 15, 5 + 10]
    (whole,) = dir_stages([moves], replace(policy, per_stage=500))
    assert (whole.estimated_seconds, whole.throttle_bytes_per_second, whole.bytes) == (20, 10 * MIB, 250 * MIB)


def test_many_empty_replicas_take_their_turns_too() -> None:
    (stage,) = dir_stages([[move(number, 0) for number in range(30)]], MovePolicy(per_broker=10))
    assert stage.estimated_seconds == 5 + 2 * 3
