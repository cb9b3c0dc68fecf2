"""Performs one step: sends its request, takes the answers in, and records it.

No answer is no failure: the controller may have done everything (KAFKA-16015). So `prepared` notes the request before
it is sent, and the next turn looks at the cluster before anything is sent again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from reconciler.admin.port import Answer
from reconciler.apply.answers import ALREADY, CORDONED, TRANSIENT, refusal, refused, told_answer
from reconciler.apply.crash import crash_point
from reconciler.apply.session import Session
from reconciler.apply.stage_memory import DEAD, SETTLE, StageMemory
from reconciler.apply.steps import (
    ChangeConfigs,
    ChooseLogDirs,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    FailRun,
    FinishStage,
    GrowTopics,
    LeaveAlone,
    LeaveDirAlone,
    PutThrottles,
    Request,
    Step,
    SubmitMoves,
    TakeThrottlesOff,
    TopicsRequest,
    Wait,
    Warn,
    WithdrawMoves,
)
from reconciler.apply.throttles import wanted_rates
from reconciler.apply.throttling import put_cordons, put_throttles, take_throttles_off
from reconciler.apply.topic_changes import change_key, config_changes, what
from reconciler.apply.withdraw import withdraw
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable, Problem
from reconciler.model.run import Outcome, RunFailed
from reconciler.model.topic_partition import TopicPartition

K = TypeVar("K")

UNKNOWN = timedelta(seconds=15)
"""How long a request without an answer may take to show before it is repeated: a new controller takes about 2 s."""
SHOWN = timedelta(seconds=10)
"""How long a broker may take to show a copy that it has begun between its log dirs."""
LED = timedelta(seconds=10)
"""How long a leader may take to show before it is elected again."""
UNREACHED = timedelta(seconds=5)
"""How soon a broker that did not answer is asked again to throttle."""
THROTTLE_TRIES = 5
"""How often a stage's throttle is asked for: a stage that cannot be throttled must not begin."""


def prepared(memory: StageMemory, step: Step, now: datetime) -> StageMemory:
    """Return the memory before a step is done: should its answer get lost, the next turn looks before it repeats."""
    match step:
        case SubmitMoves():
            return memory.submitted(step.moves, now + UNKNOWN)
        case ChooseLogDirs():
            return memory.chosen(step.moves, now + UNKNOWN)
        case ElectLeaders():
            return memory.attempted((str(election.topic_partition) for election in step.elections), now + LED)
        case CreateTopics() | GrowTopics() | ChangeConfigs() | DeleteTopics():
            return memory.attempted((change_key(change) for change in step.changes), now + UNKNOWN)
        case PutThrottles():
            return memory.attempted(("throttle",), now + UNREACHED)
        case _:
            return memory


def perform(session: Session, memory: StageMemory, step: Step) -> StageMemory:
    """Do a step and return the memory after it."""
    match step:
        case Wait():
            crash_point("poll")
            session.admin.clock.sleep(step.seconds)
        case LeaveAlone():
            session.write_event(
                "leaveAlone", Outcome.FAILED, partition=str(step.topic_partition), why=step.problem.message
            )
            session.notify(str(step.problem))
            return memory.leaving_alone(step.topic_partition, step.problem)
        case LeaveDirAlone():
            session.write_event("leaveAlone", Outcome.FAILED, replica=str(step.move), why=step.problem.message)
            session.notify(str(step.problem))
            return memory.with_dir(step.move, replace(memory.dir_history(step.move), problem=step.problem))
        case Warn():
            session.say(str(step.problem))
            session.write_event("warning", Outcome.ONGOING, why=step.problem.message)
            return replace(memory, warned=memory.warned | {step.key})
        case FailRun():
            raise RunFailed(step.problem.message, code=step.problem.code)
        case FinishStage():
            pass
        case _:
            return _requested(session, memory, step)
    return memory


def _requested(session: Session, memory: StageMemory, step: Request) -> StageMemory:
    match step:
        case PutThrottles():
            return _put_throttles(session, memory, step)
        case SubmitMoves() | ChooseLogDirs():
            return _moved(session, memory, step)
        case WithdrawMoves():
            return _withdraw(session, memory, step)
        case TakeThrottlesOff():
            crash_point("moves.done")
            take_throttles_off(session)
            return replace(memory, has_throttles_on=False)
        case ElectLeaders():
            return _elect(session, memory, step)
        case CreateTopics() | GrowTopics() | ChangeConfigs() | DeleteTopics():
            return _change_topics(session, memory, step)
        case _:
            assert_never(step)


def _moved(session: Session, memory: StageMemory, step: SubmitMoves | ChooseLogDirs) -> StageMemory:
    return _submit(session, memory, step) if isinstance(step, SubmitMoves) else _choose_dirs(session, memory, step)


def _put_throttles(session: Session, memory: StageMemory, step: PutThrottles) -> StageMemory:
    brokers = put_throttles(session, step.stage)
    has_throttles_on = session.throttles.on.has_throttles
    if brokers is not None:
        now, missing = session.now(), wanted_rates(step.stage).keys() - brokers
        unreached = {broker: memory.unreached_since.get(broker, now) for broker in sorted(missing)}
        return replace(
            memory,
            throttled_brokers=memory.throttled_brokers | brokers,
            unreached_since=unreached,
            hidden=frozenset(broker for broker, since in unreached.items() if now - since >= DEAD),
            has_throttles_on=has_throttles_on,
        )
    if memory.count("throttle") >= THROTTLE_TRIES:
        text = f"the throttle of stage {step.stage.number} could not be set in {THROTTLE_TRIES} tries"
        raise RunFailed(f"{text}; look at the controller's log, then {session.paths.again}", code="KR704")
    session.pause(memory.count("throttle"))
    return replace(memory, has_throttles_on=has_throttles_on)


def _submit(session: Session, memory: StageMemory, step: SubmitMoves) -> StageMemory:
    targets = {move.topic_partition: move.to_replicas for move in step.moves}
    _choose_log_dirs(session, step.moves)
    crash_point("reassign.before")
    answers = session.write(
        lambda: session.admin.reassign(targets, is_replication_factor_change_allowed=step.is_factor_change)
    )
    crash_point("reassign.sent")
    now = session.now()
    for key, replicas in targets.items():
        answer = answers.get(key, Answer())
        if answer.is_ok:
            memory = memory.answered(key, now + SETTLE)
        elif answer.error in TRANSIENT:
            memory = memory.answered(key, now + _backoff(memory.history(key).attempts))
        else:
            text = f"Kafka refused to move {key} to {list(replicas)}: {told_answer(answer)}"
            hint = "put that right, then plan again: this plan would ask for the same"
            memory = memory.leaving_alone(key, Problem("KR704", f"{text}; {hint}"))
    # Kafka answers for each partition by itself: some may be on their way where others were refused.
    moves = {str(key): list(replicas) for key, replicas in targets.items()}
    session.write_event("reassign", Outcome.DONE, moves=moves, refused=_errors(answers))
    crash_point("reassign.recorded")
    # Cordons wait for a move in flight: it tells a machine without this run's journal whose cordon it is.
    if any(answer.is_ok for answer in answers.values()):
        put_cordons(session, session.stage)
    return memory


def _choose_log_dirs(session: Session, moves: Iterable[Move]) -> None:
    """Tell each destination of these moves, none of which has begun, where its new replicas go.

    Kafka remembers the choice for a replica that is not there yet (KIP-113) until the broker restarts, so it is told
    before each submission. Raises RunFailed where a broker has no such dir, ClusterUnavailable where one does not
    answer; nothing moves then.
    """
    plan = session.paths.plan if session.has_log_dirs else None
    for broker, choices in _log_dirs_of(moves, plan.predicted_log_dirs if plan is not None else {}).items():
        answers = session.write(lambda b=broker, c=choices: session.admin.choose_log_dirs(b, c))  # type: ignore[misc]
        # If a log dir was cordoned since, the broker picks another one.
        final = refused(answers, ignoring=TRANSIENT | {CORDONED})
        if final:
            raise refusal(f"the log dirs that the plan names on broker {broker}", final, session.paths.again)


def _log_dirs_of(
    moves: Iterable[Move], predicted: Mapping[TopicPartition, Mapping[int, str]]
) -> Mapping[int, Mapping[TopicPartition, str]]:
    """Return the log dir of each replica that these moves add, by broker: as the plan asks for, else as predicted."""
    found: defaultdict[int, dict[TopicPartition, str]] = defaultdict(dict)
    for move in moves:
        wanted = {**predicted.get(move.topic_partition, {}), **move.log_dirs}
        for broker in set(move.added) & set(wanted):
            found[broker][move.topic_partition] = wanted[broker]
    return dict(sorted(found.items()))


def _choose_dirs(session: Session, memory: StageMemory, step: ChooseLogDirs) -> StageMemory:
    """Have a broker copy replicas to other log dirs of its own; each answer is for one replica."""
    broker = step.moves[0].broker
    choices = {move.topic_partition: move.to_dir for move in step.moves}
    crash_point("dirs.before")
    answers = session.write(lambda: session.admin.choose_log_dirs(broker, choices))
    crash_point("dirs.sent")
    now = session.now()
    for move in step.moves:
        answer = answers.get(move.topic_partition, Answer())
        known = memory.dir_history(move)
        if answer.is_ok or answer.error in TRANSIENT:
            pause = SHOWN if answer.is_ok else _backoff(known.attempts)
            memory = memory.with_dir(move, replace(known, quiet_until=now + pause))
            continue
        text = f"broker {broker} refused to copy {move.topic_partition} to {move.to_dir}: {told_answer(answer)}"
        hint = f"see to that log dir, then {session.paths.again}, or plan again"
        memory = memory.with_dir(move, replace(known, problem=Problem("KR704", f"{text}; {hint}")))
    moves = {str(move.topic_partition): [move.from_dir, move.to_dir] for move in step.moves}
    session.write_event("logDirs", Outcome.DONE, broker=broker, moves=moves, refused=_errors(answers))
    crash_point("dirs.recorded")
    return memory


def _backoff(attempts: int) -> timedelta:
    return timedelta(seconds=min(30, 2**attempts))


def _errors(answers: Mapping[K, Answer]) -> dict[str, str]:
    return {str(key): told_answer(answer) for key, answer in answers.items() if not answer.is_ok}


def _withdraw(session: Session, memory: StageMemory, step: WithdrawMoves) -> StageMemory:
    more = f" (and {len(step.moves) - 1} more moves to it)" if len(step.moves) > 1 else ""
    session.notify(f"{step.problems[0]}{more}: taken back, the rest goes on")
    outcome = withdraw(session, step.moves)
    if outcome.unwritten is not None:
        raise outcome.unwritten
    if outcome.unanswered:
        raise ClusterUnavailable(outcome.unanswered)  # the next turn looks, and goes on with what is left
    for move, problem in zip(step.moves, step.problems, strict=True):
        key = move.topic_partition
        if key not in outcome.finished:
            fate = outcome.left.get(key, f"it went back to {list(move.from_replicas)}")
            memory = memory.leaving_alone(key, replace(problem, message=f"{problem.message}; {fate}"))
    return memory


def _elect(session: Session, memory: StageMemory, step: ElectLeaders) -> StageMemory:
    keys = [election.topic_partition for election in step.elections]
    crash_point("election.before")
    answers = session.write(lambda: session.admin.elect_preferred_leaders(keys))
    crash_point("election.sent")
    session.write_event("elect", Outcome.DONE, partitions=[str(key) for key in keys], refused=_errors(answers))
    final = refused(answers)
    if final:
        raise refusal("the election of preferred leaders", final, session.paths.again)
    return memory


def _change_topics(session: Session, memory: StageMemory, step: TopicsRequest) -> StageMemory:
    crash_point("topics.before")
    answers = session.write(lambda: _topic_answers(session, step))
    crash_point("topics.sent")
    names = {change.topic: change for change in step.changes}
    told = [f"{what(change)}: {name}" for name, change in names.items()]
    session.write_event("topics", Outcome.DONE, changes=told, refused=_errors(answers))
    # A repeat after a lost answer finds its own work there, and Kafka says so by an error.
    final = refused(answers, ignoring=ALREADY | TRANSIENT)
    if final:
        raise refusal("to change topics", final, "plan again: this plan would ask for the same")
    now = session.now()
    for name, change in names.items():
        item = change_key(change)
        is_retry = answers.get(name, Answer()).error in TRANSIENT
        memory = memory.quieted(item, now + (_backoff(memory.count(item)) if is_retry else SETTLE))
    return memory


def _topic_answers(session: Session, step: TopicsRequest) -> Mapping[str, Answer]:
    match step:
        case CreateTopics():
            return session.admin.create_topics(step.changes)
        case GrowTopics():
            return session.admin.create_partitions(step.changes)
        case ChangeConfigs():
            return session.admin.alter_topic_configs({change.topic: config_changes(change) for change in step.changes})
        case DeleteTopics():
            return session.admin.delete_topics([change.topic for change in step.changes])
        case _:
            assert_never(step)
