"""Moves as columns against the moves that they stand for, one by one."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest
from model.test_partition_table import any_cluster

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.codec import to_json
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Election, Move, Reason
from reconciler.model.move_groups import grouped
from reconciler.model.move_table import Moves, Why, table_of_moves
from reconciler.model.plan import Restore, Rollback
from reconciler.model.problem import Location
from reconciler.model.restores import Restores
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.estimate import busiest_broker_seconds, served_moves

SEEDS = range(20)
NAMES = ("orders", "a", "größe", "z-9")
PLACES = (None, Location("cluster.yaml", 3), Location("t.yaml", 9))


def any_move(chance: Random) -> Move:
    before = tuple(chance.sample(range(9), chance.randint(1, 4)))
    after = chance.choice((before, tuple(chance.sample(range(9), chance.randint(1, 4))), tuple(reversed(before))))
    copies = len(set(after) - set(before))
    return Move(
        TopicPartition(chance.choice(NAMES), chance.randint(0, 5)),
        before,
        after,
        copies * chance.choice((0, 7, 10**6, 2**62)),
        chance.choice(list(Reason)),
        chance.choice(PLACES),
        chance.random() < 0.8,
        {after[0]: "/d1"} if chance.random() < 0.2 else {},
    )


def any_moves(seed: int) -> list[Move]:
    chance = Random(seed)
    return [any_move(chance) for _ in range(chance.choice((0, 1, 5, 40)))]


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_read_and_written_as_the_moves_that_they_stand_for(seed: int) -> None:
    moves = any_moves(seed)
    table = Moves.of(moves)
    assert table == tuple(moves)
    assert (hash(table), repr(table)) == (hash(tuple(moves)), repr(tuple(moves)))
    assert to_json(ReassignStage(1, table)) == to_json(ReassignStage(1, tuple(moves)))
    assert Moves.of(table) is table
    assert table != (*moves, any_move(Random(seed)))


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_tell_what_each_move_tells(seed: int) -> None:
    moves = any_moves(seed)
    table = Moves.of(moves)
    assert [tuple(row[is_new].tolist()) for row, is_new in zip(table.after, table.is_added, strict=True)] == [
        each.added for each in moves
    ]
    assert [tuple(row[is_gone].tolist()) for row, is_gone in zip(table.before, table.is_removed, strict=True)] == [
        each.removed for each in moves
    ]
    assert table.copies.tolist() == [len(each.added) for each in moves]
    assert table.bytes_a_copy.dtype == np.int64
    assert table.bytes_a_copy.tolist() == [each.bytes // max(1, len(each.added)) for each in moves]
    assert table.is_change.tolist() == [each.from_replicas != each.to_replicas for each in moves]
    assert [moves[row] for row in table.in_order.tolist()] == sorted(moves, key=lambda each: each.topic_partition)
    assert [*table.topic_partitions()] == [each.topic_partition for each in moves]
    assert table.topics_moved == {each.topic_partition.topic for each in moves}


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_and_parts_joined_hold_their_moves(seed: int) -> None:
    chance, moves = Random(seed), any_moves(seed)
    table = Moves.of(moves)
    rows = [chance.randrange(len(moves)) for _ in range(len(moves))]
    assert table.part(np.array(rows, dtype=np.int64)) == tuple(moves[row] for row in rows)
    others = any_moves(seed + 1)
    middle = np.arange(len(moves) // 2)
    parts = [table.part(middle), Moves.of(others), table.part(middle), table.part(middle[::-1])]
    half = moves[: len(middle)]
    assert Moves.joined(parts) == (*half, *others, *half, *reversed(half))
    assert Moves.joined([]) == ()
    wanted = {chance.choice([TopicPartition("orders", 1), TopicPartition("none", 0)]), TopicPartition("a", 77)}
    assert table.part(table.rows_of(wanted)) == tuple(each for each in moves if each.topic_partition in wanted)
    assert table.part(table.rows_of_topics({"a", "none"})) == tuple(
        each for each in moves if each.topic_partition.topic == "a"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_sum_up_what_their_moves_sum_up_to(seed: int) -> None:
    moves = any_moves(seed)

    def key(why: Why, topic: str) -> tuple[str, str]:
        return why.reason.value, topic if why.reason is Reason.RACKS else ""

    expected = defaultdict[tuple[str, str], list[Move]](list)
    for each in moves:
        expected[key(Why(each.reason, each.at), each.topic_partition.topic)].append(each)
    found = grouped(Moves.of(moves), key)
    assert [*found] == sorted(expected)
    for name, group in found.items():
        some = expected[name]
        ways: dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        for each in some:
            ways[each.topic_partition] = ways.get(each.topic_partition, (each.from_replicas,))[0], each.to_replicas
        left = [frozenset(start) - frozenset(end) for start, end in ways.values()]
        assert (group.partitions, group.topics) == (len(ways), len({each.topic for each in ways}))
        assert (group.copies, group.bytes) == (sum(len(each.added) for each in some), sum(each.bytes for each in some))
        assert group.is_size_known == all(each.is_size_known for each in some)
        assert group.factors == Counter((len(start), len(end)) for start, end in ways.values())
        assert group.growth == sum(len(end) - len(start) for start, end in ways.values())
        assert group.left == (frozenset().union(*left), frozenset.intersection(*left))
        assert (group.why, group.topic) == (Why(some[0].reason, some[0].at), some[0].topic_partition.topic)


@pytest.mark.parametrize("seed", range(30))
def test_what_a_plan_touches_is_kept_as_rows_and_written_as_values(seed: int) -> None:
    table = table_of(any_cluster(seed))
    rows = np.array(sorted(Random(seed).sample(range(len(table.number)), len(table.number) // 2)), dtype=np.int64)
    kept = Restores(table, rows)
    partitions = ((table.key(row), table.value(row)) for row in rows.tolist())
    values = tuple(Restore(key, each.target_replicas, each.leader) for key, each in partitions)
    assert kept == values
    assert to_json(Rollback(kept)) == to_json(Rollback(values))


def chained(chance: Random) -> tuple[Cluster, list[Stage]]:
    """Return a cluster, and stages in which its partitions, and some that it does not have, move step by step."""
    lists = {number: tuple(chance.sample(range(7), 3)) for number in range(6)}
    partitions = tuple(
        Partition(number, chance.choice((None, *replicas)), replicas, replicas) for number, replicas in lists.items()
    )
    observed = Cluster("any", {id_: Broker(id_) for id_ in range(7)}, {"a": Topic("a", partitions[:4])})
    stages: list[Stage] = []
    for number in range(1, chance.randint(2, 6)):
        moves = []
        for one in chance.sample(range(6), chance.randint(0, 6)):
            after = tuple(chance.sample(range(7), chance.randint(1, 3)))
            size = 10 * len(set(after) - set(lists[one]))
            moves.append(Move(TopicPartition("a", one), lists[one], after, size, Reason.BALANCE))
            lists[one] = after
        elections = tuple(Election(TopicPartition("a", one), lists[one][0]) for one in chance.sample(range(6), 2))
        stages.append(
            ReassignStage(number, Moves.of(moves) if chance.random() < 0.5 else tuple(moves), 1, 0, elections)
        )
        if chance.random() < 0.3:
            stages.append(ElectStage(0, (Election(TopicPartition("b", 0), 1), *elections[:1])))
    return observed, stages


def served_one_by_one(stages: Sequence[Stage], observed: Cluster) -> Iterator[tuple[Move, int | None]]:
    """Yield each move with its leader, as Kafka moves the leadership."""
    leaders: dict[TopicPartition, int | None] = {}
    for stage in stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            partition = observed.partition(move.topic_partition)
            leader = leaders.get(move.topic_partition, partition.leader if partition is not None else None)
            yield move, leader
            leaders[move.topic_partition] = leader if leader in move.to_replicas else move.to_replicas[0]
        if isinstance(stage, ReassignStage | ElectStage):
            leaders |= {each.topic_partition: each.leader for each in stage.elections}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_move_is_served_by_the_leader_of_that_moment(seed: int) -> None:
    observed, stages = chained(Random(seed))
    expected, served = [*served_one_by_one(stages, observed)], served_moves(stages, observed)
    assert [*served] == expected
    assert [pair for _, part in served.by_stage(stages) for pair in part] == expected
    assert table_of_moves(stages) == tuple(move for move, _ in expected)
    busy: Counter[tuple[int, str]] = Counter()
    for move, source in expected:
        busy.update({(broker, "in"): move.bytes // len(move.added) for broker in move.added})
        busy.update({(source, "out"): move.bytes} if source is not None and move.added else {})
    policy = MovePolicy(throttle_bytes_per_second=1)
    assert busiest_broker_seconds(served, policy) == max(busy.values(), default=0)
