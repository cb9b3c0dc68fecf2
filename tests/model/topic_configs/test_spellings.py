"""Values of topic configs are read, shown, refused and compared as Kafka does by the type of their key."""

import pytest
from model.topic_configs.spellings import Spelling, spellings

from reconciler.model.config_value import displayed_value, is_same_value
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.simulate.configs import value_problem

RECORDED = [*spellings()]


def test_each_spelling_is_shown_or_refused_as_brokers_do() -> None:
    assert [spelling for spelling in RECORDED if not is_as_recorded(spelling)] == []
    assert min(sum(one.shown is None for one in RECORDED), sum(one.shown is not None for one in RECORDED)) >= 98


def is_as_recorded(spelling: Spelling) -> bool:
    refusal = value_problem(spelling.key, spelling.text, TOPIC_CONFIGS[spelling.key].newest)
    if spelling.shown is None:
        return refusal is not None
    return refusal is None and displayed_value(spelling.key, spelling.text) == spelling.shown


@pytest.mark.parametrize(
    ("key", "one", "other", "is_same"),
    [
        ("min.cleanable.dirty.ratio", "0.0001", "1.0E-4", True),
        ("min.cleanable.dirty.ratio", "NaN", "NaN", True),
        ("min.cleanable.dirty.ratio", "0.1", "0.2", False),
        ("preallocate", "True", "true", True),
        ("cleanup.policy", "compact, delete", "delete,compact", True),
        ("cleanup.policy", "compact,compact", "compact", True),
        ("cleanup.policy", "", "delete", False),
        ("retention.ms", "0604800000", "604800000", True),
        ("retention.ms", "soon", "Soon", False),
        ("retention.ms", None, None, True),
        ("retention.ms", None, "5", False),
        ("retention.ms", "5", None, False),
        ("cleanup.policy", None, "", False),
        ("compression.type", "gzip", "GZIP", False),
        ("vendor.tier", "True", "true", False),
    ],
)
def test_values_are_the_same_where_kafka_takes_them_for_the_same(
    key: str, one: str | None, other: str | None, *, is_same: bool
) -> None:
    assert is_same_value(key, one, other) is is_same
    assert is_same_value(key, other, one) is is_same
