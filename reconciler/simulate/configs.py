"""Dynamic configs of topics and brokers, changed incrementally: SET, DELETE, APPEND and SUBTRACT (KIP-339)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reconciler.model.cluster import CORDONED_LOG_DIRS, Broker, Cluster
from reconciler.simulate.answers import Denied, Outcome
from reconciler.simulate.config_rules import BROKER_RULES, TOPIC_RULES, Kind, Rule, value_problem

Configs = Mapping[str, str]


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
        configs = _altered(topic.configs, changes[name], TOPIC_RULES)
        answers[name] = configs if isinstance(configs, Denied) else validate_topic_configs(configs)
        if not isinstance(configs, Denied) and answers[name] is None:
            topics[name] = replace(topic, configs=configs)
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


def validate_topic_configs(configs: Configs) -> Denied | None:
    """Return why Kafka refuses these overrides, None where it takes them."""
    unknown = next((key for key in sorted(configs) if key not in TOPIC_RULES), None)
    if unknown is not None:
        return Denied("INVALID_CONFIG", f"Unknown topic config name: {unknown}")
    return _problem(configs, TOPIC_RULES)


def taken(configs: Configs) -> Configs:
    """Return the overrides that this controller would take: other versions, and vendors, know other keys and bounds."""
    return {
        key: value
        for key, value in configs.items()
        if key in TOPIC_RULES and value_problem(key, value, TOPIC_RULES[key]) is None
    }


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
