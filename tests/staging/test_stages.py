import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from staging.cases import cluster, desired, key, move, rules_of, run
from staging.least_time import least_seconds

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import BrokerState, Limits, MovePolicy
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.move import Election, Move, Reason
from reconciler.model.problem import Location, Severity
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of, moves_of
from reconciler.staging.estimate import busiest_broker_seconds, served_moves
from reconciler.staging.stages import Staging, stage_moves

BROKERS = "1a 2b 3c 4a 5b 6c"
FAST = MovePolicy(throttle_bytes_per_second=1)


def staged(
    observed: Cluster,
    moves: Sequence[Move] = (),
    changes: Sequence[TopicChange] = (),
    elections: Sequence[Election] = (),
    *,
    states: dict[int, BrokerState] | None = None,
    policy: MovePolicy = FAST,
    limits: Limits | None = None,
) -> Staging:
    return stage_moves(
        moves,
        changes,
        elections,
        observed=observed,
        desired=desired(states, policy, limits),
        rules=rules_of(observed, observed.topics, None, leaving=states or (), unfit=states or ()),
    )


def outline(stages: Sequence[Stage]) -> list[str]:
    """Return one line a stage: `move t-0 t-1, elect t-0=2`, `elect t-0=2`, `topics 0 1`; moves by partition."""
    lines = []
    for stage in stages:
        elected = " ".join(f"{one.topic_partition}={one.leader}" for one in elections_of(stage))
        match stage:
            case ReassignStage():
                moved = "move " + " ".join(sorted(str(one.topic_partition) for one in stage.moves))
                lines.append(f"{moved}, elect {elected}" if elected else moved)
            case ElectStage():
                lines.append(f"elect {elected}")
            case LogDirsStage():
                lines.append("log dirs " + " ".join(sorted(str(one.topic_partition) for one in stage.moves)))
            case TopicsStage():
                lines.append("topics " + " ".join(map(str, stage.changes)))
    return lines


def test_nothing_to_do_is_no_stage() -> None:
    found = staged(cluster(BROKERS, "t-0: 1,2"), [move("t-0: 1,2 -> 1,2")])
    assert (found.stages, found.topic_changes, found.warnings, found.violations) == ((), (), (), ())


def test_repairs_go_first_and_among_them_the_fewest_in_sync() -> None:
    observed = cluster(
        "1a 2b 3c! 4a 5b 6c",
        "t-0: 1,2 size 9",
        "t-1: 1,2,3 isr 1,2 size 9",
        "t-2: 1,2,3 isr 1 size 1",
        "t-3: 5,2 size 9",
    )
    moves = [
        move("t-0: 1,2 -> 1,6", size=9),
        move("t-1: 1,2,3 -> 1,2,6", Reason.DEAD_BROKER, size=9),
        move("t-2: 1,2,3 -> 1,2,6", Reason.DEAD_BROKER, size=1),
        move("t-3: 5,2 -> 6,2", Reason.DRAINING, size=9),
    ]
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=1)
    found = staged(observed, moves, states={5: BrokerState.DRAINING}, policy=policy)
    assert outline(found.stages) == [
        "move t-2",
        "move t-1",
        "move t-3, elect t-3=2",
        "move t-3, elect t-3=6",
        "move t-0",
    ]
    found = staged(observed, moves, states={5: BrokerState.DRAINING})
    first, second = (stage for stage in found.stages if isinstance(stage, ReassignStage))
    in_order = [[str(one.topic_partition) for one in stage.moves] for stage in (first, second)]
    assert in_order == [["t-2", "t-1", "t-3"], ["t-3", "t-0"]], "a run admits them in this order"


def test_less_urgent_moves_fill_what_the_urgent_ones_leave() -> None:
    observed = cluster("1a 2b 3c! 4a 5b 6c", "t-0: 1,2,3 isr 1,2 size 9", "t-1: 4,5 size 9")
    moves = [move("t-0: 1,2,3 -> 1,2,6", Reason.DEAD_BROKER, size=9), move("t-1: 4,5 -> 4,2", Reason.BALANCE, size=9)]
    assert outline(staged(observed, moves).stages) == ["move t-0 t-1"]


def test_a_stage_takes_whatever_per_stage_allows_however_many_one_broker_receives() -> None:
    lines = [f"t-{number}: 1 size 1" for number in range(30)]
    moves = [move(f"t-{number}: 1 -> 4", size=1) for number in range(30)]
    observed = cluster(BROKERS, *lines)
    policy = MovePolicy(throttle_bytes_per_second=1, per_broker=2, per_stage=20)
    counts = [
        len(stage.moves) for stage in staged(observed, moves, policy=policy).stages if isinstance(stage, ReassignStage)
    ]
    assert counts == [15, 15]


def test_where_nothing_else_is_ready_a_stage_takes_all_that_a_broker_may_take() -> None:
    observed = cluster(BROKERS, "t-0: 5,3 size 1", "t-1: 3 size 10")
    moves = [move("t-0: 5,3 -> 2,4", size=1), move("t-1: 3 -> 6", size=10)]
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=2, per_partition=1)
    assert outline(staged(observed, moves, policy=policy).stages) == ["move t-0 t-1", "move t-0"]


def test_leaderships_leave_a_draining_broker_before_any_data_moves() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 size 5", "t-1: 1,3 size 5", "t-2: 5,6 size 5")
    moves = [
        move("t-0: 1,2 -> 4,2", Reason.DRAINING, size=5),
        move("t-1: 1,3 -> 3,4", Reason.DRAINING, size=5),
        move("t-2: 5,6 -> 5,3", size=5),
    ]
    found = staged(observed, moves, states={1: BrokerState.DRAINING})
    assert outline(found.stages) == ["move t-0 t-1, elect t-0=2 t-1=3", "move t-0 t-1 t-2, elect t-0=4"]
    assert isinstance(found.stages[0], ReassignStage)
    assert (found.stages[0].bytes, found.stages[0].estimated_seconds) == (0, 0)
    assert found.stages[0].throttle_bytes_per_second is None


def test_leaderships_leave_a_broker_in_maintenance_before_anything_is_copied() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 size 5", "t-1: 2,3 size 5", "t-2: 1,3 leader 3 size 5")
    moves = [
        move("t-0: 1,2 -> 2,1", Reason.LEADERS),
        move("t-1: 2,3 -> 2,4", size=5),
        move("t-2: 1,3 -> 3,1", Reason.LEADERS),
    ]
    found = staged(observed, moves, states={1: BrokerState.MAINTENANCE})
    assert outline(found.stages) == ["move t-0, elect t-0=2", "move t-1 t-2"]


def test_leaderships_leave_a_broker_first_although_a_partition_that_was_repaired_still_moves() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 size 5", "t-1: 2,3 size 5")
    moves = [move("t-0: 1,2 -> 2,1", Reason.LEADERS), move("t-1: 2,3 -> 2,4", Reason.DEAD_BROKER, size=5)]
    found = staged(observed, moves, states={1: BrokerState.MAINTENANCE})
    assert outline(found.stages) == ["move t-0, elect t-0=2", "move t-1"]


def test_reorders_ride_along_with_data() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 size 5", "t-1: 1,3 size 5")
    moves = [move("t-0: 1,2 -> 1,5", size=5), move("t-1: 1,3 -> 3,1", Reason.LEADERS)]
    assert outline(staged(observed, moves).stages) == ["move t-0 t-1, elect t-1=3"]


def test_elections_that_are_due_come_before_moves_in_batches_over_the_brokers() -> None:
    lines = [f"t-{number}: {1 if number < 3 else 2},3 leader 3" for number in range(5)]
    elections = [Election(key(f"t-{number}"), 1 if number < 3 else 2) for number in range(5)]
    policy = MovePolicy(throttle_bytes_per_second=1, election_batch=2)
    moves = [move("t-0: 1,3 -> 1,6", size=1)]
    found = staged(cluster(BROKERS, *lines), moves, elections=elections, policy=policy)
    assert outline(found.stages) == ["elect t-0=1 t-3=2 t-1=1 t-4=2 t-2=1", "move t-0"]
    assert [problem.code for problem in found.warnings] == ["KR814"]


@pytest.mark.parametrize(
    ("in_force", "expected"),
    [
        ({}, "brokers with auto.leader.rebalance.enable, on by default, elect "),
        (dict.fromkeys(range(1, 7), "false"), None),
        ({1: "false"}, None),
        ({1: "false", 2: "true", 4: "true"}, "brokers 2, 4, where auto.leader.rebalance.enable is on, elect "),
    ],
    ids=["unknown", "off", "off where it is known", "on for some"],
)
@pytest.mark.parametrize("told_by", ["settings", "configs"])
def test_what_is_in_force_tells_whether_brokers_elect_before_the_batches_do(
    told_by: str, in_force: dict[int, str], expected: str | None
) -> None:
    observed = cluster(BROKERS, "t-0: 1,3 leader 3", "t-1: 1,3 leader 3")
    brokers = {
        number: replace(broker, **{told_by: {"auto.leader.rebalance.enable": in_force[number]}})  # type: ignore[arg-type]
        if number in in_force
        else broker
        for number, broker in observed.brokers.items()
    }
    policy = MovePolicy(throttle_bytes_per_second=1, election_batch=1)
    elections = [Election(key("t-0"), 1), Election(key("t-1"), 1)]
    found = staged(replace(observed, brokers=brokers), elections=elections, policy=policy)
    told = [problem.message.partition("preferred")[0] for problem in found.warnings if problem.code == "KR814"]
    assert told == ([] if expected is None else [expected])


def test_an_election_that_a_move_undoes_is_left_out() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 leader 2", "t-1: 1,2 leader 2")
    elections = [Election(key("t-0"), 1), Election(key("t-1"), 1)]
    found = staged(observed, [move("t-0: 1,2 -> 4,2")], elections=elections)
    assert outline(found.stages) == ["elect t-1=1", "move t-0, elect t-0=4"]


def test_a_preferred_leader_out_of_sync_is_told_and_not_elected() -> None:
    found = staged(cluster(BROKERS, "t-0: 1,2 leader 2 isr 2"), elections=[Election(key("t-0"), 1)])
    assert found.stages == ()
    assert [(problem.code, problem.severity) for problem in found.warnings] == [("KR815", Severity.WARNING)]
    assert "t-0" in found.warnings[0].message


def test_a_replica_out_of_sync_that_stays_while_one_in_sync_goes_is_told() -> None:
    observed = cluster(
        BROKERS,
        "t-0: 1,2 isr 1",
        "t-1: 1,2",
        "t-2: 1,2 isr 2",
        "t-3: 1,2,3 isr 2,3",
        "t-4: 1,2 isr 1",
        "t-5: 1,2 isr 1",
    )
    moves = [move(f"t-{number}: 1,2 -> 2") for number in range(3)]
    moves += [move("t-3: 1,2,3 -> 1,2,4"), move("t-4: 1,2 -> 2,3"), move("t-5: 1,2 -> 1,2,3")]
    told = [problem.message for problem in staged(observed, moves).warnings if problem.code == "KR829"]
    assert len(told) == 1
    assert told[0].startswith(
        "3 partitions keep replicas out of sync where one in sync goes"
        " (t-0 keeps 2, drops 1; t-3 keeps 1, drops 3; t-4 keeps 2, drops 1), as"
    )


def test_topics_are_made_first_and_deleted_last() -> None:
    observed = cluster(BROKERS, "a-0: 1,2 size 5", "b-0: 1,2")
    changes: list[TopicChange] = [
        DeleteTopic("b"),
        CreatePartitions("a", 1, 2, {1: (1, 2)}),
        AlterConfigs("a", set={"retention.ms": "1"}, before={"retention.ms": None}),
        CreateTopic("c", 1, 2, assignment={0: (1, 2)}),
    ]
    found = staged(observed, [move("a-0: 1,2 -> 1,5", size=5)], changes)
    assert outline(found.stages) == ["topics 0 1 2", "move a-0", "topics 3"]
    assert [type(change) for change in found.topic_changes] == [
        CreateTopic,
        AlterConfigs,
        CreatePartitions,
        DeleteTopic,
    ]


def test_what_kafka_may_refuse_comes_before_growth_and_configs_that_destroy_after_all_moves() -> None:
    """All of a topic's keys stay in one request but min.insync.replicas, which a lower factor needs first."""
    lost = Effect(EffectClass.DESTROYS, "deletes records older than 9 ms", "retention.ms")
    fewer = Effect(EffectClass.AVAILABILITY, "one replica may fail", "min.insync.replicas")
    observed = cluster(BROKERS, "a-0: 1,2,3 size 5", "b-0: 1,2 size 5", "d-0: 1", configs={"min.insync.replicas": "3"})
    destroying = AlterConfigs(
        "a",
        set={"min.insync.replicas": "2", "retention.ms": "9", "segment.ms": "8"},
        before={"min.insync.replicas": "3", "retention.ms": None, "segment.ms": None},
        effects=(fewer, lost),
    )
    taken = AlterConfigs("b", set={"max.message.bytes": "9"}, before={"max.message.bytes": None})
    grown, gone = CreatePartitions("b", 1, 2, {1: (1, 2)}), DeleteTopic("d")
    whole = move("a-0: 1,2,3 -> 1,2", Reason.REPLICATION_FACTOR)
    found = staged(observed, [whole], [gone, grown, destroying, taken])
    assert outline(found.stages) == ["topics 0 1 2", "move a-0", "topics 3 4"]
    assert found.topic_changes == (
        AlterConfigs("a", {"min.insync.replicas": "2"}, (), {"min.insync.replicas": "3"}, effects=(fewer,)),
        taken,
        grown,
        AlterConfigs(
            "a",
            {"retention.ms": "9", "segment.ms": "8"},
            (),
            {"retention.ms": None, "segment.ms": None},
            effects=(lost,),
        ),
        gone,
    )


def test_growth_waits_for_the_new_replication_factor_and_no_longer() -> None:
    observed = cluster(f"0a {BROKERS}", "a-0: 1,2 size 5", "b-0: 0,2 size 5", "b-1: 4,5 size 5")
    moves = [
        move("a-0: 1,2 -> 1,2,3", Reason.REPLICATION_FACTOR, size=5),
        move("b-0: 0,2 -> 0,3", size=5),
        move("b-1: 4,5 -> 4,3", size=5),
    ]
    changes = [CreatePartitions("a", 1, 2, {1: (1, 2, 3)}), CreatePartitions("b", 2, 3, {2: (1, 2)})]
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=1)
    found = staged(observed, moves, changes, policy=policy)
    assert outline(found.stages) == ["topics 0", "move a-0", "topics 1", "move b-0", "move b-1"]
    assert [change.topic for change in found.topic_changes] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "before", "wanted", "when"),
    [
        ("a-0: 1,2 -> 1,2,3", None, "2", "after"),
        ("a-0: 1,2 -> 1,2,3", "2", "1", "before"),
        ("a-0: 1,2,3 -> 1,2", "2", "1", "before"),
        ("a-0: 1,2 -> 1,5", "1", "2", "before"),
        ("a-0: 1 -> 5", "1", "2", "after"),
    ],
)
def test_min_insync_replicas_rises_after_the_factor_and_falls_before_it(
    text: str, before: str | None, wanted: str, when: str
) -> None:
    whole = move(text, Reason.REPLICATION_FACTOR, size=5)
    present = {} if before is None else {"min.insync.replicas": before}
    observed = cluster(BROKERS, f"a-0: {','.join(map(str, whole.from_replicas))} size 5", configs=present)
    place = Location("a.yaml", 3)
    change = AlterConfigs(
        "a",
        set={"min.insync.replicas": wanted, "retention.ms": "9"},
        delete=("segment.bytes",),
        before={"min.insync.replicas": before, "retention.ms": None, "segment.bytes": "4"},
        at=place,
    )
    found = staged(observed, [whole], [change])
    if when == "before":
        assert (outline(found.stages), found.topic_changes) == (["topics 0", "move a-0"], (change,))
        return
    assert outline(found.stages) == ["topics 0", "move a-0", "topics 1"]
    assert found.topic_changes == (
        AlterConfigs(
            "a", {"retention.ms": "9"}, ("segment.bytes",), {"retention.ms": None, "segment.bytes": "4"}, place
        ),
        AlterConfigs("a", {"min.insync.replicas": wanted}, (), {"min.insync.replicas": before}, place),
    )


@pytest.mark.parametrize(("in_force", "expected"), [("1", ["move a-0", "topics 0"]), ("2", ["topics 0", "move a-0"])])
def test_a_min_insync_replicas_that_is_in_force_already_does_not_wait(in_force: str, expected: list[str]) -> None:
    observed = cluster(BROKERS, "a-0: 1,2 size 5")
    brokers = {
        number: replace(broker, settings={"min.insync.replicas": in_force})
        for number, broker in observed.brokers.items()
    }
    change = AlterConfigs("a", {"min.insync.replicas": "2"}, (), {"min.insync.replicas": None})
    whole = move("a-0: 1,2 -> 1,2,3", Reason.REPLICATION_FACTOR, size=5)
    found = staged(replace(observed, brokers=brokers), [whole], [change])
    assert outline(found.stages) == expected


def test_a_change_of_nothing_but_a_higher_min_insync_replicas_is_made_once_after_the_factor() -> None:
    change = AlterConfigs("a", {"min.insync.replicas": "2"}, (), {"min.insync.replicas": None})
    whole = move("a-0: 1,2 -> 1,2,3", Reason.REPLICATION_FACTOR, size=5)
    found = staged(cluster(BROKERS, "a-0: 1,2 size 5"), [whole], [change])
    assert (outline(found.stages), found.topic_changes) == (["move a-0", "topics 0"], (change,))


def test_a_move_waits_until_the_space_it_needs_is_free() -> None:
    observed = cluster("1a 2a 3a", "t-0: 1 size 50", "t-1: 2 size 50", disks={1: (100, 50), 2: (100, 50), 3: (100, 0)})
    moves = [move("t-0: 1 -> 2", size=50), move("t-1: 2 -> 3", size=50)]
    limits = Limits(disk_use=Fraction(8, 10))
    found = staged(observed, moves, limits=limits)
    assert outline(found.stages) == ["move t-1", "move t-0"]
    assert (found.violations, found.disk_peak) == ((), {1: 50, 2: 50, 3: 50})


def test_a_disk_that_must_overflow_does_so_least_and_is_named_with_its_line() -> None:
    observed = cluster("1a 2a", "t-0: 1 size 50", "t-1: 2 size 40", disks={1: (100, 50), 2: (100, 40)})
    moves = [move("t-0: 1 -> 2", size=50), move("t-1: 2 -> 1", size=40)]
    limits = Limits(disk_use=Fraction(8, 10), at={"diskUse": Location("cluster.yaml", 41)})
    found = staged(observed, moves, limits=limits)
    assert outline(found.stages) == ["move t-0", "move t-1"]
    assert [(problem.code, problem.severity, problem.at) for problem in found.violations] == [
        ("KR413", Severity.VIOLATION, Location("cluster.yaml", 41))
    ]
    assert "(10 bytes)" in found.violations[0].message
    assert "limits.diskUse 80%" in found.violations[0].message


def test_a_disk_that_had_to_take_too_much_is_kept_from_more() -> None:
    sizes = {1: 50, 2: 40, 3: 35}
    lines = [f"t-{broker_id}: {broker_id} size {size}" for broker_id, size in sizes.items()]
    observed = cluster("1a 2a 3a", *lines, disks={broker_id: (100, size) for broker_id, size in sizes.items()})
    moves = [move("t-1: 1 -> 2", size=50), move("t-2: 2 -> 1", size=40), move("t-3: 3 -> 1", size=35)]
    found = staged(observed, moves, limits=Limits(disk_use=Fraction(8, 10)))
    assert outline(found.stages) == ["move t-3", "move t-1", "move t-2"]
    assert found.disk_peak == {1: 85, 2: 90, 3: 35}


def test_a_disk_that_ends_too_full_is_packed_all_the_same() -> None:
    lines = [f"t-{number}: 1 size 10" for number in range(9)]
    observed = cluster("1a 2a", *lines, disks={1: (100, 90), 2: (100, 20)})
    moves = [move(f"t-{number}: 1 -> 2", size=10) for number in range(9)]
    found = staged(observed, moves, limits=Limits(disk_use=Fraction(1, 2)))
    assert len(found.stages) == 1
    assert "broker 2 would hold 110 B of 100 B" in found.violations[0].message


def test_without_a_limit_only_a_full_disk_is_told_and_as_a_warning() -> None:
    observed = cluster("1a 2a", "t-0: 1 size 50", disks={1: (100, 50), 2: (100, 60)})
    found = staged(observed, [move("t-0: 1 -> 2", size=50)])
    assert (found.violations, [problem.code for problem in found.warnings]) == ((), ["KR816"])


def test_unknown_capacity_and_unknown_sizes_are_warnings() -> None:
    observed = cluster("1a 2a", "t-0: 1")
    unknown = Move(key("t-0"), (1,), (2,), 0, Reason.BALANCE, is_size_known=False)
    found = staged(observed, [unknown], limits=Limits(disk_use=Fraction(8, 10)))
    assert [problem.code for problem in found.warnings] == ["KR812", "KR813"]
    assert found.warnings[0].message.startswith("the size of 1 of 1 partitions to copy is unknown (t-0): ")
    assert found.violations == ()
    assert found.disk_peak == {2: 0}


def test_limits_on_partitions_and_bytes_name_value_limit_and_line() -> None:
    observed = cluster(BROKERS, "t-0: 1,2 size 9", "t-1: 1,2 size 9", "t-2: 1,2", "t-3: 1,2")
    moves = [move("t-0: 1,2 -> 1,5", size=9), move("t-1: 1,2 -> 1,5", size=9)]
    places = {"changedPartitions": Location("c.yaml", 7), "movedBytes": Location("c.yaml", 8)}
    limits = Limits(changed_partitions=Fraction(1, 4), moved_bytes=17, at=places)
    found = staged(observed, moves, limits=limits)
    assert [(one.code, one.severity, one.at) for one in found.violations] == [
        ("KR411", Severity.VIOLATION, Location("c.yaml", 7)),
        ("KR412", Severity.VIOLATION, Location("c.yaml", 8)),
    ]
    assert "changes 2 of 4 partitions and limits.changedPartitions is 25% (1)" in found.violations[0].message
    assert "18 bytes" in found.violations[1].message
    assert staged(observed, moves, limits=Limits(changed_partitions=2, moved_bytes=18)).violations == ()
    assert staged(observed, moves, limits=Limits(changed_partitions=1)).violations[0].code == "KR411"


def test_copies_without_a_throttle_are_told_and_estimated_at_a_stated_rate() -> None:
    line = Location("cluster.yaml", 6)
    observed = cluster(BROKERS, "t-0: 1,2 size 1048576000")
    found = staged(observed, [move("t-0: 1,2 -> 1,5", size=1048576000)], policy=MovePolicy(at={"throttle": line}))
    assert [(problem.code, problem.at) for problem in found.warnings] == [("KR811", line)]
    assert "100 MiB/s" in found.warnings[0].message
    assert isinstance(found.stages[0], ReassignStage)
    assert found.stages[0].estimated_seconds == 5 + 10


@pytest.mark.parametrize("per_partition", [1, 2, 3])
@pytest.mark.parametrize("dead", [(), (3,), (2, 3)])
def test_more_copies_of_a_partition_at_once_than_allowed_are_only_of_dead_replicas_and_are_told(
    dead: tuple[int, ...], per_partition: int
) -> None:
    line = Location("c/cluster.yaml", 9)
    policy = replace(FAST, per_partition=per_partition, at={"perPartition": line})
    names = " ".join(f"{id_}{rack}{'!' * (id_ in dead)}" for id_, rack in enumerate("abcabc", start=1))
    observed = cluster(names, f"t-0: 1,2,3 leader 1 isr {'1' if dead else '1,2,3'} size 5", "u-0: 4,5 size 5")
    moves = [move("t-0: 1,2,3 -> 1,4,5" if dead else "t-0: 1,2,3 -> 4,5,6", size=5), move("u-0: 4,5 -> 5,6", size=5)]
    found = staged(observed, moves, policy=policy)
    most = max(len(each.added) for each in moves_of(found.stages))
    # At once are either what is allowed, or all that is dead.
    assert most == max(min(per_partition, 2 if dead else 3), len(dead))
    told = [each for each in found.warnings if each.code == "KR883"]
    assert [each.at for each in told] == ([line] if len(dead) > per_partition else [])
    for each in told:
        start = f"moves.perPartition is {per_partition}, and more replicas of 1 partition are copied at once (t-0: "
        assert each.message.startswith(f"{start}{len(dead)}): ")


def test_each_stage_gets_its_even_part_of_the_busiest_brokers_bytes() -> None:
    sizes = [100, 90, 80, 30, 20, 10]
    lines = [f"t-{number}: 1 size {size}" for number, size in enumerate(sizes)]
    moves = [move(f"t-{number}: 1 -> {2 + number % 3}", size=size) for number, size in enumerate(sizes)]
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=3)
    found = staged(cluster("1a 2a 3a 4a", *lines), moves, policy=policy)
    assert [stage.estimated_seconds for stage in found.stages if isinstance(stage, ReassignStage)] == [5 + 150, 5 + 180]
    bytes_in_all = [sum(one.bytes for one in stage.moves) for stage in found.stages if isinstance(stage, ReassignStage)]
    assert bytes_in_all == [150, 180]


def test_the_bounds_count_bytes_and_what_the_limit_forces() -> None:
    lines = [f"t-{number}: 1,{2 + number} leader {2 + number} size {size}" for number, size in enumerate([9, 7, 5, 3])]
    moves = [move(f"t-{n}: 1,{2 + n} -> {6 + n},{2 + n}", size=size) for n, size in enumerate([9, 7, 5, 3])]
    observed = cluster("1a 2a 3a 4a 5a 6a 7a 8a 9a", *lines)
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=2)
    stages = staged(observed, moves, policy=policy).stages
    assert busiest_broker_seconds(served_moves(stages, observed), policy) == 9
    assert least_seconds(stages, observed, policy) == 9 + 5
    assert sum(stage.estimated_seconds for stage in stages if isinstance(stage, ReassignStage)) == 14 + 2 * 5


def test_a_partition_that_is_not_observed_is_served_by_nobody() -> None:
    stage = ReassignStage(1, (move("gone-0: 1 -> 2"),))
    assert list(served_moves([stage], cluster(BROKERS))) == [(stage.moves[0], None)]


def test_the_run_of_a_drained_cluster_ends_where_it_should() -> None:
    lines = [f"t-{number}: 1,2,3 size {number}" for number in range(25)]
    moves = [move(f"t-{number}: 1,2,3 -> 4,2,3", Reason.DRAINING, size=number) for number in range(25)]
    observed = cluster(BROKERS, *lines)
    seen = run(observed, staged(observed, moves, states={1: BrokerState.DRAINING}).stages)
    assert set(seen.leaders.values()) == {4}


@pytest.mark.long
def test_a_larger_run_stays_close_to_its_bound() -> None:
    draw = random.Random(5)
    brokers = " ".join(f"{number}{'abc'[number % 3]}" for number in range(1, 10))
    sizes = [int(1000 * draw.lognormvariate(0, 1)) for _ in range(720)]
    old = [tuple(draw.choice(group) for group in ((1, 4), (2, 5), (3, 6))) for _ in sizes]
    lines = [
        f"t-{n}: {one[0]},{one[1]},{one[2]} size {size}" for n, (one, size) in enumerate(zip(old, sizes, strict=True))
    ]
    moves = [
        move(
            f"t-{n}: {one[0]},{one[1]},{one[2]} -> {one[0]},{one[1]},9"
            if n % 2
            else f"t-{n}: {one[0]},{one[1]},{one[2]} -> {one[0]},8,{one[2]}",
            size=size,
        )
        for n, (one, size) in enumerate(zip(old, sizes, strict=True))
    ]
    observed = cluster(brokers, *lines)
    found = staged(observed, moves).stages
    estimate = sum(stage.estimated_seconds for stage in found if isinstance(stage, ReassignStage))
    assert estimate <= 1.03 * busiest_broker_seconds(served_moves(found, observed), FAST)
    assert len(found) == 2


def test_a_huge_copy_whose_leader_leaves_first_is_dealt_before_small_ones() -> None:
    # Brokers 3 and 4 receive 600 each. Broker 1 leads t-0, so the copy of 300 is the second step of its chain.
    lines = ["t-0: 1,5 size 300", "t-1: 6,1 size 300"]
    moves = [move("t-0: 1,5 -> 3,5", Reason.DRAINING, size=300), move("t-1: 6,1 -> 6,4", Reason.DRAINING, size=300)]
    for n in range(2, 8):
        lines.append(f"t-{n}: {5 + n},1 size 100")
        moves.append(move(f"t-{n}: {5 + n},1 -> {5 + n},{3 + n % 2}", Reason.DRAINING, size=100))
    observed = cluster("1a 3b 4c 5d 6e 7f 8g 9h 10i 11j 12k", *lines)
    policy = MovePolicy(throttle_bytes_per_second=1, per_stage=4)
    found = staged(observed, moves, states={1: BrokerState.DRAINING}, policy=policy).stages
    assert busiest_broker_seconds(served_moves(found, observed), policy) == 600
    assert sum(stage.estimated_seconds for stage in found if isinstance(stage, ReassignStage)) == 600 + 2 * 5


def test_copies_that_come_to_more_than_64_bits_are_staged() -> None:
    size = 1 << 62
    observed = cluster("1a 2b 3c 4d", f"t-0: 1 size {size}", "t-1: 1 size 5")
    moves = [move("t-0: 1 -> 2,3,4", size=size), move("t-1: 1 -> 2", size=5)]
    stages = staged(observed, moves).stages
    assert sum(stage.bytes for stage in stages if isinstance(stage, ReassignStage)) == 3 * size + 5


def test_a_key_that_kafka_has_removed_is_deleted_before_all_that_it_blocks() -> None:
    lost = Effect(EffectClass.DESTROYS, "deletes records older than 9 ms", "retention.ms")
    before = {"message.format.version": UNREADABLE, "retention.ms": None, "min.insync.replicas": "3"}
    change = AlterConfigs(
        "a", {"retention.ms": "9", "min.insync.replicas": "2"}, ("message.format.version",), before, effects=(lost,)
    )
    observed = cluster(BROKERS, "a-0: 1,2,3 size 5", configs={"min.insync.replicas": "3"})
    found = staged(observed, [move("a-0: 1,2,3 -> 1,2,4")], [change])
    assert outline(found.stages) == ["topics 0", "move a-0", "topics 1"]
    first, last = found.topic_changes
    assert isinstance(first, AlterConfigs)
    assert isinstance(last, AlterConfigs)
    assert (first.set, first.delete) == ({"min.insync.replicas": "2"}, ("message.format.version",))
    assert (last.set, last.delete) == ({"retention.ms": "9"}, ())
