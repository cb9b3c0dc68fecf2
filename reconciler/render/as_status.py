"""Prints where a run stands: counts first, then the slowest moves; what is long only where asked for."""

from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.model.cluster import ALTER_LOG_DIRS_RATE, BROKER_THROTTLES, CORDONED_LOG_DIRS
from reconciler.model.move import DirMove, Move
from reconciler.model.status import DirMoveStatus, MoveStatus, Phase, Status
from reconciler.model.tally import Standing
from reconciler.model.words import counted, duration, named_some, rate, size
from reconciler.render.as_text import some, table
from reconciler.render.escape import visible
from reconciler.render.facts import quorum_line, replica_list, start_lines

_SLOWEST = 5
_WORDS = {
    Phase.RUNNING: "running",
    Phase.STOPPED: "stopped",
    Phase.DEAD: "dead",
    Phase.DONE: "done",
    Phase.ROLLED_BACK: "rolled back",
}


def status(seen: Status, *, has_all: bool = False) -> str:
    """Return where a run stands, what is throttled, what somebody else moves, and which brokers are safe to stop.

    `has_all`: every move in flight and every throttle, not the slowest few and a summary.
    """
    lines = [f"{visible(seen.cluster_name)}: {in_short(seen)}", *_in_flight(seen, has_all=has_all)]
    lines += _throttle_lines(seen) if has_all else _throttles(seen)
    lines += [f"locked by {visible(seen.locked_by)}"] if seen.locked_by else list(_recorded(seen))
    lines += (
        [f"rate asked for: {rate(seen.throttle_bytes_per_second)}"]
        if seen.throttle_bytes_per_second is not None
        else []
    )
    lines += [f"not ours: {key} is being reassigned to {replica_list(to)}" for key, to in seen.foreign.items()]
    lines.append(quorum_line(seen.quorum))
    lines += start_lines(seen.start)
    lines.append(f"safe to stop, one at a time: {', '.join(map(str, seen.safe_to_stop)) or 'none'}")
    lines += [
        f"not safe to stop: {broker_id} ({some(map(str, keys))})" for broker_id, keys in sorted(seen.blocking.items())
    ]
    return "\n".join([*lines, *_left_over(seen), *_next(seen)]) + "\n"


def _left_over(seen: Status) -> Iterator[str]:
    """Yield what a run that is not on has left of throttles, and the command that takes it off."""
    if seen.leftovers and not seen.is_running and not seen.in_flight:
        yield f"left over: {visible(named_some(seen.leftovers))}; reconciler doctor --fix throttles takes it off"


def in_short(seen: Status) -> str:
    """Return what has become of the run."""
    phase = seen.state
    if phase is None:
        return "no run is known here."
    if phase is Phase.NOT_BEGUN:
        unknown = "no run of it is known here, and nothing of it is done or in flight"
        return f"plan {seen.plan_id}, {counted(seen.stages, 'stage')}: {unknown}."
    undoes = f", the rollback of plan {visible(seen.undoes)}" if seen.undoes is not None else ""
    parts = [counted(seen.stages, "stage") if seen.stage is None else f"stage {seen.stage} of {seen.stages}"]
    parts += [seen.tally.summary] if seen.tally is not None and seen.tally.moves else []
    if seen.is_rolled_back:
        parts = ["of its moves nothing is on the cluster any more"]
    state = "done" if phase is Phase.ROLLED_BACK and undoes else _WORDS[phase]
    back = f" Plan {visible(seen.undoes)} is rolled back." if seen.undoes and phase is Phase.ROLLED_BACK else ""
    return f"run {seen.plan_id}{undoes}, {state}: {', '.join(parts)}.{back}"


def _recorded(seen: Status) -> Iterator[str]:
    if seen.started_by is not None:
        yield f"started by {visible(seen.started_by)}, at {visible(seen.started_at or '')}"


def _in_flight(seen: Status, *, has_all: bool) -> Iterator[str]:
    """Yield what the moves in flight have copied, and those that will take longest."""
    if not seen.in_flight:
        return
    parts = [f"{size(seen.copied_bytes)} of {size(seen.total_bytes)} copied"]
    parts += [rate(seen.bytes_per_second)] if seen.bytes_per_second else []
    parts += [f"about {duration(seen.eta_seconds)} left"] if seen.eta_seconds else []
    shown = seen.slowest if has_all else seen.slowest[:_SLOWEST]
    more = f"; the slowest of {len(seen.in_flight)}, -v lists all" if len(shown) < len(seen.in_flight) else ""
    yield f"in flight: {', '.join(parts)}{more}"
    yield from table([_cells(each) for each in shown])


def _cells(moving: MoveStatus | DirMoveStatus) -> tuple[str, ...]:
    move = moving.move
    match move:
        case Move():
            way = f"{replica_list(move.from_replicas)} -> {replica_list(move.to_replicas)}"
        case DirMove():
            way = f"broker {move.broker}: {visible(move.from_dir)} -> {visible(move.to_dir)}"
    parts = [f"{size(moving.copied_bytes)} of {size(move.bytes)}"]
    if moving.bytes_per_second == 0 and moving.remaining_bytes:
        parts.append("no bytes since the last look")
    parts += [rate(moving.bytes_per_second)] if moving.bytes_per_second else []
    parts += [f"about {duration(moving.eta_seconds)} left"] if moving.eta_seconds else []
    return "~", str(move.topic_partition), way, "", ", ".join(parts)


def _throttles(seen: Status) -> Iterator[str]:
    """Yield how many brokers have which rate, and how many topics have lists; which brokers are cordoned."""
    rates = [_rates(keys) for keys in seen.broker_throttles.values()]
    found = Counter(rates_of_one for rates_of_one in rates if rates_of_one)
    parts = [f"{counted(count, 'broker')} at {' and '.join(each)}" for each, count in sorted(found.items())]
    parts += [counted(len(seen.topic_throttles), "topic")] if seen.topic_throttles else []
    if parts:
        yield f"throttled: {', '.join(parts)}; -v lists them"
    cordoned = [str(owner) for owner, keys in seen.broker_throttles.items() if CORDONED_LOG_DIRS in keys]
    if cordoned:
        yield f"cordoned: {'broker' if len(cordoned) == 1 else 'brokers'} {some(cordoned)}"


def _rates(keys: Mapping[str, str]) -> tuple[str, ...]:
    """Return the rates of one broker in words, each once."""
    values = sorted({value for key, value in keys.items() if key in (*BROKER_THROTTLES, ALTER_LOG_DIRS_RATE)})
    return tuple(rate(int(value)) if value.isdecimal() else visible(value) for value in values)


def _throttle_lines(seen: Status) -> Iterator[str]:
    for broker, keys in seen.broker_throttles.items():
        yield _throttle_line(f"broker {broker}", keys)
    for topic, keys in seen.topic_throttles.items():
        yield _throttle_line(f"topic {visible(topic)}", keys)


def _throttle_line(owner: str, keys: Mapping[str, str]) -> str:
    what = "cordon" if [*keys] == [CORDONED_LOG_DIRS] else "throttle"
    return f"{what} on {owner}: {', '.join(f'{key}={visible(value)}' for key, value in sorted(keys.items()))}"


def _next(seen: Status) -> Iterator[str]:
    """Yield what an operator can do about a run that nobody runs."""
    if seen.state not in {Phase.STOPPED, Phase.DEAD}:
        return
    foreign = seen.tally.of(Standing.FOREIGN) if seen.tally is not None else ()
    if foreign:
        yield f"next: plan again: {named_some(map(str, foreign))} is not where the plan left it, so apply refuses it"
        return
    on = "apply" if seen.undoes is None else "cancel --rollback"
    back = "cancel takes back what is in flight" if seen.in_flight else "cancel puts throttles back"
    undo = (
        "cancel --rollback undoes what is done" if seen.undoes is None else f"an apply of plan {seen.undoes} undoes it"
    )
    yield f"next: {on} goes on with it, {back if seen.state is Phase.DEAD else undo}"
