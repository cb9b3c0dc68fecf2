"""Lakes of three days and a late file: brought in one run, in runs that die, day by day."""

import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from balance.clusters import assigned
from balance.lakes import (
    DAY,
    GROWN,
    MEASURED,
    NOW,
    bring,
    contents,
    day_of,
    grown,
    late,
    measured,
    times,
    write_day,
    write_file,
)
from helpers.samples import load_oracle
from helpers.samples.load_oracle import Expected, Row
from helpers.samples.sample_tables import START

from reconciler.balance.files.ledger import Day
from reconciler.balance.files.sample_files import Found, Kind, SampleFile, find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.problem import ReconcilerError
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.balance.files.ledger import Ledger

DAYS = 3
LATE_DAY = 1
LOOK_BACK = 7200


class Died(BaseException):
    """A run ended where it stood."""


def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(START + day * DAY, UTC):%Y-%m-%d}"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with everything in it."""
    folder = tmp_path_factory.mktemp("samples of days")
    for day in range(DAYS):
        write_day(folder, day)
    write_file(folder, "late.parquet", late(LATE_DAY))
    return folder


@pytest.fixture(scope="module")
def whole(spark: "SparkSession", samples: Path, tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, Ledger]":
    """Return the lake that took everything in one run."""
    place = tmp_path_factory.mktemp("whole lake") / "größe %20 [x]*"
    ledger, report = bring(spark, place, samples)
    days = [(name, _date(day)) for name in (MEASURED, GROWN) for day in range(DAYS)]
    assert {tuple(day) for day in ledger.made} == {(None, None), (GROWN, None), *days}
    assert (report.taken, report.days, len(report.made)) == (DAYS + 1, 8, 8)
    return place, ledger


def test_late_data_after_a_run_that_died_ends_where_one_whole_run_ends(
    spark: "SparkSession", tmp_path: Path, whole: "tuple[Path, Ledger]", monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = tmp_path / "in", tmp_path / "lake"
    for day in range(DAYS):
        write_day(folder, day)
    with monkeypatch.context() as planted:
        _die(planted, "make_gold", 0)
        with pytest.raises(Died):
            bring(spark, place, folder)
    write_file(folder, "late.parquet", late(LATE_DAY))
    _, report = bring(spark, place, folder)
    assert report.taken == 1
    assert contents(place) == contents(whole[0])


@pytest.mark.deep
def test_runs_that_die_late_data_and_a_file_that_changes_end_where_one_whole_run_ends(
    spark: "SparkSession", tmp_path: Path, whole: "tuple[Path, Ledger]", monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = tmp_path / "in", tmp_path / "lake"
    write_file(folder, "day 0.parquet", [row for row in day_of(0) if row.partition != 1])
    for day, (name, after) in enumerate((("_written", 1), ("make_gold", 0), ("_written", 1))):
        if day:
            write_day(folder, day)
        with monkeypatch.context() as planted:
            _die(planted, name, after)
            with pytest.raises(Died):
                bring(spark, place, folder)
    ledger, report = bring(spark, place)
    assert (report.taken, report.days) == (0, 8)
    before = times(place)
    write_file(folder, "late.parquet", late(LATE_DAY))
    _, report = bring(spark, place, folder)
    assert [(day.cluster, day.date) for day in report.made] == [(MEASURED, _date(LATE_DAY))]
    assert {Path(path).parent.name for path, _ in before.items() ^ times(place).items()} == {f"date={_date(LATE_DAY)}"}
    assert all(f"cluster={MEASURED}" in path for path, _ in before.items() ^ times(place).items())
    write_day(folder, 0)
    ledger, report = bring(spark, place, folder)
    assert {(day.cluster, day.date) for day in report.made} == {
        (None, None), (GROWN, None), *((name, _date(day)) for name in (MEASURED, GROWN) for day in (0, 1)),
    }  # fmt: skip
    assert contents(place) == contents(whole[0])
    assert {day.date for day in ledger.made} == {day.date for day in whole[1].made}


def _die(planted: pytest.MonkeyPatch, name: str, after: int) -> None:
    """Let the run end at a call of that function of the lake, after so many calls."""
    from reconciler.balance.spark import lake

    calls = 0
    found: Callable[..., object] = getattr(lake, name)

    def counted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls > after:
            raise Died
        return found(*arguments)

    planted.setattr(lake, name, counted)


def test_a_day_of_gold_is_what_the_oracle_makes_of_it_and_of_the_evening_before(whole: "tuple[Path, Ledger]") -> None:
    for cluster, rows_of in ((MEASURED, measured), (GROWN, grown)):
        rows = [row for day in range(DAYS) for row in rows_of(day)] + (late(LATE_DAY) if cluster == MEASURED else [])
        for day in range(DAYS):
            expected = _expected_of_day(rows, cluster, START + day * DAY)
            found = _read(whole[0] / "gold" / "loads", cluster, day)
            assert [(cluster, row["topic"], row["partition"]) for row in found] == sorted(expected.loads)
            for row in found:
                _assert_close(row, expected.loads[cluster, row["topic"], row["partition"]])


def _expected_of_day(rows: Sequence[Row], cluster: str, start: int) -> Expected:
    tally: dict[str | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if None in {row.ts, row.topic, row.cluster} or not start - LOOK_BACK <= (row.ts or 0) < start + DAY:
            continue
        groups[cluster, row.topic or "", row.partition or 0].append(load_oracle._clean(row, tally[cluster]))
    series = {key: load_oracle._one_a_moment(found, tally[cluster]) for key, found in groups.items()}
    for found in series.values():
        load_oracle._grow(found, tally[cluster])
    of_day = {key: [sample for sample in found if sample["ts"] >= start] for key, found in series.items()}
    return load_oracle._summed_up({key: found for key, found in of_day.items() if found}, tally, 60)


def _assert_close(row: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        near = {"rel_tol": 1e-6, "abs_tol": 1e-6} if name == "growth_bytes_per_day" else {"rel_tol": 1e-9}
        assert row[name] is value or math.isclose(row[name], value, **near), (row["partition"], name, row[name], value)


def test_samples_at_a_uri_are_taken_once_into_a_lake_at_a_uri(spark: "SparkSession", tmp_path: Path) -> None:
    from reconciler.balance.spark.lake import LakeTask, update

    write_file(tmp_path / "in put", "day 0.parquet", measured(0))
    write_file(tmp_path / "in put" / "cluster=named", "day 1.parquet", measured(1))
    uri = f"file://{tmp_path}/in put"
    place = SampleFile(uri, Kind.PLACE, root=uri)
    task = LakeTask(f"file://{tmp_path}/lake", NOW, find=lambda _: Found((place,)))
    ledger, report = update(spark, task)
    assert (report.taken, {tuple(day) for day in ledger.made}) == (2, {(MEASURED, _date(0)), (MEASURED, _date(1))})
    _, again = update(spark, task)
    assert (again.taken, again.made) == (0, ())
    assert len(_read(tmp_path / "lake" / "gold" / "loads", MEASURED, 1)) == 2


@pytest.mark.deep
def test_a_run_beside_another_one_at_a_uri_gives_up_and_spoils_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    from reconciler.balance.spark import lake

    place = f"file://{tmp_path}/lake"
    for name, rows in (("ours", measured(0, partitions=1)), ("theirs", late(0))):
        write_file(tmp_path / name, "day.parquet", rows)

    def find(_: Callable[[Path], bool]) -> Found:
        if not (tmp_path / "lake" / "bronze").exists():
            lake.update(spark, lake.LakeTask(place, NOW, find=lambda _: files("theirs")))
        return files("ours")

    def files(name: str) -> Found:
        return Found((SampleFile(f"file://{tmp_path}/{name}", Kind.PLACE, root=f"file://{tmp_path}/{name}"),))

    with pytest.raises(ReconcilerError, match="another run has worked on this lake"):
        lake.update(spark, lake.LakeTask(place, NOW, find=find))
    ledger, _ = lake.update(spark, lake.LakeTask(place, NOW, find=find))
    assert {row["partition"] for row in _read(tmp_path / "lake" / "silver", MEASURED, 0)} == {0, 2}

    # Both write the ledger of one number, ours first.
    shutil.copytree(tmp_path / "lake" / "_ledger", tmp_path / "other" / "_ledger")
    ours = lake._written(spark, place, ledger)
    lake._written(spark, f"file://{tmp_path}/other", ledger)
    shutil.copytree(tmp_path / "other" / "_ledger", tmp_path / "lake" / "_ledger", dirs_exist_ok=True)
    with pytest.raises(ReconcilerError, match="another run has worked on this lake"):
        lake._written(spark, place, ours, [Day(MEASURED, _date(0))])
    assert lake.read_ledger(spark, place).pending == (Day(MEASURED, _date(0)),)


def test_files_that_belong_together_are_taken_anew_together_or_not_at_all(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from reconciler.balance.files.ledger import Ledger, TakenFile, Version
    from reconciler.balance.spark.new_files import new_files

    paths = [tmp_path / name for name in ("bytes.json", "sizes.json")]
    for path in paths:
        path.write_text("{}")
    changed, same = map(str, paths)
    told = paths[1].stat()
    versions = {changed: Version(1, 1, ""), same: Version(told.st_size, told.st_mtime_ns // 1000, "")}
    ledger = Ledger().with_files(TakenFile(path, version, 1, "together") for path, version in versions.items())

    def find(is_taken: Callable[[Path], bool]) -> Found:
        found = (path for path in paths if path.exists() and not is_taken(path))
        return Found(tuple(SampleFile(str(path), Kind.PROMETHEUS) for path in found))

    both = new_files(spark, find, ledger, None)
    assert ([file.path for file in both.files], both.notes) == ([changed, same], ())
    paths[1].unlink()
    with pytest.raises(ReconcilerError, match=f"{changed}: has changed, and was taken together with {same}, not among"):
        new_files(spark, find, ledger, None)


def test_samples_of_no_cluster_are_taken_again_once_one_is_named_and_defective_ones_are_told(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from reconciler.balance.spark.lake import loads_of_window, window_of

    folder, place = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    (folder / "a.csv").write_text(f"ts,topic,partition,bytes_in\n{_date(0)}T12:00:00Z,t,0,5\n")
    ledger, report = bring(spark, place, folder)
    assert (report.taken, [*ledger.made]) == (1, [(None, None)])
    ledger, report = bring(spark, place, folder, cluster="prod")
    assert (report.taken, [*ledger.made]) == (1, [("prod", _date(0))])
    assert bring(spark, place, folder, cluster="prod")[1].taken == 0
    (folder / "b.csv").write_text(f"cluster,ts,topic,partition,bytes_in\nbad,{_date(0)}T12:00:00Z,,0,5\n")
    ledger, _ = bring(spark, place, folder, cluster="prod")
    told = loads_of_window(spark, window_of(ledger, str(place), None, 1), str(tmp_path / "out"), document)
    assert [(one.cluster, one.partitions, one.all_defects["incomplete"]) for one in told.clusters] == [
        ("bad", 0, 1),
        ("prod", 1, 0),
    ]


def _read(table: Path, cluster: str, day: int) -> list[dict[str, Any]]:
    from pyarrow import parquet

    from reconciler.balance.files.sample_writer import escaped

    (path,) = (table / f"cluster={escaped(cluster)}" / f"date={_date(day)}").glob("*.parquet")
    rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist()
    return rows


def test_silver_is_sorted_and_says_what_was_wrong(whole: "tuple[Path, Ledger]") -> None:
    for day in range(DAYS):
        rows = _read(whole[0] / "silver", GROWN, day)
        keys = [(row["topic"] or "", row["partition"], row["ts"]) for row in rows]
        assert keys == sorted(keys)
        assert [row["samples"] for row in rows if row["topic"] is None] == [0]
        defects = [dict(row["defects"]) for row in rows if row["defects"]]
        (report,) = _read(whole[0] / "gold" / "report", GROWN, day)
        for name in ("duplicate", "incomplete", "notANumber", "estimated"):
            column = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
            assert sum(each.get(name, 0) for each in defects) == report[column] > 0


def test_loads_of_all_days_are_those_of_one_job_over_the_samples(
    spark: "SparkSession", whole: "tuple[Path, Ledger]", tmp_path: Path
) -> None:
    from reconciler.balance.spark.lake import loads_of_window, window_of
    from reconciler.balance.spark.loads_job import SampleTask, run_loads

    once = tmp_path / "once"
    write_file(once, "all.parquet", [row for day in range(DAYS) for row in measured(day)])
    files = find_sample_files([str(once)]).files
    expected = run_loads(spark, SampleTask(files, 60, NOW), str(tmp_path / "of samples"), document)
    place, ledger = whole
    days = window_of(ledger, str(place), MEASURED, DAYS)
    found = loads_of_window(spark, days, str(tmp_path / "of lake"), document)
    # The late partition is not in the samples of that job.
    rows = [row for row in _loads(tmp_path / "of lake") if row["partition"] != 2]
    assert [row | {"growth_bytes_per_day": 0} for row in rows] == [
        row | {"growth_bytes_per_day": 0} for row in _loads(tmp_path / "of samples")
    ]
    for row, wanted in zip(rows, _loads(tmp_path / "of samples"), strict=True):
        assert math.isclose(row["growth_bytes_per_day"], wanted["growth_bytes_per_day"], rel_tol=1e-9)
    assert _told(found) == _told(expected)
    few = window_of(ledger, str(place), None, 2)
    assert {day.date for day in few.days} == {_date(1), _date(2)}


def test_a_balance_of_all_days_is_that_of_the_samples(
    spark: "SparkSession", whole: "tuple[Path, Ledger]", tmp_path: Path
) -> None:
    from reconciler.balance.spark.balance_job import balance_of_samples, rows_of_samples, rows_of_window
    from reconciler.balance.spark.lake import window_of
    from reconciler.balance.spark.loads_job import SampleTask

    rows = [row for day in range(DAYS) for row in measured(day)] + late(LATE_DAY)
    files = find_sample_files([str(write_file(tmp_path, "all.parquet", rows))]).files
    partitions = tuple(Partition(number, 1 + number, (1 + number, 2, 3)[:2], (1, 2)) for number in (0, 2))
    brokers = {one: Broker(one, log_dirs=(LogDir("/d", 10**9, 10**8),)) for one in (1, 2, 3)}
    tables = assigned(spark, {MEASURED: Cluster("id", brokers=brokers, topics={"t.o": Topic("t.o", partitions)})})
    place, ledger = whole
    told = []
    for rows_of_one in (
        rows_of_samples(spark, SampleTask(files, 60, NOW)),
        rows_of_window(spark, window_of(ledger, str(place), MEASURED, DAYS)),
    ):
        assert rows_of_one is not None
        with balance_of_samples(tables, rows_of_one, 60, has_all_sizes=False) as balance:
            assert balance.told is not None
            told.append((sorted(map(str, balance.figures.collect())), balance.told.spans))
    assert told[0] == told[1]
    assert len(told[0][0]) > len(brokers)


def _loads(out: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(out).to_pylist()
    return rows


def _told(report: LoadReport) -> tuple[object, ...]:
    (one,) = report.clusters
    return one.first_bucket, one.last_bucket, one.busiest_bucket, one.step_seconds
