"""The kinds of cluster with loads: counts, leaders, disk and network to balance at once, with strict racks.

A topic's in-rate is lognormal (sigma 1.5), a partition's skew of it lognormal (0.5); size = rate x retention, lognormal
(0.7) a topic; out = rate x fan-out, lognormal (median 1.5, sigma 0.6) a topic. All is scaled so that the old brokers
stand at 60 % of 2 TB (drifted: 45 %), 21 % of 200 MB/s in and 20 % of 200 MB/s out, what followers fetch included.
Placed by Kafka's rack-alternating rule; *drifted*: brokers at random in distinct racks, weighted by a lognormal (0.25).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from helpers.clusters.flat_clusters import CLUSTER_ID, kafka_placement, rack_name, snapshot_text
from pyarrow import parquet

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
    Within,
)
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition

FACTOR = 3
DISK_BYTES = 2_000_000_000_000
NETWORK_BYTES = 200_000_000
FIGURES = ("avg", "p95", "max", "peak")
MEASURES = ("replicas", "leaders", "disk", "networkIn", "networkOut")


@dataclass(frozen=True, slots=True)
class LoadsCase:
    """One kind of cluster; every measure is asked to be within `band` of its fair share.

    `replicas` and `disk` are bands of their own for these two.
    """

    name: str
    brokers: int
    racks: int
    topics: int
    partitions: int
    joining: int = 0
    leaving: tuple[int, ...] = ()
    is_drifted: bool = False
    seed: int = 20261121
    band: Fraction = Fraction(9, 100)
    replicas: Fraction | None = None
    disk: Fraction | None = None

    def build(self) -> tuple[Desired, Cluster, Loads]:
        """Return what is desired, what is observed, and the loads of all partitions."""
        random = np.random.default_rng(self.seed)
        placed = self._placed(random)
        rate_in, rate_out, size = self._drawn(random)
        topics = {}
        loads = {}
        for number in range(self.topics):
            name = f"topic-{number:04d}"
            topics[name] = Topic(
                name,
                tuple(
                    Partition(p, replicas[0], replicas, replicas, sizes=(int(size[number, p]),) * FACTOR)
                    for p, replicas in enumerate(placed[number])
                ),
            )
            for p in range(self.partitions):
                loads[TopicPartition(name, p)] = PartitionLoad(
                    int(rate_in[number, p]), int(rate_out[number, p]), int(size[number, p])
                )
        everyone = range(self.brokers + self.joining)
        brokers = {b: Broker(b, rack_name(b, self.racks), f"kafka-{b}", 9092) for b in everyone}
        observed = Cluster(CLUSTER_ID, brokers, topics, observed_at="2026-11-21T14:02:11Z", kafka_version="4.3")
        return self._desired(), observed, Loads(loads)

    def write(self, root: Path) -> tuple[Path, Path, Path]:
        """Write the desired state, the snapshot and the loads under `root`; return where each is."""
        _, observed, loads = self.build()
        desired, snapshot, folder = root / "desired-state", root / f"{self.name}.json", root / "loads"
        (desired / self.name).mkdir(parents=True)
        folder.mkdir()
        (desired / self.name / "cluster.yaml").write_text(self._yaml(), encoding="utf-8")
        snapshot.write_text(snapshot_text(observed), encoding="utf-8")
        rows = [
            {
                "cluster": self.name,
                "topic": key.topic,
                "partition": key.partition,
                **{f"bytes_in_{figure}": float(load.bytes_in or 0) for figure in FIGURES},
                **{f"bytes_out_{figure}": float(load.bytes_out or 0) for figure in FIGURES},
                "size_bytes": load.size_bytes,
            }
            for key, load in loads.of.items()
        ]
        parquet.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")
        return desired, snapshot, folder

    def _yaml(self) -> str:
        bands = dict.fromkeys(MEASURES, self.band) | {"replicas": self.replicas or self.band}
        bands["disk"] = self.disk or self.band
        asked = ", ".join(f"{name}: {{within: {float(100 * band):g}%}}" for name, band in bands.items())
        leaving = "".join(f"    - {{id: {broker_id}, state: draining}}\n" for broker_id in self.leaving)
        return (
            "apiVersion: reconciler/v1\nkind: Cluster\n"
            f"metadata: {{name: {self.name}}}\n"
            "spec:\n"
            f"  clusterId: {CLUSTER_ID}\n" + (f"  brokers:\n{leaving}" if leaving else "") + f"  balance: {{{asked}}}\n"
            "  moves: {throttle: 50MiB/s, perBroker: 100}\n"
            "---\n"
            "apiVersion: reconciler/v1\nkind: Topic\n"
            'metadata: {names: ["topic-*"]}\n'
            "spec: {placement: {racks: {spread: strict}}}\n"
        )

    def _placed(self, random: np.random.Generator) -> list[list[tuple[int, ...]]]:
        rack_of = {broker_id: rack_name(broker_id, self.racks) for broker_id in range(self.brokers)}
        if self.is_drifted:
            weight = np.exp(0.25 * random.standard_normal(self.brokers))
            return [[_drifted(random, rack_of, weight) for _ in range(self.partitions)] for _ in range(self.topics)]
        placed = []
        for _ in range(self.topics):
            start, shift = (int(value) for value in random.integers(0, self.brokers, 2))
            placed.append(kafka_placement(rack_of, self.partitions, FACTOR, start=start, shift=shift))
        return placed

    def _drawn(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bytes in and bytes out a second of each leader, and bytes of each replica, [topics, partitions]."""
        topic = np.exp(1.5 * random.standard_normal((self.topics, 1)))
        skew = np.exp(0.5 * random.standard_normal((self.topics, self.partitions)))
        retention = np.exp(0.7 * random.standard_normal((self.topics, 1)))
        fan_out = 1.5 * np.exp(0.6 * random.standard_normal((self.topics, 1)))
        rate = topic * skew
        disk = (0.45 if self.is_drifted else 0.60) * DISK_BYTES * self.brokers / FACTOR
        network_in = 0.21 * NETWORK_BYTES * self.brokers / FACTOR
        consumed = 0.20 * NETWORK_BYTES * self.brokers - (FACTOR - 1) * network_in
        rate_in, rate_out, size = rate, rate * fan_out, rate * retention
        return (
            np.rint(rate_in * (network_in / rate_in.sum())).astype(np.int64),
            np.rint(rate_out * (consumed / rate_out.sum())).astype(np.int64),
            np.rint(size * (disk / size.sum())).astype(np.int64),
        )

    def _desired(self) -> Desired:
        within: BalanceTarget = Within(self.band)
        replicas: BalanceTarget = Within(self.replicas or self.band)
        at = {name: Location(f"{self.name}/cluster.yaml", 10 + line) for line, name in enumerate(MEASURES)}
        placement = Placement(racks_spread=Spread.STRICT)
        names = [f"topic-{number:04d}" for number in range(self.topics)]
        return Desired(
            cluster=DesiredCluster(
                name=self.name,
                cluster_id=CLUSTER_ID,
                brokers={b: DesiredBroker(b, BrokerState.DRAINING) for b in self.leaving},
                balance=Balance(
                    replicas, within, disk=Within(self.disk or self.band), network_in=within, network_out=within, at=at
                ),
            ),
            topics={name: DesiredTopic(name, replication_factor=FACTOR, placement=placement) for name in names},
        )


def _drifted(random: np.random.Generator, rack_of: Mapping[int, str], weight: np.ndarray) -> tuple[int, ...]:
    """Return brokers drawn one after the other by weight, each in a rack of its own."""
    chosen: list[int] = []
    free = weight.copy()
    while len(chosen) < FACTOR:
        broker_id = int(random.choice(len(free), p=free / free.sum()))
        chosen.append(broker_id)
        free[[other for other, rack in rack_of.items() if rack == rack_of[broker_id]]] = 0.0
    return tuple(chosen)


A_ADD = LoadsCase("a-add", brokers=6, racks=3, topics=60, partitions=12, joining=3)
A_DRIFT = LoadsCase("a-drift", brokers=9, racks=3, topics=60, partitions=12, is_drifted=True)
C_REMOVE = LoadsCase("c-remove", brokers=60, racks=3, topics=400, partitions=50, leaving=(59,))
# Where disks may be as uneven as they are, only what must move does; racks leave 20,000 replicas to 19 brokers.
C_REMOVE_ONLY = replace(C_REMOVE, name="c-remove-only", band=Fraction(2, 10), replicas=Fraction(36, 1000))
C_DRIFT = LoadsCase("c-drift", brokers=60, racks=3, topics=400, partitions=50, is_drifted=True)
D_ADD = LoadsCase("d-add", brokers=100, racks=4, topics=2000, partitions=100, joining=4)
A_DRIFT_DISK = replace(A_DRIFT, name="a-drift-disk", disk=Fraction(67, 1000))
C_DRIFT_DISK = replace(C_DRIFT, name="c-drift-disk", disk=Fraction(83, 1000))
"""The disks as even as Cruise Control left them."""
LOADS_CASES = {
    case.name: case for case in (A_ADD, A_DRIFT, A_DRIFT_DISK, C_REMOVE, C_REMOVE_ONLY, C_DRIFT, C_DRIFT_DISK, D_ADD)
}
