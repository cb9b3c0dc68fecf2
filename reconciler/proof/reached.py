"""Follows the moves to the state that a plan ends in, and tells whether every rule is kept there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.columns import (
    NONE,
    beside_each_other,
    exact_product,
    is_at,
    is_repeated,
    is_unlike,
    lists_of,
    padded,
    starts_of_runs,
)
from reconciler.model.move_table import Moves
from reconciler.model.plan import Plan
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.basics import Bools, Ints, NotProved, exact_sum
from reconciler.proof.demands import NOBODY, Decided, Demands, Partitions, Replicas, columns_of


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """Where a plan ends: the ordered replicas of each row, and what its moves copied on the way.

    `replicas` [rows, width] are brokers, NONE behind the last; `table` is where these stand among the brokers that take
    part, NOBODY behind the last. `bytes` counts known sizes.
    """

    replicas: Ints
    table: Ints
    bytes: int
    copies: int


def reached(plan: Plan, demands: Demands, observed: Cluster) -> Reached:
    """Return where the plan ends; raise NotProved where moves do not fit together or a rule is broken in the end."""
    created = _created(plan.topic_changes, demands)
    moves, table = plan.every_move(), table_of(observed)
    row = moves.rows_in(table)
    # The last row stands for what is not there: NONE names it.
    observed_lists = beside_each_other([table.target, np.full((1, 1), NONE)])
    _refuse_unfit(moves, row, _befores(moves, row, observed_lists), np.append(table.bytes_to_copy, NONE)[row])
    ends = _ends(moves, row, observed_lists)
    _refuse_other_ends(demands.decided, _after(demands.decided, ends, created))
    doomed = np.flatnonzero(~np.isin(row, np.concatenate([demands.decided.at, demands.rows.at])))
    if len(doomed):
        raise NotProved(f"{min(moves.part(doomed).topic_partitions())} is moved, but its topic is deleted")
    replicas = _after(demands.rows, ends, created)
    columns = columns_of(replicas, demands.brokers)
    _refuse_illegal(demands, replicas, columns)
    return Reached(replicas, columns, exact_sum(moves.bytes), int(moves.copies.sum()))


def _created(changes: Sequence[TopicChange], demands: Demands) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the plan's new partitions; refuse others than the files ask for."""
    placed = {
        TopicPartition(change.topic, number): replicas
        for change in changes
        if isinstance(change, CreateTopic | CreatePartitions)
        for number, replicas in change.assignment.items()
    }
    parts: tuple[Partitions, ...] = (demands.rows, demands.decided)
    wanted = {part.key(row) for part in parts for row in np.flatnonzero(~part.is_there).tolist()}
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


def _refuse_unfit(moves: Moves, row: Ints, here: Ints, size: Ints) -> None:
    """Raise NotProved for the first move that does not fit what is there.

    By move: `row` in the table of what is observed, the replicas `here` before it, `size` in bytes of one copy.
    """
    copied = exact_product(moves.copies, np.maximum(size, 0))
    faults = (
        row < 0,
        is_unlike(here, moves.before),
        is_repeated(moves.after) | (moves.after < 0).all(axis=1),
        (moves.bytes != copied) | (moves.is_size_known != (size >= 0)),
    )
    wrong = np.flatnonzero(np.any(faults, axis=0))
    if not len(wrong):
        return
    first = int(wrong[0])
    move, there, total = moves[first], next(lists_of(here[first : first + 1])), copied[first]
    to = f"to brokers {list(move.to_replicas)}"
    told = (
        " is moved, but it does not exist",
        f" is moved from brokers {list(move.from_replicas)}, but it is on {list(there)}",
        f" is moved {to}: each must be named once",
        f": moving it {to} copies {total} bytes, not {move.bytes}",
    )
    what = next(text for text, is_wrong in zip(told, faults, strict=True) if is_wrong[first])
    raise NotProved(f"{move.topic_partition}{what}")


def _befores(moves: Moves, row: Ints, observed: Ints) -> Ints:
    """Return where each move finds its partition: where the move of it before has led, or where it is observed."""
    order = np.argsort(row, kind="stable")
    is_later = ~starts_of_runs(row[order])
    here, after = np.split(beside_each_other([observed[row], moves.after]), 2)
    here[order[is_later]] = after[order[np.flatnonzero(is_later) - 1]]
    return here


def _ends(moves: Moves, row: Ints, observed: Ints) -> Ints:
    """Return the replicas of each row of what is observed, in the end."""
    ends, after = np.split(beside_each_other([observed, moves.after]), [len(observed)])
    last = moves.ends[1]
    ends[row[last]] = after[last]
    return ends


def _after(partitions: Partitions, ends: Ints, created: Mapping[TopicPartition, Replicas]) -> Ints:
    """Return the replicas of these partitions in the end."""
    new = np.flatnonzero(~partitions.is_there)
    written = padded([created[partitions.key(row)] for row in new.tolist()])
    found, written = np.split(beside_each_other([ends[partitions.at], written]), [len(partitions)])
    found[new] = written
    return found


def _refuse_other_ends(decided: Decided, after: Ints) -> None:
    """Raise NotProved for the first partition whose decided replicas are not those that it ends on."""
    for row in np.flatnonzero(is_unlike(after, decided.replicas))[:1].tolist():
        why = "its assignment is written" if decided.is_assigned[row] else "it is not to be moved"
        replicas = next(lists_of(decided.replicas[row : row + 1]))
        raise NotProved(f"{decided.key(row)} does not end on brokers {list(replicas)}, and {why}")


def _refuse_illegal(demands: Demands, replicas: Ints, table: Ints) -> None:
    """Raise NotProved for the first partition that breaks a rule in the end."""
    if not len(replicas):
        return
    nobody = (np.ones(len(replicas), dtype=np.bool_), "no broker takes part in the plan")
    for is_wrong, what in _faults(demands, replicas, table) if demands.brokers.ids else [nobody]:
        if is_wrong.any():
            row = int(is_wrong.argmax())
            ended = next(lists_of(replicas[row : row + 1]))
            raise NotProved(f"{demands.rows.key(row)} ends on brokers {list(ended)}: {what}")


def _faults(demands: Demands, replicas: Ints, table: Ints) -> list[tuple[Bools, str]]:
    """Return, rule by rule, [rows] which break it, and the rule in words."""
    brokers, kinds, kind, now, kept = demands.brokers, demands.kinds, demands.rows.kind, demands.now, demands.rows.kept
    is_filled, column = table != NOBODY, np.maximum(table, 0)
    is_held, is_kept = is_at(table, now), is_at(replicas, kept)
    takers = demands.who("takers")[kind[:, None], column]
    holders = demands.who("holders")[kind[:, None], column]
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
        (is_kept.sum(axis=1) != (kept >= 0).sum(axis=1), "a replica that no plan may move is gone"),
        (((held < low) | (held > high)).any(axis=1), "they do not spread over the racks as they must"),
        (~candidates[:, 0], "the first of them may not be the preferred leader"),
    ]


def leader_candidates(demands: Demands, table: Ints) -> Bools:
    """Return [rows, replicas] who may come first: a leader; where there is none, a stand-in; else anyone."""
    kind, column, is_filled = demands.rows.kind[:, None], np.maximum(table, 0), table >= 0
    found = is_filled
    for masks in (demands.who("stand_ins"), demands.who("leaders")):
        here = is_filled & masks[kind, column]
        found = np.where(here.any(axis=1, keepdims=True), here, found)
    return found
