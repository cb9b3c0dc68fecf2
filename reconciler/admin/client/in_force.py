"""A throttle list that the controller has taken counts only once each broker has read that: waited for, briefly.

A broker applies what the controller has written in batches, and in each batch the partitions before the configs
(BrokerMetadataPublisher). So where a reassignment falls into one batch with the list, fetching begins without it.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeConfigsRequest

from reconciler.admin.client.observe import TOPIC_RESOURCE
from reconciler.admin.client.wire import NoAnswer, NotSent, Wire
from reconciler.admin.port import ConfigChange, ConfigOperation
from reconciler.model.cluster import TOPIC_THROTTLES

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeConfigsResponse

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
    pending = wire.brokers() if lists else []
    end = time.monotonic() + IN_FORCE_SECONDS
    while pending:
        with ThreadPoolExecutor(len(pending)) as pool:
            shown = list(pool.map(lambda broker: _is_shown(wire, broker, lists), pending))
        pending = [broker for broker, is_shown in zip(pending, shown, strict=True) if not is_shown]
        if time.monotonic() > end:
            return
        time.sleep(PAUSE_SECONDS if pending else 0)


def _is_shown(wire: Wire, broker: int, lists: Lists) -> bool:
    """Whether that broker has read them; one that does not answer is not waited for."""
    try:
        response: DescribeConfigsResponse = wire.ask(_question({topic for topic, _ in lists}), broker, ASK_SECONDS)
    except (NotSent, NoAnswer):
        return True
    found = {
        (result.resource_name, config.name): frozenset((config.value or "").split(","))
        for result in response.results
        for config in result.configs
    }
    return all(items <= found.get(key, frozenset()) or ALL in found.get(key, ()) for key, items in lists.items())


def _question(topics: Collection[str]) -> Callable[[], DescribeConfigsRequest]:
    form = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        form(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=list(TOPIC_THROTTLES))
        for topic in sorted(topics)
    ]
    return lambda: DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
