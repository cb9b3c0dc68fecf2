"""A run that dies at any boundary, and is started again, ends as one that never died."""

import pytest
from helpers.depth import parts
from helpers.plans.deaths import Bomb, Journals, kept, lost
from helpers.plans.end_state import in_flight, shortcomings, throttles
from helpers.plans.small_runs import admin_of, cluster, whole_plan

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import CRASH_POINTS, Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.run import RunState, StoppedEarly

pytestmark = pytest.mark.long


def boundaries() -> list[str]:
    """Return every boundary that a whole run passes, in order."""
    before = cluster()
    bomb = Bomb()
    with planted(bomb):
        run_plan(whole_plan(before), admin_of(before), MemoryJournal())
    return bomb.passed


def places(every: int) -> list[tuple[int, str]]:
    """Return each boundary's number and name, or every n-th in the order of their names."""
    return sorted(enumerate(boundaries(), start=1), key=lambda place: (place[1], place[0]))[::every]


def killed(admin: SimulatedAdmin, journal: MemoryJournal, at: int) -> None:
    """Run until the process is killed."""
    with planted(Bomb(at)), pytest.raises(Killed):
        run_plan(whole_plan(cluster()), admin, journal)


def test_a_whole_run_passes_known_boundaries_only() -> None:
    assert set(boundaries()) <= set(CRASH_POINTS)


@pytest.mark.parametrize("next_journal", [kept, lost])
@parts("every", 9, deep=1)
def test_killed_at_each_boundary_and_started_again_it_ends_the_same(next_journal: Journals, every: int) -> None:
    for at, name in places(every):
        before = cluster()
        admin, journal = admin_of(before), MemoryJournal()
        killed(admin, journal, at)
        journal = next_journal(journal)
        result = run_plan(whole_plan(before), admin, journal)
        assert shortcomings(whole_plan(before), before, admin.cluster) == [], f"killed at {at}: {name}"
        assert result.state is RunState.DONE
        writes = admin.writes
        run_plan(whole_plan(before), admin, next_journal(journal))
        assert admin.writes == writes, f"killed at {at}: {name}"


@pytest.mark.parametrize("next_journal", [kept, lost])
@parts("every", 9, deep=1)
def test_killed_at_each_boundary_and_cancelled_nothing_is_left_behind(next_journal: Journals, every: int) -> None:
    for at, name in places(every):
        before = cluster()
        admin, journal = admin_of(before), MemoryJournal()
        killed(admin, journal, at)
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
