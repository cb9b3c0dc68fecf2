"""What Kafka would refuse of a plan is told when it is made, and again before a run changes anything."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.program.call import Program

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.problem import ClusterUnavailable

pytestmark = pytest.mark.long

CLUSTER = """\
apiVersion: reconciler/v1
kind: Cluster
metadata: {name: here}
spec: {simulation: snapshot.json}
---
"""
TOPIC = """\
apiVersion: reconciler/v1
kind: Topic
metadata: {name: NAME}
spec:
  partitions: 4
  replicationFactor: 1
"""
STATE = {
    "formatVersion": "1.0",
    "clusterId": "MkU3OEVBNTcwNTJENDM2Qk",
    "observedAt": "2026-11-21T14:02:11Z",
    "kafkaVersion": "4.3",
    "brokers": [{"id": 1}],
    "topics": [
        {
            "name": name,
            "configs": {},
            "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "sizes": [0]}],
        }
        for name in ("orders", "payments")
    ],
}
GROWN = TOPIC.replace("NAME", "orders")
MISTYPED = TOPIC.replace("NAME", "payments") + (
    "  config: {segment.ms: 1d, retention.sm: 3000}\n"
    "  customConfigs: [retention.sm]  # else it is told when the files are read\n"
)
REFUSED = (
    "topic payments: Kafka would refuse retention.sm=3000: INVALID_CONFIG (Unknown topic config name: retention.sm)"
)


@pytest.fixture
def here(reconciler: Program, tmp_path: Path) -> Path:
    """Return the folder of a simulated cluster of one broker and two topics."""
    del reconciler
    folder = tmp_path / "desired-state" / "here"
    folder.mkdir(parents=True)
    (folder / "snapshot.json").write_text(json.dumps(STATE), "utf-8")
    return folder


def declare(here: Path, *topics: str) -> None:
    (here / "cluster.yaml").write_text(CLUSTER + "---\n".join(topics), "utf-8")


def test_a_plan_names_topic_answer_and_place_of_what_kafka_would_refuse_and_is_not_made(
    reconciler: Program, here: Path
) -> None:
    declare(here, GROWN, MISTYPED)
    ended = reconciler("plan", "--out", "plan.json")
    told = f"error: {here.parent.name}/here/cluster.yaml:19:28: {REFUSED}; write what this cluster takes (KR611)\n"
    assert (ended.code, ended.out, ended.err) == (1, "", told)
    assert not Path("plan.json").exists()
    as_json = json.loads(reconciler("plan", "-o", "json").err)
    assert [problem["code"] for problem in as_json["error"]["problems"]] == ["KR611"]


def test_a_plan_of_a_snapshot_says_that_kafka_was_not_asked_and_apply_asks_before_it_changes_anything(
    reconciler: Program, here: Path
) -> None:
    declare(here, GROWN, MISTYPED)
    planned = reconciler("plan", "--state", str(here / "snapshot.json"), "--out", "plan.json", "-o", "json")
    warned = {one["code"]: one["message"] for one in json.loads(planned.out)["warnings"]}
    text = "Kafka was not asked whether it takes the changes of topics orders, payments: the state is a snapshot"
    assert (planned.code, warned["KR865"]) == (0, f"{text}; apply asks before its first change")
    before = (here / "snapshot.json").read_bytes()
    for options in (("--dry-run",), ("--yes",)):
        ended = reconciler("apply", "plan.json", *options)
        assert (ended.code, ended.err.splitlines()[:2]) == (
            1,
            [
                "error: Kafka would refuse a change of this plan, so nothing has been changed: (KR611)",
                f"here/cluster.yaml:19: {REFUSED}",
            ],
        )
        assert "plan again" in ended.err
        assert "run apply again" not in ended.err
        assert (here / "snapshot.json").read_bytes() == before


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer("TOPIC_AUTHORIZATION_FAILED"), "all topic changes: this user lacks Alter on topic orders"),
        (Answer("REQUEST_TIMED_OUT"), "the changes of topic orders: it answered REQUEST_TIMED_OUT"),
        (ClusterUnavailable("no answer"), "the changes of topic orders: no answer"),
    ],
)
def test_what_kafka_could_not_be_asked_is_a_warning_of_the_plan(
    reconciler: Program, here: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer | ClusterUnavailable, why: str
) -> None:
    def answered(_admin: object, _changes: object, *, is_validated_only: bool) -> Mapping[str, Answer]:
        assert is_validated_only
        if isinstance(answer, ClusterUnavailable):
            raise answer
        return {"orders": answer}

    monkeypatch.setattr(SimulatedAdmin, "create_partitions", answered)
    declare(here, GROWN)
    planned = reconciler("plan", "-o", "json")
    warned = [one["message"] for one in json.loads(planned.out)["warnings"] if one["code"] == "KR865"]
    told = f"Kafka was not asked whether it takes {why}; apply asks before its first change"
    assert (planned.code, warned) == (0, [told])


def test_a_config_that_kafka_refuses_after_all_leaves_the_topic_as_large_as_it_was(
    reconciler: Program, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer changed between the question and the request: what cannot be undone has waited for it."""
    declare(here, GROWN, MISTYPED)
    assert reconciler("plan", "--state", str(here / "snapshot.json"), "--out", "plan.json").code == 0
    monkeypatch.setattr(
        SimulatedAdmin, "_before", lambda _admin, name: Answer() if name.startswith("validate.") else None
    )
    ended = reconciler("apply", "plan.json", "--yes")
    assert (ended.code, "plan again: this plan would ask for the same" in ended.err) == (1, True), ended
    topics = json.loads((here / "snapshot.json").read_text("utf-8"))["topics"]
    assert [(len(topic["partitions"]), topic["configs"]) for topic in topics] == [(1, {}), (1, {})]


def test_a_growth_that_waits_for_another_replication_factor_is_no_refusal(reconciler: Program, here: Path) -> None:
    (here / "snapshot.json").write_text(json.dumps({**STATE, "brokers": [{"id": 1}, {"id": 2}]}), "utf-8")
    declare(here, GROWN.replace("replicationFactor: 1", "replicationFactor: 2"))
    planned = reconciler("plan", "--out", "plan.json", "-o", "json")
    warned = [one["message"] for one in json.loads(planned.out)["warnings"] if one["code"] == "KR865"]
    assert (planned.code, len(warned), "the replication factor changes first" in warned[0]) == (0, 1, True)
    assert reconciler("apply", "plan.json", "--yes").code == 0


def test_a_deletion_that_the_brokers_forbid_is_refused_before_anything_is_changed(
    reconciler: Program, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "apiVersion: reconciler/v1\nkind: Topic\nmetadata: {name: orders}\nspec: {state: absent}\n"
    (here / "cluster.yaml").write_text(
        CLUSTER.replace("snapshot.json}", "snapshot.json, topics: {delete: allow}}") + gone, "utf-8"
    )
    assert reconciler("plan", "--out", "plan.json").code == 0
    monkeypatch.setattr(SimulatedAdmin, "broker_settings", lambda *_: {1: {"delete.topic.enable": "false"}})
    before = (here / "snapshot.json").read_bytes()
    for arguments in (("plan",), ("apply", "plan.json", "--dry-run"), ("apply", "plan.json", "--yes")):
        ended = reconciler(*arguments)
        assert (ended.code, "TOPIC_DELETION_DISABLED" in ended.err) == (1, True), ended
    assert (here / "snapshot.json").read_bytes() == before
