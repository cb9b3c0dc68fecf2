"""The jobs on one set of samples, by whichever Spark runs this: `python -m balance.any_spark SAMPLES OUT [MASTER]`.

Each job's figures go into a file of OUT, floats to their last bit, so that those of two Sparks are compared as bytes.
With `existing` for a MASTER the jobs find a session with settings of its own, which must be the same afterwards.
"""

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import COLUMNS, START, drawn_rows, write_by_age, write_parquet
from helpers.samples.spark_session import AS_IT_STANDS

from reconciler.balance.model.balance_report import Headroom
from reconciler.balance.spark.settings import SparkChoice
from reconciler.balance.workflow.balance import make_balance
from reconciler.balance.workflow.loads import SparkJob, make_loads
from reconciler.files.plan_file import write_plan
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import LogDir
from reconciler.render.as_json import document
from reconciler.workflow.demo import write_demo
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.plan import make_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
EXISTING = "existing"
BUCKETS = 6
LOADS = ("even", "drawn", "texts", "prometheus", "snapshots")
# What would change figures, were it not for the settings of ours.
STRANGE_SETTINGS = {
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "7",
}


def make_lake(home: Path) -> None:
    """Write samples of every kind, some with everything wrong that can be, two clusters' snapshots, and a plan."""
    write_demo(str(home / "root"))
    snapshot = read_snapshot(home / "root" / "demo" / "snapshot.json")
    few = {name: snapshot.topics[name] for name in sorted(snapshot.topics)[:3]}
    bare = {
        one: replace(broker, log_dirs=tuple(LogDir(each.path) for each in broker.log_dirs))
        for one, broker in snapshot.brokers.items()
    }
    far = replace(snapshot, cluster_id="other", brokers=bare, topics=few)
    write_snapshot(snapshot, home / "states" / "demo.json")
    write_snapshot(far, home / "states" / "far.json")
    write_plan(make_plan(Inputs(str(home / "root"), "demo")).plan, str(home / "plan.json"))
    random = Random(3)
    rows = [
        Row(
            START + 1800 * bucket, name, key.topic, key.partition, random.lognormvariate(9, 2),
            random.lognormvariate(10, 2), random.lognormvariate(4, 1), 10**6 * (bucket + 1) + random.randrange(10**5),
            100 * bucket,
        )
        for name, cluster in (("demo", snapshot), ("far", far))
        for key, _ in cluster.partitions()
        for bucket in range(BUCKETS)
    ]  # fmt: skip
    write_parquet(home / "even" / "part-0.parquet", rows)
    write_by_age(home / "broken", _broken(random, rows))
    write_by_age(home / "drawn", drawn_rows(5))
    _write_texts(home / "texts", drawn_rows(6))
    _write_prometheus(home / "prometheus" / "answer.json")
    _write_snapshots(home / "snapshots")


def _broken(random: Random, rows: list[Row]) -> list[Row]:
    """Leave some out, let some counters begin anew, tell some twice, of others no rate; in files of several ages."""
    kept = [replace(row, written=random.choice((100, 100, 200))) for row in rows if random.random() > 0.15]
    for row in kept:
        if random.random() < 0.2:
            row.bytes_in = row.messages_in = None
        if random.random() < 0.05:
            row.end_offset = 1
    return kept + [replace(row, bytes_in=1.5) for row in random.sample(kept, 20)]


def _write_texts(folder: Path, rows: list[Row]) -> None:
    """Write half of the rows as CSV and half as lines of JSON, with times in every form, and some that are none."""
    folder.mkdir()
    texts = [{name: getattr(row, name) for name in COLUMNS} for row in rows]
    for number, text in enumerate(texts):
        seconds = text["ts"]
        if seconds is not None:
            at = datetime.fromtimestamp(seconds, UTC)
            forms = (f"{at:%Y-%m-%dT%H:%M:%S.%f}", f"{at:%Y-%m-%d %H:%M:%S}", f"{seconds:.3f}", f"{seconds * 1000:.0f}")
            text["ts"] = (*forms, seconds, "12:30", " ")[number % 7]
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(texts[::2])
    lines = [json.dumps({name: value for name, value in text.items() if str(value) != "nan"}) for text in texts[1::2]]
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    for file_ in folder.iterdir():
        os.utime(file_, (START, START))


def _write_prometheus(path: Path) -> None:
    """Write the sizes, offsets and counters of two brokers, one of which starts again and is silent for a while."""
    random = Random(8)

    def series(metric: str, values: Mapping[int, float], **labels: str) -> dict[str, Any]:
        points = [[START + 60 * minute, str(value)] for minute, value in values.items()]
        return {"metric": {"__name__": metric, "topic": "t", **labels}, "values": points}

    found = []
    for number in range(3):
        step = random.randrange(5, 50)
        offsets = {minute: step * (minute if minute < 12 else minute - 11) for minute in range(20) if minute % 7}
        sizes = {minute: 107 * offset + random.randrange(9) for minute, offset in offsets.items()}
        labels = {"instance": "a", "partition": str(number)}
        found += [
            series("kafka_log_log_logendoffset", offsets, **labels),
            series("kafka_log_log_size", sizes, **labels),
        ]
    for broker in ("a", "b"):
        counter = {minute: 1e4 * (minute % 13) + random.random() for minute in range(20) if broker == "a" or minute > 4}
        found.append(series("kafka_server_brokertopicmetrics_bytesin_total", counter, instance=broker))
    path.parent.mkdir()
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}))
    os.utime(path, (START, START))


def _write_snapshots(folder: Path) -> None:
    folder.mkdir()
    for moment, (sizes, end_offset) in enumerate((([500, 700], 10), ([1000, 1200], 110), ([400, 1700], 210))):
        part = {"leader": 2, "replicas": [1, 2], "isr": [1, 2], "sizes": sizes, "endOffset": end_offset}
        path = folder / f"{moment}.json"
        topics = [{"name": "t", "partitions": [{"partition": number, **part} for number in range(2)]}]
        at = f"2026-03-29T0{moment}:00:00Z"
        told = {"formatVersion": "1.0", "clusterId": "id", "observedAt": at, "brokers": [], "topics": topics}
        path.write_text(json.dumps(told, indent=1))
        os.utime(path, (START, START))


def run_all(lake: Path, out: Path, choice: SparkChoice) -> None:
    """Run each job once and write what it found to a file of its own."""
    out.mkdir()
    for name in LOADS:
        inputs = Inputs(str(lake / "root"), "demo" if name == "prometheus" else None)
        job = SparkJob(NOW, (str(lake / name),), spark=choice)
        report = make_loads(inputs, job, str(out / "tables" / name))
        _write(out / f"loads-{name}.txt", document(report), out / "tables" / name)
    everywhere = Inputs(str(lake / "root"), "*", str(lake / "states"))
    plans = (str(lake / "plan.json"),)
    for name in ("even", "broken"):
        job = SparkJob(NOW, (str(lake / name),), spark=choice)
        tables = out / "tables" / f"balance-{name}"
        found = make_balance(everywhere, job, plans=plans, out=str(tables), headroom=Headroom(0.8))
        _write(
            out / f"balance-{name}.txt", document(replace(found, source="")), tables / "figures", tables / "evenness"
        )
    by_loads = make_balance(everywhere, SparkJob(NOW, spark=choice), loads=str(out / "tables" / "even"), plans=plans)
    _write(out / "balance-loads.txt", document(replace(by_loads, source="")))


def _write(path: Path, text: str, *tables: Path) -> None:
    from pyarrow import parquet

    written = [
        "\n".join(map(repr, parquet.read_table(part).to_pylist()))
        for table in tables
        for part in sorted(table.glob("*.parquet"))
    ]
    path.write_text("\n".join([text, *written]))


@contextmanager
def strange_session(spark: "SparkSession") -> Iterator[None]:
    """Give the session settings of its own, and check that it has the same ones, and works, at the end."""
    for key, value in STRANGE_SETTINGS.items():
        spark.conf.set(key, value)
    before = _settings(spark)
    yield
    assert _settings(spark) == before
    assert {key: before[key] for key in STRANGE_SETTINGS} == STRANGE_SETTINGS
    at = spark.sql("SELECT cast(timestamp_seconds(0) AS string) AS at, try_cast('x' AS int) AS none").collect()[0]
    assert (at["at"], at["none"]) == ("1970-01-01 01:00:00", None)
    assert spark.range(3).count() == 3


def _settings(spark: "SparkSession") -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def main() -> None:
    """Be the program."""
    lake, out, *master = sys.argv[1:]
    if master != [EXISTING]:
        run_all(Path(lake), Path(out), SparkChoice(master[0] if master else None, conf=AS_IT_STANDS))
        return
    from pyspark.sql import SparkSession

    is_remote = bool(os.environ.get("SPARK_REMOTE"))
    builder = SparkSession.builder if is_remote else SparkSession.builder.master("local[3]")
    spark = builder.getOrCreate()
    with strange_session(spark):
        run_all(Path(lake), Path(out), SparkChoice("local[1]", conf=AS_IT_STANDS))
    spark.stop()


if __name__ == "__main__":
    main()
