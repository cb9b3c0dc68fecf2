"""Markdown for a pull request's comment: summary first, details folded, whatever others wrote made inert."""

import re
from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.change import Changes, Difference
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.render.escape import code_span, sentence
from reconciler.render.facts import (
    action_count,
    balance_ranges,
    by_weight,
    estimate,
    is_size_known,
    kept_at_every_stage,
    least_movement,
    over_least,
    place,
    reason,
    replica_list,
    stage_title,
    throttle,
    undoes,
)
from reconciler.render.rows import Row, difference_rows, plan_rows, topic_row
from reconciler.render.supposed import remedies_markdown, what_if_markdown
from reconciler.render.units import counted, percent, size

LIMIT = 65_536
ARROW = "→"
_SHARE_OF_PROBLEMS = 4
_SHARE_OF_ROWS = 2
_LONGEST_TEXT = 400
_ROOM_FOR_NOTE = 300
_SHORT_COMMIT = 12
_FOLD_END = "\n</details>"


def plan(reviewed: Plan, *, limit: int = LIMIT) -> str:
    """Return the plan as one comment of at most `limit` characters; what does not fit is cut at a stage, and said."""
    rows = plan_rows(reviewed, arrow=ARROW)
    found = [*by_weight(reviewed.violations), *by_weight(reviewed.warnings)]
    blocks = [f"{_marker(reviewed)}\n### {_title(reviewed, rows)}"]
    blocks += [what_if_markdown(reviewed.what_if)] if reviewed.what_if else []
    blocks += _problems(found, limit // _SHARE_OF_PROBLEMS)
    blocks += remedies_markdown(reviewed.remedies)
    blocks += _table(rows, limit // _SHARE_OF_ROWS) if rows else []
    blocks += _facts(reviewed)
    footer = _footer(reviewed)
    room = limit - len("\n\n".join([*blocks, footer])) - 2 * len("\n\n")
    folded = _folded_stages(reviewed, room)
    return "\n\n".join([*blocks, *folded, footer]) + "\n"


def changes(found: Changes, fields: Sequence[Difference], cluster_name: str, *, limit: int = LIMIT) -> str:
    """Return what differs as one table, cut where it does not fit."""
    rows = difference_rows(found, fields, arrow=ARROW)
    count = counted(len(rows), "difference") if rows else "no differences"
    blocks = [f"### reconciler diff · {code_span(cluster_name)} · {count}"]
    blocks += _problems(by_weight(found.drift), limit // _SHARE_OF_PROBLEMS)
    blocks += _table(rows, limit // _SHARE_OF_ROWS) if rows else []
    return "\n\n".join(blocks) + "\n"


def _title(reviewed: Plan, rows: Sequence[Row]) -> str:
    summary = reviewed.summary
    parts = ["reconciler", code_span(reviewed.cluster_name)]
    parts.append(counted(len(rows), "change") if rows else "no changes")
    parts += [size(summary.bytes), estimate(summary.estimated_seconds)] if summary.bytes else []
    return " · ".join(filter(None, parts))


def _problems(found: Iterable[Problem], room: int) -> list[str]:
    lines = [_problem_line(problem) for problem in found]
    if not lines:
        return []
    shown, left = _fitting(lines, room)
    return ["\n".join([*shown, *([f"- and {counted(left, 'more finding')}"] if left else [])])]


def _problem_line(problem: Problem) -> str:
    sign = "⛔ **refused by apply**" if problem.severity is Severity.VIOLATION else "⚠️ **warning**"
    where = f" · {code_span(place(problem.at))}" if place(problem.at) else ""
    return f"- {sign} {problem.code}: {sentence(_clipped(problem.message))}{where}"


def _table(rows: Sequence[Row], room: int) -> list[str]:
    lines = [_row_line(row) for row in rows]
    shown, left = _fitting(lines, room)
    head = ["| | Change | Data | Kind |", "|---|---|---|---|"]
    if left:
        data = size(sum(row.bytes for row in rows[len(shown) :]))
        shown.append(f"| … | and {counted(left, 'more change')} | {data} | |")
    return ["\n".join([*head, *shown])]


def _row_line(row: Row) -> str:
    subject = f"{code_span(_clipped(row.subject))} " if row.subject else ""
    where = f" · {code_span(place(row.at))}" if place(row.at) else ""
    data = size(row.bytes) if row.bytes else "0"
    return f"| {row.sign} | {subject}{sentence(_clipped(row.what))}{where} | {data} | {row.kind} |"


def _facts(reviewed: Plan) -> list[str]:
    facts = [
        _claim(reviewed),
        _time(reviewed),
        kept_at_every_stage(reviewed),
        *balance_ranges(reviewed, arrow=ARROW, quoted=code_span),
    ]
    text = " · ".join(filter(None, facts))
    return [text[0].upper() + text[1:]] if text and not reviewed.is_empty else []


def _time(reviewed: Plan) -> str:
    compared = over_least(reviewed)
    return f"{estimate(reviewed.summary.estimated_seconds)} {throttle(reviewed)}, {compared}" if compared else ""


def _claim(reviewed: Plan) -> str:
    claim = least_movement(reviewed)
    if not claim or not reviewed.summary.replica_moves or not is_size_known(reviewed) or undoes(reviewed):
        return claim
    gap = reviewed.proof.gap_percent
    return f"{claim}: gap {percent(gap)}" if gap else "fewest bytes possible: proved, gap 0 %"


def _folded_stages(reviewed: Plan, room: int) -> list[str]:
    stages = reviewed.stages
    if not stages:
        return []
    count = f"{counted(len(stages), 'stage')}, {counted(action_count(stages), 'action')}"
    head = f"<details><summary>{count}</summary>"
    blocks, left = _fitting((_stage(reviewed, stage) for stage in stages), room - len(head) - _ROOM_FOR_NOTE)
    if left:
        blocks.append(_cut(reviewed, stages[-left:]))
    return ["\n\n".join([head, *blocks]) + "\n" + _FOLD_END]


def _cut(reviewed: Plan, missing: Sequence[Stage]) -> str:
    first, last = missing[0].number, missing[-1].number
    numbers = f"Stage {first} is" if first == last else f"Stages {first} to {last} are"
    actions = counted(action_count(missing), "action")
    return f"**{numbers} left out here ({actions}):** `reconciler show` prints plan `{_plain(reviewed.id)}` in full."


def _stage(reviewed: Plan, stage: Stage) -> str:
    title = f"**Stage {stage.number}** · {stage_title(stage)}"
    match stage:
        case TopicsStage():
            changed = (topic_row(reviewed.topic_changes[position], arrow=ARROW) for position in stage.changes)
            return "\n".join([title, "", *(f"- {code_span(row.subject)} {sentence(row.what)}" for row in changed)])
        case ElectStage():
            elected = (f"{code_span(str(each.topic_partition))} on {each.leader}" for each in stage.elections)
            return f"{title}\n\n{', '.join(elected)}"
        case ReassignStage():
            head = ["| Partition | From | To | Data | Why |", "|---|---|---|---|---|"]
            return "\n".join([title, "", *head, *_move_lines(reviewed, stage)])


def _move_lines(reviewed: Plan, stage: ReassignStage) -> Iterator[str]:
    for move in stage.moves:
        data = size(move.bytes) if move.is_size_known else "unknown"
        where = f" {code_span(place(move.at))}" if place(move.at) else ""
        lists = f"{replica_list(move.from_replicas)} | {replica_list(move.to_replicas)}"
        name = code_span(str(move.topic_partition))
        yield f"| {name} | {lists} | {data if move.added else '0'} | {reason(reviewed, move)}{where} |"


def _footer(reviewed: Plan) -> str:
    source = reviewed.source
    made = f"Plan `{_plain(reviewed.id)}`"
    made += f" undoes `{_plain(source.rolls_back)}`" if source.rolls_back else ""
    made += f" for commit `{_plain(source.commit)[:_SHORT_COMMIT]}`" if source.commit else ""
    made += f", observed {_moment(source.observed_at)}" if source.observed_at else ""
    if reviewed.what_if:
        return f"{made}; of a supposed state, so `apply` refuses it."
    return f"{made}; valid while the partitions it touches and their brokers stay as they are."


def _moment(text: str) -> str:
    found = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(\.\d+)?)?Z$", text)
    return f"{found[1]} {found[2]} UTC" if found else code_span(text)


def _marker(reviewed: Plan) -> str:
    """Return what a bot finds its comment by; a supposed plan, or a rollback, never takes the place of a plan."""
    kind = "what-if" if reviewed.what_if else "rollback" if reviewed.source.rolls_back else "plan"
    return f"<!-- reconciler {kind} {_plain(reviewed.cluster_name)} -->"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", text)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def _fitting(blocks: Iterable[str], room: int) -> tuple[list[str], int]:
    """Return the first blocks that fit into that many characters, and how many do not."""
    shown: list[str] = []
    waiting = iter(blocks)
    for block in waiting:
        room -= len(block) + len("\n\n")
        if room < 0:
            return shown, 1 + sum(1 for _ in waiting)
        shown.append(block)
    return shown, 0
