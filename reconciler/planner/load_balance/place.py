"""Places partitions by measured loads: ordered replica lists with the bands kept, and prices that bound the bytes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.desired import Balance
from reconciler.model.plan import PriceLevel, Proof
from reconciler.model.problem import Problem, Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.load_balance.bands import Bands, bands_of
from reconciler.planner.load_balance.beam import within_bands
from reconciler.planner.load_balance.column_generation import Goal, Relaxation, lower_bound
from reconciler.planner.load_balance.exchanges import Placement, outside
from reconciler.planner.load_balance.measured import Measured
from reconciler.planner.load_balance.pricing import cheapest
from reconciler.planner.load_balance.search import repair, rounded, spare, trim
from reconciler.planner.load_balance.task import (
    DISK,
    LEADERS,
    MEASURES,
    NETWORK_IN,
    NETWORK_OUT,
    REPLICAS,
    LoadTask,
    load_task,
)
from reconciler.planner.placement_task import EligibleBrokers, PartitionToPlace, PlacementTask, Unmoved
from reconciler.planner.rows import Bools, Ints

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

    task: LoadTask
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
    partitions: Sequence[PartitionToPlace],
    unmoved: Unmoved,
    eligible: EligibleBrokers,
    balance: Balance,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
) -> Loaded:
    """Return a placement of all open partitions that keeps every rule and, if it can be, every band.

    Of those the fewest bytes copied, within the gap that the bound shows; then the fewest copies, then leader changes.
    Where a size is unknown, copies are counted before bytes. `load_of`: disk bytes, bytes in and bytes out a second.
    """
    task = load_task(partitions, unmoved, eligible, load_of)
    bands = bands_of(task, balance)
    is_size_known = all(partition.size is not None for partition in partitions if not partition.is_new)
    if not len(task.need):
        loads = task.loads(task.held, task.leader)
        return Loaded(task, bands, task.held, task.leader, loads, 0, np.zeros_like(loads), 0)
    found, prices, shift = _placed(task, bands, is_size_known=is_size_known)
    for _ in range(SAME_AGAIN):
        if not _again(found, unmoved, balance, load_of, is_size_known=is_size_known):
            break
    proven, prices = _bound(task, bands.as_wide_as(found.loads), prices, shift, is_size_known=is_size_known)
    told = shift + _finer(task, is_size_known=is_size_known)
    return Loaded(task, bands, found.members, found.leader, found.loads, proven, prices, told)


def _again(
    found: Placement,
    unmoved: Unmoved,
    balance: Balance,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
    *,
    is_size_known: bool,
) -> bool:
    """Plan again from the state reached, and follow; false where nothing moves any more.

    What a partition may choose can follow from where it is: its racks, a cordoned broker that it has left.
    """
    task, eligible = found.task, found.task.eligible
    lists = [
        (
            eligible.ids[leader],
            *(eligible.ids[column] for column in np.flatnonzero(members).tolist() if column != leader),
        )
        for members, leader in zip(found.members, found.leader.tolist(), strict=True)
    ]
    rows = [row for row, partition in enumerate(task.partitions) if not partition.fixed]
    partitions = [replace(task.partitions[row], replicas=lists[row]) for row in rows]
    decided = [
        (partition.topic_partition, lists[row]) for row, partition in enumerate(task.partitions) if partition.fixed
    ]
    next_task = load_task(partitions, (*unmoved, *decided), eligible, load_of)
    # Explicit assignments are no rows of a task; what they carry is the rest of its base.
    next_task.base[:] += task.base - load_task((), unmoved, eligible, load_of).base
    if not len(next_task.need):
        return False
    again, *_ = _placed(next_task, bands_of(next_task, balance), is_size_known=is_size_known)
    changed = (again.members != found.members[rows]).any(axis=1) | (again.leader != found.leader[rows])
    for place in np.flatnonzero(changed).tolist():
        found.put(rows[place], np.flatnonzero(again.members[place]), int(again.leader[place]))
    return bool(changed.any())


def _goal(task: LoadTask, *, is_size_known: bool) -> Goal:
    """Return bytes first, a copy and a change of leader as a small part of a mean copy; or copies first."""
    finer = _finer(task, is_size_known=is_size_known)
    if is_size_known:
        mean = int(task.size.mean()) << finer
        return Goal((task.size << finer) + mean // 10_000 + 1, mean // 100_000 + 1)
    return Goal((1 << finer) + 1000 * task.size // max(1, int(task.size.max())), 10)


def _finer(task: LoadTask, *, is_size_known: bool) -> int:
    """Return of how many bits below a byte, or below one copy, the cost's unit is: what comes second needs room."""
    return max(0, FINER - int(task.size.mean()).bit_length()) if is_size_known else FINER


def _bound(task: LoadTask, bands: Bands, prices: Ints, shift: int, *, is_size_known: bool) -> tuple[int, Ints]:
    """Return what these prices prove of bytes or copies alone, rounded up; or none where none prove more."""
    finer = _finer(task, is_size_known=is_size_known)
    copy = (task.size if is_size_known else np.ones_like(task.size)) << finer
    goal = Goal(np.where(task.is_new, 0, copy), 0)
    wanted = bands.only(*OF_SETS)
    bounds = [(lower_bound(task, wanted, goal.costs(each, shift)), each) for each in (np.zeros_like(prices), prices)]
    best, chosen = max(bounds, key=lambda found: found[0])
    return max(0, -(-best >> (shift + finer))), chosen


def _placed(task: LoadTask, bands: Bands, *, is_size_known: bool) -> tuple[Placement, Ints, int]:
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


def _sets(task: LoadTask, bands: Bands, goal: Goal) -> tuple[Placement, Ints, int]:
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


_RATES = (NETWORK_IN, NETWORK_OUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where partitions go: `held` [partitions, brokers] beside what is fixed, `leader` [partitions] as a column."""

    held: Bools
    leader: Ints
    proof: Proof
    warnings: tuple[Problem, ...]


def placed_with_loads(whole: PlacementTask, unmoved: Unmoved, balance: Balance, carried: Measured) -> Outcome:
    """Return where every partition goes, with disks and network balanced too."""
    loaded = place_loaded(whole.partitions, unmoved, whole.eligible, balance, carried.of)
    return outcome_of(loaded, whole, balance)


def outcome_of(loaded: Loaded, whole: PlacementTask, balance: Balance) -> Outcome:
    """Return the outcome for all partitions, those with nothing to choose included."""
    eligible = whole.eligible
    held = np.zeros((len(whole.partitions), len(eligible.ids)), dtype=np.bool_)
    leader = np.zeros(len(whole.partitions), dtype=np.int64)
    free = [number for number, partition in enumerate(whole.partitions) if partition.need > 0]
    held[free] = loaded.members & ~loaded.task.forced
    leader[free] = loaded.leader
    for number, partition in enumerate(whole.partitions):
        if partition.need == 0 and partition.fixed:
            leader[number] = eligible.column.get(partition.fixed[0], 0)
    return Outcome(held, leader, _proof(loaded, whole), tuple(_warnings(loaded, balance)))


def _proof(loaded: Loaded, whole: PlacementTask) -> Proof:
    task = loaded.task
    copied = (loaded.members & ~task.held & ~task.is_new[:, None]).sum(axis=1)
    is_size_known = all(partition.size is not None for partition in whole.partitions if not partition.is_new)
    objective = "bytes" if is_size_known else "replicas"
    value = sum((copied * task.size).tolist()) if is_size_known else int(copied.sum())
    ids = task.eligible.ids
    of = {MEASURES[measure]: _by_broker(ids, loaded.prices[measure]) for measure in OF_SETS if measure != REPLICAS}
    level = PriceLevel(
        objective,
        value,
        min(value, loaded.bound),
        _by_broker(ids, loaded.prices[REPLICAS]),
        load_prices={word: prices for word, prices in of.items() if prices},
        shift=loaded.shift,
    )
    return Proof(objective, value, level.lower_bound, levels=(level,))


def _by_broker(ids: tuple[int, ...], prices: Ints) -> Mapping[int, int]:
    return {broker_id: price for broker_id, price in zip(ids, prices.tolist(), strict=True) if price}


def _warnings(loaded: Loaded, balance: Balance) -> Iterator[Problem]:
    """Yield a warning for each measure that stays outside its band somewhere: the broker farthest out, and why."""
    task, excess = loaded.task, loaded.excess
    for measure in np.flatnonzero(excess.any(axis=1)).tolist():
        is_above = bool((excess[measure] > 0).any())
        outside = excess[measure] if is_above else -excess[measure]
        column = int((outside / loaded.bands.share[measure]).argmax())
        limit = int((loaded.bands.high if is_above else loaded.bands.low)[measure, column])
        others = int((excess[measure] != 0).sum()) - 1
        more = f" ({others} more {'broker is' if others == 1 else 'brokers are'} outside as well)" if others else ""
        message = (
            f"balance.{MEASURES[measure]}: broker {task.eligible.ids[column]} ends at "
            f"{_amount(measure, int(loaded.loads[measure, column]))}, {'above' if is_above else 'below'} its band's "
            f"{_amount(measure, limit)}{more}: {_forbidding(loaded, measure, column, is_above=is_above)}"
        )
        yield Problem("KR842", message, balance.at.get(MEASURES[measure]), Severity.WARNING)


def _forbidding(loaded: Loaded, measure: int, column: int, *, is_above: bool) -> str:
    """Return what forbids more, in words."""
    task = loaded.task
    mine = loaded.members[:, column]
    if is_above and int(task.base[measure, column]) > int(loaded.bands.high[measure, column]):
        return "what may not move there is more than that"
    if is_above:
        weights = (task.weights.replica + task.weights.leader)[mine, measure]
        if len(weights) and int(weights.max()) > int(loaded.bands.high[measure, column]):
            return "one partition alone is more than that"
    others = task.allowed[:, task.eligible.rack == task.eligible.rack[column]]
    if is_above and mine.any() and not (task.allowed[mine] & ~loaded.members[mine]).any():
        return "no other broker may hold its replicas"
    if not is_above and not (task.allowed[:, column] & ~mine).any():
        return "it may hold no other replica"
    if others.shape[1] < task.brokers and bool((task.low == task.high).all()):
        return "the rack rule, the sizes of single partitions and the other bands forbid more"
    return "the sizes of single partitions and the other bands forbid more"


def _amount(measure: int, amount: int) -> str:
    if measure in {REPLICAS, LEADERS}:
        return str(amount)
    return f"{amount} bytes{'/s' if measure in _RATES else ''}" if measure != DISK else f"{amount} bytes"
