"""Dynamic configs of topics and brokers, changed incrementally: SET, DELETE, APPEND and SUBTRACT (KIP-339)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reconciler.model.cluster import CORDONED_LOG_DIRS, Broker, Cluster
from reconciler.model.config_rule import Kind, Rule, release_of
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.simulate.answers import Denied, Outcome
from reconciler.simulate.config_rules import BROKER_RULES, together_problem, value_problem
from reconciler.simulate.eligible import without_elr

Configs = Mapping[str, str]
_LISTS = {key: config.newest for key, config in TOPIC_CONFIGS.items()}


class ConfigRequest(NamedTuple):
    """One key's change; `operation` is SET, DELETE, APPEND or SUBTRACT."""

    key: str
    operation: str
    value: str = ""


def alter_topic_configs(cluster: Cluster, changes: Mapping[str, Sequence[ConfigRequest]]) -> Outcome[str]:
    """Change topics' overrides, all of a topic's keys or none."""
    answers: dict[str, Denied | None] = {}
    topics = dict(cluster.topics)
    for name in changes:
        topic = cluster.topics.get(name)
        if topic is None:
            answers[name] = Denied("UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{name}' does not exist.")
            continue
        configs = _altered(topic.configs, changes[name], _LISTS)
        answers[name] = (
            configs if isinstance(configs, Denied) else validate_topic_configs(cluster, configs, topic.configs)
        )
        if not isinstance(configs, Denied) and answers[name] is None:
            is_kept = topic.configs.get(MIN_ISR) == configs.get(MIN_ISR)
            topics[name] = replace(topic if is_kept else without_elr(topic), configs=configs)
    return Outcome(replace(cluster, topics=topics), answers)


def alter_broker_configs(cluster: Cluster, broker_id: int, changes: Sequence[ConfigRequest]) -> Outcome[int]:
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
    """Return why a broker refuses to cordon these log dirs."""
    named = [path.strip() for path in configs.get(CORDONED_LOG_DIRS, "").split(",") if path.strip()]
    if "*" in named:
        text = f"When {CORDONED_LOG_DIRS} is set to *, it must not contain other values"
        return Denied("INVALID_REQUEST", f"requirement failed: {text}") if len(named) > 1 else None
    missing = [path for path in named if path not in {one.path for one in broker.log_dirs}]
    text = f"All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. Missing entries : "
    return Denied("INVALID_REQUEST", f"requirement failed: {text}{','.join(missing)}") if missing else None


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

    A key that one of its topics has is one that it knows: vendors have their own.
    """
    release = release_of(cluster.kafka_version)
    rules = {key: config.rules[release] for key, config in TOPIC_CONFIGS.items() if release in config.rules}
    for key in sorted(configs):
        if key not in rules and not any(key in topic.configs for topic in cluster.topics.values()):
            return Denied("INVALID_CONFIG", f"Unknown topic config name: {key}")
    return _problem(configs, rules) or together_problem(
        {**_defaults(cluster, rules), **configs},
        release,
        has_tiers=_settings(cluster).get("remote.log.storage.system.enable") != "false",
        was_remote=(before or {}).get("remote.storage.enable", "").strip().lower() == "true",
    )


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


def _altered(configs: Configs, changes: Sequence[ConfigRequest], rules: Mapping[str, Rule]) -> Configs | Denied:
    if len({change.key for change in changes}) < len(changes):
        return Denied("INVALID_REQUEST", "Error due to duplicate config keys")
    altered = dict(configs)
    for change in changes:
        if change.operation == "DELETE":
            altered.pop(change.key, None)
        elif change.operation == "SET":
            altered[change.key] = change.value
        else:
            items = _items(altered.get(change.key), change, rules.get(change.key))
            if isinstance(items, Denied):
                return items
            altered[change.key] = ",".join(items)
    return dict(sorted(altered.items()))


def _items(current: str | None, change: ConfigRequest, rule: Rule | None) -> Sequence[str] | Denied:
    """Return the list after APPEND or SUBTRACT; one that was not set starts from Kafka's default."""
    if rule is None or rule.kind is not Kind.LIST:
        return Denied(
            "INVALID_CONFIG",
            f"Can't {change.operation} to key {change.key} because its type is not LIST.",
        )
    items = [item for item in (rule.default if current is None else current).split(",") if item]
    for item in change.value.split(","):
        if change.operation == "APPEND" and item not in items:
            items.append(item)
        elif change.operation == "SUBTRACT" and item in items:
            items.remove(item)
    return items
