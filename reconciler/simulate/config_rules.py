"""What Kafka refuses as values of dynamic configs: one by one, and topic configs that do not go together."""

import re
from collections.abc import Mapping

from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.model.config_rule import NUMBERS, Kind, Rule
from reconciler.simulate.answers import Denied

THROTTLED_REPLICAS = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
COMPACTED_REMOTELY = {
    "3.9": "Remote log storage is unsupported for the compacted topics",
    "4.1": "Remote log storage only supports topics with cleanup.policy=delete",
    "4.3": "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list.",
}
NOT_TIERED = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
TURNED_OFF = (
    "It is invalid to disable remote storage without deleting remote data. "
    "If you want to keep the remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. "
    "If you want to disable remote storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
INT_BITS, LONG_BITS = 32, 64
SAME_AS_RETENTION = -2
BROKER_RULES = {
    "cordoned.log.dirs": Rule(Kind.LIST),
    "follower.replication.throttled.rate": Rule(Kind.LONG, low=0),
    "leader.replication.throttled.rate": Rule(Kind.LONG, low=0),
    "replica.alter.log.dirs.io.max.bytes.per.second": Rule(Kind.LONG, low=0),
}


def value_problem(key: str, value: str, rule: Rule) -> Denied | None:
    """Return why Kafka refuses that value, None where it takes it."""
    reason = _reason(key, value, rule)
    if reason is None:
        return None
    shown = value
    if key in TOPIC_THROTTLES:
        shown = f"[{', '.join(items_of(value))}]"
    elif rule.kind is Kind.LIST:
        shown = next(item for item in items_of(value) if item not in rule.choices)
    return Denied("INVALID_CONFIG", f"Invalid value {shown} for configuration {key}: {reason}")


def together_problem(effective: Mapping[str, str], release: str, *, has_tiers: bool, was_remote: bool) -> Denied | None:
    """Return why a release refuses these topic configs together, None where it takes them.

    `effective`: each by itself taken, defaults included. `has_tiers`: whether the brokers have tiered storage.
    """
    texts = [_lag_reason(effective)]
    if effective["remote.storage.enable"].strip().lower() == "true":
        texts += [None if has_tiers else NOT_TIERED, _policy_reason(items_of(effective["cleanup.policy"]), release)]
        texts += [_retention_reason(effective, unit) for unit in ("bytes", "ms")]
        texts += [_copy_reason(effective, unit) for unit in ("bytes", "ms")]
    elif was_remote and effective["remote.log.delete.on.disable"].strip().lower() != "true":
        texts.append(TURNED_OFF)
    text = next((text for text in texts if text), None)
    return None if text is None else Denied("INVALID_CONFIG", text)


def items_of(value: str) -> list[str]:
    """Return the items of a list as Kafka reads it: an empty text has none."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


def _reason(key: str, value: str, rule: Rule) -> str | None:
    if key in TOPIC_THROTTLES:
        return None if _is_replica_list(value) else f"{key} {THROTTLED_REPLICAS}"
    if rule.kind is Kind.BOOLEAN:
        return None if value.strip().lower() in {"true", "false"} else "Expected value to be either true or false"
    if key == "message.format.version":
        return None if _is_format(value.strip(), rule) else f"Version {value.strip()} is not a valid version"
    if rule.choices:
        given = items_of(value) if rule.kind is Kind.LIST else [value.strip()]
        is_known = all(item in rule.choices for item in given)
        return None if is_known else f"String must be one of: {', '.join(rule.choices)}"
    return _number_reason(value.strip(), rule) if rule.kind in NUMBERS else None


def _number_reason(value: str, rule: Rule) -> str | None:
    number = _number(value, rule.kind)
    if number is None:
        return f"Not a number of type {rule.kind}"
    is_low, is_high = rule.low is not None and number < rule.low, rule.high is not None and number > rule.high
    if rule.beside is not None:
        fits = number == rule.beside or not (is_low or is_high)
        return None if fits else f"Value must be between {rule.low} and {rule.high} or equal to {rule.beside}"
    if is_low:
        return f"Value must be at least {rule.low}"
    return f"Value must be no more than {rule.high}" if is_high else None


def _number(value: str, kind: Kind) -> float | None:
    if kind is Kind.DOUBLE:
        return float(value) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) else None
    if not re.fullmatch(r"[+-]?\d+", value) or len(value) > LONG_BITS:
        return None
    number, limit = int(value), 1 << ((INT_BITS if kind is Kind.INT else LONG_BITS) - 1)
    return number if -limit <= number < limit else None


def _is_format(value: str, rule: Rule) -> bool:
    """Whether it names a version: `3.0-IV1`, or its release, `3.0` or `3.0.2`."""
    release = ".".join(value.split(".")[: 3 if value.startswith("0.") else 2])
    return release in rule.choices or any(choice.startswith(f"{release}-IV") for choice in rule.choices)


def _is_replica_list(value: str) -> bool:
    items = [item.strip() for item in value.split(",")]
    return "".join(items) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in items)


def _lag_reason(effective: Mapping[str, str]) -> str | None:
    least, most = (int(effective[f"{bound}.compaction.lag.ms"]) for bound in ("min", "max"))
    told = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
    return told if least > most else None


def _policy_reason(policy: list[str], release: str) -> str | None:
    """Compacted topics have no remote tier; an empty policy is taken before 4.0 and since 4.2 only."""
    is_taken = set(policy) == {"delete"} or (not policy and release != "4.1")
    return None if is_taken else COMPACTED_REMOTELY[release]


def _retention_reason(effective: Mapping[str, str], unit: str) -> str | None:
    of_all, local = (int(effective[f"{prefix}retention.{unit}"]) for prefix in ("", "local."))
    if of_all < 0 or local == SAME_AS_RETENTION or 0 <= local <= of_all:
        return None
    reason = (
        f"Value must not be -1 as retention.{unit} value is set as {of_all}."
        if local < 0
        else f"Value must not be more than retention.{unit} property value: {of_all}"
    )
    return f"Invalid value {local} for configuration local.retention.{unit}: {reason}"


def _copy_reason(effective: Mapping[str, str], unit: str) -> str | None:
    of_all, local = (int(effective[f"{prefix}retention.{unit}"]) for prefix in ("", "local."))
    is_off = effective["remote.log.copy.disable"].strip().lower() == "true"
    if not is_off or local in {SAME_AS_RETENTION, of_all}:
        return None
    return (
        f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and `retention.{unit}` must be "
        "set to the identical value because there will be no more logs copied to the remote storage."
    )
