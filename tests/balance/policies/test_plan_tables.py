from helpers.clusters.small_cluster import small_cluster
from helpers.plans.end_state import assignments, shortcomings
from helpers.plans.small_runs import cluster, whole_plan

from reconciler.balance.policies.plan_tables import plan_tables, state_after
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import ReassignStage
from reconciler.workflow.init import EXAMPLE_POLICIES

README = EXAMPLE_POLICIES["policies.example/README.md"]
DRAINING = Desired(DesiredCluster("small", brokers={2: DesiredBroker(2, BrokerState.DRAINING, capacity=3)}))


def _tables(plan: Plan, observed: Cluster) -> dict[str, list[dict[str, object]]]:
    declared = {"orders": DesiredTopic("orders", labels={"tier": "gold"})}
    made = plan_tables(plan, DRAINING, observed, state_after(plan, observed), declared)
    return {name: table.to_pylist() for name, table in made.items()}


def _empty(observed: Cluster) -> Plan:
    return Plan("small", observed.cluster_id, Source(""))


def test_a_replica_says_where_it_stands_and_which_way_it_is_going() -> None:
    moving = Partition(0, 1, (3, 1, 2), (1, 2), (3,), (1,), (5, 9, 9), ("/d", None, "/e"))
    observed = small_cluster("a-0: 1,2")
    observed = Cluster("id", observed.brokers, {"orders": Topic("orders", (moving,))})
    rows = _tables(_empty(observed), observed)["observed_replicas"]
    assert [(row["broker"], row["position"], row["is_leader"], row["is_in_sync"]) for row in rows] == [
        (3, 0, False, False),
        (2, 1, False, True),
        (1, None, True, True),
    ]
    assert [(row["rack"], row["log_dir"], row["size_bytes"]) for row in rows] == [
        ("c", "/d", 5),
        ("b", "/e", 9),
        ("a", None, 9),
    ]


def test_topics_have_their_labels_and_the_least_replication_factor() -> None:
    observed = small_cluster("orders-0: 1,2,3", "orders-1: 1,2", configs={"orders": {"x": "1"}})
    (row,) = _tables(_empty(observed), observed)["topics"]
    assert (row["partitions"], row["replication_factor"], row["is_declared"]) == (2, 2, True)
    assert (row["labels"], row["configs"]) == ([("tier", "gold")], [("x", "1")])


def test_brokers_have_what_is_declared_of_them() -> None:
    observed = small_cluster("orders-0: 1,2", brokers=(1, 2), fenced=(1,))
    first, second = _tables(_empty(observed), observed)["brokers"]
    assert (first["is_alive"], first["state"], first["capacity"]) == (False, "active", 1)
    assert (second["is_alive"], second["state"], second["capacity"]) == (True, "draining", 3)
    assert second["total_bytes"] == 2 * 10**12


def test_the_planned_state_is_what_a_finished_run_must_leave() -> None:
    before = cluster()
    plan = whole_plan(before)
    after = state_after(plan, before)
    assert shortcomings(plan, before, after) == []
    rows = _tables(plan, before)["planned_replicas"]
    told: dict[str, list[object]] = {}
    for row in rows:
        told.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["broker"])
    assert told == {name: list(replicas) for name, replicas in assignments(after).items()}


def test_a_topic_that_is_made_or_deleted_is_null_where_it_does_not_exist() -> None:
    before = cluster()
    topics = {row["topic"]: row for row in _tables(whole_plan(before), before)["topics"]}
    made, gone = topics["audit"], topics["old"]
    assert (made["observed_partitions"], made["observed_configs"], made["partitions"]) == (None, None, 2)
    assert (gone["partitions"], gone["configs"], gone["observed_replication_factor"]) == (None, None, 2)


def test_moves_are_told_stage_by_stage() -> None:
    before = cluster()
    plan = whole_plan(before)
    moves = _tables(plan, before)["moves"]
    wanted = [
        (stage.number, move.topic_partition.topic, list(move.to_replicas), move.bytes)
        for stage in plan.stages
        if isinstance(stage, ReassignStage)
        for move in stage.moves
    ]
    assert [(row["stage"], row["topic"], row["to_replicas"], row["bytes"]) for row in moves] == wanted


def test_every_column_is_documented() -> None:
    observed = small_cluster("orders-0: 1,2")
    for name, table in plan_tables(_empty(observed), DRAINING, observed, observed, {}).items():
        assert f"`{name}`" in README
        missing = [column for column in table.column_names if f"`{column}`" not in README]
        assert missing == []
