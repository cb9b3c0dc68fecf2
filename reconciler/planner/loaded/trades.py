"""Two brokers trade: replicas or leads, where no single exchange helps; a small move instead of a large one."""

from typing import NamedTuple

import numpy as np

from reconciler.planner.loaded.arrays import Floats, Ints
from reconciler.planner.loaded.bands import Bands
from reconciler.planner.loaded.exchanges import Placement, may_follow, pair_change, step
from reconciler.planner.loaded.relax import Goal
from reconciler.planner.loaded.task import LEADER_MEASURES

MOST_TRADED = 300
SWEEPS = 20
WORTH_IT = 20_000
"""What one saving must come to, as a part of all that is copied: one such part."""
HARDLY = 1e-9


class _Trade(NamedTuple):
    """What a trade changes: the row that goes away to the broker `other`, and the row that comes back from it."""

    change: float
    away: int
    back: int
    other: int


def swap_replicas(placement: Placement, bands: Bands, broker: int) -> bool:
    """Let this broker and another of its rack trade replicas; false where no pair brings the bands closer."""
    task = placement.task
    best: _Trade | None = None
    for other in task.columns[int(task.bench.rack[broker])].tolist():
        if other == broker:
            continue
        out, into = (_tradable(placement, *pair) for pair in ((broker, other), (other, broker)))
        if not len(out) or not len(into):
            continue
        away, back = _pairs(out, into)
        change = pair_change(placement, bands, (other, broker), (back, away))
        best = _better(best, change, (away, back), other)
    if best is None:
        return False
    placement.exchange(best.away, broker, best.other)
    placement.exchange(best.back, best.other, broker)
    return True


def _pairs(out: Ints, into: Ints) -> tuple[Ints, Ints]:
    """Return every pair of a row of each."""
    away, back = np.meshgrid(out, into, indexing="ij")
    return away.ravel(), back.ravel()


def _better(best: _Trade | None, change: Floats, rows: tuple[Ints, Ints], other: int) -> _Trade | None:
    """Return the pair that changes most for the better, where it is worth a word and beats the best so far."""
    pair = int(change.argmin())
    if change[pair] >= -HARDLY or (best is not None and change[pair] >= best.change):
        return best
    away, back = rows
    return _Trade(float(change[pair]), int(away[pair]), int(back[pair]), other)


def _tradable(placement: Placement, giver: int, taker: int) -> Ints:
    """Return rows of which the giver's replica may go to the taker; the largest, where there are many."""
    task = placement.task
    may = placement.members[:, giver] & ~task.forced[:, giver] & task.allowed[:, taker] & ~placement.members[:, taker]
    rows = np.flatnonzero(may & may_follow(placement, giver, taker))
    if len(rows) > MOST_TRADED:
        order = np.argsort(-task.size[rows], kind="stable")
        rows = np.sort(rows[order[:MOST_TRADED]])
    return rows


def swap_leaders(placement: Placement, bands: Bands, measure: int, broker: int) -> bool:
    """Let this broker and another trade the lead of two partitions that both hold; false where no pair is closer."""
    task = placement.task
    if not task.weights.leader[:, measure].any():
        return False
    best: _Trade | None = None
    may = placement.members & task.leading
    given = np.flatnonzero(placement.leader == broker)
    for other in range(task.brokers):
        out, into = given[may[given, other]], np.flatnonzero((placement.leader == other) & may[:, broker])
        if other == broker or not len(out) or not len(into):
            continue
        away, back = _pairs(out, into)
        change = np.zeros(len(away))
        for one in LEADER_MEASURES:
            if bands.asked[one]:
                moved = task.weights.leader[back, one] - task.weights.leader[away, one]
                change += step(placement, bands, one, np.full(len(away), broker), moved)
                change += step(placement, bands, one, np.full(len(away), other), -moved)
        best = _better(best, change, (away, back), other)
    if best is None:
        return False
    placement.exchange(best.away, best.other, best.other)
    placement.exchange(best.back, broker, broker)
    return True


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
    best: _Trade | None = None
    gone = task.held[:, broker] & ~placement.members[:, broker] & task.allowed[:, broker] & ~task.is_new
    there = task.held[:, broker] & placement.members[:, broker] & ~task.forced[:, broker]
    for other in task.columns[int(task.bench.rack[broker])].tolist():
        came = gone & placement.members[:, other] & ~task.held[:, other] & ~task.forced[:, other]
        out = np.flatnonzero(came & may_follow(placement, other, broker))
        may = there & task.allowed[:, other] & ~placement.members[:, other] & ~task.held[:, other]
        into = np.flatnonzero(may & may_follow(placement, broker, other))
        if not len(out) or not len(into):
            continue
        saved = goal.copy[into][None, :] - goal.copy[out][:, None]
        back, instead = np.nonzero(saved <= -least)
        if len(back):
            found = _best_pair(placement, bands, (broker, other), (out[back], into[instead]), saved[back, instead])
            if found is not None and (best is None or found[0] < best.change):
                change, back_row, instead_row = found
                best = _Trade(change, instead_row, back_row, other)
    if best is None:
        return False
    placement.exchange(best.back, best.other, broker)
    placement.exchange(best.away, broker, best.other)
    return True


def _best_pair(
    placement: Placement, bands: Bands, pair: tuple[int, int], rows: tuple[Ints, Ints], saved: Ints
) -> tuple[float, int, int] | None:
    back, instead = rows
    change = pair_change(placement, bands, pair, (instead, back))
    useful = np.flatnonzero(change <= 0)
    if not len(useful):
        return None
    best = int(useful[saved[useful].argmin()])
    return float(saved[best]), int(back[best]), int(instead[best])
