"""What a plan says it copies of tiered topics, against what the new replicas then hold (KIP-405, KIP-1023)."""

import json
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import assigned, declare
from helpers.figures import Tell
from helpers.program.warm import reconciler
from helpers.waiting import HANG

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

SEGMENT = {"remote.storage.enable": "true", "segment.bytes": "1048576"}
# What is left on the leader's disk: all, the last half, none of the tiered, or what remains after records were deleted.
TOPICS = {
    "whole": SEGMENT | {"local.retention.ms": "3600000"},
    "half": SEGMENT | {"local.retention.bytes": "6000000"},
    "little": SEGMENT | {"local.retention.bytes": "1500000"},
    "cut": SEGMENT | {"local.retention.ms": "3600000"},
}
CUT_AT = 500
WRITTEN = 12_500_000


@pytest.mark.parametrize(
    ("version", "setting"), [("4.3.0", "true"), ("4.3.0", "false"), ("4.1.1", None)], ids=["1023", "405", "4.1"]
)
def test_the_estimate_of_tiered_topics_is_what_is_copied(
    version: str, setting: str | None, tmp_path: Path, figures: Tell
) -> None:
    settings = {} if setting is None else {"follower.fetch.last.tiered.offset.enable": setting}
    with KafkaCluster(version=version, broker_ids=(1, 2, 3), is_tiered=True, settings=settings) as kafka:
        made(kafka)
        declare(tmp_path, kafka, "moves: {throttle: 50MiB/s}", dict.fromkeys(TOPICS, assigned({0: (1, 2, 3)})))
        reconciler("plan", "--out", "plan.json", "--detailed-exitcode", cwd=tmp_path, expect=2)
        planned = json.loads((tmp_path / "plan.json").read_text())
        assert planned["proof"]["tieredBytes"] == ("untiered" if setting == "true" else "local")
        reconciler("show", "plan.json", "--prove", cwd=tmp_path)
        told = {move["topic"]: move["bytes"] for stage in planned["stages"] for move in stage.get("moves", ())}
        reconciler("apply", "plan.json", "--yes", cwd=tmp_path)
        copied = {name: on_disk(kafka, 3, name) for name in TOPICS}
        shares = {name: told[name] / copied[name] for name in TOPICS}
        figures("tiered topics", f"Kafka {version}, KIP-1023 {setting}: estimated over copied bytes {shares}")
        assert all(0.9 <= share <= 1.2 for share in shares.values()), (told, copied)
        if setting == "true":
            assert told["half"] < WRITTEN / 5 < told["whole"]


def made(kafka: KafkaCluster) -> None:
    """Make the topics on brokers 1 and 2, full, and wait until the remote tier has all that it will take."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for name, config in TOPICS.items():
        create(kafka, {name: [[1, 2]]}, config)
        kafka.produce(name, 0, size=WRITTEN)
    for answer in admin.delete_records([TopicPartition("cut", 0, CUT_AT)]).values():
        answer.result(timeout=HANG)
    kafka.wait_for(lambda: at_rest(kafka), "the remote tier to hold all but the last segments")


def at_rest(kafka: KafkaCluster) -> bool:
    """Whether each topic's full segments are in the remote tier, and nothing is on disk that is to go."""
    most = {"whole": WRITTEN * 1.1, "half": 7_600_000, "little": 2_700_000, "cut": 8_000_000}
    least = {"whole": 12, "half": 12, "little": 12, "cut": 7}
    return all(uploaded(kafka, name) >= least[name] and on_disk(kafka, 1, name) <= most[name] for name in TOPICS)


def uploaded(kafka: KafkaCluster, name: str) -> int:
    return len([file for file in kafka.remote_dir.rglob("*.log") if f"{name}-0" in str(file.parent)])


def on_disk(kafka: KafkaCluster, broker_id: int, name: str) -> int:
    """Return the bytes of a replica's segments, counted in its folder."""
    return sum(
        file.stat().st_size for log_dir in kafka.log_dirs(broker_id) for file in (log_dir / f"{name}-0").glob("*.log")
    )
