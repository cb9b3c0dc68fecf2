"""The simulated controller takes and refuses topic configs as the brokers' own classes do, with their reasons."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster
from model.topic_configs.cases import verdicts

from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import Cluster
from reconciler.model.config_rule import RELEASES
from reconciler.simulate.configs import alter_topic_configs, validate_topic_configs

EMPTY_ITEM = "Configuration 'cleanup.policy' values must not be empty."


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", ["key", "value", "together"])
def test_each_release_refuses_what_its_kafka_refuses_with_the_same_reason(kind: str, release: str) -> None:
    cluster = small_cluster(kafka_version=release)
    for case in verdicts(kind):
        denied = validate_topic_configs(cluster, case.configs, case.before)
        assert reason(None if denied is None else denied.message) == reason(case.refusals[release]), case
        assert denied is None or denied.error == "INVALID_CONFIG"


def reason(message: str | None) -> str | None:
    """Return the words without the value, which Kafka shows as it read it (`-1.0`); of an empty item 4.3 has others."""
    if message is None or not message.startswith("Invalid value "):
        return "cleanup.policy: String must be one of: compact, delete" if message == EMPTY_ITEM else message
    return message.partition(" for configuration ")[2]


def test_a_key_that_a_topic_of_the_cluster_has_is_known_to_it() -> None:
    cluster = small_cluster("a-0: 1", "b-0: 1", configs={"a": {"vendor.tier": "1"}})
    assert validate_topic_configs(cluster, {"vendor.tier": "2"}) is None
    denied = validate_topic_configs(cluster, {"vendor.teir": "2"})
    assert denied is not None
    assert denied.message == "Unknown topic config name: vendor.teir"


def test_the_brokers_settings_are_what_overrides_stand_on() -> None:
    cluster = small_cluster("a-0: 1", kafka_version="4.3")
    settings = {"log.retention.ms": "1000", "log.retention.bytes": "much", "remote.log.storage.system.enable": "true"}
    tiered = with_settings(cluster, settings)
    local = {"remote.storage.enable": "true", "local.retention.ms": "2000"}
    assert validate_topic_configs(cluster, local) is None
    denied = validate_topic_configs(tiered, local)
    assert denied is not None
    assert denied.message.endswith("Value must not be more than retention.ms property value: 1000")
    assert validate_topic_configs(with_settings(tiered, {"remote.log.storage.system.enable": "false"}), {}) is None
    denied = validate_topic_configs(with_settings(tiered, {"remote.log.storage.system.enable": "false"}), local)
    assert denied is not None
    assert denied.message.startswith("Tiered Storage functionality is disabled in the broker.")


def test_an_override_that_is_dropped_is_judged_too() -> None:
    cluster = small_cluster("a-0: 1", configs={"a": {"remote.storage.enable": "true"}})
    dropped = ConfigChange("remote.storage.enable", ConfigOperation.DELETE)
    answers = alter_topic_configs(cluster, {"a": [dropped]}).answers
    assert (answers["a"] or pytest.fail("it was taken")).message.startswith("It is invalid to disable remote storage")


def with_settings(cluster: Cluster, settings: Mapping[str, str]) -> Cluster:
    return replace(cluster, controller_id=1, brokers={1: replace(cluster.brokers[1], settings=settings)})


def test_the_recorded_cases_hold_each_answer() -> None:
    """Refused by all, taken by all, and, of each release, refused by it where another one takes it."""
    answers = [tuple(told is None for told in case.refusals.values()) for case in verdicts("key", "value", "together")]
    assert min(answers.count((True, True, True)), answers.count((False, False, False))) >= 250
    assert {(True, False, False), (True, False, True), (False, True, True)} <= {*answers}
