import json
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.move import Move, Reason
from reconciler.model.run import Outcome
from reconciler.model.starting import Start
from reconciler.model.status import LastEvent, MoveStatus, Phase, Status
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Quorum, QuorumMember
from reconciler.render import as_json, as_status

GIB = 1024**3
NOW = datetime(2026, 11, 21, 14, 2, 11, tzinfo=UTC)
MOVE = Move(TopicPartition("t", 0), (1, 2), (1, 3), 4 * GIB, Reason.BALANCE)
SOMEONE = "apply of plan {} (started by kim on build-7, process 4711, at 2026-11-21T09:00:00Z)"


def tally_of(standings: list[Standing], stage: int = 7) -> Tally:
    """Return a tally of one stage, with a partition for each of these."""
    return Tally({stage: {TopicPartition("t", number): one for number, one in enumerate(standings)}})


UNDER_WAY = Status(
    cluster_name="prod",
    time=NOW,
    plan_id="51d0c2aa",
    stage=7,
    stages=13,
    stages_done=6,
    moves=(MoveStatus(MOVE, GIB, 50.0 * 1024**2),),
    bytes_per_second=50.0 * 1024**2,
    eta_seconds=61.0,
    broker_throttles={1: {"leader.replication.throttled.rate": "10485760"}},
    topic_throttles={"t": {"leader.replication.throttled.replicas": "0:1\x1b"}},
    foreign={TopicPartition("u", 1): (4, 5)},
    safe_to_stop=(3,),
    quorum=Quorum(2, tuple(QuorumMember(one, 0, 0) for one in (1, 2, 3)), epoch=17),
    blocking={1: (TopicPartition("t", 0),)},
    last_event=LastEvent(NOW, "reassign", Outcome.STARTED),
    is_open=True,
    locked_by=SOMEONE.format("51d0c2aa"),
    is_lock_told=True,
    tally=tally_of(6 * [Standing.DONE] + [Standing.IN_FLIGHT, Standing.LEFT]),
)


def test_a_run_under_way_tells_all_that_it_does() -> None:
    assert as_status.status(UNDER_WAY) == (
        "prod: run 51d0c2aa, running: stage 7 of 13, 8 moves: 6 done, 1 in flight, 1 to do.\n"
        "in flight: 1.0 GiB of 4.0 GiB copied, 50 MiB/s, about 1 min left\n"
        "  ~ t-0  [1, 2] -> [1, 3]    1.0 GiB of 4.0 GiB, 50 MiB/s, about 1 min left\n"
        "throttled: 1 broker at 10 MiB/s, 1 topic; -v lists them\n"
        "locked by apply of plan 51d0c2aa (started by kim on build-7, process 4711, at 2026-11-21T09:00:00Z)\n"
        "not ours: u-1 is being reassigned to [4, 5]\n"
        "controller: 2, epoch 17, of the quorum 1, 2, 3\n"
        "safe to stop, one at a time: 3\n"
        "not safe to stop: 1 (t-0)\n"
    )
    lines = as_status.status(UNDER_WAY, has_all=True).splitlines()
    assert "throttle on broker 1: leader.replication.throttled.rate=10485760" in lines
    assert "throttle on topic t: leader.replication.throttled.replicas=0:1\\u001b" in lines
    assert not [line for line in lines if line.startswith("throttled: ")]


def test_without_a_run_the_brokers_are_told_all_the_same() -> None:
    idle = Status("prod", NOW, None, None, 0, 0, safe_to_stop=(1, 2))
    assert as_status.status(idle) == (
        "prod: no run is known here.\ncontroller: not told\nsafe to stop, one at a time: 1, 2\n"
    )
    done = Status("prod", NOW, "51d0c2aa", None, 13, 13)
    assert as_status.status(done).startswith("prod: run 51d0c2aa, done: 13 stages.\n")


def test_whom_to_start_stands_before_who_may_stop() -> None:
    keys = (TopicPartition("t", 0), TopicPartition("t", 1))
    order = (Start(2, leads=keys[:1], can_lead=keys[:1]), Start(1, can_lead=keys, opens=keys))
    down = Status("prod", NOW, None, None, 0, 0, start=order, quorum=Quorum(3, (QuorumMember(3, 0, 0),)))
    assert as_status.status(down) == (
        "prod: no run is known here.\n"
        "controller: 3, of the quorum 3; epoch not told\n"
        "start in this order:\n"
        "  broker 2: 1 partition without a leader can be led again\n"
        "  broker 1: has all records of 2 partitions too, should those before it not come, "
        "2 partitions open to acks=all again\n"
        "safe to stop, one at a time: none\n"
    )
    told = json.loads(as_json.document(down))["start"]
    assert [one["broker"] for one in told] == [2, 1]
    assert told[0]["leads"] == [{"topic": "t", "partition": 0}]
    many = replace(down, start=tuple(Start(broker, opens=keys) for broker in range(12)))
    assert as_status.status(many).count("\n  broker ") == 10
    assert "  and 2 brokers more: -o json has all\n" in as_status.status(many)


def test_a_plan_of_which_nothing_is_known_to_have_begun_is_no_run() -> None:
    plan = Status("prod", NOW, "51d0c2aa", 1, 13, 0)
    assert as_status.status(plan).startswith(
        "prod: plan 51d0c2aa, 13 stages: no run of it is known here, and nothing of it is done or in flight.\n"
    )
    shown = (
        replace(plan, last_event=LastEvent(NOW, "run", Outcome.STARTED)),
        replace(plan, stages_done=1),
        replace(plan, moves=UNDER_WAY.moves),
        replace(plan, locked_by=SOMEONE.format("51d0c2aa")),
    )
    assert [as_status.status(one).partition(":")[2].partition(".")[0] for one in shown] == [
        " run 51d0c2aa, stopped: stage 1 of 13",
        " run 51d0c2aa, stopped: stage 1 of 13",
        " run 51d0c2aa, running: stage 1 of 13",
        " run 51d0c2aa, running: stage 1 of 13",
    ]
    assert "plan 51d0c2aa, 13 stages: no run" in as_status.status(replace(plan, locked_by=SOMEONE.format("5ca1ab1e")))


def test_json_has_units_in_its_keys() -> None:
    value = json.loads(as_json.document(UNDER_WAY))
    assert (value["planId"], value["bytesPerSecond"], value["etaSeconds"]) == ("51d0c2aa", 50.0 * 1024**2, 61.0)
    assert value["moves"] == [
        {
            "topic": "t",
            "partition": 0,
            "from": [1, 2],
            "to": [1, 3],
            "copiedBytes": GIB,
            "bytes": 4 * GIB,
            "bytesPerSecond": 50.0 * 1024**2,
            "etaSeconds": 61.44,
        }
    ]
    assert (value["state"], value["moveCounts"]["done"], value["moveCounts"]["foreign"]) == ("running", 6, 0)
    assert value["lastEvent"]["step"] == "reassign"
    assert json.loads(as_json.document(Status("prod", NOW, None, None, 0, 0)))["lastEvent"] is None


def test_each_state_has_its_name_and_what_comes_next() -> None:
    stopped = replace(UNDER_WAY, moves=(), locked_by=None, is_open=False, broker_throttles={}, topic_throttles={})
    dead = replace(UNDER_WAY, locked_by=None)
    finished = replace(stopped, stage=None, tally=tally_of([Standing.DONE] * 8))
    back = replace(stopped, stage=1, is_rolled_back=True)
    told = {one.state: as_status.status(one).splitlines() for one in (stopped, dead, finished, back)}
    assert told[Phase.STOPPED][-1] == "next: apply goes on with it, cancel --rollback undoes what is done"
    assert told[Phase.DEAD][-1] == "next: apply goes on with it, cancel takes back what is in flight"
    assert told[Phase.DONE][0] == "prod: run 51d0c2aa, done: 13 stages, all 8 moves done."
    assert told[Phase.ROLLED_BACK][0] == (
        "prod: run 51d0c2aa, rolled back: of its moves nothing is on the cluster any more."
    )
    undoing = replace(stopped, undoes="5ca1ab1e")
    assert as_status.status(undoing).splitlines()[-1] == (
        "next: cancel --rollback goes on with it, an apply of plan 5ca1ab1e undoes it"
    )
    assert as_status.status(replace(finished, undoes="5ca1ab1e")).splitlines()[0] == (
        "prod: run 51d0c2aa, the rollback of plan 5ca1ab1e, done: 13 stages, all 8 moves done. "
        "Plan 5ca1ab1e is rolled back."
    )


def test_of_many_moves_the_slowest_are_shown_and_of_throttles_how_many() -> None:
    moves = tuple(
        MoveStatus(replace(MOVE, topic_partition=TopicPartition("t", number)), GIB, float(number) * 1024**2)
        for number in range(8)
    )
    rates = {broker: {"follower.replication.throttled.rate": str((1 + broker // 3) * 1024**2)} for broker in range(4)}
    seen = replace(UNDER_WAY, moves=moves, broker_throttles=rates)
    lines = as_status.status(seen).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  ~ ")] == ["t-0", "t-1", "t-2", "t-3", "t-4"]
    assert "no bytes since the last look" in lines[2]
    assert lines[1].endswith("; the slowest of 8, -v lists all")
    assert "throttled: 3 brokers at 1 MiB/s, 1 broker at 2 MiB/s, 1 topic; -v lists them" in lines
    assert as_status.status(seen, has_all=True).count("  ~ ") == 8
