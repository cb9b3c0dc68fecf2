"""What a doctor found, in words and as JSON; what others wrote does no harm in it."""

import json
from dataclasses import replace

from jsonschema import Draft7Validator

from reconciler.files.schema_check import schema_folder
from reconciler.model.diagnosis import Diagnosis, Finding, FoundThrottle, NeededRight, Whose
from reconciler.model.problem import Severity
from reconciler.model.starting import Start
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Features, Quorum, QuorumMember
from reconciler.render import as_doctor
from reconciler.render.as_json import document

FOUND = Diagnosis(
    cluster_id="c-id",
    is_snapshot=False,
    observed_at="2026-11-21T14:02:11Z",
    kafka_version="4.3",
    brokers=3,
    topics=1,
    partitions=1200,
    findings=(
        Finding("KR650", Severity.ERROR, "broker 3 is not alive", "start it", brokers=(3,)),
        Finding(
            "KR642", Severity.WARNING, "1 replica behind", "wait\x1b[2J", bytes_behind=3 * 1024**3, records_behind=5
        ),
    ),
    features=Features("4.3", {"metadata.version": 30}, {"metadata.version": 30}, has_factor_guard=True),
    rights=(
        NeededRight("Describe", "cluster", ("plan",), "log dirs", is_granted=True),
        NeededRight("Alter", "topic", ("apply",), "new partitions", is_granted=False, lacking=("t",)),
    ),
    throttles=(
        FoundThrottle(1, "leader.replication.throttled.rate", "7", Whose.OTHER),
        FoundThrottle("t", "leader.replication.throttled.replicas", "0:1\u202e", Whose.LEFTOVER, "51d0c2aa"),
    ),
    safe_to_stop=(1, 2),
    start=(Start(3, opens=(TopicPartition("t", 0),)),),
    quorum=Quorum(2, (QuorumMember(1, 7, 12), QuorumMember(2, 0, 0), QuorumMember(3)), (QuorumMember(4, 1, 2),), 17),
    blocking={3: tuple(TopicPartition("t", number) for number in range(7))},
    unexamined=("log dirs: a right is missing",),
)


def test_the_gravest_stands_first_with_what_to_do_next() -> None:
    assert as_doctor.doctor(FOUND, "prod").text() == (
        "prod: Kafka 4.3, 3 brokers, 1 topic, 1,200 partitions.\n"
        "offers: moves that cannot change a replication factor (KIP-860): yes; consumer groups of KIP-848: no\n"
        "features: metadata.version 30\n"
        "controller: 2, epoch 17, of the quorum 1, 2, 3; at most 7 records behind\n"
        "rights: 1 of 2: Describe on cluster\n"
        "error: broker 3 is not alive (KR650)\n"
        "  next: start it\n"
        "warning: 1 replica behind (3.0 GiB behind, 5 records behind) (KR642)\n"
        "  next: wait\\u001b[2J\n"
        "throttle on broker 1: leader.replication.throttled.rate=7\n"
        "throttle on topic t: leader.replication.throttled.replicas=0:1\\u202e, left by the run of plan 51d0c2aa\n"
        "start in this order:\n"
        "  broker 3: 1 partition open to acks=all again\n"
        "safe to stop, one at a time: 1, 2\n"
        "not safe to stop: 3 (t-0, t-1, t-2, t-3, t-4 and 2 more would go under min ISR, or offline)\n"
        "not looked at: log dirs: a right is missing\n"
        "1 error, 1 warning, 0 notes.\n"
    )


def test_json_holds_all_of_it_in_the_schemas_form() -> None:
    value = json.loads(document(replace(FOUND, restored=("broker 1: a 7 -> not set",))))
    Draft7Validator(json.loads((schema_folder() / "doctor.json").read_text("utf-8"))).validate(value)
    assert (value["cluster"], value["healthy"], value["restored"]) == (None, False, ["broker 1: a 7 -> not set"])
    assert value["start"] == [{"broker": 3, "leads": [], "canLead": [], "opens": [{"topic": "t", "partition": 0}]}]
    assert value["quorum"]["leader"] == 2
    assert value["quorum"]["voters"][2] == {"id": 3, "recordsBehind": None, "millisecondsBehind": None}
    assert value["summary"] == {"errors": 1, "warnings": 1, "notes": 0}
    assert [(one["broker"], one["topic"], one["whose"]) for one in value["throttles"]] == [
        (1, None, "other"),
        (None, "t", "leftover"),
    ]


def test_many_throttles_are_counted_not_listed() -> None:
    many = tuple(FoundThrottle(n, "leader.replication.throttled.rate", "7", Whose.OTHER) for n in range(25))
    healthy = Diagnosis(
        "c-id", is_snapshot=True, observed_at=None, kafka_version=None, brokers=25, topics=0, partitions=0
    )
    text = as_doctor.doctor(replace(healthy, throttles=many), None).text()
    assert text.count("throttle on broker") == 20
    assert "and 5 throttles more: -o json has all\n" in text
    assert text.startswith("c-id: Kafka of an unknown release, 25 brokers, 0 topics, 0 partitions.\n")
    assert text.endswith("Nothing is wrong.\n")
