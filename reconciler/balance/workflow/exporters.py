"""Looks at what exporters tell of a cluster's brokers, beside each round of `collect`.

What does not answer is told, and the round goes on without it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reconciler.admin.port import Admin
from reconciler.balance.files.exporters import (
    Endpoint,
    HttpClient,
    NotTold,
    checked_url,
    endpoint,
    exposed,
    host_of,
    http_client,
    queried,
)
from reconciler.balance.model.exported import Brokers, BrokerSample, Carried, Counters, TopicRate, carried
from reconciler.balance.model.shares import Shares, split
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

MOST_AT_ONCE = 16
LOOK_BACK_SECONDS = 60
"""How far the first question to Prometheus looks back: a counter alone tells no rate."""


def exporters_named(
    inputs: Inputs, prometheus: str | None, match: str | None, endpoints: Sequence[str], client: str | None
) -> "Exporters | None":
    """Return the exporters of these URLs, None for none; raises InvalidInput for one that cannot be asked."""
    if prometheus is None and not endpoints:
        return None
    return Exporters(
        http_client(client, inputs.environ),
        None if prometheus is None else checked_url(prometheus),
        match or "",
        tuple(map(endpoint, endpoints)),
    )


@dataclass(slots=True)
class Exporters:
    """The exporters of one cluster, and what was seen last, which rates and growth are told by."""

    client: HttpClient
    prometheus: str | None = None
    match: str = ""
    """Label matchers that pick the cluster among all that the Prometheus knows."""
    endpoints: Sequence[Endpoint] = ()
    _counters: dict[str, Counters] = field(default_factory=dict)
    _offsets: dict[TopicPartition, int] = field(default_factory=dict)

    def look(self, admin: Admin) -> Carried:
        """Return what brokers carry now, by all exporters that answer."""
        brokers = Brokers.of({one.id: one.host for one in admin.brokers().values()})
        jobs = [partial(self._exposed, admin, brokers, endpoint) for endpoint in self.endpoints]
        if self.prometheus is not None:
            jobs.append(partial(self._queried, admin, brokers, self.prometheus))
        with ThreadPoolExecutor(min(MOST_AT_ONCE, len(jobs))) as pool:
            return _together([each.result() for each in [pool.submit(job) for job in jobs]])

    def shares(self, sample: ClusterSample, told: Carried) -> Shares:
        """Return what each partition got of its topic's rates, by how its end offset grew since the last round."""
        grown = {
            key: float(offset - self._offsets[key])
            for key, offset in sample.end_offsets.items()
            if key in self._offsets
        }
        self._offsets = dict(sample.end_offsets)
        return split(told.topics, sample.leaders(), grown)

    def _exposed(self, admin: Admin, brokers: Brokers, endpoint: Endpoint) -> Carried:
        counters = self._counters.setdefault(endpoint.url, Counters())
        try:
            figures = list(exposed(self.client, endpoint.url))
        except NotTold as error:
            return Carried(untold=(f"the exporter {endpoint.url} {error}: what its broker carries is unknown",))
        at = admin.clock.time_of_day().timestamp()
        # The labels of an exporter that runs inside its broker say nothing of it; its own host may.
        broker = (
            endpoint.broker if endpoint.broker is not None else brokers.named_by({"instance": host_of(endpoint.url)})
        )
        return carried(figures, brokers, counters, at, broker)

    def _queried(self, admin: Admin, brokers: Brokers, url: str) -> Carried:
        at = admin.clock.time_of_day().timestamp()
        counters = self._counters.setdefault(url, Counters())
        try:
            if not counters.last:
                before = at - LOOK_BACK_SECONDS
                carried(queried(self.client, url, self.match, before), brokers, counters, before)
            return carried(queried(self.client, url, self.match, at), brokers, counters, at)
        except NotTold as error:
            return Carried(untold=(f"Prometheus at {url} {error}: what brokers carry is unknown",))


def _together(told: Sequence[Carried]) -> Carried:
    """Return all of it; of one broker or topic that several tell of, what the first of them knows."""
    brokers: dict[int, BrokerSample] = {}
    topics: dict[tuple[int, str], TopicRate] = {}
    for one in told:
        for broker in one.brokers:
            brokers[broker.broker] = BrokerSample(*_first_known(brokers.get(broker.broker), broker))
        for rate in one.topics:
            key = rate.broker, rate.topic
            topics[key] = TopicRate(*_first_known(topics.get(key), rate))
    untold = dict.fromkeys(sentence for one in told for sentence in one.untold)
    return Carried(
        tuple(brokers[broker] for broker in sorted(brokers)),
        tuple(topics[key] for key in sorted(topics)),
        tuple(untold),
    )


def _first_known(before: Sequence[Any] | None, new: Sequence[Any]) -> Iterator[Any]:
    return (old if old is not None else value for old, value in zip(before or new, new, strict=True))
