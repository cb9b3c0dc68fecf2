"""Follows the moves to the state that a plan ends in, and tells whether every rule is kept there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.plan import Plan
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import (
    NONE,
    Bools,
    Ints,
    NotProved,
    differs,
    exact_product,
    exact_sum,
    has_twice,
    is_among,
    lists_of,
    stacked,
    table_of_lists,
)
from reconciler.proof.demands import NOBODY, Demands, Fixed, Partitions, Replicas, columns_of
from reconciler.proof.snapshot import PlannedMoves, Snapshot, moves_of


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """Where a plan ends: the ordered replicas of each row, and what its moves copied on the way.

    `replicas` [rows, width] are brokers, NONE behind the last; `table` is where these stand among the brokers that take
    part, NOBODY behind the last. `bytes` counts known sizes. `moves` are the plan's, in order; `moved` [moves] are the
    rows of their partitions in the snapshot.
    """

    replicas: Ints
    table: Ints
    bytes: int
    copies: int
    moves: PlannedMoves
    moved: Ints


def reached(plan: Plan, demands: Demands) -> Reached:
    """Return where the plan ends; raise NotProved where moves do not fit together or a rule is broken in the end."""
    created = _created(plan.topic_changes, demands)
    moves = moves_of(plan)
    row, ends = followed(moves, demands.snapshot)
    _refuse_other_ends(demands.fixed, _after(demands.fixed, ends, created))
    doomed = np.flatnonzero(~np.isin(row, np.concatenate([demands.fixed.at, demands.rows.at])))
    if len(doomed):
        raise NotProved(f"{min(map(moves.key, doomed.tolist()))} is moved, but its topic is deleted")
    replicas = _after(demands.rows, ends, created)
    columns = columns_of(replicas, demands.brokers)
    _refuse_illegal(demands, replicas, columns)
    return Reached(replicas, columns, exact_sum(moves.bytes), int(moves.copies.sum()), moves, row)


def followed(moves: PlannedMoves, snapshot: Snapshot) -> tuple[Ints, Ints]:
    """Return the snapshot's row of each move, and where each row ends; raise NotProved for a move that does not fit."""
    row = snapshot.rows_of(moves.topics, moves.topic, moves.number)
    # The last row stands for what is not there: NONE names it.
    lists = stacked([snapshot.target, np.full((1, 1), NONE)])
    _refuse_unfit(moves, row, _befores(moves, row, lists), np.append(snapshot.size, NONE)[row])
    return row, _ends(moves, row, lists)


def _created(changes: Sequence[TopicChange], demands: Demands) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the plan's new partitions; refuse others than the files ask for."""
    placed = {
        TopicPartition(change.topic, number): replicas
        for change in changes
        if isinstance(change, CreateTopic | CreatePartitions)
        for number, replicas in change.assignment.items()
    }
    parts: tuple[Partitions, ...] = (demands.rows, demands.fixed)
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


def _refuse_unfit(moves: PlannedMoves, row: Ints, here: Ints, size: Ints) -> None:
    """Raise NotProved for the first move that does not fit what is there.

    By move: `row` in the table of what is observed, the replicas `here` before it, `size` in bytes of one copy.
    """
    copied = exact_product(moves.copies, np.maximum(size, 0))
    faults = (
        row < 0,
        differs(here, moves.before),
        has_twice(moves.after) | (moves.after < 0).all(axis=1),
        moves.bytes != copied,
        (moves.copies > 0) & (moves.is_size_known != (size >= 0)),
    )
    wrong = np.flatnonzero(np.any(faults, axis=0))
    if not len(wrong):
        return
    first = int(wrong[0])
    start, after, there = ([*next(lists_of(table[first : first + 1]))] for table in (moves.before, moves.after, here))
    to = f"to brokers {after}"
    told = (
        " is moved, but it does not exist",
        f" is moved from brokers {start}, but it is on {there}",
        f" is moved {to}: each must be named once",
        f": moving it {to} copies {copied[first]} bytes, not {moves.bytes[first]}",
        f" is moved, and its size is {'' if size[first] >= 0 else 'not '}known: the plan says otherwise",
    )
    what = next(text for text, is_wrong in zip(told, faults, strict=True) if is_wrong[first])
    raise NotProved(f"{moves.key(first)}{what}")


def _befores(moves: PlannedMoves, row: Ints, observed: Ints) -> Ints:
    """Return where each move finds its partition: where the move of it before has led, or where it is observed."""
    order = np.argsort(row, kind="stable")
    is_later = np.append(False, row[order][1:] == row[order][:-1])[: len(row)]
    here, after = np.split(stacked([observed[row], moves.after]), 2)
    here[order[is_later]] = after[order[np.flatnonzero(is_later) - 1]]
    return here


def _ends(moves: PlannedMoves, row: Ints, observed: Ints) -> Ints:
    """Return the replicas of each row of what is observed, in the end."""
    ends, after = np.split(stacked([observed, moves.after]), [len(observed)])
    # If a row is named several times, numpy keeps the value of its last move.
    ends[row] = after
    return ends


def _after(partitions: Partitions, ends: Ints, created: Mapping[TopicPartition, Replicas]) -> Ints:
    """Return the replicas of these partitions in the end."""
    new = np.flatnonzero(~partitions.is_there)
    written = table_of_lists([created[partitions.key(row)] for row in new.tolist()])
    found, written = np.split(stacked([ends[partitions.at], written]), [len(partitions)])
    found[new] = written
    return found


def _refuse_other_ends(fixed: Fixed, after: Ints) -> None:
    """Raise NotProved for the first partition whose fixed replicas are not those that it ends on."""
    for row in np.flatnonzero(differs(after, fixed.replicas))[:1].tolist():
        why = "its assignment is written" if fixed.is_assigned[row] else "it is not to be moved"
        replicas = next(lists_of(fixed.replicas[row : row + 1]))
        raise NotProved(f"{fixed.key(row)} does not end on brokers {list(replicas)}, and {why}")


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
    brokers, kind, now, fixed = demands.brokers, demands.rows.kind, demands.now, demands.rows.fixed
    is_filled, column = table != NOBODY, np.maximum(table, 0)
    is_held, is_fixed = is_among(table, now), is_among(replicas, fixed)
    takers = demands.who("takers")[kind[:, None], column]
    holders = demands.who("holders")[kind[:, None], column]
    is_barred = is_filled & ~is_fixed & ((table < 0) | ~(takers | (holders & is_held)))
    is_chosen = is_filled & ~is_fixed
    is_off = demands.off_spread(np.where(is_chosen, column, NOBODY)) > 0
    # A spread that is only preferred yields to a limit: the objectives say by how much.
    if brokers.capacity.most_replicas is not None or any(room is not None for room in brokers.capacity.room):
        is_off &= demands.racks[2][kind]
    candidates = leader_candidates(demands, table)
    return [
        (is_chosen.sum(axis=1) != demands.need(), "that is not the number of replicas that it is to have"),
        (is_barred.any(axis=1), "one of them may not hold it"),
        (is_fixed.sum(axis=1) != (fixed >= 0).sum(axis=1), "a replica that no plan may move is gone"),
        (is_off, "they do not spread over the racks as they must"),
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
