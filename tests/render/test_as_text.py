from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.sample_plan import GIB, sample_plan

from reconciler.model.change import BrokenRule, Changes, CreateTopic, Difference
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import BrokerShare, LogDirUse, Plan, Proof, Source
from reconciler.model.problem import Location, Problem, Severity
from reconciler.model.run import RunResult, RunState
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import WhatIf
from reconciler.render import as_text

GOLDEN = Path(__file__).parent / "golden"


def _plan(*moves: Move, **fields: object) -> Plan:
    copied = sum(move.bytes for move in moves)
    plan = Plan(
        "demo", "id", Source("sha256:0"), "1", stages=(ReassignStage(1, moves),), proof=Proof("bytes", copied, copied)
    )
    return replace(plan, **fields)  # type: ignore[arg-type]


def _move(topic: str, before: tuple[int, ...], after: tuple[int, ...], reason: Reason, size: int = 0) -> Move:
    return Move(TopicPartition(topic, 0), before, after, size, reason)


def test_a_plan_reads_line_by_line_with_reason_place_replicas_and_bytes() -> None:
    assert as_text.plan(sample_plan(), root="state") == (GOLDEN / "plan.txt").read_text("utf-8")


def test_a_plan_with_stages_lists_every_action() -> None:
    text = as_text.plan(sample_plan(), has_stages=True)
    assert "Stage 3: 12 moves, 12 replicas to copy, 24.0 GiB, about 1 min\n" in text
    assert text.count(" [2, 4] -> [2, 4, 6]") == 12
    assert text.count("elect 3") == 5


@pytest.mark.parametrize(
    ("estimate", "least", "is_known", "said"),
    [
        (3600, 3000, True, ", about 1h without a throttle, 1.20 x what the busiest broker needs."),
        (3600, 3600, True, ", about 1h without a throttle, 1.00 x what the busiest broker needs."),
        (3600, 3000, False, ", about 1h without a throttle."),
        (3600, None, True, ", about 1h without a throttle."),
        (59, 3, True, ", about 59 s without a throttle."),
    ],
)
def test_the_time_is_compared_with_the_least_where_both_are_known_and_long(
    estimate: int, least: int | None, said: str, *, is_known: bool
) -> None:
    move = replace(_move("t", (1,), (2,), Reason.BALANCE, 5 * GIB), is_size_known=is_known)
    stages = (ReassignStage(1, (move,), None, estimate),)
    assert as_text.totals(_plan(move, stages=stages, least_seconds=least)).endswith(said)


def test_the_fullest_disk_is_a_log_dir_where_these_are_known() -> None:
    known = sample_plan()
    assert "fullest log dir 82% at the worst moment (broker 6, /d2, predicted)" in as_text.plan(known)
    unmoved = replace(known, predicted_log_dirs={})
    assert "fullest log dir 82% at the worst moment (broker 6, /d2)" in as_text.plan(unmoved)
    fuller = replace(known, disk_peak={1: 90 * GIB, 6: 99 * GIB})
    assert "fullest disks 90% at the worst moment" in as_text.plan(fuller)
    strange = replace(known, log_dirs={6: (LogDirUse("/\x1b[2J", 45 * GIB, 50 * GIB),)})
    assert "\x1b" not in as_text.plan(strange)


def test_only_what_is_declared_is_said_to_match() -> None:
    empty = _plan(stages=())
    assert as_text.no_changes(empty, as_text.Matched(1, 3)) == "No changes. 1 topic, 3 partitions match.\n"
    told = as_text.no_changes(empty, as_text.Matched(0, 0, 1))
    assert told == "No changes. 0 topics, 0 partitions match; 1 topic not declared.\n"


def test_a_plan_without_stages_says_no_changes() -> None:
    assert as_text.plan(replace(sample_plan(), stages=(), warnings=(), violations=())) == "No changes.\n"


@pytest.mark.parametrize(
    ("value", "bound", "is_known", "said"),
    [
        (5 * GIB, 5 * GIB, True, "5.0 GiB (no plan can copy less),"),
        (5 * GIB, 4 * GIB, True, "5.0 GiB (at most 20% of that could be saved),"),
        (5 * GIB, 5 * GIB - 1, True, "5.0 GiB (at most 0.0001% of that could be saved),"),
        (5 * GIB, 5 * GIB, False, "5.0 GiB (some sizes are unknown),"),
        (0, 0, True, "5.0 GiB, 1 stage"),
        (9, 9, False, "5.0 GiB (some sizes are unknown), 1 stage"),
    ],
)
def test_least_movement_is_claimed_only_as_far_as_the_proof_goes(
    value: int, bound: int, said: str, *, is_known: bool
) -> None:
    move = replace(_move("t", (1,), (2,), Reason.BALANCE, 5 * GIB), is_size_known=is_known)
    assert said in as_text.totals(_plan(move, proof=Proof("bytes", value, bound)))


def test_where_sizes_are_unknown_the_claim_is_about_replicas() -> None:
    move = replace(_move("t", (1,), (2,), Reason.BALANCE, 0), is_size_known=False)
    text = as_text.totals(_plan(move, proof=Proof("replicas", 1, 1)))
    assert "1 move, 1 replica to copy, 0 B (no plan can copy fewer replicas; some sizes are unknown)" in text


def test_a_plan_without_throttle_says_so() -> None:
    assert "without a throttle" in as_text.totals(_plan(_move("t", (1,), (2,), Reason.BALANCE, 5)))


def test_a_reorder_copies_nothing_and_says_so() -> None:
    text = as_text.plan(_plan(_move("t", (1, 2), (2, 1), Reason.LEADERS)))
    assert "preferred leaders: 1 partition of 1 topic" in text
    assert "order only, no data" in text
    assert "1 replica list to rewrite, nothing is copied" in text


def test_a_lower_replication_factor_drops_replicas() -> None:
    text = as_text.plan(_plan(_move("t", (1, 2, 3), (1, 2), Reason.REPLICATION_FACTOR)))
    assert "replicationFactor 3 -> 2 (1 partition)" in text
    assert "1 replica to drop, no data" in text


def test_draining_names_the_brokers_that_end_empty() -> None:
    moves = (_move("a", (5, 1), (2, 1), Reason.DRAINING, 5), _move("b", (6, 1), (2, 1), Reason.DRAINING, 5))
    shares = {5: BrokerShare(1, 1), 6: BrokerShare(1, 1)}
    empty = dict.fromkeys(shares, BrokerShare(0, 0))
    assert "2 partitions leave brokers 5, 6" in as_text.plan(_plan(*moves, balance_before=shares, balance_after=empty))


def test_a_row_names_the_replication_factors_that_change_though_it_is_told_for_another_reason() -> None:
    moves = (_move("a", (1, 2), (3, 2, 4), Reason.DRAINING, 5), _move("b", (1, 2), (3, 2), Reason.DRAINING, 5))
    text = as_text.plan(_plan(*moves))
    assert "draining: 2 partitions leave broker 1; replicationFactor 2 -> 3 (1 partition)  " in text
    assert "draining: 1 partition leaves broker 1  " in as_text.plan(_plan(moves[1]))


def test_chained_moves_of_a_partition_are_one_change() -> None:
    first = _move("t", (1, 2), (3, 2), Reason.RACKS, 5)
    second = _move("t", (3, 2), (3, 4), Reason.RACKS, 5)
    text = as_text.plan(_plan(first, stages=(ReassignStage(1, (first,)), ReassignStage(2, (second,)))))
    assert "racks: 1 partition " in text
    assert "2 replicas to move, 10 B" in text


def test_changes_show_broken_rules_leaders_and_what_cannot_be_fixed() -> None:
    at = Location("demo/web.yaml", 9)
    found = Changes(
        topic_changes=(CreateTopic("new", 3, 2, at=at),),
        broken_rules=(BrokenRule(TopicPartition("t", 1), Reason.RACKS, "two replicas in rack b", at),),
        elections=(Election(TopicPartition("t", 2), 3),),
        drift=(Problem("KR211", "broker 9 is not registered", at, Severity.WARNING),),
    )
    fields = (
        Difference("new", "partitions", None, "3", at),
        Difference("orders", "partitions", "12", "18", at),
        Difference("orders", "config.retention.ms", "5", None, at),
        Difference("orders", "config.x.secret", None, "5", at),
    )
    assert as_text.changes(found, fields) == (
        "  + new     create with 3 partitions, replicationFactor 2  demo/web.yaml:9  no data\n"
        "  ~ orders  partitions 12 -> 18                            demo/web.yaml:9\n"
        "  - orders  config.retention.ms 5 -> (none)                demo/web.yaml:9\n"
        "  + orders  config.x.secret (none) -> (hidden)             demo/web.yaml:9\n"
        "  ~ t-1     racks: two replicas in rack b                  demo/web.yaml:9\n"
        "  ~ t-2     leader -> 3, the preferred one\n"
        "warning: broker 9 is not registered (KR211, demo/web.yaml:9)\n"
    )
    assert as_text.changes(Changes()) == "No changes.\n"


def test_changes_show_all_that_a_partition_breaks_the_most_urgent_first() -> None:
    found = Changes(
        broken_rules=tuple(BrokenRule(TopicPartition("t", n), Reason.DRAINING, "broker 1 goes") for n in (0, 1)),
        also_broken=(BrokenRule(TopicPartition("t", 0), Reason.REPLICATION_FACTOR, "replicationFactor 2 -> 3"),),
    )
    assert as_text.changes(found) == (
        "  ~ t    draining: broker 1 goes (2 partitions)\n  ~ t-0  replicationFactor 2 -> 3\n"
    )


def test_a_result_names_leftover_throttles_and_moves_that_are_left() -> None:
    leftover = Problem("KR720", "broker 3 keeps its throttle", None, Severity.WARNING)
    ended = RunResult(RunState.STOPPED, 1, 3, 7, 90.0, ("say so",), (leftover,), (TopicPartition("t", 4),))
    assert as_text.result(ended) == (
        "Stopped in 2 min: 1 of 3 stages.\nsay so\n1 partition left as they are: t-4\n"
        "leftover throttles: broker 3 keeps its throttle (KR720)\n"
    )


def test_a_simulated_run_tells_both_times() -> None:
    ended = RunResult(RunState.DONE, 3, 3, 7, 113.0)
    assert as_text.result(ended, simulated_in=4.2) == "Done in 4 s (simulated 2 min): 3 of 3 stages.\n"


def test_every_place_that_an_input_problem_names_is_under_the_root() -> None:
    at, beside = Location("demo/web.yaml", 9, 3), (Location("demo/cluster.yaml", 7), Location("demo/web.yaml", 9))
    message = "factor is 2 (demo/web.yaml:9), broker 4 is draining (demo/cluster.yaml:7), not demo/cluster.yaml:70"
    told = as_text.input_problem(Problem("KR301", message, at, beside=beside), root="../state")
    assert told == (
        "../state/demo/web.yaml:9:3: factor is 2 (../state/demo/web.yaml:9), broker 4 is draining"
        " (../state/demo/cluster.yaml:7), not demo/cluster.yaml:70 (KR301)"
    )


def test_replicas_on_dead_brokers_are_one_line_whatever_documents_declare_their_topics() -> None:
    dead = [_move(name, (1, 2), (3, 2), Reason.DEAD_BROKER, GIB) for name in ("a", "b")]
    moves = [replace(move, at=Location("t.yaml", line)) for line, move in enumerate(dead, start=1)]
    assert "~ dead broker: 2 partitions leave broker 1    2 replicas to move, 2.0 GiB\n" in as_text.plan(_plan(*moves))


@pytest.mark.parametrize(("code", "is_told"), [("KR412", True), ("KR430", False)])
def test_only_of_a_limit_it_is_told_that_no_change_would_make_it_fit(*, code: str, is_told: bool) -> None:
    broken = _plan(violations=(Problem(code, "too much"),), what_if=WhatIf(("drain=5",)))
    assert any("No single change" in line for line in as_text.findings(broken)) == is_told


def test_problems_that_differ_in_a_name_alone_share_a_line_and_each_is_told_once() -> None:
    new = [
        Problem(
            "KR835",
            f"topic {name} is new, and takes what the brokers have",
            Location(f"{name}.yaml", 3),
            Severity.WARNING,
        )
        for name in ("a", "b", "c", "b")
    ]
    moved = [
        Problem("KR802", f"{name}: is being reassigned", severity=Severity.WARNING) for name in ("o-1", "o-2", "o-3")
    ]
    unlike = [Problem("KR815", f"o-{n} has not leader {n}", severity=Severity.WARNING) for n in (1, 2, 3)]
    two = [
        Problem("KR411", f"limits.{name} is over", severity=Severity.VIOLATION) for name in ("movedBytes", "diskUse")
    ]
    assert as_text.problems([*new, *moved, *unlike, *two, *two]) == [
        "violation: limits.diskUse is over (KR411)",
        "violation: limits.movedBytes is over (KR411)",
        "warning: 3 alike: o-1, o-2, o-3: is being reassigned (KR802)",
        "warning: o-1 has not leader 1 (KR815)",
        "warning: o-2 has not leader 2 (KR815)",
        "warning: o-3 has not leader 3 (KR815)",
        "warning: 3 alike: topic a, b, c is new, and takes what the brokers have (KR835, a.yaml:3, b.yaml:3, c.yaml:3)",
    ]
