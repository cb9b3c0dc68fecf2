"""The same figures with nothing around them, in Spark and in DuckDB.

`python bare_jobs.py spark|ours|duckdb loads|balance|brokers BUCKETS`, in a folder with samples and replicas. `spark` is
Spark as it comes, `ours` has the settings that the program gives it. The samples are known to be whole and clean, so
nothing is checked, counted or told. `loads`: of each partition average, 95th percentile, maximum and peak of three
rates, last size and growth, written as Parquet. `balance`: of each broker, rack, log dir and topic, and of the cluster,
average, 95th percentile, maximum and peak of what comes in and goes out, summed minute by minute, and the growth of
sizes, printed. What needs no samples (counts, how even a few hundred rows are) is not among them. `brokers`: the rates
of brokers only.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from benchmarks.sample_lake import LOG_DIR, RACKS, TOPICS, assignment
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATES = ("bytes_in", "bytes_out", "messages_in")
SAMPLES, OUT, REPLICAS = Path("samples"), "bare-loads", Path("replicas.parquet")
LOADS = """
WITH busiest AS (
  SELECT ts FROM {samples} GROUP BY ts ORDER BY sum(bytes_in) + sum(bytes_out) DESC LIMIT 1
), peaks AS (
  SELECT topic, partition, bytes_in AS bytes_in_peak, bytes_out AS bytes_out_peak, messages_in AS messages_in_peak
  FROM {samples} WHERE ts = (SELECT ts FROM busiest)
), statistics AS (
  SELECT cluster, topic, partition, {statistics},
    max_by(size_bytes, ts) AS size_bytes,
    regr_slope(size_bytes, {days}) AS growth_bytes_per_day,
    count(*) / {buckets} AS coverage
  FROM {samples} GROUP BY cluster, topic, partition
)
SELECT * FROM statistics JOIN peaks USING (topic, partition)
"""
# The rows of a level name what it is of, and leave the others null; the cluster's names none. Samples are read twice,
# which is cheaper than to sum by topic and broker at once.
BALANCE = """
WITH by_place AS (
  SELECT broker, rack, log_dir, ts, {sums}
  FROM {samples} JOIN replicas USING (topic, partition) GROUP BY broker, rack, log_dir, ts
), by_minute AS (
  SELECT broker, rack, log_dir, NULL AS topic, ts,
    sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, sum(size_bytes) AS size_bytes
  FROM by_place GROUP BY GROUPING SETS ((broker, ts), (rack, ts), (broker, log_dir, ts), (ts))
  UNION ALL
  SELECT NULL, NULL, NULL, topic, ts, 3 * sum(bytes_in), sum(bytes_out + 2 * bytes_in), 3 * sum(size_bytes)
  FROM {samples} GROUP BY topic, ts
), busiest AS (
  SELECT ts FROM by_place GROUP BY ts ORDER BY sum(itself) DESC LIMIT 1
)
SELECT broker, rack, log_dir, topic, {statistics}, regr_slope(size_bytes, {days}) AS growth_bytes_per_day, {peaks}
FROM by_minute GROUP BY broker, rack, log_dir, topic
"""
BALANCE_OF_BROKERS = """
WITH by_minute AS (
  SELECT broker, ts, {sums} FROM {samples} JOIN replicas USING (topic, partition) GROUP BY broker, ts
), busiest AS (
  SELECT ts FROM by_minute GROUP BY ts ORDER BY sum(itself) DESC LIMIT 1
)
SELECT broker, {statistics}, {peaks} FROM by_minute GROUP BY broker
"""
SUMS = """
  sum(bytes_in) AS bytes_in, sum(CASE WHEN leads THEN bytes_out + 2 * bytes_in END) AS bytes_out,
  sum(size_bytes) AS size_bytes, sum(CASE WHEN leads THEN bytes_in + bytes_out END) AS itself
"""
PEAKS = """
  max(CASE WHEN ts = (SELECT ts FROM busiest) THEN bytes_in END) AS bytes_in_peak,
  max(CASE WHEN ts = (SELECT ts FROM busiest) THEN bytes_out END) AS bytes_out_peak
"""
JOBS = {"loads": (LOADS, RATES), "balance": (BALANCE, RATES[:2]), "brokers": (BALANCE_OF_BROKERS, RATES[:2])}


def _query(job: str, buckets: int, *, samples: str, percentile: str, days: str) -> str:
    query, rates = JOBS[job]
    return query.format(
        samples=samples, sums=SUMS, statistics=statistics(rates, percentile), peaks=PEAKS, days=days, buckets=buckets
    )


def statistics(rates: tuple[str, ...], percentile: str) -> str:
    """Return the SQL of average, 95th percentile and maximum of these rates."""
    return ", ".join(
        f"avg({rate}) AS {rate}_avg, {percentile}({rate}, 0.95) AS {rate}_p95, max({rate}) AS {rate}_max"
        for rate in rates
    )


def write_replicas(path: Path) -> None:
    """Write one row for each replica of the lake: topic, partition, broker, rack, log_dir, leads."""
    held = assignment()
    numbers = [number for number in range(len(held)) for _ in range(3)]
    columns = {
        "topic": [f"topic-{number % TOPICS:04}" for number in numbers],
        "partition": pa.array([number // TOPICS for number in numbers], pa.int32()),
        "broker": pa.array(held.reshape(-1)),
        "rack": [f"r{broker % RACKS}" for broker in held.reshape(-1).tolist()],
        "log_dir": [LOG_DIR] * len(numbers),
        "leads": [True, False, False] * len(held),
    }
    parquet.write_table(pa.table(columns), path)


def on_our_session(job: str, buckets: int) -> list[Mapping[str, object]]:
    """Run it on the session that the program itself would make."""
    from reconciler.balance.spark.session import spark_session
    from reconciler.balance.spark.settings import SparkChoice

    with spark_session(SparkChoice("local[2]")) as spark:
        return _bare_spark(spark, job, buckets)


def on_spark_as_it_comes(job: str, buckets: int) -> list[Mapping[str, object]]:
    """Run it on a session with Spark's own settings."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    try:
        return _bare_spark(session, job, buckets)
    finally:
        session.stop()


def _bare_spark(spark: "SparkSession", job: str, buckets: int) -> list[Mapping[str, object]]:
    spark.read.parquet(str(SAMPLES.absolute())).createOrReplaceTempView("samples")
    query = _query(job, buckets, samples="samples", percentile="percentile", days="unix_micros(ts) / 86400e6")
    if job == "loads":
        spark.sql(query).write.parquet(str(Path(OUT).absolute()), mode="overwrite", compression="zstd")
        return []
    spark.read.parquet(str(REPLICAS.absolute())).createOrReplaceTempView("all_replicas")
    spark.sql("SELECT /*+ BROADCAST(all_replicas) */ * FROM all_replicas").createOrReplaceTempView("replicas")
    return [row.asDict() for row in spark.sql(query).collect()]


def bare_duckdb(job: str, buckets: int) -> list[Mapping[str, object]]:
    """Run it on two threads, as Spark has."""
    import duckdb

    samples = f"read_parquet('{SAMPLES}/*.parquet')"
    query = _query(job, buckets, samples=samples, percentile="quantile_cont", days="epoch_us(ts) / 86400e6")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET TimeZone = 'UTC'")
        if job == "loads":
            connection.execute(f"COPY ({query}) TO '{OUT}.parquet' (FORMAT parquet, COMPRESSION zstd)")
            return []
        connection.execute(f"CREATE VIEW replicas AS FROM '{REPLICAS}'")
        found = connection.execute(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


ENGINES: Mapping[str, Callable[[str, int], list[Mapping[str, object]]]] = {
    "spark": on_spark_as_it_comes,
    "ours": on_our_session,
    "duckdb": bare_duckdb,
}

if __name__ == "__main__":
    engine, job, buckets = sys.argv[1:]
    sys.stdout.write(json.dumps(ENGINES[engine](job, int(buckets))))
