"""Follows the moves to the state that a plan ends in, and tells whether every rule is kept there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.basics import Bools, Ints, NotProved
from reconciler.proof.demands import NOBODY, Demands, Replicas, padded


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a plan ends: the ordered replicas of each row, and what its moves copied on the way.

    `table` [rows, replicas] holds the same replicas as columns, NOBODY beyond the end. `bytes` counts known sizes.
    """

    replicas: list[Replicas]
    table: Ints
    bytes: int
    copies: int


def reached(plan: Plan, demands: Demands, observed: Cluster) -> Reached:
    """Return where the plan ends; raise NotProved where moves do not fit together or a rule is broken in the end."""
    placed = _created(plan.topic_changes, demands)
    copied = 0
    copies = 0
    for move in (move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves):
        _refuse_unfit(move, placed, observed)
        placed[move.topic_partition] = move.to_replicas
        copied += move.bytes
        copies += len(move.added)
    for key, decided in demands.decided.items():
        if placed.pop(key, decided.now) != decided.replicas:
            why = "its assignment is written" if decided.is_assigned else "it is not to be moved"
            raise NotProved(f"{key} does not end on brokers {list(decided.replicas)}, and {why}")
    replicas = [placed.pop(key, now) for key, now in zip(demands.rows.keys, demands.rows.now, strict=True)]
    if placed:
        raise NotProved(f"{min(placed)} is moved, but its topic is deleted")
    table = padded(replicas, demands.brokers)
    _refuse_illegal(demands, replicas, table)
    return Reached(replicas, table, copied, copies)


def _created(changes: Sequence[TopicChange], demands: Demands) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the plan's new partitions; refuse others than the files ask for."""
    placed = {
        TopicPartition(change.topic, number): replicas
        for change in changes
        if isinstance(change, CreateTopic | CreatePartitions)
        for number, replicas in change.assignment.items()
    }
    wanted = {key for key, now in zip(demands.rows.keys, demands.rows.now, strict=True) if not now}
    wanted |= {key for key, decided in demands.decided.items() if not decided.now}
    for key in sorted(wanted ^ placed.keys()):
        what = (
            "is not created, although the files ask for it" if key in wanted else "is created, and nobody asked for it"
        )
        raise NotProved(f"{key} {what}")
    for key, replicas in placed.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise NotProved(f"{key} is created on brokers {list(replicas)}: each must be named once")
    deleted = {change.topic for change in changes if isinstance(change, DeleteTopic)}
    for topic in sorted(deleted ^ set(demands.doomed)):
        what = "is deleted, and nobody asked for it" if topic in deleted else "is not deleted, although it is to go"
        raise NotProved(f"topic {topic} {what}")
    return placed


def _refuse_unfit(move: Move, placed: Mapping[TopicPartition, Replicas], observed: Cluster) -> None:
    key, partition = move.topic_partition, observed.partition(move.topic_partition)
    if partition is None:
        raise NotProved(f"{key} is moved, but it does not exist")
    here = placed.get(key, partition.target_replicas)
    if here != move.from_replicas:
        raise NotProved(f"{key} is moved from brokers {list(move.from_replicas)}, but it is on {list(here)}")
    if not move.to_replicas or len(set(move.to_replicas)) != len(move.to_replicas):
        raise NotProved(f"{key} is moved to brokers {list(move.to_replicas)}: each must be named once")
    size = partition.bytes_to_copy
    copied = len(move.added) * (size or 0)
    if move.bytes != copied or move.is_size_known != (size is not None):
        raise NotProved(f"{key}: moving it to brokers {list(move.to_replicas)} copies {copied} bytes, not {move.bytes}")


def _refuse_illegal(demands: Demands, replicas: Sequence[Replicas], table: Ints) -> None:
    """Raise NotProved for the first partition that breaks a rule in the end."""
    if not replicas:
        return
    if not demands.brokers.ids:
        raise NotProved(f"{demands.rows.keys[0]} ends on brokers {list(replicas[0])}: no broker takes part in the plan")
    for is_wrong, what in _faults(demands, table):
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise NotProved(f"{demands.rows.keys[row]} ends on brokers {list(replicas[row])}: {what}")


def _faults(demands: Demands, table: Ints) -> list[tuple[Bools, str]]:
    """Return, rule by rule, [rows] which break it, and the rule in words."""
    brokers, kinds, kind = demands.brokers, demands.kinds, demands.kind
    now = padded(demands.rows.now, brokers)
    is_filled, column = table != NOBODY, np.maximum(table, 0)
    is_held = (table[:, :, None] == now[:, None, :]).any(axis=2)
    is_kept, is_kept_lost = _kept(demands, table)
    takers = np.array([brokers.mask(each.allowed.takers) for each in kinds])[kind[:, None], column]
    holders = np.array([brokers.mask(each.allowed.holders) for each in kinds])[kind[:, None], column]
    is_barred = is_filled & ~is_kept & ((table < 0) | ~(takers | (holders & is_held)))
    is_chosen = is_filled & ~is_kept
    rack = np.where(is_chosen, brokers.rack[column], NOBODY)
    held = np.stack([(rack == number).sum(axis=1) for number in range(len(brokers.racks))], axis=1)
    low = np.array([each.bounds[0] for each in kinds])[kind]
    high = np.array([each.bounds[1] for each in kinds])[kind]
    candidates = leader_candidates(demands, table)
    return [
        (is_chosen.sum(axis=1) != demands.need(), "that is not the number of replicas that it is to have"),
        (is_barred.any(axis=1), "one of them may not hold it"),
        (is_kept_lost, "a replica that no plan may move is gone"),
        (((held < low) | (held > high)).any(axis=1), "they do not spread over the racks as they must"),
        (~candidates[:, 0], "the first of them may not be the preferred leader"),
    ]


def _kept(demands: Demands, table: Ints) -> tuple[Bools, Bools]:
    """Return [rows, replicas] which replicas no plan may move, and [rows] where one of those is gone."""
    is_kept = np.zeros(table.shape, dtype=np.bool_)
    is_lost = np.zeros(len(table), dtype=np.bool_)
    for row, kept in demands.rows.kept.items():
        columns = demands.brokers.columns(kept)
        is_kept[row] = np.isin(table[row], columns)
        is_lost[row] = is_kept[row].sum() != len(kept)
    return is_kept, is_lost


def leader_candidates(demands: Demands, table: Ints) -> Bools:
    """Return [rows, replicas] who may come first: a leader; where there is none, a stand-in; else anyone."""
    kind, column, is_filled = demands.kind[:, None], np.maximum(table, 0), table >= 0
    found = is_filled
    for tier in ("stand_ins", "leaders"):
        masks = np.array([demands.brokers.mask(getattr(each.allowed, tier)) for each in demands.kinds])
        here = is_filled & masks[kind, column]
        found = np.where(here.any(axis=1)[:, None], here, found)
    return found
