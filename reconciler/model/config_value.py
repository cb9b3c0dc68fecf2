"""Compares values of topic configs as Kafka reads them, by their key's type, never as texts.

`0.50` is `0.5`, `True` is `true`, `compact, delete` is `delete,compact`. The values of a key that no known Kafka has
are compared as texts.
"""

from reconciler.model.config_rule import Kind, displayed_text
from reconciler.model.topic_configs import TOPIC_CONFIGS

UNREADABLE = "(unreadable)"
"""Stands for the value of an override whose key this Kafka release has removed, such as message.format.version in 4.0.

From 4.0 to 4.2 DescribeConfigs names such a key without its value, and Kafka refuses each change of the topic's configs
until the key is deleted. Later releases forget the key (KAFKA-19851).
"""


def displayed_value(key: str, text: str) -> str:
    """Return the text that Kafka shows once the value is set; one that no Kafka takes stays as it is."""
    config = TOPIC_CONFIGS.get(key)
    return text if config is None else displayed_text(text, config.newest.kind)


def is_same_value(key: str, first: str | None, second: str | None) -> bool:
    """Whether both are the same override to Kafka; None: no override. The order of a list's items does not count."""
    if first is None or second is None or first == second:
        return first == second
    first, second = displayed_value(key, first), displayed_value(key, second)
    config = TOPIC_CONFIGS.get(key)
    if config is not None and config.newest.kind is Kind.LIST:
        return {*first.split(",")} == {*second.split(",")}
    return first == second
