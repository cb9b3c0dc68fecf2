"""What a topic's configs are in force, and how much of a tiered topic a broker keeps."""

import pytest

from reconciler.diff.topic_values import TopicValues

DAY = {"retention.ms": "86400000", "remote.storage.enable": "true"}


@pytest.mark.parametrize(
    ("overrides", "kept"),
    [
        ({"retention.ms": "5"}, 5),
        ({**DAY, "remote.storage.enable": "false", "local.retention.ms": "5"}, 86_400_000),
        (DAY, 86_400_000),
        ({**DAY, "local.retention.ms": "-2"}, 86_400_000),
        ({**DAY, "local.retention.ms": "5"}, 5),
        ({**DAY, "local.retention.ms": "0"}, 0),
        ({**DAY, "local.retention.ms": "-1"}, 86_400_000),  # no limit of its own
        ({**DAY, "local.retention.ms": "86400001"}, 86_400_000),
        ({"retention.ms": "-1"}, float("inf")),
    ],
)
def test_a_broker_keeps_the_shorter_of_both_retentions(overrides: dict[str, str], kept: float) -> None:
    assert TopicValues(overrides, {}, "4.1").kept_on_disk("retention.ms") == kept


def test_a_config_without_a_default_is_empty() -> None:
    assert TopicValues({}, {}, "4.1").text("leader.replication.throttled.replicas") == ""
    assert TopicValues({}, {"log.retention.hours": "1"}, "4.1").text("retention.ms") == "3600000"
