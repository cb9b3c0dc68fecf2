"""Keeps the planner's reasons for a plan: tables that all moves share, and what could have moved instead.

`explain` answers from these tables alone, long after the snapshot is gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap

import numpy as np

from reconciler.diff.capacities import foreign_told, weights_told
from reconciler.diff.rules import NO_RACK, TopicRules, cordoned_by_kafka
from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, Bools, Ints, alike, lists_of, narrowed
from reconciler.model.desired import Desired, Placement
from reconciler.model.grounds import (
    UNDECLARED,
    BrokerGround,
    Grounds,
    OtherMove,
    PlacementGround,
    RackReplicas,
    Swap,
    TopicGround,
)
from reconciler.model.move import Reason
from reconciler.model.move_table import Moves
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.explain import paired
from reconciler.planner.placement_task import PlacementTask


def grounds_of(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    *,
    topic_changes: Sequence[TopicChange],
    task: PlacementTask,
    moves: Moves,
) -> Grounds:
    """Return why these moves were chosen among what could have been, in tables whose size hardly grows with them."""
    touched = moves.topics_moved | {
        change.topic for change in topic_changes if isinstance(change, CreateTopic | CreatePartitions)
    }
    placements: dict[PlacementGround, int] = {}
    topics = {}
    for name, partitions in sorted(_partitions_after(observed, topic_changes).items()):
        declared = rules[name].declared if name in touched else None
        number = placements.setdefault(_placement(declared.placement), len(placements)) if declared else UNDECLARED
        topics[name] = TopicGround(name, partitions, number)
    return Grounds(_brokers(desired, observed), tuple(placements), topics, dict(_instead(task, moves)))


def _brokers(desired: Desired, observed: Cluster) -> Mapping[int, BrokerGround]:
    found = {}
    closed = cordoned_by_kafka(desired, observed)
    weights, foreign = weights_told(desired, observed), foreign_told(desired, observed)
    for id_, broker in sorted(observed.brokers.items()):
        declared = desired.cluster.broker(id_)
        written = broker.rack or NO_RACK, declared.state, declared.capacity, weights.get(id_, {}), foreign.get(id_, 0)
        found[id_] = BrokerGround(*written, is_alive=observed.is_alive(id_), is_cordoned=id_ in closed)
    return found


def _placement(placement: Placement) -> PlacementGround:
    return PlacementGround(
        spread=placement.racks_spread,
        racks_replicas=tuple(starmap(RackReplicas, placement.racks_replicas)) if placement.racks_replicas else None,
        racks_only=None if placement.racks_only is None else tuple(sorted(placement.racks_only)),
        racks_leader=None if placement.racks_leader is None else tuple(sorted(placement.racks_leader)),
        brokers_only=None if placement.brokers_only is None else tuple(sorted(placement.brokers_only)),
        brokers_except=tuple(sorted(placement.brokers_except)),
        is_assigned=placement.assignment is not None,
    )


def _partitions_after(observed: Cluster, topic_changes: Iterable[TopicChange]) -> Mapping[str, int]:
    count = {name: len(topic.partitions) for name, topic in observed.topics.items()}
    for change in topic_changes:
        match change:
            case CreateTopic():
                count[change.topic] = change.partitions
            case CreatePartitions():
                count[change.topic] = change.to_count
            case DeleteTopic():
                count.pop(change.topic, None)
            case _:
                pass
    return count


def _instead(task: PlacementTask, moves: Moves) -> Iterator[tuple[Swap, OtherMove]]:
    """Yield, for each swap that balance asked for, the smallest partition that stays and could have been swapped so."""
    if not task.is_size_known:
        return
    is_for_balance = np.array([why.reason is Reason.BALANCE for why in moves.whys], dtype=np.bool_)[moves.why]
    asked = moves.part(np.flatnonzero(is_for_balance))
    removed, added = np.where(asked.is_removed, asked.before, NONE), np.where(asked.is_added, asked.after, NONE)
    first, _ = alike([*removed.T, *added.T])
    changes = zip(lists_of(removed[first]), lists_of(added[first]), strict=True)
    rack_of = dict(zip(task.eligible.ids, task.eligible.rack.tolist(), strict=True))
    swaps = sorted({swap for change in changes for swap in _swaps(*change, rack_of)})
    if not swaps:
        return
    staying = _staying(task, {*moves.topic_partitions()})
    place, seat = np.nonzero(task.replicas[staying] >= 0)
    broker = task.replicas[staying[place], seat]
    order = np.argsort(narrowed(broker), kind="stable")
    start = np.searchsorted(broker[order], np.arange(len(task.eligible.ids) + 1))
    for swap in swaps:
        source, destination = task.eligible.column[swap.giver], task.eligible.column[swap.taker]
        candidates = staying[place[order[start[source] : start[source + 1]]]]
        number = _first_that_may(task, candidates, source, destination)
        if number is not None:
            (key,) = task.partitions.keys(np.array([number]))
            yield swap, OtherMove(*swap, *key, int(task.size[number]))


def _swaps(removed: Sequence[int], added: Sequence[int], rack_of: Mapping[int, int]) -> Iterator[Swap]:
    """Return which eligible broker gives a replica to which."""
    givers, takers = ([each for each in ids if each in rack_of] for ids in (removed, added))
    return paired(givers, takers, rack_of.__getitem__)


def _staying(task: PlacementTask, moved: set[TopicPartition]) -> Ints:
    """Return the partitions whose replicas stay though they were free to move, the smallest first."""
    is_moved = np.zeros(len(task.partitions), dtype=np.bool_)
    is_moved[task.partitions.rows_of(moved)] = True
    is_free = (task.need > 0) & ~is_moved & ~task.is_new & (task.fixed < 0).all(axis=1)
    number = np.flatnonzero(is_free)
    return number[np.argsort(task.size[number], kind="stable")]


def _first_that_may(task: PlacementTask, candidates: Ints, source: int, destination: int) -> int | None:
    """Return the first of these partitions that may be swapped so; nearly always it is one of the first few."""
    start, size = 0, 64
    while start < len(candidates):
        some = candidates[start : start + size]
        found = some[_may_swap(task, some, source, destination)]
        if len(found):
            return int(found[0])
        start, size = start + size, 4 * size
    return None


def _may_swap(task: PlacementTask, number: Ints, source: int, destination: int) -> Bools:
    """Return which of these partitions, all on the source, keep every rule with the replica on the destination."""
    rule_class, rows, rack = task.rule_class[number], task.rule_classes.rows, task.eligible.rack
    replicas = task.replicas[number]
    allowed: Bools = rows.allowed[rule_class, destination] & (replicas != destination).all(axis=1)
    if rack[source] == rack[destination]:
        return allowed
    giving, taking = (((replicas >= 0) & (rack[replicas] == rack[side])).sum(axis=1) for side in (source, destination))
    allowed &= giving > rows.low[rule_class, rack[source]]
    allowed &= taking < rows.high[rule_class, rack[destination]]
    return allowed
