"""Places partitions by measured loads, with a bound on the bytes that any such placement copies.

The order of work: replica sets by column generation, made whole and repaired; then leaders, by order alone; then the
same once more from the state reached, until nothing moves, so that a plan's end is a fixed point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.model.desired import Balance, Off
from reconciler.model.plan import PriceLevel, Proof
from reconciler.model.problem import Problem, warning
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted
from reconciler.planner.leaders import Leaders
from reconciler.planner.load_balance.bands import NO_CAPS, Bands, Caps, bands_of
from reconciler.planner.load_balance.beam import closest, within_bands
from reconciler.planner.load_balance.budget import budgeted_loads, copied_bytes, mended_start, towards
from reconciler.planner.load_balance.column_generation import Goal, Relaxation, Start, shift_of, start_prices
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.measured import Carried
from reconciler.planner.load_balance.parts import part_of, parts_of, put_back
from reconciler.planner.load_balance.pricing import cheapest, lower_bound
from reconciler.planner.load_balance.search import repair, rounded, spare, trim
from reconciler.planner.load_balance.task import (
    COUNTS,
    DISK,
    MEASURES,
    NETWORK_OUT,
    OF_SETS,
    REPLICAS,
    TOPICS,
    LoadTask,
    load_task,
)
from reconciler.planner.placement_task import PlacementTask, forced_bytes, placement_task
from reconciler.planner.replicas import ReplicaSets, place_replicas
from reconciler.planner.rows import columns_of
from reconciler.planner.to_place import PartitionsToPlace, Unmoved

SAME_AGAIN = 6
"""Plans from the state reached, at the most. One or two are the rule; the limit only makes the work finite."""
FINER = 24
"""A mean copy is at least 2^23 of the cost's unit, so that copies and leaders can decide between equals."""
NARROWER = 4000
"""The bands are narrowed by one such part of their width while whole placements are looked for."""
A_COPY, A_LEADER = 10_000, 100_000
"""Each copy costs 1/10,000 of the mean copy's bytes beside its own, each change of a leader 1/100,000."""


def placed_with_loads(
    whole: PlacementTask,
    unmoved: Unmoved,
    balance: Balance,
    load_of: Mapping[TopicPartition, Carried],
    caps: Caps = NO_CAPS,
    *,
    budget: int | None = None,
) -> tuple[ReplicaSets, Leaders, tuple[Problem, ...]]:
    """Return a placement that keeps every rule and, if it can be, every band, and warnings of the bands that it misses.

    `load_of` knows every partition's load. Caps are kept before any band; where no placement that keeps them is found,
    this one is least above them.

    Of those the fewest bytes copied, within the gap that the bound shows; then the fewest copies, then leader changes.
    Where a size is unknown, copies are counted before bytes. A `budget` of bytes that is less than this takes: as near
    to the bands as its moves bring it within that, and what that comes to.
    """
    topics = () if isinstance(balance.topics, Off) else whole.topics
    task = load_task(whole, unmoved, load_of, topics)
    bands = bands_of(task, balance, caps)
    held = np.zeros((len(whole.partitions), task.brokers), dtype=np.bool_)
    leader = np.where(whole.need > 0, 0, np.maximum(whole.fixed[:, 0], 0))
    end, bound, prices, shift = Placement(task, task.held, task.leader), 0, np.zeros_like(task.base), 0
    if len(task.need):
        end, prices, shift = _placed(task, bands, _start(whole, task, balance) if task.topics else None)
        for _ in range(SAME_AGAIN):
            if not _again(end, unmoved, balance, load_of, caps):
                break
        low, high = np.minimum(bands.low, end.loads), np.maximum(bands.high, end.loads)
        bound, prices = _bound(task, replace(bands, low=low, high=high), prices, shift)
        shift += _finer(task)
    budgeted = None
    if budget is not None:
        mended = mended_start(end, _mended(whole, task))
        partial, left = Placement(task, mended.members, mended.leader), budget - forced_bytes(whole)
        if copied_bytes(end) <= left:
            partial = end
        else:
            towards(partial, end, bands, left)
            _lead(partial, bands)
            bound, prices = copied_bytes(mended), np.zeros_like(task.base)
        budgeted = budgeted_loads((mended, partial, end), bands, budget, forced_bytes(whole))
        end = partial
    if len(task.need):
        is_open = whole.need > 0
        held[is_open], leader[is_open] = end.members & ~task.forced, end.leader
    sets = ReplicaSets(columns_of(held), _proof(end, whole, bound, prices, shift), budgeted=budgeted)
    warnings = () if budgeted is not None and not budgeted.is_whole else tuple(_warnings(end, bands, balance))
    return sets, Leaders(leader), warnings


def missed_bands(
    whole: PlacementTask,
    unmoved: Unmoved,
    balance: Balance,
    load_of: Mapping[TopicPartition, Carried],
    caps: Caps,
    *,
    held: Ints,
    leaders: Leaders,
) -> Iterator[Problem]:
    """Yield warnings of the bands that a placement misses which another search has found."""
    task = load_task(whole, unmoved, load_of, () if isinstance(balance.topics, Off) else whole.topics)
    is_open = whole.need > 0
    if is_open.any():
        end = Placement(task, whole.mask(held)[is_open] | task.forced, leaders.column[is_open])
        yield from _warnings(end, bands_of(task, balance, caps), balance)


def _mended(whole: PlacementTask, task: LoadTask) -> Bools:
    """Return the sets [rows, brokers] that mend the rules and copy least."""
    held = place_replicas(whole, Balance()).held
    found: Bools = whole.mask(held)[whole.need > 0] | task.forced
    return found


def _again(
    end: Placement, unmoved: Unmoved, balance: Balance, load_of: Mapping[TopicPartition, Carried], caps: Caps
) -> bool:
    """Plan again from the state reached, and follow; false where nothing moves any more.

    What a partition may choose can follow from where it is: its racks, a cordoned broker that it has left.
    """
    task, eligible = end.task, end.task.eligible
    lists = [
        (eligible.ids[leader], *(eligible.ids[one] for one in np.flatnonzero(members).tolist() if one != leader))
        for members, leader in zip(end.members, end.leader.tolist(), strict=True)
    ]
    rows = [row for row, partition in enumerate(task.partitions) if not partition.fixed]
    partitions = [replace(task.partitions[row], replicas=lists[row]) for row in rows]
    if not partitions:
        return False
    decided = [(each.topic_partition, lists[row]) for row, each in enumerate(task.partitions) if each.fixed]
    unmoved_then = (*unmoved, *decided)
    whole = placement_task(PartitionsToPlace.of(partitions), unmoved_then, eligible)
    next_task = load_task(whole, unmoved_then, load_of, task.topics)
    # Explicit assignments are no rows of a task; what they carry is the rest of its base.
    moved = next_task.loads(end.members[rows], end.leader[rows]) - next_task.base
    next_task = replace(next_task, base=end.loads - moved, is_size_known=task.is_size_known)
    again, *_ = _placed(next_task, bands_of(next_task, balance, caps))
    changed = (again.members != end.members[rows]).any(axis=1) | (again.leader != end.leader[rows])
    for place in np.flatnonzero(changed).tolist():
        end.put(rows[place], np.flatnonzero(again.members[place]), int(again.leader[place]))
    return bool(changed.any())


def _start(whole: PlacementTask, task: LoadTask, balance: Balance) -> Start:
    """Return the best placement by counts alone, and its prices: topics ask for much, to which loads add little."""
    sets = place_replicas(whole, Balance(replicas=balance.replicas, topics=balance.topics))
    prices, ids = np.zeros(task.base.shape), task.eligible.ids
    level = next((each for each in sets.proof.levels if each.objective == "bytes"), None)
    if level is not None:
        prices[REPLICAS] = [level.prices.get(one, 0) for one in ids]
        for place, topic in enumerate(task.topics):
            prices[TOPICS + place] = [level.topic_prices.get(topic, {}).get(one, 0) for one in ids]
    return Start(whole.mask(sets.held)[whole.need > 0] | task.forced, prices, _finer(task))


def _placed(task: LoadTask, bands: Bands, start: Start | None = None) -> tuple[Placement, Ints, int]:
    """Return the placement, and prices of the set's measures; the present one where it keeps rules and bands."""
    present = Placement(task, task.held, task.leader) if task.stays.all() else None
    if present is not None and bands.are_kept(present.loads):
        return present, np.zeros_like(task.base), 0
    goal = _goal(task)
    end, prices, shift = _sets(task, bands, goal, start)
    _lead(end, bands)
    # Network out follows from who leads. Only where order alone cannot keep its band are replicas copied for it.
    if bands.excess(end.loads)[NETWORK_OUT].any() or bands.above_caps(end.loads).any():
        repair(end, bands, goal, replicas=True, leaders=True)
        spare(end, bands, goal)
    # Between two placements outside the bands only one that is closer, by more than a rounding, is worth moving for.
    if present is not None and not _is_closer(bands.distance(end.loads), bands.distance(present.loads)):
        return present, prices, shift
    return end, prices, shift


def _is_closer(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the first is less above caps or, where they are equal, less outside bands by more than a rounding."""
    return one[0] < other[0] or (one[0] == other[0] and one[1] < other[1] * (1 - 1e-6))


def _goal(task: LoadTask) -> Goal:
    """Return bytes first, a copy and a change of leader as a small part of a mean copy; or copies first."""
    finer = _finer(task)
    if task.is_size_known:
        mean = int(task.size.mean()) << finer
        return Goal((task.size << finer) + mean // A_COPY + 1, mean // A_LEADER + 1)
    return Goal((1 << finer) + 1000 * task.size // max(1, int(task.size.max())), 10)


def _finer(task: LoadTask) -> int:
    """Return of how many bits below a byte, or below one copy, the cost's unit is: what comes second needs room."""
    return max(0, FINER - int(task.size.mean()).bit_length()) if task.is_size_known else FINER


def _bound(task: LoadTask, bands: Bands, prices: Ints, shift: int) -> tuple[int, Ints]:
    """Return what these prices prove of bytes or copies alone, rounded up; or what others prove that need no search."""
    finer = _finer(task)
    copy = (task.size if task.is_size_known else np.ones_like(task.size)) << finer
    goal = Goal(np.where(task.is_new, 0, copy), 0)
    wanted = bands.only(*task.of_sets)
    guesses = (*start_prices(task, wanted, shift), prices)
    bounds = [(lower_bound(task, wanted, goal.costs(each, shift)), each) for each in guesses]
    best, chosen = max(bounds, key=lambda each: each[0])
    return max(0, -(-best >> (shift + finer))), chosen


def _sets(task: LoadTask, bands: Bands, goal: Goal, start: Start | None) -> tuple[Placement, Ints, int]:
    """Return replica sets with the fewest bytes copied that keep the bands of replicas, disks and network in."""
    wanted = bands.only(*task.of_sets)
    parts = parts_of(task, wanted)
    if len(parts) == 1:
        return _in_one(task, wanted, goal, start)
    end = Placement(task, task.held, task.leader)
    for brokers in parts:
        part = part_of(end, wanted, goal, brokers)
        put_back(end, part, _in_one(part.task, part.bands, part.goal, is_part=True)[0])
    repair(end, wanted, goal, replicas=True, leaders=False)
    # What one part pays for a broker is no measure for the others: together their prices prove nothing.
    return end, np.zeros_like(task.base), shift_of(task, goal)


def _in_one(
    task: LoadTask, wanted: Bands, goal: Goal, start: Start | None = None, *, is_part: bool = False
) -> tuple[Placement, Ints, int]:
    """Return the same by one linear program over all brokers."""
    narrow = wanted.narrowed(NARROWER)
    relaxation = Relaxation(task, narrow, goal, start, is_part=is_part)
    relaxation.generated()
    prices, shift = relaxation.prices, relaxation.shift
    picked = cheapest(task, goal.costs(prices, shift))
    otherwise = Placement(
        task, np.where(task.stays[:, None], task.held, picked.members), np.where(task.stays, task.leader, picked.leader)
    )
    end = rounded(otherwise, narrow, relaxation.dived())
    repair(end, narrow, goal, replicas=True, leaders=False)
    repair(end, wanted, goal, replicas=True, leaders=False)
    spare(end, wanted, goal)
    trim(end, wanted, goal)
    if wanted.cap is not None or not task.eligible.is_uniform:
        end = closest(end, wanted, goal)
    elif not wanted.are_kept(end.loads):
        # Brokers that weigh alike, under no cap, keep what the search finds: their plans stay what they were.
        end = within_bands(task, wanted, goal) or end
    return end, prices, shift


def _lead(end: Placement, bands: Bands) -> None:
    """Change leaders, as few as need be, until the bands of leaders and of network out are kept by order alone."""
    task = end.task
    for row in np.flatnonzero(end.leader != task.leader).tolist():
        present = int(task.leader[row])
        if present >= 0 and end.members[row, present] and task.rank[row, present] == task.rank[row, end.leader[row]]:
            end.exchange(row, present, present)
    wanted = bands.only(*task.of_leaders)
    one = Goal(np.zeros_like(task.size), 1)
    repair(end, wanted, one, replicas=False, leaders=True)
    spare(end, wanted, one, copies=False)


def _proof(end: Placement, whole: PlacementTask, bound: int, prices: Ints, shift: int) -> Proof:
    task, ids = end.task, end.task.eligible.ids
    objective = "bytes" if whole.is_size_known else "replicas"
    value = sum((end.copies * (task.size if whole.is_size_known else 1)).tolist())
    of = {
        MEASURES[measure]: {id_: price for id_, price in zip(ids, prices[measure].tolist(), strict=True) if price}
        for measure in OF_SETS
    }
    of_counts = of.pop(MEASURES[REPLICAS])
    load_prices = {word: given for word, given in of.items() if given}
    of_topics = zip(task.topics, prices[TOPICS:].tolist(), strict=False)
    given = ((topic, zip(ids, row, strict=True)) for topic, row in of_topics if any(row))
    topic_prices = {topic: {id_: price for id_, price in pairs if price} for topic, pairs in given}
    level = PriceLevel(objective, value, min(value, bound), of_counts, topic_prices, load_prices, shift)
    return Proof(objective, value, level.lower_bound, levels=(level,))


def _warnings(end: Placement, bands: Bands, balance: Balance) -> Iterator[Problem]:
    """Yield a warning for each measure that stays outside its band somewhere: the broker farthest out, and why."""
    task, excess = end.task, bands.excess(end.loads)
    # What is above a limit is its violation, and told there.
    excess[bands.above_caps(end.loads).any(axis=1)] = 0
    yield from _uneven_topics(end, bands, excess[TOPICS:], balance)
    for measure in np.flatnonzero(excess[:TOPICS].any(axis=1)).tolist():
        is_above = bool((excess[measure] > 0).any())
        outside = excess[measure] if is_above else -excess[measure]
        column = int((outside / bands.share[measure]).argmax())
        limit = int((bands.high if is_above else bands.low)[measure, column])
        others = int((excess[measure] != 0).sum()) - 1
        more = f" ({others} more {'broker is' if others == 1 else 'brokers are'} outside as well)" if others else ""
        message = (
            f"balance.{MEASURES[measure]}: broker {task.eligible.ids[column]} ends at "
            f"{_amount(measure, int(end.loads[measure, column]))}, {'above' if is_above else 'below'} its band's "
            f"{_amount(measure, limit)}{more}: {_forbidding(end, bands, measure, column, is_above=is_above)}"
        )
        yield warning("KR842", message, balance.at.get(MEASURES[measure]))


def _uneven_topics(end: Placement, bands: Bands, excess: Ints, balance: Balance) -> Iterator[Problem]:
    """Yield a warning of the topics whose parts stay outside their bands somewhere: the part farthest out."""
    if not excess.any():
        return
    topics = end.task.topics
    uneven = {topics[place % (len(topics) + 1)] for place in np.flatnonzero(excess.any(axis=1)).tolist()}
    place, column = divmod(int(np.abs(excess).argmax()), excess.shape[1])
    what = "replicas" if place < len(topics) + 1 else "preferred leaders"
    reached = int(end.loads[TOPICS + place, column])
    limit = bands.high if excess[place, column] > 0 else bands.low
    topic, broker = topics[place % (len(topics) + 1)], end.task.eligible.ids[column]
    message = (
        f"{counted(len(uneven), 'topic ends', 'topics end')} less even over the brokers than asked, {topic} "
        f"with {reached} {what} on broker {broker} where its band ends at {int(limit[TOPICS + place, column])}: "
        "none more even was found within racks, the brokers named for it and the other balances"
    )
    yield warning("KR805", message, balance.at.get("topics"))


def _forbidding(end: Placement, bands: Bands, measure: int, column: int, *, is_above: bool) -> str:
    """Return what forbids more, in words; if no single reason is known, only that nothing nearer was found."""
    task, mine, most = end.task, end.members[:, column], int(bands.high[measure, column])
    if is_above and int(task.base[measure, column]) > most:
        return "what may not move there is more than that"
    if is_above and int(task.weight_of(measure)[mine].max(initial=0)) > most:
        return "one partition alone is more than that"
    if is_above and mine.any() and not (task.allowed[mine] & ~end.members[mine]).any():
        return "no other broker may hold its replicas"
    if not is_above and not (task.allowed[:, column] & ~mine).any():
        return "it may hold no other replica"
    nearer = "no placement of these partitions that comes nearer was found within"
    if len(task.rack_brokers) > 1 and bool((task.low == task.high).all()):
        return f"{nearer} the rack rule and the other bands"
    return f"{nearer} the other bands"


def _amount(measure: int, amount: int) -> str:
    if measure in COUNTS:
        return str(amount)
    return f"{amount} bytes" if measure == DISK else f"{amount} bytes/s"
