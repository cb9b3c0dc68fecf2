"""The gate before each stage: whether the run may go on, and whether the stage is safe to begin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.admin.waits import waiting_for
from reconciler.apply.checks import check_plan_is_for, check_stage, check_still_valid, check_windows, is_stage_done
from reconciler.apply.moves import UNCLEAR
from reconciler.apply.readers import check_readers
from reconciler.apply.session import Session
from reconciler.apply.windows import described, is_open
from reconciler.model.desired import Window
from reconciler.model.problem import STILL_READ, ClusterUnavailable, ReconcilerError, Refused, StalePlan
from reconciler.model.run import StoppedEarly

RECOVERY = timedelta(seconds=120)
"""How long a later stage waits for a broker to come back, or replicas in sync, before it is refused."""
GATE_PAUSE_SECONDS = 5.0
FOREIGN_MOVE = "KR421"

Stop = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run may not go on against: a signal, a cancel that asks for its end, the time given, windows."""

    session: Session
    deadline: datetime | None
    should_stop: Stop
    windows: Sequence[Window]

    def enter(self, index: int, *, is_first: bool) -> bool:
        """Check that a stage may begin; return whether it is done already.

        A later one waits a while for what time may cure: a broker that restarts, replicas that catch up, metadata
        that shows the past.
        """
        start = self.session.now()
        with waiting_for() as wait:
            while True:
                try:
                    return self._check(index, is_first=is_first)
                except (Refused, StalePlan, ClusterUnavailable) as error:
                    if is_first or self.session.now() - start >= _patience(error):
                        raise
                    wait.say(f"stage {index + 1} to be safe to begin ({error})")
                self.stop_if_asked()
                self.session.admin.clock.sleep(GATE_PAUSE_SECONDS)

    def stop_if_asked(self) -> None:
        """Raise StoppedEarly where a signal came or a cancel asks, LockLost where somebody else may be at work."""
        if self.session.lock is not None:
            self.session.lock.raise_if_lost()
        reason = self.should_stop() or self._asked()
        if reason is not None:
            stages = len(self.session.itinerary.plan.stages)
            where = (
                f"before the end of stage {self.session.stage} of {stages}" if self.session.stage else "before it began"
            )
            text = f"stopped {where}: {reason}"
            raise StoppedEarly(f"{text}; {self.session.itinerary.again} to go on", code="KR713")

    def _asked(self) -> str | None:
        """Return whose cancel waits for this run to end, None for nobody's; the user is told at once."""
        by = self.session.lock.asked_by if self.session.lock is not None else None
        if by is None:
            return None
        who = f"`reconciler cancel` of {by.user} on {by.host} (process {by.pid})"
        self.session.notify(f"{who} asks this run to stop: ending in order, throttles go back first.")
        return f"{who} asked for it"

    def _check(self, index: int, *, is_first: bool) -> bool:
        stage = self.session.itinerary.plan.stages[index]
        self.stop_if_asked()
        check_plan_is_for(self.session.itinerary.plan, self.session.admin.cluster_id())
        names = self.session.itinerary.topics_of(stage)
        observed = self.session.look(names, with_configs_of=names)
        if is_stage_done(self.session.itinerary, stage, observed):
            return True
        self._stop_if_late(index, is_first=is_first)
        if not is_first:
            check_still_valid(self.session.itinerary, [stage], observed)
            check_readers(self.session, [stage], observed)
        check_windows(self.windows, self.session.admin.clock.time_of_day())
        check_stage(self.session.itinerary, stage, observed, self.session.brokers_min_isr(observed))
        return False

    def _stop_if_late(self, index: int, *, is_first: bool) -> None:
        now, again = self.session.now(), self.session.itinerary.again
        before = f"stopped before stage {index + 1} of {len(self.session.itinerary.plan.stages)}"
        if self.deadline is not None and now >= self.deadline:
            raise StoppedEarly(f"{before}: the time given is over; {again} to go on", code="KR711")
        if not is_first and not is_open(self.windows, self.session.admin.clock.time_of_day()):
            text = f"{before}: the window is over ({described(self.windows)})"
            raise StoppedEarly(f"{text}; {again} inside one", code="KR712")


def _patience(error: ReconcilerError) -> timedelta:
    """Return how long time may cure that: what somebody else started is theirs to end, the plan is not for it."""
    if isinstance(error, StalePlan):
        return UNCLEAR
    return timedelta() if error.code in {FOREIGN_MOVE, STILL_READ} else RECOVERY
