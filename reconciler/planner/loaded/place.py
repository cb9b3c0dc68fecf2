"""The way in: slots and loads to ordered replica lists with the bands kept, and the prices that bound the bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.desired import Balance
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.demand import Bench, Slot, Still
from reconciler.planner.loaded.arrays import Bools, Ints
from reconciler.planner.loaded.bands import Bands, bands_of
from reconciler.planner.loaded.beam import within_bands
from reconciler.planner.loaded.cheapest import cheapest
from reconciler.planner.loaded.exchanges import Placement, outside
from reconciler.planner.loaded.relax import Goal, Relaxation, lower_bound
from reconciler.planner.loaded.search import repair, rounded, spare
from reconciler.planner.loaded.task import DISK, LEADERS, NETWORK_IN, NETWORK_OUT, REPLICAS, Task, task_of
from reconciler.planner.loaded.trades import trim

OF_SETS = (REPLICAS, DISK, NETWORK_IN)
OF_LEADERS = (LEADERS, NETWORK_OUT)
SAME_AGAIN = 6
FINER = 24
"""A mean copy is at least 2^23 of the cost's unit, so that copies and leaders can decide between equals."""
NARROWER = 4000
"""The bands are narrowed by one such part of their width while whole placements are looked for."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was placed: each task row's members [rows, brokers] and leader's column, the loads [measures, brokers].

    `bound` is a proven least of the objective over all placements that keep the rules and the bands, from `prices`
    [measures, brokers] in 2^-shift of its unit.
    """

    task: Task
    bands: Bands
    members: Bools
    leader: Ints
    loads: Ints
    bound: int
    prices: Ints
    shift: int

    @property
    def excess(self) -> Ints:
        """What stays above (positive) or below (negative) its band, [measures, brokers]."""
        return self.bands.excess(self.loads)


def place_loaded(
    slots: Sequence[Slot],
    still: Still,
    bench: Bench,
    balance: Balance,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
) -> Loaded:
    """Return a placement of all slots with something to choose that keeps every rule and, if it can be, every band.

    Of those the fewest bytes copied, within the gap that the bound shows; then the fewest copies, then leader changes.
    Where a size is unknown, copies are counted before bytes. `load_of`: disk bytes, bytes in and bytes out a second.
    """
    task = task_of(slots, still, bench, load_of)
    bands = bands_of(task, balance)
    is_size_known = all(slot.size is not None for slot in slots if not slot.is_new)
    if not len(task.need):
        loads = task.loads(task.held, task.leader)
        return Loaded(task, bands, task.held, task.leader, loads, 0, np.zeros_like(loads), 0)
    found, prices, shift = _placed(task, bands, is_size_known=is_size_known)
    for _ in range(SAME_AGAIN):
        if not _again(found, still, balance, load_of, is_size_known=is_size_known):
            break
    proven, prices = _bound(task, bands.as_wide_as(found.loads), prices, shift, is_size_known=is_size_known)
    told = shift + _finer(task, is_size_known=is_size_known)
    return Loaded(task, bands, found.members, found.leader, found.loads, proven, prices, told)


def _again(
    found: Placement,
    still: Still,
    balance: Balance,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
    *,
    is_size_known: bool,
) -> bool:
    """Plan again from the state reached, and follow; false where nothing moves any more.

    What a partition may choose can follow from where it is: its racks, a cordoned broker that it has left.
    """
    task, bench = found.task, found.task.bench
    lists = [
        (bench.ids[leader], *(bench.ids[column] for column in np.flatnonzero(members).tolist() if column != leader))
        for members, leader in zip(found.members, found.leader.tolist(), strict=True)
    ]
    rows = [row for row, slot in enumerate(task.slots) if not slot.fixed]
    slots = [replace(task.slots[row], replicas=lists[row]) for row in rows]
    decided = [(slot.topic_partition, lists[row]) for row, slot in enumerate(task.slots) if slot.fixed]
    next_task = task_of(slots, (*still, *decided), bench, load_of)
    # Explicit assignments are no rows of a task; what they carry is the rest of its base.
    next_task.base[:] += task.base - task_of((), still, bench, load_of).base
    if not len(next_task.need):
        return False
    again, *_ = _placed(next_task, bands_of(next_task, balance), is_size_known=is_size_known)
    changed = (again.members != found.members[rows]).any(axis=1) | (again.leader != found.leader[rows])
    for place in np.flatnonzero(changed).tolist():
        found.put(rows[place], np.flatnonzero(again.members[place]), int(again.leader[place]))
    return bool(changed.any())


def _goal(task: Task, *, is_size_known: bool) -> Goal:
    """Return bytes first, a copy and a change of leader as a small part of a mean copy; or copies first."""
    finer = _finer(task, is_size_known=is_size_known)
    if is_size_known:
        mean = int(task.size.mean()) << finer
        return Goal((task.size << finer) + mean // 10_000 + 1, mean // 100_000 + 1)
    return Goal((1 << finer) + 1000 * task.size // max(1, int(task.size.max())), 10)


def _finer(task: Task, *, is_size_known: bool) -> int:
    """Return of how many bits below a byte, or below one copy, the cost's unit is: what comes second needs room."""
    return max(0, FINER - int(task.size.mean()).bit_length()) if is_size_known else FINER


def _bound(task: Task, bands: Bands, prices: Ints, shift: int, *, is_size_known: bool) -> tuple[int, Ints]:
    """Return what these prices prove of bytes or copies alone, rounded up; or none where none prove more."""
    finer = _finer(task, is_size_known=is_size_known)
    copy = (task.size if is_size_known else np.ones_like(task.size)) << finer
    goal = Goal(np.where(task.is_new, 0, copy), 0)
    wanted = bands.only(*OF_SETS)
    bounds = [(lower_bound(task, wanted, goal.costs(each, shift)), each) for each in (np.zeros_like(prices), prices)]
    best, chosen = max(bounds, key=lambda found: found[0])
    return max(0, -(-best >> (shift + finer))), chosen


def _placed(task: Task, bands: Bands, *, is_size_known: bool) -> tuple[Placement, Ints, int]:
    """Return the placement, and prices of the set's measures; the present one where it keeps rules and bands."""
    none = np.zeros_like(task.base)
    if task.stays.all():
        present = Placement(task, task.held, task.leader)
        if bands.are_kept(present.loads):
            return present, none, 0
    goal = _goal(task, is_size_known=is_size_known)
    found, prices, shift = _sets(task, bands, goal)
    _lead(found, bands)
    if bands.excess(found.loads)[NETWORK_OUT].any():
        repair(found, bands, goal, kinds=(True, True))
        spare(found, bands, goal)
    if task.stays.all() and not _is_closer(bands, found, present):
        return present, prices, shift
    return found, prices, shift


def _is_closer(bands: Bands, found: Placement, present: Placement) -> bool:
    """Whether the sum of what is outside, in parts of fair shares, has become less by more than a rounding."""
    return bool(outside(bands, found.loads).sum() < outside(bands, present.loads).sum() * (1 - 1e-6))


def _sets(task: Task, bands: Bands, goal: Goal) -> tuple[Placement, Ints, int]:
    """Return replica sets with the fewest bytes copied that keep the bands of replicas, disks and network in."""
    wanted = bands.only(*OF_SETS)
    narrow = wanted.narrowed(NARROWER)
    relaxation = Relaxation(task, narrow, goal)
    relaxed = relaxation.relaxed()
    picked = cheapest(task, goal.costs(relaxed.prices, relaxed.shift))
    members = np.where(task.stays[:, None], task.held, picked.members)
    leader = np.where(task.stays, task.leader, picked.leader)
    found = rounded(task, narrow, relaxation.dived(), (members, leader))
    repair(found, narrow, goal, kinds=(True, False))
    repair(found, wanted, goal, kinds=(True, False))
    spare(found, wanted, goal)
    trim(found, wanted, goal)
    if not wanted.are_kept(found.loads):
        found = within_bands(task, wanted, goal) or found
    return found, relaxed.prices, relaxed.shift


def _lead(found: Placement, bands: Bands) -> None:
    """Change leaders, as few as need be, until the bands of leaders and of network out are kept by order alone."""
    task = found.task
    for row in np.flatnonzero(found.leader != task.leader).tolist():
        present = int(task.leader[row])
        if present >= 0 and found.members[row, present] and task.leading[row, present]:
            found.exchange(row, present, present)
    wanted = bands.only(*OF_LEADERS)
    one = Goal(np.zeros_like(task.size), 1)
    repair(found, wanted, one, kinds=(False, True))
    spare(found, wanted, one, copies=False)
