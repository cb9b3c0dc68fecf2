"""Runs a plan on a cluster: each turn looks, decides, does one thing and records it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from reconciler.admin.port import Admin
from reconciler.admin.waits import Wait, waiting_for
from reconciler.apply.checks import (
    check_plan,
    check_plan_is_for,
    check_requirements,
    check_still_valid,
    stages_done,
)
from reconciler.apply.course import APPLY_AGAIN, itinerary
from reconciler.apply.crash import crash_point
from reconciler.apply.decide import decide
from reconciler.apply.disks import Disks
from reconciler.apply.dry import steps_to_do
from reconciler.apply.gate import GATE_PAUSE_SECONDS, Gate, Stop
from reconciler.apply.journal import Journal, MemoryJournal
from reconciler.apply.leave import abandon, foretold, leave, refuse
from reconciler.apply.observed import Observed
from reconciler.apply.perform import perform, prepared
from reconciler.apply.progress import Meter
from reconciler.apply.progress_log import ProgressLog
from reconciler.apply.readers import check_readers
from reconciler.apply.record import RunRecord, note
from reconciler.apply.refusals import check_not_refused
from reconciler.apply.rights import check_rights
from reconciler.apply.session import Session, with_result
from reconciler.apply.steps import FinishStage
from reconciler.apply.tally import moves_under_way
from reconciler.apply.throttling import adopt_leftovers, find_record, moves_of, put_cordons
from reconciler.apply.unthrottling import take_all_off
from reconciler.apply.waiting import awaited
from reconciler.model.desired import Window
from reconciler.model.lock import LockHeld, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, ReconcilerError, Refused, StalePlan, WouldBeRefused
from reconciler.model.run import Outcome, RunFailed, RunProgress, RunResult, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage, Stage, TopicsStage
from reconciler.model.wording import named_some

OUTAGE = timedelta(seconds=180)
"""How long the cluster may not answer before a run gives up; a new controller takes about 2 s."""

Progress = Callable[[RunProgress], None]


def _never() -> str | None:
    return None


def _to_nobody(_text: str) -> None:
    """Tell nobody."""


def run_plan(
    plan: Plan,
    admin: Admin,
    journal: Journal,
    *,
    progress: Progress | None = None,
    deadline: datetime | None = None,
    should_stop: Stop = _never,
    windows: Sequence[Window] = (),
    is_dry_run: bool = False,
    notify: Callable[[str], None] = _to_nobody,
    has_log_dirs: bool = False,
    again: str = APPLY_AGAIN,
) -> RunResult:
    """Run a plan, or go on with it, and return what was done; only a finished plan returns.

    A dry run checks all that a run does before its first change, returns the steps that are left, and writes nothing.

    `should_stop` ends the run at once, in order, and so does a cancel of the plan, wherever it was started: moves in
    flight go back to where they came from and throttles to what they were; a KeyboardInterrupt meanwhile ends that too,
    and StoppedEarly names what is left; all texts say `again` for how to go on. After `deadline`, and outside
    `windows`, no further stage begins. With `has_log_dirs` new replicas are made in the log dirs that the plan
    foretells; else Kafka chooses. `notify` is told at once what a waiting operator should know. Raises StalePlan,
    Refused (LockHeld, where another run is on) or WouldBeRefused before anything is changed, one of the first two
    before a later stage, RunFailed or StoppedEarly with the result after; throttles are back in either case. A run that
    loses the cluster's lock ends at once, with LockLost, and puts nothing back: somebody else may be at work.
    """
    session = Session(admin, journal, itinerary(plan, again), notify, has_log_dirs)
    gate = Gate(session, deadline, should_stop, windows)
    check_plan(plan, admin.cluster_id())
    if is_dry_run:
        return _checked(session, gate)
    with admin.lock(purpose_of_run(plan.id), digest=plan.digest, waiting=notify) as session.lock:
        crash_point("lock.taken")
        return _locked(session, gate, progress)


def _checked(session: Session, gate: Gate) -> RunResult:
    """Return what a run would do now; raises what would forbid it, another run included, and writes nothing."""
    holder = session.admin.lock_holder()
    if holder is not None:
        raise LockHeld(holder)
    observed = _seen(session)
    find_record(session)
    try:
        _first(session, gate, observed)
    except (StalePlan, Refused, StoppedEarly, WouldBeRefused) as error:
        raise foretold(session, error) from error
    session.messages.extend(steps_to_do(session.itinerary, observed))
    return session.result(RunState.CHECKED)


def still_fits(plan: Plan, admin: Admin) -> bool:
    """Return whether all that a plan touches is as it saw it, or as it wants it: then it is not stale."""
    session = Session(admin, MemoryJournal(), itinerary(plan))
    try:
        check_plan_is_for(plan, admin.cluster_id())
        check_still_valid(session.itinerary, plan.stages, _seen(session))
    except StalePlan:
        return False
    return True


def _locked(session: Session, gate: Gate, progress: Progress | None) -> RunResult:
    """Run the plan; the cluster's lock is held."""
    observed = _seen(session)
    adopt_leftovers(session, observed)
    try:
        first = _first(session, gate, observed)
    except (StalePlan, Refused, StoppedEarly, WouldBeRefused) as error:
        raise refuse(session, observed, error) from error
    is_clear = not moves_under_way(session.itinerary, observed)
    return _Run(session, gate, progress, first).go(is_clear=is_clear)


def _seen(session: Session) -> Observed:
    """Return how all topics of the plan stand."""
    changed = {change.topic for change in session.itinerary.plan.topic_changes}
    return session.look(session.itinerary.topics, with_configs_of=changed)


def _first(session: Session, gate: Gate, observed: Observed) -> int:
    """Return the index of the first stage to run; everything that may forbid it is checked."""
    stages = session.itinerary.plan.stages
    _check_no_other_run(session)
    check_still_valid(session.itinerary, stages, observed)
    first = session.stages_done = stages_done(session.itinerary, observed)
    if first < len(stages):
        check_rights(session.itinerary.plan, session.admin)
        check_requirements(session.itinerary, observed)
        check_readers(session, stages, observed)
        gate.enter(first, is_first=True)
        check_not_refused(session, observed)
    return first


def _check_no_other_run(session: Session) -> None:
    """Raise Refused where a run of another plan has died and left moves under way: their record would be lost."""
    kept = session.other_run
    if kept is None:
        return
    moves = named_some(str(move.topic_partition) for move in moves_of(kept, session.admin))
    raise Refused(
        f"{kept} has died with moves in flight, or not back in their order: {moves}. Nothing was changed. "
        f"`reconciler cancel --cluster {kept.cluster_name}` takes them back, apply of that plan goes on with it; once "
        "they have ended, an apply of any plan cleans up after it.",
        code="KR457",
    )


@dataclass(slots=True)
class _Run:
    """The loop over stages and turns; everything it decides is decided in `decide`."""

    session: Session
    gate: Gate
    progress: Progress | None
    first: int
    record: RunRecord | None = None
    meter: Meter = field(default_factory=Meter)
    disks: Disks = field(init=False)
    log: ProgressLog = field(init=False)
    outage_since: datetime | None = None
    is_kept: bool = False
    wait: Wait = field(init=False)

    def __post_init__(self) -> None:
        self.disks = Disks(self.session)
        self.log = ProgressLog(self.session)

    @property
    def _plan(self) -> Plan:
        return self.session.itinerary.plan

    def go(self, *, is_clear: bool) -> RunResult:
        """Run the stages from the first that is not done, and whatever happens leave nothing half-told.

        `is_clear`: no move of the plan is in flight, so no throttle of an earlier run is needed.
        """
        try:
            try:
                return self._all_stages(is_clear=is_clear)
            except ReconcilerError as error:
                raise with_result(error, leave(self.session, self.record, error)) from error
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt) and self.gate.should_stop() is not None:
                    raise
                leave(self.session, self.record, error)
                raise
        except KeyboardInterrupt as error:
            if self.gate.should_stop() is None:
                raise
            raise abandon(self.session, self.record) from error

    def _all_stages(self, *, is_clear: bool) -> RunResult:
        plan = self._plan
        self.session.tell("run", Outcome.STARTED, plan=plan.id, digest=plan.digest, firstStage=self.first + 1)
        if is_clear:
            take_all_off(self.session)
        else:
            put_cordons(self.session)
        for index in range(self.first, len(self._plan.stages)):
            self._stage(index)
        return self._finish()

    def _finish(self) -> RunResult:
        with suppress(ClusterUnavailable):
            self.session.look(self.session.itinerary.topics)  # tells of partitions that were added meanwhile
        crash_point("end.before")
        take_all_off(self.session)
        self.session.tell("run", Outcome.DONE, writes=self.session.writes, **self.session.ending())
        crash_point("end.recorded")
        return self.session.result(RunState.DONE)

    # Stages

    def _stage(self, index: int) -> None:
        self.session.stage = self._plan.stages[index].number
        self.is_kept = False
        if index > self.first and self.gate.enter(index, is_first=False):
            self.session.stages_done += 1
            return
        self.session.tell("stage", Outcome.STARTED)
        now = self.session.now()
        self.record = RunRecord(index, now, now, has_lists_on=bool(self.session.throttles.lists))
        self.meter = Meter()
        self.disks.begin()
        self.log.begin()
        with waiting_for() as self.wait:
            while self._turn(index):
                pass
        crash_point("stage.done")
        self.session.tell("stage", Outcome.DONE)
        self.session.stages_done += 1
        self.record = None

    # Turns

    def _turn(self, index: int) -> bool:
        """Observe, decide, do one thing; return whether the stage goes on."""
        self.gate.stop_if_asked()
        self._take_up_rate()
        try:
            if not self.is_kept:
                self.session.keep()
                self.is_kept = True
            goes_on = self._step(self._plan.stages[index])
        except ClusterUnavailable as error:
            self._sit_out(error)
            return True
        if self.outage_since is not None:
            self.outage_since = None
            self.session.tell("outage", Outcome.DONE)
        return goes_on

    def _take_up_rate(self) -> None:
        """Go on with the rate that somebody has asked for, if it is another one: throttles are put on anew."""
        asked = self.session.lock.rate_asked if self.session.lock is not None else None
        if asked is None or asked.rate == self.session.rate:
            return
        self.session.throttle_to(asked.rate)
        self.session.tell("rate", Outcome.DONE, rate=asked.rate, by=str(asked.by), ours=sorted(self.session.our_rates))
        self.session.say(
            f"the throttle is {asked.rate} B/s from now on: asked for by {asked.by.user} on {asked.by.host}"
        )
        self.record = self._current().unthrottled()
        self.is_kept = False

    def _step(self, stage: Stage) -> bool:
        record = self._current()
        observed = self._observe(stage)
        now = self.session.now()
        if isinstance(stage, ReassignStage):
            record = note(self.session.itinerary, stage, observed, record, now)
            self._report(stage, observed, record)
        self.wait.say(awaited(len(self._plan.stages), stage, record))
        step = decide(self.session.itinerary, observed, record, now)
        self.record = prepared(record, step, now)
        if isinstance(step, FinishStage):
            return False
        self.record = perform(self.session, self.record, step)
        return True

    def _current(self) -> RunRecord:
        assert self.record is not None, "a turn belongs to a stage"  # noqa: S101 - tells the type checker
        return self.record

    def _observe(self, stage: Stage) -> Observed:
        names = self.session.itinerary.topics_of(stage)
        configs = names if isinstance(stage, TopicsStage) else ()
        observed = self.session.look(names, with_configs_of=configs)
        if isinstance(stage, ReassignStage):
            return self.disks.added_to(observed, stage)
        return observed

    def _report(self, stage: ReassignStage, observed: Observed, record: RunRecord) -> None:
        read = partial(self.meter.read, stage, len(self._plan.stages), record, observed, self.disks.sizes)
        seen = read()
        if self.disks.sizes_at != self.meter.sampled_at or seen.done_moves == seen.moves:
            self.meter.sample(self.disks.sizes_at or self.session.now(), seen)
            seen = read()
        self.log.told(seen, record, self.session.now())
        if self.progress is not None:
            self.progress(seen)

    def _sit_out(self, error: ClusterUnavailable) -> None:
        """Let time pass while the cluster does not answer; the next turn looks at what happened."""
        now = self.session.now()
        if self.outage_since is None:
            self.outage_since = now
            self.session.tell("outage", Outcome.STARTED, why=str(error))
            self.wait.say(f"the cluster to answer again ({error})")
        if now - self.outage_since >= OUTAGE:
            text = f"the cluster has not answered for {OUTAGE.seconds} s: {error}"
            raise RunFailed(f"{text}\nWhen it answers, {self.session.itinerary.again}.", code="KR705") from error
        self.session.admin.clock.sleep(GATE_PAUSE_SECONDS)
