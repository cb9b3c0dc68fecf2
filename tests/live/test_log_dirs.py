"""The log dirs of a destination on real brokers: one that is chosen, and one that is full."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from helpers.brokers import KafkaCluster, can_mount
from helpers.checker import Checker
from helpers.delivery import Delivery
from helpers.live_faults import Tally
from helpers.live_folder import Assignment, LiveFolder
from helpers.live_run import MB, SMOOTH
from helpers.other_hands import pin

from reconciler.files.plan_file import read_plan

pytestmark = pytest.mark.brokers

CHOSEN, FILLER = "dirs-chosen", "dirs-filler"
NEW = 4
SMALL_MB = 48


@pytest.fixture(scope="module")
def cluster(kafka_version: str) -> Iterator[KafkaCluster]:
    """Three brokers with two data folders each; `small` brings a fourth."""
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), settings=SMOOTH) as started:
        yield started


@pytest.fixture(scope="module")
def small(cluster: KafkaCluster) -> KafkaCluster:
    """The same with broker 4, whose first data folder is a small disk of its own."""
    if not can_mount():
        pytest.skip("only root may mount the small disk that this needs")
    cluster.add(NEW, small_dir_mb=SMALL_MB)
    return cluster


@pytest.fixture
def folder(tmp_path: Path, small: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path, small, moves="throttle: 4MB/s, perBroker: 100")
    yield live
    live.heal(CHOSEN, FILLER)


def log_dir(kafka: KafkaCluster, broker: int, partition: str) -> Path:
    """Return the data folder in which a broker holds a replica."""
    (found,) = [path for path in kafka.log_dirs(broker) if (path / partition).exists()]
    return found


def test_new_replicas_land_in_the_log_dirs_that_the_plan_names(folder: LiveFolder, tally: Tally) -> None:
    kafka = folder.kafka
    before: Assignment = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    after: Assignment = {0: (1, NEW), 1: (2, NEW), 2: (3, NEW)}
    folder.create({CHOSEN: before}, size=MB)
    plan = folder.plan("plan", {CHOSEN: after})
    foretold = {str(key): Path(to[NEW]) for key, to in read_plan(folder.path / plan).foretold_log_dirs.items()}
    first = kafka.log_dirs(NEW)[0]
    assert first in foretold.values()
    fill(folder, first)  # Kafka by itself would use the other one now
    checker = Checker(kafka, CHOSEN, FILLER)
    with Delivery(kafka.bootstrap, CHOSEN, len(before)) as delivery:
        folder.run("apply", plan, "--yes", "--log-dirs")
    checker.finished(folder.path, plan, delivery)
    tally.accepted("log dir chosen", checker, delivery)
    assert {name: log_dir(kafka, NEW, name) for name in foretold} == foretold


def fill(folder: LiveFolder, path: Path, partitions: int = 8) -> None:
    """Put a topic's partitions on the new broker, all of them into that dir."""
    pin(folder.kafka.bootstrap, {(FILLER, number, NEW): str(path) for number in range(partitions)})
    folder.admin.create_topics([NewTopic(FILLER, partitions, replica_assignment=[[NEW]] * partitions)])[FILLER].result(
        30
    )
    folder.kafka.wait_for(lambda: len(folder.observer.topic(FILLER)) == partitions, "the filler")
    assert {log_dir(folder.kafka, NEW, f"{FILLER}-{number}") for number in range(partitions)} == {path}
