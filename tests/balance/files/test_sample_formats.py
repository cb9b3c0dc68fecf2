"""How files that other programs wrote begin: what is told of them, and which are refused, and why."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.balance.files.sample_files import Kind, SampleFile, find_sample_files
from reconciler.model.problem import InvalidInput

LINES = b"ts,topic,partition,bytes_in\n2026-03-29T00:00:00Z,t,0,5\n"


def found(path: Path, content: bytes, measure: str | None = None) -> SampleFile:
    path.write_bytes(content)
    (file,) = find_sample_files([str(path)], measure).files
    return file


def refused(path: Path, content: bytes, measure: str | None = None) -> str:
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as raised:
        find_sample_files([str(path)], measure)
    (problem,) = raised.value.problems
    assert problem.message.startswith(f"{path}: ")
    return f"{problem.message.removeprefix(f'{path}: ')} ({problem.code})"


def compressed(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def answer(labels: dict[str, str]) -> bytes:
    series = [{"metric": labels, "values": [[1, "2"]]}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


def test_compressed_text_is_looked_into(tmp_path: Path) -> None:
    file = found(tmp_path / "a.csv.zst", compressed(LINES))
    assert (file.kind, set(file.names)) == (Kind.CSV, {"ts", "topic", "partition", "bytes_in"})
    line = json.dumps({"ts": 1, "topic": "t", "partition": 0}).encode()
    assert found(tmp_path / "a.jsonl.zst", compressed(line)).kind is Kind.JSON_LINES
    assert refused(tmp_path / "b.csv.zst", LINES).startswith("cannot be read: ")
    assert "is not a .parquet" in refused(tmp_path / "a.txt.zst", b"")


def test_semicolons_separate_where_the_header_has_no_comma(tmp_path: Path) -> None:
    assert found(tmp_path / "a.csv", b"\xef\xbb\xbfts;topic;partition;bytes_in\n").separator == ";"
    assert found(tmp_path / "b.csv", LINES).separator == ","


def test_series_without_a_name_measure_what_the_option_or_the_files_name_says(tmp_path: Path) -> None:
    nameless = answer({"topic": "t"})
    assert found(tmp_path / "a.json", nameless, "messages_in").measure == "messages_in"
    assert found(tmp_path / "prod-bytes_out.2026.json", nameless).measure == "bytes_out"
    assert found(tmp_path / "bytes_in.json", answer({"__name__": "up"}), "bytes_out").measure == ""
    for name in ("rates.json", "bytes_in-bytes_out.json", "kilobytes_in.json"):
        message = refused(tmp_path / name, nameless)
        assert message.startswith("has series without a name, as rate() and sum() answer"), name
        assert message.endswith("(KR441)")
