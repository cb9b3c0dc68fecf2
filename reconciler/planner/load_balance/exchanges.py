"""Holds a whole placement, lists the single exchanges that could follow, and weighs what each would change."""

from typing import NamedTuple

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.task import TOPICS, LoadTask
from reconciler.planner.rows import Floats


class Placement:
    """Where every row is: `members` [rows, brokers], `leader` [rows], and the loads [measures, brokers] that follow."""

    def __init__(self, task: LoadTask, members: Bools, leader: Ints) -> None:
        self.task, self.members, self.leader = task, members.copy(), leader.copy()
        self.loads = task.loads(members, leader)

    def put(self, row: int, members: Ints, leader: int) -> None:
        """Place one row anew."""
        self.loads -= self.task.carried(row, self.members[row], int(self.leader[row]))
        self.members[row] = False
        self.members[row, members] = True
        self.leader[row] = leader
        self.loads += self.task.carried(row, members, leader)

    @property
    def copies(self) -> Ints:
        """How many replicas of each row are new; those of a new partition are none, as it starts empty."""
        count: Ints = (self.members & ~self.task.held & ~self.task.is_new[:, None]).sum(axis=1)
        return count

    def exchange(self, row: int, leaving: int, arriving: int) -> None:
        """Let one broker take the place of another, as leader too; the same broker twice makes it the leader."""
        members = self.members[row].copy()
        leader = arriving if leaving == arriving or self.leader[row] == leaving else int(self.leader[row])
        if leaving != arriving:
            members[leaving], members[arriving] = False, True
        self.put(row, np.flatnonzero(members), leader)


class Exchanges(NamedTuple):
    """Candidates, one a place: `row`; `leaving` and `arriving` brokers, `is_lead`: whether only the leader changes."""

    row: Ints
    leaving: Ints
    arriving: Ints
    is_lead: Bools


def joined(parts: list[Exchanges]) -> Exchanges:
    """Return all of these candidates, in their order."""
    none = np.zeros(0, dtype=np.int64)
    empty = Exchanges(none, none, none, none.astype(np.bool_))
    return Exchanges(*(np.concatenate(arrays) for arrays in zip(empty, *parts, strict=True)))


def replica_exchanges(placement: Placement, broker: int, *, is_above: bool, leaders_only: bool) -> Exchanges:
    """Return what takes replicas off that broker where it `is_above` its band, else to it; or only what it leads."""
    task = placement.task
    if is_above:
        mine = placement.leader == broker if leaders_only else placement.members[:, broker]
        rows = np.flatnonzero(mine & ~task.forced[:, broker])
        at, arriving = np.nonzero(task.allowed[rows] & ~placement.members[rows])
        row, leaving = rows[at], np.full(len(at), broker)
    else:
        rows = np.flatnonzero(task.allowed[:, broker] & ~placement.members[:, broker])
        there = placement.members[rows] & ~task.forced[rows]
        if leaders_only:
            there &= np.arange(task.brokers) == placement.leader[rows, None]
        at, leaving = np.nonzero(there)
        row, arriving = rows[at], np.full(len(at), broker)
    return _legal(placement, row, leaving, arriving)


def _legal(placement: Placement, row: Ints, leaving: Ints, arriving: Ints) -> Exchanges:
    """Return those of the exchanges that keep the rack limits and a leader that may lead."""
    task = placement.task
    rack = task.eligible.rack
    gone, come = rack[leaving], rack[arriving]
    fine = gone == come
    if not fine.all():
        count = task.by_rack(placement.members)
        fine |= (count[row, gone] > task.low[row, gone]) & (count[row, come] < task.high[row, come])
    was_leader = placement.leader[row] == leaving
    fine &= ~was_leader | (task.rank[row, arriving] <= task.rank[row, leaving])
    # A set whose leader leads only while no other replica can gets no better replica here.
    fine &= was_leader | (task.rank[row, arriving] >= task.rank[row, placement.leader[row]])
    return Exchanges(row[fine], leaving[fine], arriving[fine], np.zeros(int(fine.sum()), dtype=np.bool_))


def leader_changes(placement: Placement, broker: int, *, is_above: bool) -> Exchanges:
    """Return what takes leads from that broker where it `is_above` its band, else to it, by order alone."""
    task = placement.task
    if is_above:
        rows = np.flatnonzero(placement.leader == broker)
        others = placement.members[rows] & (task.rank[rows] == task.rank[rows, broker, None])
        others[:, broker] = False
        at, arriving = np.nonzero(others)
        row = rows[at]
    else:
        present = task.rank[np.arange(len(task.rank)), placement.leader]
        may = placement.members[:, broker] & (task.rank[:, broker] == present)
        row = np.flatnonzero(may & (placement.leader != broker))
        arriving = np.full(len(row), broker)
    return Exchanges(row, arriving, arriving, np.ones(len(row), dtype=np.bool_))


def ways_back(placement: Placement) -> Exchanges:
    """Return the exchanges of a new replica for one that is there today."""
    task = placement.task
    back = task.held & task.allowed & ~placement.members
    new = placement.members & ~task.held & ~task.forced
    rows = np.flatnonzero(back.any(axis=1) & new.any(axis=1))
    at, arriving = np.nonzero(back[rows])
    pair, leaving = np.nonzero(new[rows[at]])
    return _legal(placement, rows[at][pair], leaving, arriving[pair])


def leaders_back(placement: Placement) -> Exchanges:
    """Return the changes of leader back to the present one."""
    task = placement.task
    present = np.maximum(task.leader, 0)
    rows = np.arange(len(present))
    may = (task.leader >= 0) & (placement.leader != task.leader) & ~task.is_new
    may &= placement.members[rows, present] & (task.rank[rows, present] == task.rank[rows, placement.leader])
    row = np.flatnonzero(may)
    return Exchanges(row, present[row], present[row], np.ones(len(row), dtype=np.bool_))


def may_follow(placement: Placement, leaving: int, arriving: int) -> Bools:
    """Return [rows] whether the broker that arrives may do what the one that leaves does: lead, or follow."""
    task = placement.task
    leads = placement.leader == leaving
    may: Bools = ~leads | (task.rank[:, arriving] <= task.rank[:, leaving])
    may &= leads | (task.rank[:, arriving] >= task.rank[np.arange(len(leads)), placement.leader])
    return may


def closer(placement: Placement, bands: Bands, found: Exchanges) -> Floats:
    """Return by how much each exchange brings loads closer to the bands (negative), in parts of fair shares."""
    task, row = placement.task, found.row
    change = np.zeros((2, len(row)))
    was_leader = (placement.leader[row] == found.leaving) | found.is_lead
    from_leader = np.where(found.is_lead, placement.leader[row], found.leaving)
    for measure in range(TOPICS):
        if not bands.asked[measure]:
            continue
        carried = task.weights.replica[row, measure] * ~found.is_lead + task.weights.leader[row, measure] * was_leader
        for broker, moved in ((from_leader, -carried), (found.arriving, carried)):
            change += bands.farther(measure, broker, placement.loads[measure, broker], moved)
    for leads, moved in ((False, ~found.is_lead), (True, was_leader)) if task.topics else ():
        measures, carried = task.of_topic(row, leads=leads), moved.astype(np.int64)
        for broker, load in ((from_leader, -carried), (found.arriving, carried)):
            change += bands.asked[measures] * bands.farther(measures, broker, placement.loads[measures, broker], load)
    return bands.weighed(change)


def _change_of_topics(
    placement: Placement,
    bands: Bands,
    pair: tuple[int, int],
    rows: tuple[Ints, Ints],
    moved: tuple[Ints, Ints],
    *,
    leads: bool,
) -> Floats:
    """Return how much farther outside the parts of topics get where the first rows' replicas, or leads, change sides.

    `moved` [rows], 0 or 1: whether it changes sides. The second rows go the opposite way, and cancel those of their
    topic.
    """
    task = placement.task
    first, second = (task.of_topic(each, leads=leads) for each in rows)
    is_same = first == second
    change = np.zeros((2, len(first)))
    for measures, own, other, ways in ((first, moved[0], moved[1], pair), (second, moved[1], moved[0], pair[::-1])):
        # Where both are of one topic, the first speaks for both.
        load = np.where(is_same, (own - other) if measures is first else 0, own)
        for broker, sign in zip(ways, (-1, 1), strict=True):
            there = np.full(len(first), broker)
            farther = bands.farther(measures, there, placement.loads[measures, there], sign * load)
            change += bands.asked[measures] * farther
    return change


def pair_change(
    placement: Placement, bands: Bands, pair: tuple[int, int], rows: tuple[Ints, Ints], *, leads_alone: bool = False
) -> Floats:
    """Return how much closer bands come (negative) when the first rows leave the first broker for the second.

    The second rows take the opposite way. `leads_alone`: both brokers keep their replicas, and take the other's leads.
    """
    weights, (instead, back) = placement.task.weights, rows
    change = np.zeros((2, len(back)))
    led = [placement.leader[row] == broker for row, broker in zip(rows, pair, strict=True)]
    for measure in np.flatnonzero(bands.asked[:TOPICS]).tolist():
        moved = weights.leader[back, measure] * led[1] - weights.leader[instead, measure] * led[0]
        if not leads_alone:
            moved = moved + weights.replica[back, measure] - weights.replica[instead, measure]
        for broker, load in ((pair[0], moved), (pair[1], -moved)) if moved.any() else ():
            there = np.full(len(back), broker)
            change += bands.farther(measure, there, placement.loads[measure, there], load)
    if placement.task.topics and not leads_alone:
        one = np.ones_like(back)
        change += _change_of_topics(placement, bands, pair, rows, (one, one), leads=False)
    if placement.task.topics:
        first, second = (each.astype(np.int64) for each in led)
        change += _change_of_topics(placement, bands, pair, rows, (first, second), leads=True)
    return bands.weighed(change)


def dearer(placement: Placement, goal: Goal, found: Exchanges) -> Floats:
    """Return how much more each exchange costs."""
    task, row = placement.task, found.row
    arriving, leaving = ~task.held[row, found.arriving], ~task.held[row, found.leaving]
    copies = np.where(task.is_new[row] | found.is_lead, 0, arriving.astype(np.int64) - leaving)
    leader = placement.leader[row]
    then = np.where(found.is_lead | (leader == found.leaving), found.arriving, leader)
    changes = (then != task.leader[row]).astype(np.int64) - (leader != task.leader[row])
    cost: Floats = (copies * goal.copy[row] + np.where(task.is_new[row], 0, changes) * goal.change).astype(np.float64)
    return cost
