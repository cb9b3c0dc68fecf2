"""A run that dies at any boundary, and is started again, ends as one that never died."""

import pytest
from helpers.depth import parts
from helpers.plans.deaths import Journals, boundaries_of_whole_run, by_name, kept, killed, lost, nth
from helpers.plans.end_state import in_flight, shortcomings, throttles
from helpers.plans.small_runs import admin_of, cluster, whole_plan

from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import CRASH_POINTS
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.run import RunState, StoppedEarly

pytestmark = pytest.mark.long


PASSED = boundaries_of_whole_run()


def test_a_whole_run_passes_known_boundaries_only() -> None:
    assert set(PASSED) <= set(CRASH_POINTS)


@pytest.mark.parametrize("next_journal", [kept, lost])
@parts("every", 9, deep=1)
def test_killed_at_each_boundary_and_started_again_it_ends_the_same(next_journal: Journals, every: int) -> None:
    for at, name in by_name(PASSED, every):
        before = cluster()
        admin = admin_of(before)
        journal = next_journal(killed(admin, whole_plan(before), nth(at)))
        result = run_plan(whole_plan(before), admin, journal)
        assert shortcomings(whole_plan(before), before, admin.cluster) == [], f"killed at {at}: {name}"
        assert result.state is RunState.DONE
        writes = admin.writes
        run_plan(whole_plan(before), admin, next_journal(journal))
        assert admin.writes == writes, f"killed at {at}: {name}"


@pytest.mark.parametrize("next_journal", [kept, lost])
@parts("every", 9, deep=1)
def test_killed_at_each_boundary_and_cancelled_nothing_is_left_behind(next_journal: Journals, every: int) -> None:
    for at, name in by_name(PASSED, every):
        before = cluster()
        admin = admin_of(before)
        journal = killed(admin, whole_plan(before), nth(at))
        cancel_run(whole_plan(before), admin, next_journal(journal))
        assert in_flight(admin.cluster) == [], f"killed at {at}: {name}"
        wanted = throttles(before)
        assert throttles(admin.cluster) == wanted, f"killed at {at}: {name}"
        run_plan(whole_plan(before), admin, next_journal(journal))
        assert shortcomings(whole_plan(before), before, admin.cluster) == [], f"killed at {at}: {name}"


@pytest.mark.parametrize("next_journal", [kept, lost])
@parts("every", 9, deep=2)
def test_stopped_in_each_turn_it_takes_its_moves_back_and_goes_on_later(next_journal: Journals, every: int) -> None:
    for turn in range(1, 40, every):
        before = cluster()
        admin, journal = admin_of(before), MemoryJournal()
        asked = iter(range(1, 1000))

        def should_stop(turn: int = turn, asked: "object" = asked) -> str | None:
            return "SIGTERM" if next(asked) >= turn else None  # type: ignore[call-overload]

        with pytest.raises(StoppedEarly) as stopped:
            run_plan(whole_plan(before), admin, journal, should_stop=should_stop)
        assert in_flight(admin.cluster) == []
        assert throttles(admin.cluster) == throttles(before)
        assert stopped.value.code == "KR713"
        run_plan(whole_plan(before), admin, next_journal(journal))
        assert shortcomings(whole_plan(before), before, admin.cluster) == [], f"stopped in turn {turn}"
