"""What Kafka takes as a value of a dynamic config: the type, and the bounds or choices, of each key."""

import re
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.simulate.answers import Denied

THROTTLED_REPLICAS = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
INT_BITS, LONG_BITS = 32, 64


class Kind(StrEnum):
    """Kafka's types of config values."""

    BOOLEAN = "BOOLEAN"
    DOUBLE = "DOUBLE"
    INT = "INT"
    LIST = "LIST"
    LONG = "LONG"
    STRING = "STRING"


@dataclass(frozen=True, slots=True)
class Rule:
    """The values one key takes: at least `low`, at most `high`, or one of `choices`."""

    kind: Kind
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    default: str = ""


def _long(low: int | None = None) -> Rule:
    return Rule(Kind.LONG, low)


def _int(low: int, high: int | None = None) -> Rule:
    return Rule(Kind.INT, low, high)


_BOOLEAN = Rule(Kind.BOOLEAN)
_LIST = Rule(Kind.LIST)
_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMESTAMPS = ("CreateTime", "LogAppendTime")

TOPIC_RULES = {
    "cleanup.policy": Rule(Kind.LIST, choices=("compact", "delete"), default="delete"),
    "compression.gzip.level": _int(-1, 9),
    "compression.lz4.level": _int(1, 17),
    "compression.type": Rule(Kind.STRING, choices=_COMPRESSIONS),
    "compression.zstd.level": _int(-131072, 22),
    "delete.retention.ms": _long(0),
    "file.delete.delay.ms": _long(0),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "follower.replication.throttled.replicas": _LIST,
    "index.interval.bytes": _int(0),
    "leader.replication.throttled.replicas": _LIST,
    "local.retention.bytes": _long(-2),
    "local.retention.ms": _long(-2),
    "max.compaction.lag.ms": _long(1),
    "max.message.bytes": _int(0),
    "message.timestamp.after.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.type": Rule(Kind.STRING, choices=_TIMESTAMPS),
    "min.cleanable.dirty.ratio": Rule(Kind.DOUBLE, 0, 1),
    "min.compaction.lag.ms": _long(0),
    "min.insync.replicas": _int(1),
    "preallocate": _BOOLEAN,
    "remote.log.copy.disable": _BOOLEAN,
    "remote.log.delete.on.disable": _BOOLEAN,
    "remote.storage.enable": _BOOLEAN,
    "retention.bytes": _long(),
    "retention.ms": _long(-1),
    "segment.bytes": _int(1024 * 1024),
    "segment.index.bytes": _int(4),
    "segment.jitter.ms": _long(0),
    "segment.ms": _long(1),
    "unclean.leader.election.enable": _BOOLEAN,
}
# Before Kafka 4.0 segments could be smaller (KIP-1030).
ANY_KAFKA_RULES = {**TOPIC_RULES, "segment.bytes": _int(14)}
BROKER_RULES = {
    "cordoned.log.dirs": _LIST,
    "follower.replication.throttled.rate": _long(0),
    "leader.replication.throttled.rate": _long(0),
    "replica.alter.log.dirs.io.max.bytes.per.second": _long(0),
}


def value_problem(key: str, value: str, rule: Rule) -> Denied | None:
    """Return why Kafka refuses that value, None where it takes it."""
    reason = _reason(key, value, rule)
    if reason is None:
        return None
    shown = f"[{', '.join(value.split(','))}]" if key in TOPIC_THROTTLES else value
    return Denied("INVALID_CONFIG", f"Invalid value {shown} for configuration {key}: {reason}")


def _reason(key: str, value: str, rule: Rule) -> str | None:
    if key in TOPIC_THROTTLES:
        return None if _is_replica_list(value) else f"{key} {THROTTLED_REPLICAS}"
    if rule.kind is Kind.BOOLEAN:
        return None if value.strip().lower() in {"true", "false"} else "Expected value to be either true or false"
    if rule.choices:
        given = [item.strip() for item in value.split(",")] if rule.kind is Kind.LIST else [value]
        is_known = all(item in rule.choices for item in given)
        return None if is_known else f"String must be one of: {', '.join(rule.choices)}"
    if rule.kind in {Kind.INT, Kind.LONG, Kind.DOUBLE}:
        return _number_reason(value.strip(), rule)
    return None


def _number_reason(value: str, rule: Rule) -> str | None:
    number = _number(value, rule.kind)
    if number is None:
        return f"Not a number of type {rule.kind}"
    if rule.low is not None and number < rule.low:
        return f"Value must be at least {rule.low}"
    if rule.high is not None and number > rule.high:
        return f"Value must be no more than {rule.high}"
    return None


def _number(value: str, kind: Kind) -> float | None:
    if kind is Kind.DOUBLE:
        return float(value) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) else None
    if not re.fullmatch(r"[+-]?\d{1,19}", value):
        return None
    number, limit = int(value), 1 << ((INT_BITS if kind is Kind.INT else LONG_BITS) - 1)
    return number if -limit <= number < limit else None


def _is_replica_list(value: str) -> bool:
    items = [item.strip() for item in value.split(",")]
    return "".join(items) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in items)
