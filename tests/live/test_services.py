"""Services that lack some of Kafka's requests, or refuse them: each verb works, shows less, or says why it cannot."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.refusing import Refusing
from helpers.program.warm import Ended, reconciler

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

BROKERS = (1, 2, 3, 4)
ALTER_LOG_DIRS, LOG_DIRS, ELECT, REASSIGN, REASSIGNING, QUORUM, CLUSTER, TOPIC_PARTITIONS = (
    34,
    35,
    43,
    45,
    46,
    55,
    60,
    75,
)
CONSUMER_GROUPS = {68, 69}
LIKE_REDPANDA = {ALTER_LOG_DIRS, ELECT, QUORUM, CLUSTER, TOPIC_PARTITIONS, *CONSUMER_GROUPS}
WITHOUT_PLACEMENT = {ALTER_LOG_DIRS, LOG_DIRS, ELECT, REASSIGN, REASSIGNING, QUORUM, TOPIC_PARTITIONS}
LOOKS = (
    ("status",), ("doctor",), ("snapshot", "--out", "s.json"), ("topics", "list"), ("topics", "describe", "t"),
    ("groups", "list"), ("diff",), ("collect", "--out", "samples"),
)  # fmt: skip


def _text(ended: Ended) -> str:
    return ended.out + ended.err


def _tried(folder: Path, version: str, service: Refusing) -> Mapping[str, str]:
    """Create a topic, look at it with each verb, and return what they told: all of them must end well."""
    with KafkaCluster(
        version=version,
        broker_ids=BROKERS,
        is_plain=True,  # the proxy reads what is asked, and answers some of it
        listeners={"FAR": "PLAINTEXT"},
        advertised={"FAR": service.addresses},
    ) as kafka:
        service.lead_to({broker: kafka.listener("FAR", broker) for broker in kafka.alive})

        def write(factor: int, retention: str) -> None:
            spec = f"partitions: 6, replicationFactor: {factor}, config: {{retention.ms: {retention}}}"
            declare(folder, kafka, topics={"t": spec}, client=f'{{bootstrap.servers: "{service.bootstrap}"}}')

        write(2, "1d")
        reconciler("plan", "--out", "new.json", cwd=folder)
        reconciler("apply", "new.json", "--yes", cwd=folder)
        told = {" ".join(verb): _text(reconciler(*verb, cwd=folder)) for verb in LOOKS}
        write(2, "2d")
        reconciler("plan", "--out", "config.json", cwd=folder)
        reconciler("apply", "config.json", "--yes", cwd=folder)
        write(3, "2d")
        for name, verb in (
            ("plan", ("plan", "--out", "grown.json")),
            ("dry run", ("apply", "grown.json", "--dry-run")),
            ("apply", ("apply", "grown.json", "--yes")),
            ("cancel", ("cancel", "grown.json")),
        ):
            ended = reconciler(*verb, cwd=folder, expect=None)
            told[name] = f"{ended.code}: {_text(ended)}"
    return told


def test_what_lacks_elections_and_the_description_of_the_cluster_is_planned_and_moved(
    tmp_path: Path, kafka_version: str
) -> None:
    with Refusing(BROKERS, lacking=LIKE_REDPANDA) as service:
        told = _tried(tmp_path, kafka_version, service)
    assert (
        "not taken by these brokers: ElectLeaders (preferred-leader elections); AlterReplicaLogDirs" in told["doctor"]
    )
    assert "not looked at: the quorum: these brokers do not take DescribeQuorum" in told["doctor"]
    assert told["plan"].startswith("0: ")
    assert told["apply"].startswith("0: ")
    assert "all 6 moves done" in told["apply"]
    assert not LIKE_REDPANDA & {*service.asked}


def test_what_places_replicas_itself_takes_topics_and_configs_and_refuses_moves_before_any_change(
    tmp_path: Path, kafka_version: str
) -> None:
    with Refusing(BROKERS, lacking=WITHOUT_PLACEMENT) as service:
        told = _tried(tmp_path, kafka_version, service)
    assert "not looked at: log dirs: these brokers do not take DescribeLogDirs" in told["doctor"]
    assert "sizes are unknown: these brokers do not take DescribeLogDirs" in told["collect --out samples"]
    for verb in ("plan", "dry run", "apply"):
        assert told[verb].startswith("3: "), verb
        assert "these brokers do not take AlterPartitionReassignments" in told[verb], verb
    assert not WITHOUT_PLACEMENT & {*service.asked}


def test_what_refuses_moves_is_told_as_a_missing_right_and_nothing_is_left(tmp_path: Path, kafka_version: str) -> None:
    with Refusing(BROKERS, lacking=(), refused={REASSIGN: 31}) as service:
        told = _tried(tmp_path, kafka_version, service)
    assert told["apply"].startswith("1: ")
    assert "needs the right Alter on the cluster" in told["apply"]
    assert "nothing of plan" in told["cancel"]
