"""Small random clusters and samples for the balance, and the job run on them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from balance.oracle import Sample

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.balance.spark.balance_job import Assignments, Balance

BUCKET_SECONDS = 60
START = datetime(2026, 3, 29, tzinfo=UTC)  # a day on which the clocks of Europe change


def random_cluster(random: Random, *, brokers: int = 6, topics: int = 4, has_log_dirs: bool = True) -> Cluster:
    """Return a cluster with all that may be: no leader, no rack, an unknown size, a broker that holds nothing."""
    ids = range(1, brokers + 1)
    held = ids[:-1]
    found = {}
    for name in (f"topic-{number}" for number in range(topics)):
        partitions = []
        for number in range(random.randint(1, 6)):
            replicas = tuple(random.sample(held, random.randint(1, 3)))
            leader = random.choice([*replicas, replicas[0], None])
            sizes = tuple(random.choice([None, random.randrange(10**6), 5]) for _ in replicas)
            dirs = tuple(random.choice(["/d1", "/d2"]) for _ in replicas) if has_log_dirs else ()
            partitions.append(Partition(number, leader, replicas, replicas, sizes=sizes, log_dirs=dirs))
        found[name] = Topic(name, tuple(partitions))
    return Cluster(
        "id",
        brokers={
            one: Broker(
                one,
                rack=None if one == 3 else "ab"[one % 2],
                log_dirs=(LogDir("/d1", 10**9, 10**8 * one), LogDir("/d2", 10**9, None if one == 2 else 10**8)),
            )
            for one in ids
        },
        topics=found,
    )


def random_samples(random: Random, cluster: Cluster, *, buckets: int = 9, gaps: float = 0.1) -> list[Sample]:
    """Return samples with gaps and unknown rates, all whole thousandths; some of a topic that is not there."""
    keys = [(key.topic, key.partition) for key, _ in cluster.partitions()]
    return [
        Sample(
            topic,
            partition,
            bucket,
            None if random.random() < gaps else random.randrange(10**9) / 1000,
            None if random.random() < gaps else random.randrange(10**9) / 1000,
            None if random.random() < gaps else random.randrange(10**9),
        )
        for topic, partition in [*keys, ("gone", 0)]
        for bucket in range(buckets)
        if random.random() >= gaps
    ]


def moved(random: Random, cluster: Cluster) -> Cluster:
    """Return the cluster with about half of its partitions elsewhere; sizes and log dirs move along."""
    topics = {}
    for name, topic in cluster.topics.items():
        partitions = []
        for one in topic.partitions:
            if random.random() < 0.5:
                new = tuple(random.sample(sorted(cluster.brokers), len(one.replicas)))
                leader = None if one.leader is None else new[one.replicas.index(one.leader)]
                partitions.append(replace(one, replicas=new, isr=new, leader=leader))
            else:
                partitions.append(one)
        topics[name] = replace(topic, partitions=tuple(partitions))
    return replace(cluster, topics=topics)


BUCKETED = (
    "cluster string, topic string, partition int, bucket timestamp, "
    "bytes_in double, bytes_out double, messages_in double, size_bytes bigint"
)


def time_of(bucket: int) -> datetime:
    """Return the start of that bucket."""
    return START + timedelta(seconds=BUCKET_SECONDS * bucket)


def sample_frame(spark: "SparkSession", samples: Mapping[str, Sequence[Sample]]) -> "DataFrame":
    """Return the samples of each cluster as the table that the job reads."""
    rows = [
        (name, one.topic, one.partition, time_of(one.bucket), one.bytes_in, one.bytes_out, None, one.size_bytes)
        for name, told in samples.items()
        for one in told
    ]
    return spark.createDataFrame(rows, BUCKETED)


def assigned(
    spark: "SparkSession",
    before: Mapping[str, Cluster],
    after: Mapping[str, Cluster] | None = None,
    capacities: Mapping[str, Mapping[int, int]] | None = None,
    *,
    weights: Mapping[str, Mapping[int, Mapping[str, int]]] | None = None,
    has_retention: bool = False,
) -> "Assignments":
    """Return the job's tables of these clusters."""
    from reconciler.balance.files.assignment_table import (
        AFTER,
        Side,
        Weighed,
        broker_table,
        partition_table,
        place_table,
    )
    from reconciler.balance.files.retention_table import retention_table
    from reconciler.balance.spark.balance_job import assignments

    sides = [Side(name, cluster) for name, cluster in before.items()]
    sides += [Side(name, cluster, AFTER) for name, cluster in (after or {}).items()]
    weighed = {name: Weighed(each, (weights or {}).get(name, {})) for name, each in (capacities or {}).items()}
    tables = partition_table(sides), place_table(sides), broker_table(sides, weighed)
    retention = retention_table(sides) if has_retention else None
    return assignments(spark, *tables, has_plan=after is not None, retention=retention)


@contextmanager
def balanced(
    spark: "SparkSession",
    samples: Mapping[str, Sequence[Sample]],
    before: Mapping[str, Cluster],
    after: Mapping[str, Cluster] | None = None,
    capacities: Mapping[str, Mapping[int, int]] | None = None,
    *,
    weights: Mapping[str, Mapping[int, Mapping[str, int]]] | None = None,
    has_retention: bool = False,
) -> Iterator["Balance"]:
    """Yield the balance of these clusters by these samples."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    from reconciler.balance.spark.balance_job import balance_of_samples
    from reconciler.balance.spark.buckets import as_rows

    tables = assigned(spark, before, after, capacities, weights=weights, has_retention=has_retention)
    buckets = sample_frame(spark, samples).withColumn("bucket", F.unix_micros("bucket"))
    with balance_of_samples(tables, as_rows(buckets, F.lit(col=True)), BUCKET_SECONDS) as balance:
        yield balance
