"""Computes the lower bound of what is copied where measured loads are kept within bands, for all plans within them.

Each broker has a price per replica, and one per unit of each load. A plan pays for each partition at least its cheapest
legal set. It gets back at most price x load at one end of the broker's band: the low end where the price is negative.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Even, Off, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.plan import PriceLevel
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import SAFE, Ints, NotProved, lists_of
from reconciler.proof.bounds import paid_for_topics, topic_price_table
from reconciler.proof.cheapest import NoLegalSet, Objective, cheapest_sets, price_row
from reconciler.proof.counts import is_fair
from reconciler.proof.demands import NOBODY, Demands
from reconciler.proof.reached import Reached

DISK, NETWORK_IN, NETWORK_OUT = "disk", "networkIn", "networkOut"
OF_SETS = (DISK, NETWORK_IN)
"""The loads that follow from who holds a replica; network out follows from who leads."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What one replica of a partition carries: bytes on disk, and bytes a second that it takes in."""

    disk: int
    network_in: int


def carried_of(demands: Demands, loads: Loads | None) -> Mapping[TopicPartition, Carried]:
    """Return what a replica of each partition carries: as measured, else its size in the snapshot.

    What is unknown counts as the mean of its topic's known partitions, rounded up; as that of all where the topic has
    none. With loads, a partition that is empty or yet to be created is unknown; without, it carries nothing.
    """
    parts = (demands.rows, demands.fixed)
    sizes = {key: size for part in parts for key, size in zip(part.keys, part.sizes, strict=True)}
    if loads is None:
        return _columns(sorted(sizes), sizes, dict.fromkeys(sizes, 0))
    disk: dict[TopicPartition, int | None] = {}
    taken: dict[TopicPartition, int | None] = {}
    for key, size in sizes.items():
        load = loads.of.get(key, PartitionLoad())
        disk[key] = load.size_bytes if load.size_bytes is not None else (size or None)
        taken[key] = load.bytes_in
    return _columns(sorted(sizes), disk, taken)


def _columns(
    keys: Sequence[TopicPartition],
    disk: Mapping[TopicPartition, int | None],
    taken: Mapping[TopicPartition, int | None],
) -> Mapping[TopicPartition, Carried]:
    pairs = zip(_filled(keys, disk), _filled(keys, taken), strict=True)
    return {key: Carried(*pair) for key, pair in zip(keys, pairs, strict=True)}


def _filled(keys: Sequence[TopicPartition], known: Mapping[TopicPartition, int | None]) -> list[int]:
    of_topic: dict[str, list[int]] = {}
    for key in keys:
        value = known[key]
        if value is not None:
            of_topic.setdefault(key.topic, []).append(value)
    mean = {topic: -(-sum(values) // len(values)) for topic, values in of_topic.items()}
    every = [value for values in of_topic.values() for value in values]
    overall = -(-sum(every) // len(every)) if every else 0
    return [mean.get(key.topic, overall) if (value := known[key]) is None else value for key in keys]


def is_loaded(balance: Balance) -> bool:
    """Whether a measured load is to be balanced."""
    targets = (balance.disk, balance.network_in, balance.network_out, balance.leader_in)
    return any(not isinstance(target, Off) for target in targets)


def loaded_bound(
    demands: Demands,
    end: Reached,
    balance: Balance,
    level: PriceLevel,
    *,
    copy: Ints,
    carried: Mapping[TopicPartition, Carried],
    is_yielding: bool = False,
) -> int:
    """Return a lower bound on what any plan within the bands copies, `copy` [rows] for a replica, by these prices.

    Where this plan is outside a band itself, the band is taken as wide as the plan is. Where counts are to be even and
    this plan's are not all next to the fair share, plans with its counts are meant. A limit ends a band as its own
    upper end does. What explicit assignments copy is not in it. `is_yielding`: a preferred spread binds no plan.
    """
    weights, prices = _weights(demands, carried), _prices(demands, level)
    if level.shift >= SAFE.bit_length() or int(np.abs(copy).max(initial=0)) << level.shift >= SAFE:
        raise NotProved(f"{level.objective}: prices in 2^-{level.shift} of the unit are beyond any cost")
    _refuse_too_large(level, weights, prices)
    of_topics = topic_price_table(demands, level)
    if of_topics is not None and int(np.abs(of_topics).max(initial=0)) >= SAFE:
        raise NotProved(f"{level.objective}: a price of a topic's part is beyond any cost")
    objective = Objective(copy << level.shift, prices[0], of_topics, prices[1:], weights[1:])
    try:
        (bound,) = cheapest_sets(demands, [objective], is_yielding=is_yielding)
    except NoLegalSet as none:
        raise NotProved(f"no replica set of {demands.rows.key(none.row)} keeps every rule") from None
    for shared, of_measure in zip(_shared(demands, end, balance, carried), prices.tolist(), strict=True):
        for price, fixed, low, high in zip(of_measure, shared.fixed, shared.low, shared.high, strict=True):
            bound += price * fixed - max(price * low, price * high)
    if of_topics is not None:
        bound -= paid_for_topics(demands, end, balance.topics, of_topics)
    return -(-bound >> level.shift)


def outside_bands(
    demands: Demands, end: Reached, balance: Balance, carried: Mapping[TopicPartition, Carried]
) -> Iterator[str]:
    """Yield the loads of replica sets that end outside their band, or above their limit, on some broker."""
    for name, shared in zip((DISK, NETWORK_IN), [*_shared(demands, end, balance, carried)][1:], strict=True):
        if shared.is_outside:
            yield name


@dataclass(frozen=True, slots=True)
class _Shared:
    """What brokers carry of one measure: `fixed` whatever the plan, and from `low` to `high` within the bands.

    Where the plan ends outside, the band is as wide as the plan is.
    """

    fixed: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]
    is_outside: bool


def _shared(
    demands: Demands, end: Reached, balance: Balance, carried: Mapping[TopicPartition, Carried]
) -> Iterator[_Shared]:
    """Yield the bands of replicas, of bytes on disk, and of bytes in."""
    targets, capacity = (balance.replicas, balance.disk, balance.network_in), demands.brokers.capacity
    unlimited = (None,) * len(demands.brokers.ids)
    fixed, final = _loads(demands, end, carried, _weights(demands, carried))
    # What no plan may move may be beyond the limit already.
    limit, on_disks = capacity.most_replicas, _caps_of_disks(demands, carried)
    held = unlimited if limit is None else tuple(max(limit, there) for there in fixed[0])
    weighed = ((capacity.replicas, held), (capacity.disk, on_disks), (capacity.network, capacity.most_in))
    for measure, target in enumerate(targets):
        reached = final[measure]
        low, high = _band(target, *weighed[measure], reached, is_count=measure == 0)
        is_outside = any(not least <= there <= most for least, there, most in zip(low, reached, high, strict=True))
        low, high = [*map(min, low, reached)], [*map(max, high, reached)]
        if measure == 0 and isinstance(target, Even):
            low, high = _even(demands, low, high, reached)
        yield _Shared(fixed[measure], low, high, is_outside)


def _weights(demands: Demands, carried: Mapping[TopicPartition, Carried]) -> Ints:
    """Return [measures, rows]: one replica, its bytes on disk, its bytes in."""
    missing = next((key for key in demands.rows.keys if key not in carried), None)
    if missing is not None:
        raise NotProved(f"nothing is known of the load of {missing}")
    rows = [carried[key] for key in demands.rows.keys]
    return np.array(
        [[1] * len(rows), [one.disk for one in rows], [one.network_in for one in rows]], dtype=np.int64
    ).reshape(3, len(rows))


def _prices(demands: Demands, level: PriceLevel) -> Ints:
    """Return [measures, brokers]: of one replica, of a byte on disk, of a byte in."""
    unknown = sorted(level.load_prices.keys() - {*OF_SETS, NETWORK_OUT})
    if unknown:
        raise NotProved(f"{level.objective}: there are prices of {unknown[0]}, which is no load")
    given = [level.prices, *(level.load_prices.get(name, {}) for name in OF_SETS)]
    return np.array([price_row(demands, level, prices) for prices in given])


def _refuse_too_large(level: PriceLevel, weights: Ints, prices: Ints) -> None:
    """Raise NotProved where a price times a load may not fit 64 bits."""
    for weight, price in zip(weights, prices, strict=True):
        if int(np.abs(weight).max(initial=0)) * int(np.abs(price).max(initial=0)) >= SAFE:
            raise NotProved(f"{level.objective}: a price times what a partition carries is beyond any cost")


def _loads(
    demands: Demands, end: Reached, carried: Mapping[TopicPartition, Carried], weights: Ints
) -> tuple[list[list[int]], list[list[int]]]:
    """Return, [measures][brokers], what brokers carry whatever the plan, and what they carry in the end."""
    column = demands.brokers.column
    fixed = [[0] * len(column), list(demands.brokers.capacity.foreign), [0] * len(column)]
    staying = [*lists_of(demands.rows.fixed)]
    lists = [*zip(demands.fixed.keys, lists_of(demands.fixed.replicas), strict=True)]
    lists += zip(demands.rows.keys, staying, strict=True)
    for key, replicas in lists:
        one = carried.get(key)
        for broker_id in replicas:
            if broker_id in column:
                for measure, load in enumerate((1, one.disk if one else 0, one.network_in if one else 0)):
                    fixed[measure][column[broker_id]] += load
    final = [list(loads) for loads in fixed]
    rows, places = np.nonzero(end.table != NOBODY)
    for row, broker in zip(rows.tolist(), end.table[rows, places].tolist(), strict=True):
        for measure in range(3):
            final[measure][broker] += int(weights[measure, row])
    for row, replicas in enumerate(staying):
        for broker_id in replicas:
            for measure in range(3):
                final[measure][column[broker_id]] -= int(weights[measure, row])
    return fixed, final


def _caps_of_disks(demands: Demands, carried: Mapping[TopicPartition, Carried]) -> tuple[int | None, ...]:
    """Return the most bytes of each broker: its room, on top of what it is said to carry now."""
    brokers, capacity = demands.brokers, demands.brokers.capacity
    now = list(capacity.foreign)
    lists = [pair for part in (demands.rows, demands.fixed) for pair in zip(part.keys, lists_of(part.now), strict=True)]
    for key, replicas in lists:
        for broker_id in replicas:
            if broker_id in brokers.column and key in carried:
                now[brokers.column[broker_id]] += carried[key].disk
    return tuple(None if room is None else held + room for held, room in zip(now, capacity.room, strict=True))


def _band(
    target: BalanceTarget,
    capacity: Sequence[int],
    caps: Sequence[int | None],
    reached: Sequence[int],
    *,
    is_count: bool,
) -> tuple[list[int], list[int]]:
    """Return the least and the most of each broker; of counts, the whole numbers next to the share are included."""
    total = sum(reached)
    fraction = target.fraction if isinstance(target, Within) else Fraction(0)
    low, high = [], []
    for weight, cap in zip(capacity, caps, strict=True):
        share = Fraction(total * weight, sum(capacity))
        least, most = -(-(share * (1 - fraction)) // 1), share * (1 + fraction) // 1
        if is_count or isinstance(target, Even):
            least, most = min(least, share // 1), max(most, -(-share // 1))
        if isinstance(target, Off):
            least, most = 0, total
        most = most if cap is None else min(most, cap)
        low.append(max(0, least))
        high.append(most)
    return low, high


def _even(demands: Demands, low: list[int], high: list[int], reached: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the counts next to the fair share or, where one is not, those reached; like brokers may trade places."""
    brokers = demands.brokers
    if is_fair(brokers.capacity.replicas, reached):
        return low, high
    likes = list(zip(brokers.rack.tolist(), brokers.capacity.replicas, strict=True))
    least, most = list(reached), list(reached)
    for column, like in enumerate(likes):
        peers = [there for there, other in zip(reached, likes, strict=True) if other == like]
        if max(peers) - min(peers) <= 1:
            least[column], most[column] = min(peers), max(peers)
    return least, most
