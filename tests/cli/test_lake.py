import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.lakes import GROWN, MEASURED, measured, write_day, write_file
from cli.test_json_outputs import check
from helpers.program.call import Program

from reconciler.balance.model.lake_report import LakeReport, MadeDay
from reconciler.balance.render.as_lake_report import lake_report_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--lake", "lake"), "name what to do with the lake"),
        (("--lake", "lake", "--out", "loads", "--state", "snapshot.json"), "--state does not go with --lake"),
        (("--lake", "lake", "--out", "loads", "--days", "0"), "--days"),
        (("--samples", "samples"), "name the folder to write: --out DIR"),
    ],
)
def test_wrong_usage_of_a_lake(reconciler: Program, arguments: tuple[str, ...], says: str) -> None:
    ended = reconciler("loads", *arguments)
    assert (ended.code, says in ended.err) == (64, True), ended.err


def test_a_folder_of_others_is_refused_before_spark_is_started(reconciler: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,topic,partition\n")
    ended = reconciler("loads", "--samples", str(tmp_path), "--lake", str(tmp_path))
    assert (ended.code, "holds other things, such as a.csv" in ended.err, "KR295" in ended.err) == (1, True, True)


def test_what_was_brought_is_told_for_each_cluster() -> None:
    days = [MadeDay("prod", f"2026-11-{day:02}") for day in range(1, 8)]
    report = LakeReport(60, 2, (MadeDay(None, None), *days, MadeDay("test", None)), 9, ("a.txt: passed over",))
    assert lake_report_lines(report, "lake") == [
        "note: a.txt: passed over",
        "lake: 2 files taken, 9 days made, 9 days in all",
        "  samples of no cluster: samples without a day",
        "  prod: 7 days from 2026-11-01 to 2026-11-07",
        "  test: samples without a day",
    ]
    assert lake_report_lines(LakeReport(60), "lake") == ["lake: 0 files taken, no day to make, 0 days in all"]


def test_a_lake_is_brought_up_to_date_and_read(
    spark: "SparkSession", reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark  # the verbs find it
    monkeypatch.chdir(tmp_path)
    none = reconciler("loads", "--lake", "lake", "--out", "loads")
    assert (none.code, "there is no lake yet" in none.err, "KR298" in none.err) == (1, True, True)
    write_day(tmp_path / "samples", 0)
    taken = reconciler("loads", "--samples", "samples", "--lake", "lake", "--cluster", "unnamed", "-o", "json")
    check("lake", taken.out)
    report = json.loads(taken.out)
    assert report["taken"] == 1
    assert {day["cluster"] for day in report["made"]} == {MEASURED, GROWN, "unnamed"}
    write_file(tmp_path / "samples", "day 1.parquet", measured(1))
    again = reconciler(
        "loads", "--samples", "samples", "--lake", "lake", "--out", "loads", "--cluster", MEASURED, "-o", "json"
    )
    assert "1 file taken, 1 day made, 5 days in all" in again.err, again.err
    check("loads", again.out)
    assert [(one["cluster"], one["samples"]) for one in json.loads(again.out)["clusters"]] == [(MEASURED, 96)]
    other = reconciler("loads", "--lake", "lake", "--out", "loads", "--bucket", "5m")
    assert (other.code, "time buckets of 60 s, not of 300 s" in other.err) == (1, True)
