"""`cancel --rollback`, killed anywhere and started again, here or elsewhere, ends where the plan began."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from shutil import rmtree

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import Bomb, boundaries_of, dies, put_back_what_the_record_names
from helpers.plans.end_state import assignments, in_flight, throttles
from helpers.plans.small_runs import RATE, admin_of, election, move, plan_of
from helpers.plans.undone import differences, half_full

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import CRASH_POINTS, Killed, planted
from reconciler.apply.run import run_plan
from reconciler.files.plan_file import read_plan, with_id
from reconciler.model.desired import Desired, DesiredCluster, Window
from reconciler.model.lock import LockHeld
from reconciler.model.plan import Plan
from reconciler.model.problem import Refused
from reconciler.model.run import RolledBack, RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow import cancel as verb
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import keep_plan, run_journal

pytestmark = pytest.mark.long

INPUTS = Inputs(cluster="small")
Undo = Callable[..., RolledBack]
BEFORE = half_full()
# Its first stages end, and its last is killed in flight: factors, orders, a whole swap.
PLAN = with_id(
    plan_of(
        [
            ReassignStage(1, (move("orders-1", "2,3,1", "3,2,1"), move("payments-1", "2,4", "4,2,5")), RATE),
            ElectStage(2, (election("orders-1", 3), election("payments-1", 4))),
            ReassignStage(3, (move("clicks-0", "1,2,3", "4,5,6"), move("clicks-1", "2,3,1", "2,3")), RATE),
            ReassignStage(4, (move("orders-0", "1,2,3", "4,5,1"), move("payments-0", "2,4", "2,4,6")), RATE),
        ],
        BEFORE,
    )
)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimulatedAdmin:
    """Return the cluster that the verb finds, whatever it is given; the folder is empty."""
    monkeypatch.chdir(tmp_path)
    return found_by_the_verb(monkeypatch, admin_of(BEFORE))


def found_by_the_verb(monkeypatch: pytest.MonkeyPatch, admin: SimulatedAdmin) -> SimulatedAdmin:
    monkeypatch.setattr(verb, "cluster_admin", lambda *_: nullcontext(admin))
    return admin


def run(admin: SimulatedAdmin, plan: Plan = PLAN) -> None:
    keep_plan(INPUTS, plan)
    run_plan(plan, admin, run_journal(INPUTS, plan))


def run_killed_in_its_last_stage(admin: SimulatedAdmin) -> None:
    """Run the plan until its last stage is in flight; there the process dies."""
    polls = count()
    dies(
        lambda: run(admin), lambda name: name == "poll" and "orders-0" in in_flight(admin.cluster) and next(polls) == 2
    )
    assert in_flight(admin.cluster) == ["orders-0", "payments-0"]


def undo(plan: Plan = PLAN, **hooks: object) -> RolledBack:
    return verb.roll_back(INPUTS, plan, verb.Hooks(**hooks))  # type: ignore[arg-type]


def undo_until_it_ends(admin: SimulatedAdmin) -> None:
    """Roll back; where something that nobody here knows is in flight, wait until it has ended, as it says."""
    for _ in range(5):
        try:
            undo()
        except RunFailed as error:
            if error.code != "KR719":
                raise
            admin.clock.sleep(100)
        else:
            return
    pytest.fail("it never ended")


def test_what_is_in_flight_is_taken_back_and_what_had_ended_is_undone(admin: SimulatedAdmin) -> None:
    run_killed_in_its_last_stage(admin)
    ended = undo()
    assert differences(BEFORE, admin.cluster) == []
    assert ended.cancelled is not None
    assert "2 taken back (" in str(ended.cancelled.tally)
    assert ended.cancelled.stages_done == 3
    (ran,) = ended.runs
    made, result = ran.plan, ran.result
    assert made.source.rolls_back == PLAN.id
    assert result.state is RunState.DONE
    writes = admin.writes
    assert undo().runs == ()
    assert admin.writes == writes


@pytest.mark.parametrize("is_record_there", [True, False])
def test_a_rollback_that_died_elsewhere_is_named_where_nothing_of_it_is_known_and_a_cancel_takes_it_back(
    admin: SimulatedAdmin, *, is_record_there: bool
) -> None:
    run(admin)
    dies(undo, lambda name: name == "poll" and bool(in_flight(admin.cluster)))
    moving = in_flight(admin.cluster)
    (back,) = {read_plan(file).id for file in Path("runs/small").glob("*.plan.json")} - {PLAN.id}
    rmtree("runs")  # another machine
    if not is_record_there:
        with admin.lock("the record is erased") as lock:
            lock.keep("")
    writes = admin.writes
    with pytest.raises(RunFailed) as refused:
        undo()
    assert admin.writes == writes
    first, *more = str(refused.value).split("\n")
    assert refused.value.code == "KR719"
    assert [name for name in moving if f"{name} is being reassigned to [" not in first] == []
    assert "somebody else" not in str(refused.value)
    assert (f"the run of plan {back} " in first, "has died" in first) == (is_record_there, is_record_there)
    assert ("`reconciler cancel --cluster small` shows what it takes back" in more[0]) == is_record_there
    assert ("started elsewhere, apply its plan there, or wait for it" in more[0]) != is_record_there
    if is_record_there:
        assert verb.cancel(INPUTS) is None, "nobody said yes"
        assert in_flight(admin.cluster) == moving
        verb.cancel(INPUTS, is_confirmed=lambda lines: all(any(name in one for one in lines) for name in moving))
        assert in_flight(admin.cluster) == []
        undo_until_it_ends(admin)
        put_back_what_the_record_names(admin)
        assert differences(BEFORE, admin.cluster) == []


def test_a_rollback_that_goes_on_elsewhere_is_no_dead_one(admin: SimulatedAdmin) -> None:
    run(admin)
    dies(undo, lambda name: name == "poll" and bool(in_flight(admin.cluster)))
    rmtree("runs")
    with admin.lock("apply of plan 0badcafe"), pytest.raises(LockHeld, match="0badcafe"):
        undo()


def test_a_plan_that_never_ran_has_nothing_to_undo(admin: SimulatedAdmin) -> None:
    ended = undo()
    assert (ended.runs, admin.writes) == ((), 0)


def test_after_a_rollback_the_plan_can_run_again_and_be_undone_again(admin: SimulatedAdmin) -> None:
    for _ in range(2):
        run(admin)
        assert len(undo().runs) == 1
        assert differences(BEFORE, admin.cluster) == []


def test_a_rollback_can_itself_be_undone_when_it_is_named(admin: SimulatedAdmin) -> None:
    run(admin)
    after = admin.cluster
    made = undo().runs[0].plan
    undo(made)
    assert assignments(admin.cluster) == assignments(after)


def test_the_plan_is_found_by_the_latest_run_even_when_that_is_its_rollback(admin: SimulatedAdmin) -> None:
    with pytest.raises(verb.NoRun, match="no run of small is known on this machine"):
        verb.plan_to_undo(INPUTS, None)
    run(admin)
    assert verb.plan_to_undo(INPUTS, None) == PLAN
    made = undo().runs[0].plan
    assert verb.plan_to_cancel(INPUTS, None) == made
    assert verb.plan_to_undo(INPUTS, None) == PLAN
    Path("runs", "small", f"{PLAN.id}.plan.json").unlink()
    with pytest.raises(verb.NoRun, match=f"the rollback of plan {PLAN.id}, which is not known here"):
        verb.plan_to_undo(INPUTS, None)


def test_the_plan_can_be_shown_first_and_nothing_is_changed(admin: SimulatedAdmin) -> None:
    run_killed_in_its_last_stage(admin)
    writes, seen = admin.writes, admin.cluster
    shown = verb.rollback_plan(INPUTS, PLAN).plan
    assert (admin.writes, admin.cluster) == (writes, seen)
    assert shown.warnings[0].code == "KR859"
    assert "2 moves of plan" in shown.warnings[0].message
    made = undo().runs[0].plan
    assert (made.stages, made.rollback) == (shown.stages, shown.rollback)


def test_the_plan_shown_first_runs_by_apply_too(admin: SimulatedAdmin) -> None:
    run_killed_in_its_last_stage(admin)
    shown = verb.rollback_plan(INPUTS, PLAN).plan
    cancel_run(PLAN, admin, run_journal(INPUTS, PLAN))
    run(admin, shown)
    assert differences(BEFORE, admin.cluster) == []
    assert undo().runs == ()


def test_who_is_asked_may_decline_and_only_the_cancel_has_happened(admin: SimulatedAdmin) -> None:
    run_killed_in_its_last_stage(admin)
    asked: list[Plan] = []

    def decline(shown: Plan) -> bool:
        asked.append(shown)
        return False

    ended = undo(is_confirmed=decline)
    assert ended.is_declined
    assert [one.source.rolls_back for one in asked] == [PLAN.id]
    assert in_flight(admin.cluster) == []
    assert admin.cluster.partition(TopicPartition("orders", 1)) != BEFORE.partition(TopicPartition("orders", 1))
    assert throttles(admin.cluster) == throttles(BEFORE)


def test_what_cannot_go_back_is_named_and_the_rest_goes_back(admin: SimulatedAdmin) -> None:
    run(admin)
    admin.reassign({TopicPartition("orders", 1): (6, 5, 4)})
    admin.clock.sleep(600)
    with pytest.raises(RunFailed, match=r"orders-1 is on .*somebody else moved it") as error:
        undo()
    assert error.value.code == "KR717"
    assert error.value.result is not None
    assert error.value.result.state is RunState.DONE
    assert [line.split(":")[0] for line in differences(BEFORE, admin.cluster)] == ["orders-1"]


def test_a_dead_original_is_waited_for_by_rolling_back_again(admin: SimulatedAdmin) -> None:
    run(admin)
    admin.kill_broker(3)
    with pytest.raises(RunFailed, match="broker 3 is not alive"):
        undo()
    admin.return_broker(3)
    admin.clock.sleep(600)
    undo()
    # Nobody touched quiet-0: its leader left with broker 3, and comes back at Kafka's own election.
    assert [line.split(":")[0] for line in differences(BEFORE, admin.cluster)] == ["quiet-0"]


def test_a_signal_between_cancel_and_rollback_stops_there(admin: SimulatedAdmin) -> None:
    run_killed_in_its_last_stage(admin)
    with pytest.raises(StoppedEarly, match="what was in flight is back") as error:
        undo(should_stop=lambda: "SIGTERM came")
    assert error.value.code == "KR718"
    undo()
    assert differences(BEFORE, admin.cluster) == []


def test_a_stopped_rollback_says_how_to_go_on_and_goes_on(admin: SimulatedAdmin) -> None:
    run(admin)
    turns = count()
    with pytest.raises(StoppedEarly, match="cancel --rollback goes on with it"):
        undo(should_stop=lambda: "SIGINT came" if next(turns) > 8 else None)
    assert throttles(admin.cluster) == throttles(BEFORE)
    begun = verb.rollback_plan(INPUTS, PLAN)
    assert begun.is_begun
    ended = undo()
    assert ended.runs[0].plan == begun.plan
    assert differences(BEFORE, admin.cluster) == []


def test_outside_the_windows_it_is_refused_after_the_cancel(
    admin: SimulatedAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_killed_in_its_last_stage(admin)
    never = Desired(DesiredCluster("small", windows=(Window(("sun",), "03:00", "03:01"),)))
    monkeypatch.setattr(verb, "declared_as_far", lambda *_arguments: (never, None))
    with pytest.raises(Refused, match=r"outside the windows[\s\S]*cancel --rollback goes on with it"):
        undo()
    assert in_flight(admin.cluster) == []
    assert throttles(admin.cluster) == throttles(BEFORE)
    monkeypatch.setattr(verb, "declared_as_far", lambda *_arguments: (None, None))
    undo()
    assert differences(BEFORE, admin.cluster) == []


def test_a_named_journal_keeps_the_rollback_beside_it(admin: SimulatedAdmin) -> None:
    inputs = Inputs(cluster="small", journal="here.jsonl")
    keep_plan(inputs, PLAN)
    run_plan(PLAN, admin, run_journal(inputs, PLAN))
    verb.roll_back(inputs, PLAN)
    assert read_plan(f"here.small.{PLAN.id}.plan.json") == PLAN
    (rollback,) = set(Path().glob("here.*.plan.json")) - {Path(f"here.small.{PLAN.id}.plan.json")}
    assert read_plan(rollback).source.rolls_back == PLAN.id
    assert not Path("runs").exists()


def boundaries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every boundary that cancel and rollback pass, in order."""
    admin = found_by_the_verb(monkeypatch, admin_of(BEFORE))
    run_killed_in_its_last_stage(admin)
    passed = boundaries_of(undo)
    rmtree("runs", ignore_errors=True)  # a cancel that finds nothing to do writes no journal
    assert set(passed) <= set(CRASH_POINTS)
    return passed


def killed_and_started_again(monkeypatch: pytest.MonkeyPatch, at: int, *, is_elsewhere: bool) -> None:
    admin = found_by_the_verb(monkeypatch, admin_of(BEFORE))
    run_killed_in_its_last_stage(admin)
    with planted(Bomb(at)), pytest.raises(Killed):
        undo()
    if is_elsewhere:
        rmtree("runs", ignore_errors=True)  # a cancel that finds nothing to do writes no journal
    undo_until_it_ends(admin)
    put_back_what_the_record_names(admin)
    assert differences(BEFORE, admin.cluster) == [], f"killed at {at}, elsewhere: {is_elsewhere}"
    writes = admin.writes
    undo()
    assert admin.writes == writes, f"killed at {at}, elsewhere: {is_elsewhere}"
    rmtree("runs", ignore_errors=True)  # a cancel that finds nothing to do writes no journal


@pytest.mark.usefixtures("admin")
@parts("every", 40, deep=1)
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_killed_at_each_boundary_and_started_again_it_ends_the_same(
    monkeypatch: pytest.MonkeyPatch, figures: Tell, every: int, *, is_elsewhere: bool
) -> None:
    passed = boundaries(monkeypatch)
    places = sorted(enumerate(passed, start=1), key=lambda place: (place[1], place[0]))[::every]
    for at, _ in places:
        killed_and_started_again(monkeypatch, at, is_elsewhere=is_elsewhere)
    where = "elsewhere, with the plan alone" if is_elsewhere else "here"
    told = f"killed at {len(places)} of {len(passed)} boundaries and started again: 0 wrong"
    figures(f"crash points of cancel --rollback, {where}", told)
