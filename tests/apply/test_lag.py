"""Reads that lag behind writes change how long a run takes, never where it ends."""

from datetime import timedelta

import pytest
from apply.lagging_admin import LaggingAdmin
from helpers.plans.end_state import shortcomings
from helpers.plans.small_runs import cluster, whole_plan

from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.run import StoppedEarly


@pytest.mark.parametrize("seed", range(40))
def test_a_run_ends_the_same_whatever_moment_its_reads_are_from(seed: int) -> None:
    before = cluster()
    admin = LaggingAdmin(before, seed, timedelta(seconds=(1, 5, 20, 60)[seed % 4]))
    run_plan(whole_plan(before), admin, MemoryJournal())
    assert shortcomings(whole_plan(before), before, admin.cluster) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_stopped_run_goes_on_whatever_moment_its_reads_are_from(seed: int) -> None:
    before = cluster()
    admin = LaggingAdmin(before, seed, timedelta(seconds=(1, 5, 20, 60)[seed % 4]))
    turns = iter(range(1000))
    with pytest.raises(StoppedEarly):
        run_plan(
            whole_plan(before),
            admin,
            MemoryJournal(),
            should_stop=lambda: "SIGINT" if next(turns) > 8 + seed else None,
        )
    admin.clock.sleep(60)
    run_plan(whole_plan(before), admin, MemoryJournal())
    assert shortcomings(whole_plan(before), before, admin.cluster) == []
