"""Runs one turn of the executor from a state of the model: the only file here that knows how `apply` is called.

`apply`'s own run is started, or taken up where the state left it, and is stopped before its next turn. What it keeps in
memory is laid into the state, with times made ages and counters ended at the executor's own limits.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from exhaustive.state import NOW, TICK, Process, State, World

from reconciler.admin.port import Answer, Lock, Reassignment, WaitHook
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks, SimulatedLock
from reconciler.apply import run as run_module
from reconciler.apply.cancel import cancel_run
from reconciler.apply.checks import Gate
from reconciler.apply.crash import Killed
from reconciler.apply.decide import ELECTION_ATTEMPTS
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import NOTHING_DECLARED
from reconciler.apply.partition_path import paths_of
from reconciler.apply.perform import THROTTLE_TRIES
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import KeptRecord, RecordForm, RunRecord
from reconciler.apply.session import RunThrottles, Session
from reconciler.apply.stage_memory import DEAD, SETTLE, UNCLEAR, Attempt, BadDisk, History, StageMemory
from reconciler.apply.steps import ATTEMPTS
from reconciler.apply.throttles import Entry, ThrottleRecord
from reconciler.apply.turns import OUTAGE, Run
from reconciler.model.change import ConfigChange
from reconciler.model.cluster import Broker, Cluster, Topic
from reconciler.model.lock import Holder, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, OutcomeUnknown, Problem, ReconcilerError
from reconciler.model.run import RunResult
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from exhaustive.invariants import Rules

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

WRITES = frozenset({"alter_broker_configs", "alter_topic_configs", "elect_preferred_leaders", "keep", "reassign"})
CAN_BE_LATE = frozenset({"elect_preferred_leaders", "reassign"})
OF_CONTROLLER = frozenset({"alter_topic_configs", "elect_preferred_leaders", "reassign"})
LOST, UNANSWERED, OTHER_CONTROLLER, KILLED, LATE = "lost", "answer lost", "not the controller", "killed", "late"

CARRIED = (
    "throttles",
    "record",
    "other_record",
    "record_forms",
    "rate",
    "other_rates",
    "min_isr",
    "stage",
    "stages_done",
    "withdrawn",
)
"""What a session keeps from turn to turn, as far as it decides anything."""
TOLD_ONLY = frozenset(
    {"admin", "journal", "paths", "notify", "has_log_dirs", "lock", "writes", "is_journal_broken", "seen", "messages"}
    | {"leftover_throttles", "started_at", "partition_counts", "belief", "rate_bounds"}
)
"""What is made anew for each turn, or is only told."""
assert {*CARRIED, *TOLD_ONLY} == {one.name for one in fields(Session)}, "a session has other fields by now: say which"
RUN_CARRIED = ("memory", "outage_since", "is_record_written")


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What befalls a turn at its call number `at`: a fate of the request, or an event just before it."""

    at: int
    what: str
    event: Callable[[World], World] | None = None

    def __str__(self) -> str:
        return f"{self.what} at call {self.at + 1}"


@dataclass(slots=True)
class Done:
    """What one turn came to: the state after it, the calls it made, what it asked for."""

    state: State
    calls: Sequence[str]
    asked: Sequence[str]
    ticks: int
    """What passed meanwhile."""
    writes: int
    told: str = ""
    """The text that the run ended with."""
    has_acted: bool = False
    """The disturbance came to be."""


class Paused(BaseException):
    """The run is before its next turn."""

    def __init__(self, run: "PausedRun", index: int) -> None:
        super().__init__()
        self.run = run
        self.index = index


class PausedRun(Run):
    """apply's run, which stops before a turn, and begins again there."""

    resumed_at: int | None = None
    turns: int = 0

    def _begin(self, index: int) -> bool:
        if index == self.resumed_at:
            self.resumed_at = None
            return True
        return super()._begin(index)

    def _turn(self, index: int) -> bool:
        if self.turns == 0:
            raise Paused(self, index)
        self.turns -= 1
        return super()._turn(index)


class ModelClock:
    """The time within one turn. To sleep is to let whole ticks pass."""

    def __init__(self, passed: Callable[[], None]) -> None:
        self.ticks = 0
        self._passed = passed

    def now(self) -> datetime:
        return NOW + self.ticks * TICK

    def time_of_day(self) -> datetime:
        return self.now()

    def sleep(self, seconds: float) -> None:
        for _ in range(-(-int(seconds * 1000) // int(TICK.total_seconds() * 1000))):
            self.ticks += 1
            self._passed()


class ModelAdmin(SimulatedAdmin):
    """A state's cluster behind the port. Time brings no copies: these end by an event of their own."""

    def __init__(
        self, world: World, rules: "Rules", disturbance: Disturbance | None, passing: Callable[[World], World]
    ) -> None:
        locks = MemoryLocks()
        locks.kept = world.kept
        super().__init__(world.cluster, locks=locks)
        self.model_clock = ModelClock(self._tick)
        self.clock = self.model_clock
        self.world = world
        self.rules = rules
        self.disturbance = disturbance
        self.passing = passing
        self.calls: list[str] = []
        self.asked: list[str] = []
        self.listed: Mapping[TopicPartition, Reassignment] = {}
        """What the run saw in flight last."""
        self.dead: frozenset[int] = frozenset()
        """The brokers that the run saw dead last."""
        self.has_acted = False
        self.is_counted = False
        self.fate_of_keep: str | None = None

    @property
    def now_world(self) -> World:
        """The world as it is by now."""
        return replace(self.world, cluster=self.cluster, kept=self._locks.kept)

    def happens(self, event: Callable[[World], World]) -> None:
        """Let an event happen."""
        self.world = event(self.now_world)
        self.cluster = self.world.cluster

    def lock(
        self, purpose: str, *, digest: str = "", waiting: WaitHook | None = None, stopping: str | None = None
    ) -> Lock:
        del waiting, stopping
        self._before("lock")
        holder = Holder(purpose, "operator", "host", 1, "2026-01-01T00:00:00Z", digest)
        self._lock = SimulatedLock(self._locks.take(holder), self._keep)
        return self._lock

    def brokers(self) -> Mapping[int, Broker]:
        found = self._as_shown("brokers", super().brokers)
        self.dead = frozenset(one.id for one in found.values() if one.is_fenced)
        return found

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        return self._as_shown("topics", lambda: SimulatedAdmin.topics(self, names))

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return self._as_shown("topic_configs", lambda: SimulatedAdmin.topic_configs(self, names))

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        self._before("broker_configs")
        found = (self.world.shown or self.cluster).brokers
        # Only the broker itself can answer.
        return {broker: dict(found[broker].configs) for broker in sorted(broker_ids) if self.cluster.is_alive(broker)}

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        self.listed = super().reassignments()
        return self.listed

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        for key, target in sorted(targets.items()):
            self.asked.append(f"cancels {key}" if target is None else f"submits {key} to {list(target)}")

        def request() -> Mapping[TopicPartition, Answer]:
            self.rules.reassign(self, targets)
            # Whoever has asked for something else since may ask again for what came before it.
            older = {one for one in self.world.answered if one[0] in set(map(str, targets))}
            self.world = replace(self.world, answered=self.world.answered - older)
            return SimulatedAdmin.reassign(
                self, targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed
            )

        named = tuple((key, target and tuple(target)) for key, target in sorted(targets.items()))
        late = ("reassign", named, is_replication_factor_change_allowed)
        answers = self._through("reassign", list(targets), request, late)
        taken = {(str(key), tuple(target)) for key, target in targets.items() if target and answers[key].is_ok}
        self.world = replace(self.world, answered=self.world.answered | taken)
        return answers

    def elect_preferred_leaders(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        self.asked.append(f"elects {', '.join(map(str, topic_partitions))}")

        def request() -> Mapping[TopicPartition, Answer]:
            self.rules.elect(self, topic_partitions)
            return SimulatedAdmin.elect_preferred_leaders(self, topic_partitions)

        late = ("elect", tuple(topic_partitions))
        return self._through("elect_preferred_leaders", topic_partitions, request, late)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        if is_validated_only:
            return SimulatedAdmin.alter_topic_configs(self, changes, is_validated_only=True)
        for name, keys in sorted(changes.items()):
            self.asked.append(f"topic {name}: {', '.join(map(_short, keys))}")

        def request() -> Mapping[str, Answer]:
            self.rules.topic_configs(self, changes)
            return SimulatedAdmin.alter_topic_configs(self, changes)

        return self._through("alter_topic_configs", list(changes), request)

    def alter_broker_configs(self, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
        self._check_alive(broker_id)
        self.asked.append(f"broker {broker_id}: {', '.join(map(_short, changes))}")

        def request() -> Mapping[int, Answer]:
            self.rules.broker_configs(self, broker_id, changes)
            return {broker_id: SimulatedAdmin.alter_broker_configs(self, broker_id, changes)}

        return self._through("alter_broker_configs", [broker_id], request)[broker_id]

    def _through(
        self, name: str, items: Collection[K], request: Callable[[], Mapping[K, Answer]], late: tuple[object, ...] = ()
    ) -> Mapping[K, Answer]:
        """Send a write, with whatever befalls it."""
        fate = self._arrives(name)
        if fate == OTHER_CONTROLLER:
            return dict.fromkeys(items, Answer("NOT_CONTROLLER"))
        if fate == LATE:
            self.world = replace(self.world, late=late)
            raise OutcomeUnknown(f"{name}: the connection broke")
        answers = request()
        self._leaves(name, fate)
        return answers

    def _before(self, name: str) -> Answer | None:
        if self.is_counted or name in WRITES - {"keep"}:
            return None  # `_as_shown`, or `_through`, has looked after it
        fate = self._arrives(name)
        if name == "keep":
            self.fate_of_keep = fate
        return None

    def _after(self, name: str) -> Answer | None:
        if name == "keep":
            self._leaves(name, self.fate_of_keep)
        return None

    def _arrives(self, name: str) -> str | None:
        """Count a call, let happen what happens before it, and return what is to happen after it."""
        number = len(self.calls)
        self.calls.append(name)
        one = self.disturbance
        if one is None or one.at != number:
            return None
        self.has_acted = True
        if one.event is not None:
            self.happens(one.event)
            return None
        if one.what == LOST:
            raise ClusterUnavailable(f"{name}: no answer")
        return one.what

    def _leaves(self, name: str, fate: str | None) -> None:
        if fate == UNANSWERED:
            raise OutcomeUnknown(f"{name}: no answer")
        if fate == KILLED:
            raise Killed(name)

    def _as_shown(self, name: str, read: Callable[[], T]) -> T:
        """Return what brokers show of the cluster."""
        self._before(name)
        now, self.cluster = self.cluster, self.world.shown or self.cluster
        self.is_counted = True
        try:
            return read()
        finally:
            self.cluster, self.is_counted = now, False

    def _tick(self) -> None:
        self.happens(self.passing)

    def _become(self, cluster: Cluster) -> None:
        self.cluster = cluster


class Executor:
    """A plan's run, turn by turn."""

    def __init__(self, plan: Plan, rules: "Rules") -> None:
        self.plan = plan
        self.rules = rules
        self.paths = paths_of(plan)

    def starts(self, state: State, passing: Callable[[World], World], disturbance: Disturbance | None = None) -> Done:
        """Start a process: it runs to before its first turn."""
        admin = ModelAdmin(state.world, self.rules, disturbance, passing)
        names = vars(run_module)
        own, names["Run"] = names["Run"], PausedRun
        try:
            return self._ended(admin, lambda: run_plan(self.plan, admin, MemoryJournal()))
        finally:
            names["Run"] = own

    def cancels(self, state: State, passing: Callable[[World], World], disturbance: Disturbance | None = None) -> Done:
        """Cancel the plan, from its start to its end."""
        admin = ModelAdmin(state.world, self.rules, disturbance, passing)
        return self._ended(admin, lambda: cancel_run(self.plan, admin, MemoryJournal()))

    def turns(
        self,
        state: State,
        passing: Callable[[World], World],
        disturbance: Disturbance | None = None,
        *,
        is_stopped: bool = False,
    ) -> Done:
        """Take a process up again, and let it have its turn; where it `is_stopped`, by a signal, it ends in order."""
        assert state.process is not None
        admin = ModelAdmin(state.world, self.rules, None, passing)
        session = Session(admin, MemoryJournal(), self.paths)
        session.lock = admin.lock(purpose_of_run(self.plan.id), digest=self.plan.digest)
        admin.calls.clear()
        admin.disturbance = disturbance
        for name, value in zip(CARRIED, state.process.session, strict=True):
            setattr(session, name, _own(value))
        reason = "SIGTERM" if is_stopped else None
        run = PausedRun(session, Gate(session, None, lambda: reason, NOTHING_DECLARED), None, state.process.index)
        run.resumed_at, run.turns = state.process.index, 1
        for name, value in zip(RUN_CARRIED, state.process.run, strict=True):
            setattr(run, name, value)
        return self._ended(admin, lambda: run.go(is_clear=False))

    def _ended(self, admin: ModelAdmin, act: Callable[[], RunResult]) -> Done:
        process, ended, told, result = None, "", "", None
        try:
            result = act()
            ended = str(result.state)
        except Paused as pause:
            process = _process(pause, admin.model_clock.now() - NOW)
        except Killed:
            pass
        except ReconcilerError as error:
            ended, told = error.code, str(error)
        if result is not None:
            told = "\n".join([*result.messages, *map(str, result.leftover_throttles)])
        world = admin.now_world
        if process is None:
            world = replace(world, answered=frozenset())
        if admin.model_clock.ticks:
            # Who waits has seen all that there is to throttle, and who waits again has had the time to do it.
            seen = {f"{one}, seen" for one in world.excused if not one.endswith(", seen")}
            unseen = world.excused & {f"broker {broker}" for broker in admin.dead}
            world = replace(world, excused=frozenset({*seen, *unseen}))
        state = State(world, process, ended)
        return Done(
            state, admin.calls, admin.asked, admin.model_clock.ticks, admin.writes, told, has_acted=admin.has_acted
        )


def _process(pause: Paused, passed: timedelta) -> Process:
    """Return what a paused run keeps, `passed` later."""
    run, session = pause.run, pause.run.session
    assert run.memory is not None
    aged = _aged(run.memory, passed, session.paths.plan.timeout_seconds)
    outage = run.outage_since and _since(run.outage_since, passed, OUTAGE)
    kept = tuple(_own(getattr(session, name)) for name in CARRIED)
    ran = (aged, outage, run.is_record_written)
    known = {one.name: getattr(aged, one.name) for one in fields(aged) if one.name != "histories"}
    known |= {str(key): one for key, one in sorted(aged.histories.items())}
    told = tuple((name, _canonical(value)) for name, value in known.items())
    return Process(pause.index, kept, ran, (told, _canonical(kept), _canonical(ran[1:]), pause.index), told)


def _canonical(value: object) -> object:
    """Return a value in a form that is equal for all that are alike: a time as its age, a problem as its code."""
    form = value
    match value:
        case datetime():
            form = int((NOW - value).total_seconds())
        case RunRecord():
            form = value.written()
        case Problem():
            form = value.code
        case RecordForm():
            form = value.name
        case TopicPartition() | StrEnum():
            form = str(value)
        case Mapping():
            form = tuple(sorted(((_canonical(key), _canonical(one)) for key, one in value.items()), key=str))
        case set() | frozenset():
            form = tuple(sorted(map(_canonical, value), key=str))
        case tuple():
            form = tuple(map(_canonical, value))
        case History() | Attempt() | BadDisk() | Entry() | ThrottleRecord() | RunThrottles() | KeptRecord():
            form = tuple(_canonical(getattr(value, one.name)) for one in fields(value))
    return form


def _own(value: object) -> object:
    """Return a copy of what a turn may change in place."""
    if isinstance(value, RunThrottles):
        own: dict[str, Any] = {one.name: _own(getattr(value, one.name)) for one in fields(value)}
        return replace(value, **own)
    return dict(value) if type(value) is dict else set(value) if type(value) is set else value


def _aged(memory: StageMemory, passed: timedelta, timeout: int) -> StageMemory:
    """Return the memory that much later, as of NOW; what is older than anybody asks for is no older."""
    histories = {key: _aged_history(one, passed) for key, one in memory.histories.items()}
    attempts = {
        item: Attempt(min(one.count, max(ELECTION_ATTEMPTS, THROTTLE_TRIES)), max(NOW, one.quiet_until - passed))
        for item, one in memory.attempts.items()
    }
    return replace(
        memory,
        started_at=_since(memory.started_at, passed, SETTLE),
        progressed_at=_since(memory.progressed_at, passed, timedelta(seconds=timeout)),
        unreached_since={broker: _since(at, passed, DEAD) for broker, at in memory.unreached_since.items()},
        fenced_since={broker: _since(at, passed, DEAD) for broker, at in memory.fenced_since.items()},
        leaderless_since={key: _since(at, passed, DEAD) for key, at in memory.leaderless_since.items()},
        bad_disks={
            broker: replace(one, since=_since(one.since, passed, DEAD)) for broker, one in memory.bad_disks.items()
        },
        histories=histories,
        attempts=attempts,
        polls=0,
    )


def _aged_history(one: History, passed: timedelta) -> History:
    quiet = one.quiet_until and one.quiet_until - passed
    return replace(
        one,
        quiet_until=quiet if quiet is not None and quiet > NOW else None,
        attempts=min(one.attempts, ATTEMPTS),
        off_since=one.off_since and _since(one.off_since, passed, UNCLEAR),
        lagging_since=one.lagging_since and _since(one.lagging_since, passed, SETTLE),
    )


def _since(at: datetime, passed: timedelta, longest: timedelta) -> datetime:
    return max(at - passed, NOW - longest)


def _short(change: ConfigChange) -> str:
    return f"{change.operation} {change.key.replace('replication.throttled.', '')} {change.value}".strip()
