"""What a log's start offset tells of an end offset that fell or rose: a new log, or the same one."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import parquet

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.balance.model.load_report import ClusterSamples

NOW = datetime(2027, 1, 1, tzinfo=UTC)
COLUMNS = "ts,cluster,topic,partition,bytes_in,bytes_out,messages_in,end_offset,log_start_offset"
# By topic: end and start offset minute by minute, and how many messages came since the first; None: nobody knows.
LOGS: dict[str, tuple[list[tuple[int, int | None]], int | None]] = {
    "same log, cut": ([(100, 50), (40, 50)], None),
    "made again": ([(100, 50), (40, 0)], 40),
    "made again, larger now": ([(100, 50), (150, 0)], 150),
    "made again, records deleted": ([(100, 50), (40, 10)], 40),
    "replica that lags": ([(100, 50), (40, 20), (160, 55)], 60),
    "leader that lagged": ([(100, 50), (80, 20)], None),
    "no start known": ([(100, None), (40, None)], 40),
    "start unknown now": ([(100, 50), (40, None)], 40),
    "nothing deleted": ([(100, 0), (40, 0)], 40),
    "nothing deleted, cut": ([(100, 0), (80, 0)], None),
}


def _loads(
    spark: "SparkSession", folder: Path, *lines: str
) -> "tuple[dict[str | None, ClusterSamples], dict[str, float | None]]":
    from reconciler.balance.spark.loads_job import SampleTask, run_loads

    folder.mkdir()
    (folder / "samples.csv").write_text("\n".join(lines), "utf-8")
    files = find_sample_files([str(folder)]).files
    told = run_loads(spark, SampleTask(files, 60, NOW), str(folder / "out"), document).clusters
    rows = parquet.read_table(folder / "out").to_pylist()
    grown = {row["topic"]: row["messages_in_max"] for row in rows if row["cluster"] == "c"}
    return {one.cluster: one for one in told}, grown


def test_a_log_start_offset_says_whether_a_log_began_anew(spark: "SparkSession", tmp_path: Path) -> None:
    lines = [
        f'2026-11-20T12:{minute:02}:00Z,c,"{topic}",0,,,,{end},{"" if start is None else start}'
        for topic, (log, _) in LOGS.items()
        for minute, (end, start) in enumerate(log)
    ]
    measured = ("2026-11-20T12:00:00Z,m,t,0,1,1,1,100,50", "2026-11-20T12:01:00Z,m,t,0,1,1,1,150,0")
    told, most = _loads(spark, tmp_path / "growth", COLUMNS, *lines, *measured)
    seconds = {topic: 60 * (len(log) - 1) for topic, (log, _) in LOGS.items()}
    grown = {topic: None if rate is None else round(rate * seconds[topic]) for topic, rate in most.items()}
    assert grown == {topic: messages for topic, (_, messages) in LOGS.items()}
    assert (told["c"].all_defects["counterReset"], told["c"].all_defects["fallenOffset"]) == (6, 4)
    assert told["m"].all_defects["counterReset"] == 1
