"""The log dirs of a destination on real brokers: one that is chosen, and one that is full."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create
from helpers.brokers.checker import Checker
from helpers.brokers.cluster import KafkaCluster, can_mount
from helpers.brokers.delivery import Delivery
from helpers.brokers.run import MB, SMOOTH
from helpers.waiting import HANG
from live.faults import Tally
from live.folder import Assignment, LiveFolder
from live.other_hands import pin

from reconciler.files.plan_file import read_plan

pytestmark = pytest.mark.brokers

CHOSEN, FILLER, FULL = "dirs-chosen", "dirs-filler", "dirs-full"
NEW = 4
SMALL_MB, LEFT_MB = 48, 3
FAILED = 1
MOVES = "throttle: 4MB/s, perBroker: 100"


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path, steady, moves=MOVES)
    yield live
    live.heal(CHOSEN, FILLER)


def log_dirs(kafka: KafkaCluster, broker: int, topic: str) -> dict[str, Path]:
    """Return the data folder of each replica of a topic on a broker."""
    found = (one for path in kafka.log_dirs(broker) for one in path.glob(f"{topic}-*"))
    return {one.name: one.parent for one in found if one.name.rpartition("-")[2].isdigit()}


def test_new_replicas_land_in_the_log_dirs_that_the_plan_names(folder: LiveFolder, tally: Tally) -> None:
    kafka = folder.kafka
    before: Assignment = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    after: Assignment = {0: (1, NEW), 1: (2, NEW), 2: (3, NEW)}
    folder.create({CHOSEN: before}, size=MB)
    plan = folder.plan("plan", {CHOSEN: after})
    predicted = {str(key): Path(to[NEW]) for key, to in read_plan(folder.path / plan).predicted_log_dirs.items()}
    first = kafka.log_dirs(NEW)[0]
    assert first in predicted.values()
    fill(folder, first)  # Kafka by itself would use the other one now
    checker = Checker(kafka, CHOSEN, FILLER)
    with Delivery(kafka.bootstrap, CHOSEN, len(before)) as delivery:
        folder.run("apply", plan, "--yes", "--log-dirs")
    checker.finished(folder.path, plan, delivery)
    tally.accepted("log dir chosen", checker, delivery)
    assert log_dirs(kafka, NEW, CHOSEN) == predicted


def fill(folder: LiveFolder, path: Path, partitions: int = 8) -> None:
    """Put a topic's partitions on the new broker, all of them into that dir."""
    pin(folder.kafka.bootstrap, {(FILLER, number, NEW): str(path) for number in range(partitions)})
    create(folder.kafka, {FILLER: [[NEW]] * partitions})
    folder.kafka.wait_for(lambda: len(log_dirs(folder.kafka, NEW, FILLER)) == partitions, "the filler")
    assert set(log_dirs(folder.kafka, NEW, FILLER).values()) == {path}


@pytest.mark.deep
@pytest.mark.skipif(not can_mount(), reason="only root may mount the small disk that this needs")
def test_a_move_to_a_disk_that_gets_full_is_found_and_taken_back(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster], tally: Tally
) -> None:
    kafka = new_kafka(broker_ids=(1, 2, 3), settings=SMOOTH)
    kafka.add(NEW, small_dir_mb=SMALL_MB)
    folder = LiveFolder(tmp_path, kafka, moves="throttle: 1MB/s, perBroker: 100")
    before: Mapping[str, Assignment] = {FULL: {0: (1, 2), 1: (2, 3)}}
    after: Mapping[str, Assignment] = {FULL: {0: (1, NEW), 1: (2, 1)}}
    folder.create(before, size=12 * MB)
    plan = folder.plan("plan", after)
    disk = kafka.log_dirs(NEW)[1]
    ballast = disk / "ballast"
    pin(kafka.bootstrap, {(FULL, 0, NEW): str(disk)})
    checker = Checker(kafka, FULL)
    with Delivery(kafka.bootstrap, FULL, 2) as delivery:
        with folder.started("apply", plan, "--yes") as running:
            folder.wait_in_flight(running, FULL)
            ballast.write_bytes(bytes((SMALL_MB - LEFT_MB) << 20))  # nobody could know that when the run began
            _, told = running.communicate(timeout=HANG)
        assert running.returncode == FAILED, told
        assert f"broker {NEW}" in told
        assert str(disk) in told
        found = {number: state.replicas for number, state in folder.observer.topic(FULL).items()}
        assert found == {0: before[FULL][0], 1: after[FULL][1]}
        ballast.unlink()
        kafka.stop(NEW)
        kafka.start(NEW)
        folder.run("apply", plan, "--yes")
    checker.finished(folder.path, plan, delivery)
    tally.accepted("disk full", checker, delivery)


FIRST, SECOND, ONLY_MB, REFUSED = "disk-first", "disk-second", 100, 3


@pytest.mark.deep
@pytest.mark.skipif(not can_mount(), reason="only root may mount the small disk that this needs")
def test_a_copy_that_does_not_fit_is_not_begun_and_the_broker_lives(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster], tally: Tally
) -> None:
    kafka = new_kafka(broker_ids=(1, 2, 3), settings=SMOOTH)
    metadata, disk = kafka.log_dirs(NEW)
    kafka.settings = {**kafka.settings, "log.dirs": str(disk), "metadata.log.dir": str(metadata)}
    kafka.add(NEW, small_dir_mb=ONLY_MB)  # its only log dir: if it gets full, the broker dies
    folder = LiveFolder(tmp_path, kafka, moves="throttle: 200MB/s")
    before: Mapping[str, Assignment] = {FIRST: {0: (1, 2)}, SECOND: {0: (1, 2)}}
    folder.create(before, size=54 * MB)
    first = folder.plan("first", {**before, FIRST: {0: (1, NEW)}})
    second = folder.plan("second", {**before, SECOND: {0: (1, NEW)}})

    def refused(plan: str) -> None:
        for option in ("--dry-run", "--yes"):
            ended = folder.run("apply", plan, option, expect=REFUSED)
            assert f"to broker {NEW}, which has " in ended.err
            assert "(KR456)" in ended.err
        assert NEW in kafka.alive

    checker = Checker(kafka, FIRST, SECOND)
    with Delivery(kafka.bootstrap, FIRST, 1) as delivery:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes((ONLY_MB // 2) << 20))  # other data, that landed after the plan was saved
        refused(first)
        ballast.unlink()
        folder.run("apply", first, "--yes")
        refused(second)  # each of the two plans fits by itself
        kafka.wait_until_alive((NEW,))
        assert {number: one.replicas for number, one in folder.observer.topic(SECOND).items()} == before[SECOND]
    folder.write({**before, FIRST: {0: (1, NEW)}})
    checker.finished(folder.path, first, delivery)
    tally.accepted("disk without room", checker, delivery)
