"""Decides from the cluster alone what the runs of a plan have left on it; no journal and no record is needed.

A run of a plan that moves orders-0 from [1, 2] to [1, 3] at 400000 B/s, and that dies while it copies, leaves:

    topic orders    leader.replication.throttled.replicas     0:1,0:2     the replicas before the move
                    follower.replication.throttled.replicas   0:3         the replica that it adds
    brokers 1 to 3  leader. and follower.replication.throttled.rate   400000

Anybody may set the same rate, so a rate alone proves nothing. Lists go on before rates and come off after them: each
rate of a run has the plan's entries beside it, and a rate without them is somebody else's, or cannot be decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.apply.dir_moves import DirPlace, dir_place
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import MovePlace, Place, PlanPaths
from reconciler.apply.throttles import (
    EVERYTHING,
    Entry,
    Items,
    Key,
    ThrottleRecord,
    parts,
    throttled_lists,
    throttled_rates,
)
from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    BROKER_THROTTLES,
    CORDONED_LOG_DIRS,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
)
from reconciler.model.plan import Rollback
from reconciler.model.topic_partition import TopicPartition

_BEGUN = frozenset({DirPlace.MOVING, DirPlace.AT_END, DirPlace.TURNED})


@dataclass(frozen=True, slots=True)
class Evidence:
    """Holds the throttles and cordons that a plan's runs left, as the cluster shows them."""

    throttles: ThrottleRecord = field(default_factory=ThrottleRecord)
    """Rates, lists and cordons that are a run's for certain, with what was there before."""
    undecided: Mapping[Key, Entry] = field(default_factory=dict)
    """Values that the plan sets too, where nothing else shows a run, and what their keys hold without them."""
    is_begun: bool = False
    """A partition, or a replica between log dirs, shows that a run of the plan began."""


def evidence(
    paths: PlanPaths, observed: Observed, before: Rollback, rates: Items, rate_asked: str | None = None
) -> Evidence:
    """Return what runs of a plan have left on brokers and topics, which `observed` shows with their configs.

    `before`: what was set there before the first of them; `rates`: every value that they set on brokers; `rate_asked`:
    one that they may have set besides. A run sets it on each of its brokers, so it counts where all of them have it.
    """
    lists, unclear, partitions = _lists(paths, observed, before)
    # A move throttles each of its brokers. One of its two lists may be an operator's `*`: then the other one counts.
    listed = {_partition_of(topic, item) for (topic, _), entry in lists.items() for item in entry.items}
    named = {
        broker
        for key in listed
        for move in paths.by_partition[key].moves
        if move.added
        for broker in (*move.from_replicas, *move.added)
    }
    alive = [observed.brokers[broker].configs for broker in sorted(named) if observed.is_alive(broker)]
    if rate_asked is not None and all(one.get(key) == rate_asked for one in alive for key in BROKER_THROTTLES):
        rates |= {rate_asked}
    emptied = {
        broker
        for key in partitions
        for move in paths.by_partition[key].moves
        for broker in set(move.from_replicas) - set(move.to_replicas)
    }
    copied = {move.broker for move in paths.dir_moves if dir_place(move, observed) in _BEGUN}
    proven = {ALTER_LOG_DIRS_RATE: copied, CORDONED_LOG_DIRS: emptied}
    ours: dict[tuple[int, str], str | None] = {}
    undecided = {**unclear}
    cordons = ((broker, CORDONED_LOG_DIRS) for broker in paths.plan.cordoned)
    for broker, key in sorted({*throttled_rates(paths.plan), *cordons}):
        value = observed.brokers[broker].configs.get(key) if broker in observed.brokers else None
        first = before.broker_throttles.get(broker, {}).get(key)
        is_proven = broker in proven.get(key, named)
        # A broker that answers late, or not, hides its rate. If the lists name the broker, the rate comes off too.
        is_hidden = is_proven and value is first is None and key in BROKER_THROTTLES
        is_set = value in rates and value != first
        if is_hidden or (is_set and is_proven):
            ours[broker, key] = first
        elif is_set and value is not None:
            undecided[broker, key] = Entry(None, frozenset({value}))
    return Evidence(ThrottleRecord(ours, lists), undecided, is_begun=bool(partitions or copied))


def _lists(
    paths: PlanPaths, observed: Observed, before: Rollback
) -> tuple[dict[tuple[str, str], Entry], dict[Key, Entry], frozenset[TopicPartition]]:
    """Return the plan's entries that a run added, those that it may have added, and the partitions that show a run."""
    there: dict[tuple[str, str], Entry] = {}
    listed: set[TopicPartition] = set()
    for (topic, key), items in sorted(throttled_lists(paths.plan).items()):
        first = before.topic_throttles.get(topic, {}).get(key)
        found = (items - set(parts(first))) & set(parts(observed.configs.get(topic, {}).get(key)))
        if found:
            there[topic, key] = Entry(first, found)
            listed |= {_partition_of(topic, item) for item in found}
    positions = {key: paths.position(key, observed) for key in paths.by_partition}
    away = {
        key: position
        for key, position in positions.items()
        if position.place is not Place.MISSING and position.move_place(0) is not MovePlace.AT_START
    }
    # Another hand may have brought a partition at rest to its place: then only a whole move's entries are a run's.
    moving = {key for key, position in away.items() if position.place is not Place.AT}
    ours = moving | {key for key in listed if key in positions and _is_listed(key, paths, observed, before)}
    lists: dict[tuple[str, str], Entry] = {}
    unclear: dict[Key, Entry] = {}
    for (topic, key), entry in there.items():
        items = frozenset(item for item in entry.items if _partition_of(topic, item) in ours)
        if items:
            lists[topic, key] = replace(entry, items=items)
        rest = entry.items - items
        if rest:
            now = parts(observed.configs[topic][key])
            unclear[topic, key] = Entry(",".join(item for item in now if item not in rest) or None, rest)
    return lists, unclear, frozenset(ours.union(away))


def _is_listed(key: TopicPartition, paths: PlanPaths, observed: Observed, before: Rollback) -> bool:
    """Whether the lists hold every entry of one of a partition's moves: only a run lists a whole move.

    `*` covers what a run need not add: leaders only if it was there `before` the plan, as anybody may set it later.
    """
    configs = observed.configs.get(key.topic, {})
    leaders = configs.get(LEADER_THROTTLED_REPLICAS)
    followers = configs.get(FOLLOWER_THROTTLED_REPLICAS)
    are_leaders_covered = (
        leaders == EVERYTHING == before.topic_throttles.get(key.topic, {}).get(LEADER_THROTTLED_REPLICAS)
    )
    return any(
        (are_leaders_covered or {f"{key.partition}:{one}" for one in move.from_replicas}.issubset(parts(leaders)))
        and (followers == EVERYTHING or {f"{key.partition}:{one}" for one in move.added}.issubset(parts(followers)))
        for move in paths.by_partition[key].moves
        if move.added
    )


def _partition_of(topic: str, item: str) -> TopicPartition:
    return TopicPartition(topic, int(item.partition(":")[0]))
