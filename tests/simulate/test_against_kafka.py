"""The same requests, in the same random order, to real brokers and to the simulated cluster: the same states."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reconciler.admin.port import Admin
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.change import ConfigChange, ConfigOperation, CreateTopic
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster

pytestmark = pytest.mark.brokers

PARTITIONS = 12
# More than followers fetch before the throttle of nothing a second has measured anything.
PARTITION_BYTES = 4_000_000
ROUNDS = 5
SEEDS = (1, pytest.param(2, marks=pytest.mark.deep))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_targets_and_cancels_lead_real_and_simulated_controllers_through_the_same_states(
    kafka: "KafkaCluster", seed: int
) -> None:
    topic = f"fidelity-{seed}"
    chance = random.Random(seed)
    with with_topic(kafka, topic, assignment(chance)) as real:
        simulated = SimulatedAdmin(replace(real.observe(), observed_at=None))
        for _ in range(ROUNDS):
            targets = random_targets(chance, topic)
            refused = [errors(admin, targets) for admin in (real, simulated)]
            assert refused[0] == refused[1]
            wanted = states(simulated, topic)
            kafka.wait_for(lambda wanted=wanted: states(real, topic) == wanted, f"{wanted}")  # type: ignore[misc]
        for admin in (real, simulated):
            throttle(admin, topic, None)
        simulated.clock.sleep(3600)
        wanted = states(simulated, topic)
        kafka.wait_for(lambda: states(real, topic) == wanted, f"{wanted}")
        elected = [real.elect_preferred_leaders(keys(topic)), simulated.elect_preferred_leaders(keys(topic))]
        assert [{key: one.error for key, one in told.items()} for told in elected] == [dict.fromkeys(keys(topic))] * 2
        wanted = states(simulated, topic)
        kafka.wait_for(lambda: states(real, topic) == wanted, f"{wanted}")


@contextmanager
def with_topic(kafka: "KafkaCluster", topic: str, placed: Mapping[int, Sequence[int]]) -> Iterator[Admin]:
    """Create a topic whose new replicas get no bytes, until the throttle is lifted."""
    from confluent_kafka.admin import ResourceType
    from helpers.brokers.observer import Observer

    from reconciler.admin.client import connect

    admin, observer = connect(kafka.properties), Observer(kafka.bootstrap)
    try:
        change = CreateTopic(topic, PARTITIONS, 3, assignment={number: tuple(placed[number]) for number in placed})
        assert admin.create_topics([change])[topic].is_ok
        kafka.wait_for(lambda: len(isrs(admin, topic)) == PARTITIONS, f"{topic} to be there")
        for number in placed:
            kafka.produce(topic, number, size=PARTITION_BYTES)
        kafka.wait_for(lambda: isrs(admin, topic) == {n: sorted(placed[n]) for n in placed}, "all to be in sync")
        throttle(admin, topic, 0)
        kafka.wait_for(lambda: set(observer.overrides(ResourceType.TOPIC, topic)) == set(TOPIC_THROTTLES), "throttles")
        observer.catch_up([topic])
        yield admin
    finally:
        throttle(admin, topic, None)
        admin.delete_topics([topic])
        admin.close()


def assignment(chance: random.Random) -> Mapping[int, Sequence[int]]:
    return {number: chance.sample(range(1, 7), 3) for number in range(PARTITIONS)}


def random_targets(chance: random.Random, topic: str) -> Mapping[TopicPartition, Sequence[int] | None]:
    """Return a target, a cancel or nothing for each partition."""
    choices: Sequence[Callable[[], Sequence[int] | None]] = (
        lambda: None,
        lambda: chance.sample(range(1, 7), chance.randint(1, 4)),
        lambda: chance.sample(range(1, 8), 3),
    )
    return {key: chance.choice(choices)() for key in keys(topic) if chance.random() < 0.8}


def errors(admin: Admin, targets: Mapping[TopicPartition, Sequence[int] | None]) -> Mapping[TopicPartition, object]:
    answers = admin.reassign(targets)
    return {key: (answers[key].error, answers[key].message if answers[key].error else "") for key in targets}


def states(admin: Admin, topic: str) -> Mapping[int, object]:
    """Return each partition's replicas, ISR, leader and what is added and removed."""
    moving = admin.reassignments()
    return {
        one.partition: (one.replicas, sorted(one.isr), one.leader, moving.get(TopicPartition(topic, one.partition)))
        for one in admin.topics([topic])[topic].partitions
    }


def isrs(admin: Admin, topic: str) -> Mapping[int, Sequence[int]]:
    found = admin.topics([topic]).get(topic)
    return {one.partition: sorted(one.isr) for one in found.partitions} if found else {}


def keys(topic: str) -> Sequence[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def throttle(admin: Admin, topic: str, rate: int | None) -> None:
    """Let the topic's new replicas copy at most that much, or whatever they can."""
    for broker_id in admin.brokers():
        assert admin.alter_broker_configs(broker_id, [_change(key, rate, str(rate)) for key in BROKER_THROTTLES]).is_ok
    assert admin.alter_topic_configs({topic: [_change(key, rate, "*") for key in TOPIC_THROTTLES]})[topic].is_ok


def _change(key: str, rate: int | None, value: str) -> ConfigChange:
    return ConfigChange(key, ConfigOperation.DELETE) if rate is None else ConfigChange(key, ConfigOperation.SET, value)
