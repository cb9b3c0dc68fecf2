from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from staging.cases import cluster, desired, key, move, rules_of

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, MovePolicy
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import BrokerShare, Plan, Proof, Restore, Source
from reconciler.model.problem import Problem
from reconciler.model.stage import LogDirsStage, Stage, numbered
from reconciler.staging.assembly import assemble
from reconciler.staging.stages import stage_moves

DRAINING_1 = {1: BrokerState.DRAINING}


POLICY = MovePolicy(throttle_bytes_per_second=1, election_batch=7, timeout_seconds=9)


MOVES = (move("t-0: 1,2,3 -> 4,2,3", Reason.DRAINING, size=5), move("t-1: 5,2,6 -> 2,6,5", Reason.LEADERS))


def plan_of(
    observed: Cluster,
    states: Mapping[int, BrokerState] = DRAINING_1,
    policy: MovePolicy = POLICY,
    moves: Sequence[Move] = MOVES,
    inside: Sequence[Stage] = (),
) -> Plan:
    wanted = desired(states, policy)
    staging = stage_moves(
        moves,
        (),
        [Election(key("u-0"), 2)],
        observed=observed,
        desired=wanted,
        rules=rules_of(observed, observed.topics, None, leaving=states, unfit=states),
    )
    return assemble(
        replace(staging, stages=numbered([*staging.stages, *inside])),
        observed=observed,
        desired=wanted,
        source=Source("sha256:0"),
        proof=Proof(value=5, lower_bound=5),
        balance_before={1: BrokerShare(1, 1)},
        balance_after={1: BrokerShare(0, 0)},
        warnings=[Problem("KR801", "first")],
        violations=[Problem("KR401", "over")],
    )


OBSERVED = cluster(
    "1a 2b 3c 4a 5b 6c", "t-0: 1,2,3 size 5", "t-1: 5,2,6 size 5", "u-0: 2,5 leader 5", "other-0: 6,5 size 5"
)


def test_rollback_names_every_touched_partition_as_it_was() -> None:
    assert plan_of(OBSERVED).rollback.assignments == (
        Restore(key("t-0"), (1, 2, 3), 1),
        Restore(key("t-1"), (5, 2, 6), 5),
        Restore(key("u-0"), (2, 5), 5),
    )
    alone = replace(OBSERVED, topics={name: topic for name, topic in OBSERVED.topics.items() if name != "other"})
    assert plan_of(alone).rollback.assignments == plan_of(OBSERVED).rollback.assignments


def test_the_brokers_needed_are_those_that_copies_end_on_or_come_from() -> None:
    assert plan_of(OBSERVED).brokers_alive == (2, 3, 4)
    with_nought = plan_of(
        cluster("0a 2b 3c 4a 5b", "t-0: 4,2,3 size 5", "u-0: 2,5"), {}, moves=[move("t-0: 4,2,3 -> 0,2,3")]
    )
    assert with_nought.brokers_alive == (0, 2, 3, 4)


def test_a_leader_that_sends_copies_and_then_goes_is_needed_too() -> None:
    assert plan_of(OBSERVED, {}).brokers_alive == (1, 2, 3, 4)


def test_throttles_that_were_set_are_kept_for_touched_topics_and_for_brokers() -> None:
    throttle = "leader.replication.throttled.replicas"
    inside_rate = {"replica.alter.log.dirs.io.max.bytes.per.second": "7"}
    rate = {"leader.replication.throttled.rate": "9", "message.max.bytes": "1", **inside_rate}
    topics = {
        "t": Topic("t", OBSERVED.topics["t"].partitions, configs={throttle: "*", "retention.ms": "1"}),
        "u": OBSERVED.topics["u"],
        "other": Topic("other", (Partition(0, 6, (6, 5), (6, 5)),), configs={throttle: "0:6"}),
    }
    brokers = {**OBSERVED.brokers, 6: Broker(6, rack="c", configs=rate)}
    observed = Cluster("test", brokers=brokers, topics=topics)
    rollback = plan_of(observed).rollback
    assert rollback.topic_throttles == {"t": {throttle: "*"}}
    assert rollback.broker_throttles == {6: {"leader.replication.throttled.rate": "9"}}
    inside = plan_of(observed, inside=[LogDirsStage(0, (), 1)]).rollback
    assert inside.broker_throttles == {6: {"leader.replication.throttled.rate": "9", **inside_rate}}


def test_the_ids_of_touched_topics_are_kept_where_they_are_known() -> None:
    assert plan_of(OBSERVED).topic_ids == {}
    topics = {name: replace(topic, topic_id=f"id-of-{name}") for name, topic in OBSERVED.topics.items()}
    assert plan_of(replace(OBSERVED, topics=topics)).topic_ids == {"t": "id-of-t", "u": "id-of-u"}


def test_a_plan_carries_what_it_was_given() -> None:
    plan = plan_of(OBSERVED)
    assert (plan.cluster_name, plan.cluster_id, plan.id) == ("test", "test", "")
    assert (plan.election_batch, plan.timeout_seconds) == (7, 9)
    assert (plan.proof.value, plan.balance_before, plan.balance_after) == (
        5,
        {1: BrokerShare(1, 1)},
        {1: BrokerShare(0, 0)},
    )
    assert [problem.code for problem in plan.warnings] == ["KR801", "KR814"]
    assert [problem.code for problem in plan.violations] == ["KR401"]
    assert (plan.summary.replica_moves, plan.summary.bytes, plan.summary.leader_changes) == (1, 5, 2)
    assert plan.disk_peak == {1: 5, 3: 5, 4: 5, 6: 10}
    assert plan.disk_capacity == {}
    assert (plan.summary.estimated_seconds, plan.summary.least_seconds) == (5 + 5, 5)


@pytest.mark.parametrize(
    ("version", "settings", "is_fenced", "cordoned"),
    [
        ("4.3", {}, False, (1,)),
        ("4.2", {}, False, ()),
        (None, {}, False, ()),
        (None, {"cordoned.log.dirs": ""}, False, (1,)),
        ("4.3", {"num.partitions": "1"}, False, ()),
        ("4.3", {}, True, ()),
    ],
)
def test_a_draining_broker_is_cordoned_where_it_lives_and_knows_what_that_is(
    version: str | None, settings: dict[str, str], cordoned: tuple[int, ...], *, is_fenced: bool
) -> None:
    draining = replace(OBSERVED.brokers[1], settings=settings, is_fenced=is_fenced)
    observed = replace(OBSERVED, kafka_version=version, brokers={**OBSERVED.brokers, 1: draining})
    assert plan_of(observed).cordoned == cordoned
    assert plan_of(observed, policy=replace(POLICY, is_draining_cordoned=False)).cordoned == ()
