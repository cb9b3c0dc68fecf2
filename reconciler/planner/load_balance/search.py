"""Makes placements whole: rounds what the relaxation took in parts, then exchanges until the bands are kept."""

from collections.abc import Iterator

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Column, Goal, Solved
from reconciler.planner.load_balance.exchanges import (
    Exchanges,
    Placement,
    closer,
    dearer,
    joined,
    leader_changes,
    leaders_back,
    may_follow,
    pair_change,
    replica_exchanges,
    ways_back,
)
from reconciler.planner.load_balance.task import LEADER_IN, TOPICS, LoadTask
from reconciler.planner.rows import Floats

STEPS, ROWS_A_STEP = 4000, 8
"""Exchanges at the most, or one for so many partitions, so that the work is finite whatever the bands are."""
HARDLY = 1e-9
"""A part of a fair share that is no more than the rounding of a few sums."""
PART = 1e-6
"""A part of a column that the simplex may leave by rounding: below it nothing, within it of 1 the whole, is taken."""


def rounded(placement: Placement, bands: Bands, solved: Solved) -> Placement:
    """Return the placement with what is taken whole, then the largest first of the rest whatever keeps the bands best.

    Rows of which nothing was taken stay.
    """
    task = placement.task
    parted: dict[int, list[Column]] = {}
    for number in np.flatnonzero(solved.taken > PART).tolist():
        column = solved.columns[number]
        if solved.taken[number] > 1 - PART:
            placement.put(column.row, np.array(column.members, dtype=np.int64), column.leader)
        else:
            parted.setdefault(column.row, []).append(column)
    for row in sorted(parted, key=lambda row: (-int(task.size[row]), -int(task.weights.replica[row].sum()), row)):
        _put_best(placement, bands, row, parted[row])
    return placement


def _put_best(placement: Placement, bands: Bands, row: int, columns: list[Column]) -> None:
    task = placement.task
    choices = [(np.array(column.members, dtype=np.int64), column.leader) for column in columns]
    if task.stays[row]:
        choices.insert(0, (np.flatnonzero(task.held[row]), int(task.leader[row])))

    def outside(choice: tuple[Ints, int]) -> tuple[float, float]:
        placement.put(row, *choice)
        return bands.distance(placement.loads)

    placement.put(row, *min(choices, key=outside))


def repair(placement: Placement, bands: Bands, goal: Goal, *, replicas: bool, leaders: bool) -> None:
    """Make single exchanges, each the cheapest for how much closer it brings the bands, until none brings any closer.

    `replicas`: they may go to other brokers. `leaders`: they may change places.
    """
    task = placement.task
    stuck: set[tuple[int, int]] = set()
    for _ in range(max(STEPS, len(goal.copy) // ROWS_A_STEP)):
        now = bands.outside(placement.loads)
        where = next((place for place in _worst_first(now) if place not in stuck), None)
        if where is None:
            return
        found = _candidates(placement, bands, *where, replicas=replicas, leaders=leaders)
        change = closer(placement, bands, found)
        cost = dearer(placement, goal, found)
        useful = np.flatnonzero(change < -HARDLY)
        if not len(useful):
            are_leads = leaders and _is_of_leaders(task, where[0])
            is_traded = are_leads and _trade_leads(placement, bands, where[1])
            if are_leads and not is_traded and where[0] >= TOPICS:
                is_traded = _pass_on(placement, bands, where)
            if is_traded or (replicas and _trade_replicas(placement, bands, where)):
                stuck.clear()
            else:
                stuck.add(where)
            continue
        floor = max(1.0, float(goal.copy.mean()) + goal.change) * 1e-3
        score = (cost[useful] + floor) / -change[useful]
        best = int(useful[score.argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))
        stuck.clear()


def spare(placement: Placement, bands: Bands, goal: Goal, *, copies: bool = True) -> None:
    """Take back what the bands do not need, the dearest first: changes of leader and, if asked to, copies."""
    for _ in range(max(STEPS, len(goal.copy) // ROWS_A_STEP)):
        found = joined([ways_back(placement), leaders_back(placement)] if copies else [leaders_back(placement)])
        change, cost = closer(placement, bands, found), dearer(placement, goal, found)
        useful = np.flatnonzero((change <= 0) & (cost < 0))
        if not len(useful):
            return
        best = int(useful[cost[useful].argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))


def _worst_first(now: Floats) -> Iterator[tuple[int, int]]:
    order = np.argsort(-now.ravel(), kind="stable")
    for place in order.tolist():
        if now.ravel()[place] <= HARDLY:
            return
        yield divmod(place, now.shape[1])


def _candidates(
    placement: Placement, bands: Bands, measure: int, broker: int, *, replicas: bool, leaders: bool
) -> Exchanges:
    """Return the exchanges that bring this broker's load of that measure towards its band."""
    task = placement.task
    is_above = bool(placement.loads[measure, broker] > bands.high[measure, broker])
    is_of_leaders = _is_of_leaders(task, measure)
    # What leaders take in, and a topic's leads, are evened by order alone; only a rule is worth a copy.
    is_by_order = measure == LEADER_IN or (measure >= TOPICS and is_of_leaders)
    may_copy = replicas and (not is_by_order or bool(bands.above_caps(placement.loads)[measure].any()))
    parts = []
    if may_copy:
        parts.append(replica_exchanges(placement, broker, is_above=is_above, leaders_only=is_of_leaders))
    if leaders and is_of_leaders:
        parts.append(leader_changes(placement, broker, is_above=is_above))
    return joined(parts)


def _is_of_leaders(task: LoadTask, measure: int) -> bool:
    """Whether leaders carry anything of that measure."""
    if measure >= TOPICS:
        return measure in task.of_leaders
    return bool(task.weights.leader[:, measure].any())


def _pass_on(placement: Placement, bands: Bands, where: tuple[int, int]) -> bool:
    """Let a topic's leads go on from broker to broker, along the shortest way; undone where nothing is closer."""
    (measure, broker), task = where, placement.task
    count, low, high = (each[measure] for each in (placement.loads, bands.low, bands.high))
    is_above = bool(count[broker] > high[broker])
    ends = (count < high) if is_above else (count > low)
    rows = np.flatnonzero(task.of_topic(np.arange(len(task.topic)), leads=True) == measure)
    rank = task.rank[rows]
    may = placement.members[rows] & (rank == rank[np.arange(len(rows)), placement.leader[rows]][:, None])
    # From a broker that has too many leads to one with room for another; or back from one that has too few.
    came: dict[int, tuple[int, int]] = {}
    queue = [broker]
    for here in queue:
        if ends[here] and here != broker:
            break
        there = (placement.leader[rows] == here) if is_above else may[:, here]
        for one in np.flatnonzero(there).tolist():
            others = np.flatnonzero(may[one]).tolist() if is_above else [int(placement.leader[rows[one]])]
            for other in others:
                if other != broker and other not in came:
                    came[other] = here, int(rows[one])
                    queue.append(other)
    end = next((each for each in queue if each != broker and ends[each]), None)
    if end is None:
        return False
    before, undo = float(bands.outside(placement.loads).sum()), []
    while end != broker:
        other, row = came[end]
        undo.append((row, int(placement.leader[row])))
        new = end if is_above else other
        placement.exchange(row, new, new)
        end = other
    if float(bands.outside(placement.loads).sum()) < before - HARDLY:
        return True
    for row, leader in reversed(undo):
        placement.exchange(row, leader, leader)
    return False


def _trade_leads(placement: Placement, bands: Bands, broker: int) -> bool:
    """Let this broker and another trade the leads of two partitions that both hold; false where no pair is closer."""
    rank = placement.task.rank
    may = placement.members & (rank == rank[np.arange(len(rank)), placement.leader][:, None])
    trades = []
    for other in np.flatnonzero(np.arange(placement.task.brokers) != broker).tolist():
        given = np.flatnonzero((placement.leader == broker) & may[:, other])
        taken = np.flatnonzero((placement.leader == other) & may[:, broker])
        away, back = (each.ravel() for each in np.meshgrid(given, taken, indexing="ij"))
        if len(away):
            change = pair_change(placement, bands, (broker, other), (away, back), leads_alone=True)
            pair = int(change.argmin())
            trades.append((float(change[pair]), int(away[pair]), int(back[pair]), other))
    closest = min(trades, key=lambda trade: trade[0], default=None)
    if closest is None or closest[0] >= -HARDLY:
        return False
    _, gone, come, other = closest
    placement.exchange(gone, other, other)
    placement.exchange(come, broker, broker)
    return True


SIDE = 128
"""So many partitions of each of two brokers are weighed for a trade, from the lightest to the heaviest."""


def _trade_replicas(placement: Placement, bands: Bands, where: tuple[int, int]) -> bool:
    """Let this broker and another trade replicas of two partitions; false where no pair is closer.

    Near a cap few single replicas fit; nor do they where a broker weighs much in one measure and little in others.
    Brokers that weigh alike do without such trades: their plans stay what they were.
    """
    measure, broker = where
    task = placement.task
    if task.eligible.is_uniform and not bands.above_caps(placement.loads)[where]:
        return False
    carried, count = task.weight_of(measure), task.by_rack(placement.members)
    best: tuple[float, int, int, int] = (-HARDLY, -1, -1, -1)
    for other in np.flatnonzero(np.arange(task.brokers) != broker).tolist():
        gone, come = (_some(np.flatnonzero(each), carried) for each in _tradable(placement, count, broker, other))
        given, taken = (each.ravel() for each in np.meshgrid(gone, come, indexing="ij"))
        if len(given):
            change = pair_change(placement, bands, (broker, other), (given, taken))
            pair = int(change.argmin())
            best = min(best, (float(change[pair]), int(given[pair]), int(taken[pair]), other))
    _, given_row, taken_row, other = best
    if other < 0:
        return False
    placement.exchange(given_row, broker, other)
    placement.exchange(taken_row, other, broker)
    return True


def _some(rows: Ints, carried: Ints) -> Ints:
    """Return at most SIDE of these rows, evenly spaced by what they carry."""
    if len(rows) <= SIDE:
        return rows
    order = rows[np.lexsort((rows, carried[rows]))]
    return order[np.arange(SIDE) * (len(rows) - 1) // (SIDE - 1)]


def _tradable(placement: Placement, count: Ints, one: int, other: int) -> tuple[Bools, Bools]:
    """Return [rows] what may go from the first broker to the other, and what may go the opposite way.

    `count` [rows, racks]: replicas now.
    """
    task, members = placement.task, placement.members
    racks = task.eligible.rack[[one, other]]
    found = []
    for leaving, arriving in ((one, other), (other, one)):
        may = members[:, leaving] & ~task.forced[:, leaving] & task.allowed[:, arriving] & ~members[:, arriving]
        may &= may_follow(placement, leaving, arriving)
        if racks[0] != racks[1]:
            gone, come = task.eligible.rack[leaving], task.eligible.rack[arriving]
            may &= (count[:, gone] > task.low[:, gone]) & (count[:, come] < task.high[:, come])
        found.append(may)
    return found[0], found[1]


SWEEPS = 20
"""Rounds over the brokers: only brokers that saved something stay for the next."""
WORTH_IT = 20_000
"""What one saving must come to, as a part of all that is copied: one such part."""


def trim(placement: Placement, bands: Bands, goal: Goal) -> None:
    """Let a smaller partition move in the place of a larger one, where the bands allow, until none saves anything."""
    least = max(1, int((placement.copies * goal.copy).sum()) // WORTH_IT)
    active = list(range(placement.task.brokers))
    for _ in range(SWEEPS):
        active = [broker for broker in active if _trim_broker(placement, bands, goal, broker, least)]


def _trim_broker(placement: Placement, bands: Bands, goal: Goal, broker: int, least: int) -> bool:
    """Exchange the pair that saves most of what leaves this broker; false where none saves anything."""
    best = min(_trades(placement, bands, goal, broker, least), key=lambda each: each[0], default=None)
    if best is None:
        return False
    _, back, instead, other = best
    placement.exchange(back, other, broker)
    placement.exchange(instead, broker, other)
    return True


def _trades(
    placement: Placement, bands: Bands, goal: Goal, broker: int, least: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield, for each other broker of the rack, the trade that saves most of what the bands allow.

    It is what that costs more, the row that comes back from the other broker, the one that goes there instead, and it.
    """
    task = placement.task
    gone = task.held[:, broker] & ~placement.members[:, broker] & task.allowed[:, broker] & ~task.is_new
    there = task.held[:, broker] & placement.members[:, broker] & ~task.forced[:, broker]
    for other in task.rack_brokers[int(task.eligible.rack[broker])].tolist():
        came = gone & placement.members[:, other] & ~task.held[:, other] & ~task.forced[:, other]
        may_go = there & task.allowed[:, other] & ~placement.members[:, other] & ~task.held[:, other]
        back = np.flatnonzero(came & may_follow(placement, other, broker))
        instead = np.flatnonzero(may_go & may_follow(placement, broker, other))
        cost = goal.copy[instead][None, :] - goal.copy[back][:, None]
        pair = np.nonzero(cost <= -least)
        cost, back, instead = cost[pair], back[pair[0]], instead[pair[1]]
        useful = np.flatnonzero(pair_change(placement, bands, (broker, other), (instead, back)) <= 0)
        if len(useful):
            best = int(useful[cost[useful].argmin()])
            yield int(cost[best]), int(back[best]), int(instead[best]), other
