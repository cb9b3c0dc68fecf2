"""The worked examples of five Kafka texts which are not about assignors, one test a case, by its name.

`seeds.json` holds each with what is right (`expected`) and, where a text errs, what it says (`text_says`): its mistakes
are noted here and never reproduced.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.program.documents import document

from reconciler.apply.throttles import Entry, list_restored, wanted_lists, wanted_rates
from reconciler.files.units import parse_rate
from reconciler.groups.advice import Wanted, advise, partitions_for
from reconciler.groups.model.state import partition_lags
from reconciler.groups.offsets import Log, ShiftBy, ToOffset, reset
from reconciler.model.cluster import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS, Group, Partition
from reconciler.model.coordinator import offsets_partition
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput
from reconciler.model.stage import ReassignStage, TopicsStage, elections_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.render.as_kafka_json import elections, reassignment
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.plan import make_plan

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "seeds.json").read_text("utf-8"))["cases"]
    if case["kind"] != "assignor"
}


def name_of(test: str) -> str:
    """Return the id of the case; a test's name has no room for what ids hold beside letters."""
    plain = test.removeprefix("test_")
    return next((each for each in CASES if each.replace("-", "_") == plain), "")


@pytest.fixture
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the case that the test is named for: `test_groups_lag` for groups-lag."""
    return CASES[name_of(request.node.name)]


def numbered(value: Mapping[str, Any]) -> dict[int, Any]:
    return {int(key): item for key, item in value.items()}


def planned(
    folder: Path,
    before: Mapping[str, Sequence[int]],
    brokers: Sequence[int],
    spec: str,
    cluster: str = "{}",
    *,
    topic: str = "t",
) -> Plan:
    """Return the plan for a topic with these replicas, the first of each leading."""
    root = folder / "desired-state" / "c"
    root.mkdir(parents=True, exist_ok=True)
    (root / "cluster.yaml").write_text(f"{document('Cluster', 'c', cluster)}---\n{document('Topic', topic, spec)}")
    partitions = [
        {"partition": int(number), "leader": replicas[0], "replicas": list(replicas), "isr": list(replicas)}
        for number, replicas in before.items()
    ]
    topics = [{"name": topic, "partitions": partitions}] if partitions else []
    brokers_there = [{"id": broker_id} for broker_id in brokers]
    state = folder / "snapshot.json"
    state.write_text(json.dumps({"formatVersion": "1.0", "clusterId": "c", "brokers": brokers_there, "topics": topics}))
    return make_plan(Inputs(str(folder / "desired-state"), "c", str(state))).plan


def moves(plan: Plan) -> dict[int, tuple[int, ...]]:
    stages = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    return {move.topic_partition.partition: move.to_replicas for stage in stages for move in stage.moves}


def placed(plan: Plan) -> dict[int, tuple[int, ...]]:
    return {number: replicas for change in plan.topic_changes for number, replicas in change.assignment.items()}  # type: ignore[union-attr]


def per_broker(lists: Sequence[Sequence[int]]) -> Counter[int]:
    return Counter(broker_id for replicas in lists for broker_id in replicas)


def test_every_case_has_its_test() -> None:
    tests = {name_of(name) for name in globals() if name.startswith("test_")} - {""}
    assert tests == set(CASES)


def test_placement_4_brokers(case: dict[str, Any], tmp_path: Path) -> None:
    """The table is one run of an old algorithm, an example, not a prediction; ours is as even."""
    asked = case["input"]
    spec = f"{{partitions: {asked['partitions']}, replicationFactor: {asked['replicationFactor']}}}"
    made = placed(planned(tmp_path, {}, asked["brokers"], spec, "{balance: {replicas: even, leaders: even}}"))
    theirs = list(case["expected"].values())
    assert per_broker(list(made.values())) == per_broker(theirs)
    assert Counter(replicas[0] for replicas in made.values()) == Counter(replicas[0] for replicas in theirs)


def test_placement_4_to_6_brokers(case: dict[str, Any], tmp_path: Path) -> None:
    """Growing places only the new partitions. As here nothing asks for balance, they go where least is."""
    asked = case["input"]
    plan = planned(tmp_path, asked["before"], asked["brokers"], f"{{partitions: {asked['partitions']}}}")
    assert moves(plan) == {}
    assert set(placed(plan)) == {4, 5}
    assert set(per_broker(list(placed(plan).values()))) >= {5, 6}


def test_placement_4_to_6_balanced(case: dict[str, Any], tmp_path: Path) -> None:
    asked, expected = case["input"], case["expected"]
    plan = planned(tmp_path, asked["before"], asked["brokers"], "{replicationFactor: 2}", "{balance: {replicas: even}}")
    assert plan.summary.replica_moves == expected["replicaMoves"]
    reached = {**{key: tuple(value) for key, value in numbered(asked["before"]).items()}, **moves(plan)}
    assert per_broker(list(reached.values())) == numbered(expected["replicasPerBroker"])
    assert set(moves(plan)) <= {0, 3, 5}


def test_coordinator_partition(case: dict[str, Any]) -> None:
    """Math.abs of the smallest int is negative; Kafka's own abs is 0 there. "ttt" is in 38, not in 11."""
    partitions = case["input"]["offsetsPartitions"]
    found = {group: offsets_partition(group, partitions) for group in case["input"]["groups"]}
    assert found == {group: told["partition"] for group, told in case["expected"].items()}
    assert case["text_is"] == "imprecise"


def test_reassign_rf_tp_re_02(case: dict[str, Any], tmp_path: Path) -> None:
    """The rollback that the text prints contradicts its own listing; the result is right, but no leader moves by it."""
    asked, expected = case["input"], case["expected"]
    wanted = [each["replicas"] for each in asked["file"]["partitions"]]
    plan = planned(tmp_path, asked["before"], [0, 1], f"{{placement: {{assignment: {wanted}}}}}")
    assert {number: list(replicas) for number, replicas in moves(plan).items()} == numbered(expected["after"])
    added = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
    assert {move.topic_partition.partition: sorted(move.added) for move in added} == numbered(
        expected["replicasCopied"]
    )
    elected = [one for stage in plan.stages for one in elections_of(stage)]
    assert [election.topic_partition.partition for election in elected] == expected["electionsNeeded"]


def test_reassign_rf_file(case: dict[str, Any]) -> None:
    """The text misspells a key (`pritition`) and leaves out the envelope; ours is what the tool takes."""
    (each,) = case["expected"]["file"]["partitions"]
    written = json.loads(reassignment({TopicPartition(each["topic"], each["partition"]): tuple(each["replicas"])}))
    assert written == case["expected"]["file"]
    assert "pritition" in case["input"]["text"]


def test_reassign_generate_file(case: dict[str, Any], tmp_path: Path) -> None:
    """A broker list is a rule here, and nothing moves that need not; --generate ignores where replicas are."""
    allowed = case["expected"]["brokers"]
    spec = f"{{placement: {{brokers: {{only: {allowed}}}}}}}"
    plan = planned(tmp_path, {"0": [0, 1], "1": [2, 0], "2": [1, 2]}, [0, 1, 2], spec)
    assert {number: set(replicas) for number, replicas in moves(plan).items()} == {0: {0, 2}, 2: {0, 2}}
    assert plan.summary.replica_moves == 2


def test_election_file(case: dict[str, Any]) -> None:
    """The text ends its list with a comma, which is no JSON."""
    expected = case["expected"]["file"]
    wanted = [Election(TopicPartition(each["topic"], each["partition"]), 1) for each in expected["partitions"]]
    assert json.loads(elections(wanted)) == expected
    with pytest.raises(json.JSONDecodeError):
        json.loads(case["input"]["text"])


def test_election_preferred(case: dict[str, Any]) -> None:
    replicas = tuple(case["input"]["replicas"])
    assert Partition(0, 5, replicas, replicas).preferred_leader == case["expected"]["preferredLeader"]


def test_throttle_lists(case: dict[str, Any]) -> None:
    """Only what copies is listed: the tool's lists hold a partition, too, that only changes its order."""
    asked, expected = case["input"], case["expected"]
    stage = ReassignStage(
        1,
        tuple(
            Move(
                TopicPartition(each["topic"], each["partition"]),
                tuple(asked["before"][str(each["partition"])]),
                tuple(each["replicas"]),
                0,
                Reason.ASSIGNMENT,
            )
            for each in asked["file"]["partitions"]
        ),
        throttle_bytes_per_second=1_000_000,
    )
    lists = wanted_lists(stage)
    for key in (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS):
        assert ",".join(sorted(lists[asked["topic"], key])) == expected["minimal"][key]
    assert sorted(wanted_rates(stage)) == expected["brokersGivenRate"]


def test_throttle_rate(case: dict[str, Any]) -> None:
    """The text's `10` is ten bytes a second, at which nothing ends; a rate without a unit is refused here."""
    with pytest.raises(ValueError, match="10"):
        parse_rate("10")
    assert parse_rate("10B/s") == case["expected"]["bytesPerSecond"]


def test_throttle_verify(case: dict[str, Any]) -> None:
    """--verify deletes values that it did not set; here what was there before comes back, and nothing else goes."""
    assert "did not set" in case["expected"]["answer"]
    change = list_restored(LEADER_THROTTLED_REPLICAS, Entry("7:1", frozenset({"0:1"})), "7:1,0:1")
    assert change is not None
    assert (change.operation.value, change.value) == ("SUBTRACT", "0:1")


def test_partitions_formula(case: dict[str, Any]) -> None:
    """The text divides by the larger rate, which gives too few: the slower side is the bottleneck."""
    asked = case["input"]["cases"]
    found = [partitions_for(each["target"], each["producer"], each["consumer"]) for each in asked]
    assert found == case["expected"]["partitions"]
    assert found != case["text_says"]["partitions"]
    assert [advise(Wanted(each["target"], each["producer"], each["consumer"])).partitions for each in asked] == found


def test_partitions_batch_memory(case: dict[str, Any]) -> None:
    """An upper bound: buffer.memory caps it, and the advice says so."""
    asked = case["input"]
    advice = advise(Wanted(consumers=asked["partitions"], batch_bytes=asked["batchBytes"]))
    (memory,) = [cost for cost in advice.costs if cost.name == "batches in a producer"]
    assert memory.after == case["expected"]["bytes"]
    assert memory.after / (1 << 20) == case["expected"]["MiB"]
    assert "buffer.memory (32 MiB)" in memory.what


def test_partitions_grow_only(case: dict[str, Any], tmp_path: Path) -> None:
    asked = case["input"]
    before = {str(number): [1] for number in range(asked["from"])}
    with pytest.raises(InvalidInput) as caught:
        planned(tmp_path, before, [1], f"{{partitions: {asked['to']}}}")
    assert [one.code for one in caught.value.problems if "Kafka cannot take any away" in one.message] == ["KR248"]


def test_topic_name_length(case: dict[str, Any], tmp_path: Path) -> None:
    good, bad = ("x" * case["expected"][key] for key in ("ok", "refused"))
    spec = "{partitions: 1, replicationFactor: 1}"
    assert any(isinstance(stage, TopicsStage) for stage in planned(tmp_path, {}, [1], spec, topic=good).stages)
    with pytest.raises(InvalidInput):
        planned(tmp_path, {}, [1], spec, topic=bad)


def test_groups_lag(case: dict[str, Any]) -> None:
    asked = case["input"]["offsets"]
    keys = [TopicPartition(each["topic"], each["partition"]) for each in asked]
    offsets: dict[str, dict[int, int]] = {}
    for key, each in zip(keys, asked, strict=True):
        offsets.setdefault(key.topic, {})[key.partition] = each["current"]
    ends = {key: each["end"] for key, each in zip(keys, asked, strict=True)}
    lags = {each.topic_partition: each.lag for each in partition_lags(Group("g", offsets=offsets), ends)}
    assert [lags[key] for key in keys] == case["expected"]["lag"]
    assert sum(lag or 0 for lag in lags.values()) == case["expected"]["total"]


def test_groups_reset_beyond_end(case: dict[str, Any]) -> None:
    asked, key = case["input"], TopicPartition("t", 0)
    log = Log({key: asked["earliest"]}, {key: asked["end"]})
    group = Group("g", offsets={"t": {0: asked["end"]}})
    for target in (ToOffset(asked["target"]), ShiftBy(asked["target"] - asked["end"])):
        (change,) = reset(group, [key], target, log).changes
        assert change.new == case["expected"]["newOffset"]
