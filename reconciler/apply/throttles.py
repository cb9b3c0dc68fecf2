"""Throttles as values: what a stage needs, what was there before, and the changes that put on and take off.

Lists are added to and subtracted from, never overwritten, so that an operator's own entries stay as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.admin.port import ConfigChange, ConfigOperation
from reconciler.apply.answers import Trouble
from reconciler.model.cluster import (
    BROKER_LEASES,
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
)
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ReassignStage
from reconciler.model.words import named_some

EVERYTHING = "*"

Items = frozenset[str]

Key = tuple[int | str, str]
"""A broker or a topic, and the name of a config."""

_HINT = "the next reconciler apply, cancel or status of this cluster, or doctor --fix throttles, puts it back"

_NOT_PUT_BACK = Trouble("not put back")

MOST_ITEMS = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """One topic's list as this run changes it: its value before (None: not set) and the items that are ours."""

    before: str | None
    items: Items = frozenset()


@dataclass(frozen=True, slots=True)
class ThrottleRecord:
    """What this plan's runs have on the cluster: (broker, key) -> rate before, (topic, key) -> list before and ours.

    A cordon of a broker's log dirs is one more key of that broker, put on and given back as its rates are.
    """

    rates: Mapping[tuple[int, str], str | None] = field(default_factory=dict)
    lists: Mapping[tuple[str, str], Entry] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of ours is on the cluster."""
        return not self.rates and not self.lists

    def with_rates(self, rates: Mapping[tuple[int, str], str | None]) -> "ThrottleRecord":
        """Return the record with these rates too; what was recorded first stays."""
        return ThrottleRecord({**rates, **self.rates}, self.lists)

    def with_lists(self, lists: Mapping[tuple[str, str], Entry]) -> "ThrottleRecord":
        """Return the record with these lists too; values recorded first stay, items are joined."""
        merged = dict(self.lists)
        for key, entry in lists.items():
            known = merged.get(key)
            merged[key] = Entry(known.before, known.items | entry.items) if known else entry
        return ThrottleRecord(self.rates, merged)

    def without_rates(self, keys: Iterable[tuple[int, str]]) -> "ThrottleRecord":
        """Return the record less these rates."""
        gone = set(keys)
        return ThrottleRecord({key: value for key, value in self.rates.items() if key not in gone}, self.lists)

    def without_lists(self, keys: Iterable[tuple[str, str]]) -> "ThrottleRecord":
        """Return the record less these lists."""
        gone = set(keys)
        return ThrottleRecord(self.rates, {key: value for key, value in self.lists.items() if key not in gone})

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers with a rate of ours."""
        return tuple(sorted({broker for broker, _ in self.rates}))

    def keys_of(self, broker: int) -> tuple[str, ...]:
        """Return the keys of ours on that broker."""
        return tuple(sorted(key for one, key in self.rates if one == broker))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics with entries of ours."""
        return tuple(sorted({topic for topic, _ in self.lists}))


def parts(value: str | None) -> tuple[str, ...]:
    """Return a list's items as Kafka splits them: at commas, empty ones dropped, spaces kept."""
    return tuple(item for item in (value or "").split(",") if item)


def copying(stage: ReassignStage) -> tuple[Move, ...]:
    """Return the moves that copy data; only these are throttled."""
    return tuple(move for move in stage.moves if move.added)


def wanted_rates(stage: ReassignStage) -> Mapping[int, str]:
    """Return the rate of each broker that sends or receives in a stage; empty where the stage has no throttle."""
    if stage.throttle_bytes_per_second is None:
        return {}
    rate = str(stage.throttle_bytes_per_second)
    brokers = {broker for move in copying(stage) for broker in (*move.from_replicas, *move.added)}
    return dict.fromkeys(sorted(brokers), rate)


def wanted_lists(stage: ReassignStage) -> Mapping[tuple[str, str], Items]:
    """Return the items of each topic's lists: leader side the replicas before a move, follower side the added ones."""
    if stage.throttle_bytes_per_second is None:
        return {}
    items: dict[tuple[str, str], set[str]] = {}
    for move in copying(stage):
        topic, number = move.topic_partition
        leaders = {f"{number}:{broker}" for broker in move.from_replicas}
        followers = {f"{number}:{broker}" for broker in move.added}
        items.setdefault((topic, LEADER_THROTTLED_REPLICAS), set()).update(leaders)
        items.setdefault((topic, FOLLOWER_THROTTLED_REPLICAS), set()).update(followers)
    return {key: frozenset(items[key]) for key in sorted(items)}


def rates_to_set(
    wanted: Mapping[int, str],
    configs: Mapping[int, Mapping[str, str]],
    record: ThrottleRecord,
    ours: Items,
    confirmed: Mapping[tuple[int, str], str],
) -> Mapping[int, tuple[ConfigChange, ...]]:
    """Return the changes that give each live broker both rates; nothing for a broker that has them from this run.

    What is read may be older than what this run has put back, so a rate that it was not told to be set (`confirmed`) is
    set whatever is read.
    A rate of ours that somebody has replaced by another since is left as they want it.
    """
    changes: dict[int, tuple[ConfigChange, ...]] = {}
    for broker, rate in wanted.items():
        values = {key: configs[broker].get(key) for key in BROKER_THROTTLES} if broker in configs else {}
        needed = {key for key, value in values.items() if {value, confirmed.get((broker, key))} != {rate}}
        taken_over = {key for key in needed if _is_taken_over(record, (broker, key), values[key], ours)}
        if needed - taken_over:
            keys = sorted(needed - taken_over)
            changes[broker] = tuple(ConfigChange(key, ConfigOperation.SET, rate) for key in keys)
    return changes


def _is_taken_over(record: ThrottleRecord, key: tuple[int, str], value: str | None, ours: Items) -> bool:
    return key in record.rates and value not in {None, record.rates[key]} and value not in ours


def lists_to_extend(
    wanted: Mapping[tuple[str, str], Items],
    configs: Mapping[str, Mapping[str, str]],
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
        if topic in configs and value != EVERYTHING and items - there:
            missing[topic, key] = items - there
    return missing


def lists_before(
    configs: Mapping[str, Mapping[str, str]], earlier: Mapping[tuple[str, str], Entry]
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
    changes: dict[str, list[ConfigChange]] = {}
    for (topic, key), items in sorted(missing.items()):
        changes.setdefault(topic, []).append(ConfigChange(key, ConfigOperation.APPEND, ",".join(sorted(items))))
    return {topic: tuple(keys) for topic, keys in changes.items()}


def rate_restored(key: str, before: str | None, value: str | None, ours: Items) -> ConfigChange | None:
    """Return the change that brings a rate back; None where somebody has set another since.

    It is sent even if the rate seems to be back: what is read may be older than what was written.
    """
    if value not in ours and value not in {None, before}:
        return None
    return ConfigChange(key, ConfigOperation.DELETE) if before is None else _set(key, before)


def list_restored(key: str, entry: Entry, value: str | None, ours: Items = frozenset()) -> ConfigChange | None:
    """Return the change that takes our items off a list; None where somebody made it cover everything since.

    What somebody else has added since stays. The key goes where it was not set before and nothing remains: Kafka
    itself would leave an empty text; what is read may still show items of an earlier stage, so `ours` has every item
    that the plan adds there. A value that Kafka would not write the same way again is set as it was. As with
    rates, items that do not show are taken off all the same.
    """
    if value == EVERYTHING:
        return None
    remains = tuple(item for item in parts(value) if item not in entry.items)
    if entry.before is None:
        is_ours_alone = not set(remains) - ours
        return ConfigChange(key, ConfigOperation.DELETE) if is_ours_alone else _subtract(key, entry.items)
    if value is None or (remains == parts(entry.before) and ",".join(remains) != entry.before):
        return _set(key, entry.before)
    return _subtract(key, entry.items)


def _subtract(key: str, items: Items) -> ConfigChange:
    return ConfigChange(key, ConfigOperation.SUBTRACT, ",".join(sorted(items)))


def our_rates(plan: Plan) -> Items:
    """Return every value that a run of this plan sets on brokers: the rates of its stages, and the cordon."""
    stages = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    rates = frozenset(str(s.throttle_bytes_per_second) for s in stages if s.throttle_bytes_per_second is not None)
    return rates | {EVERYTHING} if plan.cordoned else rates


def throttled_brokers(plan: Plan) -> frozenset[int]:
    """Return the brokers that a stage of this plan throttles."""
    stages = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    return frozenset(broker for stage in stages for broker in wanted_rates(stage))


def throttled_lists(plan: Plan) -> Mapping[tuple[str, str], Items]:
    """Return every item that a stage of this plan adds, by topic and key."""
    items: dict[tuple[str, str], set[str]] = {}
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            for key, wanted in wanted_lists(stage).items():
                items.setdefault(key, set()).update(wanted)
    return {key: frozenset(found) for key, found in items.items()}


def _set(key: str, value: str) -> ConfigChange:
    return ConfigChange(key, ConfigOperation.SET, value)


def throttle_keys(configs: Mapping[str, str]) -> Mapping[str, str]:
    """Return the throttle keys among these configs, and a cordon."""
    keys = (*BROKER_LEASES, *TOPIC_THROTTLES)
    return {key: configs[key] for key in keys if key in configs}


@dataclass(frozen=True, slots=True)
class Owed:
    """A throttle, or a cordon, that could not be taken off; `is_passing`: another try may succeed."""

    problem: Problem
    is_passing: bool


def owed_by(record: ThrottleRecord) -> list[Problem]:
    """Return a debt for each topic and broker of that record."""
    keys: list[Key] = [*record.lists, *record.rates]
    owed = owed_for(record, dict.fromkeys(keys, _NOT_PUT_BACK))
    return [one.problem for one in owed]


def owed_for(record: ThrottleRecord, troubles: Mapping[Key, Trouble]) -> list[Owed]:
    """Return what is owed of that record, topics first: those keys for which there is a trouble."""
    kept: dict[int | str, dict[str, str | None]] = {}
    for (topic, key), entry in sorted(record.lists.items()):
        kept.setdefault(topic, {})[key] = entry.before
    for (broker, key), before in sorted(record.rates.items()):
        kept.setdefault(broker, {})[key] = before
    owed = []
    for owner, keys in kept.items():
        found = {key: troubles[owner, key] for key in keys if (owner, key) in troubles}
        owed += [_owed(owner, {key: keys[key] for key in found}, list(found.values()))] if found else []
    return owed


def _owed(owner: int | str, before: Mapping[str, str | None], troubles: Sequence[Trouble]) -> Owed:
    name = f"broker {owner}" if isinstance(owner, int) else f"topic {owner}"
    keys = ", ".join(f"{key} (before: {_shown(value)})" for key, value in before.items())
    why = "; ".join(dict.fromkeys(one.why.removesuffix(".") for one in troubles))
    text = f"{name} keeps what this run set: {keys}: {why}; {_HINT}"
    return Owed(Problem("KR720", text, severity=Severity.WARNING), any(one.is_passing for one in troubles))


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    items = parts(value)
    return value or "(empty)" if len(items) <= MOST_ITEMS else named_some(items, MOST_ITEMS)
