"""Declares `reconciler doctor`: shows what is wrong, and takes off throttles that runs left."""

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked, source_state
from reconciler.command.stopping import stopping
from reconciler.command.terminal import is_confirmed, require_answers, tell
from reconciler.command.verbs import option, verb
from reconciler.model.words import owner_name
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reconciler.model.diagnosis import Diagnosis, FoundThrottle
    from reconciler.workflow.doctor import Visit

THROTTLES = "throttles"


@verb(
    "doctor",
    outputs=(TEXT, JSON),
    examples="""
        reconciler doctor --cluster prod-eu
        reconciler doctor --bootstrap-server kafka-1:9092 -o json
        reconciler doctor --fix throttles
        reconciler doctor --cluster '*'
    """,
    notes="""
        \b
        It ends with 1 where a finding is an error: something offline, under min ISR,
        dead, full, without an end, or hidden for want of a right. Warnings and notes
        end with 0.
    """,
)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@option(
    "--fix",
    type=click.Choice([THROTTLES]),
    help="Take off the throttles that crashed or ended runs left; nobody else's.",
)
@option("--drop-record", metavar="DIGEST", help="Remove what the cluster keeps as a run's record, by its digest.")
@source_state
@option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
def command(asked: Asked, plan_path: str | None, fix: str | None, drop_record: str | None, *, yes: bool) -> int:
    """Show what is wrong with a cluster: versions, rights, sick partitions, what is left over, and what to do next.

    PLAN is needed only where its run was started on another machine. Changes nothing without --fix.
    """
    if asked.inputs.are_several_named:
        if fix or plan_path or drop_record:
            raise click.UsageError("With several clusters, PLAN and what changes something are not taken: name one.")
        return _several(asked)
    if asked.inputs.state:
        if fix or drop_record:
            raise click.UsageError("--fix works on a cluster, not on a snapshot: leave --state (RECONCILER_STATE) out.")
        from reconciler.workflow.doctor import look_at_snapshot

        name, found = look_at_snapshot(asked.inputs, plan_path)
        return _told(found, name, asked)
    from reconciler.command.progress import reading, working
    from reconciler.workflow.doctor import visit

    with working() if fix else nullcontext(), visit(asked.inputs, plan_path) as beside:
        if drop_record is not None:
            beside.drop_record(drop_record)
            tell(f"The record {drop_record} was removed.")
            return Exit.DONE
        with reading() as progress:
            found = beside.look(progress)
        if fix is None:
            return _told(found, beside.name, asked)
        return _fixed(beside, found, asked, is_sure=yes)


def _several(asked: Asked) -> int:
    """Look at each of several clusters by itself."""
    from reconciler.command.progress import reading
    from reconciler.command.several import of_each, tell_failed
    from reconciler.model.diagnosis import DiagnosesReport
    from reconciler.render import as_several
    from reconciler.render.as_doctor import doctor, verdict
    from reconciler.render.as_json import document
    from reconciler.workflow.doctor import visit

    def look(inputs: Inputs) -> "Diagnosis":
        with visit(inputs) as beside, reading() as progress:
            return replace(beside.look(progress), cluster=beside.name)

    each = of_each(asked, look)
    found = tuple(each.made.values())
    summary = each.summary(lambda one: (verdict(one).rstrip("."), _exit_of(one)))
    asked.write(
        text=lambda: as_several.text((doctor(one, one.cluster).text() for one in found), summary),
        json=lambda: document(DiagnosesReport(found, each.reasons, summary)),
    )
    return tell_failed(asked, each.failed, (one.exit_code for one in summary))


def _exit_of(found: "Diagnosis") -> Exit:
    return Exit.DONE if found.is_healthy else Exit.ERROR


def _told(found: "Diagnosis", name: str | None, asked: Asked, restored: tuple[str, ...] = ()) -> int:
    from reconciler.render.as_doctor import doctor
    from reconciler.render.as_json import document

    asked.write(text=doctor(found, name).text, json=lambda: document(replace(found, cluster=name, restored=restored)))
    return _exit_of(found)


def _fixed(beside: "Visit", found: "Diagnosis", asked: Asked, *, is_sure: bool) -> int:
    from reconciler.model.diagnosis import Whose
    from reconciler.workflow.runs import restored_line

    if found.locked_by is not None:
        found = beside.look_once_unlocked(tell)
    of_runs = {Whose.LEFTOVER, Whose.RECORDED}
    wanted = [one for one in found.throttles if one.whose in of_runs]
    undecided = [one for one in found.throttles if one.whose is Whose.UNDECIDED]
    if not wanted:
        tell("No throttles of runs known here are left on the cluster.")
        is_settled = not undecided and beside.settle()
        return _ended(beside.look(is_cleaned_up=True) if is_settled else found, beside, asked, undecided)
    lines = {_place(one): restored_line(one) for one in wanted}
    tell(
        "\n".join(["Throttles that runs left, and what they go back to:", *(f"  ~ {line}" for line in lines.values())])
    )
    if not is_sure:
        require_answers("look at what doctor shows")
        if not is_confirmed(f"Put back {len(lines)}?"):
            tell("Nothing has been changed.")
            return Exit.STOPPED
    with stopping() as stop:  # it is the way back already: a first signal only tells so
        ended = beside.take_off()
        remaining = {_place(one) for one in beside.still_on(wanted)}
        found = beside.look(is_cleaned_up=True)
        # A broker may hide a value from the first look, and show it now.
        later = [one for one in found.throttles if one.whose in of_runs]
        remaining |= {_place(one) for one in beside.still_on(later)}
        stopped = stop.exit
    back = tuple(line for place, line in lines.items() if place not in remaining)
    problems = [str(one) for result in ended for one in result.leftover_throttles]
    tell("\n".join([f"leftover throttles: {one}" for one in problems] + [_counted(len(back), remaining)]))
    code = _ended(found, beside, asked, undecided, back)
    return stopped or (Exit.ERROR if remaining else code)


def _place(one: "FoundThrottle") -> str:
    return f"{owner_name(one.owner)} {one.key}"


def _counted(count: int, remaining: "Collection[str]") -> str:
    """Return how many values are back, as a look afterwards shows, and the names of the others."""
    names = ", ".join(sorted(remaining))
    return f"Put back: {count}." + (f" Not put back, as a look afterwards shows: {names}." if names else "")


def _ended(
    found: "Diagnosis",
    beside: "Visit",
    asked: Asked,
    undecided: "Sequence[FoundThrottle]",
    restored: tuple[str, ...] = (),
) -> int:
    """Show what is found after a clean-up; what neither this look nor the one before can decide ends it with 5."""
    from reconciler.model.diagnosis import Whose
    from reconciler.render.as_doctor import undecided_lines

    places = {_place(one) for one in undecided}
    later = (one for one in found.throttles if one.whose is Whose.UNDECIDED and _place(one) not in places)
    undecided = [*undecided, *later]
    code = _told(found, beside.name, asked, restored)
    if undecided:
        tell("\n".join(undecided_lines(undecided)))
    return Exit.STOPPED if undecided else code
