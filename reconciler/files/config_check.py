"""Judges the configs that a topic or a class writes, as far as files can tell: by what any known Kafka takes."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.config_rule import RELEASES
from reconciler.model.desired import DesiredTopic
from reconciler.model.problem import Problem
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.simulate.configs import value_problem

MIN_ISR = "min.insync.replicas"
LONGEST_SHOWN = 40
_KEY = re.compile("[a-zA-Z0-9._-]+")
_WHOLE = re.compile("[1-9][0-9]{0,9}")


def config_problems(topic: DesiredTopic) -> Iterator[Problem]:
    """Yield the keys that no known Kafka has, and the values that none takes, but for what is in `customConfigs`."""
    for key, value in topic.config.items():
        at = topic.where(f"config.{key}")
        if key in (*BROKER_THROTTLES, *TOPIC_THROTTLES):
            message = f"{key} belongs to a running reassignment and is never declared: use moves.throttle"
            yield Problem("KR125", message, at)
        elif key in topic.custom_configs:
            continue
        elif not _KEY.fullmatch(key):
            message = f"{key[:LONGEST_SHOWN]!r} is no config of Kafka's: keys hold a-z A-Z 0-9 . _ -"
            yield Problem("KR103", f"{message}{_hint(key)}", at)
        elif key not in TOPIC_CONFIGS:
            message = f"{key[:LONGEST_SHOWN]!r} is no topic config of Kafka {RELEASES[0]} to {RELEASES[-1]}{_hint(key)}"
            way_out = "What only this cluster knows is listed under customConfigs"
            yield Problem("KR103", f"{message}{'' if message.endswith('?') else '.'} {way_out}", at)
        elif key != MIN_ISR and value is not None:
            reason = _refusal(key, value)
            yield from [] if reason is None else [Problem("KR104", f"Kafka refuses this: {reason}", at)]
    yield from _min_isr_problems(topic)


@lru_cache(maxsize=1 << 10)
def _hint(key: str) -> str:
    """Return the topic config that was meant: the one that has that setting of a broker as default, or looks alike."""
    of_broker = {config.broker_key: known for known, config in TOPIC_CONFIGS.items()}
    written = re.sub("[^a-z0-9]+", ".", key[: 2 * LONGEST_SHOWN].lower())
    close = [of_broker[written]] if written in of_broker else get_close_matches(written, TOPIC_CONFIGS, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


@lru_cache(maxsize=1 << 14)
def _refusal(key: str, value: str) -> str | None:
    """Return what the newest release that knows the key says of a value that no release takes, else None."""
    told = [value_problem(key, value, rule) for rule in TOPIC_CONFIGS[key].rules.values()]
    if told[-1] is None or not all(told):
        return None
    message = told[-1].message if len(value) <= LONGEST_SHOWN else f"the value of {key} is {value[:LONGEST_SHOWN]}…"
    return message.encode("ascii", "backslashreplace").decode()


def _min_isr_problems(topic: DesiredTopic) -> Iterator[Problem]:
    wanted = topic.config.get(MIN_ISR)
    at = topic.where(f"config.{MIN_ISR}")
    if wanted is None or MIN_ISR in topic.custom_configs:
        return
    if not _WHOLE.fullmatch(wanted) or _refusal(MIN_ISR, wanted):
        yield Problem("KR126", f"{MIN_ISR} must be a whole number of at least 1", at)
        return
    path = "placement.assignment" if topic.replication_factor is None else "replicationFactor"
    fewest = min(map(len, topic.placement.assignment or ()), default=None)
    factor = fewest if topic.replication_factor is None else topic.replication_factor
    if factor is not None and int(wanted) > factor:
        found = (
            f"replicationFactor {factor}" if path == "replicationFactor" else f"the {factor} replicas of an assignment"
        )
        message = (
            f"{MIN_ISR} {wanted} is above {found} ({topic.where(path)}): "
            "Kafka then takes the smaller, so acks=all writes stop once any replica is missing"
        )
        yield Problem("KR126", message, at)
