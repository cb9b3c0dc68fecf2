"""What a plan destroys is told in every output, with its bytes and its readers: the cases that were once silent."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.program.call import Ended, Program
from helpers.program.documents import document

pytestmark = pytest.mark.long

MIB = 1024**2
YEAR, HOUR = "31536000000", "3600000"
FORMS = ("text", "json", "markdown", "html")


def topic(name: str, configs: Mapping[str, str], size: int) -> dict[str, Any]:
    """Return a topic of the snapshot: two partitions, two replicas of that size each."""
    partitions = [
        {"partition": number, "leader": 1, "replicas": [1, 2], "isr": [1, 2], "sizes": [size, size], "endOffset": 6000}
        for number in range(2)
    ]
    return {"name": name, "configs": dict(configs), "partitions": partitions}


def root(*topics: dict[str, Any], declared: str, groups: list[dict[str, Any]] | None = None) -> None:
    """Write a cluster of two simulated brokers and what is declared of its topics."""
    folder = Path("desired-state/c")
    folder.mkdir(parents=True)
    dirs = [{"path": "/d", "totalBytes": 10**12, "usableBytes": 10**12}]
    snapshot = {
        "formatVersion": "1.1",
        "clusterId": "c",
        "kafkaVersion": "4.1",
        "brokers": [{"id": number, "rack": "a", "logDirs": dirs} for number in (1, 2)],
        "topics": list(topics),
        "groups": groups or [],
    }
    (folder / "snapshot.json").write_text(json.dumps(snapshot))
    spec = "{simulation: snapshot.json, topics: {managed: all, delete: allow}, limits: {deletedTopics: 9}}"
    (folder / "cluster.yaml").write_text(document("Cluster", "c", spec))
    (folder / "topics.yaml").write_text(declared)


def declare(name: str, spec: str) -> str:
    return document("Topic", name, f"{{{spec}}}")


def group(name: str, *topics: str, members: int) -> dict[str, Any]:
    """Return a group that reads these topics, with so many members now."""
    there = [{"memberId": f"{name}-{number}", "subscription": list(topics)} for number in range(members)]
    offsets = {each: {"0": 5} for each in topics}
    return {"groupId": name, "state": "Stable" if members else "Empty", "members": there, "offsets": offsets}


def told(reconciler: Program) -> Mapping[str, str]:
    """Return the plan as each output shows it, and what differs."""
    made = reconciler("plan", "--cluster", "c", "--out", "plan.json")
    assert made.code == 0, made.err
    forms = {form: _out(reconciler("show", "plan.json", "-o", form)) for form in FORMS}
    differ = {f"diff {form}": _out(reconciler("diff", "--cluster", "c", "-o", form)) for form in FORMS[:3]}
    as_json = reconciler("plan", "--cluster", "c", "-o", "json")
    return {**forms, **differ, "plan": made.out, "plan json": as_json.out, "plan json stderr": as_json.err}


def _out(ended: Ended) -> str:
    assert ended.code == 0, ended.err
    return ended.out


def assert_told(outputs: Mapping[str, str], *words: str) -> None:
    """Assert that each output has all of these words, and none that soothes."""
    for name, output in outputs.items():
        for word in words:
            assert word in output, f"{name}: {word}\n{output}"
        assert "metadata only" not in output, name
        assert "no data" not in output, name


def test_shorter_retention_is_told_everywhere_and_protect_shrink_refuses_it(reconciler: Program) -> None:
    shorter = f"config: {{retention.ms: {HOUR}}}"
    read = [group("billing", "orders", members=4), group("audit", "orders", members=0)]
    root(topic("orders", {"retention.ms": YEAR}, 5 * MIB), declared=declare("orders", shorter), groups=read)
    outputs = told(reconciler)
    assert_told(outputs, "destroys", "deletes what is older than 1 h", "billing", "audit")
    for name in ("text", "markdown", "html", "plan", "diff text", "diff markdown", "plan json stderr"):
        assert "1 topic, up to 20.0 MiB on all replicas, read by 2 groups" in outputs[name], name
        assert "read by billing (live), audit" in outputs[name], name
    for name in ("json", "plan json"):
        total = {"topics": 1, "bytes": 20 * MIB, "groups": 2}
        assert json.loads(outputs[name])["summary"]["destroys"] == total
    assert json.loads(outputs["diff json"])["destroys"]["bytes"] == 20 * MIB
    Path("desired-state/c/topics.yaml").write_text(declare("orders", f"protect: [shrink], {shorter}"))
    ended = reconciler("plan", "--cluster", "c")
    assert ended.code == 1
    assert "KR254" in ended.err
    assert "topics.yaml:4" in ended.err


def test_a_snapshot_without_groups_says_that_nobody_looked(reconciler: Program) -> None:
    root(topic("old", {}, MIB), declared=declare("old", "state: absent"))
    path = Path("desired-state/c/snapshot.json")
    seen = {key: value for key, value in json.loads(path.read_text()).items() if key != "groups"}
    Path("seen.json").write_text(json.dumps(seen))
    ended = reconciler("plan", "--cluster", "c", "--state", "seen.json")
    assert "nobody looked at who reads it" in ended.out
    assert "no group" not in ended.out


def test_apply_says_what_goes_before_it_begins(reconciler: Program) -> None:
    root(topic("old", {}, MIB), declared=declare("old", "state: absent"), groups=[group("g", "old", members=0)])
    reconciler("plan", "--cluster", "c", "--out", "plan.json")
    line = "destroys: 1 topic, 4.0 MiB on all replicas, read by 1 group"
    assert line in reconciler("apply", "plan.json", "--dry-run").err
    ended = reconciler("apply", "plan.json", "--yes")
    assert ended.code == 0, ended.err
    assert line in ended.err


def test_a_rollback_says_what_it_destroys(reconciler: Program) -> None:
    longer = declare("orders", f"config: {{retention.ms: {YEAR}}}")
    read = [group("billing", "orders", members=1)]
    root(topic("orders", {"retention.ms": HOUR}, MIB), declared=longer, groups=read)
    outputs = reconciler("plan", "--cluster", "c", "--out", "plan.json")
    assert "destroys" not in outputs.out
    assert reconciler("apply", "plan.json", "--yes").code == 0
    ended = reconciler("cancel", "--rollback", "--dry-run", "plan.json")
    assert ended.code == 0, ended.err
    assert "destroys: 1 topic, up to 4.0 MiB on all replicas, read by 1 group" in ended.out
    assert "billing (live)" in ended.out
