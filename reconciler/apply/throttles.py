"""Computes throttles as values: what a stage needs, what was there before, and the changes that put on and take off.

A rate belongs to a broker and does nothing alone: Kafka holds a fetch back only where the topic's list names the
replica too, and the replica is not in sync. Lists are added to and subtracted from (incremental APPEND and SUBTRACT),
never overwritten, so that an operator's own entries stay as they are (KAFKA-10779).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.apply.answers import Trouble
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    BROKER_LEASES,
    BROKER_THROTTLES,
    CORDONED_LOG_DIRS,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
)
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.run import RECORDED, UNDECIDED
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage
from reconciler.model.words import named_some, owner_name

EVERYTHING = "*"
LEAST_RATE = 1024 * 1024
"""The least rate that a run may be asked for, in bytes per second, where its plan has no lower one."""
MOST_RATE = 2**63 - 1
Items = frozenset[str]
Key = tuple[int | str, str]
"""A broker or a topic, and the name of a config."""
Configs = Mapping[str, str]

_HINT = "the next reconciler apply or cancel on this machine, or reconciler doctor PLAN --fix throttles, puts it back"
_LOG_IN = "once brokers let this client in again, "
_MOST_ITEMS = 10  # of a list in one sentence: a list names hundreds of replicas


@dataclass(frozen=True, slots=True)
class Entry:
    """One topic's list as this run changes it: its value before (None: not set) and the items that are ours."""

    before: str | None
    items: Items = frozenset()


@dataclass(frozen=True, slots=True)
class ThrottleRecord:
    """What this plan's runs have on the cluster, with what was there before."""

    rates: Mapping[tuple[int, str], str | None] = field(default_factory=dict)
    """By broker and key: the rate before. A cordon of log dirs is one more key, handled in the same way."""
    lists: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    """By topic and key: the list before, and our items."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of ours is on the cluster."""
        return not self.rates and not self.lists

    @property
    def keys(self) -> frozenset[Key]:
        """Every key that it names, of brokers and of topics."""
        return frozenset((*self.rates, *self.lists))

    @property
    def has_throttles(self) -> bool:
        """Whether a rate or a list of ours is on; a cordon of log dirs is none."""
        return bool(self.lists) or any(key != CORDONED_LOG_DIRS for _, key in self.rates)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers with a rate of ours."""
        return tuple(sorted({broker for broker, _ in self.rates}))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics with entries of ours."""
        return tuple(sorted({topic for topic, _ in self.lists}))

    def plus(self, more: "ThrottleRecord") -> "ThrottleRecord":
        """Return the record with these too; values recorded first stay, as a later look may see ours."""
        lists = dict(self.lists)
        for key, entry in more.lists.items():
            known = lists.get(key)
            lists[key] = Entry(known.before, known.items | entry.items) if known else entry
        return ThrottleRecord({**more.rates, **self.rates}, lists)

    def with_before(self, earlier: "ThrottleRecord") -> "ThrottleRecord":
        """Return the record with another one's, whose values are what was there before."""
        return ThrottleRecord({**self.rates, **earlier.rates}, earlier.plus(self).lists)

    def less(self, gone: "ThrottleRecord") -> "ThrottleRecord":
        """Return the record without the keys of another."""
        return ThrottleRecord(
            {key: value for key, value in self.rates.items() if key not in gone.rates},
            {key: value for key, value in self.lists.items() if key not in gone.lists},
        )


def parts(value: str | None) -> tuple[str, ...]:
    """Return a list's items as Kafka splits them: at commas, empty ones dropped, spaces kept."""
    return tuple(item for item in (value or "").split(",") if item)


# What a stage, and a plan, needs.


def wanted_rates(stage: CopyingStage) -> Mapping[int, str]:
    """Return the rate of each broker that copies in a stage; empty where the stage has no throttle."""
    if stage.throttle_bytes_per_second is None:
        return {}
    match stage:
        case ReassignStage():
            brokers = {broker for move in stage.moves if move.added for broker in (*move.from_replicas, *move.added)}
        case LogDirsStage():
            brokers = {move.broker for move in stage.moves}
    return dict.fromkeys(sorted(brokers), str(stage.throttle_bytes_per_second))


def rate_keys(stage: CopyingStage) -> tuple[str, ...]:
    """Return the keys that hold a stage's rate on its brokers."""
    return (ALTER_LOG_DIRS_RATE,) if isinstance(stage, LogDirsStage) else BROKER_THROTTLES


def wanted_lists(stage: CopyingStage) -> Mapping[tuple[str, str], Items]:
    """Return the items of each topic's lists: leader side the replicas before a move, follower side the added ones.

    What is copied between log dirs is throttled by the rate alone.
    """
    if stage.throttle_bytes_per_second is None or isinstance(stage, LogDirsStage):
        return {}
    items: dict[tuple[str, str], set[str]] = {}
    for move in [one for one in stage.moves if one.added]:
        topic, number = move.topic_partition
        leaders = {f"{number}:{broker}" for broker in move.from_replicas}
        followers = {f"{number}:{broker}" for broker in move.added}
        items.setdefault((topic, LEADER_THROTTLED_REPLICAS), set()).update(leaders)
        items.setdefault((topic, FOLLOWER_THROTTLED_REPLICAS), set()).update(followers)
    return {key: frozenset(items[key]) for key in sorted(items)}


def _copying_stages(plan: Plan) -> Iterator[CopyingStage]:
    return (stage for stage in plan.stages if isinstance(stage, CopyingStage))


def our_rates(plan: Plan) -> Items:
    """Return every value that a run of this plan sets on brokers: the rates of its stages, and the cordon."""
    rates = {stage.throttle_bytes_per_second for stage in _copying_stages(plan)} - {None}
    return frozenset(map(str, rates)) | ({EVERYTHING} if plan.cordoned else frozenset())


def rate_bounds(plan: Plan) -> tuple[int, int]:
    """Return the least and the greatest rate that a run of this plan may be asked for, in bytes per second.

    Whoever may read the lock's group can ask, so a request must neither stop a run nor let it take the whole network.
    """
    rates = [stage.throttle_bytes_per_second for stage in _copying_stages(plan)]
    set_rates = [rate for rate in rates if rate is not None]
    return min([LEAST_RATE, *set_rates]), max(
        [LEAST_RATE, *(10 * rate for rate in set_rates)]
    ) if set_rates else MOST_RATE


def throttled_rates(plan: Plan) -> frozenset[tuple[int, str]]:
    """Return the brokers that a stage of this plan throttles, with each key that it sets there."""
    stages = _copying_stages(plan)
    return frozenset((broker, key) for stage in stages for broker in wanted_rates(stage) for key in rate_keys(stage))


def throttled_brokers(plan: Plan) -> frozenset[int]:
    """Return the brokers that a stage of this plan throttles."""
    return frozenset(broker for broker, _ in throttled_rates(plan))


def throttled_lists(plan: Plan) -> Mapping[tuple[str, str], Items]:
    """Return every item that a stage of this plan adds, by topic and key."""
    items: dict[tuple[str, str], Items] = {}
    for stage in _copying_stages(plan):
        for key, wanted in wanted_lists(stage).items():
            items[key] = items.get(key, frozenset()) | wanted
    return items


def throttle_keys(configs: Configs) -> Configs:
    """Return the throttle keys among these configs, and a cordon."""
    return {key: configs[key] for key in (*BROKER_LEASES, *TOPIC_THROTTLES) if key in configs}


# What puts throttles on.


def rates_to_set(
    wanted: Mapping[int, str],
    configs: Mapping[int, Configs],
    throttles: ThrottleRecord,
    ours: Items,
    confirmed: Mapping[tuple[int, str], str],
    *,
    keys: Collection[str] = BROKER_THROTTLES,
) -> Mapping[int, tuple[ConfigChange, ...]]:
    """Return the changes that give each live broker its rate by each of the keys; nothing where this run has set it.

    What is read may be older than what this run has put back, so a rate that Kafka has not confirmed to this run
    (`confirmed`) is set again, whatever is read. A rate of ours that somebody has replaced by another since is left as
    they want it.
    """
    changes: dict[int, tuple[ConfigChange, ...]] = {}
    for broker in wanted.keys() & configs.keys():
        rate, needed = wanted[broker], []
        for key in sorted(keys):
            value, known = configs[broker].get(key), (broker, key)
            is_set = value == rate == confirmed.get(known)
            is_taken_over = (
                known in throttles.rates and value not in {None, throttles.rates[known]} and value not in ours
            )
            if not is_set and not is_taken_over:
                needed.append(ConfigChange(key, ConfigOperation.SET, rate))
        if needed:
            changes[broker] = tuple(needed)
    return dict(sorted(changes.items()))


def lists_to_extend(
    wanted: Mapping[tuple[str, str], Items],
    configs: Mapping[str, Configs],
    confirmed: Mapping[tuple[str, str], Items],
    first_values: Mapping[tuple[str, str], str | None],
) -> Mapping[tuple[str, str], Items]:
    """Return the items that each list lacks; `*` covers all, and a topic that is gone needs none.

    What is read may still show entries that are gone, so a list is taken to hold what it held at first, and what this
    run was told to have appended (`confirmed`). An item that is there already is appended again without harm.
    """
    missing: dict[tuple[str, str], Items] = {}
    for (topic, key), items in wanted.items():
        value = configs.get(topic, {}).get(key)
        first = first_values.get((topic, key), value)
        there = confirmed.get((topic, key), frozenset()).union(parts(first))
        # Kafka refuses to append to `*` (INVALID_CONFIG).
        if topic in configs and value != EVERYTHING and items - there:
            missing[topic, key] = items - there
    return missing


def lists_before(
    configs: Mapping[str, Configs], earlier: Mapping[tuple[str, str], Entry]
) -> Mapping[tuple[str, str], str | None]:
    """Return what lists held before this run, where that is not what is read.

    A broker may still show the time of an `earlier` run of the plan, and items of ours that are gone since: taken for
    somebody else's, they would not be added again, so that replicas copy unthrottled, and would be put back at the end.
    """
    return {
        (topic, key): entry.before
        for (topic, key), entry in earlier.items()
        if set(parts(configs.get(topic, {}).get(key))) & entry.items - set(parts(entry.before))
    }


def appended(missing: Mapping[tuple[str, str], Items]) -> Mapping[str, tuple[ConfigChange, ...]]:
    """Return the changes that append these items, by topic."""
    changes: dict[str, tuple[ConfigChange, ...]] = {}
    for (topic, key), items in sorted(missing.items()):
        change = ConfigChange(key, ConfigOperation.APPEND, ",".join(sorted(items)))
        changes[topic] = (*changes.get(topic, ()), change)
    return changes


# What takes them off.


def rate_restored(key: str, before: str | None, value: str | None, ours: Items) -> ConfigChange | None:
    """Return the change that brings a rate back; None where somebody has set another since.

    It is sent even if the rate seems to be back: what is read may be older than what was written.
    """
    if value not in ours and value not in {None, before}:
        return None
    return ConfigChange(key, ConfigOperation.DELETE) if before is None else _set(key, before)


def list_restored(key: str, entry: Entry, value: str | None, ours: Items = frozenset()) -> ConfigChange | None:
    """Return the change that takes our items off a list; None where somebody made it cover everything since.

    What somebody else has added since stays. As with rates, items that do not show are taken off all the same.
    `ours`: every item that the plan adds there, as what is read may still show those of an earlier stage.
    """
    if value == EVERYTHING:
        return None
    subtract = ConfigChange(key, ConfigOperation.SUBTRACT, ",".join(sorted(entry.items)))
    remains = tuple(item for item in parts(value) if item not in entry.items)
    if entry.before is None:
        # Kafka leaves an override of "" when the last item is subtracted, so the key itself goes.
        is_ours_alone = not set(remains) - ours
        return ConfigChange(key, ConfigOperation.DELETE) if is_ours_alone else subtract
    # A value that Kafka would not write the same way again (a space, an empty item) is set as it was.
    if value is None or (remains == parts(entry.before) and ",".join(remains) != entry.before):
        return _set(key, entry.before)
    return subtract


def _set(key: str, value: str) -> ConfigChange:
    return ConfigChange(key, ConfigOperation.SET, value)


# What could not be taken off.


def leftover_problems(throttles: ThrottleRecord, *, is_shut_out: bool = False) -> list[Problem]:
    """Return a problem for all of that record, if there is any: what is recorded is still on the cluster."""
    keys: list[Key] = [*throttles.lists, *throttles.rates]
    return leftovers_of(throttles, dict.fromkeys(keys, Trouble("not put back", is_shut_out=is_shut_out)))


def leftovers_of(throttles: ThrottleRecord, troubles: Mapping[Key, Trouble]) -> list[Problem]:
    """Return a problem for each cause that kept keys of that record from being put back; topics come first."""
    values: dict[int | str, dict[str, str | None]] = {}
    for (topic, key), entry in sorted(throttles.lists.items()):
        values.setdefault(topic, {})[key] = entry.before
    for (broker, key), before in sorted(throttles.rates.items()):
        values.setdefault(broker, {})[key] = before
    by_cause: dict[tuple[Trouble, ...], list[str]] = {}
    for owner, keys in values.items():
        found = {key: troubles[owner, key] for key in keys if (owner, key) in troubles}
        if found:
            kept = ", ".join(f"{key} (before: {_shown(keys[key])})" for key in found)
            by_cause.setdefault(tuple(dict.fromkeys(found.values())), []).append(
                f"{owner_name(owner)} keeps what this run set: {kept}"
            )
    left = []
    for causes, owners in by_cause.items():
        why = "; ".join(dict.fromkeys(one.why.removesuffix(".") for one in causes))
        hint = f"{_LOG_IN if any(one.is_shut_out for one in causes) else ''}{_HINT}"
        left.append(Problem("KR720", f"{'; '.join(owners)}: {why}; {hint}", severity=Severity.WARNING))
    return left


def recorded_problems(recorded: ThrottleRecord) -> list[Problem]:
    """Return a problem for each broker or topic that only the record in the cluster would have changed."""
    by_owner: dict[int | str, list[str]] = {}
    for key in sorted(recorded.keys, key=str):
        entry = recorded.lists.get(key)  # type: ignore[arg-type]
        before = entry.before if entry is not None else recorded.rates.get(key)  # type: ignore[arg-type]
        by_owner.setdefault(key[0], []).append(f"{key[1]} -> {_shown(before)}")
    why = "says only the run's record in the cluster, which others can write, so nothing was changed by it"
    hint = "reconciler doctor --fix throttles shows it, and asks"
    return [
        Problem(RECORDED, f"{owner_name(owner)}: {', '.join(keys)}: {why}; {hint}", severity=Severity.WARNING)
        for owner, keys in by_owner.items()
    ]


def undecided_problems(undecided: Mapping[Key, Entry]) -> list[Problem]:
    """Return a problem for each broker or topic with values that a run or an operator may have set.

    An entry's `before` is what its key holds without these values.
    """
    by_owner: dict[int | str, list[tuple[str, Entry]]] = {}
    for (owner, key), entry in sorted(undecided.items(), key=str):
        by_owner.setdefault(owner, []).append((key, entry))
    problems = []
    for owner, entries in by_owner.items():
        kind = "broker" if isinstance(owner, int) else "topic"
        shown = ", ".join(f"{key}={_shown(','.join(sorted(entry.items)))}" for key, entry in entries)
        text = f"{owner_name(owner)} has {shown}, and nothing shows whether a run or somebody else set it, so it stays"
        removed = ",".join(key for key, entry in entries if entry.before is None)
        rest = ",".join(f"{key}=[{entry.before}]" for key, entry in entries if entry.before is not None)
        remove = f"kafka-configs --alter --entity-type {kind}s --entity-name {owner}"
        remove += f" --delete-config {removed}" if removed else ""
        remove += f" --add-config '{rest}'" if rest else ""
        problems.append(Problem(UNDECIDED, f"{text}; if nobody wants it: {remove}", severity=Severity.WARNING))
    return problems


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    items = parts(value)
    return named_some(items, _MOST_ITEMS) if len(items) > _MOST_ITEMS else value or "(empty)"
