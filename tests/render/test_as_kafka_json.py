import json
from dataclasses import replace

from helpers.plans.sample_plan import sample_plan

from reconciler.model.move import DirMove, Election, Move, Reason
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_kafka_json

# The forms that Kafka's own tool writes and takes, byte for byte.
TOOL_REASSIGNMENT = (
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2,3],"log_dirs":["any","any","any"]},'
    '{"topic":"foo","partition":1,"replicas":[3,4,5],"log_dirs":["any","any","any"]}]}'
)
TOOL_ELECTION = '{"partitions":[{"topic":"bar","partition":10},{"topic":"foo","partition":1}]}'


def test_a_reassignment_is_written_as_the_tool_writes_it() -> None:
    targets = {TopicPartition("foo", 1): (3, 4, 5), TopicPartition("foo", 0): (1, 2, 3)}
    assert as_kafka_json.reassignment(targets) == TOOL_REASSIGNMENT + "\n"


def test_log_dirs_are_named_where_asked_and_only_those_of_new_replicas() -> None:
    asked = as_kafka_json.plan_files(sample_plan(), has_log_dirs=True)
    listed = json.loads(asked["stage-03-reassign.json"])["partitions"]
    assert [(one["replicas"], one["log_dirs"]) for one in listed] == [([2, 4, 6], ["any", "any", "/d2"])] * 12
    unasked = as_kafka_json.plan_files(sample_plan())
    assert "/d2" not in "".join(unasked.values())
    assert {name for name in asked if asked[name] != unasked[name]} == {"stage-03-reassign.json"}


def test_the_log_dir_of_a_replica_is_named_once_where_it_is_copied() -> None:
    key = TopicPartition("t", 0)
    first, second = (Move(key, (1, 2), (1, 6), 5, Reason.BALANCE), Move(key, (1, 6), (3, 6), 5, Reason.BALANCE))
    plan = replace(
        sample_plan(),
        stages=(ReassignStage(1, (first,)), ReassignStage(2, (second,))),
        predicted_log_dirs={key: {3: "/d1", 6: "/d2"}},
    )
    files = as_kafka_json.plan_files(plan, has_log_dirs=True)
    assert '"log_dirs":["any","/d2"]' in files["stage-01-reassign.json"]
    assert '"log_dirs":["/d1","any"]' in files["stage-02-reassign.json"]


def test_an_election_file_has_no_version_and_is_sorted() -> None:
    wanted = (Election(TopicPartition("foo", 1), 2), Election(TopicPartition("bar", 10), 3))
    assert as_kafka_json.elections(wanted) == TOOL_ELECTION + "\n"


def test_partitions_sort_by_number_not_by_text() -> None:
    targets = {TopicPartition("t", number): (1,) for number in (10, 9, 2)}
    listed = json.loads(as_kafka_json.reassignment(targets))["partitions"]
    assert [partition["partition"] for partition in listed] == [2, 9, 10]


def test_each_stage_has_its_files_and_the_rollback_holds_the_ordered_originals() -> None:
    files = as_kafka_json.plan_files(sample_plan())
    assert list(files) == [
        "stage-02-reassign.json",
        "stage-02-rollback.json",
        "stage-03-reassign.json",
        "stage-03-rollback.json",
        "stage-04-elect.json",
    ]
    target = json.loads(files["stage-03-reassign.json"])
    back = json.loads(files["stage-03-rollback.json"])
    assert {tuple(each["replicas"]) for each in target["partitions"]} == {(2, 4, 6)}
    assert {tuple(each["replicas"]) for each in back["partitions"]} == {(2, 4)}
    assert all(len(each["log_dirs"]) == len(each["replicas"]) for each in back["partitions"])


def test_a_move_inside_a_broker_is_the_same_replicas_with_another_log_dir() -> None:
    key = TopicPartition("t", 0)
    inside = (
        DirMove(key, 2, "/d1", "/d2", 5, Reason.DRAINING, replicas=(1, 2, 3)),
        DirMove(key, 3, "/d2", "/d1", 5, Reason.LOG_DIRS, replicas=(1, 2, 3)),
    )
    files = as_kafka_json.plan_files(replace(sample_plan(), stages=(LogDirsStage(1, inside),)))
    assert list(files) == ["stage-01-reassign.json", "stage-01-rollback.json"]
    assert '"replicas":[1,2,3],"log_dirs":["any","/d2","/d1"]' in files["stage-01-reassign.json"]
    assert '"replicas":[1,2,3],"log_dirs":["any","/d1","/d2"]' in files["stage-01-rollback.json"]


def test_a_log_dir_that_is_asked_for_is_always_named_and_wins_over_a_predicted_one() -> None:
    key = TopicPartition("t", 0)
    move = Move(key, (1,), (6, 7), 5, Reason.BALANCE, log_dirs={6: "/d1"})
    plan = replace(sample_plan(), stages=(ReassignStage(1, (move,)),), predicted_log_dirs={key: {6: "/d2", 7: "/d2"}})
    assert '"log_dirs":["/d1","any"]' in as_kafka_json.plan_files(plan)["stage-01-reassign.json"]
    assert '"log_dirs":["/d1","/d2"]' in as_kafka_json.plan_files(plan, has_log_dirs=True)["stage-01-reassign.json"]
