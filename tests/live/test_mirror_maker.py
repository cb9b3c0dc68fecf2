"""Kafka's own MirrorMaker 2 copies topics that the reconciler declares, between real clusters of two versions."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.delivery import Delivery
from helpers.brokers.mirror_maker import MirrorMaker
from helpers.brokers.observer import Observer
from helpers.figures import Tell
from helpers.waiting import ATTEMPT, HANG, wait_for
from live.mirroring import TwoClusters

pytestmark = pytest.mark.brokers

OLD, NEW = "3.9.1", "4.3.0"
EVENTS, ITEMS = "orders.events", "orders.items"
COPY = f"us.{EVENTS}"
BEFORE = 200
GROUPS = {"early": 0.0, "middle": 0.6, "late": 1.0}
"""Each group's name, and the share of the topic that it has read."""
DAY = 24 * 60 * 60 * 1000
OF_COPIES = {"KR690", "KR691", "KR692", "KR693"}


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Two clusters of three brokers, of an older and a newer version."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(KafkaCluster(version=OLD, broker_ids=(1, 2, 3))),
            stack.enter_context(KafkaCluster(version=NEW, broker_ids=(1, 2, 3))),
        )


@pytest.fixture
def two(clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path) -> Iterator[TwoClusters]:
    """The clusters with an empty folder; what a test made is gone behind it."""
    yield TwoClusters(tmp_path, *clusters)
    for kafka in clusters:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        names = [name for name in admin.list_topics(timeout=HANG).topics if not name.startswith("__")]
        for answer in admin.delete_topics(names).values() if names else ():
            answer.result(HANG)


def test_what_mirror_maker_copies_is_told_as_it_is_counted(tmp_path: Path, kafka_version: str) -> None:
    with ExitStack() as stack:
        us, eu = (stack.enter_context(KafkaCluster(version=kafka_version, broker_ids=(1,))) for _ in range(2))
        two = TwoClusters(tmp_path, us, eu, replication_factor=1)
        two.write({EVENTS: 3}, "7d")
        two.apply_both()
        _write_before(two)
        two.commit(us, "middle", EVENTS, {0: 150, 1: 70, 2: BEFORE})
        with MirrorMaker(us, eu, ("us", "eu"), topics="orders\\..*") as maker:
            _wait_until_all_is_copied(two, maker)
            _wait_for_starts(two, maker, "middle")
            told = two.told("diff", "--cluster", "eu", "--against", "us")
            assert maker.made == []
        _check_lags(two, told, is_quiet=True)
        _check_groups(two, told)


@pytest.mark.deep
@pytest.mark.parametrize("is_synced", [True, False], ids=["offsets synced", "checkpoints"])
def test_topics_are_declared_copied_and_grown_and_a_consumer_moves_over_without_a_loss(
    is_synced: bool,  # noqa: FBT001 - a row of the table
    two: TwoClusters,
    figures: Tell,
) -> None:
    two.write({EVENTS: 3, ITEMS: 2}, "7d")
    two.apply_both()
    _write_before(two)
    settings = {"sync.group.offsets.enabled": str(is_synced).lower()}
    with MirrorMaker(two.us, two.eu, ("us", "eu"), topics="orders\\..*", settings=settings) as maker:
        with Delivery(two.us.bootstrap, EVENTS, 3, records_per_second=300):
            _wait_for_copies(two, maker, 3, BEFORE)
            _commit_groups(two)
            _wait_for_starts(two, maker)
            maker.kill()
            maker.start()
            _wait_for_copies(two, maker, 3, 2 * BEFORE)
            two.write({EVENTS: 5, ITEMS: 2}, "2d")
            assert two.apply_both() == ["eu", "us"]
        for kafka, topic in ((two.us, EVENTS), (two.eu, COPY)):
            assert two.partitions(kafka, topic) == 5
            assert Observer(kafka.bootstrap).overrides(ResourceType.TOPIC, topic)["retention.ms"] == str(2 * DAY)
        with Delivery(two.us.bootstrap, EVENTS, 5, records_per_second=300):
            _wait_for_copies(two, maker, 5, 1)
            _wait_for_starts(two, maker)
            under_traffic = two.told("diff", "--cluster", "eu", "--against", "us")
        _wait_until_all_is_copied(two, maker)
        _wait_for_starts(two, maker)
        after = two.told("diff", "--cluster", "eu", "--against", "us")
        assert maker.made == []
        assert [plan["topicChanges"] for plan in two.told("plan", "--cluster", "us,eu")["plans"]] == [[], []]
        assert _of_copies(two) == {}
    lags = _check_lags(two, under_traffic), _check_lags(two, after, is_quiet=True)
    moved = _check_groups(two, under_traffic), _check_groups(two, after)
    if is_synced:
        _move(two, after)
    records = sum(map(len, two.held(two.us, EVENTS).values())), sum(map(len, two.held(two.eu, COPY).values()))
    figures(
        f"mirrors, {'offsets synced' if is_synced else 'checkpoints'}",
        f"{records[0]:,} records, {records[1]:,} in the copy; told and counted: lag {lags}, read twice {moved}",
    )


@pytest.mark.deep
def test_doctor_tells_of_copies_that_stand_still_and_of_topics_made_again(two: TwoClusters) -> None:
    two.write({EVENTS: 3}, "7d")
    two.apply_both()
    _write_before(two)
    with MirrorMaker(two.us, two.eu, ("us", "eu"), topics="orders\\..*") as maker:
        _wait_until_all_is_copied(two, maker)
        assert _of_copies(two) == {}
        maker.stop()
        assert _of_copies(two) == {}  # nothing is late yet
        _write_in_the_future(two, 1)
        still = _of_copies(two)
        assert still.keys() == {"KR692"}
        assert still["KR692"]["partitions"] == [{"topic": COPY, "partition": 1}]
        maker.start()
        _wait_until_all_is_copied(two, maker)
        assert _of_copies(two) == {}
        maker.stop()
        admin = AdminClient({"bootstrap.servers": two.us.bootstrap})
        admin.delete_topics([EVENTS])[EVENTS].result(HANG)
        wait_for(lambda: two.partitions(two.us, EVENTS) == 0, "the topic to be gone")
        two.run("plan", "--cluster", "us", "--out", "us.json")
        two.run("apply", "us.json", "--yes")
        two.us.write(EVENTS, 0, (f"anew {each}".encode() for each in range(20)))
        again = _of_copies(two)["KR693"]
        assert again["partitions"] == [{"topic": COPY, "partition": number} for number in range(3)]
        assert f"{EVENTS}-0 ends at 20, and its record {BEFORE - 1} was copied to {COPY}-0" in again["message"]
        maker.start()
        two.forget()
        _wait_until_all_is_copied(two, maker)


def _write_in_the_future(two: TwoClusters, partition: int) -> None:
    """Write a record that is minutes later than all others, so that nobody has to wait so long."""
    producer = Producer({"bootstrap.servers": two.us.bootstrap, "acks": "all", "log_level": 0})
    admin, key = AdminClient({"bootstrap.servers": two.us.bootstrap}), TopicPartition(EVENTS, partition)
    newest = admin.list_offsets({key: OffsetSpec.max_timestamp()})[key].result(HANG).timestamp
    producer.produce(EVENTS, b"later", partition=partition, timestamp=newest + 10 * 60 * 1000)
    assert producer.flush(HANG) == 0


def _write_before(two: TwoClusters) -> None:
    """Write records before anything copies, and delete some: offsets of topic and copy then differ."""
    for number in range(3):
        two.us.write(EVENTS, number, (f"before {number} {each}".encode() for each in range(BEFORE)))
    two.delete_records(EVENTS, {0: 50, 1: 70})


def _commit_groups(two: TwoClusters) -> None:
    """Let groups stand at the beginning, in the midst, and where the topic ends."""
    held = two.held(two.us, EVENTS)
    for group, share in GROUPS.items():
        where = {number: min(each) + int(share * (max(each) + 1 - min(each))) for number, each in held.items()}
        two.commit(two.us, group, EVENTS, where)


def _wait_for_copies(two: TwoClusters, maker: MirrorMaker, partitions: int, least: int) -> None:
    def is_there() -> bool:
        held = two.held(two.eu, COPY)
        return len(held) >= partitions and all(len(held[number]) >= least for number in range(partitions))

    wait_for(is_there, f"{least} records in each partition of the copy", pause=0.5, meanwhile=maker.raise_if_ended)


def _wait_until_all_is_copied(two: TwoClusters, maker: MirrorMaker) -> None:
    def is_so() -> bool:
        copied = {value for each in two.held(two.eu, COPY).values() for value in each.values()}
        return all(value in copied for each in two.held(two.us, EVENTS).values() for value in each.values())

    wait_for(is_so, "all records to be copied", pause=0.5, meanwhile=maker.raise_if_ended)


def _wait_for_starts(two: TwoClusters, maker: MirrorMaker, *names: str) -> None:
    """Wait until it is told of each group where it goes on: MirrorMaker 2 writes that down a while later."""

    def is_told() -> bool:
        groups = two.told("diff", "--cluster", "eu", "--against", "us")["groups"]
        rows = {group["groupId"]: group["partitions"] for group in groups}
        return all(row["start"] is not None for name in names or GROUPS for row in rows[name])

    wait_for(is_told, "a start of each group", pause=0.5, meanwhile=maker.raise_if_ended)


def _check_lags(two: TwoClusters, told: Any, *, is_quiet: bool = False) -> str:  # noqa: ANN401 - a document
    """Assert that ends and lags are what the records say; return the sums. `is_quiet`: nobody has written since."""
    here, there = two.held(two.us, EVENTS), two.held(two.eu, COPY)
    (topic,) = [each for each in told["topics"] if each["topic"] == EVENTS]
    assert (topic["partitions"], topic["copyPartitions"], topic["differs"]) == (len(here), len(there), False)
    assert [row["partition"] for row in topic["offsets"]] == sorted(here)
    sums = [0, 0, 0]
    for row in topic["offsets"]:
        number = row["partition"]
        assert row["start"] == min(here[number])
        assert row["copyStart"] == min(there[number])
        written = {value for offset, value in here[number].items() if offset < row["end"]}
        copied = {value for offset, value in there[number].items() if offset < row["copyEnd"]}
        lacking = len(written - copied)
        assert lacking <= row["lagAtMost"]
        if is_quiet:
            assert (row["end"], row["copyEnd"]) == (max(here[number]) + 1, max(there[number]) + 1)
            assert (lacking, row["lag"]) in {(0, 0), (0, None)}
        assert row["lag"] is None or lacking <= row["lag"] <= row["lagAtMost"]
        sums = [sums[0] + (row["lag"] or 0), sums[1] + row["lagAtMost"], sums[2] + lacking]
    return f"{sums[0]} (at most {sums[1]}), {sums[2]}"


def _check_groups(two: TwoClusters, told: Any) -> str:  # noqa: ANN401 - a document
    """Assert that whoever goes on where it is told misses nothing, and reads no more again than is told."""
    here, there = two.held(two.us, EVENTS), two.held(two.eu, COPY)
    sums = [0, 0]
    starts = 0
    for group in told["groups"]:
        for row in (each for each in group["partitions"] if each["topic"] == EVENTS):
            if row["start"] is None:
                assert row["unknown"], row
                continue
            number, starts = row["partition"], starts + 1
            read = [value for offset, value in there[number].items() if offset >= row["start"]]
            unread = {value for offset, value in here[number].items() if offset >= row["committed"]}
            assert row["missed"] == 0, (group["groupId"], row)
            assert unread <= set(read), (group["groupId"], row)
            again = sum(value not in unread for value in read)
            assert again <= row["readTwice"], (group["groupId"], row, again)
            sums = [sums[0] + row["readTwice"], sums[1] + again]
    return f"{sums[0]} and {sums[1]} from {starts} starts"


def _move(two: TwoClusters, told: Any) -> None:  # noqa: ANN401 - a document
    """Let a consumer of a group go on at the copy: it begins where it is told, and reads all that is unread."""
    (rows,) = [group["partitions"] for group in told["groups"] if group["groupId"] == "middle"]
    starts = {row["partition"]: row["start"] for row in rows if row["topic"] == EVENTS}
    assert {row["startBy"] for row in rows} == {"committed"}
    held = two.held(two.eu, COPY)
    settings = {"group.id": "middle", "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": two.eu.bootstrap, **settings})
    consumer.subscribe([COPY])
    first: dict[int, int] = {}
    left = {number: max(each) for number, each in held.items()}
    while left:
        message = consumer.poll(ATTEMPT)
        if message is not None:
            assert message.error() is None, message.error()
            first.setdefault(message.partition(), message.offset())
            if message.offset() >= left.get(message.partition(), -1):
                left.pop(message.partition(), None)
    consumer.close()
    assert {number: first[number] for number in starts} == starts


def _of_copies(two: TwoClusters) -> Mapping[str, Any]:
    """Return doctor's findings on copies, by code."""
    found = two.told("doctor", "--cluster", "eu")["findings"]
    return {each["code"]: each for each in found if each["code"] in OF_COPIES}
