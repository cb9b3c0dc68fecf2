"""The table of partitions against the values that it stands for, and plans made from either."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from helpers.clusters.random_clusters import SMALL, random_cluster, with_unknown_sizes

from reconciler.files.plan_file import plan_text
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.columns import NONE, alike, padded, sums
from reconciler.model.in_sync import waiting_leader
from reconciler.model.partition_table import Rows
from reconciler.model.problem import ReconcilerError
from reconciler.model.table_maker import in_rows, table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.plan import plan_of

SEEDS = range(30)


def any_partition(number: int, chance: Random) -> Partition:
    replicas = tuple(chance.sample(range(12), chance.randint(1, 5)))

    def some() -> tuple[int, ...]:
        return tuple(chance.sample(replicas, chance.randint(0, len(replicas))))

    def known(*values: int | str | None) -> tuple[int | str | None, ...]:
        return chance.choice(((), tuple(chance.choice(values) for _ in replicas)))

    is_moving = chance.random() < 0.3
    return Partition(
        number,
        chance.choice((None, *replicas)),
        replicas,
        chance.choice((replicas, some())),
        some() if is_moving else (),
        some()[1:] if is_moving else (),
        known(None, 0, 7, 2**62),  # type: ignore[arg-type]
        known(None, "/d1", "/d2"),  # type: ignore[arg-type]
        chance.choice((None, 0, 42)),
        chance.choice((None, None, (), some())),
        chance.choice((None, None, some())),
        chance.choice((None, None, 0, 9)),
    )


def any_cluster(seed: int) -> Cluster:
    chance = Random(seed)
    names = [f"t{number}" for number in range(chance.randint(1, 5))]
    topics = {
        name: Topic(name, tuple(any_partition(number, chance) for number in range(chance.randint(0, 6))))
        for name in names
    }
    return Cluster("any", {1: Broker(1)}, topics)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_the_partitions_that_they_were_made_of(seed: int) -> None:
    cluster = any_cluster(seed)
    rows = in_rows(cluster)
    assert rows == cluster
    assert cluster == rows
    assert dict(rows.partitions()) == dict(cluster.partitions())
    for name, topic in cluster.topics.items():
        held = rows.topics[name].partitions
        assert isinstance(held, Rows)
        assert (len(held), [*held], held[1:], repr(held)) == (
            len(topic.partitions),
            [*topic.partitions],
            topic.partitions[1:],
            repr(topic.partitions),
        )
        assert [held[number] for number in range(-len(held), len(held))] == [*topic.partitions] * 2
        with pytest.raises(IndexError):
            held[len(held)]
    assert table_of(rows) is table_of(replace(rows))
    assert table_of(cluster) is table_of(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_say_what_the_values_say(seed: int) -> None:
    cluster = any_cluster(seed)
    values = [*cluster.partitions()]
    table = table_of(cluster)
    every = np.arange(len(values))
    assert [*table.targets(every)] == [(key, one.target_replicas) for key, one in values]
    assert [table.key(row) for row in every.tolist()] == [key for key, _ in values]
    assert table.factor.tolist() == [len(one.target_replicas) for _, one in values]
    assert [None if size < 0 else size for size in table.bytes_to_copy.tolist()] == [
        one.bytes_to_copy for _, one in values
    ]
    assert [{*ids[late].tolist()} for ids, late in zip(table.replicas, table.lagging, strict=True)] == [
        one.lagging for _, one in values
    ]
    assert table.waiting.tolist() == [waiting_leader(one) is not None for _, one in values]
    assert table.reassigning == [row for row, (_, one) in enumerate(values) if one.is_reassigning]
    assert [[table.brokers[at] for at in row if at >= 0] for row in table.place.tolist()] == [
        [*one.target_replicas] for _, one in values
    ]
    for row, size in zip(table.sizes_on(every, table.target).tolist(), (one for _, one in values), strict=True):
        on_each = [size.size_on(broker_id) for broker_id in size.target_replicas]
        assert row[: len(on_each)] == [(size.bytes_to_copy or 0) if known is None else known for known in on_each]
    keys = [*(key for key, _ in values), TopicPartition("t0", 99), TopicPartition("none", 0)]
    assert table.rows_of(keys).tolist() == [*range(len(values)), NONE, NONE]


def test_a_changed_partition_stands_in_the_place_of_its_row() -> None:
    cluster = in_rows(Cluster("c", {}, {"a": Topic("a", tuple(Partition(n, 1, (1, 2), (1,)) for n in range(4)))}))
    held = cluster.topics["a"].partitions
    assert isinstance(held, Rows)
    other = Partition(2, 2, (2, 1), (2,))
    changed = held.with_changed({2: other})
    assert (changed[2], [*changed][2], changed[1]) == (other, other, held[1])
    assert changed != held
    assert changed == (*held[:2], other, held[3])
    assert changed.with_changed({2: held[2]}) == held
    moved = replace(cluster, topics={"a": replace(cluster.topics["a"], partitions=changed)})
    assert table_of(moved).target.tolist() == [[1, 2], [1, 2], [2, 1], [1, 2]]


def test_sums_are_exact_beyond_63_bits() -> None:
    brokers = padded([(1, 2), (2,), (2, 9)])
    amounts = np.full(brokers.shape, 2**63 - 1, dtype=np.int64)
    assert sums(brokers, amounts) == {1: 2**63 - 1, 2: 3 * (2**63 - 1), 9: 2**63 - 1}
    assert sums(brokers, np.ones_like(brokers)) == {1: 1, 2: 3, 9: 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_alike_where_all_their_columns_are_equal(seed: int) -> None:
    chance = Random(seed)
    width, count = chance.randint(1, 12), chance.randint(0, 60)
    columns = [[chance.choice((-1, 0, 3, 10 ** chance.randint(0, 9))) for _ in range(count)] for _ in range(width)]
    first, kind = alike([np.array(column, dtype=np.int64) for column in columns])
    rows = [*zip(*columns, strict=True)]
    numbers = {row: number for number, row in enumerate(Counter(rows))}
    assert kind.tolist() == [numbers[row] for row in rows]
    assert [rows[row] for row in first.tolist()] == [*numbers]


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_the_same_from_rows_and_from_values(seed: int) -> None:
    desired, observed = random_cluster(seed, SMALL)
    observed = with_unknown_sizes(observed, seed) if seed % 5 == 0 else observed
    found = []
    for cluster in (observed, in_rows(observed)):
        try:
            found.append(plan_text(plan_of(desired, cluster)))
        except ReconcilerError as error:
            found.append(str(error))
    assert found[0] == found[1]
