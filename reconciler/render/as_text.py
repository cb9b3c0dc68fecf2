"""Prints a plan and what differs for a terminal: aligned, plain, and free of anything that could steer it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reconciler.model.change import Changes, Difference, TopicChange, destruction
from reconciler.model.effect import EffectClass
from reconciler.model.plan import Plan
from reconciler.model.problem import LIMITS, Problem, Severity
from reconciler.model.run import AskedThrottle, RolledBack, RunResult, RunState
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of
from reconciler.model.words import counted, duration, rate, size
from reconciler.render.effects import grouped_effects
from reconciler.render.effects import told as effects_told
from reconciler.render.effects import total as effects_total
from reconciler.render.escape import visible
from reconciler.render.facts import (
    balance_ranges,
    between_log_dirs,
    by_weight,
    differences_stay,
    estimate,
    kept_at_every_stage,
    least_inside,
    least_movement,
    move_count,
    over_least,
    place,
    reason,
    replica_list,
    stage_title,
    throttle,
    undoes,
    within_budget,
)
from reconciler.render.rows import Row, difference_rows, plan_rows, topic_row
from reconciler.render.supposed import NOTHING_FITS, remedy_lines, what_if_lines

NO_CHANGES = "No changes."
_WIDEST_COLUMN = 60
MOST_NAMED = 10
_MANY = 3
"""From how many warnings on that differ in a name alone they share a line."""
_ALONE = frozenset({Severity.ERROR, Severity.VIOLATION})
_STATES = {
    RunState.CHECKED: "Checked",
    RunState.DONE: "Done",
    RunState.STOPPED: "Stopped",
    RunState.CANCELLED: "Cancelled",
    RunState.FAILED: "Failed",
}


def plan(reviewed: Plan, *, root: str = "", has_stages: bool = False) -> str:
    """Return the plan: one line a change, totals, what is known of its safety, violations and warnings."""
    head = _head(reviewed)
    if reviewed.is_empty:
        return "\n".join([*head, _nothing_to_do(reviewed, NO_CHANGES), *findings(reviewed, root=root)]) + "\n"
    lines = head + table([_cells(row, root) for row in plan_rows(reviewed)])
    lines += _stages(reviewed, root) if has_stages else []
    lines += [totals(reviewed), *([f"Digest {reviewed.digest}"] if reviewed.digest else [])]
    lines += _budget(reviewed)
    lines += [
        *effects(reviewed.topic_changes, is_whole=has_stages),
        *_balance(reviewed),
        *findings(reviewed, root=root),
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Matched:
    """How much is as it is declared, and how many topics are not declared."""

    topics: int
    partitions: int
    undeclared: int = 0


def no_changes(reviewed: Plan, found: Matched, *, root: str = "") -> str:
    """Return that nothing is to be done, and how much was looked at."""
    others = f"; {counted(found.undeclared, 'topic')} not declared" if found.undeclared else ""
    matched = f"{NO_CHANGES} {counted(found.topics, 'topic')}, {counted(found.partitions, 'partition')} match{others}."
    if reviewed.budgeted is not None and not reviewed.budgeted.is_whole:
        matched = " ".join([NO_CHANGES, *_budget(reviewed)])
    return "\n".join([*_head(reviewed), _nothing_to_do(reviewed, matched), *findings(reviewed, root=root)]) + "\n"


def planned(reviewed: Plan, found: Matched, *, root: str = "", has_stages: bool = False) -> str:
    """Return the plan or, where there is nothing to do, that and how much was looked at."""
    if reviewed.is_empty:
        return no_changes(reviewed, found, root=root)
    return plan(reviewed, root=root, has_stages=has_stages)


def _budget(reviewed: Plan) -> list[str]:
    return [f"{told[:1].upper()}{told[1:]}." for told in within_budget(reviewed)]


def _nothing_to_do(reviewed: Plan, matched: str) -> str:
    """Return that all is as declared, or that something is not, and stays."""
    return f"{nothing_planned(reviewed)}:" if reviewed.drift else matched


def nothing_planned(reviewed: Plan) -> str:
    """Return that nothing can be done about so many differences."""
    return f"No changes can be planned; {differences_stay(reviewed)}"


def _head(reviewed: Plan) -> list[str]:
    supposed = what_if_lines(reviewed.what_if) if reviewed.what_if else []
    return [*supposed, *([f"A rollback: {visible(undoes(reviewed))}."] if undoes(reviewed) else [])]


def findings(reviewed: Plan, *, root: str = "") -> list[str]:
    """Return the plan's violations and warnings, one a line, and what would make it fit."""
    found = problems([*reviewed.violations, *reviewed.warnings], root=root)
    # Of a broken policy nobody knows what would satisfy it, so nothing was looked for.
    is_over_a_limit = any(each.code in LIMITS for each in reviewed.violations)
    if reviewed.what_if and is_over_a_limit and not reviewed.remedies:
        return [*found, NOTHING_FITS]
    return found + remedy_lines(reviewed.remedies, root=root)


def effects(changed: Sequence[TopicChange], *, is_whole: bool = False) -> list[str]:
    """Return what is destroyed in all, and each effect of a change: by class, the gravest first.

    Unless it `is_whole`, many topics that a config affects alike share a line.
    """
    lines = []
    lost = destruction(changed)
    topics: dict[EffectClass, set[str]] = {}
    for kind, topic, _ in effects_told(changed):
        topics.setdefault(kind, set()).add(topic)
    shown = [*(effects_told if is_whole else grouped_effects)(changed)]
    for kind, names in topics.items():
        count = counted(len(names), "topic")
        lines.append(f"{kind}: {effects_total(lost) if lost and kind is EffectClass.DESTROYS else count}")
        found = [(visible(who), words) for each, who, words in shown if each is kind]
        width = _width(who for who, _ in found)
        lines += [f"  {who:<{width}}  {words}" for who, words in found]
    return lines


def totals(reviewed: Plan) -> str:
    """Return the plan in one line: `Plan 4f3c9a1e: 14 moves, 14 replicas to copy, 27.0 GiB, …`."""
    summary = reviewed.summary
    parts = []
    if summary.topic_changes:
        parts.append(counted(summary.topic_changes, "topic change"))
    if moves := move_count(reviewed):
        parts.append(counted(moves, "move"))
    if summary.replica_moves:
        claim = least_movement(reviewed)
        moved = f"{counted(summary.replica_moves, 'replica')} to copy, {size(summary.bytes)}"
        parts.append(f"{moved} ({claim})" if claim else moved)
    elif summary.partitions:
        parts.append(f"{counted(summary.partitions, 'replica list')} to rewrite, nothing is copied")
    if summary.elections:
        parts.append(counted(summary.elections, "election"))
    if summary.dir_moves:
        inside, claim = between_log_dirs(summary.dir_moves, summary.dir_bytes), least_inside(reviewed)
        parts.append(f"{inside} ({claim})" if claim else inside)
    parts.append(counted(summary.stages, "stage"))
    if summary.bytes or summary.dir_bytes:
        parts.append(" ".join(filter(None, (estimate(summary.estimated_seconds), throttle(reviewed)))))
        parts += filter(None, [over_least(reviewed)])
    return f"Plan {reviewed.id}: {', '.join(parts)}."


def changes(found: Changes, fields: Sequence[Difference] = (), *, root: str = "", is_whole: bool = False) -> str:
    """Return what differs, old -> new, with reason and place; what cannot be fixed stands last."""
    lines = table([_cells(row, root) for row in difference_rows(found, fields, is_whole=is_whole)]) or (
        [] if found.problems else [NO_CHANGES]
    )
    return (
        "\n".join([*lines, *effects(found.topic_changes, is_whole=is_whole), *problems(found.problems, root=root)])
        + "\n"
    )


def problems(found: Iterable[Problem], *, root: str = "") -> list[str]:
    """Return one line a problem, the heaviest first; warnings that differ in a name alone share one."""
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    ordered = sorted(dict.fromkeys(by_weight(found)), key=lambda problem: ranks[problem.severity])
    lines: list[str] = []
    for _, of_code in groupby(ordered, key=lambda problem: (problem.severity, problem.code)):
        same = list(of_code)
        message = (
            _alike([problem.message for problem in same])
            if len(same) >= _MANY and same[0].severity not in _ALONE
            else None
        )
        lines += (
            [problem_line(problem, root=root) for problem in same]
            if message is None
            else [_line(same[0], message, [place(problem.at, root) for problem in same])]
        )
    return lines


def _alike(messages: Sequence[str]) -> str | None:
    """Return messages that differ in one word alone as one that has each of these words; None for others."""
    words = [message.split(" ") for message in messages]
    if len({len(each) for each in words}) > 1:
        return None
    differing = [at for at, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
    if len(differing) != 1:
        return None
    before, after = words[0][: differing[0]], words[0][differing[0] + 1 :]
    names = [each[differing[0]] for each in words]
    mark = names[0][-1:] if names[0][-1:] in ":;," and len({name[-1:] for name in names}) == 1 else ""
    listed = ", ".join(name.removesuffix(mark) for name in names)
    return " ".join([f"{len(messages)} alike:", *before, f"{listed}{mark}", *after])


def problem_line(problem: Problem, *, root: str = "") -> str:
    """Return `severity: message (KR101, file:line)`."""
    return _line(problem, problem.message, [place(problem.at, root)])


def _line(problem: Problem, message: str, places: Iterable[str]) -> str:
    where = ", ".join(filter(None, (problem.code, *dict.fromkeys(places))))
    return f"{problem.severity}: {visible(message)} ({visible(where)})"


def input_problem(problem: Problem, *, root: str = "") -> str:
    """Return `file:line:column: message (KR101)`, the form that editors and compilers share.

    Every place is under that root, those that the message names as well.
    """
    where = f"{place(problem.at, root)}:{problem.at.column}: " if problem.at else ""
    message = problem.message
    if root and problem.beside:
        shown = {str(at): place(at, root) for at in problem.beside}
        named = "|".join(re.escape(text) for text in sorted(shown, reverse=True))
        message = re.sub(rf"(?<![^\s(])(?:{named})(?![^\s).,;])", lambda found: shown[found[0]], message)
    return f"{visible(where)}{visible(message)} ({problem.code})"


def result(ended: RunResult, *, simulated_in: float | None = None) -> str:
    """Return how a run, or a cancel, ended, and which throttles it left; a simulated one took so many real seconds."""
    spent = _spent(ended.seconds)
    if simulated_in is not None:
        spent = f"{_spent(simulated_in)} (simulated {spent})"
    moves = f", {visible(str(ended.tally))}" if ended.tally is not None and ended.tally.moves else ""
    head = f"{_STATES[ended.state]} in {spent}: {ended.stages_done} of {counted(ended.stages, 'stage')}{moves}."
    lines = [] if ended.is_idle else [head]
    lines += [visible(message) for message in ended.messages]
    if ended.left:
        lines.append(f"{counted(len(ended.left), 'partition')} left as they are: {some(map(str, ended.left))}")
    lines += [f"leftover throttles: {visible(one.message)} ({one.code})" for one in ended.leftover_throttles]
    return "\n".join(lines) + "\n"


def rolled_back(ended: RolledBack, *, seconds: float = 0.0) -> str:
    """Return what a rollback did: what was taken back, then how each of its plans ended, and what it leaves."""
    lines = [] if ended.cancelled is None else [f"Cancelled first: {visible(text)}" for text in ended.cancelled.told]
    texts = ["\n".join(lines) + "\n"] if lines else []
    for run in ended.runs:
        texts.append(f"Plan {visible(run.plan_id)} {visible(undoes(run.plan))}.\n")
        is_timed = ended.is_simulated and len(ended.runs) == 1
        texts.append(result(run.result, simulated_in=seconds if is_timed else None))
        texts += [f"{line}\n" for line in problems(run.plan.warnings)]
    if not ended.runs and not ended.is_declined:
        texts.append(f"Nothing of plan {visible(ended.undone.id)} is left to undo.\n")
    return "".join(texts)


def _spent(seconds: float) -> str:
    return duration(seconds) if seconds >= 1 else "under 1 s"


def _cells(row: Row, root: str) -> tuple[str, ...]:
    return row.sign, row.subject, row.what, place(row.at, root), row.effect


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay out `sign subject what place effect`; a row without a subject starts in the subject's column."""
    shown = [tuple(map(visible, row)) for row in rows]
    subjects = _width(row[1] for row in shown)
    whats = _width(row[2] for row in shown if row[1])
    places = _width(row[3] for row in shown)
    lines = []
    for sign, subject, what, at, effect in shown:
        head = f"{subject:<{subjects}}  {what:<{whats}}" if subject else f"{what:<{subjects + 2 + whats}}"
        lines.append(f"  {sign} {head}  {at:<{places}}  {effect}".rstrip())
    return lines


def _width(texts: Iterable[str]) -> int:
    return min(_WIDEST_COLUMN, max(map(len, texts), default=0))


def _stages(reviewed: Plan, root: str) -> Iterator[str]:
    for stage in reviewed.stages:
        yield f"Stage {stage.number}: {stage_title(stage)}"
        yield from table(list(_actions(reviewed, stage, root)))


def _actions(reviewed: Plan, stage: Stage, root: str) -> Iterator[tuple[str, ...]]:
    match stage:
        case TopicsStage():
            for position in stage.changes:
                yield _cells(topic_row(reviewed.topic_changes[position]), root)
        case ElectStage():
            pass
        case ReassignStage():
            for move in stage.moves:
                lists = f"{replica_list(move.from_replicas)} -> {replica_list(move.to_replicas)}"
                data = size(move.bytes) if move.is_size_known else "size unknown"
                effect = f"{reason(reviewed, move)}, {data if move.added else 'no data'}"
                yield "~", str(move.topic_partition), lists, place(move.at, root), effect
        case LogDirsStage():
            for inside in stage.moves:
                dirs = f"broker {inside.broker}: {inside.from_dir} -> {inside.to_dir}"
                data = size(inside.bytes) if inside.is_size_known else "size unknown"
                effect = f"{reason(reviewed, inside)}, {data}"
                yield "~", str(inside.topic_partition), dirs, place(inside.at, root), effect
    for election in elections_of(stage):
        yield "~", str(election.topic_partition), f"elect {election.leader}", "", ""


def _balance(reviewed: Plan) -> list[str]:
    ranges = balance_ranges(reviewed)
    kept = kept_at_every_stage(reviewed)
    return [f"{kept[0].upper()}{kept[1:]}; {'; '.join(ranges)}."] if ranges else []


def some(names: Iterable[str]) -> str:
    """Return the first names, free of control characters."""
    listed = list(names)
    shown = ", ".join(visible(name) for name in listed[:MOST_NAMED])
    return f"{shown}, …" if len(listed) > MOST_NAMED else shown


def throttled(asked: AskedThrottle) -> str:
    """Return what became of another rate that a run was asked for."""
    by, wanted = visible(asked.locked_by), rate(asked.throttle_bytes_per_second)
    if asked.is_taken_up:
        return f"Run {asked.plan_id} goes on at {wanted}: taken up by {by}.\n"
    return f"Run {asked.plan_id} was asked for {wanted}, and has not told that it took it up: {by}.\n"
