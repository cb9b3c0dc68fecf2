"""What a stage of moves asks of brokers' disks now and then: bytes copied, and log dirs that went offline."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

OFTEN, SELDOM = timedelta(seconds=3), timedelta(seconds=15)
"""Every broker answers for its own disks, so they are not asked in each turn, but at intervals between these two."""
LOOKS = 20
"""An interval is this part of the stage's time so far: the longer it takes, the less its disks are asked."""


@dataclass(slots=True)
class Disks:
    """The last answers in one stage. `sizes`: bytes by (partition, broker), as they were at `sizes_at`.

    `since`: when they were first asked for.
    """

    session: Session
    sizes: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    sizes_at: datetime | None = None
    since: datetime | None = None
    is_denied: bool = False

    def begin(self) -> None:
        """Forget what an earlier stage asked."""
        self.sizes, self.sizes_at, self.since = {}, None, None

    def added_to(self, observed: Observed, stage: ReassignStage) -> Observed:
        """Return the look with what is copied, and the destinations' log dirs, where it is time to ask."""
        copying = [move for move in stage.moves if move.added and move.topic_partition in observed.reassignments]
        if not copying or self.is_denied or not self._is_due():
            return observed
        self.sizes_at, self.sizes = self.session.now(), {}
        self.since = self.since or self.sizes_at
        try:
            return self._looked(observed, copying)
        except MissingRight as error:
            self.is_denied = True
            self.session.say(f"what is copied, and whether a destination's disk fails, cannot be seen: {error}")
        except ClusterUnavailable:
            pass  # The next turn asks again, and tells of an outage where it is one.
        return observed

    def _looked(self, observed: Observed, copying: Collection[Move]) -> Observed:
        keys = [move.topic_partition for move in copying]
        filling = {broker for move in copying for broker in move.added}
        held = [observed.partition(key) for key in keys]
        leading = {one.leader for one in held if one is not None and one.leader is not None}
        found = self.session.admin.disks(sorted(b for b in filling | leading if observed.is_alive(b)), keys)
        self.sizes = found.replica_bytes
        log_dirs = {broker: dirs for broker, dirs in found.log_dirs.items() if broker in filling}
        return replace(observed, replica_bytes=self.sizes, log_dirs=log_dirs)

    def _is_due(self) -> bool:
        if self.sizes_at is None or self.since is None:
            return True
        now = self.session.now()
        return now - self.sizes_at >= min(SELDOM, max(OFTEN, (now - self.since) / LOOKS))
