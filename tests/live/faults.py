"""What the live fault tests share: how a run that met a fault is brought to its end, and what is counted."""

from collections.abc import Callable

from helpers.brokers.checker import Checker
from helpers.brokers.delivery import Delivery
from helpers.brokers.run import PLAN, Applying, LiveRun
from helpers.figures import Tell
from live.worlds import steps

DONE, FAILED = 0, 1
LEFT_OVER = "keeps what this run set: follower.replication.throttled.rate"


class Tally:
    """Counts what all scenarios did; the last line told holds them all."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._scenarios = self._acked = self._copies = 0
        self._pauses: dict[str, float] = {}

    def passed(self, name: str, run: LiveRun, delivery: Delivery) -> None:
        """Count one scenario that its checker accepted: so none of its acknowledged records is lost."""
        self.accepted(name, run.checker, delivery)

    def accepted(self, name: str, checker: Checker, delivery: Delivery) -> None:
        """The same, for a scenario with more than one topic."""
        self._scenarios += 1
        self._acked += len(delivery.sent.acks)
        self._copies += checker.copies
        self._pauses[name] = delivery.longest_pause
        longest = max(self._pauses, key=lambda one: self._pauses[one])
        counted = f"{self._scenarios} scenarios, {self._acked:,} records acked, 0 lost, {self._copies} twice"
        pause = f"longest time without an ack {self._pauses[longest]:.1f} s ({longest})"
        self._tell("live faults", f"{counted}, {pause}")


def finish(run: LiveRun, applying: Applying) -> None:
    """Let a run end; where it stopped over the fault, or owes a throttle, an apply goes on: the brokers are well."""
    code = applying.ended(DONE, FAILED)
    run.elect()
    if code == FAILED or LEFT_OVER in applying.told:
        run.start().ended(DONE)
        run.elect()


def stop_and_go_on(
    run: LiveRun, applying: Applying, delivery: Delivery, *, destination: int, heal: Callable[[], None]
) -> None:
    """Check a run that stops over a lost destination; `heal` brings it back, and an apply goes on.

    The destination's moves are taken back, the rest ended, exit 1, and its rate named as a leftover throttle.
    """
    applying.ended(FAILED)
    assert _has_withdrawn(run)
    assert "KR703" in applying.told
    assert f"broker {destination} {LEFT_OVER}" in applying.told
    run.elect()
    run.checker.stopped(run.folder, PLAN, delivery, back=run.moved_to(destination))
    heal()
    kept_by = {where.partition(":")[0] for where in run.checker.look().throttles}
    assert kept_by == {str(destination)}
    run.start().ended(DONE)


def _has_withdrawn(run: LiveRun) -> bool:
    """Return whether, by its journal, a run took moves back before its end."""
    *before, last = steps(run.folder)
    return "withdraw" in before and last == "run"
