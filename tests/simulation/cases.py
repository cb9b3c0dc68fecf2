"""A small cluster with something to do, and the planner's plan for it, drawn from one seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Broker,
    Cluster,
    LogDir,
    Partition,
    Topic,
)
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    MovePolicy,
    Off,
    Placement,
    Spread,
    TopicPolicy,
)
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.plan import plan_of

MB = 1_000_000
VERSIONS = ("3.9", "4.1", "4.3")
SIZES = (0, 3 * MB, 20 * MB, 60 * MB, 150 * MB, 600 * MB)
DISK = 10**13
BEGIN = "2026-11-21T14:00:00Z"


@dataclass(frozen=True, slots=True)
class Case:
    """What a seed gives: the desired state, the cluster as it was observed, and the plan made of both."""

    desired: Desired
    before: Cluster
    plan: Plan


def drawn_case(seed: int) -> Case:
    """Return the seed's case: 4-8 brokers, 2-4 racks, 2-6 topics, 5-30 partitions, a plan that is not empty."""
    random = Random(f"case {seed}")
    while True:
        desired, before = _drawn(random)
        try:
            plan = plan_of(desired, before)
        except ReconcilerError:
            continue
        if plan.stages and not plan.violations:
            return Case(desired, before, plan)


def _drawn(random: Random) -> tuple[Desired, Cluster]:
    racks = "abcd"[: random.randint(2, 4)]
    count = random.randint(max(4, len(racks)), 8)
    ids = sorted(random.sample(range(1, 12), count))
    rack_of = {broker: racks[index % len(racks)] for index, broker in enumerate(ids)}
    topics = _topics(random, ids, rack_of)
    before = Cluster(
        "simulated",
        brokers={broker: _broker(random, broker, rack_of[broker]) for broker in ids},
        topics={topic.name: topic for topic in topics},
        observed_at=BEGIN,
        kafka_version=random.choice(VERSIONS),
        controller_id=random.choice(ids),
    )
    return Desired(_document(random, ids), _declared(random, before, rack_of), digest="sha256:00"), before


def _broker(random: Random, broker: int, rack: str) -> Broker:
    configs: dict[str, str] = {}
    if random.random() < 0.15:
        configs[LEADER_THROTTLED_RATE] = str(random.choice((5, 40)) * MB)
    if random.random() < 0.15:
        configs[FOLLOWER_THROTTLED_RATE] = str(random.choice((5, 40)) * MB)
    dirs = ("/d1", "/d2")[: random.choice((1, 2))]
    return Broker(broker, rack, log_dirs=tuple(LogDir(path, DISK, DISK) for path in dirs), configs=configs)


def _topics(random: Random, ids: Sequence[int], rack_of: Mapping[int, str]) -> list[Topic]:
    left = random.randint(5, 30)
    count = min(left, random.randint(2, 6))
    sizes = [left // count + (index < left % count) for index in range(count)]
    return [_topic(random, f"t{index}", size, ids, rack_of) for index, size in enumerate(sizes)]


def _topic(random: Random, name: str, count: int, ids: Sequence[int], rack_of: Mapping[int, str]) -> Topic:
    factor = random.choice((1, 2, 3, 3, 3))
    configs: dict[str, str] = {}
    if factor > 1 and random.random() < 0.6:
        configs["min.insync.replicas"] = str(factor - 1)
    if random.random() < 0.3:
        configs["retention.ms"] = "1000"
    for key in (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS):
        drawn = random.random()
        if drawn < 0.08:
            configs[key] = "*"
        elif drawn < 0.12:
            configs[key] = ""
        elif drawn < 0.25:
            configs[key] = ",".join(f"{number}:{random.choice(ids)}" for number in range(min(2, count)))
    partitions = tuple(_partition(random, number, factor, ids, rack_of) for number in range(count))
    return Topic(name, partitions, topic_id=f"id-of-{name}", configs=configs)


def _partition(random: Random, number: int, factor: int, ids: Sequence[int], rack_of: Mapping[int, str]) -> Partition:
    """Place a partition over as many racks as it can, most of them on the first brokers: there is something to even."""
    pool = ids[: max(factor, len(ids) - random.choice((0, 1, 2)))]
    replicas: list[int] = []
    while len(replicas) < factor:
        free = [broker for broker in pool if broker not in replicas]
        used = {rack_of[broker] for broker in replicas}
        apart = [broker for broker in free if rack_of[broker] not in used]
        replicas.append(random.choice(apart or free))
    size = random.choice(SIZES)
    leader = random.choice(replicas) if random.random() < 0.2 else replicas[0]
    return Partition(
        number,
        leader,
        tuple(replicas),
        tuple(replicas),
        sizes=(size,) * factor,
        log_dirs=("/d1",) * factor,
        end_offset=size // 1000,
    )


def _document(random: Random, ids: Sequence[int]) -> DesiredCluster:
    state = random.choice((None, BrokerState.DRAINING, BrokerState.MAINTENANCE, BrokerState.CORDONED))
    brokers = {} if state is None else {(broker := random.choice(ids)): DesiredBroker(broker, state)}
    return DesiredCluster(
        name="small",
        brokers=brokers,
        topics=TopicPolicy(is_delete_allowed=True),
        balance=Balance(random.choice((Even(), Even(), Off())), random.choice((Even(), Off()))),
        moves=MovePolicy(
            throttle_bytes_per_second=random.choice((None, 2 * MB, 10 * MB, 50 * MB)),
            per_broker=random.choice((1, 2, 10)),
            per_partition=random.choice((1, 1, 2)),
            per_stage=random.choice((2, 5, 500)),
            election_batch=random.choice((1, 3, 100)),
            timeout_seconds=random.choice((600, 7200)),
        ),
    )


def _declared(random: Random, before: Cluster, rack_of: Mapping[int, str]) -> dict[str, DesiredTopic]:
    declared = {topic.name: _declaration(random, topic, rack_of) for topic in before.topics.values()}
    gone = random.choice(sorted(declared))
    if random.random() < 0.1 and len(declared) > 2:
        declared[gone] = DesiredTopic(gone, is_absent=True)
    if random.random() < 0.25:
        declared["new"] = DesiredTopic("new", partitions=random.randint(1, 3), replication_factor=2)
    return {name: declared[name] for name in sorted(declared)}


def _declaration(random: Random, topic: Topic, rack_of: Mapping[int, str]) -> DesiredTopic:
    factor = len(topic.partitions[0].replicas)
    if random.random() < 0.25:
        factor = max(1, factor + random.choice((-1, 1)))
    least = topic.configs.get("min.insync.replicas")
    if least is not None and int(least) > factor:
        factor = int(least)
    wanted = DesiredTopic(
        topic.name,
        replication_factor=min(factor, len(rack_of)),
        placement=Placement(racks_spread=random.choice((Spread.STRICT, Spread.STRICT, Spread.PREFER, None))),
    )
    if random.random() < 0.15:
        wanted = replace(wanted, partitions=len(topic.partitions) + random.randint(1, 2))
    if random.random() < 0.2:
        wanted = replace(wanted, config={"retention.ms": random.choice(("2000", None)), "segment.bytes": "2097152"})
    return wanted
