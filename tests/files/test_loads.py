"""Measured loads from Parquet: what is read, what is refused and in which words."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from reconciler.files.loads import LoadsUnreadable, read_loads, seen_of_loads
from reconciler.model.gates import Seen
from reconciler.model.loads import PartitionLoad, Statistic
from reconciler.model.problem import InvalidInput
from reconciler.model.topic_partition import TopicPartition

RATES = ("bytes_in", "bytes_out", "messages_in")
FIGURES = ("avg", "p95", "max", "peak")


def _row(partition: object = 0, cluster: str = "prod", **values: object) -> dict[str, object]:
    """Return a row as `loads` writes it; each rate's average is 1, its peak 4."""
    rates = {f"{rate}_{name}": float(n) for rate in RATES for n, name in enumerate(FIGURES, start=1)}
    more = {"size_bytes": 1000, "growth_bytes_per_day": 1.0, "coverage": 1.0}
    return {"cluster": cluster, "topic": "orders", "partition": partition, **rates, **more, **values}


def _written(folder: Path, rows: Sequence[Mapping[str, object]], name: str = "part-0.parquet") -> str:
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), folder / name)
    return str(folder)


def test_the_peak_is_read_unless_the_average_is_asked_for_and_halves_are_rounded_up(tmp_path: Path) -> None:
    folder = _written(tmp_path / "loads", [_row(3, bytes_in_peak=9.5, bytes_out_peak=2.4), _row(1, bytes_in_avg=0.2)])
    loads = read_loads(folder, "prod")
    assert loads.of == {
        TopicPartition("orders", 1): PartitionLoad(4, 4, 1000),
        TopicPartition("orders", 3): PartitionLoad(10, 2, 1000),
    }
    assert list(loads.of) == sorted(loads.of)
    average = read_loads(folder, "prod", Statistic.AVERAGE)
    assert average.of[TopicPartition("orders", 1)] == PartitionLoad(0, 1, 1000)


def test_a_null_is_unknown_and_never_zero(tmp_path: Path) -> None:
    rows = [_row(0, bytes_in_peak=None, size_bytes=None), _row(1)]
    loads = read_loads(_written(tmp_path / "loads", rows), "prod")
    assert loads.of[TopicPartition("orders", 0)] == PartitionLoad(None, 4, None)


def test_all_files_of_a_folder_count_and_those_of_spark_that_hold_no_rows_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "loads"
    _written(folder, [_row(0)])
    _written(folder, [_row(1), _row(0, cluster="other")], "part-1.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_bytes(b"crc")
    assert len(read_loads(str(folder), "prod").of) == 2


def test_folders_by_cluster_are_read_as_one_table(tmp_path: Path) -> None:
    row = {name: value for name, value in _row(5).items() if name != "cluster"}
    folder = tmp_path / "loads"
    folder.mkdir()
    _written(folder / "cluster=prod", [row])
    assert list(read_loads(str(folder), "prod").of) == [TopicPartition("orders", 5)]


def test_a_cluster_without_rows_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    folder = _written(tmp_path / "loads", [_row(cluster="staging"), _row(cluster="dev")])
    with pytest.raises(LoadsUnreadable, match=r"has no row of cluster prod: it has dev, staging") as raised:
        read_loads(folder, "prod")
    assert raised.value.code == "KR153"


def test_a_folder_that_is_not_there_is_empty_or_holds_no_parquet_is_told(tmp_path: Path) -> None:
    with pytest.raises(LoadsUnreadable, match="there is no such folder"):
        read_loads(str(tmp_path / "nowhere"), "prod")
    with pytest.raises(LoadsUnreadable, match="holds no Parquet file"):
        read_loads(str(tmp_path), "prod")
    (tmp_path / "notes.parquet").write_text("not parquet", encoding="utf-8")
    with pytest.raises(LoadsUnreadable, match="cannot be read as Parquet"):
        read_loads(str(tmp_path), "prod")


def test_a_missing_column_is_named_with_the_columns_there_are(tmp_path: Path) -> None:
    row = _row()
    del row["bytes_out_peak"]
    with pytest.raises(LoadsUnreadable, match=r"lacks the columns bytes_out_peak \(it has cluster, topic") as raised:
        read_loads(_written(tmp_path / "loads", [row]), "prod")
    assert raised.value.code == "KR152"


def test_columns_of_another_type_are_named(tmp_path: Path) -> None:
    rows = [_row(bytes_in_peak="many", partition=1.5)]
    with pytest.raises(LoadsUnreadable, match=r"partition must be whole numbers, not double; column bytes_in_peak"):
        read_loads(_written(tmp_path / "loads", rows), "prod")


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e30])
def test_a_load_that_is_no_amount_is_refused_with_its_partition(tmp_path: Path, value: float) -> None:
    rows = [_row(0), _row(7, bytes_in_peak=value)]
    with pytest.raises(InvalidInput, match=r"orders-7: bytes_in_peak is .*; a load is a number of bytes, 0 or more"):
        read_loads(_written(tmp_path / "loads", rows), "prod")


def test_rows_that_stand_twice_or_name_no_partition_are_all_told_up_to_a_bound(tmp_path: Path) -> None:
    rows = [_row(0), _row(0), _row(1, topic=None), *(_row(2) for _ in range(40))]
    with pytest.raises(InvalidInput) as raised:
        read_loads(_written(tmp_path / "loads", rows), "prod")
    messages = [problem.message for problem in raised.value.problems]
    assert any("orders-0 of cluster prod stands there twice" in message for message in messages)
    assert any("no topic or no partition" in message for message in messages)
    assert len(messages) == 21
    assert messages[-1].endswith("21 more rows are wrong")


def test_without_pyarrow_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LoadsUnreadable, match=r"pip install 'WHEEL\[loads\]'") as raised:
        read_loads(str(tmp_path), "prod")
    assert raised.value.code == "KR151"


@pytest.mark.parametrize(
    "told",
    [
        {"lastBucket": "yesterday", "samples": "many", "defects": {"late": 1}},
        {"lastBucket": "2026-11-21T00:00:00", "samples": 9, "defects": ["late"]},
        {"lastBucket": 7, "samples": True, "defects": None},
        {"lastBucket": [], "samples": -1, "defects": {}},
    ],
)
def test_a_strange_report_beside_loads_tells_nothing(tmp_path: Path, told: dict[str, object]) -> None:
    parquet.write_table(pa.table({"cluster": ["prod"], "coverage": [0.5]}), tmp_path / "loads.parquet")
    report = tmp_path / "_report.json"
    report.write_text(json.dumps({"clusters": [{"cluster": "prod"} | told]}), "utf-8")
    assert seen_of_loads(str(tmp_path), "prod", datetime(2026, 11, 22, tzinfo=UTC)) == Seen("prod", 0.5)
    own = {"lastBucket": "2026-11-21T00:00:00Z", "samples": 9, "defects": {"late": 1, "gap": "two"}}
    report.write_text(json.dumps({"clusters": [{"cluster": "prod"} | own]}), "utf-8")
    assert seen_of_loads(str(tmp_path), "prod", datetime(2026, 11, 22, tzinfo=UTC)) == Seen(
        "prod", 0.5, 86400, 9, {"late": 1}
    )
