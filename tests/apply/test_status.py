"""Status tells what the cluster shows, and changes nothing."""

from dataclasses import replace

from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import RATE, SIZE, admin_of, cluster, move, plan_of

from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.apply.status import Watcher
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import FOLLOWER_THROTTLED_REPLICAS, Cluster
from reconciler.model.in_sync import blocking_partitions
from reconciler.model.problem import MissingRight
from reconciler.model.run import Outcome, RunEvent
from reconciler.model.stage import ReassignStage
from reconciler.model.starting import Start
from reconciler.model.topic_partition import TopicPartition


def test_a_run_under_way_tells_its_moves_bytes_rate_and_throttles(before: Cluster, admin: SimulatedAdmin) -> None:
    stages = [
        ReassignStage(1, (move("orders-1", "2,3,1", "3,2,1"),), RATE),
        ReassignStage(2, (move("orders-0", "1,2,3", "1,2,4"),), RATE),
    ]
    plan = plan_of(stages, before)

    def kill(name: str) -> None:
        if name == "reassign.recorded" and admin.reassignments():
            raise Killed

    try:
        with planted(kill):
            run_plan(plan, admin, MemoryJournal())
    except Killed:
        writes = admin.writes
    first = Watcher(plan, admin).look()
    admin.clock.sleep(2)
    status = Watcher(plan, admin, previous=first).look()
    assert admin.writes == writes
    assert (status.stage, status.stages, status.stages_done) == (2, 2, 1)
    assert [str(one.move.topic_partition) for one in status.moves] == ["orders-0"]
    assert (status.copied_bytes, status.total_bytes, status.bytes_per_second) == (2 * RATE, SIZE, RATE)
    assert status.eta_seconds == (SIZE - 2 * RATE) / RATE
    assert status.broker_throttles[4]["follower.replication.throttled.rate"] == str(RATE)
    assert status.topic_throttles["orders"]["follower.replication.throttled.replicas"] == "0:4"


def test_what_others_reassign_is_told_apart(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.reassign({TopicPartition("quiet", 0): (3, 5)})
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    status = Watcher(plan, admin).look()
    assert [str(key) for key in status.foreign] == ["quiet-0"]
    assert status.moves == ()


def test_without_a_plan_the_cluster_is_told_all_the_same() -> None:
    status = Watcher(None, admin_of(cluster())).look()
    assert (status.plan_id, status.stage, status.stages) == (None, None, 0)


def test_a_broker_is_safe_to_stop_while_no_partition_would_go_under_min_isr() -> None:
    found = small_cluster(
        "a-0: 1,2,3",
        "b-0: 2,3 isr 2",
        "c-0: 4,5,6 isr 4,5",
        configs={"a": {"min.insync.replicas": "2"}, "c": {"min.insync.replicas": "2"}},
    )
    assert blocking_partitions(found) == {
        2: (TopicPartition("b", 0),),
        4: (TopicPartition("c", 0),),
        5: (TopicPartition("c", 0),),
    }
    assert Watcher(None, admin_of(found)).look().safe_to_stop == (1, 3, 6)


def test_a_second_look_sees_what_a_run_changes_and_does_not_read_the_whole_cluster_again(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    watcher = Watcher(plan, admin)
    first = watcher.look()
    run_plan(plan, admin, MemoryJournal())
    admin.kill_broker(6)
    admin.alter_topic_configs({"orders": [ConfigChange(FOLLOWER_THROTTLED_REPLICAS, ConfigOperation.SET, "0:9")]})
    asked: list[str] = []
    admin.fault = lambda name, _moment: asked.append(name)
    second = watcher.look()
    assert "observe" not in asked
    assert first.stage == 1
    assert (second.stage, second.stages_done, second.has_ended) == (None, 1, True)
    assert (6 in first.safe_to_stop, 6 in second.safe_to_stop) == (True, False)
    assert second.topic_throttles["orders"][FOLLOWER_THROTTLED_REPLICAS] == "0:9"
    assert second.broker_throttles == Watcher(plan, admin_of(admin.cluster)).look().broker_throttles


def test_brokers_own_min_isr_decides_who_is_safe_to_stop() -> None:
    found = small_cluster("a-0: 1,2,3", "b-0: 4,5,6 isr 4,5", rates={1: {"min.insync.replicas": "2"}})
    assert Watcher(None, admin_of(found)).look().safe_to_stop == (1, 2, 3, 6)


def test_dead_brokers_are_told_in_the_order_of_their_start_at_each_look() -> None:
    found = small_cluster("a-0: 1,2,3", fenced=(1, 2, 3), configs={"a": {"min.insync.replicas": "2"}})
    (partition,) = found.topics["a"].partitions
    left = replace(partition, leader=None, isr=(), elr=(1, 2), last_known_elr=(2,))
    watcher = Watcher(None, admin_of(replace(found, topics={"a": replace(found.topics["a"], partitions=(left,))})))
    key = TopicPartition("a", 0)
    order = (Start(2, leads=(key,), can_lead=(key,)), Start(1, can_lead=(key,), opens=(key,)))
    assert [watcher.look().start for _ in range(2)] == [order, order]


def test_a_run_is_waited_for_while_it_holds_the_lock_or_something_moves(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    assert Watcher(plan, admin).look().has_ended
    with admin.lock("apply of plan 0badcafe"):
        assert not Watcher(plan, admin).look().has_ended
        assert "apply of plan 0badcafe" in str(Watcher(plan, admin).look().locked_by)
    admin.reassign({TopicPartition("orders", 0): (1, 2, 4)})
    assert not Watcher(plan, admin).look().has_ended


def test_where_the_lock_may_not_be_seen_the_journal_tells_whether_a_run_has_ended(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)

    def hide(name: str, _moment: Moment) -> None:
        if name == "lock_holder":
            raise MissingRight("no")

    admin = SimulatedAdmin(before, fault=hide)
    started = RunEvent(admin.clock.now(), 0, "run", Outcome.STARTED)
    stopped = replace(started, outcome=Outcome.SKIPPED)
    assert not Watcher(plan, admin).look().has_ended
    assert not Watcher(plan, admin).look([started]).has_ended
    assert Watcher(plan, admin).look([started, stopped]).has_ended
