"""Which clusters are compared, and what a plan makes of them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from cli.mirrored import ROOT, STANDARD, topic, write
from helpers.program.documents import document

from reconciler.balance.workflow.sides import ObservedCluster, observed_clusters, reached, sides_of
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, StalePlan
from reconciler.model.what_if import SetPartitions
from reconciler.workflow.demo import write_demo
from reconciler.workflow.inputs import Inputs, NotNamed
from reconciler.workflow.plan import Planned, make_plan
from reconciler.workflow.what_if import plan_if


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("balance") / "desired-state")
    write_demo(folder)
    return folder


@pytest.fixture(scope="module")
def plan(root: str) -> Plan:
    return make_plan(Inputs(root, "demo")).plan


def test_after_a_plan_each_partition_stands_where_its_last_move_puts_it(root: str, plan: Plan) -> None:
    (one,), warnings = observed_clusters(Inputs(root, "demo"), [plan])
    after = reached(one, plan)
    assert warnings == ()
    wanted = {move.topic_partition: move.to_replicas for stage in plan.stages for move in getattr(stage, "moves", ())}
    assert wanted
    assert {key: _partition(after, key.topic, key.partition) for key in wanted} == wanted
    assert after.topics.keys() - one.cluster.topics.keys() == {"wishlists"}
    assert len(after.topics["pageviews"].partitions) == 18
    assert [side.side for side in sides_of([one])] == ["before", "after"]


def test_a_plan_that_supposes_more_partitions_of_a_copy_to_be_made_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("us", [topic("orders", 2)])
    mirror = document("Mirror", "from-us", '{source: us, topics: ["orders"]}')
    write("eu", [topic("own", 1)], STANDARD, mirror)
    inputs = Inputs(str(ROOT), "eu")
    found = plan_if(inputs, [SetPartitions("us.orders", 4)])
    assert isinstance(found, Planned)
    (one,), _ = observed_clusters(inputs, [found.plan])
    assert len(reached(one, found.plan).topics["us.orders"].partitions) == 4


def _partition(cluster: Cluster, topic: str, number: int) -> tuple[int, ...]:
    found = cluster.topics[topic].partition(number)
    return found.replicas if found is not None else ()


def test_a_plan_for_another_cluster_or_two_for_one_are_refused(root: str, plan: Plan) -> None:
    with pytest.raises(InvalidInput, match="is for cluster elsewhere, and not for demo") as refused:
        observed_clusters(Inputs(root, "demo"), [replace(plan, cluster_id="elsewhere")])
    assert refused.value.problems[0].code == "KR265"
    with pytest.raises(InvalidInput, match="two plans for one cluster"):
        observed_clusters(Inputs(root, "demo"), [plan, replace(plan, id="other")])


def test_a_plan_that_the_cluster_has_moved_on_from_is_stale(root: str, plan: Plan) -> None:
    (one,), _ = observed_clusters(Inputs(root, "demo"), [plan])
    topic = one.cluster.topics["clicks"]
    elsewhere = replace(topic.partitions[0], replicas=(6, 5, 4), leader=6, isr=(6, 5, 4), sizes=(), log_dirs=())
    moved = replace(topic, partitions=(elsewhere, *topic.partitions[1:]))
    cluster = replace(one.cluster, topics={**one.cluster.topics, "clicks": moved})
    with pytest.raises(StalePlan, match=r"clicks-0 is on brokers \[6, 5, 4\]"):
        reached(replace(one, cluster=cluster), plan)
    assert reached(replace(one, cluster=reached(one, plan)), plan).topics.keys() >= {"clicks"}


def test_every_cluster_of_a_folder_of_snapshots_is_compared_and_one_that_is_damaged_is_told(
    root: str, plan: Plan, tmp_path: Path
) -> None:
    snapshot = Path(root) / "demo" / "snapshot.json"
    shutil.copy(snapshot, tmp_path / "demo.json")
    write_snapshot(replace(read_snapshot(snapshot), cluster_id="other"), tmp_path / "far.json.gz")
    (tmp_path / "bad.json").write_text("{")
    observed, warnings = observed_clusters(Inputs(root, "*", str(tmp_path)), [plan])
    assert [(one.name, one.cluster.cluster_id == "other", one.plan is plan) for one in observed] == [
        ("demo", False, True),
        ("far", True, False),
    ]
    assert [(each.code, "bad is left out" in each.message) for each in warnings] == [("KR266", True)]
    (every,), _ = observed_clusters(Inputs(root, "*"), [])
    assert every.name == "demo"


def test_what_cannot_be_every_cluster_is_refused_in_a_sentence(root: str, tmp_path: Path) -> None:
    snapshot = str(Path(root) / "demo" / "snapshot.json")
    with pytest.raises(NotNamed, match="is no folder"):
        observed_clusters(Inputs(root, "*", snapshot), [])
    with pytest.raises(NotNamed, match="holds no snapshot"):
        observed_clusters(Inputs(root, "*", str(tmp_path)), [])
    with pytest.raises(NotNamed, match="holds no cluster"):
        observed_clusters(Inputs(str(tmp_path), "*"), [])


def test_a_snapshot_of_no_known_cluster_goes_by_its_id(root: str, tmp_path: Path) -> None:
    snapshot = Path(root) / "demo" / "snapshot.json"
    (one,), _ = observed_clusters(Inputs(str(tmp_path), None, str(snapshot)), [])
    assert one.name == json.loads(snapshot.read_text("utf-8"))["clusterId"]


def test_a_broker_that_is_to_be_empty_has_no_share() -> None:
    brokers = {1: DesiredBroker(1, capacity=2), 2: DesiredBroker(2, BrokerState.DRAINING)}
    desired = Desired(DesiredCluster("one", brokers=brokers))
    assert ObservedCluster("one", Cluster("id"), desired).capacities == {1: 2, 2: 0}
