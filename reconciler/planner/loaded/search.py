"""Whole placements: rounding what the relaxation took in parts, then single exchanges until the bands are kept."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.planner.loaded.arrays import Bools, Floats, Ints
from reconciler.planner.loaded.bands import Bands
from reconciler.planner.loaded.relax import Goal, Relaxed
from reconciler.planner.loaded.task import LEADER_MEASURES, MEASURES, Task

STEPS = 4000
MOST_TRADED = 300
SWEEPS = 20
WORTH_IT = 20_000
"""What one saving must come to, as a part of all that is copied: one such part."""
HARDLY = 1e-9
PART = 1e-6


class Placement:
    """Where every row is: `members` [rows, brokers], `leader` [rows], and the loads [measures, brokers] that follow."""

    def __init__(self, task: Task, members: Bools, leader: Ints) -> None:
        self.task, self.members, self.leader = task, members.copy(), leader.copy()
        self.loads = task.loads(members, leader)

    def put(self, row: int, members: Ints, leader: int) -> None:
        """Place one row anew."""
        weights = self.task.weights
        self.loads[:, self.members[row]] -= weights.replica[row][:, None]
        self.loads[:, self.leader[row]] -= weights.leader[row]
        self.members[row] = False
        self.members[row, members] = True
        self.leader[row] = leader
        self.loads[:, self.members[row]] += weights.replica[row][:, None]
        self.loads[:, leader] += weights.leader[row]

    def exchange(self, row: int, leaving: int, arriving: int) -> None:
        """Let one broker take the place of another, as leader too; the same broker twice makes it the leader."""
        members = self.members[row].copy()
        leader = arriving if leaving == arriving or self.leader[row] == leaving else int(self.leader[row])
        if leaving != arriving:
            members[leaving], members[arriving] = False, True
        self.put(row, np.flatnonzero(members), leader)


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Candidates, one a place: `row`; `leaving` and `arriving` brokers, `is_lead`: whether only the leader changes."""

    row: Ints
    leaving: Ints
    arriving: Ints
    is_lead: Bools


def outside(bands: Bands, loads: Ints) -> Floats:
    """Return [measures, brokers]: what is outside the bands, in parts of the fair share."""
    found: Floats = np.abs(bands.excess(loads)) / bands.share
    return found


def rounded(task: Task, bands: Bands, relaxed: Relaxed, fallback: tuple[Bools, Ints]) -> Placement:
    """Return whole placements: what is taken whole, then the largest first of the rest whatever keeps the bands best.

    `fallback` has the members and leaders of rows of which nothing was taken.
    """
    members, leader = fallback
    placement = Placement(task, members, leader)
    options: dict[int, list[int]] = {}
    for number in np.flatnonzero(relaxed.taken > PART).tolist():
        options.setdefault(relaxed.columns[number].row, []).append(number)
    parted = []
    for row, numbers in sorted(options.items()):
        largest = max(numbers, key=lambda number: (round(float(relaxed.taken[number]), 6), -number))
        if relaxed.taken[largest] > 1 - PART:
            column = relaxed.columns[largest]
            placement.put(row, np.array(column.members, dtype=np.int64), column.leader)
        else:
            parted.append(row)
    parted.sort(key=lambda row: (-int(task.size[row]), -int(task.weights.replica[row].sum()), row))
    for row in parted:
        _put_best(placement, bands, relaxed, row, options[row])
    return placement


def _put_best(placement: Placement, bands: Bands, relaxed: Relaxed, row: int, numbers: list[int]) -> None:
    task = placement.task
    choices = [(0, relaxed.columns[number].members, relaxed.columns[number].leader) for number in numbers]
    if task.stays[row]:
        choices.insert(0, (0, tuple(np.flatnonzero(task.held[row]).tolist()), int(task.leader[row])))
    worth = []
    for _, members, leader in choices:
        placement.put(row, np.array(members, dtype=np.int64), leader)
        worth.append(float(outside(bands, placement.loads).sum()))
    best = worth.index(min(worth))
    placement.put(row, np.array(choices[best][1], dtype=np.int64), choices[best][2])


def repair(placement: Placement, bands: Bands, goal: Goal, *, kinds: tuple[bool, bool]) -> None:
    """Make single exchanges, each the cheapest for how much closer it brings the bands, until none brings any closer.

    `kinds`: whether replicas may go to other brokers, and whether leaders may change places.
    """
    stuck: set[tuple[int, int]] = set()
    for _ in range(STEPS):
        now = outside(bands, placement.loads)
        where = next((place for place in _worst_first(now) if place not in stuck), None)
        if where is None:
            return
        found = _candidates(placement, bands, *where, kinds=kinds)
        change = _closer(placement, bands, found)
        cost = _dearer(placement, goal, found)
        useful = np.flatnonzero(change < -HARDLY)
        if not len(useful):
            if (kinds[1] and _swap_leaders(placement, bands, *where)) or (
                kinds[0] and _swap_replicas(placement, bands, where[1])
            ):
                stuck.clear()
            else:
                stuck.add(where)
            continue
        floor = max(1.0, float(goal.copy.mean()) + goal.change) * 1e-3
        score = (cost[useful] + floor) / -change[useful]
        best = int(useful[score.argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))
        stuck.clear()


def _swap_replicas(placement: Placement, bands: Bands, broker: int) -> bool:
    """Let this broker and another of its rack trade replicas; false where no pair brings the bands closer."""
    task = placement.task
    best: tuple[float, int, int, int] | None = None
    for other in task.columns[int(task.bench.rack[broker])].tolist():
        if other == broker:
            continue
        out, into = (_tradable(placement, *pair) for pair in ((broker, other), (other, broker)))
        if not len(out) or not len(into):
            continue
        away, back = (each.ravel() for each in np.meshgrid(out, into, indexing="ij"))
        change = _pair_change(placement, bands, (other, broker), (back, away))
        pair = int(change.argmin())
        if change[pair] < -HARDLY and (best is None or change[pair] < best[0]):
            best = (float(change[pair]), int(away[pair]), int(back[pair]), other)
    if best is None:
        return False
    _, away_row, back_row, other = best
    placement.exchange(away_row, broker, other)
    placement.exchange(back_row, other, broker)
    return True


def _tradable(placement: Placement, giver: int, taker: int) -> Ints:
    """Return rows of which the giver's replica may go to the taker; the largest, where there are many."""
    task = placement.task
    may = placement.members[:, giver] & ~task.forced[:, giver] & task.allowed[:, taker] & ~placement.members[:, taker]
    rows = np.flatnonzero(may & _may_follow(placement, giver, taker))
    if len(rows) > MOST_TRADED:
        order = np.argsort(-task.size[rows], kind="stable")
        rows = np.sort(rows[order[:MOST_TRADED]])
    return rows


def _swap_leaders(placement: Placement, bands: Bands, measure: int, broker: int) -> bool:
    """Let this broker and another trade the lead of two partitions that both hold; false where no pair is closer."""
    task = placement.task
    if not task.weights.leader[:, measure].any():
        return False
    best: tuple[float, int, int, int] | None = None
    may = placement.members & task.leading
    given = np.flatnonzero(placement.leader == broker)
    for other in range(task.brokers):
        out, into = given[may[given, other]], np.flatnonzero((placement.leader == other) & may[:, broker])
        if other == broker or not len(out) or not len(into):
            continue
        away, back = (each.ravel() for each in np.meshgrid(out, into, indexing="ij"))
        change = np.zeros(len(away))
        for one in LEADER_MEASURES:
            if bands.asked[one]:
                moved = task.weights.leader[back, one] - task.weights.leader[away, one]
                change += _step(placement, bands, one, np.full(len(away), broker), moved)
                change += _step(placement, bands, one, np.full(len(away), other), -moved)
        pair = int(change.argmin())
        if change[pair] < -HARDLY and (best is None or change[pair] < best[0]):
            best = (float(change[pair]), int(away[pair]), int(back[pair]), other)
    if best is None:
        return False
    _, away_row, back_row, other = best
    placement.exchange(away_row, other, other)
    placement.exchange(back_row, broker, broker)
    return True


def spare(placement: Placement, bands: Bands, goal: Goal, *, copies: bool = True) -> None:
    """Take back what the bands do not need, the dearest first: changes of leader and, if asked to, copies."""
    for _ in range(STEPS):
        found = _joined([_ways_back(placement), _leaders_back(placement)] if copies else [_leaders_back(placement)])
        change, cost = _closer(placement, bands, found), _dearer(placement, goal, found)
        useful = np.flatnonzero((change <= 0) & (cost < 0))
        if not len(useful):
            return
        best = int(useful[cost[useful].argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))


def trim(placement: Placement, bands: Bands, goal: Goal) -> None:
    """Let a smaller partition move in the place of a larger one, where the bands allow, until none saves anything."""
    task = placement.task
    copied = (placement.members & ~task.held & ~task.is_new[:, None]).sum(axis=1)
    least = max(1, int((copied * goal.copy).sum()) // WORTH_IT)
    active = list(range(task.brokers))
    for _ in range(SWEEPS):
        active = [broker for broker in active if _trim_broker(placement, bands, goal, broker, least)]


def _trim_broker(placement: Placement, bands: Bands, goal: Goal, broker: int, least: int) -> bool:
    """Exchange the pair that saves most of what leaves this broker; false where none saves anything."""
    task = placement.task
    best: tuple[float, int, int, int] | None = None
    gone = task.held[:, broker] & ~placement.members[:, broker] & task.allowed[:, broker] & ~task.is_new
    there = task.held[:, broker] & placement.members[:, broker] & ~task.forced[:, broker]
    for other in task.columns[int(task.bench.rack[broker])].tolist():
        came = gone & placement.members[:, other] & ~task.held[:, other] & ~task.forced[:, other]
        out = np.flatnonzero(came & _may_follow(placement, other, broker))
        may = there & task.allowed[:, other] & ~placement.members[:, other] & ~task.held[:, other]
        into = np.flatnonzero(may & _may_follow(placement, broker, other))
        if not len(out) or not len(into):
            continue
        saved = goal.copy[into][None, :] - goal.copy[out][:, None]
        back, instead = np.nonzero(saved <= -least)
        if len(back):
            found = _best_pair(placement, bands, (broker, other), (out[back], into[instead]), saved[back, instead])
            if found is not None and (best is None or found[0] < best[0]):
                best = (*found, other)
    if best is None:
        return False
    _, back_row, instead_row, other = best
    placement.exchange(back_row, other, broker)
    placement.exchange(instead_row, broker, other)
    return True


def _may_follow(placement: Placement, leaving: int, arriving: int) -> Bools:
    """Return [rows] whether the broker that arrives may do what the one that leaves does: lead, or follow."""
    task = placement.task
    leads = placement.leader == leaving
    may: Bools = ~leads | task.leading[:, arriving] | ~task.leading[:, leaving]
    may &= leads | task.leading[np.arange(len(leads)), placement.leader] | ~task.leading[:, arriving]
    return may


def _best_pair(
    placement: Placement, bands: Bands, pair: tuple[int, int], rows: tuple[Ints, Ints], saved: Ints
) -> tuple[float, int, int] | None:
    back, instead = rows
    change = _pair_change(placement, bands, pair, (instead, back))
    useful = np.flatnonzero(change <= 0)
    if not len(useful):
        return None
    best = int(useful[saved[useful].argmin()])
    return float(saved[best]), int(back[best]), int(instead[best])


def _pair_change(placement: Placement, bands: Bands, pair: tuple[int, int], rows: tuple[Ints, Ints]) -> Floats:
    """Return how much closer bands come (negative) when the first rows leave the first broker for the second.

    The second rows take the opposite way.
    """
    weights, (instead, back) = placement.task.weights, rows
    change = np.zeros(len(back))
    for measure in np.flatnonzero(bands.asked).tolist():
        moved = weights.replica[back, measure] - weights.replica[instead, measure]
        moved = moved + weights.leader[back, measure] * (placement.leader[back] == pair[1])
        moved = moved - weights.leader[instead, measure] * (placement.leader[instead] == pair[0])
        for broker, load in ((pair[0], moved), (pair[1], -moved)):
            change += _step(placement, bands, measure, np.full(len(back), broker), load)
    return change


def _worst_first(now: Floats) -> Iterator[tuple[int, int]]:
    order = np.argsort(-now.ravel(), kind="stable")
    for place in order.tolist():
        if now.ravel()[place] <= HARDLY:
            return
        yield divmod(place, now.shape[1])


def _candidates(
    placement: Placement, bands: Bands, measure: int, broker: int, *, kinds: tuple[bool, bool]
) -> Exchanges:
    """Return the exchanges that bring this broker's load of that measure towards its band."""
    task = placement.task
    is_above = bool(placement.loads[measure, broker] > bands.high[measure, broker])
    is_of_leaders = bool(task.weights.leader[:, measure].any())
    parts = []
    if kinds[0]:
        parts.append(_replica_exchanges(placement, broker, is_above=is_above, leaders_only=is_of_leaders))
    if kinds[1] and is_of_leaders:
        parts.append(_leader_changes(placement, broker, is_above=is_above))
    return _joined(parts)


def _joined(parts: list[Exchanges]) -> Exchanges:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Exchanges(none, none, none, none.astype(np.bool_))
    return Exchanges(
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.leaving for part in parts]),
        np.concatenate([part.arriving for part in parts]),
        np.concatenate([part.is_lead for part in parts]),
    )


def _replica_exchanges(placement: Placement, broker: int, *, is_above: bool, leaders_only: bool) -> Exchanges:
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
    rack = task.bench.rack
    gone, come = rack[leaving], rack[arriving]
    fine = gone == come
    if not fine.all():
        count = np.stack([placement.members[:, columns].sum(axis=1) for columns in task.columns], axis=1)
        fine |= (count[row, gone] > task.low[row, gone]) & (count[row, come] < task.high[row, come])
    was_leader = placement.leader[row] == leaving
    leads = task.leading[row, arriving] | ~task.leading[row, leaving] & task.leading_at_need[row, arriving]
    fine &= ~was_leader | leads
    # A set of brokers in maintenance may lead only while no other replica can: such a set gets no better replica here.
    fine &= task.leading[row, placement.leader[row]] | was_leader | ~task.leading[row, arriving]
    return Exchanges(row[fine], leaving[fine], arriving[fine], np.zeros(int(fine.sum()), dtype=np.bool_))


def _leader_changes(placement: Placement, broker: int, *, is_above: bool) -> Exchanges:
    task = placement.task
    may = placement.members & task.leading
    if is_above:
        rows = np.flatnonzero(placement.leader == broker)
        others = may[rows].copy()
        others[:, broker] = False
        at, arriving = np.nonzero(others)
        row = rows[at]
    else:
        row = np.flatnonzero(may[:, broker] & (placement.leader != broker))
        arriving = np.full(len(row), broker)
    return Exchanges(row, arriving, arriving, np.ones(len(row), dtype=np.bool_))


def _ways_back(placement: Placement) -> Exchanges:
    """Return the exchanges of a new replica for one that is there today."""
    task = placement.task
    back = task.held & task.allowed & ~placement.members
    new = placement.members & ~task.held & ~task.forced
    rows = np.flatnonzero(back.any(axis=1) & new.any(axis=1))
    at, arriving = np.nonzero(back[rows])
    pair, leaving = np.nonzero(new[rows[at]])
    return _legal(placement, rows[at][pair], leaving, arriving[pair])


def _leaders_back(placement: Placement) -> Exchanges:
    """Return the changes of leader back to the present one."""
    task = placement.task
    present = np.maximum(task.leader, 0)
    rows = np.arange(len(present))
    may = (task.leader >= 0) & (placement.leader != task.leader) & ~task.is_new
    row = np.flatnonzero(may & placement.members[rows, present] & task.leading[rows, present])
    return Exchanges(row, present[row], present[row], np.ones(len(row), dtype=np.bool_))


def _closer(placement: Placement, bands: Bands, found: Exchanges) -> Floats:
    """Return by how much each exchange brings loads closer to the bands (negative), in parts of fair shares."""
    task, row = placement.task, found.row
    change = np.zeros(len(row))
    was_leader = (placement.leader[row] == found.leaving) | found.is_lead
    from_leader = np.where(found.is_lead, placement.leader[row], found.leaving)
    for measure in range(len(MEASURES)):
        if not bands.asked[measure]:
            continue
        carried = task.weights.replica[row, measure] * ~found.is_lead + task.weights.leader[row, measure] * was_leader
        for broker, moved in ((from_leader, -carried), (found.arriving, carried)):
            change += _step(placement, bands, measure, broker, moved)
    return change


def _step(placement: Placement, bands: Bands, measure: int, broker: Ints, moved: Ints) -> Floats:
    low, high = bands.low[measure, broker], bands.high[measure, broker]
    before = placement.loads[measure, broker]
    after = before + moved
    outside_after = np.maximum(after - high, 0) + np.maximum(low - after, 0)
    outside_before = np.maximum(before - high, 0) + np.maximum(low - before, 0)
    step: Floats = (outside_after - outside_before) / bands.share[measure, broker]
    return step


def _dearer(placement: Placement, goal: Goal, found: Exchanges) -> Floats:
    """Return how much more each exchange costs."""
    task, row = placement.task, found.row
    arriving, leaving = ~task.held[row, found.arriving], ~task.held[row, found.leaving]
    copies = np.where(task.is_new[row] | found.is_lead, 0, arriving.astype(np.int64) - leaving)
    leader = placement.leader[row]
    then = np.where(found.is_lead | (leader == found.leaving), found.arriving, leader)
    changes = (then != task.leader[row]).astype(np.int64) - (leader != task.leader[row])
    cost: Floats = (copies * goal.copy[row] + np.where(task.is_new[row], 0, changes) * goal.change).astype(np.float64)
    return cost
