"""Cuts a fleet into parts of brokers that are balanced one after another, each by a linear program of its own.

A program over all brokers of a fleet needs a column for every partition that moves, and each round of it grows with
all of them. Parts that as a whole stand inside their bands need nothing of one another: what one broker has too much,
others of its part can take. The bound for the whole is that of a disk's bytes at what a byte copied costs.
"""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.task import LoadTask, Weights

ONE_PROGRAM, PART = 60, 25
"""So many brokers are balanced by one program, in a minute; of more, parts of so many in some seconds each."""
INSIDE = 4
"""A part as a whole keeps such a part of a band's width from its ends, so that its brokers find places inside it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some brokers as a task of their own: `rows` and `brokers` are those of the whole, in order."""

    rows: Ints
    brokers: Ints
    task: LoadTask
    bands: Bands
    goal: Goal


def parts_of(task: LoadTask, bands: Bands) -> tuple[Ints, ...]:
    """Return the brokers of each part; all in one where a part needs others, or partitions may not stay."""
    many = task.brokers // PART if task.brokers > ONE_PROGRAM else 1
    leads = task.leading[np.arange(len(task.need)), np.maximum(task.leader, 0)]
    if not (task.stays & leads).all() or task.forced.any():
        many = 1
    loads = task.loads(task.held, np.maximum(task.leader, 0))
    while many > 1:
        parts = _dealt(task, bands, loads, many)
        if all(_is_inside(bands, loads, brokers) for brokers in parts):
            return parts
        many //= 2
    return (np.arange(task.brokers),)


def _dealt(task: LoadTask, bands: Bands, loads: Ints, many: int) -> tuple[Ints, ...]:
    """Return so many parts with brokers of every rack: the fullest goes to the part that is least full so far."""
    fullness = ((loads - bands.share) / bands.share)[bands.asked].sum(axis=0)
    parts: list[list[int]] = [[] for _ in range(many)]
    held = [0.0] * many
    for there in task.rack_brokers:
        order = there[np.argsort(-fullness[there], kind="stable")].tolist()
        for start in range(0, len(order), many):
            some = order[start : start + many]
            smallest = sorted(range(many), key=lambda part: (len(parts[part]), held[part], part))[: len(some)]
            for part, broker in zip(sorted(smallest, key=lambda part: (held[part], part)), some, strict=True):
                parts[part].append(broker)
                held[part] += float(fullness[broker])
    return tuple(np.array(sorted(part), dtype=np.int64) for part in parts)


def _is_inside(bands: Bands, loads: Ints, brokers: Ints) -> bool:
    low, high = bands.low[:, brokers].sum(axis=1), bands.high[:, brokers].sum(axis=1)
    below, above = (high - low) // INSIDE * (low > 0 if bands.cap is not None else 1), (high - low) // INSIDE
    held = loads[:, brokers].sum(axis=1)
    return bool(((low + below <= held) & (held <= high - above) | ~bands.asked).all())


def part_of(end: Placement, bands: Bands, goal: Goal, brokers: Ints) -> Part:
    """Return the task of these brokers, of the replicas that are there; those elsewhere are where `end` has them."""
    task, members = end.task, end.members
    rows = np.flatnonzero(members[:, brokers].any(axis=1))
    here = np.ix_(rows, brokers)
    held, allowed = members[here], task.allowed[here]
    elsewhere = members[rows]
    elsewhere[:, brokers] = False
    beside = task.by_rack(elsewhere)
    low, high = (np.maximum(limit[rows] - beside, 0) for limit in (task.low, task.high))
    place = np.full(task.brokers, -1)
    place[brokers] = np.arange(len(brokers))
    need, leader = held.sum(axis=1), place[end.leader[rows]]
    # Where the leader is elsewhere, whoever is here only follows.
    leads = leader[:, None] >= 0
    own = replace(
        task,
        partitions=tuple(task.partitions[row] for row in rows.tolist()),
        eligible=task.eligible.at(brokers),
        allowed=allowed,
        forced=task.forced[here],
        held=held,
        need=need,
        low=low,
        high=high,
        leader=leader,
        leading=np.where(leads, task.leading[here], allowed),
        rank=np.where(leads, task.rank[here], 0),
        may_lead_second=np.zeros(len(rows), dtype=np.bool_),
        is_new=task.is_new[rows],
        size=task.size[rows],
        stays=np.ones(len(rows), dtype=np.bool_),
        weights=Weights(task.weights.replica[rows], task.weights.leader[rows] * leads),
        base=task.base[:, brokers],
        topic=task.topic[rows],
    )
    return Part(rows, brokers, own, bands.at(brokers), Goal(goal.copy[rows], 0))


def put_back(end: Placement, part: Part, found: Placement) -> None:
    """Place the part's replicas as found."""
    changed = (found.members != part.task.held).any(axis=1) | (found.leader != part.task.leader)
    for place in np.flatnonzero(changed).tolist():
        row, leader = int(part.rows[place]), int(found.leader[place])
        members = end.members[row].copy()
        members[part.brokers] = found.members[place]
        is_leader_here = part.task.leader[place] >= 0
        end.put(row, np.flatnonzero(members), int(part.brokers[leader] if is_leader_here else end.leader[row]))
