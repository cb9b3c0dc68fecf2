"""Numbers with units, exactly."""

import re
from collections.abc import Callable
from fractions import Fraction

import pytest

from reconciler.files.units import (
    config_text,
    parse_bytes,
    parse_milliseconds,
    parse_percent,
    parse_rate,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "0B", 0),
        (parse_bytes, "1KiB", 1024),
        (parse_bytes, "1kB", 1000),
        (parse_bytes, "1KB", 1000),
        (parse_bytes, "1.5GiB", 3 << 29),
        (parse_bytes, "2 TiB", 2 << 40),
        (parse_bytes, "1PB", 10**15),
        (parse_rate, "50MiB/s", 50 << 20),
        (parse_rate, "0.5kB/s", 500),
        (parse_milliseconds, "7d", 604_800_000),
        (parse_milliseconds, "1w", 604_800_000),
        (parse_milliseconds, "1.5h", 5_400_000),
        (parse_milliseconds, "20ms", 20),
        (parse_seconds, "1ms", 1),
        (parse_seconds, "2h", 7200),
        (parse_percent, "10%", Fraction(1, 10)),
        (parse_percent, "0.1 %", Fraction(1, 1000)),
    ],
)
def test_a_number_with_its_unit_is_exact(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("parse", [parse_bytes, parse_rate, parse_milliseconds, parse_seconds, parse_percent])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "B",
        "-1B",
        "1e3B",
        "1 000B",
        "1,5B",
        "0.3B",
        "5x",
        "5 5B",
        "٣B",
        "9" * 5000 + "B",
        "99999PiB",
        "%",
        "1.%",
    ],
)
def test_anything_else_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text.removesuffix('/s'))}$"):
        parse(text)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", -1, "-1"),
        ("retention.ms", "604800000", "604800000"),
        ("segment.bytes", "1GiB", "1073741824"),
        ("max.message.bytes", "1MB", "1000000"),
        ("segment.bytes", " 1024 ", "1024"),
        ("cleanup.policy", "compact,delete", "compact,delete"),
        ("preallocate", True, "true"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
        ("x", "50MiB/s", "50MiB/s"),
        ("x", "7 days", "7 days"),
    ],
)
def test_a_config_is_as_kafka_takes_it(key: str, value: object, text: str) -> None:
    assert config_text(key, value) == text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.ms", "1GiB"),
        ("segment.bytes", "7d"),
        ("x", "5s"),
        ("retention.ms", "7days"),
        ("retention.ms", "1e5"),
        ("retention.ms", "0x10"),
        ("retention.ms", "1_000"),
        ("retention.ms", "0.3ms"),
        ("segment.bytes", "1Gi"),
        ("segment.bytes", "9" * 20),
    ],
)
def test_a_unit_that_does_not_fit_the_key_is_refused(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=value):
        config_text(key, value)
