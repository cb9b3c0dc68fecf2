"""Groups of real consumers on real brokers: `describe` shows what they own, `simulate` predicts what becomes of it."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from helpers.brokers.by_hand import kafka_tool
from helpers.brokers.cluster import KafkaCluster
from helpers.program.warm import Ended, reconciler
from helpers.waiting import HANG, wait_for
from scenarios.consumers import Consumers, Owned

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.model.change import CreateTopic

pytestmark = pytest.mark.brokers

RUN = uuid.uuid4().hex[:6]
ORDERS, CLICKS = f"groups-orders-{RUN}", f"groups-clicks-{RUN}"
PARTITIONS = {ORDERS: 7, CLICKS: 5}
COUNT = sum(PARTITIONS.values())
RECORDS = 30
NAMES = ("ada", "bob", "cyd", "dan")
CLASSIC, CONSUMER = "classic", "consumer"
GROUPS_TOOL = "consumer.group.ConsumerGroupCommand"
# The name under which `simulate` knows an assignor: how its consumers ask for it.
ASSIGNORS = {
    "range": ("range", CLASSIC),
    "roundrobin": ("roundrobin", CLASSIC),
    "cooperative-sticky": ("cooperative-sticky", CLASSIC),  # librdkafka's own, not Java's
    "sticky": ("sticky", CLASSIC),  # of kafka-python
    "server-uniform": ("uniform", CONSUMER),
    "server-range": ("range", CONSUMER),
}
# One of the clients, and one of the brokers; the others with the deep tests.
OFTEN = ("range", "server-uniform")
# Which of equal partitions goes to whom is up to each client library; balance and moves are not.
IS_FREE = {"cooperative-sticky", "sticky"}


@pytest.fixture(scope="module")
def admin(kafka: KafkaCluster) -> Iterator[KafkaAdmin]:
    admin = connect(kafka.properties)
    yield admin
    admin.close()


@pytest.fixture(scope="module")
def topics(kafka: KafkaCluster, admin: KafkaAdmin) -> Iterator[list[str]]:
    """Two topics with 30 records in each partition."""
    changes = [
        CreateTopic(name, count, 2, {}, {number: (1 + number % 3, 1 + (number + 1) % 3) for number in range(count)})
        for name, count in PARTITIONS.items()
    ]
    assert all(answer.is_ok for answer in admin.create_topics(changes).values())
    counts = [PARTITIONS[name] for name in sorted(PARTITIONS)]
    kafka.wait_for(lambda: [len(each.partitions) for each in admin.topics(PARTITIONS).values()] == counts, "topics")
    for name, count in PARTITIONS.items():
        for number in range(count):
            kafka.produce(name, number, size=RECORDS * 100, record_bytes=100)
    yield sorted(PARTITIONS)
    admin.delete_topics(PARTITIONS)


@pytest.fixture(scope="module")
def joined(request: pytest.FixtureRequest, kafka: KafkaCluster, topics: list[str]) -> Iterator[dict[str, Consumers]]:
    """One group for each assignor to be tried, four consumers each: all join at once, which takes as long as one."""
    asked = [item.callspec.params.get("assignor") for item in request.session.items if hasattr(item, "callspec")]
    names = [
        name
        for name, (_, protocol) in ASSIGNORS.items()
        if name in asked and (protocol == CLASSIC or is_kafka_4(kafka))
    ]
    with ExitStack() as groups:
        found = {
            name: groups.enter_context(Consumers(kafka.bootstrap, f"groups-{name}-{RUN}", topics, *ASSIGNORS[name]))
            for name in names
        }
        for consumers in found.values():
            consumers.join(*NAMES)
        yield found


def is_kafka_4(kafka: KafkaCluster) -> bool:
    """Whether KIP-848 groups are on by default."""
    return not kafka.version.startswith("3.")


@dataclass
class Shell:
    """Our program, as a user calls it against the live cluster."""

    folder: Path
    bootstrap: str

    def run(self, *arguments: str, expect: int = 0) -> Ended:
        """Run `reconciler groups ARGUMENTS`."""
        return reconciler("groups", *arguments, "--bootstrap-server", self.bootstrap, cwd=self.folder, expect=expect)

    def group(self, group_id: str) -> dict[str, Any]:
        """Return all that `describe` shows of a group."""
        (group,) = json.loads(self.run("describe", group_id, "-o", "json").out)["groups"]
        return dict(group)

    def clients(self, group_id: str) -> dict[str, str]:
        """Return the name of each member id."""
        return {str(member["memberId"]): str(member["clientId"]) for member in self.group(group_id)["members"]}

    def predicted(self, group_id: str, leaving: str, assignor: str) -> tuple[Owned, list[str]]:
        """Return who `simulate` says will own what once one has left, and what it doubts of that."""
        arguments = ("--group", group_id, "--remove-member", leaving, "--assignor", assignor, "-o", "json")
        (compared,) = json.loads(self.run("simulate", *arguments).out)["groups"]
        names = self.clients(group_id)
        found = {names[member_id]: topics for member_id, topics in compared["after"][0]["assignment"].items()}
        return {name: with_tuples(found[name]) for name in sorted(found)}, compared["after"][0]["doubts"]

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return a group's offsets, as a client that is not under test reads them."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group_id, "log_level": 0})
        keys = [ConfluentPartition(name, number) for name, count in PARTITIONS.items() for number in range(count)]
        found = consumer.committed(keys, timeout=HANG)
        consumer.close()
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


@pytest.fixture
def shell(kafka: KafkaCluster, tmp_path: Path) -> Shell:
    return Shell(tmp_path, kafka.bootstrap)


def owned_in(group: Mapping[str, Any]) -> Owned:
    """Return what `describe` says that each consumer owns."""
    found = {str(member["clientId"]): member["assignment"] for member in group["members"]}
    return {name: with_tuples(found[name]) for name in sorted(found)}


def with_tuples(topics: object) -> dict[str, tuple[int, ...]]:
    assert isinstance(topics, Mapping)
    return {str(topic): tuple(numbers) for topic, numbers in topics.items()}


def counts(owned: Owned) -> list[int]:
    return sorted(sum(map(len, topics.values())) for topics in owned.values())


def keys(topics: Mapping[str, tuple[int, ...]]) -> set[tuple[str, int]]:
    return {(topic, number) for topic, numbers in topics.items() for number in numbers}


def at_rest(consumers: Consumers, shell: Shell) -> Owned:
    """Wait until the group is stable and the consumers own what `describe` shows; return that."""
    owned: Owned = {}

    def is_at_rest() -> bool:
        # Between the rebalances of a cooperative group all is owned, and some of it about to change hands.
        nonlocal owned
        owned = consumers.wait_until_all_is_owned(COUNT)
        described = shell.group(consumers.group_id)
        return owned_in(described) == owned and described["state"] == "Stable"

    wait_for(is_at_rest, "the group to be described as it is owned", seen=lambda: owned)
    return owned


@pytest.mark.parametrize(
    "assignor", [*OFTEN, *(pytest.param(name, marks=pytest.mark.deep) for name in ASSIGNORS if name not in OFTEN)]
)
def test_what_is_described_is_owned_and_what_is_predicted_happens(
    joined: dict[str, Consumers], shell: Shell, assignor: str
) -> None:
    if assignor not in joined:
        pytest.skip("KIP-848 groups came with Kafka 4.0")
    consumers = joined[assignor]
    before = at_rest(consumers, shell)
    group = shell.group(consumers.group_id)
    strategy, protocol = ASSIGNORS[assignor]
    assert [group["assignor"], group["type"]] == [strategy, protocol]
    predicted, doubts = shell.predicted(consumers.group_id, "bob", assignor)
    consumers.leave("bob")
    after = at_rest(consumers, shell)
    if assignor not in IS_FREE and not doubts:
        assert after == predicted
        return
    assert counts(after) == counts(predicted)
    for name in after:  # nobody who stays loses anything, as foretold
        assert keys(before[name]) <= keys(predicted[name])
        assert keys(before[name]) <= keys(after[name])


@pytest.mark.parametrize("protocol", [CLASSIC, pytest.param(CONSUMER, marks=pytest.mark.deep)])
def test_offsets_are_reset_only_without_members_and_every_client_sees_them(
    kafka: KafkaCluster, topics: list[str], shell: Shell, protocol: str
) -> None:
    if protocol == CONSUMER and not is_kafka_4(kafka):
        pytest.skip("KIP-848 groups came with Kafka 4.0")
    group_id = f"groups-reset-{protocol}-{RUN}"
    reset = ("reset-offsets", group_id)
    everything = ("--topic", ORDERS, "--topic", CLICKS)
    with Consumers(kafka.bootstrap, group_id, topics, "range", protocol) as consumers:
        consumers.join("ada")
        consumers.wait_until_all_is_owned(COUNT)
        refused = shell.run(*reset, *everything, "--to-latest", "--execute", expect=3)
        assert f"group {group_id} is Stable with 1 member" in refused.err
        assert "(KR918)" in shell.run("delete", group_id, "--execute", expect=3).err
        assert shell.committed(group_id) == {}
    lags = shell.group(group_id)["partitions"]
    assert lags == []
    shell.run(*reset, *everything, "--to-latest")
    assert shell.committed(group_id) == {}, "a reset is shown first"
    shell.run(*reset, *everything, "--to-latest", "--execute")
    full = {(name, number): RECORDS for name, count in PARTITIONS.items() for number in range(count)}
    assert shell.committed(group_id) == full
    shifted = shell.run(*reset, "--topic", f"{ORDERS}:0,3", "--shift-by", "-1000", "--execute")
    assert "each begins after that offset: set to its earliest offset (KR903)" in shifted.err
    wanted = full | {(ORDERS, 0): 0, (ORDERS, 3): 0}
    assert shell.committed(group_id) == wanted
    lags = shell.group(group_id)["partitions"]
    assert {(each["topic"], each["partition"]): each["lag"] for each in lags} == {
        key: RECORDS - offset for key, offset in wanted.items()
    }
    shell.run(*reset, "--all-topics", "--to-current", "--export", "offsets.csv")
    shell.run(*reset, "--all-topics", "--to-datetime", "2020-01-01T00:00:00Z", "--execute")
    assert set(shell.committed(group_id).values()) == {0}
    shell.run(*reset, "--all-topics", "--by-duration", "0s", "--execute")
    assert set(shell.committed(group_id).values()) == {RECORDS}
    shell.run(*reset, "--from-file", "offsets.csv", "--execute")
    assert shell.committed(group_id) == wanted
    shell.run("delete", group_id, "--execute")
    assert "there is no group" in shell.run("describe", group_id, expect=1).err


def test_kafkas_own_tool_and_ours_read_each_others_csv(
    kafka: KafkaCluster, topics: list[str], shell: Shell, tmp_path: Path
) -> None:
    group_id = f"groups-csv-{RUN}"
    assert topics
    ours = ("reset-offsets", group_id)
    shell.run(*ours, "--topic", ORDERS, "--to-offset", "7", "--execute")
    shell.run(*ours, "--topic", f"{CLICKS}:2", "--to-offset", "9", "--execute")
    before = shell.committed(group_id)
    assert before == {(ORDERS, number): 7 for number in range(PARTITIONS[ORDERS])} | {(CLICKS, 2): 9}
    shell.run(*ours, "--all-topics", "--to-current", "--export", "ours.csv")
    reset = ("--reset-offsets", "--group", group_id)
    theirs = kafka_tool(kafka, GROUPS_TOOL, *reset, "--all-topics", "--to-current", "--export")
    assert sorted(theirs.replace('"', "").split()) == (tmp_path / "ours.csv").read_text().split()
    (tmp_path / "theirs.csv").write_text(theirs)
    # Theirs is read by us.
    shell.run(*ours, "--all-topics", "--to-earliest", "--execute")
    shell.run(*ours, "--from-file", "theirs.csv", "--execute")
    assert shell.committed(group_id) == before
    # Ours is read by them.
    shell.run(*ours, "--all-topics", "--to-earliest", "--execute")
    file = str(tmp_path / "ours.csv")
    kafka_tool(kafka, GROUPS_TOOL, *reset, "--from-file", file, "--execute")
    assert shell.committed(group_id) == before
    shown = kafka_tool(kafka, GROUPS_TOOL, "--describe", "--group", group_id)
    rows = [line.split() for line in shown.splitlines() if line.startswith(group_id)]
    lags = shell.group(group_id)["partitions"]
    assert sorted((row[1], row[2], row[3], row[4], row[5]) for row in rows) == sorted(
        (str(each["topic"]), *(str(each[name]) for name in ("partition", "committed", "end", "lag"))) for each in lags
    )
