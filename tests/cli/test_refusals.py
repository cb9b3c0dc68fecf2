"""What Kafka would refuse of a plan is told when it is made, and again before a run changes anything."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document, write_simulated

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.files.snapshot import read_snapshot
from reconciler.model.config_value import UNREADABLE
from reconciler.model.problem import ClusterUnavailable

pytestmark = pytest.mark.long

GROWN = document("Topic", "orders", "{partitions: 4, replicationFactor: 1}")
# customConfigs: else it is told when the files are read.
MISTYPED = document(
    "Topic", "payments", "{partitions: 4, config: {segment.ms: 1d, retention.sm: 3000}, customConfigs: [retention.sm]}"
)
REFUSED = (
    "topic payments: Kafka would refuse retention.sm=3000: INVALID_CONFIG (Unknown topic config name: retention.sm)"
)


@pytest.fixture
def here(reconciler: Program, tmp_path: Path) -> Path:
    """Return the folder of a simulated cluster of one broker and two topics."""
    del reconciler
    return tmp_path / "desired-state" / "here"


def declare(*topics: str, brokers: int = 1, spec: str = "") -> None:
    """Declare these topics of a simulated cluster that has two, of a partition each."""
    observed = small_cluster("orders-0: 1 size 0", "payments-0: 1 size 0", brokers=range(1, brokers + 1))
    write_simulated(replace(observed, kafka_version="4.3"), *topics, name="here", spec=spec)


def test_a_plan_names_topic_answer_and_place_of_what_kafka_would_refuse_and_is_not_made(
    reconciler: Program, here: Path
) -> None:
    declare(GROWN, MISTYPED)
    ended = reconciler("plan", "--out", "plan.json")
    told = f"error: {here.parent.name}/here/cluster.yaml:14:48: {REFUSED}; write what this cluster takes (KR611)\n"
    assert (ended.code, ended.out, ended.err) == (1, "", told)
    assert not Path("plan.json").exists()
    as_json = json.loads(reconciler("plan", "-o", "json").err)
    assert [problem["code"] for problem in as_json["error"]["problems"]] == ["KR611"]


def test_a_plan_of_a_snapshot_says_that_kafka_was_not_asked_and_apply_asks_before_it_changes_anything(
    reconciler: Program, here: Path
) -> None:
    declare(GROWN, MISTYPED)
    planned = reconciler("plan", "--state", str(here / "snapshot.json"), "--out", "plan.json", "-o", "json")
    warned = {one["code"]: one["message"] for one in json.loads(planned.out)["warnings"]}
    text = "Kafka was not asked whether it takes the changes of topics orders, payments: the state is a snapshot"
    assert (planned.code, warned["KR865"]) == (0, f"{text}; apply asks before its first change")
    before = (here / "snapshot.json").read_bytes()
    for options in (("--dry-run",), ("--yes",)):
        ended = reconciler("apply", "plan.json", *options)
        said = "Kafka would refuse a change of this plan, so nothing has been changed"
        assert ended.code == 1
        assert ended.err.splitlines()[0] == f"error: {said}: here/cluster.yaml:14: {REFUSED} (KR611)"
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
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, answer: Answer | ClusterUnavailable, why: str
) -> None:
    def answered(_admin: object, _changes: object, *, is_validated_only: bool) -> Mapping[str, Answer]:
        assert is_validated_only
        if isinstance(answer, ClusterUnavailable):
            raise answer
        return {"orders": answer}

    monkeypatch.setattr(SimulatedAdmin, "create_partitions", answered)
    declare(GROWN)
    planned = reconciler("plan", "-o", "json")
    warned = [one["message"] for one in json.loads(planned.out)["warnings"] if one["code"] == "KR865"]
    told = f"Kafka was not asked whether it takes {why}; apply asks before its first change"
    assert (planned.code, warned) == (0, [told])


def test_a_config_that_kafka_refuses_after_all_leaves_the_topic_as_large_as_it_was(
    reconciler: Program, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer changed between the question and the request: what cannot be undone has waited for it."""
    declare(GROWN, MISTYPED)
    assert reconciler("plan", "--state", str(here / "snapshot.json"), "--out", "plan.json").code == 0
    monkeypatch.setattr(
        SimulatedAdmin, "_before", lambda _admin, name: Answer() if name.startswith("validate.") else None
    )
    ended = reconciler("apply", "plan.json", "--yes")
    assert (ended.code, "plan again: this plan would ask for the same" in ended.err) == (1, True), ended
    topics = json.loads((here / "snapshot.json").read_text("utf-8"))["topics"]
    assert [(len(topic["partitions"]), topic["configs"]) for topic in topics] == [(1, {}), (1, {})]


def test_a_growth_that_waits_for_another_replication_factor_is_no_refusal(reconciler: Program) -> None:
    declare(GROWN.replace("replicationFactor: 1", "replicationFactor: 2"), brokers=2)
    planned = reconciler("plan", "--out", "plan.json", "-o", "json")
    warned = [one["message"] for one in json.loads(planned.out)["warnings"] if one["code"] == "KR865"]
    assert (planned.code, len(warned), "the replication factor changes first" in warned[0]) == (0, 1, True)
    assert reconciler("apply", "plan.json", "--yes").code == 0


def test_a_deletion_that_the_brokers_forbid_is_refused_before_anything_is_changed(
    reconciler: Program, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(document("Topic", "orders", "{state: absent}"), spec="topics: {delete: allow}")
    assert reconciler("plan", "--out", "plan.json").code == 0
    monkeypatch.setattr(SimulatedAdmin, "broker_settings", lambda *_: {1: {"delete.topic.enable": "false"}})
    before = (here / "snapshot.json").read_bytes()
    for arguments in (("plan",), ("apply", "plan.json", "--dry-run"), ("apply", "plan.json", "--yes")):
        ended = reconciler(*arguments)
        assert (ended.code, "TOPIC_DELETION_DISABLED" in ended.err) == (1, True), ended
    assert (here / "snapshot.json").read_bytes() == before


def test_a_key_that_kafka_has_removed_is_refused_with_its_remedy_and_goes_by_null(
    reconciler: Program, here: Path
) -> None:
    key = "message.format.version"
    observed = small_cluster("orders-0: 1 size 9", kafka_version="4.1", configs={"orders": {key: UNREADABLE}})
    throttled, moved = "moves: {throttle: 1MiB/s}", "placement: {assignment: [[2]]}"
    write_simulated(observed, document("Topic", "orders", f"{{{moved}}}"), name="here", spec=throttled)
    ended = reconciler("plan")
    refusal = (
        f"error: {here.parent.name}/here/cluster.yaml:6:1: topic orders: Kafka would refuse its throttle lists: "
        f"INVALID_CONFIG (Unknown topic config name: {key}); this release has removed the key: declare {key}: null, "
        "which deletes it there (KR611)\n"
    )
    assert (ended.code, ended.err) == (1, refusal)
    nulled = document("Topic", "orders", f"{{{moved}, config: {{{key}: null}}}}")
    write_simulated(observed, nulled, name="here", spec=throttled)
    assert reconciler("plan", "--out", "plan.json").code == 0
    for option in ("--dry-run", "--yes"):
        assert (ended := reconciler("apply", "plan.json", option)).code == 0, ended
    assert reconciler("plan", "--detailed-exitcode").code == 0
    assert dict(read_snapshot(here / "snapshot.json").topics["orders"].configs) == {}
