"""Tables as other tools write them: columns that no sample has, quotes, types, and times that are none."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import Rule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

TS = "2026-03-29T00:00:00Z"
MOMENT = datetime(2026, 3, 29, tzinfo=UTC)


def _parquet(path: Path, topic: str, **columns: "pa.Array[Any]") -> None:
    import pyarrow as pa
    from pyarrow import parquet

    keys = {
        "ts": pa.array([MOMENT] * 2, pa.timestamp("us", tz="UTC")),
        "topic": pa.array([topic] * 2),
        "partition": pa.array([0, 1], pa.int32()),
    }
    parquet.write_table(pa.table(keys | columns), path)


def test_what_other_tools_write_is_read_as_it_is_meant(spark: "SparkSession", tmp_path: Path) -> None:
    import pyarrow as pa

    (tmp_path / "odd.csv").write_text(
        "kafka.version,written_at,ts,TOPIC,topic,partition,corrupt,,bytes_in,,unreadable_line,_c0\n"
        f"4.3,x,{TS},X,odd,0,,,100,,y,z\n"
        f"4.3,x,{TS},X,odd,1,,,200,,y,z\n"
    )
    (tmp_path / "quotes.csv").write_text(
        f'ts,cluster,topic,partition,bytes_in\n{TS},"prod ""eu"", west",quotes,0,1\n{TS},back\\slash,quotes,1,2\n'
    )
    lines = [
        {"ts": ts, "topic": "times", "partition": number, "bytes_in": 1}
        for number, ts in enumerate((TS, "00:00:00", "T00:00:00Z"))
    ]
    (tmp_path / "times.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _parquet(
        tmp_path / "types.parquet",
        "types",
        bytes_in=pa.array([Decimal("10.25"), None], pa.decimal128(10, 2)),
        size_bytes=pa.array([2**40, 2**64 - 1], pa.uint64()),
        bytes_out=pa.array([None, None], pa.null()),
    )
    from reconciler.balance.spark.normalise import MARKS, rules_of

    # It makes windows where it is loaded, which takes a session.
    from reconciler.balance.spark.sources import read_samples

    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    defects: list[tuple[tuple[str, int], Rule]] = []
    for row in read_samples(spark, find_sample_files([str(tmp_path)]).files).collect():
        key = (row["topic"], row["partition"])
        found[key] = (row["cluster"], row["ts"] is not None, row["bytes_in"], row["bytes_out"], row["size_bytes"])
        defects += [(key, rule) for rule in rules_of(row[MARKS])]
    assert found == {
        ("odd", 0): (None, True, 100.0, None, None),
        ("odd", 1): (None, True, 200.0, None, None),
        ("quotes", 0): ('prod "eu", west', True, 1.0, None, None),
        ("quotes", 1): ("back\\slash", True, 2.0, None, None),
        ("times", 0): (None, True, 1.0, None, None),
        ("times", 1): (None, False, 1.0, None, None),
        ("times", 2): (None, False, 1.0, None, None),
        ("types", 0): (None, True, 10.25, None, 2**40),
        ("types", 1): (None, True, None, None, None),
    }
    # A time without its day is none, and what Kafka counts in 63 bits has no more.
    assert sorted(defects) == [(key, Rule.UNREADABLE) for key in (("times", 1), ("times", 2), ("types", 1))]
