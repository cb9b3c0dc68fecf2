"""The sequences that Kafka's own controller classes computed, replayed event for event."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, TypedDict

import pytest
from helpers.clusters.reported_isr import alter_isr
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Denied
from reconciler.simulate.requests import reassign

DATA = json.loads((Path(__file__).parent / "data" / "controller_sequences.json").read_text())
ORDERS = TopicPartition("orders", 0)


class State(TypedDict):
    """What the controller holds of one partition."""

    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    leader: int


class Step(TypedDict):
    """One event and the state after it."""

    op: str
    state: State
    arg: NotRequired[list[int]]
    note: NotRequired[str]


class Sequence(TypedDict):
    """A named list of events; the first gives the state to start from."""

    name: str
    steps: list[Step]


class FactorCase(TypedDict):
    """Partitions, their targets, and what the tool prints when it forbids another replication factor."""

    current: dict[str, list[int]]
    target: dict[str, list[int]]
    text: str


@pytest.mark.parametrize("sequence", DATA["sequences"], ids=lambda sequence: str(sequence["name"]))
def test_the_state_after_each_event_is_the_controllers(sequence: Sequence) -> None:
    cluster = start(sequence["steps"][0]["state"])
    for step in sequence["steps"][1:]:
        cluster = after(cluster, step["op"], step.get("arg", []))
        assert shown(cluster) == expected(step["state"]), step.get("note")


@pytest.mark.parametrize("case", DATA["disallowReplicationFactorChange"])
def test_a_forbidden_change_of_the_factor_is_refused_with_kafkas_text(case: FactorCase) -> None:
    lines = [f"{key}: {','.join(map(str, replicas))}" for key, replicas in sorted(case["current"].items())]
    cluster = small_cluster(*lines, brokers=range(7))
    targets = {TopicPartition(*_split(key)): replicas for key, replicas in case["target"].items()}
    outcome = reassign(cluster, targets, is_replication_factor_change_allowed=False)
    texts = [f"{key}: {one.message}" for key, one in sorted(outcome.answers.items()) if one is not None]
    assert "Error reassigning partition(s):\n" + "\n".join(texts) == case["text"]
    assert {one.error for one in outcome.answers.values() if one} == {"INVALID_REPLICATION_FACTOR"}
    assert outcome.cluster == cluster


def start(state: State) -> Cluster:
    """Return a cluster with one partition in that state; a broker outside the ISR is dead, as the samples have it."""
    cluster = small_cluster("orders-0: 1,2,3")
    partition = Partition(
        0,
        leader=state["leader"],
        replicas=tuple(state["replicas"]),
        isr=tuple(state["isr"]),
        adding_replicas=tuple(state["adding"]),
        removing_replicas=tuple(state["removing"]),
    )
    dead = set(state["replicas"]) - set(state["isr"])
    topic = replace(cluster.topics["orders"], partitions=(partition,))
    brokers = {one.id: replace(one, is_fenced=one.id in dead) for one in cluster.brokers.values()}
    return replace(cluster, topics={"orders": topic}, brokers=brokers)


def after(cluster: Cluster, event: str, argument: list[int]) -> Cluster:
    if event == "isr":
        return alter_isr(cluster, {ORDERS: argument})
    outcome = reassign(cluster, {ORDERS: None if event == "cancel" else argument})
    assert not isinstance(outcome.answers[ORDERS], Denied)
    return outcome.cluster


def shown(cluster: Cluster) -> object:
    partition = cluster.topics["orders"].partitions[0]
    return (
        partition.replicas,
        set(partition.isr),
        partition.adding_replicas,
        partition.removing_replicas,
        partition.leader,
    )


def expected(state: State) -> object:
    return (
        tuple(state["replicas"]),
        set(state["isr"]),
        tuple(state["adding"]),
        tuple(state["removing"]),
        state["leader"],
    )


def _split(key: str) -> tuple[str, int]:
    topic, _, number = key.rpartition("-")
    return topic, int(number)
