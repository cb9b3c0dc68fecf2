import json
from dataclasses import replace

from helpers.plans.sample_plan import sample_plan

from reconciler.model.change import BrokenRule, Changes, DeleteTopic
from reconciler.model.move import Election, Reason
from reconciler.model.problem import Location, Problem, Reported, ReportedError, ReportedProblem, Severity
from reconciler.model.run import RunResult, RunState
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_json

AT = Location("demo/web.yaml", 9, 3)


def test_changes_tell_old_and_new_with_their_place() -> None:
    found = Changes(
        topic_changes=(*sample_plan().topic_changes, DeleteTopic("old", "id-1", AT)),
        broken_rules=(BrokenRule(TopicPartition("t", 1), Reason.RACKS, "two in rack b", AT),),
        elections=(Election(TopicPartition("t", 2), 3),),
        drift=(Problem("KR211", "broker 9", AT, Severity.WARNING),),
    )
    value = json.loads(as_json.changes(found))
    create, grow, alter, delete = value["topicChanges"]
    assert create["kind"] == "createTopic"
    assert create["configs"] == {"retention.ms": "604800000"}
    counts = grow["fromCount"], grow["toCount"]
    assert (grow["kind"], counts, grow["at"]) == ("createPartitions", (12, 18), "demo/web.yaml:9")
    assert (alter["set"], alter["delete"]) == ({"retention.ms": "1"}, ["x.secret"])
    assert alter["before"] == {"retention.ms": None, "x.secret": "(hidden)"}
    assert (delete["kind"], delete["topicId"]) == ("deleteTopic", "id-1")
    assert value["brokenRules"] == [
        {"topic": "t", "partition": 1, "reason": "racks", "detail": "two in rack b", "at": "demo/web.yaml:9"}
    ]
    assert value["elections"] == [{"topic": "t", "partition": 2, "leader": 3}]
    assert value["drift"][0]["severity"] == "warning"


def test_an_error_carries_its_code_exit_code_and_problems() -> None:
    error = ReportedError("KR100", "two problems", 1, (ReportedProblem.of(Problem("KR101", "unknown key", AT)),))
    value = json.loads(as_json.document(error))
    assert value["error"]["exitCode"] == 1
    assert value["error"]["problems"] == [
        {
            "code": "KR101",
            "message": "unknown key",
            "severity": "error",
            "file": "demo/web.yaml",
            "line": 9,
            "column": 3,
        }
    ]


def test_a_result_has_its_units_in_the_keys() -> None:
    ended = RunResult(RunState.DONE, 3, 3, 7, 1.235, left=(TopicPartition("t", 0),))
    value = json.loads(as_json.document(ended))
    assert (value["state"], value["seconds"], value["left"]) == ("done", 1.235, [{"partition": 0, "topic": "t"}])
    assert value["moves"] is None
    stands = Tally({2: {TopicPartition("t", 0): Standing.DONE, TopicPartition("t", 1): Standing.TAKEN_BACK}})
    moves = json.loads(as_json.document(replace(ended, tally=stands)))["moves"]
    assert (moves["done"], moves["takenBack"], moves["left"]) == (1, 1, 0)
    (stage,) = moves["byStage"]
    assert (stage["stage"], stage["takenBack"], stage["foreign"]) == (2, [{"topic": "t", "partition": 1}], [])


def test_json_is_sorted_and_ends_in_one_newline() -> None:
    text = as_json.document(Reported(()))
    assert text.endswith("}\n")
    assert as_json.document({"b": 1, "a": "ü\n"}) == '{\n "a": "ü\\n",\n "b": 1\n}\n'
