"""Places that are no paths: URIs that Hadoop knows, tables, and what must not be taken for mere files."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from helpers.program.call import Program
from helpers.samples.load_oracle import Row
from helpers.samples.loads_folder import write_loads
from helpers.samples.sample_tables import START, STRANGE, drawn_rows, write_by_age, write_parquet

from reconciler.balance.files.folders import LOADS_REPORT, TABLES_MARK
from reconciler.balance.files.sample_files import Kind, find_sample_files
from reconciler.cli.main import main
from reconciler.files.loads import LoadsUnreadable, read_loads, seen_of_loads
from reconciler.files.places import as_local, file_system, is_uri, may_be_table
from reconciler.model.logins import logins_in
from reconciler.model.problem import InvalidInput, ReconcilerError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
EVERY = f"{STRANGE} größe [x]{{y,z}}*"
"""A name of all that Hadoop, shells and URIs read something into."""


class Lake(NamedTuple):
    """A folder, and its URI in a file system which is not this machine's own, as far as the program sees."""

    folder: Path
    uri: str


@pytest.fixture(scope="module")
def mounted(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that is viewfs://lake/data; Java keeps a file system for as long as it runs."""
    folder = tmp_path_factory.mktemp("lake")
    spark.conf.set("fs.viewfs.mounttable.lake.link./data", folder.as_uri())
    return folder


@pytest.fixture
def lake(mounted: Path, tmp_path: Path) -> Lake:
    folder = mounted / tmp_path.name
    folder.mkdir()
    return Lake(folder, f"viewfs://lake/data/{tmp_path.name}")


@pytest.mark.parametrize(
    ("place", "uri", "local", "table"),
    [
        ("lake/a b", False, "lake/a b", False),
        ("file:///lake/a%20b", True, "/lake/a%20b", False),
        ("file:/lake/ö:[x]", True, "/lake/ö:[x]", False),
        ("s3a://lake/a b", True, "s3a://lake/a b", False),
        ("hdfs:/lake", True, "hdfs:/lake", False),
        ("C:/lake", False, "C:/lake", False),
        ("loads", False, "loads", False),
        ("lake.kafka.loads", False, "lake.kafka.loads", True),
        ("lake.`a b`.loads", False, "lake.`a b`.loads", True),
        ("day 1.parquet", False, "day 1.parquet", False),
    ],
)
def test_a_place_is_told_by_its_form(place: str, uri: bool, local: str, table: bool) -> None:  # noqa: FBT001 - a table
    assert (is_uri(place), as_local(place), may_be_table(place)) == (uri, local, table)


def test_a_name_is_no_table_where_such_a_folder_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert may_be_table("lake.loads")
    (tmp_path / "lake.loads").mkdir()
    assert not may_be_table("lake.loads")


@pytest.mark.parametrize(
    "form", ["{folder}/{name}", "file://{folder}/{name}", "file:{folder}/{name}", "viewfs://lake/data/{test}/{name}"]
)
def test_what_is_written_comes_back_by_its_very_name_and_a_failure_leaves_it(
    spark: "SparkSession", lake: Lake, form: str
) -> None:
    from reconciler.balance.spark.tables import read_table, replaced

    name = EVERY.replace(":", "") if form.startswith("viewfs") else EVERY  # a file system of mounts knows no colon
    place = form.format(folder=lake.folder, test=lake.folder.name, name=name)
    for rows in (5, 3):
        _write(spark.range(rows), place)
        assert sorted(row["id"] for row in read_table(spark, place).collect()) == list(range(rows))
    with pytest.raises(ZeroDivisionError), replaced(spark, place, "_balance") as result:
        _fail_after(result.write, spark.range(9))
    assert read_table(spark, place).count() == 3
    assert [path.name for path in lake.folder.iterdir()] == [name]
    (lake.folder / name / "_balance").unlink()
    with pytest.raises(ReconcilerError, match="holds other things") as foreign:
        _write(spark.range(1), place)
    assert foreign.value.code == "KR147"


def _write(table: "DataFrame", place: str) -> None:
    from reconciler.balance.spark.tables import replaced

    with replaced(table.sparkSession, place, TABLES_MARK) as result:
        result.write(table)
        result.tell(TABLES_MARK, "written by reconciler\n")


def _fail_after(write: "Callable[[DataFrame], None]", table: "DataFrame") -> None:
    write(table)
    raise ZeroDivisionError


@pytest.fixture
def store(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Return such a folder; its file system is taken for one that renames no folders."""
    monkeypatch.setattr("reconciler.balance.spark.uri_results.OBJECT_STORES", frozenset({"viewfs"}))
    return lake


def test_an_object_store_lists_the_old_result_or_the_new_one_whole_wherever_a_write_ends(
    spark: "SparkSession", store: Lake
) -> None:
    from reconciler.balance.spark.uri_results import Staged, _JavaFiles, _publish

    class Dying(_JavaFiles):
        """Lets so many requests through that change something, then none."""

        left = 0

        def _asked(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise SystemExit

        def write(self, uri: str, text: str) -> None:
            self._asked()
            super().write(uri, text)

        def rename(self, uri: str, to: str) -> None:
            self._asked()
            super().rename(uri, to)

        def delete(self, uri: str) -> None:
            self._asked()
            super().delete(uri)

    out, seen = store.folder / "out", set()
    files = Dying(spark, f"{store.uri}/out")
    for generation in ("a", "b", "c"):
        for ended in range(20):
            (out / "_new-1").mkdir(parents=True, exist_ok=True)
            for part in ("1", "2"):
                (out / "_new-1" / f"{generation}-{ended:02}-{part}.parquet").touch()
            files.left = ended
            with suppress(SystemExit):
                _publish(files, Staged(f"{store.uri}/out/_new-1", {LOADS_REPORT: generation}), f"{store.uri}/out")
            shutil.rmtree(out / "_new-1")
            listed = _listed(out)
            assert all((out / name).exists() for name in listed)
            assert len({name[:4] for name in listed}) == bool(listed), "of two results"
            assert _listed_texts(out) == ({LOADS_REPORT: listed[0][0]} if listed else {}), "text of another result"
            seen.add("".join({name[0] for name in listed}))
        assert (out / LOADS_REPORT).read_text() == generation
        assert sorted(path.name for path in out.glob("*.parquet")) == _listed(out)
    assert seen == {"", "a", "b", "c"}


def _listed(out: Path) -> list[str]:
    mark = out / "_files" / "list.json"
    return list(json.loads(mark.read_text())["files"]) if mark.exists() else []


def _listed_texts(out: Path) -> dict[str, str]:
    mark = out / "_files" / "list.json"
    return dict(json.loads(mark.read_text()).get("texts", {})) if mark.exists() else {}


def test_a_result_at_an_object_store_is_read_by_its_list(spark: "SparkSession", store: Lake) -> None:
    from reconciler.balance.spark.tables import read_table

    place, folder = f"{store.uri}/a[b] ö%20", store.folder / "a[b] ö%20"
    for rows in (5, 3):
        _write(spark.range(rows), place)
    assert [path.name for path in store.folder.iterdir()] == [folder.name]
    assert {path.name for path in folder.iterdir() if path.suffix not in {".parquet", ".crc"}} == {"_balance", "_files"}
    left_over = next(folder.glob("*.parquet"))
    left_over.with_name("part-left-over.parquet").write_bytes(left_over.read_bytes())
    assert read_table(spark, place).count() == 3


def test_what_a_run_that_died_has_staged_at_an_object_store_does_not_stop_the_next_one(
    spark: "SparkSession", store: Lake
) -> None:
    from reconciler.balance.spark.tables import read_table

    staged, older = (store.folder / "out" / f"_new-{mark}" for mark in ("0a1b2c3d", "4e5f6a7b"))
    for folder in (staged, older):
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"cut off")
    os.utime(older / "part-0.parquet", (START, START))
    _write(spark.range(3), f"{store.uri}/out")
    assert read_table(spark, f"{store.uri}/out").count() == 3
    assert (staged.exists(), older.exists()) == (True, False), "removed after a day"


def test_a_result_that_spark_connect_wrote_at_an_object_store_is_replaced(spark: "SparkSession", store: Lake) -> None:
    """It has no file there but those of tables: a text is a folder that holds one."""
    from reconciler.balance.spark.tables import read_table

    place, mark = f"{store.uri}/out", store.folder / "out" / TABLES_MARK
    spark.range(5).write.parquet(place)
    spark.range(1).selectExpr("'written' AS value").coalesce(1).write.text(f"{place}/{TABLES_MARK}")
    assert mark.is_dir()
    _write(spark.range(3), place)
    assert mark.is_file()
    assert read_table(spark, place).count() == 3


def test_files_at_a_uri_are_told_and_read_as_those_of_a_folder(spark: "SparkSession", lake: Lake) -> None:
    """Kinds are told by names, JSON by how it begins, columns by headers and footers."""
    from reconciler.balance.spark.places import looked_up
    from reconciler.balance.spark.sources import read_samples

    folder = lake.folder / "in ö%20"
    write_by_age(folder / "cluster=east" / "date=2026-03-29", drawn_rows(3, minutes=8))
    (folder / "a.csv").write_text("partition,topic,ts,bytes_in,mine\n0,c,2026-03-29T00:59:00Z,10,x\n")
    (folder / "a2.csv").write_text("ts,topic,partition\n2026-03-29T00:59:00Z,c,1\n")
    lines = [{"ts": START, "topic": "j", "partition": 1, "bytes_in": 5}, {"ts": START, "topic": "j", "partition": 2}]
    for name in ("b.jsonl", "c.json"):
        (folder / name).write_text("\n".join(map(json.dumps, lines)))
    partitions = [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "sizes": [7], "endOffset": 3}]
    snapshot = {"formatVersion": "1.0", "clusterId": "c", "observedAt": "2026-03-29T00:00:00Z", "brokers": []}
    (folder / "d.json").write_text(
        json.dumps(snapshot | {"topics": [{"name": "s", "partitions": partitions}]}, indent=1)
    )
    series = {"metric": {"__name__": "kafka_log_log_size", "topic": "p", "partition": "0"}, "values": [[START, "5"]]}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    (folder / "e.json").write_text(json.dumps(answer))
    (folder / "note.txt").write_text("x")
    (folder / "_hidden.csv").write_text("x")
    strange = folder.with_name("in ö%20 [x]")
    here = find_sample_files([str(folder)])
    expected = [(file.kind, file.columns, file.folders) for file in here.files]
    rows = sorted(map(repr, read_samples(spark, here.files).collect()))
    assert len(rows) > 20
    folder.rename(strange)
    there = looked_up(spark, find_sample_files([f"{lake.uri}/{strange.name}"]).files)
    assert [(file.kind, file.columns, file.folders) for file in there.files] == expected
    assert [note.replace(f"{lake.uri}/{strange.name}", str(folder)) for note in there.notes] == list(here.notes)
    assert sorted(map(repr, read_samples(spark, there.files).collect())) == rows
    alone = looked_up(spark, find_sample_files([f"{lake.uri}/in*/cluster=east/date=2026-03-*"]).files)
    assert [(file.root, file.folders) for file in alone.files] == [(lake.uri, ("cluster", "date"))]


def test_loads_are_the_same_from_a_folder_a_uri_and_a_table_and_what_is_wrong_is_told(
    spark: "SparkSession", lake: Lake, reconciler: Program, monkeypatch: pytest.MonkeyPatch, measured: str
) -> None:
    from reconciler.balance.spark.balance_job import loads_of, wrong_rows

    monkeypatch.chdir(lake.folder)
    rows = [Row(START + 60 * minute, "demo", "t", part, 9.0, 8.0, 1.0, 10**6) for part in range(3) for minute in (0, 1)]
    write_parquet(lake.folder / "in.parquet", rows)
    spark.read.parquet(str(lake.folder / "in.parquet")).write.saveAsTable(f"{measured}.samples")
    ended = reconciler("loads", "--samples", f"{measured}.samples", "--out", f"{lake.uri}/loads")
    assert ended.code == 0, ended.err
    assert len(read_loads("loads", "demo").of) == 3
    spark.read.parquet(str(lake.folder / "loads")).write.saveAsTable(f"{measured}.loads")
    places = ("loads", f"file:{lake.folder}/loads", f"{lake.uri}/loads", f"{measured}.loads")
    found = [sorted(loads_of(spark, place).collect()) for place in places]
    assert [len(each) for each in found] == [3] * 4
    assert all(each == found[0] for each in found)
    assert [wrong_rows(spark, place) for place in places] == [{"demo": (0, 0)}] * 4
    wrong = [("demo", "t", 0, 1.0, -1.0, 1), ("demo", "t", 0, 1.0, 1.0, 1), ("east", None, 1, float("nan"), 1.0, None)]
    columns = (
        "cluster string, topic string, partition int, bytes_in_peak double, bytes_out_peak double, size_bytes long"
    )
    spark.createDataFrame(wrong, columns).write.parquet(str(lake.folder / "wrong"))
    assert wrong_rows(spark, f"{lake.uri}/wrong") == {"demo": (1, 1), "east": (1, 0)}
    with pytest.raises(LoadsUnreadable, match="lacks the columns bytes_in_peak, bytes_out_peak"):
        wrong_rows(spark, f"{measured}.samples")


@pytest.fixture
def measured(spark: "SparkSession") -> Iterator[str]:
    """Return a namespace of the catalogue."""
    spark.sql("CREATE DATABASE measured")
    yield "measured"
    spark.sql("DROP DATABASE measured CASCADE")


def test_balance_reads_a_table_and_no_table_is_replaced_that_is_not_ours(
    spark: "SparkSession", lake: Lake, reconciler: Program, monkeypatch: pytest.MonkeyPatch, measured: str
) -> None:
    monkeypatch.chdir(lake.folder)
    assert reconciler("init", "ds", "--demo").code == 0
    snapshot = json.loads(Path("ds/demo/snapshot.json").read_text())
    keys = [(topic["name"], each["partition"]) for topic in snapshot["topics"] for each in topic["partitions"]]
    loads = write_loads(lake.folder / "loads", "demo", dict.fromkeys(keys, (10, 20)))
    spark.read.parquet(loads).write.saveAsTable(f"{measured}.loads")
    given = ("-C", "ds", "balance", "--cluster", "demo", "-o", "json", "--loads")
    told = reconciler(*given, f"{measured}.loads")
    assert told.code == 0, told.err
    report = json.loads(told.out)
    assert report["source"] == f"{measured}.loads"
    assert report["clusters"][0]["total"]["before"]["bytesInPerSecond"]["average"] > 0
    sample = str(write_parquet(lake.folder / "in.parquet", [Row(START, "demo", "t", 0, 1.0)]))
    for table, code in ((f"{measured}.loads", "KR147"), (f"{measured}.new", "KR284")):
        out = reconciler("loads", "--samples", sample, "--out", table)
        assert (out.code, out.err.count("\n"), code in out.err) == (1, 1, True), out.err
    for nothing in (f"{measured}.none", f"{lake.uri}/none"):
        assert "KR287" in reconciler(*given, nothing).err
        assert "KR140" in reconciler("loads", "--samples", nothing, "--out", "x").err
    assert spark.table(f"{measured}.loads").count() == len(keys)


@pytest.mark.parametrize(
    ("log", "what"), [("_delta_log/00000000000000000000.json", "a Delta"), ("metadata/v1.metadata.json", "an Iceberg")]
)
def test_a_table_is_not_read_as_bare_parquet_but_by_its_reader_or_not_at_all(
    spark: "SparkSession", lake: Lake, reconciler: Program, log: str, what: str
) -> None:
    del spark
    table = lake.folder / "in" / "table"
    part = table / "date=2026-03-29" if what == "a Delta" else table / "data"
    write_parquet(part / "part-0.parquet", [Row(START, "east", "t", 0, 1.0)])
    (table / log).parent.mkdir(parents=True)
    (table / log).write_text("{}")
    for place in ("{}/in", "{}/in/table", "{}/in/*"):
        for base in (str(lake.folder), lake.uri):
            ended = reconciler("loads", "--samples", place.format(base), "--out", str(lake.folder / "out"))
            assert (ended.code, ended.err.count("\n")) == (1, 1), ended.err
            assert f"in/table: is {what} table, and this Spark has no reader for it" in ended.err
            assert "(KR280)" in ended.err
    for below in ("", "/part-0.parquet", "/*.parquet"):
        for base in (str(lake.folder), lake.uri):
            named = str(part).replace(str(lake.folder), base) + below
            ended = reconciler("loads", "--samples", named, "--out", str(lake.folder / "out"))
            assert (ended.code, "(KR281)" in ended.err) == (1, True), ended.err
    with pytest.raises(LoadsUnreadable, match=f"is {what} table, which only Spark reads") as raised:
        read_loads(str(table), "east")
    assert raised.value.code == "KR283"


def test_a_bucket_too_is_looked_at_for_a_table_that_a_folder_is_a_part_of() -> None:
    from reconciler.balance.spark.places import folders_above

    assert folders_above("s3a://lake/a/b") == ["s3a://lake", "s3a://lake/a"]
    assert folders_above("s3a://lake") == []


def test_an_iceberg_table_is_the_folder_above_its_own_metadata(spark: "SparkSession", lake: Lake) -> None:
    from reconciler.balance.spark.places import looked_up

    log = lake.folder / "metadata" / "table" / "metadata" / "v1.metadata.json"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    with pytest.raises(ReconcilerError, match="metadata/table: is an Iceberg table"):
        looked_up(spark, find_sample_files([f"{lake.uri}/metadata"]).files)
    (lake.folder / "a.metadata.json").write_text(json.dumps({"ts": START, "topic": "t", "partition": 1, "bytes_in": 5}))
    (found,) = looked_up(spark, find_sample_files([f"{lake.uri}/a.metadata.json"]).files).files
    assert found.kind is Kind.JSON_LINES


def test_patterns_of_this_machine_are_opened_and_their_folders_are_columns(tmp_path: Path) -> None:
    for day in ("28", "29", "30"):
        folder = tmp_path / "in" / "cluster=east" / f"date=2026-03-{day}"
        write_parquet(folder / "a.parquet", [Row(START, "east", "t", 0, 1.0)])
    found = find_sample_files([str(tmp_path / "in" / "cluster=*" / "date=2026-03-2?")])
    assert [Path(file.path).parent.name for file in found.files] == ["date=2026-03-28", "date=2026-03-29"]
    assert {(file.root, file.folders, file.kind) for file in found.files} == {
        (str(tmp_path / "in"), ("cluster", "date"), Kind.PARQUET)
    }
    with pytest.raises(InvalidInput, match="no such file or folder"):
        find_sample_files([str(tmp_path / "in" / "cluster=w*")])


def test_loads_are_read_by_the_list_that_an_object_store_keeps(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for name, partition in (("new", 1), ("older", 1), ("other", 2)):
        row = {"cluster": "c", "topic": "t", "partition": partition, "bytes_in_peak": 1.0, "bytes_out_peak": 1.0}
        parquet.write_table(pa.Table.from_pylist([{**row, "size_bytes": 1}]), tmp_path / f"{name}.parquet")
    with pytest.raises(InvalidInput, match="stands there twice"):
        read_loads(str(tmp_path), "c")
    (tmp_path / "_files").mkdir()
    (tmp_path / "_files" / "list.json").write_text(json.dumps({"files": ["new.parquet", "other.parquet"]}))
    for place in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        assert len(read_loads(place, "c").of) == 2
    report = {"clusters": [{"cluster": "c", "samples": 7, "defects": {}}]}
    told = {"files": ["new.parquet"], "texts": {LOADS_REPORT: json.dumps(report)}}
    (tmp_path / "_files" / "list.json").write_text(json.dumps(told))
    (tmp_path / LOADS_REPORT).write_text(json.dumps(report).replace("7", "8"))
    assert seen_of_loads(str(tmp_path), "c", datetime(2026, 11, 22, tzinfo=UTC)).samples == 7
    (tmp_path / "_files" / "list.json").write_text('{"files": ["new.par')
    with pytest.raises(LoadsUnreadable, match=r"_files/list.json is damaged; run loads again"):
        read_loads(str(tmp_path), "c")


def test_schemes_are_those_of_pyarrow_and_another_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    monkeypatch.setenv("AWS_REGION", "eu-central-1")  # else Amazon is asked for the bucket's
    for uri, kind, path in (
        ("s3a://lake/a b%20", fs.S3FileSystem, "lake/a b%20"),
        ("s3://lake", fs.S3FileSystem, "lake"),
        ("gs://lake/x/", fs.GcsFileSystem, "lake/x"),
        ("abfss://box@account.dfs.core.windows.net/x", fs.AzureFileSystem, "box/x"),
    ):
        system, found = file_system(uri)
        assert (type(system), found) == (kind, path)
    for uri, code in (("viewfs://lake/x", "KR282"), ("wasbs://lake/x", "KR282")):
        with pytest.raises(ReconcilerError, match="copy the folder to this machine") as raised:
            file_system(uri)
        assert raised.value.code == code


def test_a_scheme_that_spark_lacks_is_told_in_one_sentence(
    spark: "SparkSession", tmp_path: Path, reconciler: Program
) -> None:
    del spark
    samples = str(write_parquet(tmp_path / "a.parquet", [Row(START, "east", "t", 0, 1.0)]))
    for verb in (
        ("loads", "--samples", samples, "--out", "s3a://lake/out"),
        ("loads", "--samples", "s3a://lake/in", "--out", str(tmp_path / "out")),
        ("loads", "--samples", samples, "--out", "nosuch://lake/out"),
    ):
        ended = reconciler(*verb)
        assert (ended.code, ended.err.count("\n")) == (1, 1), ended.err
        assert "Spark has no file system for" in ended.err
        assert "(KR285)" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


LOGINS = ("KEYID:c4n4ry", "KEYID:c4n/4ry+x=", "ada:c4n4ry%2F")


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("loads", "--samples", "{}", "--out", "out"),
        ("loads", "--samples", "samples", "--out", "{}"),
        ("loads", "--samples", "in", "{}", "--out", "out"),
        ("balance", "--samples", "{}"),
        ("balance", "--loads", "{}", "--state", "s.json"),
        ("balance", "--samples", "{}", "-o", "json"),
        ("balance", "--samples", "{}", "-v"),
        ("plan", "--loads", "{}", "--state", "s.json"),
        ("plan", "--state", "{}"),
        ("collect", "--out", "{}"),
        ("loads", "{}"),
        ("{}",),
        ("loads", "--no-such", "{}"),
    ],
)
def test_a_login_in_a_uri_is_refused_and_never_shown(
    arguments: tuple[str, ...],
    login: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"s3a://{login}@lake/a"
    code = main([word.replace("{}", uri) for word in arguments])
    out, err = capfd.readouterr()
    assert code
    assert err
    assert login.partition(":")[2] not in out + err
    assert not list(tmp_path.rglob("*c4n*"))


@pytest.mark.parametrize(
    "uri",
    ["hdfs://name:8020/a@b:c/d@e", "abfss://box@account.dfs.core.windows.net/a", "s3a://lake/a:b@c", "file:/a:b@c"],
)
def test_an_at_sign_that_is_no_login_s_is_let_through(uri: str) -> None:
    assert logins_in(uri) == []
    assert as_local(uri)
