"""Writes what a comment holds folded: what moves of each topic, each broker, and every stage with its moves."""

from collections.abc import Sequence

from reconciler.model.move import DirMove, Move
from reconciler.model.plan import BrokerShare, Plan
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.words import counted, number, percent, size
from reconciler.render.escape import code_span, sentence
from reconciler.render.facts import action_count, place, reason, replica_list, stage_title
from reconciler.render.markdown_parts import clipped, figure, fold, lines_fitting, row, table, units
from reconciler.render.plan_figures import BrokerFigures, Disk, TopicFigures, brokers, topics
from reconciler.render.rows import topic_row

ARROW = "→"
ROOM_FOR_NOTE = 300
"""What a line takes that says what is left out."""
_FEWEST_TOPICS = 2
_SHARE_OF_TOPICS = 3
_SHARE_OF_BROKERS = 3
_MOVE_HEADS = ("Partition", "From", "To", "Data", "Why")
_DIR_HEADS = ("Partition", "Broker", "From", "To", "Data", "Why")


def details(plan: Plan, room: int) -> list[str]:
    """Return the folded parts in that many code units: first what tells most in a line, the single moves last."""
    shown: list[str] = []
    for part in (_topics(plan, room // _SHARE_OF_TOPICS), _brokers(plan, room // _SHARE_OF_BROKERS)):
        taken = units(part) + len("\n\n")
        if part and taken + ROOM_FOR_NOTE <= room:
            shown.append(part)
            room -= taken
    return [*shown, *_stages(plan, room - len("\n\n"))]


def share_cells(before: BrokerShare | None, after: BrokerShare | None) -> list[str]:
    """Return three cells: replicas, leaders and bytes, before and after where they differ."""
    sides = (before, after)
    return [
        changed(*("unknown" if one is None else number(one.replicas) for one in sides)),
        changed(*("unknown" if one is None else number(one.leaders) for one in sides)),
        changed(*("unknown" if one is None or one.bytes is None else size(one.bytes) for one in sides)),
    ]


def changed(before: str, after: str) -> str:
    """Return a figure before and after, once where both read the same."""
    return figure(before if before == after else f"{before} {ARROW} {after}")


def disk_cell(disk: Disk | None) -> str:
    """Return how full a disk is at the worst moment: `71.8% of /d2`."""
    if disk is None:
        return "unknown"
    where = f" of {code_span(clipped(disk.path))}" if disk.path else ""
    return f"{percent(disk.share)}{where}"


def _topics(plan: Plan, room: int) -> str:
    found = topics(plan)
    if len(found) < _FEWEST_TOPICS:
        return ""
    shown, left = lines_fitting([_topic_line(each) for each in found], room - ROOM_FOR_NOTE)
    rest = found[len(shown) :]
    if left:
        bytes_left = size(sum(each.bytes for each in rest))
        shown.append(row([f"and {counted(left, 'more topic')}", "", "", bytes_left, ""]))
    heads = ("Topic", "Partitions", "Copies", "Data", "Why")
    return fold(f"What moves, by topic: {counted(len(found), 'topic')}", [table(heads, shown, right=(1, 2, 3))])


def _topic_line(each: TopicFigures) -> str:
    data = size(each.bytes) if each.bytes else "0"
    return row(
        [
            code_span(clipped(each.topic)),
            number(each.partitions),
            number(each.copies),
            figure(data if each.is_size_known else f"at least {data}"),
            ", ".join(each.reasons),
        ]
    )


def _brokers(plan: Plan, room: int) -> str:
    """Return the brokers' table; where not all fit, those that take in most are kept."""
    found = brokers(plan)
    if not found or plan.is_empty:
        return ""
    by_weight = sorted(found, key=lambda each: (-each.arriving_bytes, -each.arriving, each.broker_id))
    kept, left = lines_fitting([_broker_line(each) for each in by_weight], room - ROOM_FOR_NOTE)
    ids = {each.broker_id for each in by_weight[: len(kept)]}
    shown = [_broker_line(each) for each in found if each.broker_id in ids]
    heads = ("Broker", "Rack", "Replicas", "Leaders", "Data", "Arrives", "Leaves", "Fullest disk at the worst moment")
    if left:
        shown.append(row([f"and {left} more", *[""] * (len(heads) - 1)]))
    text = f"Each broker before and after: {counted(len(found), 'broker')}"
    return fold(text, [table(heads, shown, right=(0, 2, 3, 4, 5, 6, 7))])


def _broker_line(each: BrokerFigures) -> str:
    arrives = f"{number(each.arriving)}, {size(each.arriving_bytes)}" if each.arriving else "0"
    return row(
        [
            str(each.broker_id),
            code_span(clipped(each.rack)) if each.rack else "",
            *share_cells(each.before, each.after),
            figure(arrives),
            number(each.leaving),
            disk_cell(each.disk),
        ]
    )


def _stages(plan: Plan, room: int) -> list[str]:
    """Return every stage, cut at a stage; at a move where not even the first fits."""
    if not plan.stages:
        return []
    count = f"{counted(len(plan.stages), 'stage')}, {counted(action_count(plan.stages), 'action')}"
    room -= units(fold(count, [])) + ROOM_FOR_NOTE
    blocks = _first_stages(plan, room)
    left = plan.stages[len(blocks) :]
    if left and not blocks and isinstance(left[0], ReassignStage):
        blocks = _part_of(plan, left[0], room)
    elif left:
        blocks.append(f"**{_numbers(left)} left out here ({counted(action_count(left), 'action')}):** {_command(plan)}")
    return blocks if room < 0 else [fold(count, blocks)]


def _first_stages(plan: Plan, room: int) -> list[str]:
    """Return the stages that fit, none written that could not."""
    found: list[str] = []
    for stage in plan.stages:
        found.append(_stage(plan, stage))
        room -= units(found[-1]) + len("\n\n")
        if room < 0:
            return found[:-1]
    return found


def _part_of(plan: Plan, stage: ReassignStage, room: int) -> list[str]:
    lines, left = lines_fitting(_move_lines(plan, stage.moves), room - ROOM_FOR_NOTE)
    others = counted(action_count(plan.stages) - len(lines), "action")
    body = [f"{_title(stage)}\n\n{table(_MOVE_HEADS, lines)}"] if lines else []
    later = " and every later stage" if len(plan.stages) > 1 else ""
    at = f"{counted(left, 'move')} of stage {stage.number}{later}"
    return [*body, f"**{at} left out here ({others}):** {_command(plan)}"]


def _numbers(missing: Sequence[Stage]) -> str:
    first, last = missing[0].number, missing[-1].number
    return f"Stage {first} is" if first == last else f"Stages {first} to {last} are"


def _command(plan: Plan) -> str:
    return f"`reconciler show` prints plan {code_span(plan.id)} in full, `-o html` as a page."


def _stage(plan: Plan, stage: Stage) -> str:
    match stage:
        case TopicsStage():
            changed_topics = (topic_row(plan.topic_changes[position], arrow=ARROW) for position in stage.changes)
            lines = (f"- {code_span(each.subject)} {sentence(clipped(each.what))}" for each in changed_topics)
            return "\n".join([_title(stage), "", *lines])
        case ElectStage():
            return f"{_title(stage)}\n\n{_elected(stage)}"
        case ReassignStage():
            told = f"{_title(stage)}\n\n{table(_MOVE_HEADS, _move_lines(plan, stage.moves))}"
            return f"{told}\n\nElected: {_elected(stage)}" if stage.elections else told
        case LogDirsStage():
            return f"{_title(stage)}\n\n{table(_DIR_HEADS, [_dir_line(plan, move) for move in stage.moves])}"


def _elected(stage: ReassignStage | ElectStage) -> str:
    return ", ".join(f"{code_span(str(each.topic_partition))} on {each.leader}" for each in stage.elections)


def _title(stage: Stage) -> str:
    return f"**Stage {stage.number}** · {stage_title(stage)}"


def _move_lines(plan: Plan, moves: Sequence[Move]) -> list[str]:
    return [_move_line(plan, move) for move in moves]


def _move_line(plan: Plan, move: Move) -> str:
    lists = (replica_list(move.from_replicas), replica_list(move.to_replicas))
    return row([code_span(str(move.topic_partition)), *lists, _data(move) if move.added else "0", _why(plan, move)])


def _dir_line(plan: Plan, move: DirMove) -> str:
    dirs = (code_span(clipped(move.from_dir)), code_span(clipped(move.to_dir)))
    return row([code_span(str(move.topic_partition)), str(move.broker), *dirs, _data(move), _why(plan, move)])


def _data(move: Move | DirMove) -> str:
    return figure(size(move.bytes) if move.is_size_known else "unknown")


def _why(plan: Plan, move: Move | DirMove) -> str:
    return f"{reason(plan, move)}{f' {code_span(clipped(place(move.at)))}' if place(move.at) else ''}"
