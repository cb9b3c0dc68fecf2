"""Small clusters, written as one line a partition: `orders-0: 1,2,3 isr 1,2 leader 2 size 100`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic

RACKS = "abc"


def small_cluster(
    *lines: str,
    brokers: Iterable[int] = range(1, 7),
    fenced: Iterable[int] = (),
    kafka_version: str | None = "4.1",
    configs: Mapping[str, Mapping[str, str]] | None = None,
    rates: Mapping[int, Mapping[str, str]] | None = None,
    disk_bytes: int = 10**12,
) -> Cluster:
    """Return a cluster whose brokers stand in racks a, b, c in turn, with two log dirs each."""
    parsed: dict[str, list[Partition]] = {}
    for line in lines:
        name, partition = _partition(line)
        parsed.setdefault(name, []).append(partition)
    topics = {
        name: Topic(name, tuple(parsed[name]), topic_id=f"id-of-{name}", configs=(configs or {}).get(name, {}))
        for name in sorted(parsed)
    }
    return Cluster(
        "simulated",
        brokers={
            broker_id: Broker(
                broker_id,
                rack=RACKS[(broker_id - 1) % 3],
                is_fenced=broker_id in set(fenced),
                log_dirs=(LogDir("/d1", disk_bytes, disk_bytes), LogDir("/d2", disk_bytes, disk_bytes)),
                configs=(rates or {}).get(broker_id, {}),
            )
            for broker_id in sorted(brokers)
        },
        topics=topics,
        observed_at="2026-11-21T14:00:00Z",
        kafka_version=kafka_version,
        controller_id=1,
    )


def with_cordons(observed: Cluster, broker_ids: Iterable[int]) -> Cluster:
    """Return the cluster with every log dir of these brokers cordoned by Kafka."""
    brokers = {
        id_: replace(one, log_dirs=tuple(replace(each, is_cordoned=True) for each in one.log_dirs or (LogDir("/d1"),)))
        for id_, one in observed.brokers.items()
        if id_ in set(broker_ids)
    }
    return replace(observed, brokers={**observed.brokers, **brokers})


def _partition(line: str) -> tuple[str, Partition]:
    key, _, rest = line.partition(": ")
    name, _, number = key.rpartition("-")
    words = rest.split()
    replicas = _ids(words[0])
    options = dict(zip(words[1::2], words[2::2], strict=True))
    isr = _ids(options.get("isr", words[0]))
    size = int(options["size"]) if "size" in options else None
    return name, Partition(
        int(number),
        leader=int(options["leader"]) if "leader" in options else (isr[0] if isr else None),
        replicas=replicas,
        isr=isr,
        sizes=(size,) * len(replicas) if size is not None else (),
        log_dirs=tuple(options.get("dir") or ("/d2", "/d1")[(int(number) + one) % 2] for one in replicas),
    )


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)
