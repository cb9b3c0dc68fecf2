"""Saved plans: what is written reads back exactly, and nothing that was changed is taken."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.resealed import digest_of, resealed
from helpers.plans.sample_plan import sample_plan

from reconciler.files.json_text import canonical_json, readable_json
from reconciler.files.plan_file import plan_text, read_plan, with_id, write_plan
from reconciler.files.snapshot import write_snapshot
from reconciler.model.change import DeleteTopic
from reconciler.model.codec import schema_of, to_json
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan, PriceLevel, Proof, Restore, Rollback, Source
from reconciler.model.problem import InvalidInput, Location, Problem, Refused
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition


def whole_plan() -> Plan:
    """Return a plan with every kind of everything, its places without columns: the file keeps lines."""
    sample = sample_plan()
    moves = tuple(
        Move(TopicPartition("r", number), (1, 2), (2, 3), number, reason, None, is_size_known=number % 2 == 0)
        for number, reason in enumerate(Reason)
    )
    rollback = Rollback(
        (Restore(TopicPartition("r", 0), (1, 2), None),),
        {"r": {"leader.replication.throttled.replicas": "*"}},
        {3: {"leader.replication.throttled.rate": "5"}},
    )
    number = len(sample.stages) + 1
    return with_id(
        without_columns(
            replace(
                sample,
                topic_changes=(*sample.topic_changes, DeleteTopic("gone", "id"), DeleteTopic("void")),
                stages=(*sample.stages, ReassignStage(number, moves), TopicsStage(number + 1, (3, 4))),
                rollback=rollback,
                proof=Proof("bytes", 100, 99, {1: -5, 2: 0}, _LEVELS),
                election_batch=7,
                timeout_seconds=9,
                least_seconds=5,
            )
        )
    )


_LEVELS = (
    PriceLevel("replicas balance", 7, 7, {1: 3, 2: -4}, {"orders": {1: 1, 2: 0}}),
    PriceLevel("bytes", 100, 99, {1: 1 << 70}, {}, {"disk": {1: -3, 2: 0}}, 20),
)


def without_columns(plan: Plan) -> Plan:
    stages = tuple(
        replace(stage, moves=tuple(replace(move, at=line_of(move.at)) for move in stage.moves))
        if isinstance(stage, ReassignStage)
        else stage
        for stage in plan.stages
    )
    return replace(
        plan,
        stages=stages,
        topic_changes=tuple(replace(change, at=line_of(change.at)) for change in plan.topic_changes),
        warnings=tuple(on_line(problem) for problem in plan.warnings),
        violations=tuple(on_line(problem) for problem in plan.violations),
    )


def on_line(problem: Problem) -> Problem:
    return replace(problem, at=line_of(problem.at))


def line_of(at: Location | None) -> Location | None:
    return None if at is None else Location(at.file, at.line)


def tiny_plan() -> Plan:
    move = Move(TopicPartition("t", 0), (1, 2), (1, 3), 5, Reason.RACKS, Location("c/x.yaml", 3))
    return with_id(Plan("c", "id", Source("sha256:00"), stages=(ReassignStage(1, (move,), 10, 1),)))


def refused(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InvalidInput) as error:
        read_plan(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def edited(plan: Plan, at: str, value: object) -> str:
    """Return the plan's file with one field changed, or left out for None, and an id that fits."""
    document = json.loads(plan_text(plan))
    *parents, last = at.split("/")[1:]
    holder: Any = document
    for step in parents:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    if value is None:
        del holder[last]
    else:
        holder[int(last) if isinstance(holder, list) else last] = value
    return with_fitting_id(document)


def with_fitting_id(document: dict[str, Any]) -> str:
    return json.dumps(resealed(document))


@pytest.mark.parametrize("plan", [whole_plan(), tiny_plan(), with_id(Plan("c", "id", Source("d")))])
def test_a_plan_reads_back_exactly(tmp_path: Path, plan: Plan) -> None:
    write_plan(plan, tmp_path / "plan.json")
    found = read_plan(tmp_path / "plan.json")
    assert found == plan
    assert [type(stage) for stage in found.stages] == [type(stage) for stage in plan.stages]
    assert [type(change) for change in found.topic_changes] == [type(change) for change in plan.topic_changes]
    assert plan_text(found) == (tmp_path / "plan.json").read_text("utf-8")


def test_every_kind_of_stage_and_reason_is_in_the_whole_plan() -> None:
    plan = whole_plan()
    assert {type(stage) for stage in plan.stages} == {TopicsStage, ReassignStage, ElectStage}
    moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
    assert {move.reason for move in moves} == set(Reason)


def test_the_id_is_over_all_the_rest() -> None:
    plan = tiny_plan()
    assert plan.id == with_id(replace(plan, id="ffffffff")).id
    others = [
        replace(plan, cluster_id="other"),
        replace(plan, timeout_seconds=1),
        replace(plan, warnings=(Problem("KR801", "x"),)),
        replace(plan, source=Source("sha256:01")),
    ]
    assert len({plan.id, *(with_id(other).id for other in others)}) == 5


def test_the_digest_is_by_the_rule_that_the_schema_states_and_the_id_its_start() -> None:
    for plan in (whole_plan(), tiny_plan()):
        document = json.loads(plan_text(plan))
        assert document["digest"] == plan.digest == digest_of(document)
        assert document["id"] == plan.id == plan.digest[7:15]


def test_a_file_without_a_digest_is_read_by_its_id_and_its_plan_has_one(tmp_path: Path) -> None:
    path, plan = tmp_path / "plan.json", whole_plan()
    document = json.loads(plan_text(plan))
    del document["digest"]
    path.write_text(json.dumps(document))
    assert read_plan(path) == plan
    refused(path, json.dumps(document | {"id": "0badcafe"}))


@pytest.mark.parametrize("digest", [None, "", "sha256:", 5, f"sha256:{'0' * 64}", tiny_plan().digest.upper()])
def test_a_digest_that_does_not_fit_is_a_changed_plan(tmp_path: Path, digest: object) -> None:
    text = json.dumps(json.loads(plan_text(tiny_plan())) | {"digest": digest})
    assert "does not match its digest" in refused(tmp_path / "plan.json", text)


@pytest.mark.long
def test_no_byte_with_a_flipped_bit_is_taken(tmp_path: Path) -> None:
    content = plan_text(tiny_plan()).encode()
    path = tmp_path / "plan.json"
    for position in range(len(content)):
        for bit in {position % 8, 5}:  # the sixth makes another case of a letter
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            refused(path, bytes(changed))


def test_no_plan_that_is_cut_short_is_taken(tmp_path: Path) -> None:
    content = plan_text(tiny_plan()).encode()
    for end in range(len(content) - 1):
        refused(tmp_path / "plan.json", content[:end])


def test_a_changed_plan_says_how_to_go_on(tmp_path: Path) -> None:
    text = plan_text(tiny_plan()).replace('"throttleBytesPerSecond": 10', '"throttleBytesPerSecond": 99')
    message = refused(tmp_path / "plan.json", text)
    assert "this plan was changed after it was made" in message
    assert "`reconciler plan`" in message


S = "/stages/0"
_LEVEL = {"objective": "bytes", "value": 1, "lowerBound": 1, "prices": {}}
WRONG: list[tuple[str, object, str, str]] = [
    ("/cluster/name", None, "/cluster", 'needs the field "name"'),
    ("/source/desiredDigest", 5, "/source/desiredDigest", "must be a text"),
    ("/requires/brokersAlive", [1, 1], "/requires/brokersAlive", "none of them twice"),
    ("/requires/topicIds", {"orders": 7}, "/requires/topicIds/orders", "must be a text"),
    ("/run/timeoutSeconds", 0, "/run/timeoutSeconds", "at least 1"),
    (f"{S}/number", 2, f"{S}/number", "must be 1: stages are numbered in order"),
    (f"{S}/kind", "swap", f"{S}/kind", "must be one of reassign, logDirs, elect, topics"),
    (f"{S}/throttleBytesPerSecond", 0, f"{S}/throttleBytesPerSecond", "at least 1"),
    (f"{S}/moves/0/from", [], f"{S}/moves/0/from", "must name at least one broker"),
    (f"{S}/moves/0/to", [1, 1], f"{S}/moves/0/to", "none of them twice"),
    (f"{S}/moves/0/bytes", -1, f"{S}/moves/0/bytes", "at least 0"),
    (f"{S}/moves/0/bytes", 1.0, f"{S}/moves/0/bytes", "whole number"),
    (f"{S}/moves/0/reason", "why", f"{S}/moves/0/reason", "must be one of assignment"),
    (f"{S}/moves/0/at", "nowhere", f"{S}/moves/0/at", "must be a file and a line"),
    (f"{S}/moves/0/more", 1, f"{S}/moves/0/more", "does not read"),
    (f"{S}/moves/0", [], f"{S}/moves/0", "must be an object"),
    ("/proof/levels", [{**_LEVEL, "prices": {"1": True}}], "/proof/levels/0/prices/1", "must be a whole number"),
    ("/proof/levels", [{**_LEVEL, "topicPrices": {"t": 5}}], "/proof/levels/0/topicPrices/t", "must be an object"),
    ("/proof/levels", [{**_LEVEL, "loadPrices": {"disk": {"1": "x"}}}], "/proof/levels/0/loadPrices/disk/1", "whole"),
    ("/proof/levels", [{**_LEVEL, "shift": 0}], "/proof/levels/0/shift", "at least 1"),
    ("/proof/levels", [{**_LEVEL, "value": 1.5}], "/proof/levels/0/value", "must be a whole number"),
    ("/proof/levels", [_LEVEL, {"objective": "x"}], "/proof/levels/1", 'needs the field "value"'),
    ("/proof/prices", {"x": 1}, "/proof/prices", "must have whole numbers as keys"),
    ("/proof/prices", {"1": 1.5}, "/proof/prices/1", "must be a whole number"),
    ("/proof/lowerBound", 1, "/proof/lowerBound", "must not be above the value, 0"),
    ("/proof/gapPercent", 1.5, "/proof/gapPercent", "that the rest of the plan denies"),
    ("/summary/bytes", 1, "/summary/bytes", "that the rest of the plan denies"),
    ("/summary", None, "/summary", "that the rest of the plan denies"),
    ("/future", 1, "/future", "does not read"),
    ("/warnings", [{"code": "KR801"}], "/warnings/0", 'needs the field "message"'),
    ("/topicChanges", [{"kind": "x"}], "/topicChanges/0/kind", "must be one of createTopic"),
    ("/stages", [{"number": 1, "kind": "topics", "topicChanges": [0]}], "/stages/0/topicChanges", "which has 0"),
]


@pytest.mark.parametrize(("at", "value", "pointer", "says"), WRONG)
def test_a_field_that_is_not_understood_is_refused_even_with_a_fitting_id(
    tmp_path: Path, at: str, value: object, pointer: str, says: str
) -> None:
    path = tmp_path / "plan.json"
    message = refused(path, edited(tiny_plan(), at, value))
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: {re.escape(pointer)} ", message)
    assert says in message


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("/cluster/clusterId", "another"),
        (f"{S}/moves/0/to", [1, 4]),
        (f"{S}/throttleBytesPerSecond", 1000),
        ("/requires/brokersAlive", [7]),
        ("/run/timeoutSeconds", 1),
        ("/source/commit", "another"),
        ("/warnings", [{"code": "KR801", "message": "x"}]),
    ],
)
def test_a_plan_that_was_edited_with_its_digest_is_read_unless_the_reviewed_digest_is_asked_for(
    tmp_path: Path, at: str, value: object
) -> None:
    path, reviewed = tmp_path / "plan.json", tiny_plan().digest
    write_plan(tiny_plan(), path)
    assert read_plan(path, reviewed) == tiny_plan()
    path.write_text(edited(tiny_plan(), at, value))
    assert read_plan(path).digest != reviewed
    with pytest.raises(Refused, match="not the plan that was reviewed") as refusal:
        read_plan(path, reviewed)
    assert refusal.value.code == "KR425"


def test_layout_is_not_content(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(json.loads(plan_text(tiny_plan())), indent=4))
    assert read_plan(tmp_path / "plan.json") == tiny_plan()


def test_another_kind_of_file_is_named(tmp_path: Path) -> None:
    write_snapshot(small_cluster("a-0: 1"), tmp_path / "s.json")
    content = (tmp_path / "s.json").read_bytes()
    assert "this is a snapshot, not a plan" in refused(tmp_path / "plan.json", content)
    assert "file of kafka-reassign-partitions" in refused(tmp_path / "plan.json", '{"version":1,"partitions":[]}')
    assert "it looks like YAML" in refused(tmp_path / "plan.json", "kind: Topic\n")
    assert "format version 2.0" in refused(tmp_path / "plan.json", '{"formatVersion": "2.0", "stages": []}')
    assert "holds something else" in refused(tmp_path / "plan.json", "[]")


@pytest.mark.parametrize("depth", range(100, 1100, 50))
def test_no_depth_of_nesting_is_a_crash(tmp_path: Path, depth: int) -> None:
    nested: Any = []
    for _ in range(depth):
        nested = [nested]
    text = '{"formatVersion": "1.0", "id": "00000000", "stages": ' + "[" * depth + "]" * depth + "}"
    refused(tmp_path / "plan.json", text)


def test_no_number_has_a_fraction_in_what_is_written_quickly() -> None:
    """Of floats, and of these alone, the quick writer has other forms than Python's."""
    members = schema_of(Plan)["properties"]
    assert '"type": "number"' not in json.dumps([members["stages"], members["rollback"]])


@pytest.mark.parametrize("plan", [whole_plan(), tiny_plan()])
def test_what_is_written_quickly_is_what_python_writes(plan: Plan) -> None:
    document = to_json(plan)
    longer = {"names": ["é\u2028\x7f\x00\n", "[{"], "bytes": 1 << 80, "nested": [{"a": [{}]}], "long": ["x"] * 400}
    document["stages"].append({"kind": "", "moves": [longer, {"b": {}, "a": [], "é": None}]})
    whole = {"stages", "rollback"}
    assert readable_json(document, whole) == readable_json(document)
    assert canonical_json(document, whole) == canonical_json(document)
