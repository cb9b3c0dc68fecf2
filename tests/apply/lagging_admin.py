"""A simulated cluster whose metadata and configs are read from the past, as a broker that lags shows them."""

import random
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.cluster import Cluster, Topic

T = TypeVar("T")


class LaggingAdmin(SimulatedAdmin):
    """Answers reads from a random state of the last `lag` seconds; only the list of reassignments is of now."""

    def __init__(self, cluster: Cluster, seed: int, lag: timedelta) -> None:
        self.random = random.Random(seed)
        self.lag = lag
        self.past: list[tuple[datetime, Cluster]] = []
        super().__init__(cluster)
        self.past.append((self.clock.now(), cluster))

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        """Return the topics of some moment of the past."""
        return self._then(lambda: SimulatedAdmin.topics(self, names))

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the configs of some moment of the past."""
        return self._then(lambda: SimulatedAdmin.topic_configs(self, names))

    def _become(self, cluster: Cluster) -> None:
        super()._become(cluster)
        self.past.append((self.clock.now(), self.cluster))

    def _then(self, read: Callable[[], T]) -> T:
        """Read from a state that was current at some time within the lag."""
        now, present = self.clock.now(), self.cluster
        oldest = now - self.lag
        ended = [index for index, (time, _) in enumerate(self.past) if time <= oldest]
        first = ended[-1] if ended else 0
        self.cluster = self.random.choice(self.past[first:])[1]
        try:
            return read()
        finally:
            self.cluster = present
