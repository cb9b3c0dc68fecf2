"""Snapshots: what is written reads back, whatever the order; what cannot be true is refused at its pointer."""

import gzip
import io
import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import drawn
from hypothesis import strategies as st

from reconciler.files.snapshot import read_snapshot, snapshot_text, write_snapshot
from reconciler.model.cluster import Broker, Cluster, Group, GroupMember, LogDir, Partition, Topic
from reconciler.model.problem import InvalidInput, ReconcilerError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(0, 2**63 - 1)
configs = st.dictionaries(texts, texts, max_size=2)


@st.composite
def partitions(draw: st.DrawFn, number: int) -> Partition:
    replicas = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)))
    some = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    known = st.lists(st.none() | numbers, min_size=len(replicas), max_size=len(replicas)).map(tuple)
    paths = st.lists(st.none() | texts, min_size=len(replicas), max_size=len(replicas)).map(tuple)
    return Partition(
        number,
        draw(st.none() | st.sampled_from(replicas)),
        replicas,
        draw(some),
        draw(some),
        draw(some),
        draw(st.just(()) | known),
        draw(st.just(()) | paths),
        draw(st.none() | numbers),
        draw(st.none() | some),
        draw(st.none() | some),
        draw(st.none() | numbers),
    )


@st.composite
def topics(draw: st.DrawFn, name: str) -> Topic:
    count = draw(st.integers(0, 4))
    return Topic(
        name,
        tuple(draw(partitions(number)) for number in range(count)),
        draw(st.none() | texts),
        draw(st.booleans()),
        dict(sorted(draw(configs).items())),
    )


@st.composite
def brokers(draw: st.DrawFn, broker_id: int) -> Broker:
    sizes = st.none() | numbers
    paths = sorted(draw(st.sets(texts, max_size=2)))
    return Broker(
        broker_id,
        draw(st.none() | texts),
        draw(st.none() | texts),
        draw(st.none() | st.integers(0, 65535)),
        draw(st.booleans()),
        tuple(LogDir(path, draw(sizes), draw(sizes), is_cordoned=draw(st.booleans())) for path in paths),
        dict(sorted(draw(configs).items())),
        dict(sorted(draw(configs).items())),
    )


@st.composite
def groups(draw: st.DrawFn, group_id: str) -> Group:
    ids = sorted(draw(st.sets(texts, max_size=2)))
    assignment = st.dictionaries(texts, st.sets(st.integers(0, 9)).map(lambda found: tuple(sorted(found))), max_size=2)
    members = tuple(
        GroupMember(
            member_id,
            draw(texts),
            draw(texts),
            draw(st.none() | texts),
            draw(st.none() | texts),
            tuple(sorted(draw(st.lists(texts, max_size=2)))),
            draw(assignment),
            draw(st.none() | texts),
        )
        for member_id in ids
    )
    offsets = st.dictionaries(texts, st.dictionaries(st.integers(0, 12), numbers, max_size=3), max_size=2)
    kinds = draw(st.sampled_from(["classic", "consumer", ""])), draw(st.sampled_from(["consumer", "connect", ""]))
    return Group(group_id, draw(texts), draw(texts), draw(st.none() | numbers), members, draw(offsets), *kinds)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    return Cluster(
        draw(texts),
        {broker_id: draw(brokers(broker_id)) for broker_id in sorted(draw(st.sets(st.integers(0, 9), max_size=3)))},
        {name: draw(topics(name)) for name in sorted(draw(st.sets(texts, max_size=3)))},
        tuple(draw(groups(group_id)) for group_id in sorted(draw(st.sets(texts, max_size=2)))),
        draw(st.none() | texts),
        draw(st.none() | texts),
        draw(st.none() | numbers),
    )


def shuffled(value: Any, chance: random.Random) -> Any:  # noqa: ANN401 # any JSON value
    """Return the document with every object, and every list of objects, in another order."""
    if isinstance(value, dict):
        pairs = [(key, shuffled(item, chance)) for key, item in value.items()]
        chance.shuffle(pairs)
        return dict(pairs)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        items = [shuffled(item, chance) for item in value]
        chance.shuffle(items)
        return items
    return value


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_a_written_snapshot_reads_back_as_the_same_cluster(tmp_path: Path, name: str) -> None:
    cluster = small_cluster("orders-0: 1,2,3 size 100", "orders-1: 2,3,4 isr 2,3", fenced=[6])
    write_snapshot(cluster, tmp_path / name)
    assert read_snapshot(tmp_path / name) == cluster


def test_the_same_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    cluster = small_cluster("orders-0: 1,2,3", "audit-0: 2,3,4")
    write_snapshot(cluster, tmp_path / "one.json.gz")
    write_snapshot(read_snapshot(tmp_path / "one.json.gz"), tmp_path / "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()
    assert snapshot_text(cluster).endswith("}\n")


@pytest.mark.long
@drawn(clusters(), st.integers(0, 2**32), part=40, deep=200)
def test_any_cluster_reads_back_in_whatever_order_it_is_written(
    tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, seed: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    text = snapshot_text(cluster)
    path.write_text(text, "utf-8", newline="")
    assert read_snapshot(path) == cluster
    path.write_text(json.dumps(shuffled(json.loads(text), random.Random(seed))), "utf-8")
    assert read_snapshot(path) == cluster
    assert snapshot_text(read_snapshot(path)) == text


def test_a_snapshot_is_read_from_stdin_packed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = small_cluster("a-0: 1,2")
    content = snapshot_text(cluster).encode()
    for piped in (content, gzip.compress(content), b"\xef\xbb\xbf" + content):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(piped)))
        assert read_snapshot("-") == cluster


def minimal() -> dict[str, Any]:
    return {
        "formatVersion": "1.0",
        "clusterId": "x",
        "brokers": [{"id": 1, "logDirs": [{"path": "/d"}], "configs": {}}],
        "topics": [{"name": "t", "partitions": [{"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}]}],
        "groups": [{"groupId": "g", "members": [{"memberId": "m"}], "offsets": {"t": {"0": 5}}}],
    }


def test_only_what_the_contract_names_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(minimal()))
    cluster = read_snapshot(path)
    assert cluster.topics["t"].partitions[0].sizes == ()
    assert (cluster.groups[0].coordinator, cluster.groups[0].offsets) == (None, {"t": {0: 5}})


T, P = "/topics/0", "/topics/0/partitions/0"
M = "/groups/0/members/0"
MISSING = object()
WRONG: list[tuple[str, object, str, str]] = [
    ("/clusterId", MISSING, "/", 'needs the field "clusterId"'),
    ("/clusterId", 5, "/clusterId", "must be a text, not 5"),
    ("/observedAt", 5, "/observedAt", "must be a text"),
    ("/controllerId", -1, "/controllerId", "must be a whole number of at least 0"),
    ("/controllerId", True, "/controllerId", "must be a whole number"),
    ("/brokers", {}, "/brokers", "must be a list"),
    ("/brokers/0", 5, "/brokers/0", "must be an object"),
    ("/brokers/0/id", MISSING, "/brokers/0", 'needs the field "id"'),
    ("/brokers/0/id", 2**63, "/brokers/0/id", "must be a whole number"),
    ("/brokers/0/id", 1.0, "/brokers/0/id", "must be a whole number"),
    ("/brokers/0/rack", 1, "/brokers/0/rack", "must be a text"),
    ("/brokers/0/fenced", "no", "/brokers/0/fenced", "must be true or false"),
    ("/brokers/0/port", "9092", "/brokers/0/port", "must be a whole number"),
    ("/brokers/0/configs", {"a~/b": 1}, "/brokers/0/configs/a~0~1b", "must be a text"),
    ("/brokers/0/logDirs/0/path", None, "/brokers/0/logDirs/0/path", "must be a text"),
    ("/brokers/0/logDirs/0/totalBytes", "1", "/brokers/0/logDirs/0/totalBytes", "must be a whole number"),
    ("/brokers", [{"id": 1}, {"id": 1}], "/brokers/1/id", "repeats 1"),
    ("/topics", 5, "/topics", "must be a list"),
    (f"{T}/name", MISSING, T, 'needs the field "name"'),
    (f"{T}/configs", [], f"{T}/configs", "must be an object"),
    (f"{T}/internal", 1, f"{T}/internal", "must be true or false"),
    (P, 5, P, "must be an object"),
    (P, [], P, "must be an object"),
    (f"{P}/partition", MISSING, P, 'needs the field "partition"'),
    (f"{P}/partition", 1, f"{T}/partitions", "there is no 0"),
    (f"{P}/leader", MISSING, P, 'needs the field "leader"'),
    (f"{P}/leader", 9, f"{P}/leader", "names broker 9, which is none of the replicas [1,2]"),
    (f"{P}/leader", "1", f"{P}/leader", "must be a whole number"),
    (f"{P}/replicas", MISSING, P, 'needs the field "replicas"'),
    (f"{P}/replicas", [], f"{P}/replicas", "must name at least one broker"),
    (f"{P}/replicas", [1, 1], f"{P}/replicas", "none of them twice"),
    (f"{P}/replicas", [1, True], f"{P}/replicas", "whole numbers"),
    (f"{P}/replicas", [1.0, 2], f"{P}/replicas", "whole numbers"),
    (f"{P}/replicas", "12", f"{P}/replicas", "must be a list"),
    (f"{P}/replicas", {"1": 2}, f"{P}/replicas", "must be a list"),
    (f"{P}/isr", MISSING, P, 'needs the field "isr"'),
    (f"{P}/isr", [3], f"{P}/isr", "names broker 3"),
    (f"{P}/isr", None, f"{P}/isr", "must be a list"),
    (f"{P}/addingReplicas", [3], f"{P}/addingReplicas", "names broker 3"),
    (f"{P}/removingReplicas", [-1], f"{P}/removingReplicas", "whole numbers"),
    (f"{P}/sizes", [1], f"{P}/sizes", "must have one entry for each of the 2 replicas"),
    (f"{P}/sizes", [1, -1], f"{P}/sizes/1", "must be a whole number of at least 0 or null"),
    (f"{P}/sizes", [1, 1.5], f"{P}/sizes/1", "must be a whole number"),
    (f"{P}/sizes", {}, f"{P}/sizes", "must be a list"),
    (f"{P}/logDirs", ["/d"], f"{P}/logDirs", "must have one entry"),
    (f"{P}/logDirs", ["/d", 1], f"{P}/logDirs/1", "must be a text or null"),
    (f"{P}/endOffset", -1, f"{P}/endOffset", "must be a whole number"),
    ("/groups", "x", "/groups", "must be a list"),
    ("/groups/0/groupId", 1, "/groups/0/groupId", "must be a text"),
    ("/groups/0/offsets", {"t": {"x": 1}}, "/groups/0/offsets/t", "must have whole numbers as keys"),
    ("/groups/0/offsets", {"t": {"01": 1}}, "/groups/0/offsets/t", "must have whole numbers as keys"),
    ("/groups/0/offsets", {"t": {"0": "1"}}, "/groups/0/offsets/t/0", "must be a whole number"),
    (f"{M}/memberId", MISSING, M, 'needs the field "memberId"'),
    (f"{M}/subscription", [1], f"{M}/subscription", "must be a list of texts"),
    (f"{M}/assignment", {"t": [-1]}, f"{M}/assignment/t", "whole numbers"),
]


@pytest.mark.parametrize(("at", "value", "pointer", "says"), WRONG)
def test_a_wrong_field_is_named_by_its_pointer(tmp_path: Path, at: str, value: object, pointer: str, says: str) -> None:
    document = minimal()
    *parents, last = at.split("/")[1:]
    holder: Any = document
    for step in parents:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    key: Any = int(last) if isinstance(holder, list) else last
    if value is MISSING:
        del holder[key]
    else:
        holder[key] = value
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput) as error:
        read_snapshot(path)
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: {re.escape(pointer)} ", str(error.value))
    assert says in str(error.value)


CONTENTS = [
    (b"", "it is empty"),
    (b"{", "s.json:1:2: the snapshot is not valid JSON: expecting property name"),
    (b"[]", "a snapshot is one JSON object"),
    (b"{}", 'the snapshot needs "formatVersion": "1.0"'),
    (b'{"formatVersion": 1}', 'needs "formatVersion"'),
    (b'{"formatVersion": "2.0"}', "has format version 2.0, and this program reads 1.x"),
    (b'{"formatVersion": "10"}', "has format version 10"),
    (b'{"a": 1, "a": 2}', 'the key "a" stands twice'),
    (b'{"a": NaN}', "NaN is no number"),
    (b'{"a": -Infinity}', "-Infinity is no number"),
    (b'{"a": 1e999}', "a number that is too large"),
    (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"a": "\\ud800"}', "half a surrogate pair"),
    (b'{"a": \xff}', "byte 6 is not UTF-8"),
    (b'{"a": "\n"}', "invalid control character"),
    (b"\x1f\x8bnot gzip", "is gzipped, but damaged or cut short"),
    (gzip.compress(b'{"formatVersion": "1.0"}', mtime=0)[:-4], "is gzipped, but damaged or cut short"),
    (b"# yes\n---\napiVersion: reconciler/v1\nkind: Cluster\n", "it looks like YAML"),
    (b"formatVersion: 1.0\n", "it looks like YAML"),
    (b'{"version": 1, "partitions": []}', "this is a file of kafka-reassign-partitions, not a snapshot"),
    (b'{"formatVersion": "1.0", "stages": [], "topicChanges": []}', "this is a plan, not a snapshot"),
]


@pytest.mark.parametrize(("content", "says"), CONTENTS)
def test_what_is_no_snapshot_is_told_apart(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        read_snapshot(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("depth", range(100, 1100, 25))
def test_no_depth_of_nesting_is_a_crash(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"formatVersion": "1.0", "clusterId": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(InvalidInput):
        read_snapshot(path)


def test_a_file_that_cannot_be_read_or_written_says_why(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file, so there is no snapshot to read"):
        read_snapshot(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="the snapshot cannot be read: Is a directory"):
        read_snapshot(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReconcilerError, match="the snapshot cannot be written: "):
        write_snapshot(small_cluster("a-0: 1"), tmp_path / "file" / "s.json")


def test_a_snapshot_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.json"
    write_snapshot(small_cluster("a-0: 1"), path)
    before = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ReconcilerError, match="No space left on device"):
        write_snapshot(small_cluster("b-0: 2"), path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]
