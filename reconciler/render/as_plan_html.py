"""Writes the page of a plan: one file with its style and pictures, that asks for nothing; its script is a filter."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.model.words import counted, duration, percent, size
from reconciler.render.effects import GRAVE, told, total
from reconciler.render.escape import visible
from reconciler.render.facts import kept_at_every_stage, place, reason, replica_list, undoes, within_budget
from reconciler.render.html_pages import Tile, digest, rendered, text_of
from reconciler.render.html_plan import changes, proof, sections, stage_table
from reconciler.render.html_tables import bytes_text, count_text, figure_cell
from reconciler.render.html_timeline import timeline
from reconciler.render.labels import labels
from reconciler.render.plan_figures import brokers, disks, stages
from reconciler.render.review_order import in_review_order
from reconciler.render.supposed import remedy_lines, what_if_lines

MOVES_OPEN = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation or a warning."""

    sign: str
    words: str
    is_violation: bool


@dataclass(frozen=True, slots=True)
class MoveLine:
    """A move as the table of all moves has it: `bytes` exact, None where unknown."""

    partition: str
    stage: int
    start: str
    end: str
    bytes: int | None
    data: str
    why: str


def plan(reviewed: Plan) -> str:
    """Return the whole page; whatever names and messages hold is only text on it."""
    style = text_of("page.css") + text_of("plan.css")
    script = text_of("plan.js")
    staged, shares = stages(reviewed), brokers(reviewed)
    moves = tuple(_moves(reviewed))
    return rendered(
        "plan.html.j2",
        title=f"{_kind(reviewed)} of {visible(reviewed.cluster_name)}",
        facts=tuple(_facts(reviewed)),
        labels=labels(reviewed),
        verdict=_verdict(reviewed),
        effects=tuple(_effects(reviewed)),
        findings=tuple(_findings(reviewed)),
        supposed=tuple(what_if_lines(reviewed.what_if)) if reviewed.what_if else (),
        remedies=tuple(remedy_lines(reviewed.remedies)),
        tiles=tuple(_tiles(reviewed)),
        changes=changes(reviewed),
        timeline=timeline(staged),
        stages=stage_table(staged),
        sections=tuple(each for each in sections(reviewed, shares) if each.charts or each.tables),
        proof=proof(reviewed),
        moves=moves,
        is_open=len(moves) <= MOVES_OPEN,
        style=style,
        style_hash=digest(style),
        script=script,
        script_hash=digest(script),
    )


def _kind(reviewed: Plan) -> str:
    return "Supposed plan" if reviewed.what_if else "Rollback" if undoes(reviewed) else "Plan"


def _facts(reviewed: Plan) -> Iterator[str]:
    source = reviewed.source
    yield f"plan {visible(reviewed.id)}"
    if reviewed.digest:
        yield f"digest {visible(reviewed.digest)}"
    if source.rolls_back:
        yield visible(undoes(reviewed))
    if source.commit:
        yield f"commit {visible(source.commit)}"
    yield f"cluster id {visible(reviewed.cluster_id)}"
    if source.observed_at:
        yield f"observed {visible(source.observed_at)}"
    for each in source.mirrors:
        when = f" as observed {each.observed_at}" if each.observed_at else ""
        yield f"mirroring {visible(each.cluster + when)}"
    if source.only:
        yield f"only topics {visible(', '.join(source.only))}"
    yield from within_budget(reviewed)
    yield f"{kept_at_every_stage(reviewed)}"


def _verdict(reviewed: Plan) -> str:
    if reviewed.violations:
        return f"apply refuses it: {counted(len(reviewed.violations), 'violation')}."
    if reviewed.what_if:
        return "Only supposed: apply refuses it."
    warnings = counted(len(reviewed.warnings), "warning") if reviewed.warnings else "no warning"
    return f"No violation, {warnings}."


def _effects(reviewed: Plan) -> Iterator[Finding]:
    """Yield what is destroyed in all, then each effect of a change, the gravest first."""
    lost = reviewed.summary.destroys
    if lost is not None:
        yield Finding("destroys", total(lost), is_violation=True)
    for kind, topic, words in told(reviewed.topic_changes):
        yield Finding(kind.value, f"{visible(topic)}: {words}", is_violation=kind in GRAVE)


def _findings(reviewed: Plan) -> Iterator[Finding]:
    for problem in in_review_order([*reviewed.violations, *reviewed.warnings]):
        is_violation = problem.severity is Severity.VIOLATION
        yield Finding("refused by apply" if is_violation else "warning", _words(problem), is_violation)


def _words(problem: Problem) -> str:
    where = ", ".join(filter(None, (problem.code, place(problem.at))))
    return visible(f"{problem.message} ({where})")


def _tiles(reviewed: Plan) -> Iterator[Tile]:
    summary, full = reviewed.summary, disks(reviewed)
    yield Tile("Copied", figure_cell(summary.bytes, bytes_text))
    yield Tile("Replicas copied", figure_cell(summary.replica_moves, count_text))
    if summary.dir_moves:
        yield Tile("Copied between log dirs", figure_cell(summary.dir_bytes, bytes_text))
    yield Tile("Estimated time", figure_cell(summary.estimated_seconds, duration))
    yield Tile("Stages", figure_cell(summary.stages, count_text))
    yield Tile("Preferred leaders changed", figure_cell(summary.leader_changes, count_text))
    yield Tile("Elections", figure_cell(summary.elections, count_text))
    yield Tile("Topic changes", figure_cell(summary.topic_changes, count_text))
    if full:
        yield Tile("Fullest disk, worst moment", figure_cell(full[0].share, percent))


def _moves(reviewed: Plan) -> Iterator[MoveLine]:
    for stage in reviewed.stages:
        if isinstance(stage, LogDirsStage):
            for inside in stage.moves:
                yield MoveLine(
                    visible(str(inside.topic_partition)),
                    stage.number,
                    visible(f"broker {inside.broker} {inside.from_dir}"),
                    visible(inside.to_dir),
                    inside.bytes if inside.is_size_known else None,
                    size(inside.bytes) if inside.is_size_known else "unknown",
                    _why(reviewed, inside),
                )
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                is_known = move.is_size_known or not move.added
                yield MoveLine(
                    visible(str(move.topic_partition)),
                    stage.number,
                    replica_list(move.from_replicas),
                    replica_list(move.to_replicas),
                    move.bytes if is_known else None,
                    (size(move.bytes) if move.added else "0") if is_known else "unknown",
                    _why(reviewed, move),
                )


def _why(reviewed: Plan, move: Move | DirMove) -> str:
    where = place(move.at)
    return visible(f"{reason(reviewed, move)}{f', {where}' if where else ''}")
