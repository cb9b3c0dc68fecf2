"""Asks a Prometheus for the rates of a cluster's topics, in each round of `collect`.

If it does not answer, the round goes on without it, and a warning says so.
"""

from dataclasses import dataclass, field

from reconciler.admin.port import Admin
from reconciler.balance.files.exporters import HttpClient, NotTold, checked_url, http_client, queried
from reconciler.balance.model.exported import Brokers, Carried, Counters, carried
from reconciler.balance.model.shares import Shares, split
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

LOOK_BACK_SECONDS = 60
"""How far a round looks back if an earlier one has end offsets, but no counters: one counter alone gives no rate."""


def exporters_named(
    inputs: Inputs, prometheus: str | None, match: str | None, client: str | None
) -> "Exporters | None":
    """Return the Prometheus at that URL, None without a URL; raises InvalidInput for one that cannot be asked."""
    if prometheus is None:
        return None
    return Exporters(http_client(client, inputs.environ), checked_url(prometheus), match or "")


@dataclass(slots=True)
class Exporters:
    """The Prometheus of one cluster, and the last counters and end offsets: rates and growth are computed from them."""

    client: HttpClient
    prometheus: str
    match: str = ""
    """Label matchers that pick the cluster among all that the Prometheus knows."""
    _counters: Counters = field(default_factory=Counters)
    _offsets: dict[TopicPartition, int] = field(default_factory=dict)

    def look(self, admin: Admin) -> Carried:
        """Return the current rates of topics, as far as Prometheus knows them."""
        try:
            brokers = Brokers.of({broker.id: broker.host for broker in admin.brokers().values()})
            now = admin.clock.time_of_day().timestamp()
            if self._offsets and not self._counters.last:
                self._carried(brokers, now - LOOK_BACK_SECONDS)
            return self._carried(brokers, now)
        except NotTold as error:
            return Carried(untold=(f"Prometheus at {self.prometheus} {error}: what brokers carry is unknown",))
        except ClusterUnavailable as error:
            return Carried(untold=(f"what brokers carry is unknown: {error}",))

    def shares(self, sample: ClusterSample, told: Carried) -> Shares:
        """Return what each partition got of its topic's rates, by how its end offset grew since the last round."""
        grown = {
            key: float(offset - self._offsets[key])
            for key, offset in sample.end_offsets.items()
            if key in self._offsets
        }
        self._offsets = dict(sample.end_offsets)
        return split(told.topics, sample.leaders(), grown)

    def _carried(self, brokers: Brokers, at: float) -> Carried:
        return carried(queried(self.client, self.prometheus, self.match, at), brokers, self._counters, at)
