"""`collect` over time: when a round is taken, what a round without an answer does, and whose samples they are."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.documents import write_simulated
from pyarrow import parquet

from reconciler.admin.port import Admin, Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.balance.workflow import collect as verb
from reconciler.balance.workflow.collect import ONCE, Collected, Schedule, collect
from reconciler.model.cluster import Cluster
from reconciler.model.problem import ClusterUnavailable, Refused
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

START = datetime(2026, 11, 21, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LINES = ("orders-0: 1,2 size 500", "orders-1: 2,3 size 700", "clicks-0: 3,1 size 40")


class SlowAdmin(SimulatedAdmin):
    """A cluster that takes its time to answer."""

    def __init__(self, cluster: Cluster, *seconds: float) -> None:
        super().__init__(cluster)
        self.seconds = iter(seconds)

    def sample(self) -> ClusterSample:
        """Return a sample, late."""
        self.clock.sleep(next(self.seconds, 0))
        return super().sample()


@pytest.fixture
def told() -> list[Collected]:
    """Return where the rounds are told."""
    return []


def reach(monkeypatch: pytest.MonkeyPatch, admin: Admin) -> Inputs:
    """Let the verb reach that cluster, as with --bootstrap-server."""
    monkeypatch.setattr(verb, "cluster_admin", lambda *_: nullcontext(admin))
    return Inputs(bootstrap_server="k:9092")


def times(told: list[Collected]) -> list[float]:
    return [(each.at - START).total_seconds() for each in told]


def test_rounds_keep_their_times_however_long_one_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]
) -> None:
    inputs = reach(monkeypatch, SlowAdmin(small_cluster(*LINES), 7, 13, 59, 130, 60))
    collect(inputs, str(tmp_path), Schedule(MINUTE, 9 * MINUTE), told.append)
    assert times(told) == [0, 60, 120, 180, 360, 420, 480, 540]
    assert len(list(tmp_path.glob("cluster=*/date=*/*.parquet"))) == 8


def test_once_is_one_round_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]) -> None:
    collect(reach(monkeypatch, SimulatedAdmin(small_cluster(*LINES))), str(tmp_path), ONCE, told.append)
    assert times(told) == [0]
    assert told[0].cluster == "simulated"


def test_a_round_without_an_answer_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]
) -> None:
    asked = []

    def fault(name: str, moment: Moment) -> Answer | None:
        if name == "sample":
            asked.append((name, moment))
        if len(asked) in {2, 3}:
            raise ClusterUnavailable("no broker answers")
        return None

    admin = SimulatedAdmin(small_cluster(*LINES), fault=fault)
    collect(reach(monkeypatch, admin), str(tmp_path), Schedule(MINUTE, 3 * MINUTE), told.append)
    assert [each.failed for each in told] == [None, "no broker answers", "no broker answers", None]
    assert len(list(tmp_path.glob("cluster=*/date=*/*.parquet"))) == 2


def test_no_answer_at_all_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]) -> None:
    def fault(_name: str, _moment: Moment) -> Answer | None:
        raise ClusterUnavailable("no broker answers")

    inputs = reach(monkeypatch, SimulatedAdmin(small_cluster(*LINES), fault=fault))
    with pytest.raises(ClusterUnavailable):
        collect(inputs, str(tmp_path), Schedule(MINUTE), told.append)
    assert told == []


def test_what_a_dead_broker_holds_is_unknown_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]
) -> None:
    admin = SimulatedAdmin(small_cluster(*LINES))
    admin.kill_broker(2)
    admin.kill_broker(3)
    collect(reach(monkeypatch, admin), str(tmp_path), ONCE, told.append)
    assert told[0].untold == tuple(f"broker {n} is not alive: what its log dirs hold is unknown" for n in (2, 3))
    found = parquet.read_table(tmp_path, partitioning=None).to_pylist()
    sizes = {TopicPartition(row["topic"], row["partition"]): row["size_bytes"] for row in found}
    assert sizes == {
        TopicPartition("orders", 0): 500,
        TopicPartition("orders", 1): None,
        TopicPartition("clicks", 0): 40,
    }
    assert (told[0].partitions, told[0].replicas) == (3, 2)
    assert [each.name for each in tmp_path.iterdir()] == ["cluster=simulated"]


def test_growth_of_a_simulated_cluster_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]
) -> None:
    admin = SimulatedAdmin(small_cluster(*LINES))

    def tell(each: Collected) -> None:
        told.append(each)
        admin.produce(TopicPartition("orders", 0), size=6_000, records=60)

    collect(reach(monkeypatch, admin), str(tmp_path), Schedule(MINUTE, 2 * MINUTE), tell)
    found = parquet.read_table(tmp_path, partitioning=None).sort_by("ts").to_pylist()
    grown = [
        (row["size_bytes"], row["end_offset"]) for row in found if (row["topic"], row["partition"]) == ("orders", 0)
    ]
    assert grown == [(500, None), (6500, 60), (12500, 120)]


def test_samples_of_another_cluster_than_declared_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Collected]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_simulated(small_cluster(*LINES), name="prod", spec="clusterId: another")
    with pytest.raises(Refused, match="declares clusterId another, but simulated answers"):
        collect(Inputs(), "out", ONCE, told.append)
    assert not Path("out").exists()
