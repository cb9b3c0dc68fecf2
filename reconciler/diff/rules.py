"""Resolves the hard rules of each topic for the brokers of one cluster: who may hold, keep and lead what."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache

from reconciler.diff.managed import managed_topics
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, LogDirState, Placement, Protection, Spread

LEAVING = frozenset({BrokerState.DRAINING, BrokerState.ABSENT})
NO_RACK = ""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What holds for every partition of one topic.

    `receivable`: brokers that may get a new replica; `keepable`: those and the ones that may only keep one (cordoned,
    in the files or by Kafka itself).
    `leadable`: brokers that are to lead; `leadable_at_need`: those that lead where none of these is among the replicas,
    which are in another rack; where none of these is either, one in maintenance leads. `racks`: those that count for
    the rack rule, whether their brokers live or not. `has_rackless`: some of these brokers have no rack while others
    have one. A replica there may be in any rack, so it counts in none: bytes move for racks only where the rule is
    broken wherever it is.
    `replication_factor` None: each partition keeps its own. `spread` None: no rack rule is written; then nothing moves
    for it and nothing makes it worse. `rack_replicas`: how many each rack is to hold exactly, which is strict.
    `is_frozen`: no replica of it may move, for any reason.
    """

    topic: str
    replication_factor: int | None
    receivable: frozenset[int]
    keepable: frozenset[int]
    leadable: frozenset[int]
    spread: Spread | None
    racks: tuple[str, ...]
    rack_of: Mapping[int, str]
    assignment: tuple[tuple[int, ...], ...] | None = None
    is_frozen: bool = False
    declared: DesiredTopic | None = None
    leadable_at_need: frozenset[int] = frozenset()
    rack_replicas: tuple[tuple[str, int], ...] | None = None
    has_rackless: bool = False

    @property
    def is_managed(self) -> bool:
        """Whether somebody declared it; else only its replicas on draining brokers may move."""
        return self.declared is not None

    @property
    def has_placement(self) -> bool:
        """Whether a file says how many replicas it has, or where; else its replicas on dead brokers stay."""
        declared = self.declared
        return declared is not None and (declared.replication_factor is not None or declared.placement != Placement())

    @property
    def fit(self) -> tuple[frozenset[int], ...]:
        """The brokers that may get a replica, keep one, lead, and lead at need."""
        return self.receivable, self.keepable, self.leadable, self.leadable_at_need

    @property
    def choice(self) -> object:
        """What two topics have in common whose partitions may choose among the same brokers and racks."""
        return self.fit, self.spread, self.racks, self.rack_replicas, self.has_rackless

    @property
    def asks_for_present(self) -> bool:
        """Whether who may take a partition's replicas depends on where they are now."""
        return self.spread is None or self.has_rackless or len(self.keepable) != len(self.receivable)

    def rack_bounds(self, replication_factor: int, rack: str = NO_RACK) -> tuple[int, int]:
        """Return the fewest and the most replicas of a partition that the rack rule wants in that rack."""
        if self.rack_replicas is not None:
            count = dict(self.rack_replicas).get(rack, 0)
            return count, count
        racks = max(1, len(self.racks))
        return replication_factor // racks, -(-replication_factor // racks)

    def rack_excess(self, replicas: Sequence[int]) -> int:
        """Return by how many replicas these break the rack rule (0: kept), whatever the spread's strength."""
        held_in = tuple([self.rack_of.get(replica, NO_RACK) for replica in replicas])
        if self.rack_replicas is not None:
            return _misplaced(held_in, self.rack_replicas)
        return (_crowding if self.has_rackless else _rack_excess)(held_in, self.racks)

    def rack_limits(self, replication_factor: int, replicas: Collection[int] = ()) -> Mapping[str, tuple[int, int]]:
        """Return the fewest and most replicas each rack may hold of a partition that now has these replicas.

        `strict` is taken as written. `prefer` yields where brokers are missing: what a rack cannot hold goes, as evenly
        as can be, to the others. Where no spread is written, a rack may also stay as it is. Beside brokers without a
        rack, a rack only has to keep the last replica that it holds, and these brokers may keep as many as they hold.
        """
        spread = self.spread if replicas or self.spread is not None else Spread.PREFER
        holding = self.receivable | (self.keepable & frozenset(replicas))
        room = Counter(self.rack_of[broker_id] for broker_id in holding)
        racks = sorted({*self.racks, *room, *dict(self.rack_replicas or ())})
        if spread is Spread.IGNORE:
            return dict.fromkeys(racks, (0, replication_factor))
        low, high = self.rack_bounds(replication_factor)
        if spread is Spread.STRICT and (self.rack_replicas is not None or not self.has_rackless):
            return {rack: self.rack_bounds(replication_factor, rack) for rack in racks}
        held = Counter(self.rack_of.get(replica, NO_RACK) for replica in replicas)
        floor = held if spread is None else Counter(dict.fromkeys(racks, low))
        staying = held if spread is None else Counter[str]()
        if self.has_rackless:
            floor = Counter({rack: min(held[rack], 1) for rack in self.racks})
            staying = Counter({**staying, NO_RACK: held[NO_RACK]})
        limits = {rack: (min(low, room[rack], floor[rack]), max(high, staying[rack])) for rack in racks}
        return limits if spread is Spread.STRICT else _yielding(limits, room, replication_factor)

    def target_factor(self, replicas: Sequence[int]) -> int:
        """Return how many replicas a partition that has these is to have."""
        return self.replication_factor or len(replicas)


@lru_cache(maxsize=1 << 16)
def _rack_excess(held_in: tuple[str, ...], racks: tuple[str, ...]) -> int:
    low, high = len(held_in) // max(1, len(racks)), -(-len(held_in) // max(1, len(racks)))
    count = Counter(held_in)
    over = sum(max(0, held - high) for held in count.values())
    under = sum(max(0, low - count[rack]) for rack in racks)
    return max(over, under)


def _crowding(held_in: tuple[str, ...], racks: tuple[str, ...]) -> int:
    """Return by how many replicas racks hold too many; a replica without a rack may be what another rack lacks."""
    return sum(max(0, held_in.count(rack) + -len(held_in) // len(racks)) for rack in racks)


@lru_cache(maxsize=1 << 16)
def _misplaced(held_in: tuple[str, ...], wanted: tuple[tuple[str, int], ...]) -> int:
    """Return how many replicas are in a wrong rack; on the way, more than are wanted in all, or fewer, are no fault."""
    count, exact = Counter(held_in), Counter(dict(wanted))
    return min((count - exact).total(), (exact - count).total())


def _yielding(
    limits: Mapping[str, tuple[int, int]], room: Mapping[str, int], replication_factor: int
) -> Mapping[str, tuple[int, int]]:
    """Return the limits with the least excess over them that lets all replicas find a place."""

    def capacity(extra: int) -> int:
        return sum(min(room.get(rack, 0), high + extra) for rack, (_, high) in limits.items())

    if capacity(0) >= replication_factor or sum(room.values()) < replication_factor:
        return limits
    extra = next(extra for extra in range(1, replication_factor + 1) if capacity(extra) >= replication_factor)
    return {rack: (min(room.get(rack, 0), high), high + extra) for rack, (_, high) in limits.items()}


def topic_rules(desired: Desired, observed: Cluster) -> Mapping[str, TopicRules]:
    """Return the rules of every observed topic and of every topic to create, by name."""
    declared = managed_topics(desired, observed)
    names = sorted(set(observed.topics) | set(declared))
    closed = cordoned_brokers(desired, observed)
    shared: dict[Placement, TopicRules] = {}
    rules = {}
    for name in names:
        topic = declared.get(name)
        placement = topic.placement if topic else Placement()
        if placement not in shared:
            shared[placement] = _of_placement(placement, desired, observed, closed)
        rules[name] = replace(
            shared[placement],
            topic=name,
            replication_factor=topic.replication_factor if topic else None,
            is_frozen=topic is not None and Protection.MOVE in topic.protect,
            declared=topic,
        )
    return rules


def _of_placement(placement: Placement, desired: Desired, observed: Cluster, closed: frozenset[int]) -> TopicRules:
    """Return the part of the rules that topics with the same placement share."""
    rack_of = {broker_id: broker.rack or NO_RACK for broker_id, broker in observed.brokers.items()}
    state_of = {broker_id: desired.cluster.broker(broker_id).state for broker_id in observed.brokers}
    staying = {
        broker_id
        for broker_id in observed.brokers
        if state_of[broker_id] not in LEAVING and barred_by(placement, broker_id, rack_of[broker_id]) is None
    }
    keepable = frozenset(broker_id for broker_id in staying if observed.is_alive(broker_id))
    leader_racks = placement.racks_leader
    may_lead = frozenset(b for b in keepable if state_of[b] is not BrokerState.MAINTENANCE)
    rules = TopicRules(
        topic="",
        replication_factor=None,
        receivable=keepable - closed,
        keepable=keepable,
        leadable=frozenset(b for b in may_lead if leader_racks is None or rack_of[b] in leader_racks),
        leadable_at_need=may_lead,
        spread=placement.racks_spread if placement.racks_replicas is None else Spread.STRICT,
        rack_replicas=placement.racks_replicas,
        racks=(),
        rack_of=rack_of,
        assignment=placement.assignment,
    )
    return with_racks(rules, {rack_of[broker_id] for broker_id in staying})


def with_racks(rules: TopicRules, names: AbstractSet[str]) -> TopicRules:
    """Return the rules with the racks of these names counted; brokers without a rack count as one if all are so."""
    known = names - {NO_RACK} or names
    return replace(rules, racks=tuple(sorted(known)), has_rackless=len(known) < len(names))


def cordoned_brokers(desired: Desired, observed: Cluster) -> frozenset[int]:
    """Return the brokers that keep what they have and get nothing new: declared so, all log dirs too, or by Kafka."""
    declared = (one.id for one in desired.cluster.brokers.values() if one.state is BrokerState.CORDONED)
    return frozenset(declared) | cordoned_by_kafka(desired, observed) | _without_open_dirs(desired, observed)


def _without_open_dirs(desired: Desired, observed: Cluster) -> frozenset[int]:
    """Return the brokers of which no log dir may take a replica, some of them by the files."""
    found = set[int]()
    for declared in desired.cluster.brokers.values():
        closed = {one.path for one in declared.log_dirs if one.state is not LogDirState.ACTIVE}
        broker = observed.brokers.get(declared.id)
        if closed and broker is not None and broker.log_dirs:
            closed |= broker.cordoned_dirs
            found.update({broker.id} if closed.issuperset(one.path for one in broker.log_dirs) else ())
    return frozenset(found)


def cordoned_by_kafka(desired: Desired, observed: Cluster) -> frozenset[int]:
    """Return the brokers whose log dirs are all cordoned in Kafka (KIP-1066), and that no file says are active."""
    found = (broker_id for broker_id, broker in observed.brokers.items() if broker.is_cordoned)
    return frozenset(broker_id for broker_id in found if not desired.cluster.broker(broker_id).is_active_written)


def barred_by(placement: Placement, broker_id: int, rack: str) -> str | None:
    """Return which of the placement's own words (brokers and racks by name) bars that broker; None where none does."""
    if placement.brokers_only is not None and broker_id not in placement.brokers_only:
        return "brokers.only"
    if broker_id in placement.brokers_except:
        return "brokers.except"
    return "racks.only" if placement.racks_only is not None and rack not in placement.racks_only else None
