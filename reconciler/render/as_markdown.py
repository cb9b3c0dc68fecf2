"""Writes a pull request's comment: what a tired reviewer must know first, details folded, all text inert."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from reconciler.model.change import Changes, CreatePartitions, Difference, TopicChange, destruction
from reconciler.model.desired import BrokerState
from reconciler.model.effect import EffectClass
from reconciler.model.grounds import BrokerGround
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, TopicsStage
from reconciler.model.words import counted, number, percent, rate, size
from reconciler.render.effects import told, total
from reconciler.render.escape import code_span, sentence
from reconciler.render.facts import (
    between_log_dirs,
    by_weight,
    differences_stay,
    estimate,
    is_size_known,
    kept_at_every_stage,
    least_inside,
    least_movement,
    move_count,
    over_least,
    place,
    throttle,
    undoes,
    within_budget,
)
from reconciler.render.labels import DESTROYS, IRREVERSIBLE, labels
from reconciler.render.markdown_details import ARROW, ROOM_FOR_NOTE, changed, details, disk_cell, share_cells
from reconciler.render.markdown_parts import bounded, clipped, figure, fitting, fold, lines_fitting, row, table, units
from reconciler.render.plan_figures import Disk, RackFigures, disks, rack_spread, racks, stages
from reconciler.render.review_order import in_review_order
from reconciler.render.rows import Row, difference_rows, differences_counted, gravest_first, plan_rows
from reconciler.render.supposed import remedies_markdown, what_if_markdown

LIMIT = 64_000
"""GitHub takes 65,536 characters in a comment; what posts it may add a line of its own."""
_SHARE_OF_WHAT_IF = 8
_SHARE_OF_PROBLEMS = 5
_SHARE_OF_ROWS = 4
_OPEN_PROBLEMS = 10
_OPEN_ROWS = 25
_RACKS_SHOWN = 12
_DISKS_SHOWN = 3
_NAMED = 5
_SHORT_COMMIT = 12
_HEADS = {
    EffectClass.DESTROYS: "**Destroys**",
    EffectClass.IRREVERSIBLE: "**Cannot be undone**, not even by `cancel --rollback`",
    EffectClass.AVAILABILITY: "**May refuse writes**",
    EffectClass.CLIENTS: "**Clients may notice**",
}
_EMPTY = frozenset({BrokerState.DRAINING, BrokerState.ABSENT})


def plan(reviewed: Plan, *, limit: int = LIMIT) -> str:
    """Return the plan as one comment of at most `limit` UTF-16 code units; what is cut is counted, whole rows only."""
    rows = gravest_first(plan_rows(reviewed, arrow=ARROW))
    found = in_review_order([*reviewed.violations, *reviewed.warnings])
    blocks = [f"{marker(reviewed)}\n### reconciler · {code_span(reviewed.cluster_name)} · {_counts(reviewed)}"]
    if reviewed.what_if:
        blocks.append(bounded(what_if_markdown(reviewed.what_if), limit // _SHARE_OF_WHAT_IF))
    blocks.append(_verdict(reviewed))
    blocks += _problems(found, limit // _SHARE_OF_PROBLEMS)
    blocks += [bounded(each, limit // _SHARE_OF_WHAT_IF) for each in remedies_markdown(reviewed.remedies)]
    blocks += _table(rows, limit // _SHARE_OF_ROWS)
    footer = _footer(reviewed)
    room = limit - units("\n\n".join([*blocks, footer])) - ROOM_FOR_NOTE
    if not reviewed.is_empty:
        blocks += fitting([*_facts(reviewed), *_racks(reviewed), *_balance(reviewed)], room)
    room = limit - units("\n\n".join([*blocks, footer])) - len("\n\n\n")
    return "\n\n".join([*blocks, *details(reviewed, room), footer]) + "\n"


def changes(found: Changes, fields: Sequence[Difference], cluster_name: str, *, limit: int = LIMIT) -> str:
    """Return what differs as one table, cut where it does not fit."""
    rows = difference_rows(found, fields, arrow=ARROW, is_whole=False)
    blocks = [f"### reconciler diff · {code_span(cluster_name)} · {differences_counted(found, fields)}"]
    blocks += _effects(found.topic_changes)
    blocks += _problems(by_weight(found.problems), limit // _SHARE_OF_PROBLEMS)
    blocks += _table(rows, limit // 2, has_data=False)
    return "\n\n".join(blocks) + "\n"


def marker(reviewed: Plan) -> str:
    """Return two hidden lines: what a program finds its comment by, and the plan's labels.

    The first differs for every cluster; a supposed plan, or a rollback, never takes the place of a plan.
    """
    kind = "what-if" if reviewed.what_if else "rollback" if reviewed.source.rolls_back else "plan"
    # Two hyphens may end a comment, and two tildes strike out.
    name = quote(reviewed.cluster_name, safe="", errors="surrogatepass").replace("--", "-%2D").replace("~", "%7E")
    return f"<!-- reconciler {kind} {name} -->\n<!-- reconciler labels: {', '.join(labels(reviewed))} -->"


def in_short(reviewed: Plan) -> str:
    """Return what a plan comes to in a few words."""
    refused = f"refused: {', '.join(sorted({each.code for each in reviewed.violations}))}"
    counts = _counts(reviewed)
    return f"{counts} · {refused}" if reviewed.violations else counts


def _counts(reviewed: Plan) -> str:
    summary, rows = reviewed.summary, plan_rows(reviewed, is_whole=True)
    nothing = f"no changes can be planned, {differences_stay(reviewed)}" if reviewed.drift else "no changes"
    parts = [counted(len(rows), "change") if rows else nothing]
    parts += [size(summary.bytes)] if summary.bytes else []
    parts += [f"{size(summary.dir_bytes)} inside brokers"] if summary.dir_bytes else []
    parts += [estimate(summary.estimated_seconds)] if summary.bytes or summary.dir_bytes else []
    return " · ".join(filter(None, parts))


def _verdict(reviewed: Plan) -> str:
    """Return the labels, whether `apply` would run it, and what no rollback brings back."""
    named = " ".join(code_span(label) for label in labels(reviewed))
    warnings = counted(len(reviewed.warnings), "warning") if reviewed.warnings else "no warning"
    if reviewed.violations:
        verdict = f"⛔ **`apply` refuses it: {counted(len(reviewed.violations), 'violation')}**, {warnings}"
    elif reviewed.what_if:
        verdict = f"only supposed, so `apply` refuses it; {warnings}"
    else:
        is_grave = bool(reviewed.warnings or reviewed.summary.destroys)
        verdict = f"{'⚠️' if is_grave else '✅'} no violation, {warnings}"
    return "\n\n".join([f"{named} · {verdict}", *_effects(reviewed.topic_changes)])


def _effects(changed: Sequence[TopicChange]) -> list[str]:
    """Return a paragraph for what is destroyed, for what else no rollback brings back, and for each other class."""
    grown = [
        (each.topic, f"{each.from_count} {ARROW} {each.to_count} partitions")
        for each in changed
        if isinstance(each, CreatePartitions)
    ]
    by_class: dict[EffectClass, list[tuple[str, str]]] = {EffectClass.DESTROYS: [], EffectClass.IRREVERSIBLE: grown}
    for kind, topic, words in told(changed):
        by_class.setdefault(kind, []).append((topic, words))
    lost = destruction(changed)
    paragraphs = []
    for kind, found in by_class.items():
        if found:
            head = _HEADS[kind]
            head += f" {total(lost)}, and no rollback brings it back" if lost and kind is EffectClass.DESTROYS else ""
            more = f", and {counted(len(found) - _NAMED, 'more')}" if len(found) > _NAMED else ""
            named = ", ".join(f"{code_span(clipped(topic))} ({_words(words)})" for topic, words in found[:_NAMED])
            paragraphs.append(f"{head}: {named}{more}.")
    return paragraphs


def _problems(found: Sequence[Problem], room: int) -> list[str]:
    lines, left = lines_fitting([_problem_line(problem) for problem in found], room)
    if not found:
        return []
    lines += [f"- and {counted(left, 'more finding')}: `reconciler show` prints all"] if left else []
    open_lines, folded = lines[:_OPEN_PROBLEMS], lines[_OPEN_PROBLEMS:]
    count = counted(len(found) - _OPEN_PROBLEMS, "more finding")
    return ["\n".join(open_lines), *([fold(count, ["\n".join(folded)])] if folded else [])]


def _problem_line(problem: Problem) -> str:
    sign = "⛔ **refused by apply**" if problem.severity is Severity.VIOLATION else "⚠️ **warning**"
    where = f" · {code_span(clipped(place(problem.at)))}" if place(problem.at) else ""
    return f"- {sign} {problem.code}: {_words(problem.message)}{where}"


def _words(message: str) -> str:
    """Return a message, its arrows as a comment has them."""
    return sentence(clipped(" ".join(ARROW if word == "->" else word for word in message.split())))


def _table(rows: Sequence[Row], room: int, *, has_data: bool = True) -> list[str]:
    """Return the changes: the first stand open, more are folded, and what does not fit is counted.

    `has_data` false: what the changes take is not known, as nothing was planned.
    """
    shown, left = lines_fitting([_row_line(each, has_data=has_data) for each in rows], room)
    if not rows:
        return []
    if left:
        data = [_data(rows[len(shown) :])] if has_data else []
        shown.append(row(["…", f"and {counted(left, 'more change')}", *data, ""]))
    heads, right = (("", "Change", "Data", "Kind"), (2,)) if has_data else (("", "Change", "Kind"), ())
    more = shown[_OPEN_ROWS:]
    folded = [fold(counted(len(rows) - _OPEN_ROWS, "more change"), [table(heads, more, right=right)])] if more else []
    return [table(heads, shown[:_OPEN_ROWS], right=right), *folded]


def _row_line(each: Row, *, has_data: bool) -> str:
    subject = f"{code_span(clipped(each.subject))} " if each.subject else ""
    where = f" · {code_span(clipped(place(each.at)))}" if place(each.at) else ""
    kind = f"**{each.kind}**" if each.kind in {DESTROYS, IRREVERSIBLE} else each.kind
    what = f"{subject}{sentence(clipped(each.what))}{where}"
    return row([each.sign, what, *([_data([each])] if has_data else []), kind])


def _data(rows: Sequence[Row]) -> str:
    """Return what these changes copy, and whether they delete data."""
    total = sum(each.bytes for each in rows)
    copied = figure(size(total)) if total else "0"
    if not all(each.is_size_known for each in rows):
        copied = f"at least {copied}" if total else "unknown"
    destroying = [each.effect for each in rows if each.kind == DESTROYS]
    if not destroying:
        return copied
    deleted = destroying[0] if len(rows) == 1 else "destroys data"
    return deleted if copied == "0" else f"{copied}, {deleted}"


def _facts(reviewed: Plan) -> list[str]:
    """Return what it costs, in a table of two columns."""
    facts = {
        "**Copied**": _copied(reviewed),
        "**Budget**": sentence("; ".join(within_budget(reviewed)).removeprefix("with a budget of ")),
        "**Inside brokers**": _inside(reviewed),
        "**Time**": _time(reviewed),
        "**Stages**": _stages(reviewed),
        "**Leaders**": _leaders(reviewed),
        "**Most at once**": _most_at_once(reviewed),
        "**At every stage**": kept_at_every_stage(reviewed).removesuffix(" at every stage"),
    }
    return [table(("In all", ""), [row([name, text]) for name, text in facts.items() if text])]


def _copied(reviewed: Plan) -> str:
    summary, claim = reviewed.summary, _claim(reviewed)
    if not summary.replica_moves:
        return "nothing"
    where = f"{counted(summary.replica_moves, 'replica')} of {counted(_copied_partitions(reviewed), 'partition')}"
    return f"{size(summary.bytes)}, {where}; {claim}" if claim else f"{size(summary.bytes)}, {where}"


def _inside(reviewed: Plan) -> str:
    summary = reviewed.summary
    if not summary.dir_moves:
        return ""
    return "; ".join(filter(None, (between_log_dirs(summary.dir_moves, summary.dir_bytes), least_inside(reviewed))))


def _copied_partitions(reviewed: Plan) -> int:
    moving = (stage.moves for stage in reviewed.stages if isinstance(stage, ReassignStage))
    return len({move.topic_partition for moves in moving for move in moves if move.added})


def _claim(reviewed: Plan) -> str:
    claim = least_movement(reviewed)
    if not claim or not is_size_known(reviewed) or undoes(reviewed):
        return claim
    if reviewed.budgeted is not None and not reviewed.budgeted.is_whole:
        return claim
    gap = reviewed.proof.gap_percent
    return f"{claim}: gap {percent(gap / 100)}" if gap else "fewest bytes possible: proved, gap 0%"


def _time(reviewed: Plan) -> str:
    if not reviewed.summary.bytes and not reviewed.summary.dir_bytes:
        return ""
    parts = [f"{estimate(reviewed.summary.estimated_seconds)} {throttle(reviewed)}".strip(), over_least(reviewed)]
    return ", ".join(filter(None, parts))


def _stages(reviewed: Plan) -> str:
    kinds = (
        (TopicsStage, "of topic changes"),
        (ReassignStage, "of moves"),
        (ElectStage, "of elections"),
        (LogDirsStage, "of moves between log dirs"),
    )
    counts = [(sum(isinstance(stage, kind) for stage in reviewed.stages), words) for kind, words in kinds]
    told = ", ".join(f"{number(count)} {words}" for count, words in counts if count)
    told += f"; {counted(moves, 'move')} in all" if (moves := move_count(reviewed)) else ""
    return f"{number(len(reviewed.stages))}: {told}" if len(reviewed.stages) > 1 else told


def _leaders(reviewed: Plan) -> str:
    summary = reviewed.summary
    verb = "changes" if summary.leader_changes == 1 else "change"
    changing = f"{counted(summary.leader_changes, 'preferred leader')} {verb}" if summary.leader_changes else ""
    elected = counted(summary.elections, "election") if summary.elections else ""
    return "; ".join(filter(None, (changing, elected))) or "as they are"


def _most_at_once(reviewed: Plan) -> str:
    busy = [stage for stage in stages(reviewed) if stage.busiest is not None]
    if not busy:
        return ""
    worst = max(busy, key=lambda each: (each.most_arriving_bytes, each.most_arriving, -each.stage.number))
    replicas = counted(worst.most_arriving, "replica")
    return f"{replicas}, {size(worst.most_arriving_bytes)}, to broker {worst.busiest} in stage {worst.stage.number}"


def _racks(reviewed: Plan) -> list[str]:
    """Return racks and disks at the run's worst moment."""
    spread, full = rack_spread(reviewed), disks(reviewed)
    told = []
    if spread is not None and (spread.before or spread.worst):
        told.append(
            f"partitions on fewer racks than they could be: {number(spread.before)} before, "
            f"{number(spread.worst)} at the worst moment, {number(spread.after)} after"
        )
    elif spread is not None:
        told.append("every partition that it moves stands on as many racks as it can, at every stage")
    told.append(_fullest(reviewed, full))
    found = racks(reviewed)
    heads = ("Rack", "Brokers", "Replicas", "Leaders", "Data", "Arrives", *(["Fullest disk"] if full else []))
    lines = [_rack_line(each, has_disk=bool(full)) for each in found[:_RACKS_SHOWN]]
    if len(found) > len(lines):
        lines.append(row([f"and {counted(len(found) - len(lines), 'more rack')}", *[""] * (len(heads) - 1)]))
    title = f"**Racks and disks at the worst moment:** {'; '.join(told)}."
    return [title, *([table(heads, lines, right=range(1, 7))] if lines else [])]


def _fullest(reviewed: Plan, full: Sequence[Disk]) -> str:
    if full:
        return f"fullest: {', '.join(map(_disk, full[:_DISKS_SHOWN]))}"
    if not reviewed.disk_peak:
        return "how full disks get is unknown"
    most = min(reviewed.disk_peak, key=lambda id_: (-reviewed.disk_peak[id_], id_))
    return f"most data on one broker: {size(reviewed.disk_peak[most])} (broker {most}), the disks' size being unknown"


def _disk(disk: Disk) -> str:
    where = f", {code_span(clipped(disk.path))}" if disk.path else ""
    return f"{percent(disk.share)} (broker {disk.broker_id}{where}{', predicted' if disk.is_predicted else ''})"


def _rack_line(each: RackFigures, *, has_disk: bool) -> str:
    name = code_span(clipped(each.rack)) if each.rack else "(none)"
    arrives = figure(size(each.arriving_bytes)) if each.arriving_bytes else "0"
    disk = f"{disk_cell(each.disk)}, broker {each.disk.broker_id}" if each.disk else "unknown"
    cells = [name, number(each.brokers), *share_cells(each.before, each.after), arrives]
    return row([*cells, *([disk] if has_disk else [])])


def _balance(reviewed: Plan) -> list[str]:
    """Return least and most per broker before and after, and how far the most stands above the mean.

    Both of these are for each unit of capacity, and without brokers that are to be empty: these have no fair share.
    """
    sides = (reviewed.balance_before, reviewed.balance_after)
    if not all(sides):
        return []
    before, after = (list(side.values()) for side in sides)
    measures = (
        ("replicas", "replicas", [[share.replicas for share in side] for side in (before, after)], number),
        ("preferred leaders", "leaders", [[share.leaders for share in side] for side in (before, after)], number),
        ("data", "disk", [_known([share.bytes for share in side]) for side in (before, after)], size),
        ("in", "network", [_known([share.bytes_in_per_second for share in side]) for side in (before, after)], rate),
        ("out", "network", [_known([share.bytes_out_per_second for share in side]) for side in (before, after)], rate),
        (
            "in from producers",
            "network",
            [_known([share.leader_bytes_in_per_second for share in side]) for side in (before, after)],
            rate,
        ),
    )
    lines, is_weighted = [], False
    for name, measure, loads, shown in measures:
        weights = [[_capacity(reviewed, broker_id, measure) for broker_id in side] for side in sides]
        is_weighted |= len({weight for side in weights for weight in side if weight}) > 1
        if all(loads):
            ranges = [_range(shown(min(side)), shown(max(side))) for side in loads]
            whole = loads if measure != "disk" else _with_foreign(reviewed, sides, loads)
            lines.append(row([f"{name} per broker", *ranges, changed(*map(_over_mean, whole, weights))]))
    heads = ("Balance", "Before", "After", "Most / mean, by capacity" if is_weighted else "Most / mean")
    return [table(heads, lines, right=(1, 2, 3))]


def _capacity(reviewed: Plan, broker_id: int, measure: str) -> int:
    """Return the weight of a broker's fair share of that measure; 0 for one that is to be empty."""
    ground = reviewed.grounds.brokers.get(broker_id, BrokerGround())
    return 0 if ground.state in _EMPTY else ground.weight(measure)


def _with_foreign(
    reviewed: Plan, sides: Iterable[Iterable[int]], loads: Iterable[Iterable[int]]
) -> list[Sequence[int]]:
    """Return the bytes on brokers' disks, with those that are not Kafka's where disks weigh by their size."""
    brokers = reviewed.grounds.brokers
    return [
        [held + brokers.get(broker_id, BrokerGround()).foreign_bytes for broker_id, held in zip(ids, side, strict=True)]
        for ids, side in zip(sides, loads, strict=True)
    ]


def _known(values: Iterable[int | None]) -> list[int]:
    every = list(values)
    known = [value for value in every if value is not None]
    return known if len(known) == len(every) else []


def _range(low: str, high: str) -> str:
    return figure(low if low == high else f"{low} to {high}")


def _over_mean(loads: Sequence[int], capacities: Sequence[int]) -> str:
    """Return the same figure as `model.evenness`; 1 where there is nothing to share."""
    sharing = [(load, capacity) for load, capacity in zip(loads, capacities, strict=True) if capacity]
    total, capacity = sum(load for load, _ in sharing), sum(weight for _, weight in sharing)
    most = max((load / weight for load, weight in sharing), default=0)
    return f"{most * capacity / total:.3f}" if total else "1.000"


def _footer(reviewed: Plan) -> str:
    source = reviewed.source
    made = f"Plan {code_span(reviewed.id)}"
    made += f", digest {code_span(reviewed.digest)}" if reviewed.digest else ""
    made += f", undoes {code_span(source.rolls_back)}" if source.rolls_back else ""
    made += f", for commit {code_span(source.commit[:_SHORT_COMMIT])}" if source.commit else ""
    made += f", observed {_moment(source.observed_at)}" if source.observed_at else ""
    for each in source.mirrors:
        made += f", mirroring {code_span(each.cluster)}"
        made += f" as observed {_moment(each.observed_at)}" if each.observed_at else ""
    if reviewed.what_if:
        return f"{made}; of a supposed state, so `apply` refuses it."
    return f"{made}; valid while the partitions it touches and their brokers stay as they are."


def _moment(text: str) -> str:
    found = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(\.\d+)?)?Z$", text)
    return f"{found[1]} {found[2]} UTC" if found else code_span(clipped(text))
