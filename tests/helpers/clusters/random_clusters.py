"""Random clusters with something to do: unequal racks, capacities, every broker state, every kind of topic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    MovePolicy,
    Off,
    Placement,
    Protection,
    Spread,
    Within,
)
from reconciler.model.problem import Location

SIZES = (0, 1, 2, 3, 5, 5, 7, 11, 1000)


@dataclass(frozen=True, slots=True)
class Size:
    """How large the clusters are at most."""

    brokers: int = 5
    topics: int = 3
    partitions: int = 6
    replication_factor: int = 3


TINY = Size()
SMALL = Size(brokers=9, topics=6, partitions=40, replication_factor=4)


def random_cluster(seed: int, size: Size = TINY) -> tuple[Desired, Cluster]:
    """Return a desired state and a cluster drawn from the seed; some cannot be planned."""
    random = Random(seed)
    rack_of = _racks(random, size)
    states = _states(random, sorted(rack_of))
    dead = {broker_id for broker_id in rack_of if random.random() < 0.07}
    topics, declared = _topics(random, size, rack_of)
    observed = Cluster(
        cluster_id="random",
        brokers={b: Broker(b, rack, is_fenced=b in dead) for b, rack in sorted(rack_of.items())},
        topics={topic.name: topic for topic in topics},
    )
    return Desired(_cluster_document(random, states), declared), observed


def shuffled(desired: Desired, seed: int) -> Desired:
    """Return the same desired state with its mappings filled in another order."""
    random = Random(seed)
    brokers, topics = list(desired.cluster.brokers.items()), list(desired.topics.items())
    random.shuffle(brokers)
    random.shuffle(topics)
    return replace(desired, cluster=replace(desired.cluster, brokers=dict(brokers)), topics=dict(topics))


def with_unknown_sizes(observed: Cluster, seed: int) -> Cluster:
    """Return the cluster with the sizes of about half its partitions not known, but at least one."""
    random = Random(seed)
    keys = [key for key, _ in observed.partitions()]
    unknown = {key for key in keys if random.random() < 0.5} | set(keys[:1])
    topics = {
        name: replace(
            topic,
            partitions=tuple(
                replace(partition, sizes=()) if (name, partition.partition) in unknown else partition
                for partition in topic.partitions
            ),
        )
        for name, topic in observed.topics.items()
    }
    return replace(observed, topics=topics)


def partly_racked(observed: Cluster, seed: int) -> Cluster:
    """Return the cluster with about a third of its brokers in no rack, but at least one, and another in one."""
    random = Random(f"racks {seed}")
    first, *others = random.sample(sorted(observed.brokers), len(observed.brokers))
    nowhere = {first, *(broker_id for broker_id in others[1:] if random.random() < 0.3)}
    brokers = {b: replace(broker, rack=None if b in nowhere else broker.rack) for b, broker in observed.brokers.items()}
    return replace(observed, brokers=brokers)


def _racks(random: Random, size: Size) -> dict[int, str]:
    """Deal brokers to one to four racks unequally, now and then to none at all."""
    names: Sequence[str | None] = random.choice(["a", "ab", "abc", "abc", "abcd"])
    ids = random.sample(range(1, 3 * size.brokers), random.randint(2, size.brokers))
    return {broker_id: str(random.choice(names)) for broker_id in ids}


def _states(random: Random, ids: Sequence[int]) -> dict[int, DesiredBroker]:
    states = [BrokerState.ACTIVE] * 7 + [BrokerState.CORDONED, BrokerState.MAINTENANCE, BrokerState.DRAINING]
    found = {}
    for line, broker_id in enumerate(ids):
        state = random.choice(states)
        capacity = random.choice([1, 1, 1, 1, 2, 3])
        if state is not BrokerState.ACTIVE or capacity != 1:
            found[broker_id] = DesiredBroker(broker_id, state, capacity, at=Location("cluster.yaml", 10 + line))
    return found


def _target(random: Random) -> BalanceTarget:
    within = Within(random.choice([Fraction(0), Fraction(1, 10), Fraction(3, 10), Fraction(1, 2)]))
    targets: list[BalanceTarget] = [Even(), Even(), Off(), within]
    return random.choice(targets)


def _cluster_document(random: Random, states: dict[int, DesiredBroker]) -> DesiredCluster:
    return DesiredCluster(
        name="random",
        brokers=states,
        balance=Balance(replicas=_target(random), leaders=_target(random)),
        moves=MovePolicy(per_broker=random.choice([1, 2, 10]), per_stage=random.choice([1, 3, 500])),
    )


def _topics(random: Random, size: Size, rack_of: dict[int, str]) -> tuple[list[Topic], dict[str, DesiredTopic]]:
    left = random.randint(1, size.partitions)
    topics: list[Topic] = []
    declared: dict[str, DesiredTopic] = {}
    for number in range(random.randint(1, size.topics)):
        name = f"t{number}"
        there = random.randint(0, left)
        left -= there
        topic = _topic(random, name, there, rack_of, size)
        topics += [topic] if there else []
        if there == 0 or random.random() < 0.85:
            growth = random.randint(0 if there else 1, 2) if left >= 2 else 0
            if there + growth:
                declared[name] = _declared(random, topic, growth, rack_of, size)
                left -= growth
    return topics, declared


def _topic(random: Random, name: str, partitions: int, rack_of: dict[int, str], size: Size) -> Topic:
    ids = sorted(rack_of)
    factor = min(random.randint(1, size.replication_factor), len(ids))
    weights = [random.choice([1, 1, 1, 4]) for _ in ids]
    return Topic(name, tuple(_partition(random, number, factor, ids, weights) for number in range(partitions)))


def _partition(random: Random, number: int, factor: int, ids: Sequence[int], weights: Sequence[int]) -> Partition:
    order = sorted(range(len(ids)), key=lambda i: random.random() ** (1 / weights[i]), reverse=True)
    replicas = tuple(ids[i] for i in order[:factor])
    sizes = () if random.random() < 0.05 else (random.choice(SIZES),) * factor
    return Partition(number, replicas[0], replicas, replicas, sizes=sizes)


def _declared(random: Random, topic: Topic, growth: int, rack_of: dict[int, str], size: Size) -> DesiredTopic:
    there = len(topic.partitions)
    factor = random.randint(1, min(size.replication_factor, len(rack_of)))
    present = len(topic.partitions[0].replicas) if there else factor
    is_written = there == 0 or random.random() < 0.5
    protect = frozenset({Protection.MOVE}) if random.random() < 0.08 else frozenset[Protection]()
    wanted = (factor if random.random() < 0.6 else present) if is_written else None
    return DesiredTopic(
        topic.name,
        partitions=there + growth if growth or random.random() < 0.5 else None,
        replication_factor=wanted,
        placement=_placement(random, rack_of, there + growth, wanted or present),
        protect=protect,
        at={"": Location("topics.yaml", 1), "replicationFactor": Location("topics.yaml", 5)},
    )


def _placement(random: Random, rack_of: dict[int, str], partitions: int, factor: int) -> Placement:
    ids = sorted(rack_of)
    racks = sorted(set(rack_of.values()))
    spread = random.choice([Spread.STRICT, Spread.STRICT, Spread.STRICT, Spread.PREFER, Spread.IGNORE, None])
    draw = random.random()
    if draw < 0.08:
        lists = tuple(tuple(random.sample(ids, factor)) for _ in range(random.randint(1, partitions)))
        # One list a partition: the others take the brokers in turn.
        others = range(len(lists), partitions)
        lists += tuple(tuple(ids[(number + place) % len(ids)] for place in range(factor)) for number in others)
        return Placement(racks_spread=spread if random.random() < 0.2 else None, assignment=lists)
    placement = Placement(racks_spread=spread)
    if draw < 0.16:
        return replace(placement, brokers_except=frozenset({random.choice(ids)}))
    if draw < 0.22:
        return replace(placement, brokers_only=frozenset(random.sample(ids, max(factor, len(ids) - 1))))
    if draw < 0.28:
        return replace(placement, racks_only=frozenset(random.sample(racks, max(1, len(racks) - 1))))
    if draw < 0.38:
        return replace(placement, racks_leader=frozenset(random.sample(racks, max(1, len(racks) // 2))))
    return placement
