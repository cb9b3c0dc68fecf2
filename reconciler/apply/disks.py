"""What a stage of moves asks of brokers' disks now and then: bytes copied, and log dirs that went offline."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

SIZES_EVERY, SIZES_EVERY_LATER = timedelta(seconds=3), timedelta(seconds=15)
LOG_DIRS_EVERY = timedelta(seconds=15)
"""Every broker answers for its own disks, so they are not asked in each turn; the longer a stage takes, the less."""
LOOKS = 20
"""At every twentieth of its time, a stage's sizes are looked at."""


@dataclass(slots=True)
class Disks:
    """The last answers in one stage. `sizes`: bytes by (partition, broker), as they were at `sizes_at`.

    `since`: when its sizes were first asked for.
    """

    session: Session
    sizes: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    sizes_at: datetime | None = None
    since: datetime | None = None
    log_dirs_at: datetime | None = None
    is_denied: bool = False

    def begin(self) -> None:
        """Forget what an earlier stage asked."""
        self.sizes, self.sizes_at, self.since, self.log_dirs_at = {}, None, None, None

    def added_to(self, observed: Observed, stage: ReassignStage) -> Observed:
        """Return the look with what is copied, and the destinations' log dirs, where it is time to ask."""
        copying = [move for move in stage.moves if move.added and move.topic_partition in observed.reassignments]
        if not copying or self.is_denied:
            return observed
        try:
            if self._is_due(self.sizes_at, self._interval()):
                self.sizes_at, self.sizes = self.session.now(), {}
                self.since = self.since or self.sizes_at
                held = [observed.partition(move.topic_partition) for move in copying]
                leaders = {partition.leader for partition in held if partition is not None}
                asked = leaders.union(*(move.added for move in copying))
                self.sizes = self.session.admin.replica_bytes(
                    [move.topic_partition for move in copying],
                    sorted(broker for broker in asked if broker is not None and observed.is_alive(broker)),
                )
                observed = replace(observed, replica_bytes=self.sizes)
            if self._is_due(self.log_dirs_at, LOG_DIRS_EVERY):
                self.log_dirs_at = self.session.now()
                alive = {broker for move in copying for broker in move.added if observed.is_alive(broker)}
                observed = replace(observed, log_dirs=self.session.admin.log_dirs(sorted(alive)))
        except MissingRight as error:
            self.is_denied = True
            self.session.say(f"what is copied, and whether a destination's disk fails, cannot be seen: {error}")
        except ClusterUnavailable:
            pass  # The next turn asks again, and tells of an outage where it is one.
        return observed

    def _interval(self) -> timedelta:
        age = self.session.now() - self.since if self.since is not None else timedelta(0)
        return min(SIZES_EVERY_LATER, max(SIZES_EVERY, age / LOOKS))

    def _is_due(self, last: datetime | None, interval: timedelta) -> bool:
        return last is None or self.session.now() - last >= interval
