"""New replicas go to the log dirs that the plan predicts where that is asked for, and only then."""

from dataclasses import replace

import pytest
from helpers.plans.small_runs import RATE, cluster, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.plan import Plan
from reconciler.model.run import RunFailed
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)


def plan(path: str) -> Plan:
    stage = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"), move("payments-1", "2,4", "4,2")), RATE)
    return replace(plan_of([stage], cluster()), predicted_log_dirs={ORDERS: {4: path}})


def log_dirs(admin: SimulatedAdmin) -> tuple[str | None, ...]:
    found = admin.cluster.partition(ORDERS)
    assert found is not None
    return found.log_dirs


@pytest.mark.parametrize("path", ["/d1", "/d2"])
def test_a_new_replica_goes_where_the_plan_predicts_it(admin: SimulatedAdmin, path: str) -> None:
    kept = log_dirs(admin)[:2]
    run_plan(plan(path), admin, MemoryJournal(), has_log_dirs=True)
    assert log_dirs(admin) == (*kept, path)


def test_unasked_no_log_dir_is_named() -> None:
    asked: list[str] = []
    admin = SimulatedAdmin(cluster(), fault=lambda name, _moment: asked.append(name))
    run_plan(plan("/nowhere"), admin, MemoryJournal())
    assert "choose_log_dirs" not in asked


def test_a_log_dir_that_is_gone_stops_the_run_before_anything_moves(admin: SimulatedAdmin) -> None:
    with pytest.raises(RunFailed, match="LOG_DIR_NOT_FOUND") as failed:
        run_plan(plan("/nowhere"), admin, MemoryJournal(), has_log_dirs=True)
    assert "broker 4" in str(failed.value)
    assert {key: one.replicas for key, one in admin.cluster.partitions()} == {
        key: one.replicas for key, one in cluster().partitions()
    }
