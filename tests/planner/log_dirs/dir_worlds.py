"""Draws small brokers with several log dirs, and says by trying all places what a plan of them must cost.

Nothing of the planner is used here: the wishes are read from the desired state, what lies where from the cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import (
    Balance,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredLogDir,
    DesiredTopic,
    Limits,
    LogDirState,
    Off,
    Placement,
    Protection,
    Within,
)
from reconciler.model.plan import Plan
from reconciler.model.stage import LogDirsStage, ReassignStage

PATHS = ("/d1", "/d2", "/d3")
Costs = tuple[int, int, int, int]
"""Bytes that no log dir has room for, above the limit, outside of the bands, and moved inside the broker."""


def world(seed: int, most: int = 6) -> tuple[Desired, Cluster]:
    """Return two brokers and what is wished: log dirs in all states, topics that may not move, moves between both."""
    random = Random(seed)
    paths = {id_: PATHS[: random.choice((2, 2, 3))] for id_ in (1, 2)}
    placed: dict[str, list[tuple[int, int, str]]] = {}
    for topic in ("free", "goes", "kept", "other"):
        for _ in range(random.randint(0, most // 2 + (most // 2 if topic == "free" else 0))):
            broker = random.choice((1, 2))
            size = random.choice((0, 1, 5, 10, 17, 30, random.randint(1, 60)))
            path = paths[broker][0] if random.random() < 0.5 else random.choice(paths[broker])
            placed.setdefault(topic, []).append((broker, size, path))
    totals = {(id_, path): random.choice((100, 100, 160)) for id_, several in paths.items() for path in several}
    used = dict.fromkeys(totals, 0)
    for each in placed.values():
        for broker, size, path in each:
            used[broker, path] += size
    others = {place: random.choice((0, 0, random.randint(0, 15))) for place in totals}
    cordons = {
        (id_, path): path == several[-1] and random.random() < 0.15
        for id_, several in paths.items()
        for path in several
    }
    brokers = {
        id_: Broker(
            id_,
            log_dirs=tuple(
                LogDir(
                    path,
                    totals[id_, path],
                    totals[id_, path] - used[id_, path] - others[id_, path],
                    is_cordoned=cordons[id_, path],
                )
                for path in several
            ),
        )
        for id_, several in paths.items()
    }
    topics = {name: Topic(name, partitions=tuple(_partitions(each))) for name, each in sorted(placed.items())}
    observed = Cluster("id", brokers=brokers, topics=topics)
    states = (LogDirState.DRAINING, LogDirState.CORDONED, LogDirState.ACTIVE)
    written = {
        id_: DesiredBroker(
            id_,
            log_dirs=tuple(DesiredLogDir(path, random.choice(states)) for path in several if random.random() < 0.25),
        )
        for id_, several in paths.items()
    }
    within = Within(random.choice((Fraction(1, 100), Fraction(1, 10), Fraction(1, 4))))
    cluster = DesiredCluster(
        "c",
        brokers=written,
        balance=Balance(log_dirs=random.choice((Off(), within, within))),
        limits=Limits(disk_use=random.choice((None, Fraction(3, 4)))),
    )
    declared = {
        "free": DesiredTopic("free"),
        "kept": DesiredTopic("kept", protect=frozenset({Protection.MOVE})),
        "goes": DesiredTopic(
            "goes", placement=Placement(assignment=tuple((random.choice((1, 2)),) for _ in placed.get("goes", ())))
        ),
    }
    return Desired(cluster, {name: one for name, one in declared.items() if name in topics}), observed


def _partitions(placed: Sequence[tuple[int, int, str]]) -> Iterator[Partition]:
    for number, (broker, size, path) in enumerate(placed):
        yield Partition(number, broker, (broker,), (broker,), sizes=(size,), log_dirs=(path,))


@dataclass(frozen=True)
class Lying:
    """A replica on a broker once the plan has run: where it lies now, None for one that comes; whether it may move."""

    name: str
    size: int
    path: str | None
    may_move: bool


@dataclass(frozen=True)
class Wanted:
    """What all that is wished of one broker comes to. `is_refused`: something must leave a log dir, and cannot."""

    is_refused: bool = False
    costs: Costs | None = None


def wanted(desired: Desired, observed: Cluster, broker: int) -> Wanted:
    """Return the least costs of a broker, None where nothing is wished of it; by trying all places."""
    _, states = _wishes(desired, observed, broker)
    target = desired.cluster.balance.log_dirs
    if isinstance(target, Off) and not set(states.values()) & {"draining", "cordoned"}:
        return Wanted()
    draining = {path for path, state in states.items() if state == "draining"}
    if draining == set(states):
        return Wanted(is_refused=True)
    there = [*_residents(desired, observed, broker)]
    if any(one.path in draining and not one.may_move and one.name.startswith("kept") for one in there):
        return Wanted(is_refused=True)
    open_ = [path for path, state in states.items() if state == "active"]
    drained = [one for one in there if one.path in draining]
    if not open_:
        return Wanted(is_refused=bool(drained))
    is_free = bool(drained) or (isinstance(target, Within) and len(open_) > 1)
    loose = [
        one
        for one in there
        if one.path is None or one.path in draining or (is_free and one.path in open_ and one.may_move and one.size)
    ]
    least = min(_costs(desired, observed, broker, places) for places in _all_places(loose, open_))
    return Wanted(is_refused=bool(drained) and least[0] > 0, costs=least)


def reached(desired: Desired, observed: Cluster, broker: int, plan: Plan) -> Costs:
    """Return the costs of a broker as the plan leaves it."""
    places: dict[str, str] = {}
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                if broker in move.log_dirs:
                    places[str(move.topic_partition)] = move.log_dirs[broker]
        if isinstance(stage, LogDirsStage):
            for inside in stage.moves:
                if inside.broker == broker:
                    places[str(inside.topic_partition)] = inside.to_dir
    return _costs(desired, observed, broker, places)


def overfull(plan: Plan, observed: Cluster, share: Fraction) -> set[tuple[int, str]]:
    """Return the log dirs that hold more than that share while bytes come in.

    In a stage all that comes counts, and what goes is there until its end.
    """
    total = {(id_, one.path): one.total_bytes or 0 for id_, node in observed.brokers.items() for one in node.log_dirs}
    held = {
        (id_, one.path): (one.total_bytes or 0) - (one.usable_bytes or 0)
        for id_, node in observed.brokers.items()
        for one in node.log_dirs
    }
    found = set()
    for stage in plan.stages:
        coming: list[tuple[tuple[int, str], int]] = []
        going: list[tuple[tuple[int, str], int]] = []
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            partition = observed.partition(move.topic_partition)
            assert partition is not None
            ((old, path, new),) = zip(partition.replicas, partition.log_dirs, move.to_replicas, strict=True)
            chosen = move.log_dirs.get(new) or plan.predicted_log_dirs[move.topic_partition][new]
            coming.append(((new, chosen), move.bytes))
            going.append(((old, path or ""), partition.sizes[0] or 0))
        for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
            coming.append(((inside.broker, inside.to_dir), inside.bytes))
            going.append(((inside.broker, inside.from_dir), inside.bytes))
        for place, size in coming:
            held[place] += size
        found |= {place for place, size in coming if size and held[place] > int(total[place] * share)}
        for place, size in going:
            held[place] -= size
    return found


def is_closed(desired: Desired, observed: Cluster, broker: int) -> bool:
    """Whether no log dir of a broker takes a replica."""
    return "active" not in _wishes(desired, observed, broker)[1].values()


def after(observed: Cluster, plan: Plan) -> Cluster:
    """Return the cluster as the plan leaves it, with the bytes of each log dir counted anew."""
    topics = {name: [*topic.partitions] for name, topic in observed.topics.items()}
    freed: dict[tuple[int, str], int] = {}

    def put(topic: str, number: int, broker: int, path: str) -> None:
        old = topics[topic][number]
        size, before = old.sizes[0] or 0, (old.replicas[0], old.log_dirs[0] or "")
        freed[before] = freed.get(before, 0) + size
        freed[broker, path] = freed.get((broker, path), 0) - size
        topics[topic][number] = replace(old, leader=broker, replicas=(broker,), isr=(broker,), log_dirs=(path,))

    for stage in plan.stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            (broker,) = move.to_replicas
            chosen = move.log_dirs.get(broker) or plan.predicted_log_dirs.get(move.topic_partition, {}).get(broker)
            assert chosen is not None
            put(*move.topic_partition, broker, chosen)
        for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
            assert topics[inside.topic_partition.topic][inside.topic_partition.partition].log_dirs == (inside.from_dir,)
            put(*inside.topic_partition, inside.broker, inside.to_dir)
    brokers = {
        id_: replace(
            broker,
            log_dirs=tuple(
                replace(one, usable_bytes=(one.usable_bytes or 0) + freed.get((id_, one.path), 0))
                for one in broker.log_dirs
            ),
        )
        for id_, broker in observed.brokers.items()
    }
    named = {name: replace(topic, partitions=tuple(topics[name])) for name, topic in observed.topics.items()}
    return replace(observed, brokers=brokers, topics=named)


def _wishes(desired: Desired, observed: Cluster, broker: int) -> tuple[Mapping[str, LogDir], Mapping[str, str]]:
    dirs = {one.path: one for one in observed.brokers[broker].log_dirs}
    states = {path: "cordoned by Kafka" if one.is_cordoned else "active" for path, one in dirs.items()}
    for one in desired.cluster.broker(broker).log_dirs:
        if one.state is LogDirState.DRAINING or states[one.path] == "active":
            states[one.path] = one.state.value
    return dirs, states


def _residents(desired: Desired, observed: Cluster, broker: int) -> Iterator[Lying]:
    for name, topic in observed.topics.items():
        declared = desired.topics.get(name)
        for partition in topic.partitions:
            goal = partition.replicas
            if declared is not None and declared.placement.assignment is not None:
                goal = declared.placement.assignment[partition.partition]
            if broker not in goal:
                continue
            path = partition.log_dirs[0] if partition.replicas == (broker,) else None
            may_move = declared is not None and Protection.MOVE not in declared.protect
            yield Lying(f"{name}-{partition.partition}", partition.sizes[0] or 0, path, may_move)


def _all_places(loose: Sequence[Lying], open_: Sequence[str]) -> Iterator[Mapping[str, str]]:
    for chosen in product(open_, repeat=len(loose)):
        yield {one.name: path for one, path in zip(loose, chosen, strict=True)}


def _costs(desired: Desired, observed: Cluster, broker: int, places: Mapping[str, str]) -> Costs:
    """Return what it costs if these replicas lie there in the end, and all others where they are."""
    dirs, states = _wishes(desired, observed, broker)
    there = [*_residents(desired, observed, broker)]
    held = {path: (one.total_bytes or 0) - (one.usable_bytes or 0) for path, one in dirs.items()}
    for topic in observed.topics.values():
        for partition in topic.partitions:
            if partition.replicas == (broker,):
                held[partition.log_dirs[0] or ""] -= partition.sizes[0] or 0
    moved = 0
    for one in there:
        path = places.get(one.name, one.path)
        if path is None:
            continue
        held[path] += one.size
        if one.path is not None and path != one.path and states[one.path] != "draining":
            moved += one.size
    open_ = [path for path, state in states.items() if state == "active"]
    target, limits = desired.cluster.balance.log_dirs, desired.cluster.limits
    whole, room = sum(held[path] for path in open_), sum(dirs[path].total_bytes or 0 for path in open_)
    overflow = excess = outside = 0
    for path in open_:
        total = dirs[path].total_bytes or 0
        overflow += max(0, held[path] - total)
        excess += max(0, held[path] - int(total * (1 if limits.disk_use is None else limits.disk_use)))
        if isinstance(target, Within) and len(open_) > 1:
            share = Fraction(whole * total, room)
            low, high = -(-share * (1 - target.fraction) // 1), share * (1 + target.fraction) // 1
            outside += max(0, int(low) - held[path], held[path] - int(high))
    return overflow, excess, outside, moved
