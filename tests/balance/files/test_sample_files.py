import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from reconciler.balance.files.folders import replaced_folder
from reconciler.balance.files.sample_files import Kind, SampleFile, find_sample_files
from reconciler.model.problem import InvalidInput, ReconcilerError

GOOD = "ts,topic,partition\n"
LINES = b"ts,topic,partition,bytes_in\n2026-03-29T00:00:00Z,t,0,5\n"
# As JmxTool names a column.
SIZE = "kafka.log:type=Log,name=Size,topic=orders,partition=0:Value"


def _refused(path: Path, measure: str | None = None) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        find_sample_files([str(path)], measure)
    return [f"{problem.message} ({problem.code})" for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "", "a.csv: is empty; its first line must name the columns"),
        ("a.csv", "ts,topic\n", "a.csv: has no column partition; samples need ts, topic, partition; it has topic, ts"),
        ("a.csv", f'"time","{SIZE}"\n1774742400000,5\n', f"samples need ts, topic, partition; it has {SIZE}, time"),
        ("a.csv", f"time,{','.join(map(str, range(10, 60)))}\n", "27, 28, 29 and 31 more"),
        ("a.csv", "ts,topic,partition,byte_in\n", "has no column bytes_in, but byte_in: did you mean bytes_in?"),
        ("a.csv", "ts,ts,topic,partition\n", "names the column ts twice"),
        ("a.csv", "ts,topic,partition, topic\n", "names the column topic twice"),
        ("a.jsonl", "hello\n", "is neither lines of JSON samples, nor a Prometheus range-query answer, nor a snapshot"),
        ("a.json", '{"status": "error", "errorType": "bad"}', "is neither"),
        ("a.json", '{"status":"error","errorType":"bad","data":{}}', "is an error that Prometheus answered"),
        ("a.json", '{"data": {"resultType": "vector"}}', "is the answer to an instant query"),
        ("a.parquet", "PAR1", "a.parquet: is no Parquet file, or a damaged one"),
        ("a.txt", "x", "is not a .parquet, .csv, .jsonl or .json file"),
        ("a.csv.gz", "ts", "cannot be read"),
    ],
)
def test_a_file_that_holds_no_samples_is_refused_by_its_name_in_one_sentence(
    tmp_path: Path, name: str, content: str, sentence: str
) -> None:
    (tmp_path / name).write_text(content)
    (message,) = _refused(tmp_path / name)
    assert sentence in message or sentence == "is neither"
    assert message.startswith(str(tmp_path / name))
    assert "\n" not in message


def test_every_wrong_file_is_told_at_once(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n")
    assert len(_refused(tmp_path)) == 2
    assert "check the path" in _refused(tmp_path / "nowhere")[0]
    (tmp_path / "empty").mkdir()
    assert "holds no samples" in _refused(tmp_path / "empty")[0]


@pytest.mark.parametrize(
    ("column", "kind", "sentence"),
    [
        ("ts", pa.timestamp("ns"), "has times in nanoseconds"),
        ("topic", pa.int64(), "has the column topic as int64; it must be a text"),
        ("bytes_in", pa.bool_(), "has the column bytes_in as bool; it must be a number"),
        ("bytes_in", pa.float16(), "has the column bytes_in as halffloat; it must be a number"),
        ("bytes_in", pa.decimal256(50, 2), "has the column bytes_in as decimal256(50, 2); it must be a number"),
        ("Topic", pa.string(), "names the column topic twice, as topic and as Topic: Spark takes them for one"),
        ("ts", pa.null(), "has no column ts"),
    ],
)
def test_a_parquet_column_of_the_wrong_type_is_refused(
    tmp_path: Path, column: str, kind: pa.DataType, sentence: str
) -> None:
    kinds = {"ts": pa.timestamp("us"), "topic": pa.string(), "partition": pa.int32(), column: kind}
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.schema(list(kinds.items())).empty_table(), path)
    assert sentence in _refused(path)[0]


def test_a_pattern_passes_over_hidden_names_as_a_folder_does(tmp_path: Path) -> None:
    for name in ("_replicas/cluster=k/a.csv", "_brokers/b.csv", "cluster=k/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    for given in (tmp_path, tmp_path / "*", tmp_path / "**" / "*.csv"):
        assert [Path(file.path).name for file in find_sample_files([str(given)]).files] == ["c.csv"]
    assert len(find_sample_files([str(tmp_path / "_replicas")]).files) == 1
    assert "no such file or folder" in _refused(tmp_path / "_*")[0]


def test_each_kind_is_told_by_how_it_begins_and_what_is_hidden_is_not_looked_at(tmp_path: Path) -> None:
    sample = {"ts": "2026-01-01T00:00:00Z", "topic": "t", "partition": 0}
    texts = {
        "a.csv": GOOD,
        "b.jsonl": json.dumps(sample) + "\n",
        "c.json": json.dumps(sample) + "\n",
        "d.json": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}),
        "e.json": json.dumps({"formatVersion": "1.0", "clusterId": "c", "topics": []}, indent=1),
        "_replicas/f.csv": "x\n",
        "_brokers/cluster=k/f.csv": "x\n",
        "note.txt": "x",
        "cluster=k/date=d/g.csv": GOOD,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = find_sample_files([str(tmp_path), str(tmp_path / "a.csv")])
    assert [(Path(file.path).name, file.kind) for file in found.files] == [
        ("a.csv", Kind.CSV),
        ("b.jsonl", Kind.JSON_LINES),
        ("c.json", Kind.JSON_LINES),
        ("g.csv", Kind.CSV),
        ("d.json", Kind.PROMETHEUS),
        ("e.json", Kind.SNAPSHOT),
    ]
    assert {file.folders for file in found.files} == {(), ("cluster", "date")}
    assert found.notes == (f"{tmp_path / 'note.txt'}: not a kind of file that holds samples; passed over",)


@pytest.mark.parametrize("measure", ["bytes_in", "bytes_out", "messages_in", "end_offset", "size_bytes"])
def test_the_broker_of_a_sample_is_a_column_not_used(tmp_path: Path, measure: str) -> None:
    (tmp_path / "a.csv").write_text(f"ts,topic,partition,broker,log_dir,{measure}\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"ts": 1, "topic": "t", "partition": 0, "broker": 1, measure: 1}))
    found = find_sample_files([str(tmp_path)])
    assert [file.may_stand_alone for file in found.files] == [measure == "bytes_in"] * 2
    assert found.notes == tuple(
        f"{tmp_path / 'a.csv'}: the column {name} is none of a sample's; not used" for name in ("broker", "log_dir")
    )


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for text in ("one", "two"):
        with replaced_folder(out, "_report.json") as folder:
            (folder / "_report.json").write_text(text)
            (folder / text).write_text(text)
    assert sorted(path.name for path in out.iterdir()) == ["_report.json", "two"]
    with pytest.raises(KeyboardInterrupt), replaced_folder(out, "_report.json") as folder:
        _interrupted(folder / "three")
    assert sorted(path.name for path in out.iterdir()) == ["_report.json", "two"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _interrupted(path: Path) -> None:
    path.write_text("half")
    raise KeyboardInterrupt


def test_a_folder_of_other_things_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    for out in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(ReconcilerError, match=r"name (an empty|a) .*folder"), replaced_folder(out, "_report.json"):
            pass
    assert (tmp_path / "mine.txt").read_text() == "x"


# How files that other programs wrote begin


def _found(path: Path, content: bytes, measure: str | None = None) -> SampleFile:
    path.write_bytes(content)
    (file,) = find_sample_files([str(path)], measure).files
    return file


def _refused_content(path: Path, content: bytes, measure: str | None = None) -> str:
    path.write_bytes(content)
    (message,) = _refused(path, measure)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def _compressed(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def _answer(labels: dict[str, str]) -> bytes:
    series = [{"metric": labels, "values": [[1, "2"]]}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


def test_compressed_text_is_looked_into(tmp_path: Path) -> None:
    file = _found(tmp_path / "a.csv.zst", _compressed(LINES))
    assert (file.kind, set(file.names)) == (Kind.CSV, {"ts", "topic", "partition", "bytes_in"})
    line = json.dumps({"ts": 1, "topic": "t", "partition": 0}).encode()
    assert _found(tmp_path / "a.jsonl.zst", _compressed(line)).kind is Kind.JSON_LINES
    assert _refused_content(tmp_path / "b.csv.zst", LINES).startswith("cannot be read: ")
    assert "is not a .parquet" in _refused_content(tmp_path / "a.txt.zst", b"")


def test_semicolons_separate_where_the_header_has_no_comma(tmp_path: Path) -> None:
    assert _found(tmp_path / "a.csv", b"\xef\xbb\xbfts;topic;partition;bytes_in\n").separator == ";"
    assert _found(tmp_path / "b.csv", LINES).separator == ","


def test_series_without_a_name_measure_what_the_option_or_the_files_name_says(tmp_path: Path) -> None:
    nameless = _answer({"topic": "t"})
    assert _found(tmp_path / "a.json", nameless, "messages_in").measure == "messages_in"
    assert _found(tmp_path / "prod-bytes_out.2026.json", nameless).measure == "bytes_out"
    assert _found(tmp_path / "bytes_in.json", _answer({"__name__": "up"}), "bytes_out").measure == ""
    for name in ("rates.json", "bytes_in-bytes_out.json", "kilobytes_in.json"):
        message = _refused_content(tmp_path / name, nameless)
        assert message.startswith("has series without a name, as rate() and sum() answer"), name
        assert message.endswith("(KR441)")
