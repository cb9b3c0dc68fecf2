"""Twenty thousand moves on fifty thousand partitions of real brokers: what it takes, and that nothing is lost."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from helpers.brokers import counted_program
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import declare
from helpers.brokers.delivery import Delivery, delivery_faults
from helpers.brokers.observer import THROTTLES, Observer
from helpers.brokers.run import PLAN, Applying
from helpers.brokers.sent_requests import MEMBERSHIP, READS
from helpers.figures import Tell
from helpers.program.warm import environment, reconciler
from helpers.waiting import HANG
from live.worlds import Watched

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

OLD, NEW = (1, 2, 3), (4, 5)
PARTITIONS_A_TOPIC = 200
CHUNK = 25
"""Topics that are made at once: their logs are on the disks before the next ones are asked for."""
SMALL = {
    "log.index.size.max.bytes": "4096",  # else each partition reserves 20 MB
    "log.segment.bytes": "1048576",
    "log.cleaner.enable": "false",
    "file.delete.delay.ms": "1000",
    "broker.session.timeout.ms": "60000",
    "num.io.threads": "4",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
}
LIST_REASSIGNMENTS, FIND_COORDINATOR, DESCRIBE_LOG_DIRS = 46, 10, 35
MOST_REQUESTS = 3  # reassignments, metadata and the cluster; log dirs are asked for at intervals, one request a broker


@dataclass
class World:
    """Empty brokers beside full ones, and the records that each partition holds."""

    kafka: KafkaCluster
    topics: list[str]
    written: Mapping[tuple[str, int], tuple[int, bytes]]

    @property
    def lists(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The replicas of each partition, as an independent client sees them."""
        found = AdminClient({"bootstrap.servers": self.kafka.bootstrap}).list_topics(timeout=HANG).topics
        return {
            (name, number): tuple(one.replicas)
            for name in self.topics
            for number, one in found[name].partitions.items()
        }

    def throttles(self) -> dict[str, str]:
        """Return the throttle keys that are set, of all topics and brokers."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        admin.list_topics(timeout=HANG)
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in self.topics]
        answers = admin.describe_configs(asked, request_timeout=HANG)
        for broker in self.kafka.alive:
            answers |= admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))], request_timeout=HANG)
        told = {resource.name: answer.result(HANG) for resource, answer in answers.items()}
        return {
            f"{name}:{key}": configs[key].value
            for name, configs in told.items()
            for key in THROTTLES
            if key in configs and configs[key].value and not configs[key].is_default
        }

    def lost(self) -> list[str]:
        """Return the records that are not where the brokers said they are."""
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "many", "log_level": 0})
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in self.written])
        left = dict(self.written)
        wrong = []
        while left:
            message = consumer.poll(HANG)
            if message is None:
                break
            expected = left.get((message.topic(), message.partition()))
            if message.error() is None and expected is not None and message.offset() == expected[0]:
                del left[message.topic(), message.partition()]
                wrong += [] if message.value() == expected[1] else [f"{message.topic()}-{message.partition()}"]
        consumer.close()
        return [*wrong, *(f"{topic}-{number}" for topic, number in left)]


def made(kafka: KafkaCluster, topics: list[str]) -> None:
    """Make the topics on the old brokers, a chunk at a time, and wait for their logs."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for start in range(0, len(topics), CHUNK):
        new = [
            NewTopic(name, PARTITIONS_A_TOPIC, replica_assignment=[[OLD[n % 3]] for n in range(PARTITIONS_A_TOPIC)])
            for name in topics[start : start + CHUNK]
        ]
        for one in new:
            for answer in admin.create_topics([one], request_timeout=HANG).values():
                answer.result(HANG)
        wanted = (start + len(new)) * PARTITIONS_A_TOPIC
        kafka.wait_for(lambda w=wanted: on_disk(kafka) >= w, f"{wanted} logs")  # type: ignore[misc]


def on_disk(kafka: KafkaCluster) -> int:
    """Return how many logs of our topics the old brokers have."""
    folders = [log_dir for broker in OLD for log_dir in kafka.log_dirs(broker)]
    return sum(one.name.startswith("many-") for folder in folders for one in folder.iterdir())


def filled(kafka: KafkaCluster, topics: list[str]) -> dict[tuple[str, int], tuple[int, bytes]]:
    """Write a record into each partition and return where it is, once all are acknowledged."""
    acked: dict[tuple[str, int], tuple[int, bytes]] = {}

    def note(error: object, message: Message) -> None:
        assert error is None, error
        acked[message.topic(), message.partition()] = message.offset(), message.value()

    settings = {"acks": "all", "linger.ms": 50, "message.timeout.ms": 1000 * HANG, "log_level": 0}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    for start in range(0, len(topics), CHUNK):
        for topic in topics[start : start + CHUNK]:
            for number in range(PARTITIONS_A_TOPIC):
                producer.produce(topic, f"{topic} {number}".encode(), partition=number, on_delivery=note)
        assert producer.flush(HANG) == 0
    return acked


@pytest.fixture(params=[12_000, 50_000])
def world(request: pytest.FixtureRequest, kafka_version: str) -> Iterator[World]:
    """Three brokers with so many partitions, and two empty ones."""
    topics = [f"many-{number:03}" for number in range(request.param // PARTITIONS_A_TOPIC)]
    with KafkaCluster(
        version=kafka_version, broker_ids=(*OLD, *NEW), settings=SMALL, java_options=("-Xmx1500m",)
    ) as kafka:
        made(kafka, topics)
        yield World(kafka, topics, filled(kafka, topics))


def planned(folder: Path, kafka: KafkaCluster) -> Mapping[tuple[str, int], tuple[int, ...]]:
    """Plan that each broker holds as much as any other, and return the lists that the plan's moves end with."""
    moves = "moves: {throttle: 50MB/s, perBroker: 500, perStage: 20000}"
    root = declare(folder, kafka, f"balance: {{replicas: even}}, {moves}", name="many")
    metadata, spec = 'metadata: {names: ["many-*"]}', "spec: {placement: {racks: {spread: ignore}}}"
    (root / "topics.yaml").write_text(f"apiVersion: reconciler/v1\nkind: Topic\n{metadata}\n{spec}\n")
    reconciler("plan", "--out", PLAN, "--detailed-exitcode", cwd=folder, expect=2)
    stages = json.loads((folder / PLAN).read_text())["stages"]
    return {(one["topic"], one["partition"]): tuple(one["to"]) for stage in stages for one in stage.get("moves", ())}


def started(folder: Path) -> Applying:
    """Start an apply that notes the kind of each request it sends."""
    command = [sys.executable, counted_program.__file__, str(folder / "requests"), "apply", PLAN, "--yes"]
    out, err = folder / "apply.out", folder / "apply.err"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=out_file, stderr=err_file)
    return Applying(process, out, err)


def requests_a_poll(folder: Path) -> list[list[int]]:
    """Return the kinds of the requests of each poll: a look at the cluster after which nothing was changed.

    Requests that hold the lock are left out. A list of reassignments that is asked for twice in a row begins one poll.
    """
    turns: list[list[int]] = []
    for key in map(int, (folder / "requests").read_text().split()):
        if key == LIST_REASSIGNMENTS and turns[-1:] != [[key]]:
            turns.append([])
        if turns and key not in {*MEMBERSHIP, FIND_COORDINATOR}:
            turns[-1].append(key)
    return [turn for turn in turns if READS.keys() >= {*turn}]


def test_very_many_moves_end_as_planned_and_nothing_is_lost(tmp_path: Path, world: World, figures: Tell) -> None:
    before = world.lists
    moves = planned(tmp_path, world.kafka)
    topic = world.topics[-1]
    with (
        Delivery(world.kafka.bootstrap, topic, PARTITIONS_A_TOPIC) as delivery,
        Watched(started(tmp_path), world.kafka.bootstrap) as watched,
    ):
        watched.applying.process.wait()
    assert watched.applying.process.returncode == 0, watched.applying.told[-3000:]
    world.kafka.wait_for(lambda: world.lists == {**before, **moves}, "all brokers to show the end")
    assert reassignments(world.kafka.bootstrap) == {}
    assert world.throttles() == {}
    assert world.lost() == []
    read = Observer(world.kafka.bootstrap).records(topic)
    assert delivery_faults(delivery.sent, read, PARTITIONS_A_TOPIC) == []
    *polls, _ = requests_a_poll(tmp_path)  # the last one goes on to the end of the program
    assert median(len(poll) - poll.count(DESCRIBE_LOG_DIRS) for poll in polls) <= MOST_REQUESTS
    assert max(poll.count(DESCRIBE_LOG_DIRS) for poll in polls) <= len(OLD) + len(NEW)
    figures(
        f"{len(moves):,} moves on {len(before):,} partitions",
        f"{watched.seconds:.0f} s, {len(polls)} polls of {sum(map(len, polls)) / len(polls):.1f} requests, "
        f"longest silence {watched.silence:.1f} s, peak {watched.peak_megabytes:.0f} MB, "
        f"{len(world.written) + len(delivery.sent.acks):,} records, 0 lost",
    )
