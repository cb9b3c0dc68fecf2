"""Lists what may happen to a cluster at any moment: copies end, brokers die, metadata is old, others change things.

As in Vanlightly's specification of KIP-966 the environment is free to do each of these between any two actions of
whoever is checked; what could go on for ever is bounded by a budget, kind by kind and in all:

    death    a broker dies: its partitions get other leaders, ISRs shrink, with KIP-966 into the ELR; it may return
    shrink   a replica that lives falls out of an ISR, or into the ELR; it may catch up
    stale    brokers show metadata and configs of a moment before, for two minutes at most; the controller's list never
    others   another administrator moves, cancels, elects, sets or removes rates, adds to throttle lists
    fault    a request is lost, or its answer is, or it has its effect later; or it meets another controller, which
             refuses it: a new controller has all that the old one had
    kill     the process is killed at any write, or ends by SIGTERM, or the plan is cancelled

Copies end at any moment, without a budget.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from exhaustive.cases import Case
from exhaustive.state import World

from reconciler.model.cluster import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import controller_of
from reconciler.simulate.events import fence, unfence
from reconciler.simulate.partition import with_isr
from reconciler.simulate.requests import elect_preferred_leaders, reassign
from reconciler.simulate.storage import with_partitions

FREE = ""
DEATH, SHRINK, STALE, OTHERS, FAULT, KILL = "death", "shrink", "stale", "others", "fault", "kill"
KINDS = (DEATH, SHRINK, STALE, OTHERS, FAULT, KILL)
LONGEST_LAG = 1
"""For how many ticks metadata may be old: less than the executor's patience (120 s)."""
THEIR_RATE = "9"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen: in all, and of each kind."""

    total: int
    kinds: Mapping[str, int]

    def allow(self, world: World, kind: str) -> bool:
        """Whether one more of that kind may happen."""
        if kind == FREE:
            return True
        return len(world.spent) < self.total and world.spent.count(kind) < self.kinds.get(kind, 0)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that may happen now."""

    what: str
    kind: str
    change: Callable[[World], World]
    throttles: tuple[str, ...] = ()
    """Those that it sets."""
    is_unclear: bool = False
    """Nobody can tell what they want there."""

    def happened(self, world: World) -> World:
        """Return the world after it."""
        after = replace(self.change(world), changed=world.changed.union(self.throttles))
        # Where what is read may be old, nobody can tell their change from what was there before.
        is_unclear = self.is_unclear or world.shown is not None
        return self._contested(after) if is_unclear else spent(after, self.kind)

    def raced(self, world: World) -> World:
        """Return the world after it, between a look of the executor and what it does then: Kafka compares nothing."""
        return self._contested(replace(self.change(world), changed=world.changed.union(self.throttles)))

    def _contested(self, world: World) -> World:
        return spent(replace(world, contested=world.contested.union(self.throttles)), self.kind)


def spent(world: World, kind: str) -> World:
    """Return the world with one more of that kind behind it."""
    return replace(world, spent=tuple(sorted((*world.spent, kind)))) if kind else world


def events(case: Case, world: World) -> Iterator[Event]:
    """Yield all that may happen, in a fixed order."""
    yield from _of_copies(world)
    yield from _of_brokers(world)
    yield from _of_reads(world)
    yield from _of_others(case, world)


def passing(world: World) -> World:
    """Return the world a tick later: a late request has had its effect, and old metadata is no longer old some day."""
    world = effect_of_late(world)
    if world.shown is None:
        return world
    if world.shown_for == LONGEST_LAG:
        return _caught_up(world)
    return replace(world, shown_for=world.shown_for + 1)


def settling(world: World) -> World:
    """Return the world a tick later in which all that can come to its end has come to it."""
    return settled(passing(world))


def settled(world: World) -> World:
    """Return the world once every living replica is in sync and nothing is old or late any more."""
    world = _caught_up(effect_of_late(world))
    while True:
        due = next((event for event in _of_copies(world)), None)
        if due is None:
            return world
        world = due.change(world)


def healed(world: World) -> World:
    """Return the world once all brokers live and all replicas are in sync."""
    for broker in sorted(world.cluster.brokers):
        if not world.cluster.is_alive(broker):
            world = _returned(broker, world)
    return settled(world)


# Copies and the ISR


def _of_copies(world: World) -> Iterator[Event]:
    for key, one in world.cluster.partitions():
        for broker in sorted(set(one.replicas).difference(one.isr)):
            if one.leader is not None and world.cluster.is_alive(broker):
                yield Event(f"{key} is in sync on {broker}", FREE, partial(_with_isr, key, (*one.isr, broker)))


def _with_isr(key: TopicPartition, isr: tuple[int, ...], world: World) -> World:
    partition = world.cluster.partition(key)
    assert partition is not None
    changed = with_isr(partition, isr, controller_of(world.cluster))
    return replace(world, cluster=with_partitions(world.cluster, {key: changed}))


def _of_brokers(world: World) -> Iterator[Event]:
    for broker in sorted(world.cluster.brokers):
        if world.cluster.is_alive(broker):
            yield Event(f"broker {broker} dies", DEATH, partial(_changed, partial(fence, broker_id=broker)))
        else:
            yield Event(f"broker {broker} returns", FREE, partial(_returned, broker))
    for key, one in world.cluster.partitions():
        for broker in sorted(set(one.isr) - {one.leader}):
            left = tuple(replica for replica in one.isr if replica != broker)
            yield Event(f"{key} falls out of sync on {broker}", SHRINK, partial(_with_isr, key, left))


def _returned(broker: int, world: World) -> World:
    excused = (world.excused - {f"broker {broker}, seen"}) | {f"broker {broker}"}
    return replace(world, cluster=unfence(world.cluster, broker), excused=excused)


def _changed(change: Callable[[Cluster], Cluster], world: World) -> World:
    return replace(world, cluster=change(world.cluster))


# What is read, and requests under way


def _of_reads(world: World) -> Iterator[Event]:
    if world.shown is None:
        yield Event("metadata stands still", STALE, lambda world: replace(world, shown=world.cluster))
    else:
        yield Event("metadata catches up", FREE, _caught_up)
    if world.late:
        yield Event("the late request has its effect", FREE, effect_of_late)


def _caught_up(world: World) -> World:
    return replace(world, shown=None, shown_for=0)


def effect_of_late(world: World) -> World:
    """Return the world once the request whose sender gave it up has had its effect."""
    match world.late:
        case ("reassign", targets, is_allowed):
            asked = dict(targets)  # type: ignore[call-overload]
            after = reassign(world.cluster, asked, is_replication_factor_change_allowed=bool(is_allowed)).cluster
        case ("elect", keys):
            after = elect_preferred_leaders(world.cluster, keys).cluster  # type: ignore[arg-type]
        case _:
            return world
    return replace(world, cluster=after, late=())


# Another administrator


def _of_others(case: Case, world: World) -> Iterator[Event]:
    for key, target in case.foreign.items():
        partition = world.cluster.partition(key)
        assert partition is not None
        yield Event(f"somebody else moves {key} to {list(target)}", OTHERS, partial(_moved_by_others, key, target))
        if partition.is_reassigning:
            yield Event(f"somebody else cancels {key}", OTHERS, partial(_moved_by_others, key, None))
        if partition.leader != partition.replicas[0]:
            yield Event(f"somebody else elects {key}", OTHERS, partial(_elected_by_others, key))
    for broker in sorted(world.cluster.brokers):
        where = tuple(f"broker {broker} {key}" for key in BROKER_THROTTLES)
        change = partial(_rate_of_others, broker, THEIR_RATE)
        yield Event(f"somebody else sets the rate of broker {broker} to {THEIR_RATE}", OTHERS, change, where)
        # Ours, or the one that ours has taken the place of?
        change = partial(_rate_of_others, broker, None)
        yield Event(f"somebody else removes the rates of broker {broker}", OTHERS, change, where, is_unclear=True)
    for name in case.before.topics:
        for config, item in ((LEADER_THROTTLED_REPLICAS, "*"), (FOLLOWER_THROTTLED_REPLICAS, "0:2")):
            change = partial(_list_of_others, name, config, item)
            yield Event(f"somebody else throttles {item} of {name}", OTHERS, change, (f"topic {name} {config}",))


def _moved_by_others(key: TopicPartition, target: tuple[int, ...] | None, world: World) -> World:
    after = reassign(world.cluster, {key: target}).cluster
    return replace(world, cluster=after, touched=world.touched | {key})


def _elected_by_others(key: TopicPartition, world: World) -> World:
    return replace(world, cluster=elect_preferred_leaders(world.cluster, [key]).cluster)


def _rate_of_others(broker: int, rate: str | None, world: World) -> World:
    was = world.cluster.brokers[broker]
    configs = {key: value for key, value in was.configs.items() if key not in BROKER_THROTTLES}
    theirs = {where: value for where, value in world.theirs.items() if not where.startswith(f"broker {broker} ")}
    if rate is not None:
        configs[LEADER_THROTTLED_RATE] = theirs[f"broker {broker} {LEADER_THROTTLED_RATE}"] = rate
    brokers = {**world.cluster.brokers, broker: replace(was, configs=configs)}
    return replace(world, cluster=replace(world.cluster, brokers=brokers), theirs=theirs)


def _list_of_others(name: str, key: str, item: str, world: World) -> World:
    was, where = world.cluster.topics[name], f"topic {name} {key}"
    topic = replace(was, configs={**was.configs, key: _added(was.configs.get(key), item)})
    theirs = {**world.theirs, where: _added(world.theirs.get(where), item)}
    return replace(world, cluster=replace(world.cluster, topics={**world.cluster.topics, name: topic}), theirs=theirs)


def _added(value: str | None, item: str) -> str:
    items = [one for one in (value or "").split(",") if one]
    return "*" if "*" in {item, value} else ",".join(items if item in items else [*items, item])
