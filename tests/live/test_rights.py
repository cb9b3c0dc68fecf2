"""A user who lacks one right, over SASL_SSL with SCRAM: each verb names it before anything is changed; then all works.

The user may do everything, less what one Kafka ACL denies at a time.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import acls_shown_by
from helpers.brokers.new_groups import join_share_group, join_streams_group
from helpers.brokers.observer import Observer
from helpers.figures import Tell
from helpers.program.call import Ended, Program
from helpers.program.documents import document
from helpers.waiting import HANG

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.model.change import CreateTopic

pytestmark = pytest.mark.brokers

USERS = {"admin": "admin-password", "worker": "worker-password", "least": "least-password"}
TOPIC, OTHER, NEW = "orders", "other", "fresh"
LOCK_GROUP = "__reconciler-lock"
CLUSTER = (ResourceType.BROKER, "kafka-cluster")
ASSIGNMENT = "assignment: [[1, 3], [2, 1], [3, 2]]"
DECLARED = "---\n".join(
    (
        document("Cluster", "live", "{client: {file: worker.properties}, moves: {throttle: 20MiB/s}}"),
        document("Topic", TOPIC, f"{{partitions: 3, placement: {{{ASSIGNMENT}}}, config: {{retention.ms: 2d}}}}"),
        document("Topic", NEW, "{partitions: 1, replicationFactor: 2}"),
    )
)


@dataclass(frozen=True)
class Denied:
    """A right taken away: `shown` is how each verb of `told_by` names it."""

    operation: AclOperation
    on: tuple[tuple[ResourceType, str], ...]
    shown: str
    told_by: Mapping[str, int] = field(default_factory=dict)
    """Each verb that needs it, and its exit code without it."""


ON_TOPIC, ON_GROUP = (ResourceType.TOPIC, TOPIC), (ResourceType.GROUP, LOCK_GROUP)
GROUPS = ("classic", "modern", "shared", "streamed")
"""A classic and a KIP-848 consumer group, a share group and a streams group, as far as the release has them."""
READERS = {"plan": 1, "snapshot": 1, "status": 1, "doctor": 1}
DENIED = (
    Denied(AclOperation.DESCRIBE, (CLUSTER,), "Describe on the cluster", {**READERS, "apply": 1, "collect": 0}),
    Denied(AclOperation.DESCRIBE_CONFIGS, (CLUSTER,), "DescribeConfigs on the cluster", {**READERS, "apply": 1}),
    Denied(AclOperation.DESCRIBE, (ON_TOPIC,), "Describe on topic orders", {**READERS, "apply": 1, "collect": 0}),
    Denied(AclOperation.DESCRIBE_CONFIGS, (ON_TOPIC,), "DescribeConfigs on topic orders", {**READERS, "apply": 1}),
    Denied(AclOperation.ALTER, (CLUSTER,), "Alter on the cluster", {"apply": 1, "doctor": 0}),
    Denied(AclOperation.ALTER_CONFIGS, (CLUSTER,), "AlterConfigs on the cluster", {"apply": 1, "doctor": 0}),
    Denied(AclOperation.ALTER, (ON_TOPIC,), "Alter on topic orders", {"plan": 0, "apply": 1, "doctor": 0}),
    Denied(
        AclOperation.ALTER_CONFIGS, (ON_TOPIC,), "AlterConfigs on topic orders", {"plan": 0, "apply": 1, "doctor": 0}
    ),
    Denied(AclOperation.READ, (ON_GROUP,), f"Read on group {LOCK_GROUP}", {"apply": 1, "doctor": 0}),
    Denied(
        AclOperation.DESCRIBE,
        tuple((ResourceType.GROUP, name) for name in GROUPS),
        "Describe on group",
        {"plan": 0, "snapshot": 0, "doctor": 0},
    ),
    Denied(
        AclOperation.READ,
        ((ResourceType.TOPIC, "__consumer_offsets"),),
        "Read on topic __consumer_offsets",
        {"doctor": 0},
    ),
    Denied(
        AclOperation.CREATE, (CLUSTER, (ResourceType.TOPIC, NEW)), "Create on ", {"plan": 0, "apply": 1, "doctor": 0}
    ),
)
ALL_OF_CLUSTER = (Denied(AclOperation.ALL, (CLUSTER,), ""),)
ALL_OF_TOPICS = (Denied(AclOperation.ALL, ((ResourceType.TOPIC, TOPIC),), ""),)
CALLS = {
    "plan": ("plan", "--out", "another.json"),
    "snapshot": ("snapshot", "--out", "snapshot.json"),
    "status": ("status",),
    "doctor": ("doctor",),
    "collect": ("collect", "--out", "samples"),
    "apply": ("apply", "plan.json", "--yes"),
}


GROUP_VERBS = (("topics", "list"), ("topics", "describe", TOPIC), ("groups", "list"), ("groups", "lag"), ("diff",))


@pytest.fixture(scope="module")
def three(kafka_version: str) -> Iterator[KafkaCluster]:
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), users=USERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(three: KafkaCluster) -> Iterator[KafkaAdmin]:
    """A super user, and two topics with records."""
    admin = connect(three.properties)
    changes = [CreateTopic(TOPIC, 2, 2, {}, {0: (1, 2), 1: (2, 1)}), CreateTopic(OTHER, 1, 2, {}, {0: (1, 2)})]
    assert all(answer.is_ok for answer in admin.create_topics(changes).values())
    three.wait_for(lambda: len(admin.topics([TOPIC, OTHER])) == 2, "the topics")
    for name in (TOPIC, OTHER):
        three.produce(name, 0, size=2_000_000)
    begin_groups(three, admin)
    yield admin
    admin.close()


def begin_groups(kafka: KafkaCluster, admin: KafkaAdmin) -> None:
    """Begin a group of each kind that this release has."""
    common = {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "earliest", "log_level": 0}
    with_kinds = {"classic": {"group.protocol": "classic"}}
    if not kafka.version.startswith("3."):
        with_kinds["modern"] = {"group.protocol": "consumer"}
    for name, protocol in with_kinds.items():
        consumer = Consumer({**common, "group.id": name, **protocol})
        consumer.subscribe([TOPIC])
        kafka.wait_for(lambda consumer=consumer: consumer.poll(1) is not None, f"a record for {name}")  # type: ignore[misc]
        consumer.commit(asynchronous=False)
        consumer.close()
    finalized = admin.features().finalized
    if finalized.get("share.version"):
        join_share_group(kafka, "shared", TOPIC)
    if finalized.get("streams.version"):
        join_streams_group(kafka, "streamed", TOPIC)


def groups_there(kafka: KafkaCluster) -> set[str]:
    """Return the groups that there are but the lock's, as another client library lists them."""
    client = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    return {one.id for one in client.list_groups(timeout=HANG)} - {LOCK_GROUP}


@dataclass
class Acls:
    """The ACLs of the cluster, changed by its super user; a change counts when every broker knows of it."""

    kafka: KafkaCluster

    def __post_init__(self) -> None:
        self._client = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        (self._count,) = self._known()
        everything = ((ResourceType.TOPIC, "*"), (ResourceType.GROUP, "*"), CLUSTER)
        self._add([_acl(kind, name, AclOperation.ALL, AclPermissionType.ALLOW) for kind, name in everything])

    def deny(self, denied: Denied) -> None:
        self._add([_acl(kind, name, denied.operation, AclPermissionType.DENY) for kind, name in denied.on])

    def allow(self, denied: Denied) -> None:
        filters = [_filter(kind, name, denied.operation) for kind, name in denied.on]
        for done in self._client.delete_acls(filters).values():
            done.result(HANG)
        self._settle(-len(filters))

    def _add(self, bindings: list[AclBinding]) -> None:
        for done in self._client.create_acls(bindings).values():
            done.result(HANG)
        self._settle(len(bindings))

    def _settle(self, change: int) -> None:
        self._count += change
        self.kafka.wait_for(lambda: self._known() == {self._count}, "all brokers to know the ACLs")

    def _known(self) -> set[int]:
        return {acls_shown_by(address) for address in self.kafka.bootstrap.split(",")}

    def grant(self, denied: Denied, user: str) -> None:
        """Allow a user what the others are denied, on all topics and groups where it is on some."""
        named = {(ResourceType.GROUP, LOCK_GROUP), (ResourceType.TOPIC, "__consumer_offsets")}
        on = {(kind, name if kind is ResourceType.BROKER or (kind, name) in named else "*") for kind, name in denied.on}
        allowed = AclPermissionType.ALLOW
        self._add([_acl(kind, name, denied.operation, allowed, user) for kind, name in sorted(on, key=str)])


def _acl(
    kind: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType, user: str = "worker"
) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, permission)


def _filter(kind: ResourceType, name: str, operation: AclOperation) -> AclBindingFilter:
    pattern = ResourcePatternType.LITERAL
    return AclBindingFilter(kind, name, pattern, "User:worker", "*", operation, AclPermissionType.DENY)


@pytest.fixture(scope="module")
def acls(three: KafkaCluster, admin: KafkaAdmin) -> Acls:
    del admin  # its topics are there
    return Acls(three)


@pytest.fixture
def worker(
    tmp_path: Path, three: KafkaCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """Return the program in the hands of that user, in a folder that declares the cluster."""
    root = tmp_path / "desired-state" / "live"
    root.mkdir(parents=True)
    lines = [f"{key}={value}\n" for key, value in three.properties_of("worker").items()]
    (root / "worker.properties").write_text("".join(lines), "utf-8")
    (root / "cluster.yaml").write_text(DECLARED, "utf-8")
    monkeypatch.chdir(tmp_path)
    return Program(capsys)


def everything(three: KafkaCluster) -> object:
    """Return what apply could have changed, as another client library shows it."""
    observer = Observer(three.bootstrap)
    throttles = observer.throttles((TOPIC, OTHER), three.alive)
    retention = observer.overrides(ResourceType.TOPIC, TOPIC)
    return {name: observer.topic(name) for name in (TOPIC, OTHER, NEW)}, throttles, retention


def test_one_missing_right_at_a_time_is_named_by_each_verb_that_needs_it_before_any_change(
    three: KafkaCluster, acls: Acls, worker: Program, figures: Tell
) -> None:
    assert worker("plan", "--out", "plan.json").code == 0
    before = everything(three)
    asked = 0
    for denied in DENIED:
        acls.deny(denied)
        for verb, code in denied.told_by.items():
            ended = worker(*CALLS[verb])
            assert (ended.code, denied.shown in ended.out + ended.err) == (code, True), (denied, verb, ended)
            assert _is_well_said(ended), (denied, verb, ended)
            asked += 1
        assert everything(three) == before, denied
        assert not has_begun(), denied
        acls.allow(denied)
    figures("rights", f"{len(DENIED)} taken away one at a time, {asked} verbs told which, 0 changes made")


def has_begun() -> bool:
    """Whether a run has told its start."""
    return any('"step":"run"' in journal.read_text("utf-8") for journal in Path("runs/live").glob("*.jsonl"))


def _is_well_said(ended: Ended) -> bool:
    """Whether nothing passes for empty, small or gone that only cannot be seen, and no secret is told."""
    text = (ended.out + ended.err).lower()
    wrong = ("0 b ", "no such topic", "does not exist", "traceback", "internal error", USERS["worker"])
    return not any(word in text for word in wrong)


def test_over_sasl_ssl_with_scram_a_plan_is_made_applied_and_looked_at(
    three: KafkaCluster, acls: Acls, worker: Program
) -> None:
    del acls
    assert worker("plan", "--out", "plan.json").code == 0
    applied = worker("apply", "plan.json", "--yes")
    assert (applied.code, "Planning again: no changes." in applied.err) == (0, True), applied
    observer = Observer(three.bootstrap)
    lists = {number: one.replicas for number, one in observer.topic(TOPIC).items()}
    assert lists == {0: (1, 3), 1: (2, 1), 2: (3, 2)}
    assert (len(observer.topic(NEW)), observer.throttles((TOPIC, OTHER, NEW), three.alive)) == (1, {})
    status = json.loads(worker("status", "-o", "json").out)
    assert (status["stage"], status["lockedBy"], status["brokerThrottles"]) == (None, None, {})
    nameless = worker("status", "--client", "desired-state/live/worker.properties")
    assert (nameless.code, nameless.out.startswith(three.cluster_id)) == (0, True), nameless
    looked = json.loads(worker("doctor", "-o", "json").out)
    # Before Kafka 4.1 moves cannot forbid a change of replication factor, which is noted.
    assert {finding["code"] for finding in looked["findings"]} <= {"KR634"}
    assert (looked["unexamined"], looked["safeToStop"]) == ([], [1, 2, 3])
    assert all(right["granted"] for right in looked["rights"])
    for password in USERS.values():
        told = Path("runs/live").rglob("*")
        assert not any(password in file.read_text("utf-8") for file in told if file.is_file())


def test_who_may_nothing_at_all_is_told_every_right_by_the_doctor(
    three: KafkaCluster, acls: Acls, worker: Program
) -> None:
    every = [*ALL_OF_CLUSTER, *ALL_OF_TOPICS]
    for one in every:
        acls.deny(one)
    ended = worker("doctor", "-o", "json")
    for one in every:
        acls.allow(one)
    assert ended.code == 1, ended
    found = json.loads(ended.out)
    lacking = {(right["operation"], right["resource"]) for right in found["rights"] if not right["granted"]}
    assert lacking >= {(op, "cluster") for op in ("Alter", "AlterConfigs", "Describe", "DescribeConfigs", "Create")}
    assert ("Describe", "topic") in lacking
    assert {"log dirs: a right is missing", "reassignments: a right is missing"} <= set(found["unexamined"])
    assert three.alive == (1, 2, 3)


def test_the_least_rights_suffice_to_look_and_then_to_apply(three: KafkaCluster, acls: Acls, worker: Program) -> None:
    lines = [f"{key}={value}\n" for key, value in three.properties_of("least").items()]
    Path("desired-state/live/worker.properties").write_text("".join(lines), "utf-8")
    again = DECLARED.replace("[[1, 3], [2, 1], [3, 2]]", "[[3, 1], [2, 3], [1, 2], [2, 1]]").replace("2d", "3d")
    more = again.replace("partitions: 3", "partitions: 4").replace("name: fresh", "name: fresher")
    Path("desired-state/live/cluster.yaml").write_text(more, "utf-8")
    for denied in DENIED:
        if denied.told_by.get("plan") == 1:
            acls.grant(denied, "least")
    # Without a right on groups all goes on, and says once what it leaves out, with every group.
    for verb in (CALLS["snapshot"], ("topics", "list")):
        ended = worker(*verb)
        assert (ended.code, ended.err.count("(KR613)"), ended.err.count("Describe on group")) == (0, 1, 1), ended
    assert "groups" not in json.loads(Path("snapshot.json").read_text("utf-8"))
    ended = worker("groups", "list")
    assert (ended.code, ended.err.count("Describe on group")) == (1, 1), ended
    there = groups_there(three)
    assert there == {name for name in GROUPS if name == "classic" or not three.version.startswith("3.")} or (
        three.version < "4.2" and {"classic", "modern"} <= there  # without share and streams groups by default
    )
    doctor = json.loads(worker("doctor", "-o", "json").out)
    assert doctor["unexamined"] == ["the lock: a right is missing"]
    (lacking,) = [one for one in doctor["rights"] if (one["operation"], one["resource"]) == ("Describe", "group")]
    assert (lacking["granted"], set(lacking["lacking"])) == (False, there)
    (group_right,) = [denied for denied in DENIED if denied.shown == "Describe on group"]
    acls.grant(group_right, "least")
    for verb in (*(CALLS[name] for name in ("plan", "snapshot", "status", "collect")), *GROUP_VERBS):
        ended = worker(*verb)
        assert (ended.code, "KR613" in ended.err, "KR834" in ended.err) == (0, False, False), (verb, ended)
    shown = {group["groupId"] for group in json.loads(Path("snapshot.json").read_text("utf-8"))["groups"]}
    assert shown == there
    listed = json.loads(worker("groups", "list", "-o", "json").out)
    assert {one["groupId"] for one in listed["groups"]} == there
    doctor = json.loads(worker("doctor", "-o", "json").out)
    assert doctor["unexamined"] == []
    assert {right["operation"] for right in doctor["rights"] if not right["granted"]} >= {"Alter", "AlterConfigs"}
    assert worker("apply", "another.json", "--yes").code == 1
    for denied in DENIED:
        if denied.told_by.get("plan") != 1 and denied is not group_right:
            acls.grant(denied, "least")
    applied = worker("apply", "another.json", "--yes")
    assert (applied.code, "Planning again: no changes." in applied.err) == (0, True), applied
    assert len(Observer(three.bootstrap).topic(TOPIC)) == 4
