"""Where each move stands, compared with what a plain look at the simulated cluster shows, at every point of a run."""

import pytest
from helpers.plans.deaths import boundaries_of_whole_run, killed, nth
from helpers.plans.end_state import assignments, in_flight
from helpers.plans.small_runs import RATE, admin_of, cluster, move, plan_of, whole_plan

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.observed import look
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run import run_plan
from reconciler.apply.standings import tally
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.run import RunResult, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import TopicPartition


def standings(plan: Plan, before: Cluster, now: Cluster) -> dict[tuple[int, str], str]:
    """Return where each move stands, read off replicas alone: what is in flight, and which of the lists it has reached.

    The lists of a partition in these plans all differ, so the one that it is on, or comes from, tells how far it is.
    """
    flying, found = set(in_flight(now)), {}
    for key, start in assignments(before).items():
        lists, stages = [start], []
        for stage in plan.stages:
            for one in stage.moves if isinstance(stage, ReassignStage) else ():
                if str(one.topic_partition) == key:
                    lists.append(one.to_replicas)
                    stages.append(stage.number)
        partition = (
            now.partition(TopicPartition(key.rpartition("-")[0], int(key.rpartition("-")[2]))) if stages else None
        )
        for step, stage_number in enumerate(stages):
            assert partition is not None
            aimed = partition.target_replicas if key in flying else partition.replicas
            reached = lists.index(aimed)
            is_flying = key in flying and reached == step + 1
            found[stage_number, key] = "inFlight" if is_flying else "done" if reached > step else "left"
    return found


def told(known: Tally | None) -> dict[tuple[int, str], str]:
    assert known is not None
    return {(stage, str(key)): one.value for stage, moves in known.stages.items() for key, one in moves.items()}


PASSED = boundaries_of_whole_run()


@pytest.mark.long
@pytest.mark.parametrize("at", range(1, len(PASSED) + 1, 3))
def test_a_tally_and_a_cancel_say_what_the_cluster_shows_wherever_a_run_died(at: int) -> None:
    before, plan = cluster(), whole_plan(cluster())
    admin, where, paths = admin_of(before), PASSED[at - 1], paths_of(plan)
    journal = killed(admin, plan, nth(at))
    seen = standings(plan, before, admin.cluster)
    assert told(tally(paths, look(admin, paths.topics))) == seen, where
    flying = {key for key, one in seen.items() if one == "inFlight"}
    result = cancel_run(plan, admin, journal)
    after = standings(plan, before, admin.cluster)
    arrived = {key for key in flying if after[key] == "done"}
    expected = {**after, **dict.fromkeys(flying - arrived, "takenBack")}
    assert told(result.tally) == expected, where
    is_over = set(after.values()) == {"done"} and result.stages_done == len(plan.stages)
    assert result.state is (RunState.DONE if is_over else RunState.CANCELLED), where
    assert result.is_idle is (result.writes == 0 and not flying), where


@pytest.mark.parametrize("at", range(1, len(PASSED) + 1, 3))
def test_a_run_that_is_stopped_tells_what_the_cluster_shows(at: int) -> None:
    before, plan, admin, passed = cluster(), whole_plan(cluster()), admin_of(cluster()), list[str]()
    journal, flying = MemoryJournal(), set[tuple[int, str]]()

    def reason() -> str | None:
        if len(passed) < at:
            return None
        flying.update(key for key, one in standings(plan, before, admin.cluster).items() if one == "inFlight")
        return "SIGTERM came"

    result: RunResult | None
    with planted(passed.append):
        try:
            result = run_plan(plan, admin, journal, should_stop=reason)
        except StoppedEarly as error:
            result, text = error.result, str(error)
        else:
            text = str(result.tally)
    assert result is not None
    assert str(result.tally) in text
    after = standings(plan, before, admin.cluster)
    assert told(result.tally) == {**after, **{key: "takenBack" for key in flying if after[key] == "left"}}
    assert result.left == (result.tally.undone if result.tally else None)
    ends = [event.detail["moves"] for event in journal.appended if event.step == "run" and "moves" in event.detail]
    assert all(end == (result.tally.counts if result.tally else None) for end in ends)
    assert bool(ends) is bool(journal.appended)


def stopped_in_the_middle() -> tuple[Plan, SimulatedAdmin, MemoryJournal]:
    """Return a run of four moves in one stage of which one had arrived when it was killed, and one to do after it."""
    first = (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "3,2,1"), move("payments-0", "2,4", "2,6"))
    stages = [ReassignStage(1, first, RATE), ReassignStage(2, (move("orders-2", "3,1,2", "3,1,5"),), RATE)]
    plan, admin = plan_of(stages, cluster()), admin_of(cluster())
    middle = ["orders-0", "payments-0"]
    return plan, admin, killed(admin, plan, lambda name: name == "poll" and in_flight(admin.cluster) == middle)


def test_a_cancel_in_the_middle_names_what_is_back_and_what_had_arrived() -> None:
    plan, admin, journal = stopped_in_the_middle()
    words = "4 moves: 1 done (orders-1), 2 taken back (orders-0, payments-0), 1 to do (orders-2)"
    result = cancel_run(plan, admin, journal)
    assert (str(result.tally), result.state, result.is_idle) == (words, RunState.CANCELLED, False)


def test_what_others_did_to_a_partition_is_told_apart_and_a_replica_out_of_sync_too() -> None:
    plan, admin, _ = stopped_in_the_middle()
    admin.clock.sleep(600)
    admin.reassign({TopicPartition("orders", 2): (3, 1, 6)})
    admin.kill_broker(4)
    admin.clock.sleep(60)
    paths = paths_of(plan)
    known = tally(paths, look(admin, paths.topics))
    assert known.of(Standing.FOREIGN) == (TopicPartition("orders", 2),)
    assert known.of(Standing.UNSYNCED) == (TopicPartition("orders", 0),)
    assert str(known) == (
        "4 moves: 2 done (orders-1, payments-0), 1 arrived but not in sync (orders-0), "
        "1 changed by somebody else (orders-2)"
    )


def test_many_moves_are_counted_and_few_are_named() -> None:
    keys = [TopicPartition("t", number) for number in range(20)]
    done = dict.fromkeys(keys, Standing.DONE)
    mixed = {**done, **dict.fromkeys(keys[:7], Standing.TAKEN_BACK), **dict.fromkeys(keys[7:19], Standing.LEFT)}
    assert str(Tally({1: done, 2: mixed})) == (
        "40 moves: 21 done (of stage 2: t-19), 7 taken back (t-0, t-1, t-2, t-3, t-4 and 2 more), 12 to do"
    )
    assert Tally({1: done, 2: mixed}).summary == "40 moves: 21 done, 7 taken back, 12 to do"
    assert [str(Tally({1: dict(list(done.items())[:n])})) for n in (0, 1, 2)] == [
        "no moves",
        "its 1 move done",
        "all 2 moves done",
    ]
