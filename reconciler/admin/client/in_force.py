"""Waits, briefly, until each broker has read a throttle list that the controller has taken: only then it counts.

A broker applies what the controller has written in batches, and in each batch the partitions before the configs
(BrokerMetadataPublisher). So where a reassignment falls into one batch with the list, fetching begins without it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reconciler.admin.client.observe import TOPIC_RESOURCE, config_question
from reconciler.admin.client.wire import Wire
from reconciler.admin.port import ConfigChange, ConfigOperation
from reconciler.model.cluster import TOPIC_THROTTLES

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

IN_FORCE_SECONDS = 5.0
ASK_SECONDS = 2.0
PAUSE_SECONDS = 0.05
ALL = "*"

Lists = Mapping[tuple[str, str], frozenset[str]]
"""The items that were appended, by topic and key."""


def await_lists(wire: Wire, changes: Mapping[str, Sequence[ConfigChange]]) -> None:
    """Return once every broker that answers shows the items appended to throttle lists, or after 5 s."""
    lists = {
        (topic, change.key): frozenset(change.value.split(","))
        for topic, made in changes.items()
        for change in made
        if change.key in TOPIC_THROTTLES and change.operation is ConfigOperation.APPEND
    }
    if not lists:
        return
    question = config_question(TOPIC_RESOURCE, sorted({topic for topic, _ in lists}), TOPIC_THROTTLES)
    end = time.monotonic() + IN_FORCE_SECONDS
    pending = wire.brokers()
    while pending := _behind(wire.read_each(dict.fromkeys(pending, question), ASK_SECONDS), lists):
        if time.monotonic() > end:
            return
        time.sleep(PAUSE_SECONDS)


def _behind(answers: "Mapping[int, ApiMessage]", lists: Lists) -> list[int]:
    """Return the brokers that have not read the lists; one that does not answer is not waited for."""
    return [broker for broker, answer in answers.items() if not _is_shown(answer, lists)]


def _is_shown(answer: "ApiMessage", lists: Lists) -> bool:
    found = {
        (result.resource_name, config.name): frozenset((config.value or "").split(","))
        for result in answer.results
        for config in result.configs
    }
    return all(items <= found.get(key, frozenset()) or ALL in found.get(key, ()) for key, items in lists.items())
