import json
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.move import Move, Reason
from reconciler.model.run import Outcome, RunEvent
from reconciler.model.starting import Start
from reconciler.model.status import MoveStatus, Status
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_json, as_text

GIB = 1024**3
NOW = datetime(2026, 11, 21, 14, 2, 11, tzinfo=UTC)
MOVE = Move(TopicPartition("t", 0), (1, 2), (1, 3), 4 * GIB, Reason.BALANCE)
UNDER_WAY = Status(
    time=NOW,
    plan_id="51d0c2aa",
    stage=7,
    stages=13,
    stages_done=6,
    moves=(MoveStatus(MOVE, GIB),),
    bytes_per_second=50.0 * 1024**2,
    eta_seconds=61.0,
    broker_throttles={1: {"leader.replication.throttled.rate": "1"}},
    topic_throttles={"t": {"leader.replication.throttled.replicas": "0:1\x1b"}},
    foreign={TopicPartition("u", 1): (4, 5)},
    safe_to_stop=(3,),
    blocking={1: (TopicPartition("t", 0),)},
    last_event=RunEvent(NOW, 7, "reassign", Outcome.STARTED),
)


def test_a_run_under_way_tells_all_that_it_does() -> None:
    assert as_text.status(UNDER_WAY, "prod") == (
        "prod: run 51d0c2aa, stage 7/13: 1 move in flight, 1.0 GiB of 4.0 GiB copied, 50MiB/s, about 1 min left.\n"
        "  ~ t-0  [1, 2] -> [1, 3]    1.0 GiB of 4.0 GiB\n"
        "throttle on broker 1: leader.replication.throttled.rate=1\n"
        "throttle on topic t: leader.replication.throttled.replicas=0:1\\u001b\n"
        "not ours: u-1 is being reassigned to [4, 5]\n"
        "safe to stop, one at a time: 3\n"
        "not safe to stop: 1 (t-0)\n"
    )


def test_without_a_run_the_brokers_are_told_all_the_same() -> None:
    idle = Status(NOW, None, None, 0, 0, safe_to_stop=(1, 2))
    assert as_text.status(idle, "prod") == "prod: no run is known here.\nsafe to stop, one at a time: 1, 2\n"
    done = Status(NOW, "51d0c2aa", None, 13, 13)
    assert as_text.status(done, "prod").startswith("prod: run 51d0c2aa, done: 13 stages.\n")


def test_whom_to_start_stands_before_who_may_stop() -> None:
    keys = (TopicPartition("t", 0), TopicPartition("t", 1))
    order = (Start(2, leads=keys[:1], can_lead=keys[:1]), Start(1, can_lead=keys, opens=keys))
    down = Status(NOW, None, None, 0, 0, start=order)
    assert as_text.status(down, "prod") == (
        "prod: no run is known here.\n"
        "start in this order:\n"
        "  broker 2: 1 partition without a leader can be led again\n"
        "  broker 1: has all records of 2 partitions too, should those before it not come, "
        "2 partitions open to acks=all again\n"
        "safe to stop, one at a time: none\n"
    )
    told = json.loads(as_json.status(down, "prod"))["start"]
    assert [one["broker"] for one in told] == [2, 1]
    assert told[0]["leads"] == [{"topic": "t", "partition": 0}]
    many = replace(down, start=tuple(Start(broker, opens=keys) for broker in range(12)))
    assert as_text.status(many, "prod").count("\n  broker ") == 10
    assert "  and 2 brokers more: -o json has all\n" in as_text.status(many, "prod")


def test_a_plan_of_which_nothing_is_known_to_have_begun_is_no_run() -> None:
    plan = Status(NOW, "51d0c2aa", 1, 13, 0)
    assert as_text.status(plan, "prod").startswith(
        "prod: plan 51d0c2aa, 13 stages: no run of it is known here, and nothing of it is done or in flight.\n"
    )
    someone = "apply of plan {} (started by kim on build-7, process 4711, at 2026-11-21T09:00:00Z)"
    shown = (
        replace(plan, last_event=RunEvent(NOW, 0, "run", Outcome.STARTED)),
        replace(plan, stages_done=1),
        replace(plan, moves=UNDER_WAY.moves),
        replace(plan, holder=someone.format("51d0c2aa")),
    )
    assert all("run 51d0c2aa, stage 1/13: " in as_text.status(one, "prod") for one in shown)
    assert "plan 51d0c2aa, 13 stages: no run" in as_text.status(
        replace(plan, holder=someone.format("5ca1ab1e")), "prod"
    )


def test_json_has_units_in_its_keys() -> None:
    value = json.loads(as_json.status(UNDER_WAY, "prod"))
    assert (value["planId"], value["bytesPerSecond"], value["etaSeconds"]) == ("51d0c2aa", 50.0 * 1024**2, 61.0)
    assert value["moves"] == [
        {"topic": "t", "partition": 0, "from": [1, 2], "to": [1, 3], "copiedBytes": GIB, "bytes": 4 * GIB}
    ]
    assert value["lastEvent"]["step"] == "reassign"
    assert json.loads(as_json.status(Status(NOW, None, None, 0, 0), "prod"))["lastEvent"] is None
