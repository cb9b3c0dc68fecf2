"""The table of topic configs is what Kafka's own classes and effects.toml say, and each change has its class."""

import tomllib
from pathlib import Path

import pytest
from model.topic_configs.cases import VERDICTS
from model.topic_configs.make import RELEASED, TABLE, table, verdicts

from reconciler.model.config_rule import NUMBERS, RELEASES, release_of
from reconciler.model.effect import EffectClass
from reconciler.model.topic_configs import TOPIC_CONFIGS, default_of, rule_of

EFFECTS = Path(__file__).parent / "effects.toml"


@pytest.mark.java
@pytest.mark.deep
def test_the_table_and_the_verdicts_are_made_again_byte_for_byte() -> None:
    assert table() == TABLE.read_text()
    assert verdicts() == VERDICTS.read_text()


def test_every_topic_config_of_every_release_has_its_class() -> None:
    written = tomllib.loads(EFFECTS.read_text())
    assert sorted(written) == sorted(TOPIC_CONFIGS)
    for key, config in TOPIC_CONFIGS.items():
        found: dict[str, object] = {"smaller": config.smaller, "larger": config.larger}
        if config.newest.kind not in NUMBERS:
            found = {"becomes": dict(config.becomes), "otherwise": config.otherwise}
        if config.only_where:
            found["only-where"] = [*config.only_where]
        if config.is_unlimited_below_zero:
            found["unlimited-below-zero"] = True
        assert found == written[key], key


def test_the_releases_asked_are_those_that_the_table_knows() -> None:
    assert tuple(RELEASED) == RELEASES


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("3.9", "3.9"), ("3.9.1", "3.9"), ("3.7", "3.9"), ("4.0", "3.9"), ("4.1.1", "4.1"), ("4.2", "4.1"),
        ("4.3-IV0", "4.3"), ("5.0", "4.3"), (None, "4.3"), ("", "4.3"), ("x.y", "4.3"),
    ],
)  # fmt: skip
def test_a_version_follows_the_newest_known_release_that_is_not_newer(version: str | None, release: str) -> None:
    assert release_of(version) == release


def test_what_differs_between_releases_is_told_apart() -> None:
    segments = [rule_of("segment.bytes", release) for release in RELEASES]
    assert [rule and rule.low for rule in segments] == [14, 1 << 20, 1 << 20]
    assert [default_of("message.downconversion.enable", release) for release in RELEASES] == ["true", None, None]
    after = [default_of("message.timestamp.after.max.ms", release) for release in RELEASES]
    assert after == [str((1 << 63) - 1), "3600000", "3600000"]
    assert default_of("retention.sm", None) is None


def test_no_limit_is_the_largest_retention() -> None:
    for key in ("retention.ms", "retention.bytes"):
        config = TOPIC_CONFIGS[key]
        assert config.smaller is EffectClass.DESTROYS
        assert config.number("-1") == float("inf")
        assert config.number("5") == 5
    assert TOPIC_CONFIGS["retention.ms"].number("7 days") is None
    assert TOPIC_CONFIGS["min.cleanable.dirty.ratio"].number("0.25") == 0.25
