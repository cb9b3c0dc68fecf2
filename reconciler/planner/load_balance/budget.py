"""Goes as far towards a whole balance of loads as a budget of bytes allows: first what is mended, then what helps most.

Where the budget is not enough for the whole plan, its moves are taken one by one, those first that bring loads nearer
to the bands for the fewest bytes. Each partition has its set of the plan that mends alone, or that of the whole plan,
so rules hold whichever it is. That is no optimum. What bounds it is the whole plan's own proof: whatever keeps the
bands copies its lower bound at least.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from reconciler.model.budget import Budgeted, Way
from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.task import MEASURES, OF_SETS, TOPICS, LoadTask

ROUNDING = 1e-9
"""What is outside is a sum of floats: it is less only if it is by more than their rounding."""


def mended_start(whole: Placement, mended: Bools) -> Placement:
    """Return where to begin: the mended sets [rows, brokers], or the whole plan's where they copy no more."""
    task = whole.task
    is_as_cheap = _copied(task, whole.members) <= _copied(task, mended)
    members = np.where(is_as_cheap[:, None], whole.members, mended)
    return Placement(task, members, task.leaders_of(members))


def towards(start: Placement, whole: Placement, bands: Bands, budget: int) -> None:
    """Take rows of the whole plan into `start`, those first that bring most a byte, as long as the budget lasts.

    A row that takes loads farther from the bands may have to go before others: all that the budget allows go, and the
    last ones come back as far as the way was best before them.
    """
    task, wanted = start.task, bands.only(*OF_SETS)
    extra = _copied(task, whole.members) - _copied(task, start.members)
    left = budget - int(_copied(task, start.members).sum())

    def worth(row: int) -> float:
        return -_gain(start, whole, wanted, row) / max(1, int(extra[row]))

    queue = [(worth(row), row) for row in np.flatnonzero((start.members != whole.members).any(axis=1)).tolist()]
    heapify(queue)
    gone: list[tuple[int, Ints, int]] = []
    best, least = 0, wanted.outside(start.loads).sum()
    while queue:
        _, row = heappop(queue)
        now = worth(row)
        if extra[row] > left:
            continue
        if queue and now > queue[0][0]:
            heappush(queue, (now, row))
            continue
        gone.append((row, np.flatnonzero(start.members[row]), int(start.leader[row])))
        start.put(row, np.flatnonzero(whole.members[row]), _leader_of(start, whole, row))
        left -= int(extra[row])
        outside = wanted.outside(start.loads).sum()
        if outside < least * (1 - ROUNDING):
            best, least = len(gone), outside
    for row, members, leader in reversed(gone[best:]):
        start.put(row, members, leader)


def budgeted_loads(sides: tuple[Placement, Placement, Placement], bands: Bands, most: int, forced: int) -> Budgeted:
    """Return what is told of a plan within the budget, from where rules are mended, this plan's end, and the whole's.

    `forced` bytes are no choice of any plan.
    """
    outside = [np.abs(bands.excess(side.loads)).sum(axis=1).tolist() for side in sides]
    asked = np.flatnonzero(bands.asked[:TOPICS]).tolist()
    ways = [Way(MEASURES[measure], *(of_side[measure] for of_side in outside)) for measure in asked]
    if bands.asked[TOPICS:].any():
        ways.append(Way("topics", *(sum(of_side[TOPICS:]) for of_side in outside)))
    mended, _, whole = (forced + copied_bytes(side) for side in sides)
    return Budgeted(most, mended, whole, tuple(ways))


def copied_bytes(side: Placement) -> int:
    """Return the bytes that a placement copies."""
    return int(_copied(side.task, side.members).sum())


def _copied(task: LoadTask, members: Bools) -> Ints:
    copies: Ints = (members & ~task.held & ~task.is_new[:, None]).sum(axis=1) * task.size
    return copies


def _leader_of(start: Placement, whole: Placement, row: int) -> int:
    """Return the leader of a row that takes the whole plan's set: the one of now where it may, so that few change."""
    leader = int(start.leader[row])
    is_fine = whole.members[row, leader] and start.task.leading[row, leader]
    return leader if is_fine else int(whole.leader[row])


def _gain(start: Placement, whole: Placement, wanted: Bands, row: int) -> float:
    """Return by how much loads come nearer to the bands, in parts of fair shares, where this row moves."""
    changed = np.flatnonzero(start.members[row] != whole.members[row])
    before = start.loads[:TOPICS, changed]
    sign = np.where(whole.members[row, changed], 1, -1)
    moved = start.task.weights.replica[row][:, None] * sign
    farther = (
        wanted.farther(measure, changed, before[measure], moved[measure])[0].sum()
        for measure in np.flatnonzero(wanted.asked).tolist()
    )
    return -float(sum(farther))
