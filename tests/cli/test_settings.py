"""Settings in force on the brokers, static ones too: what a new topic takes of them, and what a plan then warns of."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document, write_simulated

from reconciler.files.snapshot import read_snapshot

SNAPSHOT = Path("desired-state/small/snapshot.json")
AUTO = "auto.leader.rebalance.enable"
STATIC = {"default.replication.factor": "3", "num.partitions": "2", "delete.topic.enable": "false", AUTO: "false"}
NEW = document("Topic", "new", "{placement: {racks: {spread: strict}}}")
LED = document("Topic", "led").replace("name: led", "names: [led]")


def lay_out(topic: str, settings: dict[str, str]) -> None:
    observed = small_cluster("led-0: 1,2 leader 2", "led-1: 1,2 leader 2", "old-0: 1,2 size 5")
    brokers = {number: replace(broker, settings=settings) for number, broker in observed.brokers.items()}
    spec = "topics: {delete: allow}, moves: {throttle: 50MiB/s, electionBatch: 1}"
    write_simulated(replace(observed, brokers=brokers), topic, spec=spec)


def test_a_new_topic_without_numbers_is_made_as_the_brokers_have_it_proved_and_then_done(reconciler: Program) -> None:
    lay_out(NEW, STATIC)
    made = reconciler("plan", "--out", "plan.json", "--detailed-exitcode")
    assert made.code == 2
    told = "partitions 2 (num.partitions), replicationFactor 3 (default.replication.factor)"
    assert f"topic new is new, and takes what the brokers have by default: {told} (KR835" in made.out
    assert reconciler("show", "plan.json", "--prove").code == 0
    assert reconciler("apply", "plan.json", "--yes").code == 0
    created = read_snapshot(SNAPSHOT).topics["new"].partitions
    assert [len(partition.replicas) for partition in created] == [3, 3]
    assert reconciler("plan", "--detailed-exitcode").code == 0


def test_without_settings_its_numbers_are_asked_for(reconciler: Program) -> None:
    lay_out(NEW, {})
    ended = reconciler("plan")
    assert (ended.code, ended.out) == (1, "")
    assert "topic new does not exist yet: write its partitions and replicationFactor (KR244)" in ended.err


@pytest.mark.parametrize("switch", ["true", "false"])
def test_plan_and_doctor_tell_alike_whether_brokers_elect_by_themselves(reconciler: Program, switch: str) -> None:
    lay_out(LED, {**STATIC, AUTO: switch})
    planned = json.loads(reconciler("plan", "--state", str(SNAPSHOT), "-o", "json").out)
    found = json.loads(reconciler("doctor", "--state", str(SNAPSHOT), "-o", "json").out)
    (waiting,) = (each["partitions"] for each in found["findings"] if each["code"] == "KR645")
    elected = [(each["topic"], each["partition"]) for stage in planned["stages"] for each in stage["elections"]]
    assert elected == [(each["topic"], each["partition"]) for each in waiting] == [("led", 0), ("led", 1)]
    codes = {each["code"] for each in (*planned["warnings"], *found["findings"])} & {"KR814", "KR657"}
    assert codes == ({"KR814", "KR657"} if switch == "true" else set())
    assert "static settings" not in json.dumps(found)


def test_plan_and_diff_report_a_pattern_and_a_class_at_the_brokers_min_isr(reconciler: Program) -> None:
    of_class = document("TopicClass", "thin", "{replicationFactor: 2}")
    lay_out(f"{LED}---\n{of_class}---\n{document('Topic', 'old', '{class: thin}')}", {"min.insync.replicas": "2"})
    expected = "2 topics (led, old) are to have partitions with 2 replicas, as many as min.insync.replicas 2"
    for verb, key in (("plan", "warnings"), ("diff", "drift")):
        told = json.loads(reconciler(verb, "-o", "json").out)[key]
        (message,) = (each["message"] for each in told if each["code"] == "KR882")
        assert message.startswith(f"{expected} (the brokers' setting)")
        for form in ("text", "markdown"):
            assert "KR882" in reconciler(verb, "-o", form).out, (verb, form)
