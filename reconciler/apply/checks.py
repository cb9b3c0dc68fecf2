"""Checks what must hold before a run, and again before each of its stages: nobody is asked to trust the plan.

Kafka accepts a reassignment to a dead broker, or over another one in flight, without a word (KIP-455): what it does not
refuse is refused here, before anything is changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from reconciler.admin.waits import waiting_for
from reconciler.apply.dir_moves import DirPlace, dir_place, stale_dirs
from reconciler.apply.limits import ApplyRules, check_limits, lowered_topics
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import Place, PlanPaths
from reconciler.apply.session import Session
from reconciler.apply.stage_memory import UNCLEAR
from reconciler.apply.standings import is_move_done, is_stage_done
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.model.change import DeleteTopic
from reconciler.model.cluster import Partition
from reconciler.model.desired import Window
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    STILL_READ,
    ClusterUnavailable,
    Problem,
    ReconcilerError,
    Refused,
    StalePlan,
    lines_of,
)
from reconciler.model.run import StoppedEarly
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, named_some

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

RECOVERY = timedelta(seconds=120)
"""How long a later stage waits for a broker to come back, or replicas in sync, before it is refused."""

GATE_PAUSE_SECONDS = 5.0  # between two looks, while a stage may not begin or the cluster does not answer

FOREIGN_MOVE = "KR421"
"""The code of a reassignment that somebody else started: theirs to end, so nobody waits for it."""

Stop = Callable[[], str | None]


def check_plan_is_for(plan: Plan, cluster_id: str) -> None:
    """Refuse a plan made for another cluster."""
    if plan.cluster_id != cluster_id:
        text = f"the plan is for cluster {plan.cluster_id}, but {cluster_id} answers; choose the right cluster or plan"
        raise StalePlan(text, code="KR501")


def check_plan(plan: Plan, cluster_id: str) -> None:
    """Refuse a plan with violations, or one made for another cluster."""
    check_plan_is_for(plan, cluster_id)
    if plan.violations:
        told = "\n".join(lines_of(plan.violations))
        raise Refused(f"the plan breaks what the desired state allows: {told}", code=plan.violations[0].code)


def check_still_valid(paths: PlanPaths, stages: Iterable[Stage], observed: Observed) -> None:
    """Raise StalePlan unless all that these stages touch is as the plan saw it, or as it wants it."""
    stale = list(dict.fromkeys(problem for stage in stages for problem in _stale(paths, stage, observed)))
    if not stale:
        return
    told = named_some(lines_of(stale), MANY, "\n")
    raise StalePlan(f"the cluster changed since the plan was made: {told}\nMake a new plan.", code=stale[0].code)


def _stale(paths: PlanPaths, stage: Stage, observed: Observed) -> Iterator[Problem]:
    match stage:
        case TopicsStage():
            yield from _stale_changes(paths, stage, observed)
        case ReassignStage():
            yield from _stale_moves(paths, stage, observed)
            yield from _stale_elections(paths, stage, observed)
        case LogDirsStage():
            yield from stale_dirs(stage, observed)
        case ElectStage():
            yield from _stale_elections(paths, stage, observed)
        case _:
            assert_never(stage)


def _stale_changes(paths: PlanPaths, stage: TopicsStage, observed: Observed) -> Iterator[Problem]:
    for change in (paths.plan.topic_changes[position] for position in stage.changes):
        where = standing(change, observed, paths)
        if where.state is ChangeState.STALE:
            text = f"topic {change.topic}: expected {where.expected}, found {where.found}"
            yield Problem("KR503", text)


def _stale_moves(paths: PlanPaths, stage: ReassignStage, observed: Observed) -> Iterator[Problem]:
    made = _made_by_plan(paths.plan)
    for key in (move.topic_partition for move in stage.moves):
        position = paths.position(key, observed)
        lists = paths.by_partition[key].lists
        expected = " or ".join(str(list(replicas)) for replicas in dict.fromkeys(lists))
        if position.place is Place.UNKNOWN:
            yield Problem("KR502", f"{key}: expected {expected}, found {list(position.found)}")
        if position.place is Place.MISSING and key.topic not in made:
            yield Problem("KR502", f"{key}: expected {expected}, found {observed.absence(key.topic)}")


def _stale_elections(paths: PlanPaths, stage: ReassignStage | ElectStage, observed: Observed) -> Iterator[Problem]:
    made = _made_by_plan(paths.plan)
    for election in stage.elections:
        key = election.topic_partition
        partition = observed.partition(key)
        if key in paths.by_partition or (partition is None and key.topic in made):
            continue
        found = observed.absence(key.topic) if partition is None else partition.preferred_leader
        if found != election.leader:
            text = f"{key}: expected {election.leader} as the preferred leader, found {found}"
            yield Problem("KR504", text)


def _made_by_plan(plan: Plan) -> frozenset[str]:
    return frozenset(change.topic for change in plan.topic_changes)


def check_windows(windows: Sequence[Window], now: datetime) -> None:
    """Refuse to begin outside the windows."""
    if not is_inside_windows(windows, now):
        text = f"{now:%Y-%m-%d %H:%M} UTC is outside the windows ({described(windows, now)}); run it inside one"
        raise Refused(text, code="KR423")


def check_stage(paths: PlanPaths, stage: Stage, observed: Observed, min_isr: int = 1) -> None:
    """Refuse a stage that is not safe to begin, or to go on with; `min_isr` is the brokers' own."""
    if isinstance(stage, ReassignStage):
        left = tuple(m for m in stage.moves if not is_move_done(paths, stage, m, observed))
        _check_brokers(stage, left, observed)
        _check_foreign([move.topic_partition for move in left], paths, observed)
        _check_min_isr(paths, stage, observed, min_isr)
    if isinstance(stage, LogDirsStage):
        _check_dirs(paths, stage, observed)


def _check_dirs(paths: PlanPaths, stage: LogDirsStage, observed: Observed) -> None:
    """Refuse moves between log dirs whose broker does not tell of them."""
    left = [move for move in stage.moves if dir_place(move, observed) is not DirPlace.AT_END]
    for move in left:
        if not observed.is_alive(move.broker):
            text = f"stage {stage.number} moves {move.topic_partition} between log dirs of broker {move.broker}, which"
            raise Refused(f"{text} is not alive; start it, or make a new plan", code="KR420")
        if dir_place(move, observed) is DirPlace.UNSEEN:
            text = f"broker {move.broker} does not tell what its log dirs hold"
            raise ClusterUnavailable(f"{text}; see that it can be reached from here, then {paths.again}")


def check_requirements(paths: PlanPaths, observed: Observed) -> None:
    """Refuse to begin while a broker that the plan requires is dead, or somebody else moves a partition it touches."""
    dead = observed.dead_of(paths.plan.brokers_alive)
    if dead:
        names = ", ".join(str(broker) for broker in dead)
        raise Refused(
            f"the plan requires brokers that are not alive: {names}; start them, or make a new plan", code="KR420"
        )
    _check_foreign(paths.by_partition, paths, observed)


def _check_brokers(stage: ReassignStage, left: Sequence[Move], observed: Observed) -> None:
    for move in left:
        if move.added and observed.partition(move.topic_partition) and not observed.has_source(move.topic_partition):
            text = (
                f"stage {stage.number} copies {move.topic_partition}, which has no leader: Kafka could elect the new,"
            )
            hint = "bring back the brokers that have its records (doctor names them), or make a new plan"
            raise Refused(f"{text} empty replica, and its records would be lost; {hint}", code="KR420")
        dead = observed.dead_of(observed.awaited(move))
        if dead:
            text = (
                f"stage {stage.number} moves {move.topic_partition} to {list(move.to_replicas)}, but broker {dead[0]}"
            )
            raise Refused(f"{text} is not alive; start it, or make a new plan", code="KR420")


def _check_foreign(keys: Iterable[TopicPartition], paths: PlanPaths, observed: Observed) -> None:
    for key in keys:
        position = paths.position(key, observed)
        if position.place is Place.FOREIGN:
            text = f"{key} is being reassigned to {list(position.found)}, which this plan did not ask for"
            text = f"{text}; wait for it, or have whoever started it cancel it, then {paths.again}"
            raise Refused(text, code="KR421")


def _check_min_isr(paths: PlanPaths, stage: ReassignStage, observed: Observed, default: int) -> None:
    """Refuse while a partition of the touched topics is under min ISR and no stage from this one on repairs it."""
    for name in sorted(paths.topics_of(stage)):
        topic = observed.topics.get(name)
        for partition in topic.partitions if topic else ():
            key = TopicPartition(name, partition.partition)
            wanted = min_isr_of(partition, observed.configs.get(name, {}).get(MIN_ISR), default)
            if len(partition.isr) < wanted and not _is_repaired(paths, stage, key, observed):
                text = f"{key} has {len(partition.isr)} replicas in sync, {MIN_ISR} is {wanted}"
                text = f"{text}, and stage {stage.number} does not repair it"
                raise Refused(f"{text}; see to brokers {_out_of_sync(partition)} first", code="KR422")


def min_isr_of(partition: Partition, override: str | None, default: int) -> int:
    """Return how many replicas a partition must have in sync: Kafka asks for no more than it has replicas."""
    wanted = int(override) if override is not None and override.isdigit() else default
    return min(wanted, max(1, len(partition.target_replicas)))


def _out_of_sync(partition: Partition) -> str:
    return ", ".join(str(r) for r in sorted(set(partition.target_replicas) - set(partition.isr)))


def _is_repaired(paths: PlanPaths, stage: ReassignStage, key: TopicPartition, observed: Observed) -> bool:
    """Whether a partition gets other, living replicas in this stage or a later one."""
    path = paths.by_partition.get(key)
    if path is None:
        return False
    return any(
        number >= stage.number
        and set(move.to_replicas) != set(move.from_replicas)
        and not observed.dead_of(move.to_replicas)
        for number, move in zip(path.stages, path.moves, strict=True)
    )


def is_inside_windows(windows: Sequence[Window], now: datetime) -> bool:
    """Whether a run may work now: inside one of the windows, or there is none."""
    return not windows or any(_is_inside(window, now) for window in windows)


def described(windows: Sequence[Window], now: datetime) -> str:
    """Return the windows in words, and when the next one opens."""
    listed = "; ".join(f"{','.join(w.days)} {w.start}-{w.end} {w.timezone}" for w in windows)
    # Minute by minute: a zone may put its clocks forward or back meanwhile.
    moments = (now + timedelta(minutes=minutes) for minutes in range(1, 8 * 24 * 60))
    opening = next((moment for moment in moments if is_inside_windows(windows, moment)), None)
    return f"{listed}; the next opens at {opening:%a %Y-%m-%d %H:%M} UTC" if opening is not None else listed


def _is_inside(window: Window, now: datetime) -> bool:
    """Tell by the local time of day; the part after midnight belongs to the day before."""
    local = now.astimezone(ZoneInfo(window.timezone))
    minute = local.hour * 60 + local.minute
    start, end = _minutes(window.start), _minutes(window.end)
    today, yesterday = DAYS[local.weekday()], DAYS[(local - timedelta(days=1)).weekday()]
    if start < end:
        return today in window.days and start <= minute < end
    return (today in window.days and minute >= start) or (yesterday in window.days and minute < end)


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")[:2]
    return int(hours) * 60 + int(minutes)


def check_readers(session: Session, stages: Iterable[Stage], observed: Observed) -> None:
    """Refuse to delete topics that a live group reads, but for those whose own document says `state: absent`."""
    due = _undeclared_deletions(session, stages, observed)
    if not due:
        return
    groups = session.patiently(session.admin.groups)
    read = [f"{topic} (by {group.group_id})" for topic in due for group in groups.values() if group.is_reading(topic)]
    if read:
        text = f"topics that the plan deletes, and that are not declared, are read by live groups: {named_some(read)}"
        raise Refused(f"{text}; declare them, or write state: absent for each, and make a new plan", code=STILL_READ)


def _undeclared_deletions(session: Session, stages: Iterable[Stage], observed: Observed) -> Sequence[str]:
    paths = session.paths
    positions = [position for stage in stages if isinstance(stage, TopicsStage) for position in stage.changes]
    changes = (paths.plan.topic_changes[position] for position in positions)
    deletions = (change for change in changes if isinstance(change, DeleteTopic) and not change.is_declared)
    return sorted(each.topic for each in deletions if standing(each, observed, paths).state is ChangeState.TO_DO)


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run may not go on against: a signal, a cancel that asks for its end, the time given, what is declared."""

    session: Session
    deadline: datetime | None
    should_stop: Stop
    declared: ApplyRules

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
            stages = len(self.session.paths.plan.stages)
            where = (
                f"before the end of stage {self.session.stage} of {stages}" if self.session.stage else "before it began"
            )
            text = f"stopped {where}: {reason}"
            raise StoppedEarly(f"{text}; {self.session.paths.again} to go on", code="KR713")

    def _asked(self) -> str | None:
        """Return whose cancel waits for this run to end, None for nobody's; the user is told at once."""
        by = self.session.lock.asked_by if self.session.lock is not None else None
        if by is None:
            return None
        who = f"`reconciler cancel` of {by.process}"
        self.session.notify(f"{who} asks this run to stop: ending in order, throttles go back first.")
        return f"{who} asked for it"

    def _check(self, index: int, *, is_first: bool) -> bool:
        stage = self.session.paths.plan.stages[index]
        self.stop_if_asked()
        check_plan_is_for(self.session.paths.plan, self.session.admin.cluster_id())
        # What a run begins with is checked whole, each later stage by itself.
        stages = self.session.paths.plan.stages[index:] if is_first else (stage,)
        names = frozenset(name for one in stages for name in self.session.paths.topics_of(one))
        observed = self.session.look(
            names, with_configs_of=self.session.paths.topics_of(stage) | lowered_topics(stages)
        )
        if is_stage_done(self.session.paths, stage, observed):
            return True
        self._stop_if_late(index, is_first=is_first)
        if not is_first:
            check_still_valid(self.session.paths, [stage], observed)
            check_readers(self.session, [stage], observed)
        check_windows(self.declared.windows, self.session.admin.clock.time_of_day())
        check_stage(self.session.paths, stage, observed, self.session.brokers_min_isr(observed))
        check_limits(self.session, self.declared, stages, observed, is_first=is_first)
        return False

    def _stop_if_late(self, index: int, *, is_first: bool) -> None:
        # Outside its windows a run that has not begun is refused, which is another error.
        if self.is_late and (not is_first or self._is_deadline_over):
            raise self.stopped_late(f"before stage {index + 1}")

    @property
    def is_late(self) -> bool:
        """Whether the time given, or the window, is over: nothing may begin any more."""
        return self._is_deadline_over or not is_inside_windows(
            self.declared.windows, self.session.admin.clock.time_of_day()
        )

    @property
    def _is_deadline_over(self) -> bool:
        return self.deadline is not None and self.session.now() >= self.deadline

    def stopped_late(self, where: str) -> StoppedEarly:
        """Return the end of a run whose time is over, at that stage."""
        before, again = f"stopped {where} of {len(self.session.paths.plan.stages)}", self.session.paths.again
        if self._is_deadline_over:
            return StoppedEarly(f"{before}: the time given is over; {again} to go on", code="KR711")
        now = self.session.admin.clock.time_of_day()
        text = f"{before}: the window is over ({described(self.declared.windows, now)})"
        return StoppedEarly(f"{text}; {again} inside one", code="KR712")


def _patience(error: ReconcilerError) -> timedelta:
    """Return how long time may cure that: what somebody else started is theirs to end, the plan is not for it."""
    if isinstance(error, StalePlan):
        return UNCLEAR
    return timedelta() if error.code in {FOREIGN_MOVE, STILL_READ} else RECOVERY
