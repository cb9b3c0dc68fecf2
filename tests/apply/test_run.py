"""Whole runs on the simulated cluster."""


from helpers.end_state import shortcomings
from helpers.small_runs import RATE, SIZE, admin_of, cluster, move, plan_of, whole_plan

from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.run import RunState
from reconciler.model.stage import ReassignStage


def test_a_whole_plan_ends_as_planned_with_the_throttles_of_before() -> None:
    before = cluster()
    plan, admin = whole_plan(before), admin_of(before)
    result = run_plan(plan, admin, MemoryJournal())
    assert shortcomings(plan, before, admin.cluster) == []
    assert (result.state, result.stages_done, result.stages, result.debts) == (RunState.DONE, 6, 6, ())
    assert result.writes == admin.writes


def test_a_second_apply_writes_nothing() -> None:
    before = cluster()
    plan, admin = whole_plan(before), admin_of(before)
    run_plan(plan, admin, MemoryJournal())
    writes = admin.writes
    result = run_plan(plan, admin, MemoryJournal())
    assert admin.writes == writes
    assert (result.state, result.writes) == (RunState.DONE, 0)


def test_a_throttled_stage_takes_as_long_as_its_throttle_says() -> None:
    before = cluster()
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    result = run_plan(plan, admin_of(before), MemoryJournal())
    assert SIZE / RATE <= result.seconds <= 2 * SIZE / RATE + 5
