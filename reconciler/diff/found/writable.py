"""Configs that a topic has, and its document may not: what a file would be refused for, or could not say."""

from collections.abc import Callable, Mapping

from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.imported import Deviation

CONFIG = "KR276"
MIN_ISR = "min.insync.replicas"


def unwritable_configs(
    configs: Mapping[str, str], factor: int | None, is_writable: Callable[[str, str], bool]
) -> Mapping[str, Deviation]:
    """Return the keys that are not to be written, each with the reason; they stay as they are in the cluster."""
    found = {}
    for key, value in sorted(configs.items()):
        why = _why(key, value, factor, is_writable)
        if why:
            found[key] = Deviation(CONFIG, f"{key} {why}; it is not written, and stays")
    return found


def _why(key: str, value: str, factor: int | None, is_writable: Callable[[str, str], bool]) -> str:
    if key in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
        return "belongs to a reassignment"
    if key == MIN_ISR:
        if not (value.isascii() and value.isdigit()) or int(value) < 1 or str(int(value)) != value:
            return "is no whole number of at least 1"
        if factor is not None and int(value) > factor:
            return f"is {value}, above replicationFactor {factor}, which Kafka takes instead"
    return "" if is_writable(key, value) else "has a value that a file cannot hold as it is"
