"""Moves inside brokers in stages: no larger than asked for, as long as the busiest broker takes, safe in every part."""

from dataclasses import replace

import pytest
from staging.cases import desired, rules_of

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import MovePolicy, Spread
from reconciler.model.move import DirMove, Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, numbered
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.dir_stages import dir_stages, dirs_back, makes_room, with_dirs_back
from reconciler.staging.disk import DiskUse
from reconciler.staging.problems import overfull_disks
from reconciler.staging.stages import stage_moves
from reconciler.staging.step import Step, Steps, Urgency

MIB = 1 << 20


def move(number: int, size: int, start: str = "/d1", end: str = "/d2", broker: int = 1) -> DirMove:
    return DirMove(TopicPartition("t", number), broker, start, end, size, Reason.LOG_DIRS)


def disk(*steps: Step, **used: int) -> DiskUse:
    dirs = tuple(LogDir(f"/{path}", 100, 100 - held) for path, held in used.items())
    observed = Cluster("id", brokers={1: Broker(1, log_dirs=dirs), 2: Broker(2, log_dirs=dirs)})
    return DiskUse(observed, Steps.of([[step] for step in steps]), None)


def test_what_does_not_fit_beside_the_others_waits_until_room_is_free() -> None:
    # /d2 takes 40 of /d1 once its own 50 have gone to /d3.
    sets = disk(d1=60, d2=80, d3=0).moved_inside([move(0, 40), move(1, 50, "/d2", "/d3")])
    assert [[one.topic_partition.partition for one in some] for some in sets] == [[1], [0]]


def test_what_moves_inside_a_broker_lies_twice_on_it_for_a_while() -> None:
    used = disk(d1=60, d2=0)
    used.moved_inside([move(0, 40)])
    assert (used.held, used.peak) == ({1: 60, 2: 60}, {1: 100, 2: 60})


def asked(size: int, path: str | None = "/d1") -> Step:
    """Return a step that copies so much to broker 1, to a log dir that the plan names."""
    log_dirs = {} if path is None else {1: path}
    whole = Move(TopicPartition("u", 0), (2,), (1,), size, Reason.DRAINING, log_dirs=log_dirs)
    return Step(whole, (1,), (2,), size, source=2, urgency=Urgency.DRAINING, elected=None, is_handover=False)


@pytest.mark.parametrize(("coming", "size", "found"), [(40, 40, set()), (50, 40, {1}), (150, 40, {1}), (150, 0, set())])
def test_moves_go_before_what_comes_where_they_make_room_for_it(coming: int, size: int, found: set[int]) -> None:
    assert makes_room([move(0, size)], [asked(coming)], disk(d1=60, d2=0)) == found
    assert makes_room([move(0, size)], [asked(coming, "/d2"), asked(coming, None)], disk(d1=60, d2=0)) == set()


def test_a_copy_counts_in_the_log_dir_that_is_named() -> None:
    used, step = disk(d1=60, d2=0), asked(30)
    used.begin(step)
    assert {one.path: one.peak for one in used.dirs[1].dirs} == {"/d1": 90, "/d2": 0}
    full = asked(50)
    assert disk(full, asked(5, None), d1=60, d2=0).shortfall(full) == 10


def test_only_moves_that_make_room_go_first() -> None:
    dirs = (LogDir("/d1", 100, 40), LogDir("/d2", 100, 100))
    parts = [Partition(n, n + 1, (n + 1,), (n + 1,), sizes=(40,), log_dirs=("/d1",)) for n in range(3)]
    topics = {"t": Topic("t", tuple(parts)), "u": Topic("u", (replace(parts[1], partition=0),))}
    observed = Cluster("id", {broker: Broker(broker, log_dirs=dirs) for broker in (1, 2, 3)}, topics)
    rules, inside = rules_of(observed, topics, Spread.IGNORE), [move(0, 40), move(2, 40, broker=3)]
    staging = stage_moves([asked(50).move], (), observed=observed, desired=desired(), rules=rules, dir_moves=inside)
    assert [type(stage) for stage in staging.stages] == [LogDirsStage, ReassignStage, LogDirsStage]
    assert [one.broker for stage in staging.stages if isinstance(stage, LogDirsStage) for one in stage.moves] == [1, 3]


def test_a_disk_without_room_that_takes_nothing_in_is_not_crowded() -> None:
    steps = Steps.of([[asked(0, None)]])
    observed = Cluster("id", brokers={1: Broker(1, log_dirs=(LogDir("/d1", 0, 0),))})
    used = DiskUse(observed, steps, None)
    used.take_and_free(steps)
    assert (used.held, overfull_disks(used, desired(), observed, (), None)) == ({1: 0}, [])


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


def undone_plan(*stages: Stage) -> Plan:
    return Plan("c", "id", Source(""), stages=numbered(stages))


def test_what_lies_where_a_plan_put_it_goes_back_and_all_else_is_told() -> None:
    dirs = (LogDir("/d1", 200, 100), LogDir("/d2", 200, 0))
    places = ["/d2", "/d3", "/d1", "", "/d2", "/d2", "/d2"]
    partitions = [
        Partition(number, 1, (1,), (1,), sizes=(30,) if number != 6 else (), log_dirs=(place,) if place else ())
        for number, place in enumerate(places)
    ]
    partitions[5] = replace(partitions[5], sizes=(80,))
    brokers = {1: Broker(1, log_dirs=dirs), 2: Broker(2, is_fenced=True, log_dirs=dirs)}
    dead = Partition(7, 2, (2,), (2,), sizes=(1,), log_dirs=("/d2",))
    observed = Cluster("id", brokers, {"t": Topic("t", (*partitions, dead))})
    gone = replace(move(8, 1), topic_partition=TopicPartition("u", 0))
    moved = [*(move(number, 1) for number in range(7)), move(7, 1, broker=2), gone]
    moves, problems = dirs_back(undone_plan(*dir_stages([moved], MovePolicy())), observed)
    assert [(one.topic_partition.partition, one.from_dir, one.to_dir) for one in moves] == [
        (6, "/d2", "/d1"),
        (5, "/d2", "/d1"),
    ]
    assert [(one.bytes, one.is_size_known) for one in moves] == [(0, False), (80, True)]
    full = "that takes 110 B there, and 100 B are left. See to that"
    words = [
        "broker 2 is not alive. ",
        full,
        "broker 1 does not tell of it. ",
        "is in /d3, where this plan never",
        full,
    ]
    assert [one.code for one in problems] == ["KR856", "KR856", "KR856", "KR854", "KR856"]
    assert [each in one.message for one, each in zip(problems, words, strict=True)] == [True] * len(words), problems


def test_what_made_room_goes_back_last_and_the_rest_first() -> None:
    policy = MovePolicy()
    (early,), (late,) = dir_stages([[move(0, 9)]], policy), dir_stages([[move(1, 9)]], policy)
    between = ReassignStage(1, (), 0, 0)
    back = [move(number, 9, "/d2", "/d1") for number in (0, 1)]
    first, middle, last = with_dirs_back(undone_plan(early, between, late), [between], back, policy)
    assert isinstance(first, LogDirsStage)
    assert isinstance(last, LogDirsStage)
    assert (first.moves, middle, last.moves) == ((back[1],), replace(between, number=2), (back[0],))
