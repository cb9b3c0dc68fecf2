"""Changes dynamic configs of topics and brokers as Kafka does, and refuses what Kafka refuses, in its words.

Changes are incremental: SET, DELETE, APPEND and SUBTRACT (KIP-339). A value is judged by itself (`value_problem`), then
with the topic's others (`together_problem`), because some configs exclude each other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import CORDONED_LOG_DIRS, TOPIC_THROTTLES, Broker, Cluster
from reconciler.model.config_rule import NUMBERS, Kind, ParsedValue, Rule, displayed_text, parse_value, release_of
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.simulate.controller import Denied, Outcome
from reconciler.simulate.storage import without_elr

Configs = Mapping[str, str]
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
SAME_AS_RETENTION = -2  # local.retention.*: as long as retention.* itself (KIP-405)
BROKER_RULES = {
    "cordoned.log.dirs": Rule(Kind.LIST),
    "follower.replication.throttled.rate": Rule(Kind.LONG, low=0),
    "leader.replication.throttled.rate": Rule(Kind.LONG, low=0),
    "replica.alter.log.dirs.io.max.bytes.per.second": Rule(Kind.LONG, low=0),
}
_LISTS = {key: config.newest for key, config in TOPIC_CONFIGS.items()}


def alter_topic_configs(cluster: Cluster, changes: Mapping[str, Sequence[ConfigChange]]) -> Outcome[str]:
    """Change topics' overrides, all of a topic's keys or none."""
    answers: dict[str, Denied | None] = {}
    topics = dict(cluster.topics)
    for name, asked in changes.items():
        topic = cluster.topics.get(name)
        if topic is None:
            answers[name] = Denied("UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{name}' does not exist.")
            continue
        configs = _altered(topic.configs, asked, _LISTS)
        if isinstance(configs, Denied):
            answers[name] = configs
            continue
        answers[name] = validate_topic_configs(cluster, configs, topic.configs)
        if answers[name] is None:
            is_kept = topic.configs.get(MIN_ISR) == configs.get(MIN_ISR)
            topics[name] = replace(topic if is_kept else without_elr(topic), configs=configs)
    return Outcome(replace(cluster, topics=topics), answers)


def alter_broker_configs(cluster: Cluster, broker_id: int, changes: Sequence[ConfigChange]) -> Outcome[int]:
    """Change a broker's overrides, all keys or none."""
    broker = cluster.brokers[broker_id]
    configs = _altered(broker.configs, changes, BROKER_RULES)
    denied = configs if isinstance(configs, Denied) else _problem(configs, BROKER_RULES) or _no_cordon(broker, configs)
    if denied is not None or isinstance(configs, Denied):
        # A broker answers a wrong value of its own configs in another way than the controller does (KAFKA-13609).
        return Outcome(cluster, {broker_id: denied and replace(denied, error="INVALID_REQUEST")})
    brokers = {**cluster.brokers, broker_id: _recordoned(broker, configs)}
    return Outcome(replace(cluster, brokers=brokers), {broker_id: None})


def _no_cordon(broker: Broker, configs: Configs) -> Denied | None:
    """Return why a broker refuses to cordon these log dirs (KIP-1066), None where it does not."""
    named = [path for path in configs.get(CORDONED_LOG_DIRS, "").split(",") if path]
    missing = [path for path in named if path not in {one.path for one in broker.log_dirs}]
    text = None
    if "*" in named:
        text = f"When {CORDONED_LOG_DIRS} is set to *, it must not contain other values" if len(named) > 1 else None
    elif missing:
        text = f"All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. Missing entries : "
        text += ",".join(missing)
    return Denied("INVALID_REQUEST", f"requirement failed: {text}") if text else None


def _recordoned(broker: Broker, configs: Configs) -> Broker:
    """Return the broker with these overrides, its log dirs cordoned as they now say, or as its own file does."""
    before, now = (each.get(CORDONED_LOG_DIRS) for each in (broker.configs, configs))
    if before == now:
        return replace(broker, configs=configs)
    settings = dict(broker.settings)
    if before is None:
        settings[CORDONED_LOG_DIRS] = ",".join(sorted(broker.cordoned_dirs))
    elif settings.get(CORDONED_LOG_DIRS) == before:
        settings[CORDONED_LOG_DIRS] = ""  # what was in force hid what the broker's own file says
    changed = replace(
        broker,
        configs=configs,
        settings=settings,
        log_dirs=tuple(replace(one, is_cordoned=False) for one in broker.log_dirs),
    )
    closed = changed.cordoned_dirs
    dirs = tuple(replace(one, is_cordoned=one.path in closed) for one in changed.log_dirs)
    return replace(changed, log_dirs=dirs)


def validate_topic_configs(cluster: Cluster, configs: Configs, before: Configs | None = None) -> Denied | None:
    """Return why this cluster refuses these overrides of a topic that has `before`, None where it takes them.

    A key that one of its topics has is one that it knows: vendors have their own. Keys that Kafka has removed are not.
    """
    release = release_of(cluster.kafka_version)
    rules = {key: config.rules[release] for key, config in TOPIC_CONFIGS.items() if release in config.rules}
    for key in sorted(configs):
        is_of_vendor = key not in TOPIC_CONFIGS and any(key in topic.configs for topic in cluster.topics.values())
        if key not in rules and not is_of_vendor:
            return Denied("INVALID_CONFIG", f"Unknown topic config name: {key}")
    return _problem(configs, rules) or together_problem(
        {**_defaults(cluster, rules), **configs},
        release,
        has_tiers=_settings(cluster).get("remote.log.storage.system.enable") != "false",
        was_remote=_is_on("remote.storage.enable", before or {}),
    )


def value_problem(key: str, value: str, rule: Rule) -> Denied | None:
    """Return why Kafka refuses that value, None where it takes it."""
    reason = _reason(key, value, rule)
    if reason is None:
        return None
    shown = value
    if key in TOPIC_THROTTLES:
        shown = f"[{', '.join(_items_of(value))}]"
    elif rule.kind is Kind.LIST:
        shown = next(item for item in _items_of(value) if item not in rule.choices)
    return Denied("INVALID_CONFIG", f"Invalid value {shown} for configuration {key}: {reason}")


def together_problem(effective: Mapping[str, str], release: str, *, has_tiers: bool, was_remote: bool) -> Denied | None:
    """Return why a release refuses these topic configs together, None where it takes them.

    `effective`: each by itself taken, defaults included. `has_tiers`: whether the brokers have tiered storage.
    """
    texts: list[str | None] = []
    least, most = (int(effective[f"{bound}.compaction.lag.ms"]) for bound in ("min", "max"))
    if least > most:
        texts.append(f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})")
    if _is_on("remote.storage.enable", effective):
        policy = _items_of(effective["cleanup.policy"])
        # Compacted topics have no remote tier; an empty policy is taken before 4.0 and since 4.2 only.
        is_taken = set(policy) == {"delete"} or (not policy and release != "4.1")
        texts += [None if has_tiers else NOT_TIERED, None if is_taken else COMPACTED_REMOTELY[release]]
        texts += [_retention_reason(effective, unit) for unit in ("bytes", "ms")]
        texts += [_copy_reason(effective, unit) for unit in ("bytes", "ms")]
    elif was_remote and not _is_on("remote.log.delete.on.disable", effective):
        texts.append(TURNED_OFF)
    text = next((text for text in texts if text), None)
    return None if text is None else Denied("INVALID_CONFIG", text)


def _defaults(cluster: Cluster, rules: Mapping[str, Rule]) -> dict[str, str]:
    """Return what a topic has without overrides: by the brokers' settings where they are known, else Kafka's own."""
    settings, found = _settings(cluster), {}
    for key, rule in rules.items():
        setting = settings.get(TOPIC_CONFIGS[key].broker_key or "", rule.default)
        found[key] = rule.default if value_problem(key, setting, rule) else setting
    return found


def _settings(cluster: Cluster) -> Configs:
    """Return the settings in force on the controller, which judges; empty where they are unknown."""
    told = cluster.brokers.get(cluster.controller_id or 0)
    return told.settings if told is not None else {}


def _problem(configs: Configs, rules: Mapping[str, Rule]) -> Denied | None:
    """Return the first key's problem; keys without a rule are free text."""
    found = (value_problem(key, configs[key], rules[key]) for key in sorted(configs) if key in rules)
    return next((problem for problem in found if problem is not None), None)


def _altered(configs: Configs, changes: Sequence[ConfigChange], rules: Mapping[str, Rule]) -> Configs | Denied:
    if len({change.key for change in changes}) < len(changes):
        return Denied("INVALID_REQUEST", "Error due to duplicate config keys")
    altered = dict(configs)
    for change in changes:
        if change.operation is ConfigOperation.DELETE:
            altered.pop(change.key, None)
        elif change.operation is ConfigOperation.SET:
            rule = rules.get(change.key)
            altered[change.key] = change.value if rule is None else displayed_text(change.value, rule.kind)
        else:
            items = _items(altered.get(change.key), change, rules.get(change.key))
            if isinstance(items, Denied):
                return items
            altered[change.key] = ",".join(items)
    return dict(sorted(altered.items()))


def _items(current: str | None, change: ConfigChange, rule: Rule | None) -> Sequence[str] | Denied:
    """Return the list after APPEND or SUBTRACT; one that was not set starts from Kafka's default."""
    if rule is None or rule.kind is not Kind.LIST:
        message = f"Can't {change.operation} to key {change.key} because its type is not LIST."
        return Denied("INVALID_CONFIG", message)
    items = [item for item in (rule.default if current is None else current).split(",") if item]
    for item in change.value.split(","):
        if change.operation is ConfigOperation.APPEND and item not in items:
            items.append(item)
        elif change.operation is ConfigOperation.SUBTRACT and item in items:
            items.remove(item)
    return items


def _reason(key: str, value: str, rule: Rule) -> str | None:
    if key in TOPIC_THROTTLES:
        return None if _is_replica_list(value) else f"{key} {THROTTLED_REPLICAS}"
    given = parse_value(value, rule.kind)
    if rule.kind is Kind.BOOLEAN:
        return None if given is not None else "Expected value to be either true or false"
    if key == "message.format.version":
        # It names a version: `3.0-IV1`, or its release, `3.0` or `3.0.2`.
        version = str(given)
        release = ".".join(version.split(".")[: 3 if version.startswith("0.") else 2])
        is_known = any(choice == release or choice.startswith(f"{release}-IV") for choice in rule.choices)
        return None if is_known else f"Version {version} is not a valid version"
    if rule.choices:
        is_known = all(item in rule.choices for item in (given if isinstance(given, tuple) else (given,)))
        return None if is_known else f"String must be one of: {', '.join(rule.choices)}"
    return _number_reason(given, rule) if rule.kind in NUMBERS else None


def _number_reason(number: ParsedValue | None, rule: Rule) -> str | None:
    if not isinstance(number, int | float):
        return f"Not a number of type {rule.kind}"
    is_low, is_high = rule.low is not None and number < rule.low, rule.high is not None and number > rule.high
    if rule.beside is not None:
        fits = number == rule.beside or not (is_low or is_high)
        return None if fits else f"Value must be between {rule.low} and {rule.high} or equal to {rule.beside}"
    if is_low:
        return f"Value must be at least {rule.low}"
    return f"Value must be no more than {rule.high}" if is_high else None


def _items_of(value: str) -> tuple[str, ...]:
    items = parse_value(value, Kind.LIST)
    return items if isinstance(items, tuple) else ()


def _is_on(key: str, configs: Configs) -> bool:
    return parse_value(configs.get(key, ""), Kind.BOOLEAN) is True


def _is_replica_list(value: str) -> bool:
    items = _items_of(value)
    return "".join(items) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in items)


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
    if not _is_on("remote.log.copy.disable", effective) or local in {SAME_AS_RETENTION, of_all}:
        return None
    return (
        f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and `retention.{unit}` must be "
        "set to the identical value because there will be no more logs copied to the remote storage."
    )
