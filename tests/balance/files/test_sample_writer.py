"""Samples as files: what is in them, where they lie, and that every reader takes them as they are."""

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.balance.files import sample_writer
from reconciler.balance.files.sample_writer import Round, escaped, write_round
from reconciler.model.cluster import Partition, Topic
from reconciler.model.problem import ReconcilerError
from reconciler.model.sample import ClusterSample, ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition

AT = datetime(2026, 11, 21, 14, 2, 11, 250_000, tzinfo=UTC)
ORDERS, CLICKS, HIDDEN = TopicPartition("orders", 0), TopicPartition("clicks", 3), TopicPartition("secrets", 1)
SAMPLE = ClusterSample(
    "id",
    topics={
        "clicks": Topic("clicks", (Partition(3, leader=None, replicas=(1, 2), isr=()),)),
        "orders": Topic("orders", (Partition(0, leader=2, replicas=(1, 2), isr=(1, 2)),)),
    },
    replicas=(
        ReplicaOnDisk(ORDERS, 1, "/d1", 700, 5),
        ReplicaOnDisk(ORDERS, 2, "/d1", 500, 0),
        ReplicaOnDisk(ORDERS, 2, "/d2", 900, 10, is_future=True),
        ReplicaOnDisk(HIDDEN, 1, "/d1", 30, None),
    ),
    end_offsets={ORDERS: 42},
)


def rows(folder: Path) -> list[dict[str, object]]:
    from pyarrow import dataset  # it imports pandas

    found = dataset.dataset(folder, format="parquet", partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: (row["topic"], row["partition"]))


def test_a_partition_has_the_bytes_of_its_leader_and_what_is_not_told_is_null(tmp_path: Path) -> None:
    write_round(tmp_path, "prod", AT, SAMPLE)
    told = [(row["topic"], row["partition"], row["size_bytes"], row["end_offset"]) for row in rows(tmp_path)]
    assert told == [("clicks", 3, None, None), ("orders", 0, 500, 42), ("secrets", 1, 30, None)]
    assert {(row["bytes_in"], row["bytes_out"], row["messages_in"]) for row in rows(tmp_path)} == {(None, None, None)}
    assert {(row["ts"], row["cluster"], row["date"]) for row in rows(tmp_path)} == {(AT, "prod", "2026-11-21")}


def test_columns_have_the_types_of_the_contract(tmp_path: Path) -> None:
    write_round(tmp_path, "prod", AT, SAMPLE)
    (file,) = tmp_path.rglob("*.parquet")
    assert [f"{each.name}: {each.type}" for each in pq.ParquetFile(file).schema_arrow] == [
        "ts: timestamp[us, tz=UTC]", "cluster: string", "topic: string", "partition: int32", "bytes_in: double",
        "bytes_out: double", "messages_in: double", "size_bytes: int64", "end_offset: int64",
    ]  # fmt: skip


def test_where_logs_start_is_a_column_of_its_own_where_it_is_known(tmp_path: Path) -> None:
    write_round(tmp_path, "prod", AT, replace(SAMPLE, start_offsets={ORDERS: 0}))
    assert [(row["topic"], row["log_start_offset"]) for row in rows(tmp_path)] == [
        ("clicks", None),
        ("orders", 0),
        ("secrets", None),
    ]
    assert not {"estimated"} & {*rows(tmp_path)[0]}


def test_two_rounds_of_the_same_moment_are_two_files_and_no_other_is_left(tmp_path: Path) -> None:
    for _ in range(2):
        write_round(tmp_path, "prod", AT, SAMPLE)
    on_disk = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    assert len(on_disk) == 2
    assert {file.name[:23] for file in on_disk} == {"20261121T140211.250000Z"}


def test_the_day_is_that_of_utc(tmp_path: Path) -> None:
    midnight = datetime(2026, 11, 22, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    write_round(tmp_path, "prod", midnight, SAMPLE)
    (file,) = tmp_path.rglob("*.parquet")
    assert file.parent.name == "date=2026-11-21"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("prod-eu", "prod-eu"),
        ("a/../b", "a%2F..%2Fb"),
        ("50%=x", "50%25%3Dx"),
        ("ü:\n", "ü%3A%0A"),
        ("MkU_-w", "MkU_-w"),
    ],
)
def test_a_name_of_any_characters_is_one_folder_and_comes_back(tmp_path: Path, name: str, folder: str) -> None:
    assert escaped(name) == folder
    write_round(tmp_path, name, AT, SAMPLE)
    (file,) = tmp_path.rglob("*.parquet")
    assert file.parent.parent == tmp_path / f"cluster={folder}"
    assert {row["cluster"] for row in rows(tmp_path)} == {name}


def test_nothing_to_write_writes_nothing(tmp_path: Path) -> None:
    assert write_round(tmp_path, "prod", AT, ClusterSample("id")) == Round(0, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_is_cut_off_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(KeyboardInterrupt):
        write_round(tmp_path, "prod", AT, SAMPLE)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ReconcilerError, match="the samples cannot be written: ") as caught:
        write_round(tmp_path / "taken", "prod", AT, SAMPLE)
    assert caught.value.code == sample_writer.UNWRITTEN


def test_without_pyarrow_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ReconcilerError, match=r"pip install 'WHEEL\[loads\]'$"):
        sample_writer.require_pyarrow()
