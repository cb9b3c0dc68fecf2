"""Every replica has two carriers, its place and its topic, which hold what is counted one by one."""

from collections import Counter
from random import Random

import pytest

pytest.importorskip("pyarrow")

from balance.clusters import random_cluster

from reconciler.balance.files.assignment_table import AFTER, BEFORE, Side, partition_table
from reconciler.balance.files.carrier_table import PART, with_carriers
from reconciler.model.cluster import Cluster, Partition, Topic

Name = tuple[str, str, int, str, str, str]


@pytest.mark.parametrize("seed", range(5))
def test_carriers_hold_what_is_counted_one_by_one(seed: int) -> None:
    random = Random(seed)
    one, other = random_cluster(random), random_cluster(random, has_log_dirs=False)
    sides = [Side("one", one), Side("other", other), Side("one", random_cluster(random), AFTER)]
    table = partition_table(sides)
    partitions, carriers = with_carriers(table)
    names = [_name(row) for row in carriers.to_pylist()]
    assert carriers["carrier"].to_pylist() == [*range(len(names))]
    assert len({*names}) == len(names)
    held: dict[str, Counter[Name]] = {each: Counter() for each in carriers.column_names[8:]}
    for row, numbers in zip(table.to_pylist(), partitions["carriers"].to_pylist(), strict=True):
        topic = (row["side"], row["cluster"], -1, "", "", row["topic"])
        assert names[numbers[-1]] == topic
        for at, broker in enumerate(row["replicas"]):
            place = (row["side"], row["cluster"], broker, row["racks"][at] or "", row["log_dirs"][at] or "", "")
            assert names[numbers[at]] == place
            leads = broker == row["leader"]
            size = row["sizes"][at]
            for carrier in (place, topic):
                held["replicas"][carrier] += 1
                held["leaders"][carrier] += leads
                held["preferred_leaders"][carrier] += at == 0
                held["preferred_led"][carrier] += leads and at == 0
                held["size_bytes"][carrier] += size or 0
                held["unknown_sizes"][carrier] += size is None
    assert {each: [counts[name] for name in names] for each, counts in held.items()} == {
        each: carriers[each].to_pylist() for each in held
    }
    is_total = [name[0] == BEFORE and name[2] < 0 for name in names]
    assert carriers["is_total"].to_pylist() == is_total


def test_a_topic_has_a_carrier_for_each_64_partitions() -> None:
    partitions = tuple(Partition(number, None, (), ()) for number in range(PART + 2))
    table, carriers = with_carriers(partition_table([Side("one", Cluster("id", topics={"t": Topic("t", partitions)}))]))
    assert table["carriers"].to_pylist() == [[0]] * PART + [[1]] * 2
    assert carriers["replicas"].to_pylist() == [0, 0]


def test_without_partitions_nothing_is_carried() -> None:
    _, carriers = with_carriers(partition_table([Side("one", Cluster("id"))]))
    assert carriers.num_rows == 0


def _name(row: dict[str, object]) -> Name:
    return tuple(row[name] for name in ("side", "cluster", "broker", "rack", "log_dir", "topic"))  # type: ignore[return-value]
