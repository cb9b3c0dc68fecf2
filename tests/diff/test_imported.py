"""The strongest rules of a cluster, one planted at a time: found where it is kept, weaker where it is not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.imported.classes import with_classes
from reconciler.diff.imported.evenness import are_topics_even, leader_counts, replica_counts, tightest_band
from reconciler.diff.imported.strongest_rules import adopted, elections_wanted
from reconciler.diff.rules import topic_rules
from reconciler.files.desired_writer import is_writable
from reconciler.model.cluster import Cluster
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
)
from reconciler.model.imported import Adopted, Deviation
from reconciler.model.topic_partition import TopicPartition

BASE = Desired(DesiredCluster("c"))
A, B, C = frozenset("a"), frozenset("b"), frozenset("c")


def found(*lines: str, configs: Mapping[str, Mapping[str, str]] | None = None, fenced: Sequence[int] = ()) -> Adopted:
    """Return what is found in a cluster of six brokers in racks a, b, c, a, b, c."""
    return adopted(BASE, small_cluster(*lines, configs=configs, fenced=fenced), is_writable)


def racked(rack_of: Mapping[int, str | None], *lines: str) -> Adopted:
    """Return what is found where these brokers stand in these racks instead."""
    cluster = small_cluster(*lines)
    brokers = {each.id: replace(each, rack=rack_of.get(each.id, each.rack)) for each in cluster.brokers.values()}
    return adopted(BASE, replace(cluster, brokers=brokers), is_writable)


def placement(*lines: str) -> Placement:
    """Return the placement found for topic t."""
    return found(*lines).topics["t"].placement


def led_from_a(partitions: int) -> list[str]:
    return [f"t-{number}: {(1, 2, 3) if number % 2 else (4, 5, 6)}".replace("(", "").replace(")", "").replace(", ", ",")
            for number in range(partitions)]  # fmt: skip


def test_a_partition_that_is_not_spread_is_named() -> None:
    (told,) = found("t-0: 1,2,3", "t-1: 1,4,6").deviations
    assert told.message.startswith("racks: 1 of 2 partitions (1) is not spread over the racks; ")
    (both,) = found("t-0: 1,4,6", "t-1: 1,2,3", "t-2: 1,4,6").deviations
    assert both.message.startswith("racks: 2 of 3 partitions (0, 2) are not spread over the racks; ")


def test_prefer_is_found_where_a_rack_has_too_few_brokers_for_strict() -> None:
    cluster = small_cluster("t-0: 1,4,5,2", "t-1: 4,1,2,5", brokers=(1, 2, 4, 5, 7))
    assert adopted(BASE, cluster, is_writable).topics["t"].placement.racks_spread is Spread.STRICT
    lopsided = small_cluster("t-0: 1,4,7,2", "t-1: 4,1,2,7", brokers=(1, 2, 4, 7))
    made = adopted(BASE, lopsided, is_writable)
    assert made.topics["t"].placement.racks_spread is Spread.PREFER
    assert [(each.topic, each.code) for each in made.deviations] == [("t", "KR271")]
    assert "some rack has too few brokers; prefer is written" in made.deviations[0].message


def test_without_racks_no_rack_rule_is_written() -> None:
    cluster = small_cluster("t-0: 1,4", brokers=(1, 4))
    assert adopted(BASE, cluster, is_writable).topics["t"].placement == Placement()


def test_leaders_of_one_rack_are_a_rule_once_chance_is_ruled_out() -> None:
    assert placement(*led_from_a(12)).racks_leader is None
    assert placement(*led_from_a(13)).racks_leader == A


@pytest.mark.parametrize(
    "rack_of",
    [{3: None}, {1: None}, {1: "a\x07", 4: "a\x07"}],
    ids=["a follower in no rack", "a leader in no rack", "a rack that no file can name"],
)
def test_leaders_are_no_rule_where_some_rack_cannot_be_told(rack_of: Mapping[int, str | None]) -> None:
    made = racked(rack_of, *led_from_a(13))
    assert (made.topics["t"].placement, made.deviations) == (Placement(racks_spread=Spread.STRICT), ())


def test_a_topic_of_two_racks_keeps_to_them_once_chance_is_ruled_out() -> None:
    used = ["other-0: 1,2,3", "other-1: 4,5,6"]
    assert placement(*used, *[f"t-{number}: 1,2" for number in range(17)]).racks_only is None
    only = placement(*used, *[f"t-{number}: {'1,5' if number % 2 else '4,2'}" for number in range(18)])
    assert (only.racks_only, only.racks_spread) == (A | B, Spread.STRICT)
    # Of four brokers in six, 34 replicas are by chance once in 971,000 times, 35 once in 1,457,000.
    for replicas, expected in ((34, None), (35, A | B)):
        assert placement(*used, *[f"t-{number}: {number % 2 + 1}" for number in range(replicas)]).racks_only == expected


def test_new_and_empty_brokers_say_nothing_about_a_topic() -> None:
    lines = [f"t-{number}: {'1,5' if number % 2 else '4,2'}" for number in range(40)]
    assert placement(*lines).racks_only is None


def test_partitions_of_different_length_keep_their_own() -> None:
    made = found("t-0: 1,2,3", "t-1: 1,2")
    assert made.topics["t"].replication_factor is None
    assert [each.code for each in made.deviations] == ["KR272"]


def test_while_a_partition_is_on_its_way_its_target_counts() -> None:
    from dataclasses import replace

    cluster = small_cluster("t-0: 1,2,3,6", "t-1: 4,5,6")
    moving = replace(cluster.topics["t"].partitions[0], adding_replicas=(6,), removing_replicas=(3,))
    partitions = (moving, cluster.topics["t"].partitions[1])
    cluster = replace(cluster, topics={"t": replace(cluster.topics["t"], partitions=partitions)})
    made = adopted(BASE, cluster, is_writable)
    assert (made.topics["t"].replication_factor, made.topics["t"].placement.racks_spread) == (3, Spread.STRICT)
    assert [each.code for each in made.deviations] == ["KR278"]


@pytest.mark.parametrize(("lines", "code"), [(["t-0: 1,2,3"], "KR273"), (["t-0: 1,2,3", "a-0: 1,2"], "KR273")])
def test_a_topic_with_a_replica_on_a_dead_broker_is_left_out(lines: list[str], code: str) -> None:
    made = found(*lines, "whole-0: 4,5,6", fenced=[3])
    assert list(made.left_out) == ["t"]
    assert [(each.topic, each.code, each.is_left_out) for each in made.deviations] == [("t", code, True)]


def test_a_name_that_kafka_would_not_take_is_left_out_and_so_is_what_collides_after_it() -> None:
    made = found(".-0: 1", "a.b-0: 1", "a_b-0: 1")
    assert (list(made.topics), list(made.left_out)) == (["a.b"], [".", "a_b"])
    assert [(each.topic, each.code) for each in made.deviations] == [(".", "KR279"), ("a_b", "KR275")]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("0", "is no whole number of at least 1"),
        ("-1", "is no whole number of at least 1"),
        ("02", "is no whole number of at least 1"),
        ("two", "is no whole number of at least 1"),
        ("4", "is 4, above replicationFactor 3, which Kafka takes instead"),
        ("3", None),
    ],
)
def test_min_isr_is_written_only_as_a_number_that_the_replicas_can_reach(value: str, why: str | None) -> None:
    made = found("t-0: 1,2,3", configs={"t": {"min.insync.replicas": value}})
    assert dict(made.topics["t"].config) == ({} if why else {"min.insync.replicas": value})
    told = Deviation("KR276", f"min.insync.replicas {why}; it is not written, and stays", "t")
    assert made.deviations == ((told,) if why else ())


def test_configs_that_no_file_may_hold_are_not_written_and_named() -> None:
    configs = {
        "t": {
            "min.insync.replicas": "2",
            "leader.replication.throttled.replicas": "*",
            "retention.ms": "1",
            "x": "10 GB",
            "message.format.version": UNREADABLE,
            "y/z": "1",
            "é": "1",
            "v": "bell\x07",
            "w": "zero\u200bwidth",
        }
    }
    made = found("t-0: 1", configs=configs)
    assert dict(made.topics["t"].config) == {"retention.ms": "1"}
    assert [(each.code, each.message.partition(" ")[0]) for each in made.deviations] == [
        ("KR276", "leader.replication.throttled.replicas"),
        ("KR276", "message.format.version"),
        ("KR276", "min.insync.replicas"),
        *(("KR276", key) for key in ("v", "w", "x", "y/z", "é")),
    ]


def test_brokers_that_live_and_stay_are_counted_with_their_capacity_and_an_empty_one_too() -> None:
    states = {2: DesiredBroker(2, capacity=3), 3: DesiredBroker(3, BrokerState.DRAINING)}
    desired = Desired(DesiredCluster("c", brokers=states))
    observed = small_cluster("t-0: 1,2,3", "t-1: 1,3,4", brokers=range(1, 6), fenced=[4])
    assert replica_counts(desired, observed) == [(2, 1), (1, 3), (0, 1)]
    assert leader_counts(desired, observed) == [(2, 1), (0, 3), (0, 1)]
    by_measure = Desired(DesiredCluster("c", brokers={**states, 2: DesiredBroker(2, weights={"leaders": 4})}))
    assert replica_counts(by_measure, observed) == [(2, 1), (1, 1), (0, 1)]
    assert leader_counts(by_measure, observed) == [(2, 1), (0, 4), (0, 1)]


@pytest.mark.parametrize(
    ("lines", "is_even"),
    [
        (["t-0: 1,2", "t-1: 2,4", "t-2: 4,1"], True),
        (["t-0: 1", "t-1: 1", "t-2: 2"], False),
        (["t-0: 1,2", "t-1: 1,4", "t-2: 4,2", "t-3: 1,2"], False),
        (["t-0: 3,2", "t-1: 1,2"], False),  # 3 is not there
    ],
)
def test_a_topic_is_even_where_its_replicas_and_its_leaders_differ_by_one_at_most(
    lines: list[str], *, is_even: bool
) -> None:
    desired, observed = Desired(DesiredCluster("c"), {"t": DesiredTopic("t")}), small_cluster(*lines, brokers=(1, 2, 4))
    assert are_topics_even(desired, observed, topic_rules(desired, observed)) == is_even


def test_topics_are_not_called_even_where_brokers_differ_in_capacity() -> None:
    observed = small_cluster("t-0: 1,2", "t-1: 2,4", "t-2: 4,1", brokers=(1, 2, 4))
    desired = Desired(DesiredCluster("c", brokers={2: DesiredBroker(2, capacity=3)}), {"t": DesiredTopic("t")})
    assert not are_topics_even(desired, observed, topic_rules(desired, observed))
    weights = {2: DesiredBroker(2, weights={"leaders": 2})}
    by_measure = replace(desired, cluster=DesiredCluster("c", brokers=weights))
    assert not are_topics_even(by_measure, observed, topic_rules(by_measure, observed))


def test_elections_are_wanted_where_the_preferred_leader_is_in_sync_and_does_not_lead() -> None:
    observed = small_cluster("t-0: 1,2 leader 2", "t-1: 1,2", "t-2: 1,2 leader 2 isr 2", "u-0: 1,2 leader 2")
    desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t")})
    assert list(elections_wanted(desired, observed)) == [TopicPartition("t", 0)]


def test_bands_are_tried_from_the_tightest_on() -> None:
    def band(*counts: int) -> str | None:
        target = tightest_band([(count, 1) for count in counts])
        return None if target is None else f"{target.fraction * 100}%"

    assert [band(100, 100), band(99, 101), band(98, 102), band(90, 110), band(75, 125)] == [
        "1%", "1%", "2%", "10%", "25%",
    ]  # fmt: skip
    assert band(60, 140) is None
    assert tightest_band([(100, 1), (200, 2)]) == tightest_band([(100, 1), (100, 1)])


def topics(**configs_of: dict[str, str]) -> dict[str, DesiredTopic]:
    strict = Placement(racks_spread=Spread.STRICT)
    return {
        name: DesiredTopic(name, partitions=1, replication_factor=3, placement=strict, config=dict(config))
        for name, config in sorted(configs_of.items())
    }


def classes(made: Mapping[str, DesiredTopic]) -> dict[str, tuple[int, dict[str, str]]]:
    return {each.name: (each.topics, dict(each.config)) for each in with_classes(Adopted(made)).classes}


def test_classes_are_made_of_what_topics_share_and_named_by_what_sets_them_apart() -> None:
    usual, compact = {"min.insync.replicas": "2"}, {"cleanup.policy": "compact", "min.insync.replicas": "2"}
    made = topics(
        **{f"s{n}": usual for n in range(9)},
        **{f"c{n}": compact for n in range(3)},
        **{f"r{n}": {**usual, "retention.ms": "172800000"} for n in range(4)},
        own={**usual, "retention.ms": "1000"},
    )
    assert classes(made) == {
        "standard": (10, usual),
        "keep-2d": (4, {**usual, "retention.ms": "172800000"}),
        "compacted": (3, compact),
    }


def test_classes_that_would_have_one_name_are_numbered_those_of_most_topics_first() -> None:
    usual = {"min.insync.replicas": "2"}
    first, second = {**usual, "x": "1:2"}, {**usual, "x": "1-2"}
    made = {f"s{n}": usual for n in range(9)} | {f"a{n}": first for n in range(5)} | {f"b{n}": second for n in range(4)}
    assert classes(topics(**made)) == {"standard": (9, usual), "x-1-2": (5, first), "x-1-2-2": (4, second)}


def test_one_topic_is_no_class_and_a_thousand_kinds_are_not_a_thousand_classes() -> None:
    assert classes(topics(t={"a": "1"})) == {}
    many = topics(**{f"t{number:04}": {"retention.ms": str(number % 300), "b": "1"} for number in range(1200)})
    assert classes(many) == {"standard": (1200, {"b": "1"})}


def test_a_topic_that_breaks_the_rack_rule_is_of_another_class() -> None:
    made = with_classes(found("a-0: 1,2,3", "b-0: 1,2,3", "c-0: 1,4,6", "d-0: 1,4,6"))
    assert {each.name: each.placement.racks_spread for each in made.classes} == {
        "standard": Spread.STRICT, "unspread": None,
    }  # fmt: skip
    assert made.class_of == {"a": "standard", "b": "standard", "c": "unspread", "d": "unspread"}


def test_a_class_without_end_and_one_of_several_configs_are_named_by_them_sorted_by_key() -> None:
    usual = {"b": "1"}
    forever, two = {**usual, "retention.ms": "-1"}, {**usual, "x": "2", "y": "1"}
    made = {f"s{n}": usual for n in range(9)} | {f"f{n}": forever for n in range(4)} | {f"t{n}": two for n in range(3)}
    assert list(classes(topics(**made))) == ["standard", "keep-forever", "x-2-y-1"]


def test_a_class_is_named_by_its_policy_first_then_by_how_long_it_keeps_then_by_the_rest() -> None:
    usual = {"b": "1"}
    policy, retention, other = {"cleanup.policy": "compact,delete"}, {"retention.ms": "1000"}, {"a": "1"}
    made = {f"s{n}": usual for n in range(9)} | {f"p{n}": usual | policy | retention | other for n in range(3)}
    assert list(classes(topics(**made))) == ["standard", "compact-and-delete-keep-1s-a-1"]


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("max.message.bytes", "5242880", "max-message-5mib"),
        ("retention.bytes", "-1", "keep-without-end"),
        ("retention.bytes", "10737418240", "keep-10gib"),
        ("segment.bytes", "1048577", "segment-1048577b"),
        ("delete.retention.ms", "86400000", "delete-retention-1d"),
        ("message.timestamp.type", "LogAppendTime", "message-timestamp-logappendtime"),
        ("compression.type", "zstd", "compression-zstd"),
        ("vendor.option", "a-value-that-is-much-too-long-for-a-name", "vendor-option"),
    ],
)
def test_a_class_is_called_by_amounts_as_people_write_them_and_never_by_half_of_a_number(
    key: str, value: str, name: str
) -> None:
    made = {f"s{number}": {"x": "1"} for number in range(5)} | {f"t{number}": {key: value} for number in range(4)}
    assert [*classes(topics(**made))] == ["standard", name]


def test_names_that_would_be_one_are_told_apart_by_more_of_what_they_say() -> None:
    usual = {f"s{number}": {"x": "1"} for number in range(9)}
    common = {"a": "1", "b": "1", "c": "1"}
    made = usual | {f"t{n}": {**common, "d": "1"} for n in range(5)} | {f"u{n}": {**common, "d": "2"} for n in range(4)}
    assert [*classes(topics(**made))] == ["standard", "a-1-b-1-c-1", "a-1-b-1-c-1-d-2"]


@pytest.mark.parametrize(
    ("spread", "name"), [(Spread.PREFER, "loosely-spread"), (Spread.IGNORE, "unspread"), (None, "unspread")]
)
def test_a_class_that_differs_in_its_spread_is_named_by_it(spread: Spread | None, name: str) -> None:
    made = topics(**{each: {"b": "1"} for each in ("s0", "s1", "s2", "o0", "o1")})
    made |= {each: replace(made[each], placement=Placement(racks_spread=spread)) for each in ("o0", "o1")}
    assert [each.name for each in with_classes(Adopted(made)).classes] == ["standard", name]


def test_topics_that_are_led_from_one_rack_are_of_a_class_of_that_name() -> None:
    led = Placement(racks_spread=Spread.STRICT, racks_leader=A)
    usual = {f"s{number}": {"b": "1"} for number in range(3)}
    made = topics(**usual, **{f"l{number}": {"b": "1"} for number in range(2)})
    made |= {name: replace(made[name], placement=led) for name in ("l0", "l1")}
    assert sorted(each.name for each in with_classes(Adopted(made)).classes) == ["led-from-a", "standard"]


def test_an_empty_cluster_is_found_empty() -> None:
    assert adopted(BASE, Cluster("none"), is_writable) == Adopted({})
