"""The flat benchmark clusters: counts, racks and bytes alone, brokers that join or leave, replicas to add.

Brokers are dealt to racks in turn, topics are placed by Kafka's rack-alternating rule with a random start a topic, and
each partition's size is drawn alone from a lognormal (median 2 GB, sigma 1.2). Strict racks, balance `even`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from helpers.program.documents import document

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Spread,
)

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
MEDIAN_BYTES = 2e9
SIGMA = 1.2
STRICT = "placement: {racks: {spread: strict}}"


@dataclass(frozen=True, slots=True)
class FlatCase:
    """One kind of cluster; `before` is the replication factor observed, `after` the one asked for."""

    name: str
    brokers: int
    racks: int
    topics: int
    partitions: int
    before: int = 3
    after: int = 3
    joining: int = 0
    leaving: tuple[int, ...] = ()
    per_broker: int = 10
    seed: int = 20261121
    balance: Balance = field(default_factory=lambda: Balance(replicas=Even(), leaders=Even()))

    def build(self) -> tuple[Desired, Cluster]:
        """Return what is desired and what is observed."""
        return _desired(self), _observed(self)

    def write(self, root: Path) -> tuple[Path, Path]:
        """Write `root/desired-state/<name>/` and `root/<name>.json`; return the desired-state root and the snapshot."""
        desired = root / "desired-state"
        folder = desired / self.name
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").write_text(_cluster_yaml(self), encoding="utf-8")
        (folder / "topics.yaml").write_text(_topics_yaml(self), encoding="utf-8")
        snapshot = root / f"{self.name}.json"
        snapshot.write_text(snapshot_text(_observed(self)), encoding="utf-8")
        return desired, snapshot


CASE_A = FlatCase("a", brokers=6, racks=3, topics=60, partitions=12, joining=3)
CASE_B = FlatCase("b", brokers=9, racks=3, topics=60, partitions=12, leaving=(8,))
CASE_C = FlatCase("c", brokers=9, racks=3, topics=10, partitions=20, before=2)
CASE_D = FlatCase("d", brokers=60, racks=3, topics=400, partitions=50, leaving=(59,))
CASE_E = FlatCase("e", brokers=100, racks=4, topics=2000, partitions=100, joining=4)
CASES = {case.name: case for case in (CASE_A, CASE_B, CASE_C, CASE_D, CASE_E)}


def growing(partitions: int) -> FlatCase:
    """Return the kind of case d with that many partitions, so that cost can be read over size."""
    return replace(CASE_D, name=f"d{partitions}", topics=partitions // 50)


def rack_name(broker_id: int, racks: int) -> str:
    """Return the rack that a broker is dealt to."""
    return "abcdefgh"[broker_id % racks]


def kafka_placement(
    rack_of: Mapping[int, str], partitions: int, replication_factor: int, *, start: int, shift: int
) -> list[tuple[int, ...]]:
    """Return what Kafka's AdminUtils gives, partition by partition: brokers alternate over racks."""
    brokers = _alternated(rack_of)
    racks = len(set(rack_of.values()))
    placed = []
    for number in range(partitions):
        if number > 0 and number % len(brokers) == 0:
            shift += 1
        placed.append(
            _replicas_of(brokers, rack_of, (number + start) % len(brokers), shift * racks, replication_factor)
        )
    return placed


def _replicas_of(
    brokers: Sequence[int], rack_of: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    racks = set(rack_of.values())
    replicas = [brokers[first]]
    attempt = 0
    while len(replicas) < replication_factor:
        candidate = brokers[(first + 1 + (shift + attempt) % (len(brokers) - 1)) % len(brokers)]
        attempt += 1
        used = {rack_of[replica] for replica in replicas}
        is_rack_fine = rack_of[candidate] not in used or used == racks
        if candidate not in replicas and is_rack_fine:
            replicas.append(candidate)
    return tuple(replicas)


def _alternated(rack_of: Mapping[int, str]) -> list[int]:
    by_rack = {rack: sorted(b for b in rack_of if rack_of[b] == rack) for rack in sorted(set(rack_of.values()))}
    longest = max(len(brokers) for brokers in by_rack.values())
    return [brokers[i] for i in range(longest) for brokers in by_rack.values() if i < len(brokers)]


def _observed(case: FlatCase) -> Cluster:
    generator = np.random.default_rng(case.seed)
    everyone = range(case.brokers + case.joining)
    rack_of = {broker_id: rack_name(broker_id, case.racks) for broker_id in range(case.brokers)}
    return Cluster(
        cluster_id=CLUSTER_ID,
        brokers={b: Broker(b, rack_name(b, case.racks), f"kafka-{b}", 9092) for b in everyone},
        topics={name: _topic(case, name, rack_of, generator) for name in _topic_names(case)},
        observed_at="2026-11-21T14:02:11Z",
        kafka_version="4.3",
        controller_id=0,
    )


def _topic(case: FlatCase, name: str, rack_of: Mapping[int, str], generator: np.random.Generator) -> Topic:
    start, shift = (int(value) for value in generator.integers(0, case.brokers, 2))
    sizes = np.rint(MEDIAN_BYTES * np.exp(SIGMA * generator.standard_normal(case.partitions))).astype(np.int64)
    placed = kafka_placement(rack_of, case.partitions, case.before, start=start, shift=shift)
    partitions = tuple(
        Partition(number, replicas[0], replicas, replicas, sizes=(int(sizes[number]),) * len(replicas))
        for number, replicas in enumerate(placed)
    )
    return Topic(name, partitions)


def _topic_names(case: FlatCase) -> list[str]:
    return [f"topic-{number:04d}" for number in range(case.topics)]


def _desired(case: FlatCase) -> Desired:
    placement = Placement(racks_spread=Spread.STRICT)
    return Desired(
        cluster=DesiredCluster(
            name=case.name,
            cluster_id=CLUSTER_ID,
            brokers={b: DesiredBroker(b, BrokerState.DRAINING) for b in case.leaving},
            balance=case.balance,
        ),
        topics={
            name: DesiredTopic(name, partitions=case.partitions, replication_factor=case.after, placement=placement)
            for name in _topic_names(case)
        },
    )


def _cluster_yaml(case: FlatCase) -> str:
    leaving = "".join(f"    - {{id: {broker_id}, state: draining}}\n" for broker_id in case.leaving)
    return (
        "apiVersion: reconciler/v1\nkind: Cluster\n"
        f"metadata: {{name: {case.name}}}\n"
        "spec:\n"
        f"  clusterId: {CLUSTER_ID}\n"
        + (f"  brokers:\n{leaving}" if leaving else "")
        + "  balance: {replicas: even, leaders: even}\n"
        f"  moves: {{throttle: 50MiB/s, perBroker: {case.per_broker}}}\n"
        "---\n" + document("TopicClass", "flat", f"{{replicationFactor: {case.after}, {STRICT}}}")
    )


def _topics_yaml(case: FlatCase) -> str:
    return "---\n".join(
        document("Topic", name, f"{{class: flat, partitions: {case.partitions}}}") for name in _topic_names(case)
    )


def snapshot_text(observed: Cluster) -> str:
    """Return the snapshot file's text, written apart from the product's own writer."""
    return json.dumps(
        {
            "formatVersion": "1.0",
            "clusterId": observed.cluster_id,
            "observedAt": observed.observed_at,
            "kafkaVersion": observed.kafka_version,
            "controllerId": observed.controller_id,
            "brokers": [_broker_json(broker) for broker in observed.brokers.values()],
            "topics": [
                {"name": topic.name, "partitions": [_partition_json(partition) for partition in topic.partitions]}
                for topic in observed.topics.values()
            ],
        },
        separators=(",", ":"),
    )


def _broker_json(broker: Broker) -> dict[str, object]:
    return {"id": broker.id, "rack": broker.rack, "host": broker.host, "port": broker.port, "fenced": broker.is_fenced}


def _partition_json(partition: Partition) -> dict[str, object]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "sizes": list(partition.sizes),
    }
