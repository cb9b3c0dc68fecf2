"""What the best plan must cost, found apart from the planner: the rules restated, and plain enumeration.

`demands` restates the hard rules from the desired state; `least_placement` and `least_leaders` try every legal choice,
partition by partition, keeping for each count of replicas per broker only the cheapest way to it. Tiny clusters only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, lcm

from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import (
    BalanceTarget,
    BrokerState,
    Desired,
    DesiredTopic,
    Even,
    Off,
    Placement,
    Protection,
    Spread,
    Within,
)
from reconciler.model.move import Move
from reconciler.model.topic_partition import TopicPartition

Counts = tuple[int, ...]
Score = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """One partition as the rules see it: what it has, what it must have, who may hold and lead it.

    `settled` is its final replicas, ordered, where nothing is left to decide. `bounds` are the fewest and most
    replicas of each rack, `counted_racks` those that the rule counts; where `is_yielding`, the least excess over them
    is legal too. `is_contradicted`: the files give an assignment to a partition that they forbid to move.
    """

    topic_partition: TopicPartition
    current: tuple[int, ...]
    size: int | None
    need: int
    allowed: frozenset[int]
    must_hold: frozenset[int]
    bounds: Mapping[str, tuple[int, int]]
    counted_racks: frozenset[str]
    is_yielding: bool
    leader_racks: frozenset[str] | None
    leading: frozenset[int]
    leading_at_need: frozenset[int]
    settled: tuple[int, ...] | None = None
    is_declared: bool = True
    is_contradicted: bool = False

    def copied(self, replicas: Iterable[int]) -> int:
        """Return how many of the replicas have to be copied; those of a new partition start empty."""
        return len(set(replicas) - set(self.current)) if self.current else 0

    def bytes_copied(self, replicas: Iterable[int]) -> int:
        """Return the bytes copied, an unknown size counting nothing."""
        return self.copied(replicas) * (self.size or 0)


@dataclass(frozen=True, slots=True)
class Problem:
    """All demands, and who takes part in the balance, with their capacities and racks."""

    demands: tuple[Demand, ...]
    capacity: Mapping[int, int]
    rack_of: Mapping[int, str]

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that take part: alive, neither draining nor absent."""
        return tuple(sorted(self.capacity))

    @property
    def is_size_known(self) -> bool:
        """Whether every partition that could move says how large it is."""
        return all(demand.size is not None for demand in self.demands if demand.settled != demand.current)


def problem_of(desired: Desired, observed: Cluster) -> Problem:
    """Return the rules of a desired state, restated from the contract alone."""
    staying = {b for b in observed.brokers if _state(desired, b) not in {BrokerState.DRAINING, BrokerState.ABSENT}}
    alive = {broker_id for broker_id in staying if not observed.brokers[broker_id].is_fenced}
    demands: list[Demand] = []
    for name in sorted({*observed.topics, *desired.topics}):
        demands += _topic_demands(desired, observed, name, declared_topic(desired, name))
    return Problem(
        demands=tuple(sorted(demands, key=lambda demand: demand.topic_partition)),
        capacity={broker_id: desired.cluster.broker(broker_id).capacity for broker_id in sorted(alive)},
        rack_of={broker_id: observed.brokers[broker_id].rack or "" for broker_id in sorted(observed.brokers)},
    )


def declared_topic(desired: Desired, name: str) -> DesiredTopic | None:
    """Return what the files say of a topic: by name, or by the longest pattern that is not ignored."""
    if name in desired.topics:
        return desired.topics[name]
    if any(fnmatchcase(name, pattern) for pattern in desired.cluster.topics.ignore):
        return None
    matching = [pattern for pattern in desired.patterns if fnmatchcase(name, pattern.name)]
    longest = max(matching, key=lambda pattern: len(pattern.name), default=None)
    return longest or (DesiredTopic(name) if desired.cluster.topics.is_all_managed else None)


def _state(desired: Desired, broker_id: int) -> BrokerState:
    found = desired.cluster.brokers.get(broker_id)
    return found.state if found else BrokerState.ACTIVE


def _topic_demands(desired: Desired, observed: Cluster, name: str, declared: DesiredTopic | None) -> Iterator[Demand]:
    topic = observed.topics.get(name)
    partitions = topic.partitions if topic else ()
    for partition in partitions:
        yield _existing(desired, observed, TopicPartition(name, partition.partition), partition, declared)
    if declared is None or declared.is_absent:
        return
    explicit = declared.placement.assignment
    wanted = declared.partitions or (len(explicit) if explicit and not partitions else 0)
    for number in range(len(partitions), wanted):
        yield _new(desired, observed, TopicPartition(name, number), partitions, declared)


def _existing(
    desired: Desired, observed: Cluster, key: TopicPartition, partition: Partition, declared: DesiredTopic | None
) -> Demand:
    current = tuple(replica for replica in partition.replicas if replica not in partition.removing_replicas)
    explicit = _assigned(declared, key.partition)
    leaving = {b for b in current if _state(desired, b) in {BrokerState.DRAINING, BrokerState.ABSENT}}
    stays = Protection.MOVE in declared.protect if declared else not leaving
    is_config_alone = declared is not None and (declared.replication_factor, declared.placement) == (None, Placement())
    is_waiting = is_config_alone and not leaving and not all(observed.is_alive(b) for b in current)
    is_waiting |= partition.leader is None or not any(observed.is_alive(b) for b in (partition.leader, *partition.isr))
    settled = current if stays or is_waiting else explicit
    return _demand(
        desired,
        observed,
        key,
        current=current,
        size=_size(partition),
        need=(declared.replication_factor if declared else None) or len(current),
        must_hold=frozenset(b for b in current if b not in leaving and observed.is_alive(b))
        if declared is None
        else frozenset(),
        placement=declared.placement if declared else Placement(),
        settled=settled,
        is_declared=declared is not None and not is_waiting,
        is_contradicted=settled == current and explicit not in {None, current} and not is_waiting,
    )


def _new(
    desired: Desired, observed: Cluster, key: TopicPartition, partitions: Sequence[Partition], declared: DesiredTopic
) -> Demand:
    explicit = _assigned(declared, key.partition)
    factor = declared.replication_factor or len(explicit or partitions[0].replicas)
    return _demand(
        desired,
        observed,
        key,
        current=(),
        size=0,
        need=factor,
        must_hold=frozenset(),
        placement=declared.placement,
        settled=explicit,
    )


def _assigned(declared: DesiredTopic | None, number: int) -> tuple[int, ...] | None:
    explicit = declared.placement.assignment if declared else None
    return explicit[number] if explicit is not None and number < len(explicit) else None


def _size(partition: Partition) -> int | None:
    known = dict(zip(partition.replicas, partition.sizes, strict=True)) if partition.sizes else {}
    of_leader = known.get(partition.leader) if partition.leader is not None else None
    return (
        of_leader if of_leader is not None else max((size for size in known.values() if size is not None), default=None)
    )


def _demand(
    desired: Desired,
    observed: Cluster,
    key: TopicPartition,
    *,
    current: tuple[int, ...],
    size: int | None,
    need: int,
    must_hold: frozenset[int],
    placement: Placement,
    settled: tuple[int, ...] | None,
    is_declared: bool = True,
    is_contradicted: bool = False,
) -> Demand:
    rack = {broker_id: broker.rack or "" for broker_id, broker in observed.brokers.items()}
    counted = {b for b in observed.brokers if _is_named(placement, b, rack[b])}
    counted = {b for b in counted if _state(desired, b) not in {BrokerState.DRAINING, BrokerState.ABSENT}}
    keeping = frozenset(b for b in counted if not observed.brokers[b].is_fenced)
    getting = frozenset(b for b in keeping if _state(desired, b) is not BrokerState.CORDONED)
    leading_at_need = frozenset(b for b in keeping if _state(desired, b) is not BrokerState.MAINTENANCE)
    return Demand(
        topic_partition=key,
        current=current,
        size=size,
        need=need,
        allowed=getting | (keeping & frozenset(current)) | must_hold,
        must_hold=must_hold,
        bounds=_exact(placement.racks_replicas, rack)
        if placement.racks_replicas is not None
        else _rack_bounds(placement.racks_spread, need, {rack[b] for b in counted}, rack, current),
        counted_racks=frozenset(rack[b] for b in counted),
        is_yielding=placement.racks_spread is not Spread.STRICT and placement.racks_replicas is None,
        leader_racks=placement.racks_leader,
        leading=frozenset(
            b for b in leading_at_need if placement.racks_leader is None or rack[b] in placement.racks_leader
        ),
        leading_at_need=leading_at_need,
        settled=settled,
        is_declared=is_declared,
        is_contradicted=is_contradicted,
    )


def _is_named(placement: Placement, broker_id: int, rack: str) -> bool:
    return (
        (placement.brokers_only is None or broker_id in placement.brokers_only)
        and broker_id not in placement.brokers_except
        and (placement.racks_only is None or rack in placement.racks_only)
    )


def _exact(by_rack: Sequence[tuple[str, int]], rack: Mapping[int, str]) -> Mapping[str, tuple[int, int]]:
    """Return bounds that leave each rack its number of replicas, and the others none."""
    return dict.fromkeys(rack.values(), (0, 0)) | {name: (count, count) for name, count in by_rack}


def _rack_bounds(
    spread: Spread | None, need: int, counted: set[str], rack: Mapping[int, str], current: tuple[int, ...]
) -> Mapping[str, tuple[int, int]]:
    """Return the rule's bounds; where no rule is written, a rack of an existing partition may also stay as it is."""
    every = sorted(set(rack.values()))
    if spread is Spread.IGNORE or not counted:
        return dict.fromkeys(every, (0, need))
    held = Counter(rack[replica] for replica in current if replica in rack)
    known = counted - {""}
    if known and known != counted:
        return _partly_known_bounds(spread, need, known, every, held)
    low, high = floor(Fraction(need, len(counted))), ceil(Fraction(need, len(counted)))
    if spread is not None or not current:
        return {name: (low if name in counted else 0, high) for name in every}
    return {name: (min(low, held[name]) if name in counted else 0, max(high, held[name])) for name in every}


def _partly_known_bounds(
    spread: Spread | None, need: int, known: set[str], every: Sequence[str], held: Mapping[str, int]
) -> Mapping[str, tuple[int, int]]:
    """Return the bounds where some brokers have no rack: what is there may be in any, so none has to be filled.

    Nothing that is moved makes it worse: the last replica stays in its rack, and no more than a rack may hold gather
    on these brokers.
    """
    high = ceil(Fraction(need, len(known)))
    bounds = {}
    for name in every:
        low = 1 if name in known and held[name] and need >= len(known) else 0
        bounds[name] = low, max(high, held[name] if spread is None or not name else 0)
    return bounds


def legal_sets(demand: Demand, rack_of: Mapping[int, str]) -> list[tuple[int, ...]]:
    """Return every replica set, sorted, that the rules allow; none where they cannot all hold."""
    if demand.settled is not None:
        return [tuple(sorted(demand.settled))]
    free = sorted(demand.allowed - demand.must_hold)
    found = [
        tuple(sorted((*demand.must_hold, *chosen)))
        for chosen in combinations(free, demand.need - len(demand.must_hold))
    ]
    excess = {replicas: rack_excess(demand, rack_of, replicas) for replicas in found}
    least = min(excess.values(), default=(0, 0, 0))
    if least != (0, 0, 0) and not demand.is_yielding:
        return []
    return [replicas for replicas in found if excess[replicas] == least]


def loose_sets(demand: Demand, rack_of: Mapping[int, str]) -> Mapping[tuple[int, ...], int]:
    """Return every replica set that is legal if a spread that is not strict is none, and how far it is from that.

    That is the number of replicas too many in their rack, and of those too few. Where no set keeps the spread, it is
    judged against what the racks hold in those that are the nearest to it.
    """
    legal = legal_sets(demand, rack_of)
    if not demand.is_yielding or demand.settled is not None or not legal:
        return dict.fromkeys(legal, 0)
    bounds, racks = demand.bounds, sorted({*rack_of.values()})
    if rack_excess(demand, rack_of, legal[0]) != (0, 0, 0):
        held = [Counter(rack_of[replica] for replica in replicas) for replicas in legal]
        bounds = {rack: (min(each[rack] for each in held), max(each[rack] for each in held)) for rack in racks}
    nearest = replace(demand, bounds=bounds)
    loose = replace(demand, bounds=dict.fromkeys(racks, (0, demand.need)))
    return {replicas: sum(rack_excess(nearest, rack_of, replicas)[:2]) for replicas in legal_sets(loose, rack_of)}


def is_feasible(problem: Problem) -> bool:
    """Whether every rule can hold for every partition; a broker to be empty must not be held by what may not move."""
    return all(
        legal_sets(demand, problem.rack_of) and _is_settlement_legal(problem, demand) for demand in problem.demands
    )


def _is_settlement_legal(problem: Problem, demand: Demand) -> bool:
    """Whether replicas that the files decide keep the other rules; those of undeclared topics may always stay."""
    if demand.settled is None or not demand.is_declared:
        return True
    if demand.is_contradicted or len(demand.settled) != demand.need:
        return False
    keeps_spread = demand.is_yielding or rack_excess(demand, problem.rack_of, demand.settled) == (0, 0, 0)
    return demand.allowed.issuperset(demand.settled) and keeps_spread


def rack_excess(demand: Demand, rack_of: Mapping[int, str], replicas: Iterable[int]) -> tuple[int, int, int]:
    """Return how far a set is from its rack bounds: replicas above, replicas below, the worst rack above."""
    held = Counter(rack_of[replica] for replica in replicas)
    above = [max(0, held[rack] - high) for rack, (_, high) in demand.bounds.items()]
    below = [max(0, low - held[rack]) for rack, (low, _) in demand.bounds.items()]
    return sum(above), sum(below), max(above, default=0)


def squares(capacity: Mapping[int, int], counts: Mapping[int, int]) -> int:
    """Return the sum of count^2 / capacity, times the least common multiple of the capacities."""
    scale = lcm(*capacity.values())
    return sum(counts.get(broker_id, 0) ** 2 * (scale // weight) for broker_id, weight in capacity.items())


def outside(capacity: Mapping[int, int], counts: Mapping[int, int], fraction: Fraction) -> int:
    """Return the replicas by which brokers are outside their band; the whole numbers next to a share are inside."""
    total = sum(counts.get(broker_id, 0) for broker_id in capacity)
    found = 0
    for broker_id, weight in capacity.items():
        share = Fraction(total * weight, sum(capacity.values()))
        low = min(ceil(share * (1 - fraction)), floor(share))
        high = max(floor(share * (1 + fraction)), ceil(share))
        held = counts.get(broker_id, 0)
        found += max(0, low - held) + max(0, held - high)
    return found


@dataclass(frozen=True, slots=True)
class Worth:
    """What a placement is worth, the smaller the better; compared field by field in the order of `key`."""

    balance: int
    bytes: int
    copies: int
    unled: int
    squares: int
    leaders_lost: int
    off_spread: int = 0

    @property
    def key(self) -> Score:
        """The objectives in the contract's order; the least squares are the balance itself where `even` is asked."""
        return self.off_spread, self.balance, self.bytes, self.copies, self.unled, self.squares, self.leaders_lost

    def least_of(self, problem: "Problem", target: BalanceTarget) -> Score:
        """Return those objectives that a plan reaches exactly: leader racks are only preferred beside a balance."""
        if not any(demand.leader_racks is not None for demand in problem.demands):
            return self.key
        return self.key[:5] if isinstance(target, Off) else self.key[:4]


def balance_of(target: BalanceTarget, capacity: Mapping[int, int], counts: Mapping[int, int]) -> int:
    """Return how far counts are from a target."""
    match target:
        case Off():
            return 0
        case Even():
            return squares(capacity, counts)
        case Within():
            return outside(capacity, counts, target.fraction)


def worth_of(problem: Problem, target: BalanceTarget, placed: Mapping[TopicPartition, Iterable[int]]) -> Worth:
    """Return what that placement is worth."""
    sets = {key: tuple(replicas) for key, replicas in placed.items()}
    counts = Counter(replica for replicas in sets.values() for replica in replicas)
    return Worth(
        balance=balance_of(target, problem.capacity, counts),
        bytes=sum(demand.bytes_copied(sets[demand.topic_partition]) for demand in problem.demands),
        copies=sum(demand.copied(sets[demand.topic_partition]) for demand in problem.demands),
        unled=sum(_is_unled(demand, sets[demand.topic_partition]) for demand in problem.demands),
        squares=squares(problem.capacity, counts),
        leaders_lost=sum(_loses_leader(demand, sets[demand.topic_partition]) for demand in problem.demands),
        off_spread=sum(_off_spread(problem, demand, sets[demand.topic_partition]) for demand in problem.demands),
    )


def _off_spread(problem: Problem, demand: Demand, replicas: Iterable[int]) -> int:
    return loose_sets(demand, problem.rack_of)[tuple(sorted(replicas))]


def _is_unled(demand: Demand, replicas: Iterable[int]) -> bool:
    """Whether no replica is in a rack that is to lead."""
    return demand.leader_racks is not None and demand.leading.isdisjoint(replicas)


def _loses_leader(demand: Demand, replicas: Iterable[int]) -> bool:
    """Whether a preferred leader that may lead goes."""
    return bool(demand.current) and demand.current[0] in demand.leading and demand.current[0] not in replicas


def most_of(problem: Problem, limit: int) -> Mapping[int, int]:
    """Return what each broker may hold where a limit is written: more only where so much of it may not be moved."""
    staying = Counter(b for d in problem.demands for b in (d.must_hold if d.settled is None else d.settled))
    return {broker_id: max(limit, staying[broker_id]) for broker_id in problem.brokers}


def least_placement(problem: Problem, target: BalanceTarget, most: Mapping[int, int] | None = None) -> Worth | None:
    """Return what the best of all legal placements is worth, None where there is no legal one.

    `most`: the replicas that each broker may hold. A spread that is not strict yields to that, by as little as can be.
    Where a size is unknown copies are counted before bytes.
    """
    order: Callable[[int, int], tuple[int, int]]
    order = (lambda size, copies: (size, copies)) if problem.is_size_known else (lambda size, copies: (copies, size))
    reached: dict[Counts, Score] = {(0,) * len(problem.brokers): (0, 0, 0, 0, 0)}
    for demand in problem.demands:
        sets = loose_sets(demand, problem.rack_of)
        sets = sets if most is not None else dict.fromkeys(legal_sets(demand, problem.rack_of), 0)
        choices = [
            (
                tuple(int(broker_id in replicas) for broker_id in problem.brokers),
                (
                    off,
                    *order(demand.bytes_copied(replicas), demand.copied(replicas)),
                    int(_is_unled(demand, replicas)),
                    int(_loses_leader(demand, replicas)),
                ),
            )
            for replicas, off in sets.items()
        ]
        reached = {
            counts: score
            for counts, score in _extended(reached, choices).items()
            if most is None or all(count <= most[b] for b, count in zip(problem.brokers, counts, strict=True))
        }
    keys = [_key(problem, target, counts, score) for counts, score in reached.items()]
    if not keys:
        return None
    off, balance, first, second, unled, even, lost = min(keys)
    size, copies = order(first, second)
    return Worth(balance, size, copies, unled, even, lost, off)


def _key(problem: Problem, target: BalanceTarget, counts: Counts, score: Score) -> Score:
    named = dict(zip(problem.brokers, counts, strict=True))
    balance = balance_of(target, problem.capacity, named)
    return score[0], balance, *score[1:4], squares(problem.capacity, named), score[4]


def _extended(reached: Mapping[Counts, Score], choices: Sequence[tuple[Counts, Score]]) -> dict[Counts, Score]:
    """Return the cheapest way to each count after one more partition."""
    best: dict[Counts, Score] = {}
    for counts, score in reached.items():
        for more, cost in choices:
            now = tuple(map(sum, zip(counts, more, strict=True)))
            worth = tuple(map(sum, zip(score, cost, strict=True)))
            if now not in best or worth < best[now]:
                best[now] = worth
    return best


def leader_options(demand: Demand, replicas: Sequence[int]) -> tuple[int, ...]:
    """Return who may be first: one in a leader rack; where none is there, in another; else one in maintenance."""
    if demand.settled is not None:
        return tuple(demand.settled[:1])
    for tier in (demand.leading, demand.leading_at_need):
        found = tuple(replica for replica in sorted(replicas) if replica in tier)
        if found:
            return found
    return tuple(sorted(replicas))


def leader_worth(problem: Problem, target: BalanceTarget, leaders: Mapping[TopicPartition, int]) -> Score:
    """Return how even these preferred leaders are, and how many of them are others than now."""
    counts = Counter(leaders.values())
    changed = sum(leaders[d.topic_partition] != d.current[0] for d in problem.demands if d.current)
    return balance_of(target, problem.capacity, counts), changed


def least_leaders(
    problem: Problem, target: BalanceTarget, placed: Mapping[TopicPartition, Sequence[int]]
) -> Score | None:
    """Return the best that any choice of preferred leaders among these replicas is worth."""
    reached: dict[Counts, Score] = {(0,) * len(problem.brokers): (0,)}
    for demand in problem.demands:
        choices = [
            (
                tuple(int(broker_id == leader) for broker_id in problem.brokers),
                (int(bool(demand.current) and leader != demand.current[0]),),
            )
            for leader in leader_options(demand, placed[demand.topic_partition])
        ]
        reached = _extended(reached, choices)
    keys = [
        (balance_of(target, problem.capacity, dict(zip(problem.brokers, counts, strict=True))), score[0])
        for counts, score in reached.items()
    ]
    return min(keys, default=None)


def reached_replicas(
    observed: Cluster, moves: Iterable[Move], topic_changes: Iterable[object]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return every partition's ordered replicas once the moves and the new assignments are done."""
    placed = {key: _target(partition) for key, partition in observed.partitions()}
    for move in moves:
        placed[move.topic_partition] = move.to_replicas
    for change in topic_changes:
        if isinstance(change, CreateTopic | CreatePartitions):
            for number, replicas in change.assignment.items():
                placed[TopicPartition(change.topic, number)] = replicas
    return placed


def _target(partition: Partition) -> tuple[int, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.removing_replicas)
