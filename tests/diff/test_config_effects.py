"""What a change of configs does, by cases written from Kafka's documentation of topic configs, not from the table.

The documentation says of each key: its meaning, its default, and the broker setting that is its default for a topic.
"""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare
from reconciler.diff.effects import unknown_defaults, with_effects
from reconciler.diff.rules import topic_rules
from reconciler.model.change import AlterConfigs, class_of
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Protection
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.problem import InvalidInput, Location, Problem, Severity

WEEK, DAY, HOUR = "604800000", "86400000", "3600000"
TIERED = "remote.storage.enable=true"

# Overrides before, the change (`key=` removes an override), the brokers' settings, what it does.
CASES = [
    # retention.ms: a log's maximum time before old segments go, 7 days by default; -1: no limit.
    ("retention.ms=31536000000", f"retention.ms={HOUR}", "", "destroys"),
    (f"retention.ms={DAY}", f"retention.ms={WEEK}", "", "harmless"),
    (f"retention.ms={WEEK}", "retention.ms=604799999", "", "destroys"),
    (f"retention.ms={WEEK}", f"retention.ms={WEEK}", "", "harmless"),
    ("retention.ms=-1", f"retention.ms={WEEK}", "", "destroys"),
    (f"retention.ms={WEEK}", "retention.ms=-1", "", "harmless"),
    ("", f"retention.ms={WEEK}", "", "harmless"),
    ("", "retention.ms=604799999", "", "destroys"),
    ("", "retention.ms=2592000000", "", "harmless"),
    ("retention.ms=2592000000", "retention.ms=", "", "destroys"),
    (f"retention.ms={DAY}", "retention.ms=", "", "harmless"),
    # Without an override log.retention.ms of the brokers counts, else .minutes, else .hours.
    ("", f"retention.ms={WEEK}", "log.retention.ms=2592000000", "destroys"),
    ("", f"retention.ms={WEEK}", f"log.retention.ms={DAY}", "harmless"),
    ("", f"retention.ms={WEEK}", "log.retention.ms=-1", "destroys"),
    ("", f"retention.ms={WEEK}", "log.retention.hours=720", "destroys"),
    ("", f"retention.ms={WEEK}", "log.retention.hours=168", "harmless"),
    ("", f"retention.ms={WEEK}", "log.retention.hours=-1", "destroys"),
    ("", f"retention.ms={DAY}", "log.retention.hours=720 log.retention.minutes=60", "harmless"),
    ("retention.ms=2592000000", "retention.ms=", "log.retention.hours=8760", "harmless"),
    (f"retention.ms={DAY}", "retention.ms=", f"log.retention.ms={HOUR}", "destroys"),
    # retention.bytes: a partition's maximum size before old segments go; no limit by default.
    ("", "retention.bytes=1073741824", "", "destroys"),
    ("retention.bytes=1073741824", "retention.bytes=", "", "harmless"),
    ("retention.bytes=1073741824", "retention.bytes=2147483648", "", "harmless"),
    ("retention.bytes=2147483648", "retention.bytes=1073741824", "", "destroys"),
    ("retention.bytes=1073741824", "retention.bytes=-1", "", "harmless"),
    ("", "retention.bytes=2147483648", "log.retention.bytes=1073741824", "harmless"),
    ("retention.bytes=2147483648", "retention.bytes=", "log.retention.bytes=1073741824", "destroys"),
    # cleanup.policy: delete (the default), compact, or both. A topic that is only compacted knows no retention.
    ("cleanup.policy=compact", f"retention.ms={HOUR}", "", "harmless"),
    ("cleanup.policy=compact", "retention.bytes=1", "", "harmless"),
    ("cleanup.policy=compact,delete", f"retention.ms={HOUR}", "", "destroys"),
    ("cleanup.policy=compact", "cleanup.policy=compact,delete", "", "destroys"),
    ("cleanup.policy=compact", "cleanup.policy=delete", "", "destroys"),
    ("cleanup.policy=compact", "cleanup.policy=", "", "destroys"),
    ("cleanup.policy=compact", "cleanup.policy=", "log.cleanup.policy=compact", "harmless"),
    ("cleanup.policy=compact, delete", "cleanup.policy=delete,compact", "", "harmless"),
    ("cleanup.policy=compact,delete", "cleanup.policy=delete", "", "harmless"),
    ("cleanup.policy=compact,delete", "cleanup.policy=compact", "", "harmless"),
    ("", "cleanup.policy=delete", "", "harmless"),
    ("", "cleanup.policy=compact", "", "destroys"),
    ("", "cleanup.policy=compact", "log.cleanup.policy=compact", "harmless"),
    ("", "cleanup.policy=compact,delete", "", "destroys"),
    ("", "cleanup.policy=delete", "log.cleanup.policy=compact", "destroys"),
    # Together: deleting without any limit deletes nothing; a retention that no longer counts deletes nothing.
    ("cleanup.policy=compact retention.ms=-1", "cleanup.policy=delete", "", "harmless"),
    ("cleanup.policy=compact", "cleanup.policy=delete retention.ms=-1", "", "harmless"),
    ("cleanup.policy=compact retention.ms=-1", "cleanup.policy=delete retention.bytes=1", "", "destroys"),
    ("cleanup.policy=compact,delete", f"cleanup.policy=compact retention.ms={HOUR}", "", "harmless"),
    ("cleanup.policy=compact", f"cleanup.policy=delete retention.ms={HOUR}", "", "destroys"),
    # Tiered storage: disabling it drops what is remote; local retention drops what is remote already.
    (TIERED, "remote.storage.enable=false remote.log.delete.on.disable=true", "", "destroys"),
    (f"{TIERED} remote.log.delete.on.disable=true", "remote.storage.enable=false", "", "destroys"),
    (f"{TIERED} remote.log.delete.on.disable=true", "remote.storage.enable=", "", "destroys"),
    (TIERED, "remote.log.delete.on.disable=true", "", "harmless"),
    (TIERED, "remote.log.copy.disable=true", "", "harmless"),
    (TIERED, "local.retention.ms=1000", "", "harmless"),
    (TIERED, "local.retention.bytes=1", "", "harmless"),
    (TIERED, f"retention.ms={HOUR}", "", "destroys"),
    ("", "remote.storage.enable=false", "", "harmless"),
    ("remote.storage.enable=false", "remote.log.delete.on.disable=true", "", "harmless"),
    ("", TIERED, "", "irreversible"),
    ("", f"{TIERED} local.retention.ms=1000", "", "irreversible"),
    # Compaction: until min.compaction.lag.ms a record stays, by max.compaction.lag.ms it has gone.
    ("cleanup.policy=compact min.compaction.lag.ms=3600000", "min.compaction.lag.ms=", "", "destroys"),
    ("cleanup.policy=compact", "min.compaction.lag.ms=3600000", "", "harmless"),
    ("min.compaction.lag.ms=3600000", "min.compaction.lag.ms=0", "", "harmless"),
    ("cleanup.policy=compact", "max.compaction.lag.ms=3600000", "", "destroys"),
    ("", "max.compaction.lag.ms=3600000", "", "harmless"),
    ("cleanup.policy=compact", "delete.retention.ms=0", "", "clients"),
    ("cleanup.policy=compact", f"delete.retention.ms={WEEK}", "", "harmless"),
    # Clients.
    ("", "max.message.bytes=1000", "", "clients"),
    ("", "max.message.bytes=2000000", "", "harmless"),
    ("max.message.bytes=2000000", "max.message.bytes=", "", "clients"),
    ("max.message.bytes=2000000", "max.message.bytes=", "message.max.bytes=5000000", "harmless"),
    ("", "message.timestamp.type=LogAppendTime", "", "clients"),
    ("message.timestamp.type=LogAppendTime", "message.timestamp.type=", "", "clients"),
    ("", "message.timestamp.type=CreateTime", "", "harmless"),
    ("", "message.timestamp.before.max.ms=3600000", "", "clients"),
    ("", "compression.type=zstd", "", "clients"),
    ("", "compression.type=lz4", "", "harmless"),
    # An unclean election gives up what only replicas in sync have.
    ("", "unclean.leader.election.enable=true", "", "destroys"),
    ("unclean.leader.election.enable=true", "unclean.leader.election.enable=", "", "harmless"),
    ("", "unclean.leader.election.enable=true", "unclean.leader.election.enable=true", "harmless"),
    # min.insync.replicas: acks=all needs so many; the topic has three replicas, all in sync.
    ("", "min.insync.replicas=2", "", "harmless"),
    ("", "min.insync.replicas=3", "", "harmless"),
    ("", "min.insync.replicas=4", "", "availability"),
    ("min.insync.replicas=2", "min.insync.replicas=", "", "harmless"),
    ("min.insync.replicas=2", "min.insync.replicas=", "min.insync.replicas=4", "availability"),
    # What only says when and how Kafka writes.
    ("", "segment.ms=3600000", "", "harmless"),
    ("", "segment.bytes=1048576", "", "harmless"),
    ("", "min.cleanable.dirty.ratio=0.01", "", "harmless"),
    ("", "file.delete.delay.ms=0", "", "harmless"),
    ("", "flush.messages=1", "", "harmless"),
    ("", "follower.replication.throttled.replicas=*", "", "harmless"),
    ("", "x.unknown=1", "", "harmless"),
    # The gravest counts.
    ("", f"max.message.bytes=1000 retention.ms={HOUR} segment.ms=1000", "", "destroys"),
]


def pairs(text: str) -> dict[str, str]:
    """Return `key=value key=value` by key."""
    return {key: value for key, _, value in (each.partition("=") for each in text.replace(", ", ",").split())}


def cluster(before: str = "", settings: str = "", *lines: str) -> Cluster:
    """Return a cluster with the topic `orders`, of three replicas with 100 bytes each where nothing else is said."""
    found = small_cluster(*(lines or ("orders-0: 1,2,3 size 100",)), configs={"orders": pairs(before)})
    told = pairs(settings)
    return replace(found, brokers={id_: replace(each, settings=told) for id_, each in found.brokers.items()})


def alter(changed: str) -> AlterConfigs:
    """Return the change; an empty value removes an override."""
    found = pairs(changed)
    return AlterConfigs("orders", {k: v for k, v in found.items() if v}, tuple(k for k, v in found.items() if not v))


def effects(changed: str, observed: Cluster) -> tuple[Effect, ...]:
    (found,) = with_effects((alter(changed),), observed)
    return found.effects


@pytest.mark.parametrize(("before", "changed", "settings", "expected"), CASES)
def test_a_change_is_of_the_class_that_kafkas_documentation_gives_it(
    before: str, changed: str, settings: str, expected: str
) -> None:
    (found,) = with_effects((alter(changed),), cluster(before, settings))
    assert class_of(found) == expected


def test_there_are_enough_cases_and_each_is_another() -> None:
    assert len(set(CASES)) == len(CASES) >= 60


def test_of_brokers_that_differ_the_gravest_counts() -> None:
    observed = cluster("", "log.retention.hours=1")
    other = replace(observed.brokers[2], settings={"log.retention.hours": "720"})
    observed = replace(observed, brokers={**observed.brokers, 2: other})
    assert [each.kind for each in effects(f"retention.ms={WEEK}", observed)] == [EffectClass.DESTROYS]


@pytest.mark.parametrize(
    ("before", "changed", "most", "is_total"),
    [
        ("", f"retention.ms={DAY}", 300, False),
        ("", "retention.ms=1", 300, True),
        ("", "retention.ms=0", 300, True),
        ("retention.ms=2", "retention.ms=1", 300, False),
        ("", "retention.bytes=60", 120, False),
        ("", "retention.bytes=100", 0, False),
        ("", "retention.bytes=0", 300, True),
        ("cleanup.policy=compact retention.ms=-1", "cleanup.policy=delete retention.bytes=90", 30, False),
        ("cleanup.policy=compact", "cleanup.policy=delete retention.ms=1000", 300, True),
        ("", "cleanup.policy=compact", 300, False),
        (TIERED, f"retention.ms={DAY}", None, False),
        (TIERED, "remote.storage.enable=false remote.log.delete.on.disable=true", None, True),
        ("", "unclean.leader.election.enable=true", None, False),
    ],
)
def test_what_may_go_is_an_upper_bound_and_unknown_where_no_size_tells_it(
    before: str, changed: str, most: int | None, *, is_total: bool
) -> None:
    (effect,) = (each for each in effects(changed, cluster(before)) if each.kind is EffectClass.DESTROYS)
    assert (effect.bytes, effect.is_total) == (most, is_total)


@pytest.mark.parametrize(
    ("milliseconds", "age"),
    [
        (WEEK, "7 d"),
        ("172800000", "2 d"),
        ("90000000", "25 h"),
        ("5400000", "90 min"),
        ("301000", "301 s"),
        ("300001", "300001 ms"),
    ],
)
def test_an_age_is_told_in_the_largest_unit_that_tells_it_exactly(milliseconds: str, age: str) -> None:
    (effect,) = effects(f"retention.ms={milliseconds}", cluster("retention.ms=-1"))
    assert effect == Effect(EffectClass.DESTROYS, f"deletes what is older than {age}", "retention.ms", 300)


@pytest.mark.parametrize(
    ("line", "version", "wanted", "expected"),
    [
        ("orders-0: 1,2,3 isr 1,2", "4.1", "2", None),
        ("orders-0: 1,2,3 isr 1,2", "4.1", "3", "acks=all is refused at once on 1 of 1 partitions"),
        ("orders-0: 1,2,3 isr 1,2", "4.1", "5", "acks=all is refused at once on 1 of 1 partitions"),
        ("orders-0: 1,2,3", "4.1", "5", "above the 3 replicas"),
        ("orders-0: 1,2,3", "3.9", "5", "above the 3 replicas"),
        ("orders-0: 1,2,3 isr 1,2", "3.9", "5", "acks=all is refused at once on 1 of 1 partitions"),
        ("orders-0: 1,2,3,4 adding 4 removing 3 isr 1,2,3", "4.1", "4", "acks=all is refused at once on 1 of 1"),
    ],
)
def test_min_insync_replicas_above_what_is_in_sync_refuses_writes(
    line: str, version: str, wanted: str, expected: str | None
) -> None:
    observed = replace(cluster("", "", line), kafka_version=version)
    found = effects(f"min.insync.replicas={wanted}", observed)
    assert [each.kind for each in found] == ([EffectClass.AVAILABILITY] if expected else [])
    assert all(expected and expected in each.what for each in found)


def test_every_change_of_min_insync_replicas_clears_the_eligible_leaders() -> None:
    observed = cluster("min.insync.replicas=2", "", "orders-0: 1,2,3 isr 3", "orders-1: 1,2,3")
    first, second = observed.topics["orders"].partitions
    topic = replace(observed.topics["orders"], partitions=(replace(first, elr=(1, 2)), replace(second, elr=())))
    (effect,) = effects("min.insync.replicas=1", replace(observed, topics={"orders": topic}))
    assert effect.kind is EffectClass.AVAILABILITY
    assert "clears the eligible leaders (ELR)" in effect.what
    assert "orders-0" in effect.what


def test_clearing_the_eligible_leaders_of_a_partition_without_a_leader_may_lose_its_records() -> None:
    observed = cluster("min.insync.replicas=2", "", "orders-0: 1,2,3 isr 1 size 7", "orders-1: 1,2,3 size 9")
    first, second = observed.topics["orders"].partitions
    first = replace(first, leader=None, isr=(), elr=(1, 2))
    topic = replace(observed.topics["orders"], partitions=(first, replace(second, elr=())))
    (effect,) = effects("min.insync.replicas=1", replace(observed, topics={"orders": topic}))
    assert (effect.kind, effect.bytes) == (EffectClass.DESTROYS, 21)
    assert "it then gets one by an unclean election alone, which may lose records" in effect.what


@pytest.mark.parametrize(
    ("protect", "before", "changed", "codes"),
    [
        (("shrink",), "", f"retention.ms={DAY} segment.ms=1", ["KR254"]),
        (("shrink",), "", "retention.ms=1", ["KR254"]),
        (("shrink",), "", "retention.ms=2592000000", []),
        (("shrink",), "", "max.message.bytes=1", []),
        (("delete",), "", f"retention.ms={DAY}", []),
        (("delete",), "", "retention.ms=1", ["KR255"]),
        (("delete",), "", "retention.bytes=0", ["KR255"]),
        (("delete",), "cleanup.policy=compact", "cleanup.policy=delete retention.ms=0", ["KR255"]),
        (("delete",), TIERED, "remote.storage.enable=false remote.log.delete.on.disable=true", ["KR255"]),
        (("delete", "shrink"), TIERED, "remote.storage.enable=false remote.log.delete.on.disable=true", ["KR254"]),
        (("grow", "move"), "", "retention.ms=1", []),
    ],
)
def test_a_protected_topic_keeps_its_records(
    protect: tuple[str, ...], before: str, changed: str, codes: list[str]
) -> None:
    at = Location("topics/orders.yaml", 7)
    change = alter(changed)
    wanted = DesiredTopic(
        "orders",
        config={**change.set, **dict.fromkeys(change.delete)},
        protect=frozenset(map(Protection, protect)),
        at={f"config.{key}": at for key in change.set},
    )
    desired, observed = Desired(DesiredCluster("c"), {"orders": wanted}), cluster(before)
    if not codes:
        assert compare(desired, observed, topic_rules(desired, observed)).topic_changes
        return
    with pytest.raises(InvalidInput) as refused:
        compare(desired, observed, topic_rules(desired, observed))
    assert [problem.code for problem in refused.value.problems] == codes
    assert {problem.at for problem in refused.value.problems} == {at}


@pytest.mark.parametrize(
    ("before", "changed", "settings", "named"),
    [
        ("", f"retention.ms={WEEK}", "", "log.retention.ms"),
        (f"retention.ms={DAY}", "retention.ms=", "", "log.retention.ms"),
        (f"retention.ms={DAY}", f"retention.ms={WEEK}", "", None),
        ("", f"retention.ms={WEEK}", "log.retention.hours=168", None),
        ("", "segment.ms=1", "", None),
    ],
)
def test_settings_of_brokers_that_nobody_told_are_named_where_they_count(
    before: str, changed: str, settings: str, named: str | None
) -> None:
    line = Location("topics/orders.yaml", 7)
    observed = cluster(before, settings)
    known = {key: observed.topics["orders"].configs.get(key) for key in pairs(changed)}
    told = list(unknown_defaults((replace(alter(changed), before=known, at=line),), observed))
    message = (
        f"topic orders: what {named} is on the brokers is not known, so Kafka's default counts:"
        " a snapshot of this version tells it"
    )
    assert told == ([Problem("KR844", message, line, Severity.WARNING)] if named else [])
