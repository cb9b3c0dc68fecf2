"""A stage that is not the first waits for what time may cure, and for nothing else."""

from datetime import timedelta

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import admin_of, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.checks import RECOVERY, Gate, Stop
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import ApplyRules
from reconciler.apply.partition_path import paths_of
from reconciler.apply.session import Session
from reconciler.model.problem import Refused
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

BEFORE = small_cluster("a-0: 1,2,3 size 5")
PLAN = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"),))], BEFORE)


def gate(admin: SimulatedAdmin, should_stop: Stop = lambda: None) -> Gate:
    return Gate(Session(admin, MemoryJournal(), paths_of(PLAN)), None, should_stop, ApplyRules())


def test_a_broker_that_comes_back_in_time_is_waited_for() -> None:
    admin = admin_of(BEFORE)
    admin.kill_broker(4)
    back = admin.clock.now() + timedelta(seconds=60)

    def return_it() -> None:
        if admin.clock.now() >= back:
            admin.return_broker(4)

    assert not gate(admin, return_it).enter(0, is_first=False)
    assert admin.clock.now() >= back


@pytest.mark.parametrize(("is_first", "waited"), [(True, timedelta()), (False, RECOVERY)])
def test_a_broker_that_stays_away_refuses_the_first_stage_at_once_and_a_later_one_in_the_end(
    *, is_first: bool, waited: timedelta
) -> None:
    admin = admin_of(BEFORE)
    admin.kill_broker(4)
    start = admin.clock.now()
    with pytest.raises(Refused) as error:
        gate(admin).enter(0, is_first=is_first)
    assert (error.value.code, admin.clock.now() - start) == ("KR420", waited)


def test_a_move_that_somebody_else_started_is_not_waited_for() -> None:
    admin = admin_of(BEFORE)
    admin.reassign({TopicPartition("a", 0): (1, 2, 6)})
    start = admin.clock.now()
    with pytest.raises(Refused) as error:
        gate(admin).enter(0, is_first=False)
    assert (error.value.code, admin.clock.now() - start) == ("KR421", timedelta())
