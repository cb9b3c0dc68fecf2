"""Samples by the million, quickly and always the same: 100,000 partitions in buckets of a minute, on 200 brokers."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

CLUSTER = "lake"
PARTITIONS = int(os.environ.get("BENCHMARK_PARTITIONS", "100000"))
BROKERS = 200
RACKS = 4
LOG_DIR = "/d"
TOPICS = PARTITIONS // 100
START_MICROS = 1_700_000_000 * 10**6 // 60_000_000 * 60_000_000
MINUTE_MICROS = 60 * 10**6
ROWS_A_FILE = 1_000_000


def write_lake(
    folder: Path, buckets: int, *, cluster: str = CLUSTER, partitions: int = PARTITIONS, brokers: int = BROKERS
) -> None:
    """Write `samples/*.parquet`, a sample for each partition and bucket with no defect, and `snapshot.json`."""
    (folder / "samples").mkdir(parents=True)
    topic_count = partitions // 100
    names = [f"topic-{number:04}" for number in range(topic_count)]
    topics = np.arange(partitions, dtype=np.int32) % topic_count
    numbers = np.arange(partitions, dtype=np.int32) // topic_count
    size = np.random.default_rng(1).lognormal(11, 1, partitions)
    a_file = max(1, ROWS_A_FILE // partitions)
    for first in range(0, buckets, a_file):
        count = min(a_file, buckets - first)
        drawn = np.random.default_rng([2, first])
        scale = np.tile(size, count)
        minutes = np.repeat(np.arange(first, first + count, dtype=np.int64), partitions)
        rates = {
            name: np.round(scale * factor * drawn.lognormal(0, 0.6, len(scale)), 3)
            for name, factor in (("bytes_in", 1.0), ("bytes_out", 2.0), ("messages_in", 0.001))
        }
        table = pa.table(
            {
                "ts": pa.array(START_MICROS + minutes * MINUTE_MICROS, pa.timestamp("us", "UTC")),
                "cluster": _texts([cluster], np.zeros(len(scale), np.int32)),
                "topic": _texts(names, np.tile(topics, count)),
                "partition": np.tile(numbers, count),
                **rates,
                "size_bytes": (scale * 3600).astype(np.int64) + minutes * 1000,
                "end_offset": minutes * 60,
            }
        )
        parquet.write_table(table, folder / "samples" / f"{first:05}.parquet", compression="zstd")
    (folder / "snapshot.json").write_text(json.dumps(_snapshot(size, cluster, brokers)))


def assignment(
    partitions: int = PARTITIONS, brokers: int = BROKERS
) -> "np.ndarray[tuple[int, int], np.dtype[np.int32]]":
    """Return each partition's three brokers, the leader first, each in another rack."""
    number = np.arange(partitions, dtype=np.int64)
    leader = (number * 7919) % brokers
    return np.stack([leader, (leader + 1) % brokers, (leader + 2) % brokers], axis=1).astype(np.int32)


def _texts(names: list[str], codes: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes, names)


def _snapshot(
    size: "np.ndarray[tuple[int], np.dtype[np.float64]]", cluster: str, broker_count: int
) -> dict[str, object]:
    topic_count = len(size) // 100
    brokers = [
        {
            "id": number,
            "rack": f"r{number % RACKS}",
            "logDirs": [{"path": LOG_DIR, "totalBytes": 10**14, "usableBytes": 5 * 10**13}],
        }
        for number in range(broker_count)
    ]
    topics: list[dict[str, object]] = [
        {"name": f"topic-{number:04}", "partitions": []} for number in range(topic_count)
    ]
    held = assignment(len(size), broker_count).tolist()
    for number, bytes_held in enumerate((size * 3600).astype(np.int64).tolist()):
        found = topics[number % topic_count]["partitions"]
        assert isinstance(found, list)
        replicas = held[number]
        found.append(
            {
                "partition": number // topic_count,
                "leader": replicas[0],
                "replicas": replicas,
                "isr": replicas,
                "sizes": [bytes_held] * 3,
                "logDirs": [LOG_DIR] * 3,
            }
        )
    return {"formatVersion": "1.0", "clusterId": cluster, "brokers": brokers, "topics": topics}
