"""Worked examples of Kafka texts, through the command line, with the smallest snapshot there can be."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document, write_simulated

pytestmark = pytest.mark.long

Assignment = Mapping[int, Sequence[int]]


def plan(
    reconciler: Program, before: Assignment, brokers: Sequence[int], spec: str, cluster: str = ""
) -> dict[str, Any]:
    """Return the plan for a topic `t` with these replicas, the first of each leading."""
    lines = [f"t-{number}: {','.join(map(str, replicas))}" for number, replicas in before.items()]
    write_simulated(small_cluster(*lines, brokers=brokers), document("Topic", "t", spec), spec=cluster)
    made: dict[str, Any] = json.loads(reconciler("plan", "-o", "json").out)
    return made


def moves(made: dict[str, Any]) -> dict[int, list[int]]:
    return {move["partition"]: move["to"] for stage in made["stages"] for move in stage.get("moves", [])}


def test_adding_partitions_places_only_the_new_ones(reconciler: Program) -> None:
    before = {0: [1, 2], 1: [2, 3], 2: [3, 4], 3: [4, 1]}
    made = plan(reconciler, before, range(1, 7), "{partitions: 6}")
    assert moves(made) == {}
    (change,) = made["topicChanges"]
    assert set(change["assignment"]) == {"4", "5"}
    held = Counter(broker for replicas in before.values() for broker in replicas)
    held.update(broker for replicas in change["assignment"].values() for broker in replicas)
    assert sorted(held.values()) == [2, 2, 2, 2, 2, 2]


def test_one_copy_makes_six_brokers_even(reconciler: Program) -> None:
    before = {0: [1, 2], 1: [2, 3], 2: [3, 4], 3: [4, 1], 4: [5, 6], 5: [6, 1]}
    made = plan(reconciler, before, range(1, 7), "{replicationFactor: 2}", "balance: {replicas: even}")
    assert made["summary"]["replicaMoves"] == 1
    assert {share["replicas"] for share in made["balance"]["after"].values()} == {2}
    ((partition, replicas),) = moves(made).items()
    assert partition in {0, 3, 5}
    assert 1 not in replicas
    assert 5 in replicas
    assert made["proof"]["objective"] == "replicas"
    assert [warning["code"] for warning in made["warnings"]] == ["KR801", "KR811", "KR812"]


def test_a_higher_factor_by_assignment_needs_an_election_only_where_the_first_replica_is_new(
    reconciler: Program,
) -> None:
    made = plan(reconciler, {0: [1], 1: [0], 2: [1]}, [0, 1], "{placement: {assignment: [[0, 1], [0, 1], [1, 0]]}}")
    assert moves(made) == {0: [0, 1], 1: [0, 1], 2: [1, 0]}
    elections = [election for stage in made["stages"] for election in stage.get("elections", [])]
    assert elections == [{"topic": "t", "partition": 0, "leader": 0}]


@pytest.mark.parametrize(("length", "code"), [(249, 0), (250, 1)])
def test_the_longest_topic_name_has_249_characters(reconciler: Program, length: int, code: int) -> None:
    write_simulated(small_cluster(), document("Topic", "x" * length))
    assert reconciler("validate").code == code
