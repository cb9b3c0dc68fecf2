"""The journal's own view of a long stage: a line when moves change their state, and at least one a minute."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.apply.record import RunRecord
from reconciler.apply.session import Session
from reconciler.model.run import Outcome, RunProgress

INTERVAL = timedelta(seconds=60)
SOONEST = timedelta(seconds=10)
"""How soon a change of state is told after the last line: hundreds of small moves may end within a minute."""


@dataclass(slots=True)
class ProgressLog:
    """What was told last in one stage, and when."""

    session: Session
    last: Mapping[str, int] | None = None
    last_at: datetime | None = None

    def begin(self) -> None:
        """Forget what was told of an earlier stage."""
        self.last, self.last_at = None, None

    def told(self, seen: RunProgress, record: RunRecord, now: datetime) -> None:
        """Write a line where one is due; the first look at a stage is none."""
        counts = Counter(history.state.value for history in record.histories.values())
        if self.last is None or self.last_at is None:
            self.last, self.last_at = counts, now
            return
        silence = now - self.last_at
        if silence < SOONEST or (counts == self.last and silence < INTERVAL):
            return
        self.last, self.last_at = counts, now
        self.session.tell(
            "progress",
            Outcome.ONGOING,
            moves=dict(sorted(counts.items())),
            copiedBytes=seen.copied_bytes,
            totalBytes=seen.total_bytes,
            bytesPerSecond=None if seen.bytes_per_second is None else round(seen.bytes_per_second),
        )
