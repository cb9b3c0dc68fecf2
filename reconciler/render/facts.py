"""Says what a plan's totals mean, in words that text and Markdown share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.model.budget import WindowsNeeded
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import BrokerShare, Plan, TieredBytes, gap_percent
from reconciler.model.problem import BELOW_MIN_ISR, Location, Problem
from reconciler.model.stage import CopyingStage, ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.starting import Start
from reconciler.model.vitals import Quorum
from reconciler.model.words import counted, duration, labelled, number, percent, rate, size
from reconciler.render.escape import visible

_MOST_STARTED = 10
_LEAST_COMPARED = 60
"""Seconds: below, the rounding up of each stage says more than how they were packed."""


def kept_at_every_stage(plan: Plan) -> str:
    """Return what holds in between: each stage of a plan that is written was simulated first, and refused otherwise.

    A rollback goes back to lists that may break a rack rule, and says so. No plan keeps a min ISR that is above the
    replication factor: the warning names the topics.
    """
    is_below = any(each.code == BELOW_MIN_ISR for each in plan.warnings)
    min_isr = f"min ISR (but for {BELOW_MIN_ISR})" if is_below else "min ISR"
    return f"{'' if plan.source.rolls_back else 'racks and '}{min_isr} kept at every stage"


def undoes(plan: Plan) -> str:
    """Return which plan this one undoes, empty where it reaches a desired state."""
    return f"undoes plan {plan.source.rolls_back}" if plan.source.rolls_back else ""


def differences_stay(plan: Plan) -> str:
    """Return how many differences stay whatever the plan does."""
    return "1 difference stays" if len(plan.drift) == 1 else f"{len(plan.drift)} differences stay"


def reason(plan: Plan, move: Move | DirMove) -> str:
    """Return why a partition moves: the rule that asks for it, or that it goes back."""
    return "back" if plan.source.rolls_back else str(move.reason)


def is_size_known(plan: Plan) -> bool:
    """Whether the size of everything that the plan copies is known."""
    return plan.summary.is_size_known


def least_movement(plan: Plan) -> str:
    """Return what is known of plans that copy less: only what the proof carried by the plan covers is claimed."""
    claim = _least(plan)
    match plan.proof.tiered:
        case TieredBytes.LOCAL if claim:
            return f"{claim}; of tiered topics the local bytes count"
        case TieredBytes.UNTIERED if claim:
            return f"{claim}; of tiered topics counts what is not tiered yet (KIP-1023)"
        case _:
            return claim


def _least(plan: Plan) -> str:
    summary, proof = plan.summary, plan.proof
    if not summary.replica_moves:
        return "nothing is copied"
    if proof.objective == "replicas" and proof.value == summary.replica_moves:
        unknown = "some sizes are unknown"
        which = "way back copies" if plan.source.rolls_back else "plan can copy"
        return unknown if proof.gap_percent else f"no {which} fewer replicas; {unknown}"
    if not is_size_known(plan):
        return "some sizes are unknown"
    if proof.objective != "bytes" or proof.value != summary.bytes or not _is_bounded(plan):
        return ""
    if proof.gap_percent:
        return could_be_saved(proof.gap_percent)
    which = "plan with the same counts copies" if any(level.weight for level in proof.levels) else "plan can copy"
    return f"no {'way back copies' if plan.source.rolls_back else which} less"


def _is_bounded(plan: Plan) -> bool:
    """Whether the proof bounds what the plan copies: of measured loads within a budget nothing is proved."""
    return plan.budgeted is None or plan.budgeted.is_whole or any(level.prices for level in plan.proof.levels)


def within_budget(plan: Plan) -> tuple[str, ...]:
    """Return what the budget comes to, and what the whole plan would copy; nothing where there is no budget."""
    asked, told = plan.source.budget, plan.budgeted
    if asked is None or told is None:
        return ()
    budget = f"with a budget of {size(asked.bytes)}" if asked.bytes is not None else ""
    if asked.seconds is not None:
        budget = f"with a budget of {duration(asked.seconds)}"
    if told.is_whole:
        return (f"{budget}: enough for the whole plan",)
    ways = ", ".join(f"{way.measure} {max(0, int(way.share * 100))}% of the way" for way in told.ways)
    return (f"{budget}: {ways}; the whole plan copies {size(told.whole_bytes)}",)


def in_windows(found: WindowsNeeded | None, *, is_asked: bool = False) -> str:
    """Return how many windows the plan needs, and the throttle for fewer where there are fewer, or it `is_asked`."""
    if found is None:
        return ""
    told = f"The plan needs up to {counted(found.windows, 'window')} at {rate(found.present_bytes_per_second)}"
    if found.fewer >= found.windows and not is_asked:
        return f"{told}."
    if found.throttle_bytes_per_second is None:
        return f"{told}; no throttle is high enough for {number(found.fewer)}."
    needed = rate(found.throttle_bytes_per_second)
    return f"{told}; {counted(found.fewer, 'window')} would do with moves.throttle at {needed}."


def could_be_saved(gap_percent: float) -> str:
    """Return what a gap means: with all its digits, as a rounded one could be less than what can be saved."""
    return f"at most {percent(gap_percent / 100, 6)} of that could be saved"


def throttle(plan: Plan) -> str:
    """Return the throttle of the plan's moves: `at 50 MiB/s per broker`, or that there is none."""
    stages = [stage for stage in plan.stages if isinstance(stage, CopyingStage) and stage.bytes]
    rates = sorted({stage.throttle_bytes_per_second for stage in stages if stage.throttle_bytes_per_second})
    told = f"at {'/'.join(map(rate, rates))} per broker" if rates else "without a throttle"
    if not plan.cordoned:
        return told
    return f"{told}, {labelled('broker', plan.cordoned)} cordoned meanwhile"


def estimate(seconds: float) -> str:
    """Return an estimated time, empty where there is none."""
    return f"about {duration(seconds)}" if seconds else ""


def over_least(plan: Plan) -> str:
    """Return how the estimated time compares with what the busiest broker needs alone; empty where that says little."""
    summary = plan.summary
    if not summary.least_seconds or summary.estimated_seconds < _LEAST_COMPARED or not is_size_known(plan):
        return ""
    return f"{summary.estimated_seconds / summary.least_seconds:.2f} x what the busiest broker needs"


def balance_ranges(plan: Plan, *, arrow: str = "->", quoted: Callable[[str], str] = visible) -> tuple[str, ...]:
    """Return how counts and bytes per broker range before and after, leaving out what is not known."""
    before, after = plan.balance_before, plan.balance_after
    if not before or not after:
        return ()
    found = [
        f"replicas per broker {_range(_replicas(before))} {arrow} {_range(_replicas(after))}",
        f"leaders {_range(_leaders(before))} {arrow} {_range(_leaders(after))}",
    ]
    data_before, data_after = _bytes(before), _bytes(after)
    if data_before and data_after:
        found.append(f"fullest broker {size(max(data_before))} {arrow} {size(max(data_after))}")
    for name, rates in (("in", _bytes_in), ("out", _bytes_out), ("in from producers", _leader_bytes_in)):
        if rates(before) and rates(after):
            found.append(f"most bytes {name} {rate(max(rates(before)))} {arrow} {rate(max(rates(after)))}")
    found += fullest_disk(plan, quoted)
    return tuple(found)


def fullest_disk(plan: Plan, quoted: Callable[[str], str] = visible) -> tuple[str, ...]:
    """Return how full the fullest disk is at the worst moment of the run, nothing where that is unknown.

    It is a log dir where these are known, else all disks of a broker; `quoted` writes the dir's path.
    """
    shares = [
        (plan.disk_peak[id_] / total, id_, "")
        for id_, total in plan.disk_capacity.items()
        if total and id_ in plan.disk_peak and id_ not in plan.log_dirs
    ]
    dirs = [(id_, one) for id_, several in plan.log_dirs.items() for one in several if one.total_bytes]
    shares += [(one.peak_bytes / one.total_bytes, id_, one.path) for id_, one in dirs]
    if not shares:
        return ()
    share, broker_id, path = max(shares)
    if not path:
        return (f"fullest disks {percent(share)} at the worst moment",)
    is_predicted = any(to.get(broker_id) == path for to in plan.predicted_log_dirs.values())
    where = f"broker {broker_id}, {quoted(path)}{', predicted' if is_predicted else ''}"
    return (f"fullest log dir {percent(share)} at the worst moment ({where})",)


def move_count(reviewed: Plan) -> int:
    """Return how many moves the plan has, as its run and `status` count them; those that copy no replica too."""
    return sum(len(stage.moves) for stage in reviewed.stages if isinstance(stage, CopyingStage))


def stage_title(stage: Stage) -> str:
    """Return what a stage does, in one line without its number."""
    match stage:
        case TopicsStage():
            return counted(len(stage.changes), "topic change")
        case ElectStage():
            return counted(len(stage.elections), "preferred-leader election")
        case ReassignStage():
            copies = sum(len(move.added) for move in stage.moves)
            copied = f"{counted(copies, 'replica')} to copy" if copies else "nothing to copy"
            parts = [counted(len(stage.moves), "move"), copied]
            parts += [size(stage.bytes)] if stage.bytes else []
            parts += [counted(len(stage.elections), "preferred-leader election")] if stage.elections else []
            parts += [estimate(stage.estimated_seconds)] if stage.estimated_seconds else []
            return ", ".join(parts)
        case LogDirsStage():
            parts = [between_log_dirs(len(stage.moves), stage.bytes)]
            parts += [estimate(stage.estimated_seconds)] if stage.estimated_seconds else []
            return ", ".join(parts)


def between_log_dirs(moves: int, copied: int) -> str:
    """Return how much moves inside brokers: `3 replicas between log dirs, 40.0 GiB inside their brokers`."""
    where = "its broker" if moves == 1 else "their brokers"
    return f"{counted(moves, 'replica')} between log dirs, {size(copied)} inside {where}"


def least_inside(plan: Plan) -> str:
    """Return what is known of plans that copy less inside brokers; empty where nothing is copied there."""
    least, copied = plan.least_dir_bytes, plan.summary.dir_bytes
    if least is None or not copied:
        return ""
    how_far = "no plan can copy less there" if least >= copied else could_be_saved(gap_percent(copied, least))
    return f"{how_far}, by the planner's own bound"


def action_count(stages: Iterable[Stage]) -> int:
    """Return how many single things these stages do."""
    return sum(_actions(stage) for stage in stages)


def replica_list(replicas: Iterable[int]) -> str:
    """Return replicas in order, as Kafka writes them: `[2, 4, 6]`."""
    return f"[{', '.join(map(str, replicas))}]"


def place(at: Location | None, root: str = "") -> str:
    """Return `file:line` under that root, empty for no place; one on the command line is under no root."""
    if at is None or not at.file:
        return ""
    if at.file.startswith("--"):
        return str(at)
    return f"{root.rstrip('/')}/{at}" if root else str(at)


def by_weight(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems in a fixed order: by code, then place, then text."""
    return tuple(sorted(problems, key=lambda problem: (problem.code, problem.at or _NOWHERE, problem.message)))


_NOWHERE = Location("", 0)


def _actions(stage: Stage) -> int:
    match stage:
        case TopicsStage():
            return len(stage.changes)
        case ElectStage():
            return len(stage.elections)
        case ReassignStage():
            return len(stage.moves) + len(stage.elections)
        case LogDirsStage():
            return len(stage.moves)


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return number(low) if low == high else f"{number(low)}-{number(high)}"


def _replicas(shares: Mapping[int, BrokerShare]) -> list[int]:
    return [share.replicas for share in shares.values()]


def _leaders(shares: Mapping[int, BrokerShare]) -> list[int]:
    return [share.leaders for share in shares.values()]


def _bytes_in(shares: Mapping[int, BrokerShare]) -> list[int]:
    return [share.bytes_in_per_second for share in shares.values() if share.bytes_in_per_second is not None]


def _bytes_out(shares: Mapping[int, BrokerShare]) -> list[int]:
    return [share.bytes_out_per_second for share in shares.values() if share.bytes_out_per_second is not None]


def _leader_bytes_in(shares: Mapping[int, BrokerShare]) -> list[int]:
    known = (share.leader_bytes_in_per_second for share in shares.values())
    return [each for each in known if each is not None]


def _bytes(shares: Mapping[int, BrokerShare]) -> list[int]:
    known = [share.bytes for share in shares.values() if share.bytes is not None]
    return known if len(known) == len(shares) else []


def start_lines(order: Sequence[Start]) -> list[str]:
    """Return the dead brokers in the order in which to start them, with what each brings; nothing where none is."""
    if not order:
        return []
    lines = [f"  broker {one.broker_id}: {', '.join(_brought(one))}" for one in order[:_MOST_STARTED]]
    more = [f"  and {counted(len(order) - _MOST_STARTED, 'broker')} more: -o json has all"]
    return ["start in this order:", *lines, *(more if len(order) > _MOST_STARTED else ())]


def _brought(one: Start) -> Iterator[str]:
    spare = len(one.can_lead) - len(one.leads)
    if one.leads:
        yield f"{counted(len(one.leads), 'partition')} without a leader can be led again"
    if spare:
        yield f"has all records of {counted(spare, 'partition')} too, should those before it not come"
    if one.opens:
        yield f"{counted(len(one.opens), 'partition')} open to acks=all again"


def quorum_line(quorum: Quorum | None) -> str:
    """Return who the active controller is, since which election, and of which quorum."""
    if quorum is None:
        return "controller: not told"
    leader = "none" if quorum.leader is None else quorum.leader
    epoch = "" if quorum.epoch is None else f", epoch {quorum.epoch}"
    untold = "; epoch not told" if quorum.epoch is None else ""
    behind = max((one.behind_records or 0 for one in (*quorum.voters, *quorum.observers)), default=0)
    late = f"; at most {counted(behind, 'record')} behind" if behind else ""
    voters = ", ".join(str(one.id) for one in quorum.voters)
    return f"controller: {leader}{epoch}, of the quorum {voters or 'not told'}{untold}{late}"
