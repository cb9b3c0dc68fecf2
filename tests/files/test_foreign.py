"""Topic files of other tools, in the forms that these tools document, and what of them is wrong."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.files.foreign.read import TOOL_NAMES, read_foreign
from reconciler.files.foreign.topics import Reading
from reconciler.model.desired import DesiredTopic, Placement, Spread
from reconciler.model.problem import InvalidInput

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: my-topic
  labels: {strimzi.io/cluster: prod, owner: shop}
spec:
  topicName: My_Topic
  partitions: 12
  replicas: 3
  config:
    retention.ms: 7200000
    cleanup.policy: [compact, delete]
    unclean.leader.election.enable: false
    min.cleanable.dirty.ratio: 0.50
"""
KUBECTL = """\
apiVersion: v1
kind: List
items:
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaTopic
  metadata: {name: a, labels: {strimzi.io/cluster: prod}}
  spec: {}
  status: {observedGeneration: 1}
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaTopic
  metadata: {name: b, labels: {strimzi.io/cluster: prod}, annotations: {strimzi.io/managed: "false"}}
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaUser
  metadata: {name: somebody}
"""
JIKKOU = """\
apiVersion: "kafka.jikkou.io/v1beta2"
kind: "KafkaTopicList"
metadata: {labels: {managed-by: jikkou}}
items:
  - metadata: {name: first}
    spec:
      partitions: 5
      replicationFactor: 2
      configMapRefs: [tidy, usual]
      configs: {cleanup.policy: compact}
  - metadata: {name: gone, annotations: {jikkou.io/delete: true}}
    spec: {partitions: 1, replicas: 1}
  - metadata: {name: not-mine, annotations: {jikkou.io/ignore: true}}
    spec: {partitions: 1}
---
apiVersion: core.jikkou.io/v1beta2
kind: ConfigMap
metadata: {name: usual}
data: {cleanup.policy: delete, min.insync.replicas: 2, retention.ms: 1}
---
apiVersion: core.jikkou.io/v1beta2
kind: ConfigMap
metadata: {name: tidy}
data: {retention.ms: 2}
---
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaTopic
metadata: {name: second}
spec: {partitions: -1, replicas: -1}
---
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaTopicList
spec:
  topics: [{name: old-form, partitions: 1, replication_factor: 1, configs: {cleanup.policy: delete}}]
"""
TOPICCTL = """\
meta:
  name: topic-default
  cluster: local-cluster
  environment: local-env
  region: local-region
  description: |
    Topic that uses cross-rack.
  consumers: [billing, search]
  labels: {team: core}
spec:
  partitions: 3
  replicationFactor: 2
  retentionMinutes: 100
  placement: {strategy: STRATEGY}
  migration: {throttleMB: 10}
  settings:
    cleanup.policy: delete
    max.message.bytes: 5542880
"""

THROTTLE = "belongs to a reassignment and is never declared; use moves.throttle"


def read(tmp_path: Path, text: str, tool: str | None = None) -> Reading:
    file = tmp_path / "topics.yaml"
    file.write_text(text, "utf-8")
    return read_foreign([str(file)], tool)


def topics(reading: Reading) -> dict[str, DesiredTopic]:
    return {each.topic.name: each.topic for each in reading.topics}


def told(reading: Reading) -> list[str]:
    return [f"{each.at.line if each.at else 0} {each.code} {each.message}" for each in reading.warnings]


def test_a_strimzi_topic(tmp_path: Path) -> None:
    reading = read(tmp_path, STRIMZI)
    assert topics(reading) == {
        "My_Topic": DesiredTopic(
            "My_Topic",
            partitions=12,
            replication_factor=3,
            config={
                "cleanup.policy": "compact,delete",
                "min.cleanable.dirty.ratio": "0.50",
                "retention.ms": "7200000",
                "unclean.leader.election.enable": "false",
            },
            labels={"owner": "shop"},
        )
    }
    assert reading.topics[0].cluster == "prod"
    assert reading.warnings == []


def test_what_kubectl_lists_and_what_of_it_is_left_out(tmp_path: Path) -> None:
    reading = read(tmp_path, KUBECTL)
    assert topics(reading) == {"a": DesiredTopic("a")}
    assert told(reading) == [
        "9 KR193 topic b is annotated strimzi.io/managed: false and is left out",
        "13 KR193 kind KafkaUser is no KafkaTopic and is left out",
    ]


def test_jikkous_lists_config_maps_and_annotations(tmp_path: Path) -> None:
    reading = read(tmp_path, JIKKOU)
    found = topics(reading)
    assert found["first"] == DesiredTopic(
        "first",
        partitions=5,
        replication_factor=2,
        config={"cleanup.policy": "compact", "min.insync.replicas": "2", "retention.ms": "2"},
        labels={"managed-by": "jikkou"},
    )
    assert found["gone"].is_absent
    assert found["second"] == DesiredTopic("second")
    assert found["old-form"].replication_factor == 1
    assert "not-mine" not in found
    assert [line for line in told(reading) if "not-mine" in line]


@pytest.mark.parametrize(
    ("strategy", "placement", "warning"),
    [
        ("any", Placement(), ""),
        ("cross-rack", Placement(racks_spread=Spread.STRICT), ""),
        ("in-rack", Placement(racks_spread=Spread.IGNORE), "in-rack (all replicas in the leader's rack)"),
        ("balanced-leaders", Placement(), "balanced-leaders has no counterpart"),
        ("static, staticAssignments: [[1, 2], [2, 3], [3, 1]]", Placement(assignment=((1, 2), (2, 3), (3, 1))), ""),
        (
            "static-in-rack, staticRackAssignments: [z1, z1, z1]",
            Placement(racks_spread=Spread.IGNORE, racks_only=frozenset({"z1"})),
            "",
        ),
        (
            "static-in-rack, staticRackAssignments: [z1, z1, z2]",
            Placement(racks_spread=Spread.IGNORE, racks_only=frozenset({"z1", "z2"})),
            "static-in-rack with several racks",
        ),
    ],
)
def test_topicctls_strategies(tmp_path: Path, strategy: str, placement: Placement, warning: str) -> None:
    reading = read(tmp_path, TOPICCTL.replace("STRATEGY", strategy))
    (found,) = reading.topics
    assert found.topic.placement == placement
    assert dict(found.topic.config) == {
        "cleanup.policy": "delete", "max.message.bytes": "5542880", "retention.ms": "6000000",
    }  # fmt: skip
    assert (found.cluster, found.topic.labels) == ("local-cluster", {"team": "core"})
    assert found.notes == ("Topic that uses cross-rack.", "Consumers: billing, search.")
    strange = [line for line in told(reading) if "spec.migration is not mapped" not in line]
    assert len(strange) == bool(warning)
    assert warning in "".join(strange)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (STRIMZI.replace("partitions: 12", "partitions: twelve"), "8:15", "spec.partitions must be a whole number"),
        (STRIMZI.replace("replicas: 3", "replicas: 0"), "9:13", "spec.replicas must be a whole number"),
        (STRIMZI.replace("My_Topic", '"my topic"'), "1:1", "cannot be a topic's name"),
        (STRIMZI.replace("7200000", "7days"), "11:19", "retention.ms has a value that Kafka would not take"),
        (STRIMZI.replace("7200000", "{a: 1}"), "11:19", "retention.ms must be a plain value"),
        (STRIMZI + "    min.insync.replicas: 4\n", "1:1", "min.insync.replicas 4 is no whole number from 1"),
        (STRIMZI + "---\n" + STRIMZI, "16:1", "topic My_Topic is declared twice, first at"),
        (STRIMZI + "---\n" + STRIMZI.replace("My_Topic", "My.Topic"), "16:1", "collides with My_Topic"),
        (STRIMZI.replace("name: my-topic", "x: y").replace("  topicName: My_Topic\n", ""), "4:3", "is missing"),
        (STRIMZI.replace("spec:\n", "spec: []\nx:\n"), "6:7", "spec must be a mapping"),
        (STRIMZI.replace("metadata:\n", "metadata: &anchor\n"), "3:11", "an anchor (&) is not allowed"),
        (JIKKOU.replace("[tidy, usual]", "[nosuch]"), "9:22", "names 'nosuch', but no file given"),
        (JIKKOU.replace("[tidy, usual]", "[[tidy]]"), "9:22", "names ['tidy'], but no file given"),
        (JIKKOU.replace("partitions: 5", "partitions: {{ values.n }}"), "7:20", "a key must be a plain text"),
        (TOPICCTL.replace("STRATEGY", "nosuch"), "14:25", "is 'nosuch'; topicctl knows any, balanced-leaders"),
        (TOPICCTL.replace("STRATEGY", "static"), "14:14", "must be one list of different broker ids a partition"),
        (TOPICCTL.replace("STRATEGY", "static, staticAssignments: [[1, 2]]"), "14:52", "has 1 lists for 3 partitions"),
        (
            TOPICCTL.replace("STRATEGY", "static, staticAssignments: [[1], [2], [3]]"),
            "14:52",
            "must name 2 brokers for each partition",
        ),
        (
            TOPICCTL.replace("STRATEGY", "static-in-rack, staticRackAssignments: [a]"),
            "14:64",
            "has 1 racks for 3 partitions",
        ),
        (TOPICCTL.replace("    cleanup.policy", "    retention.ms: 1\n    cleanup.policy"), "13:21", "say the same"),
        (TOPICCTL.replace("  name: topic-default\n", ""), "2:3", "meta.name is missing"),
        ("- a\n- b\n", "1:1", "a document must be a mapping"),
        ("a: [\n", "2:1", "not YAML"),
        ("a: 1\na: 2\n", "2:1", "duplicate key"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_column(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, text.replace("STRATEGY", "any"))
    found = [str(problem) for problem in refused.value.problems]
    assert any(line.startswith(f"{tmp_path}/topics.yaml:{place}: ") and words in line for line in found), found


def test_what_has_no_effect_is_named(tmp_path: Path) -> None:
    text = STRIMZI.replace("spec:\n", "spec:\n  nosuch: 1\n").replace("7200000", "null")
    text += "    follower.replication.throttled.replicas: '*'\n---\nkind: Deployment\napiVersion: apps/v1\n"
    assert told(read(tmp_path, text)) == [
        "7 KR192 spec.nosuch is not known and has no effect",
        "12 KR192 spec.config.retention.ms has no value and is left out",
        "16 KR192 spec.config.follower.replication.throttled.replicas " + THROTTLE,
        f"18 KR193 the document is nothing of {TOOL_NAMES}, and is left out",
    ]


def test_internal_topics_are_left_out(tmp_path: Path) -> None:
    reading = read(tmp_path, STRIMZI.replace("My_Topic", "__consumer_offsets"))
    assert reading.topics == []
    assert "internal to Kafka" in told(reading)[0]


def test_only_the_tool_that_is_named_is_read(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{STRIMZI}---\n{JIKKOU}", "strimzi")
    assert list(topics(reading)) == ["My_Topic"]
    assert sum("is jikkou's, and is left out" in line for line in told(reading)) == 5


def test_a_folder_is_read_with_all_below_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yml").write_text(STRIMZI)
    (tmp_path / "b.json").write_text('{"meta": {"name": "t", "cluster": "c"}, "spec": {"partitions": 1}}')
    (tmp_path / "notes.txt").write_text("no topics")
    assert sorted(topics(read_foreign([str(tmp_path)]))) == ["My_Topic", "t"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="holds no YAML or JSON files"):
        read_foreign([str(tmp_path / "empty")])


MONGEY = 'provider["registry.terraform.io/mongey/kafka"]'
CANARY = "canary-of-mine"


def attributes(name: str, **more: object) -> dict[str, object]:
    config = {"cleanup.policy": "compact", "segment.ms": "20000"}
    return {"id": name, "name": name, "partitions": 6, "replication_factor": 3, "config": config, **more}


def resource(name: str, *instances: Mapping[str, object], **more: object) -> dict[str, object]:
    held = {"mode": "managed", "type": "kafka_topic", "name": name, "provider": MONGEY, "instances": list(instances)}
    return {**held, **more}


def state(*resources: Mapping[str, object], **more: object) -> str:
    """Return a state file as Terraform writes it."""
    outputs = {"password": {"value": CANARY, "type": "string", "sensitive": True}}
    whole = {"version": 4, "terraform_version": "1.9.0", "serial": 7, "lineage": "x", "outputs": outputs}
    return json.dumps({**whole, "resources": resources, **more}, indent=2)


def shown(*resources: Mapping[str, object], children: tuple[Mapping[str, object], ...] = ()) -> str:
    """Return what `terraform show -json` prints: all on one line."""
    root = {"resources": list(resources), "child_modules": list(children)}
    return json.dumps({"format_version": "1.0", "terraform_version": "1.9.0", "values": {"root_module": root}})


def managed(address: str, values: Mapping[str, object], **more: object) -> dict[str, object]:
    kind, _, name = address.partition(".")
    return {"address": address, "mode": "managed", "type": kind, "name": name, "values": values, **more}


LOGS = DesiredTopic(
    "logs", partitions=6, replication_factor=3, config={"cleanup.policy": "compact", "segment.ms": "20000"}
)


def test_terraforms_state_of_whatever_else_it_holds(tmp_path: Path) -> None:
    each = ({"index_key": name, "attributes": attributes(name)} for name in ("a", "b"))
    text = state(
        resource("logs", {"attributes": attributes("logs")}),
        resource("many", *each, module="module.m", each="map"),
        resource("old", {"deposed": "6e0f", "attributes": attributes("gone")}),
        resource("data", {"attributes": attributes("read")}, mode="data"),
        resource("vm", {"attributes": {"user_data": f"\x1b[31m\u2028{CANARY}"}}, type="aws_instance"),
        resource("other", {"attributes": {}}, type="aws_msk_topic"),
    )
    reading = read(tmp_path, text)
    assert sorted(topics(reading)) == ["a", "b", "logs"]
    assert topics(reading)["logs"] == LOGS
    assert {each.cluster for each in reading.topics} == {None}
    (left_out,) = told(reading)
    assert left_out.endswith("KR193 aws_msk_topic.other is of a provider that is not known here, and is left out")
    assert text.splitlines()[int(left_out.split()[0]) - 1].strip() == "{"
    assert read(tmp_path, text, "terraform").topics == reading.topics
    assert read(tmp_path, text, "strimzi").topics == []


def test_each_alias_of_a_provider_is_a_cluster_of_its_own(tmp_path: Path) -> None:
    text = state(
        resource("a", {"attributes": attributes("logs")}),
        resource("b", {"attributes": attributes("logs")}, provider=f"{MONGEY}.us"),
    )
    assert [(each.topic.name, each.cluster) for each in read(tmp_path, text).topics] == [
        ("logs", "default"), ("logs", "us"),
    ]  # fmt: skip


def test_what_terraform_show_prints_with_modules_and_confluents_topics(tmp_path: Path) -> None:
    confluent = {
        "topic_name": "orders", "partitions_count": 4, "id": "lkc-1/orders", "kafka_cluster": [{"id": "lkc-1"}],
        "rest_endpoint": "https://x", "credentials": [{"key": CANARY, "secret": CANARY}],
        "config": {"retention.ms": "1"},
    }  # fmt: skip
    below = {"address": "module.m", "resources": [managed("confluent_kafka_topic.o", confluent)]}
    old = managed("kafka_topic.old", attributes("gone"), deposed_key="6e0f")
    reading = read(tmp_path, shown(managed("kafka_topic.logs", attributes("logs")), old, children=(below,)))
    assert topics(reading) == {
        "logs": LOGS,
        "orders": DesiredTopic("orders", partitions=4, config={"retention.ms": "1"}),
    }
    assert [each.cluster for each in reading.topics] == [None, "lkc-1"]
    assert told(reading) == []


REASSIGNMENT: Mapping[str, Any] = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", "any"]},
        {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["/d1", "any"]},
        {"topic": "mixed", "partition": 0, "replicas": [1, 2, 3]},
        {"topic": "mixed", "partition": 1, "replicas": [1]},
    ],
}


def test_a_reassignment_becomes_explicit_assignments(tmp_path: Path) -> None:
    reading = read(tmp_path, json.dumps(REASSIGNMENT))
    assert topics(reading) == {
        "orders": DesiredTopic(
            "orders", partitions=2, replication_factor=2, placement=Placement(assignment=((1, 2), (2, 3)))
        ),
        "mixed": DesiredTopic("mixed", partitions=2, placement=Placement(assignment=((1, 2, 3), (1,)))),
    }
    assert len(told(reading)) == 1
    assert "log_dirs is not mapped" in told(reading)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('variable "n" {}\nresource "kafka_topic" "a" {\n  name = "x"\n}\n', "1:1: the file is HCL"),
        ('resource "kafka_topic" "a" {\n  count = 2\n}\n', "give the output of `terraform show -json`"),
        (json.dumps({"resource": {"kafka_topic": {"a": {"name": "${var.n}"}}}}), "1:14: the file is HCL"),
        (state(version=3), "2:14: version is a state of Terraform in an old form"),
        (json.dumps({"format_version": "1.2", "planned_values": {}}), "is a plan of Terraform, and not what there is"),
        (shown(managed("kafka_topic.a", attributes("a", partitions="6"))), "kafka_topic.a.partitions must be a whole"),
        (shown(managed("kafka_topic.a", attributes("a") | {"name": None})), "kafka_topic.a.name is missing"),
        (
            shown(managed("kafka_topic.a", attributes("a", config={"retention.ms": CANARY}))),
            "that Kafka would not take",
        ),
        (
            json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 1, "replicas": [1]}]}),
            "topic a: partition 0 is missing, and an assignment names all of them",
        ),
        (
            json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}),
            "replicas must be a list of different broker ids",
        ),
        (json.dumps({"version": 1, "partitions": [REASSIGNMENT["partitions"][0]] * 2}), "orders-1 is there twice"),
        (json.dumps({"version": 1, "partitions": [{"topic": "a", "replicas": [1]}]}), "partition must be a whole"),
    ],
)
def test_what_cannot_be_read_truly_is_refused_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, text)
    found = "\n".join(str(problem) for problem in refused.value.problems)
    assert words in found
    assert CANARY not in found


def test_a_folder_of_hcl_alone_is_told_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text("locals {}\n")
    with pytest.raises(InvalidInput, match=r"main.tf: the file is HCL, .*`terraform show -json`"):
        read_foreign([str(tmp_path)])
    (tmp_path / "terraform.tfstate").write_text(state(resource("logs", {"attributes": attributes("logs")})))
    assert sorted(topics(read_foreign([str(tmp_path)]))) == ["logs"]
