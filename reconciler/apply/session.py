"""Holds the shared context of one run: admin port, journal, what was seen, what was written."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from reconciler.admin.port import Admin, Answer, Lock
from reconciler.admin.waits import waiting_for
from reconciler.apply.answers import NO_RIGHT, told_answer
from reconciler.apply.journal import Journal
from reconciler.apply.observed import Observed, look
from reconciler.apply.partition_path import PlanPaths
from reconciler.apply.run_record import KeptRecord, RecordForm, RunRecord
from reconciler.apply.standings import tally
from reconciler.apply.throttles import (
    Entry,
    Items,
    Key,
    ThrottleRecord,
    leftover_problems,
    our_rates,
    rate_bounds,
    undecided_problems,
)
from reconciler.model.cluster import Cluster
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr
from reconciler.model.lock import OFFSETS_TOPIC
from reconciler.model.problem import ClusterUnavailable, MissingRight, Problem, ReconcilerError
from reconciler.model.run import Outcome, RunEnded, RunEvent, RunResult, RunState, StoppedEarly
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.model.tally import Tally
from reconciler.model.topic_partition import TopicPartition

T = TypeVar("T")

TRIES = 5
"""How often a request that may be repeated is sent: with its pauses a new controller is there by then."""

NOT_KEPT = (
    "no record of this run is kept in the cluster: {why}. It goes on; but were this machine to die, only its journal "
    "here could tell what to clean up (KR459)"
)

LONGEST_PAUSE = 30.0  # seconds


@dataclass(slots=True)
class RunThrottles:
    """Holds a run's throttles and cordons: those on the cluster, the values before, Kafka's confirmations."""

    on: ThrottleRecord = field(default_factory=ThrottleRecord)
    """What is on the cluster because of this plan."""
    taken_off: ThrottleRecord = field(default_factory=ThrottleRecord)
    """What Kafka said it has put back for this session: a look afterwards has to show it."""
    first_rates: dict[tuple[int, str], str | None] = field(default_factory=dict)
    """The rates as this run first saw them: a later look may see its own."""
    first_lists: dict[tuple[str, str], str | None] = field(default_factory=dict)
    earlier_lists: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    """Those that earlier runs of the plan extended, by the journal."""
    confirmed_rates: dict[tuple[int, str], str] = field(default_factory=dict)
    """What Kafka said it has set for this run; a read may be older."""
    confirmed_items: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """The brokers that this run has cordoned, as far as it could."""
    recorded: ThrottleRecord = field(default_factory=ThrottleRecord)
    """What only the record in the cluster says is on, or was there before: `doctor --fix throttles` asks first."""
    undecided: Mapping[Key, Entry] = field(default_factory=dict)
    """The plan's own values whose owner the cluster does not show, by key."""


class Belief(Enum):
    """How far the record in the cluster is believed: others can write it."""

    NOTHING = auto()
    """It is a hint: nothing is put back, or taken off, because of it alone."""
    TO_TAKE_OFF = auto()
    """Somebody was shown what it names, and said yes: that is taken off."""
    ALL = auto()
    """The same, and what it says was there before is put back."""


@dataclass(slots=True)
class Session:
    """What a run holds while it works."""

    admin: Admin
    journal: Journal
    paths: PlanPaths
    notify: Callable[[str], None] = lambda _text: None
    """Called with what somebody who waits for the run should know at once."""
    has_log_dirs: bool = False
    """New replicas are made in the log dirs that the plan predicts."""
    throttles: RunThrottles = field(default_factory=RunThrottles)
    lock: Lock | None = None
    """The cluster's, once it is held."""
    record: RunRecord | None = None
    """The record of this plan's run that stands in the cluster, and may be written over."""
    other_record: KeptRecord = field(default_factory=KeptRecord)
    """Another text that stood there, of another run or none that can be read: it is put back when this run ends."""
    record_forms: tuple[RecordForm, ...] = tuple(RecordForm)
    """The forms of the record that may fit, the longest first; none: no record can be written there."""
    belief: Belief = Belief.NOTHING
    rate: int | None = None
    """What the run was asked to throttle to meanwhile, in bytes per second."""
    other_rates: Items = frozenset()
    """What runs have set beside the plan's own rates."""
    min_isr: int | None = None
    partition_counts: dict[str, int] = field(default_factory=dict)
    writes: int = 0
    stage: int = 0
    """The number of the current stage; 0 before the first."""
    is_journal_broken: bool = False
    stages_done: int = 0
    seen: Observed | None = None
    """All that was looked at, each topic as it was last."""
    withdrawn: set[TopicPartition] = field(default_factory=set)
    """The partitions whose moves were taken back."""
    messages: list[str] = field(default_factory=list)
    leftover_throttles: list[Problem] = field(default_factory=list)
    started_at: datetime = field(init=False)
    rate_bounds: tuple[int, int] = field(init=False)
    """The least and the greatest rate that this run may be asked for, in bytes per second."""

    def __post_init__(self) -> None:
        self.rate_bounds = rate_bounds(self.paths.plan)
        self.started_at = self.now()

    def now(self) -> datetime:
        """Return the time."""
        return self.admin.clock.now()

    def pause(self, attempt: int, why: object = "the last one failed") -> None:
        """Let time pass before another try: longer each time."""
        with waiting_for(f"another try: {why}"):
            self.admin.clock.sleep(min(LONGEST_PAUSE, 2.0**attempt))

    def say(self, text: str) -> None:
        """Tell at once, and again in the result."""
        self.messages.append(text)
        self.notify(text)

    def write_event(self, step: str, outcome: Outcome, **detail: object) -> None:
        """Write an event to the journal; after one that could not be written, none: the run only puts things back."""
        if self.is_journal_broken:
            return
        try:
            self.journal.append(RunEvent(self.now(), self.stage, step, outcome, detail))
        except Exception:
            self.is_journal_broken = True
            raise

    def look(
        self, topics: Collection[str], *, with_configs_of: Collection[str] = (), has_disks: bool = True
    ) -> Observed:
        """Observe these topics of the plan, every reassignment and the brokers.

        Without `has_disks` no broker is asked what its log dirs hold.
        """
        ids, dir_moves = self.paths.plan.topic_ids, self.paths.dir_moves if has_disks else ()
        observed = look(self.admin, topics, ids=ids, with_configs_of=with_configs_of, dir_moves=dir_moves)
        self.seen = observed if self.seen is None else self.seen.then(observed, topics)
        for name, count in sorted((name, len(topic.partitions)) for name, topic in observed.topics.items()):
            self._count(name, count)
        return observed

    def _count(self, topic: str, count: int) -> None:
        """Tell of partitions that somebody else added since the run first saw their topic."""
        known = self.partition_counts.setdefault(topic, max(count, self.paths.planned_partitions(topic)))
        if count > known:
            self.partition_counts[topic] = count
            text = f"topic {topic}: partitions {known} -> {count} while this run went on: somebody else added them"
            self.say(f"{text}, they were not touched; plan again to see to them")

    def brokers_min_isr(self, observed: Observed) -> int:
        """Return the brokers' own min ISR, for topics without one; asked once a run, 1 where it may not be seen."""
        if self.min_isr is None:
            alive = [broker for broker in sorted(observed.brokers) if observed.is_alive(broker)]
            with suppress(MissingRight):
                self.min_isr = brokers_min_isr(Cluster(""), self.admin.broker_settings(alive, [MIN_ISR]))
        return self.min_isr or 1

    def write(self, request: Callable[[], T]) -> T:
        """Send a request that changes something, and count it."""
        self.writes += 1
        return request()

    @property
    def our_rates(self) -> Items:
        """Every value that runs of this plan set on brokers, or the run whose leftovers this one has taken over."""
        return our_rates(self.paths.plan) | self.other_rates

    def throttle_to(self, rate: int) -> None:
        """Go on as if the plan's throttle were that rate."""
        self.other_rates |= self.our_rates
        self.rate = rate
        self.paths = self.paths.throttled_to(rate)

    def write_record(self, *, is_over: bool = False) -> None:
        """Write the run's record to the cluster if it changed. It covers what is set, and what is about to be set.

        Without it a machine that knows nothing of the run cannot clean up after it; that this user may not write it is
        told, and the run goes on.
        """
        if self.lock is None or not self.record_forms:
            return
        throttles = self.throttles.on.with_before(self.throttles.recorded)
        over = replace(self.record, is_over=True, throttles=throttles) if is_over and self.record else None
        record = over or self._current_record(self.lock, is_over=is_over)
        answer = Answer()
        while self.record_forms:
            written = record.in_form(self.record_forms[0])
            if written == self.record:
                return
            answer = self.patiently(partial(self.lock.keep, written.written()))
            if answer.is_ok:
                self.record = written
                return
            # A form that was too large once is not sent a second time.
            self.record_forms = () if answer.error in NO_RIGHT else self.record_forms[1:]
        # An older record would say less than this run has done by now.
        erased = self.patiently(partial(self.lock.keep, ""))
        self.record = None if erased.is_ok else self.record
        lacking = f"this user lacks Read on topic {OFFSETS_TOPIC}"
        self.say(NOT_KEPT.format(why=lacking if answer.error in NO_RIGHT else told_answer(answer)))

    def erase_record(self) -> None:
        """Take the run's record out of the cluster, where nothing of it is left, and put back what stood there."""
        if self.record is not None and self.lock is not None:
            self.patiently(partial(self.lock.keep, self.other_record.text))
            self.record = None

    def _current_record(self, lock: Lock, *, is_over: bool) -> RunRecord:
        plan = self.paths.plan
        stage = plan.stages[self.stage - 1] if self.stage else None
        moves = stage.moves if isinstance(stage, ReassignStage) else ()
        inside = stage.moves if isinstance(stage, LogDirsStage) else ()
        led = self.paths.leaders_before(self.stage)
        firsts = {move.topic_partition: move.from_replicas[0] for move in moves}
        topics = {move.topic_partition.topic for move in moves} | {move.topic_partition.topic for move in inside}
        return RunRecord(
            plan_id=plan.id,
            cluster_name=plan.cluster_name,
            by=lock.holder,
            stage=self.stage,
            stages=len(plan.stages),
            is_over=is_over,
            rate=self.rate,
            ours=self.our_rates,
            throttles=self.throttles.on.with_before(self.throttles.recorded),
            moves=tuple(moves),
            dir_moves=inside,
            leaders={key: led[key] for key, first in firsts.items() if key in led and led[key] != first},
            topic_ids={name: plan.topic_ids[name] for name in sorted(topics & plan.topic_ids.keys())},
            other=self.other_record.text,
        )

    def patiently(self, request: Callable[[], T]) -> T:
        """Send a request that may be repeated, a few times while the cluster does not answer but may yet."""
        for attempt in range(TRIES - 1):
            try:
                return request()
            except ClusterUnavailable as error:
                if not error.is_passing:
                    raise
                self.pause(attempt, error)
        return request()

    def ending(self) -> dict[str, object]:
        """Return what an event that tells of the end says: leftover throttles, and how many moves stand how."""
        return {"leftoverThrottles": [str(one) for one in self.leftover_throttles], "moves": self.tally.counts}

    @property
    def tally(self) -> Tally:
        """Where every move of the plan stands, as far as it was looked at."""
        return tally(self.paths, self.seen or Observed(), self.withdrawn)

    def result(
        self, state: RunState, left: Sequence[TopicPartition] | None = None, *, is_idle: bool = False
    ) -> RunResult:
        """Return what the run came to; `left`: if not every move that is not done."""
        known = self.tally if self.seen is not None else None
        undone = known.undone if known is not None and state not in {RunState.DONE, RunState.CANCELLED} else ()
        return RunResult(
            state=state,
            stages_done=self.stages_done,
            stages=len(self.paths.plan.stages),
            writes=self.writes,
            seconds=round((self.now() - self.started_at).total_seconds(), 3),
            messages=tuple(self.messages),
            leftover_throttles=(*self.leftover_throttles, *undecided_problems(self.throttles.undecided)),
            left=undone if left is None else tuple(sorted(left)),
            tally=known,
            is_idle=is_idle,
            undoes=self.paths.plan.source.rolls_back,
        )


def with_result(error: ReconcilerError, result: RunResult) -> ReconcilerError:
    """Return the error with what the run came to, and its text with what the run leaves behind."""
    tail = [*result.messages, *(str(one) for one in result.leftover_throttles)]
    if not isinstance(error, RunEnded):
        error.args = ("\n".join([str(error), *tail]),)
        return error
    moves = f"; {result.tally}" if result.tally is not None and result.tally.moves else ""
    stands = f"{result.stages_done} of {result.stages} stages done{moves}"
    return type(error)("\n".join([str(error), *tail, stands]), code=error.code, result=result)


def ended_at_once(session: Session, left: Sequence[TopicPartition] | None = None) -> StoppedEarly:
    """Return the end of whatever may not even put things back: its messages, and throttles that may still be on."""
    session.leftover_throttles = leftover_problems(session.throttles.on)
    session.is_journal_broken = True
    lines = ["ended without waiting: what this run left may still be there", *session.messages]
    text = "\n".join([*lines, *(str(one) for one in session.leftover_throttles)])
    session.notify(text)  # at once: connections, and the lock, may take their time to end
    return StoppedEarly(text, code="KR715", result=session.result(RunState.STOPPED, left))
