"""Replicas that move between the disks of one real broker, under traffic, while runs are killed (KIP-113)."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaException
from helpers.brokers.checker import Checker
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.delivery import Delivery
from helpers.brokers.run import MB, SMOOTH
from helpers.waiting import HANG
from live.faults import Tally
from live.folder import Assignment, LiveFolder, led_by_the_first
from live.other_hands import bury

from reconciler.admin.client import connect
from reconciler.files.plan_file import with_id, write_plan
from reconciler.model.cluster import Cluster
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import LogDirsStage
from reconciler.model.topic_partition import TopicPartition

pytestmark = pytest.mark.brokers

INSIDE = "dirs-inside"
EMPTIED = 2
RATE = 200_000
SLOW = RATE // 10
"""No replica of 1 MB that is copied so slowly is there within half a minute."""
SIZE = MB
LISTS: Assignment = {number: ((1, 2, 3), (2, 3, 1), (3, 1, 2))[number % 3] for number in range(6)}


@pytest.fixture(scope="module")
def three(kafka_version: str) -> Iterator[KafkaCluster]:
    """Three brokers with two log dirs each."""
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), settings=SMOOTH) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, three: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", three)
    live.create({INSIDE: LISTS}, size=SIZE, config="min.insync.replicas: 2")
    yield live
    live.heal(INSIDE)


def emptying(folder: LiveFolder, broker: int, name: str, rate: int = RATE) -> tuple[str, tuple[DirMove, ...]]:
    """Write a plan that takes the topic's replicas out of the broker's first log dir; return its file and moves."""
    admin = connect(folder.kafka.properties)
    try:
        seen = admin.observe()
    finally:
        admin.close()
    first, second = (one.path for one in seen.brokers[broker].log_dirs)
    moves = tuple(
        DirMove(key, broker, first, second, size, Reason.DRAINING)
        for key in (TopicPartition(INSIDE, number) for number in LISTS)
        if (size := held_in(seen, key, broker, first)) is not None
    )
    made = Plan(
        "live",
        seen.cluster_id,
        Source("sha256:00"),
        stages=(LogDirsStage(1, moves, rate, 60),),
        topic_ids={INSIDE: str(seen.topics[INSIDE].topic_id)},
        per_broker=2,
    )
    write_plan(with_id(made), folder.path / name)
    return name, moves


def held_in(seen: Cluster, key: TopicPartition, broker: int, path: str) -> int | None:
    """Return the size of a replica, None where it is not in that log dir."""
    partition = seen.partition(key)
    assert partition is not None
    at = partition.replicas.index(broker)
    return partition.sizes[at] if partition.log_dirs[at] == path else None


def replicas_in(path: str) -> set[str]:
    """Return the data folders of the topic in a log dir, those of copies too; what Kafka deletes is none."""
    return {one.name for one in Path(path).glob(f"{INSIDE}-*") if not one.name.endswith("-delete")}


def elsewhere(folder: LiveFolder, plan: str) -> Path:
    """Return a machine that has the plan and the desired state, and no journal."""
    place = folder.path.parent / "elsewhere"
    shutil.copytree(folder.path / "desired-state", place / "desired-state")
    shutil.copy(folder.path / plan, place / plan)
    return place


@pytest.mark.deep
def test_a_disk_is_emptied_by_runs_that_die_and_go_on_elsewhere_and_no_record_is_lost(
    folder: LiveFolder, tally: Tally
) -> None:
    plan, moves = emptying(folder, EMPTIED, "inside.json")
    assert len(moves) >= 2
    place = elsewhere(folder, plan)
    checker = Checker(folder.kafka, INSIDE)
    with Delivery(folder.kafka.bootstrap, INSIDE, len(LISTS)) as delivery:
        folder.kill("dirs.sent", "apply", plan, "--yes")
        assert in_flight(moves), "nothing was copied any more when the run died"
        bury(folder.kafka.bootstrap)
        status = folder.run("status", plan)
        assert f"broker {EMPTIED}: {moves[0].from_dir} -> {moves[0].to_dir}" in status.out
        folder.run("apply", plan, "--yes", cwd=place)
    assert replicas_in(moves[0].from_dir) == set()
    assert {str(move.topic_partition) for move in moves} <= replicas_in(moves[0].to_dir)
    checker.finished(place, plan, delivery)
    tally.accepted("log dir emptied", checker, delivery)


@pytest.mark.deep
def test_a_run_that_died_is_cancelled_elsewhere_and_a_finished_one_is_rolled_back(
    folder: LiveFolder, tally: Tally
) -> None:
    slow, moves = emptying(folder, EMPTIED, "slow.json", SLOW)
    plan, _ = emptying(folder, EMPTIED, "inside.json")
    place = elsewhere(folder, slow)
    shutil.copy(folder.path / plan, place / plan)
    before = replicas_in(moves[0].from_dir)
    checker = Checker(folder.kafka, INSIDE)
    with Delivery(folder.kafka.bootstrap, INSIDE, len(LISTS)) as delivery:
        folder.kill("dirs.sent", "apply", slow, "--yes")
        assert in_flight(moves), "nothing was copied any more when the run died"
        bury(folder.kafka.bootstrap)
        folder.run("cancel", slow, cwd=place)
        assert replicas_in(moves[0].from_dir) == before
        assert not in_flight(moves)
        assert checker.faults(checker.lists, delivery) == []
        folder.run("apply", plan, "--yes", cwd=place)
        assert replicas_in(moves[0].from_dir) == set()
        folder.run("cancel", plan, "--rollback", "--yes", cwd=place)
    assert replicas_in(moves[0].from_dir) == before
    assert checker.faults(checker.lists, delivery) == []
    tally.accepted("log dir rolled back", checker, delivery)


def test_a_disk_that_is_declared_draining_is_empty_after_a_plan_and_its_run(folder: LiveFolder, tally: Tally) -> None:
    kafka = folder.kafka
    first, second = (str(path) for path in kafka.log_dirs(EMPTIED))
    folder.moves, folder.brokers = (
        "throttle: 200kB/s",
        f"{{id: {EMPTIED}, logDirs: [{{path: {first}, state: draining}}]}}",
    )
    plan = folder.plan("drain", {INSIDE: LISTS}, config="min.insync.replicas: 2")
    moved = replicas_in(first)
    assert moved
    checker = Checker(kafka, INSIDE)
    with Delivery(kafka.bootstrap, INSIDE, len(LISTS)) as delivery:
        with folder.started("apply", plan, "--yes") as running:
            kafka.wait_for(lambda: running.poll() is not None or bool(copies_in(second)), "a copy to another disk")
            assert running.poll() is None, f"the run ended before it was seen to copy\n{running.communicate()}"
            kafka.kill(EMPTIED)
            kafka.start(EMPTIED)
            told = running.communicate(timeout=HANG)
        if running.returncode:  # the broker was away for longer than a run waits
            assert "KR703" in told[1]
            kafka.wait_for(lambda: not folder.run("apply", plan, "--yes", expect=None).code, "a run to end")
        kafka.wait_for(lambda: is_led_as_before(folder), "the leaders from before")
    assert replicas_in(first) == set()
    assert moved <= replicas_in(second)
    checker.finished(folder.path, plan, delivery)
    tally.accepted("log dir drained", checker, delivery)


def is_led_as_before(folder: LiveFolder) -> bool:
    """Elect the first replicas, which a broker's death is not the plan's to bring back; return whether they lead."""
    with suppress(KafkaException):  # not all of them are in sync yet
        folder.admin.elect_leaders(ElectionType.PREFERRED, None).result(HANG)
    return folder.state(INSIDE) == led_by_the_first(LISTS)


def in_flight(moves: tuple[DirMove, ...]) -> set[str]:
    """Return the folders that copies are made in."""
    return copies_in(moves[0].to_dir)


def copies_in(path: str) -> set[str]:
    """Return the folders of copies in a log dir."""
    return {name for name in replicas_in(path) if name.endswith("-future")}
