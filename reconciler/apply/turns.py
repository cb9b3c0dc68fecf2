"""Runs the stages of a plan, turn by turn: look, decide, do one thing, remember; and ends in order whatever happens."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.admin.waits import Wait, waiting_for
from reconciler.apply.answers import Trouble, tried
from reconciler.apply.checks import GATE_PAUSE_SECONDS, Gate
from reconciler.apply.crash import crash_point
from reconciler.apply.decide import decide
from reconciler.apply.decide_dirs import note_dirs
from reconciler.apply.dir_moves import DirState, dir_moves_under_way, dir_moves_unseen
from reconciler.apply.observed import Observed
from reconciler.apply.perform import perform, prepared
from reconciler.apply.progress import Disks, Meter, ProgressLog
from reconciler.apply.session import Session, ended_at_once, with_result
from reconciler.apply.stage_memory import MoveState, StageMemory, note
from reconciler.apply.standings import moves_under_way
from reconciler.apply.steps import FinishStage
from reconciler.apply.throttles import leftover_problems
from reconciler.apply.throttling import put_cordons, take_all_off
from reconciler.apply.withdraw import seen_as_far_as_visible, told_left, unseen_moves, withdraw
from reconciler.apply.withdraw_dirs import withdraw_dirs
from reconciler.model.lock import LockLost
from reconciler.model.plan import Plan
from reconciler.model.problem import CheckFailed, ClusterUnavailable, ReconcilerError
from reconciler.model.run import Outcome, RunFailed, RunProgress, RunResult, RunState, StoppedEarly
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.words import named_some, rate

OUTAGE = timedelta(seconds=180)
"""How long the cluster may not answer before a run gives up; a new controller takes about 2 s."""

REFUSED = timedelta(seconds=15)
"""How long brokers may refuse this client before a run gives up: more logins may lock its account."""

Progress = Callable[[RunProgress], None]


@dataclass(slots=True)
class Run:
    """The loop over stages and turns; everything it decides is decided in `decide`."""

    session: Session
    gate: Gate
    progress: Progress | None
    first: int
    """The index of the first stage that is not done."""
    memory: StageMemory | None = None
    """The memory of the current stage; None between stages."""
    meter: Meter = field(init=False)
    disks: Disks = field(init=False)
    log: ProgressLog = field(init=False)
    outage_since: datetime | None = None
    is_record_written: bool = False
    """The record in the cluster tells of this stage."""
    is_disk_denied: bool = False
    refused_rate: int | None = None
    """The rate that somebody asked for last and that is none to be asked for."""
    wait: Wait = field(init=False)

    @property
    def _plan(self) -> Plan:
        return self.session.paths.plan

    def go(self, *, is_clear: bool) -> RunResult:
        """Run the stages from the first that is not done, and whatever happens leave nothing half-told.

        `is_clear`: no move of the plan is in flight, so no throttle of an earlier run is needed.
        """
        try:
            try:
                return self._all_stages(is_clear=is_clear)
            except ReconcilerError as error:
                raise with_result(error, end_in_order(self.session, self.memory, error)) from error
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt) and self.gate.should_stop() is not None:
                    raise
                end_in_order(self.session, self.memory, error)
                raise
        except KeyboardInterrupt as error:
            if self.gate.should_stop() is None:
                raise
            raise end_at_once(self.session, self.memory) from error

    def _all_stages(self, *, is_clear: bool) -> RunResult:
        plan = self._plan
        self.session.write_event("run", Outcome.STARTED, plan=plan.id, digest=plan.digest, firstStage=self.first + 1)
        # With moves in flight, the throttles of the run that died stay on: taken off, the copies would go unthrottled.
        if is_clear:
            take_all_off(self.session)
        else:
            put_cordons(self.session, self.first + 1)
        for index in range(self.first, len(self._plan.stages)):
            self._stage(index)
        return self._finish()

    def _finish(self) -> RunResult:
        with suppress(ClusterUnavailable):
            self.session.look(self.session.paths.topics)  # tells of partitions that were added meanwhile
        crash_point("end.before")
        take_all_off(self.session)
        self.session.write_event("run", Outcome.DONE, writes=self.session.writes, **self.session.ending())
        crash_point("end.recorded")
        return self.session.result(RunState.DONE)

    # Stages

    def _stage(self, index: int) -> None:
        if not self._begin(index):
            self.session.stages_done += 1
            return
        self.meter, self.log = Meter(), ProgressLog(self.session)
        self.disks = Disks(self.session, is_denied=self.is_disk_denied)
        with waiting_for() as self.wait:
            while self._turn(index):
                pass
        self.is_disk_denied = self.disks.is_denied
        self._tell_elsewhere(self._plan.stages[index])
        crash_point("stage.done")
        self.session.write_event("stage", Outcome.DONE)
        self.session.stages_done += 1
        self.memory = None

    def _tell_elsewhere(self, stage: Stage) -> None:
        """Tell of new replicas that did not land in the log dir asked for: their broker forgot it as it restarted."""
        moves = [move for move in stage.moves if move.log_dirs] if isinstance(stage, ReassignStage) else []
        if not moves:
            return
        brokers, keys = {broker for move in moves for broker in move.log_dirs}, [move.topic_partition for move in moves]
        found = tried(lambda: self.session.admin.disks(sorted(brokers), keys))
        if isinstance(found, Trouble):
            return
        for move in moves:
            for broker, path in sorted(move.log_dirs.items()):
                landed = found.replica_paths.get((move.topic_partition, broker), path)
                if landed != path:
                    text = f"{move.topic_partition} was to go to log dir {path} of broker {broker}, and is in {landed}"
                    self.session.say(
                        f"{text}: a broker forgets what it was asked as it restarts; plan again to move it"
                    )

    def _begin(self, index: int) -> bool:
        """Begin a stage; return False where nothing of it is left to do."""
        self.session.stage = self._plan.stages[index].number
        self.is_record_written = False
        # The first stage passed the gate before the run began.
        if index > self.first and self.gate.enter(index, is_first=False):
            return False
        self.session.write_event("stage", Outcome.STARTED)
        now = self.session.now()
        self.memory = StageMemory(index, now, now, has_throttles_on=self.session.throttles.on.has_throttles)
        return True

    # Turns

    def _turn(self, index: int) -> bool:
        """Observe, decide, do one thing; return whether the stage goes on."""
        self.gate.stop_if_asked()
        self._take_up_rate()
        try:
            # The record comes before the stage's first request: any machine can clean up after a crash.
            if not self.is_record_written:
                self.session.write_record()
                self.is_record_written = True
            goes_on = self._step(self._plan.stages[index])
        except ClusterUnavailable as error:
            self._sit_out(error)
            return True
        if self.outage_since is not None:
            self.outage_since = None
            self.session.write_event("outage", Outcome.DONE)
        return goes_on

    def _take_up_rate(self) -> None:
        """Go on with the rate that somebody has asked for, if it is another one: throttles are put on anew."""
        asked = self.session.lock.rate_asked if self.session.lock is not None else None
        if asked is None or asked.rate in {self.session.rate, self.refused_rate}:
            return
        low, high = self.session.rate_bounds
        by = f"a member of the lock's group that calls itself {asked.by.process}"
        if not low <= asked.rate <= high:
            self.refused_rate = asked.rate
            self.session.write_event("rate", Outcome.SKIPPED, rate=asked.rate, by=by)
            self.session.say(f"{by} asked for {rate(asked.rate)}: not taken up, as {rate(low)} to {rate(high)} may be")
            return
        self.session.throttle_to(asked.rate)
        ours = sorted(self.session.our_rates)
        self.session.write_event("rate", Outcome.DONE, rate=asked.rate, by=by, ours=ours)
        self.session.say(f"the throttle is {rate(asked.rate)} from now on: asked for by {by}")
        self.memory = self._current().unthrottled()
        self.is_record_written = False

    def _step(self, stage: Stage) -> bool:
        memory = self._current()
        observed = self._observe(stage)
        now = self.session.now()
        if isinstance(stage, CopyingStage):
            memory = replace(self._noted(stage, observed, memory, now), is_resting=self.gate.is_late)
            self._report(stage, observed, memory)
            if memory.is_resting and memory.is_at_rest(stage):
                self.memory = memory
                raise self.gate.stopped_late(f"before the end of stage {stage.number}")
        self.wait.say(waited_for(len(self._plan.stages), stage, memory))
        step = decide(self.session.paths, observed, memory, now)
        # The step is noted before it is done: an exception on the way must not lose that it was tried.
        self.memory = prepared(memory, step, now)
        if isinstance(step, FinishStage):
            return False
        self.memory = perform(self.session, self.memory, step)
        return True

    def _noted(self, stage: CopyingStage, observed: Observed, memory: StageMemory, now: datetime) -> StageMemory:
        if isinstance(stage, LogDirsStage):
            return note_dirs(stage, observed, memory, now)
        return note(self.session.paths, stage, observed, memory, now)

    def _current(self) -> StageMemory:
        assert self.memory is not None, "a turn belongs to a stage"  # noqa: S101 - tells the type checker
        return self.memory

    def _observe(self, stage: Stage) -> Observed:
        names = self.session.paths.topics_of(stage)
        configs = names if isinstance(stage, TopicsStage) else ()
        observed = self.session.look(names, with_configs_of=configs, has_disks=isinstance(stage, LogDirsStage))
        if isinstance(stage, ReassignStage):
            return self.disks.added_to(observed, stage)
        return observed

    def _report(self, stage: CopyingStage, observed: Observed, memory: StageMemory) -> None:
        stages, now = len(self._plan.stages), self.session.now()
        measured_at: datetime | None = now
        if isinstance(stage, LogDirsStage):
            read = partial(self.meter.read_inside, stage, stages, memory, observed)
        else:
            read = partial(self.meter.read, stage, stages, memory, observed, self.disks.sizes)
            measured_at = self.disks.sizes_at
        seen = read()
        if measured_at != self.meter.sampled_at or seen.done_moves == seen.moves:
            self.meter.sample(measured_at or now, seen)
            seen = read()
        self.log.told(seen, memory, self.session.now())
        if self.progress is not None:
            self.progress(seen)

    def _sit_out(self, error: ClusterUnavailable) -> None:
        """Let time pass while the cluster does not answer; the next turn looks at what happened."""
        now = self.session.now()
        if self.outage_since is None:
            self.outage_since = now
            self.session.write_event("outage", Outcome.STARTED, why=str(error))
            self.wait.say(f"the cluster to answer again ({error})")
        again = self.session.paths.again
        if not error.is_passing and now - self.outage_since >= REFUSED:
            raise RunFailed(f"{error} Then {again}: it goes on where the cluster stands.", code=error.code) from error
        if now - self.outage_since >= OUTAGE:
            text = f"the cluster has not answered for {OUTAGE.seconds} s: {error}"
            raise RunFailed(f"{text}\nWhen it answers, {again}.", code="KR705") from error
        self.session.admin.clock.sleep(GATE_PAUSE_SECONDS)


def end_in_order(session: Session, memory: StageMemory | None, error: BaseException) -> RunResult:
    """Take moves in flight back and throttles off, and return what the run came to; a cluster's error is only told."""
    if isinstance(error, LockLost) or _is_shut_out(session, error):
        return _as_it_is(session, memory, error)
    has_moves = memory is not None and _take_back(session, memory)
    try:
        take_all_off(session, has_moves=has_moves)
    except ReconcilerError as trouble:
        session.messages.append(f"throttles of this run are still on: {trouble}")
        session.leftover_throttles = leftover_problems(session.throttles.on)
    if session.is_journal_broken:
        session.messages.append(f"then {session.paths.again}: it goes on where the cluster stands")
    is_stopped = isinstance(error, StoppedEarly)
    outcome = Outcome.SKIPPED if is_stopped else Outcome.FAILED
    with suppress(OSError, ReconcilerError):
        # Whatever else was raised may quote what a library was given: the journal is kept, and read by others.
        why = str(error) if isinstance(error, ReconcilerError) else type(error).__name__
        session.write_event("run", outcome, why=why, **session.ending())
    return session.result(RunState.STOPPED if is_stopped else RunState.FAILED)


def end_at_once(session: Session, memory: StageMemory | None) -> StoppedEarly:
    """Return the end of a run that may not even put things back: it names what it leaves, and asks nobody anything."""
    _say_in_flight(session, memory, f"; {session.paths.again} to go on with them, or cancel to take them back")
    return ended_at_once(session)


def _is_shut_out(session: Session, error: BaseException) -> bool:
    """Whether every broker refuses this client: each try to clean up would be one more refused login."""
    is_refused = isinstance(error, CheckFailed) or isinstance(error.__cause__, CheckFailed)
    return is_refused and isinstance(answer := tried(session.admin.brokers), Trouble) and answer.is_shut_out


def _as_it_is(session: Session, memory: StageMemory | None, error: BaseException) -> RunResult:
    """Leave all as it is, without the lock or a login; name the leftovers for the next run, cancel or doctor."""
    is_shut_out = not isinstance(error, LockLost)
    session.leftover_throttles = leftover_problems(session.throttles.on, is_shut_out=is_shut_out)
    _say_in_flight(session, memory)
    if not is_shut_out:
        session.messages.append(f"{session.paths.again}, which goes on where the cluster stands, or cancel")
    with suppress(OSError, ReconcilerError):
        session.write_event("run", Outcome.FAILED, why=str(error), **session.ending())
    return session.result(RunState.FAILED)


def _say_in_flight(session: Session, memory: StageMemory | None, way_on: str = "") -> None:
    if in_flight := _perhaps_in_flight(session, memory):
        moves = f"moves of stage {session.stage} may still be in flight: {named_some(in_flight)}"
        session.messages.append(f"{moves}{way_on}")


def _perhaps_in_flight(session: Session, memory: StageMemory | None) -> list[str]:
    stage = session.paths.plan.stages[memory.stage_index] if memory else None
    if memory is not None and isinstance(stage, LogDirsStage):
        known = [(move, memory.dir_history(move)) for move in stage.moves]
        return [str(move) for move, one in known if one.attempts and one.state is not DirState.DONE]
    if memory is None or not isinstance(stage, ReassignStage):
        return []
    histories = {move.topic_partition: memory.history(move.topic_partition) for move in stage.moves}
    return [str(key) for key, one in histories.items() if one.attempts and one.state is not MoveState.DONE]


def _take_back(session: Session, memory: StageMemory) -> bool:
    """Take back every move of the plan in flight: of this stage, and of a later one that an earlier run had begun.

    Returns whether some may go on.
    """
    found = tried(lambda: seen_as_far_as_visible(session, session.paths.topics))
    perhaps = _perhaps_in_flight(session, memory)
    if isinstance(found, Trouble):
        named = f" ({named_some(perhaps)})" if perhaps else ""
        session.messages.append(f"moves of stage {session.stage} may still be in flight{named}: {found.why}")
        return True
    observed, hidden = found
    try:
        outcome = withdraw(session, moves_under_way(session.paths, observed))
        unseen = [move for move in dir_moves_unseen(session.paths, observed) if memory.dir_history(move).is_begun]
        withdraw_dirs(session, (*dir_moves_under_way(session.paths, observed), *unseen), outcome)
    except LockLost as trouble:
        session.messages.append(f"moves of stage {session.stage} may still be in flight: {trouble}")
        return True
    outcome.left |= unseen_moves(session.paths, observed, hidden)
    for key, why in sorted(outcome.left.items()):
        way_on = f"{session.paths.again}, or cancel, to see to it"
        session.messages.append(f"{key}: {told_left(why)}; {way_on}")
    return bool(outcome.left)


def waited_for(stages: int, stage: Stage, memory: StageMemory) -> str:
    """Return what a stage waits for, in words; of moves only what keeps them, as progress tells of the copying."""
    is_done = memory.is_done(stage) if isinstance(stage, CopyingStage) else True
    if is_done:
        return f"stage {stage.number}/{stages} to show what it changed"
    unclear = [str(key) for key, one in memory.histories.items() if one.off_since or one.lagging_since]
    unclear += [f"{key} on broker {broker}" for (key, broker), one in memory.dirs.items() if one.off_since]
    told = [f"broker {broker}, which is not alive" for broker in sorted(memory.fenced_since)]
    told += [f"a leader of {key}" for key in sorted(memory.leaderless_since)]
    told += [f"log dirs of broker {broker}" for broker in sorted(memory.bad_disks)]
    if unclear:
        told.append(f"a second look at {named_some(unclear)}, not where this run left it")
    return ", ".join(told)
