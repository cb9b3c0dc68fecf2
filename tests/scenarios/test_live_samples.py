"""Samples of real brokers for a user with few rights, and beside a broker that is dead: unknown is told, never zero."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from helpers.brokers.by_hand import allow, create
from helpers.brokers.cluster import KafkaCluster
from helpers.program.warm import Ended, reconciler

pytestmark = pytest.mark.brokers

USERS = {"admin": "admin-password", "watcher": "watcher-password"}
TOPICS = {"open": [[1, 2], [2, 3]], "shut": [[3, 1]]}
RECORDS, BYTES = 30, 10_000


class Watcher:
    """Collects as a user with the rights that it is given."""

    def __init__(self, kafka: KafkaCluster, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.rounds = 0
        lines = (f"{key}={value}\n" for key, value in kafka.properties_of("watcher").items())
        (folder / "watcher.properties").write_text("".join(lines))

    def grant(self, kind: ResourceType, name: str) -> None:
        """Let the user describe that."""
        allow(self.kafka, "watcher", kind, name, AclOperation.DESCRIBE)

    def collect(self, *, expect: int = 0) -> Ended:
        """Take one round into a folder of its own."""
        self.rounds += 1
        arguments = ("collect", "--client", "watcher.properties", "--out", f"round-{self.rounds}")
        return reconciler(*arguments, cwd=self.folder, expect=expect)

    def collect_until(self, words: str) -> Ended:
        """Take rounds until one tells that: a right reaches all brokers a moment later."""
        told: list[Ended] = []

        def is_told() -> bool:
            told.append(self.collect())
            return words in told[-1].err

        self.kafka.wait_for(is_told, words)
        return told[-1]

    def partitions(self) -> dict[tuple[str, int], tuple[int | None, int | None]]:
        """Return size and end offset of each partition that the last round shows."""
        rows = self._rows(self.folder / f"round-{self.rounds}")
        return {(row["topic"], row["partition"]): (row["size_bytes"], row["end_offset"]) for row in rows}

    def starts(self) -> dict[tuple[str, int], int | None]:
        """Return the log start offset of each partition that the last round shows."""
        rows = self._rows(self.folder / f"round-{self.rounds}")
        return {(row["topic"], row["partition"]): row["log_start_offset"] for row in rows}

    def _rows(self, folder: Path) -> list[dict[str, Any]]:
        from pyarrow import dataset

        found: list[dict[str, Any]] = (
            dataset.dataset(folder, format="parquet", partitioning="hive").to_table().to_pylist()
        )
        assert {row["cluster"] for row in found} == {self.kafka.cluster_id}
        return found


def test_what_may_not_be_seen_and_what_a_dead_broker_holds_is_unknown_and_told(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster]
) -> None:
    kafka = new_kafka(broker_ids=(1, 2, 3), users=USERS)
    create(kafka, TOPICS)
    for name in TOPICS:
        kafka.produce(name, 0, size=RECORDS * BYTES, record_bytes=BYTES)
    watcher = Watcher(kafka, tmp_path)

    told = watcher.collect(expect=1).err
    assert "nothing can be sampled: sizes are unknown: Reading log dirs needs the right Describe on the cluster" in told
    assert not (tmp_path / "round-1").exists()

    watcher.grant(ResourceType.TOPIC, "open")
    kafka.wait_for(lambda: watcher_sees(watcher), "the right to be known")
    assert watcher.partitions() == {("open", 0): (None, RECORDS), ("open", 1): (None, 0)}
    assert watcher.starts() == {("open", 0): 0, ("open", 1): 0}

    watcher.grant(ResourceType.BROKER, "kafka-cluster")
    told = watcher.collect_until("needs the right Describe on topic shut").err
    assert "end offsets and leaders of some topics are unknown" in told
    (open_size, _), (shut_size, shut_end) = watcher.partitions()["open", 0], watcher.partitions()["shut", 0]
    assert shut_end is None
    for size in (open_size, shut_size):
        assert size is not None
        assert RECORDS * BYTES < size < 1.1 * RECORDS * BYTES

    kafka.kill(3)
    kafka.wait_until_gone(3)
    watcher.collect_until("broker 3 is not alive: what its log dirs hold is unknown")
    assert watcher.partitions()["open", 1] == (0, 0)


def watcher_sees(watcher: Watcher) -> bool:
    """Whether a round succeeds; it may fail while the right is on its way."""
    try:
        watcher.collect()
    except AssertionError:
        return False
    return len(watcher.partitions()) == 2
