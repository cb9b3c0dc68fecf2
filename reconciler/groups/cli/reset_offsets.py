"""Declares `reconciler groups reset-offsets`."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.values import DURATION
from reconciler.command.verbs import option, verb
from reconciler.groups.cli.arguments import group_arguments

if TYPE_CHECKING:
    from reconciler.groups.offsets import Target, TopicScope
    from reconciler.groups.workflow.reset_offsets import FromFile, ResetOutcome

STDOUT = "-"
_ISO = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_SCOPE = re.compile(r"([a-zA-Z0-9._-]{1,249})(?::(\d{1,9}(?:,\d{1,9})*))?")


class _Moment(click.ParamType[datetime]):
    """`2026-11-20T08:00:00Z`, or with another zone; without one it is UTC, as in Kafka's tool."""

    name = "datetime"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time with its zone."""
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time: write it as 2026-11-20T08:00:00Z.", param, ctx)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class _Back(click.ParamType[timedelta]):
    """`90m`, `2d`, or as Kafka's tool has it, which is java.time.Duration.parse: `PT1H30M`, `pt0.5s`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the length of time."""
        found = _ISO.fullmatch(str(value))
        if found is not None and any(found.groups()):
            days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
            micros = int(f"{found[5] or '':0<6.6}")
            try:
                return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
            except OverflowError:
                self.fail(f"{value!r} is longer than any log.", param, ctx)
        try:
            return DURATION.convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no length of time: write it as 90s, 30m, 4h, 2d, or as PT1H30M.", param, ctx)


class _Scope(click.ParamType["TopicScope"]):
    """`orders`, or some partitions of it: `orders:0,1`."""

    name = "topic"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "TopicScope":
        """Return the topic and its partitions."""
        from reconciler.groups.offsets import TopicScope

        if isinstance(value, TopicScope):
            return value
        found = _SCOPE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no topic: write its name, or with partitions orders:0,1.", param, ctx)
        numbers = tuple(sorted({int(number) for number in found[2].split(",")})) if found[2] else None
        return TopicScope(found[1], numbers)


@verb(
    "reset-offsets",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler groups reset-offsets billing --topic orders --to-earliest
        reconciler groups reset-offsets billing --topic orders:0,1 --shift-by -100 --execute
        reconciler groups reset-offsets billing --all-topics --to-datetime 2026-11-20T08:00:00Z
        reconciler groups reset-offsets billing --all-topics --to-current --export offsets.csv
        reconciler groups reset-offsets billing --from-file offsets.csv --execute
    """,
)
@group_arguments
@option("--all-groups", is_flag=True, help="Every group that has committed offsets.")
@option("--topic", "topic", type=_Scope(), metavar="TOPIC[:P,...]", multiple=True, help="Only this; repeatable.")
@option("--all-topics", is_flag=True, help="All that the group has committed.")
@option("--to-earliest", is_flag=True, help="To the first record that is still there.")
@option("--to-latest", is_flag=True, help="Behind the last record.")
@option("--to-current", is_flag=True, help="To what is committed; the latest where nothing is.")
@option("--to-offset", type=int, metavar="N", help="To that offset.")
@option("--to-datetime", type=_Moment(), metavar="TIME", help="To the first record of that time or later.")
@option("--shift-by", type=int, metavar="N", help="So many records on; back where N is below zero.")
@option("--by-duration", type=_Back(), metavar="TIME", help="To that long ago: 90m, 2d, PT1H30M.")
@option("--from-file", metavar="FILE", help="To the offsets of a CSV (- for stdin).")
@option("--export", metavar="FILE", help="Write the new offsets as CSV (- for stdout).")
@option("--execute", is_flag=True, help="Commit them; without it they are only shown.")
def command(
    asked: Asked, group_ids: tuple[str, ...], export: str | None, *, all_groups: bool, execute: bool,
    topic: "tuple[TopicScope, ...]", all_topics: bool, **targets: object,
) -> int:  # fmt: skip
    """Move the committed offsets of groups without members. Shows first, acts with --execute.

    Exactly one target is to be given, and what it is about: --topic, --all-topics, or the file itself. An offset
    outside a partition's log becomes the nearest end of it. The CSV is that of kafka-consumer-groups. A group with
    members is shown but refused (exit 3).
    """
    _refuse_unclear(asked, group_ids, topic, all_groups=all_groups, all_topics=all_topics, export=export)
    from reconciler.groups.workflow.reset_offsets import FromFile, ResetRequest, refusal, reset_offsets

    target = _target(targets)
    if isinstance(target, FromFile) == bool(topic or all_topics):
        raise click.UsageError("say what to reset with --topic or --all-topics; a file says it itself.")
    request = ResetRequest(target, group_ids, all_groups, topic or None)
    outcome = reset_offsets(asked.inputs, request, is_executed=execute)
    _show(outcome, asked, export)
    refused = refusal(outcome)
    if refused is not None:
        raise refused
    if not outcome.is_done:
        tell("Nothing has been committed: give --execute to commit these offsets.")
    return Exit.ERROR if outcome.is_partial else Exit.DONE


def _refuse_unclear(
    asked: Asked, group_ids: tuple[str, ...], scopes: "tuple[TopicScope, ...]", *, all_groups: bool, all_topics: bool,
    export: str | None,
) -> None:  # fmt: skip
    if bool(group_ids) == all_groups:
        raise click.UsageError("name the groups, or give --all-groups.")
    if scopes and all_topics:
        raise click.UsageError("give --topic or --all-topics, not both.")
    if len({scope.topic for scope in scopes}) != len(scopes):
        raise click.UsageError("a topic stands there twice: write its partitions in one --topic, such as orders:0,1.")
    if export == STDOUT and asked.is_json:
        raise click.UsageError("--export - writes CSV to stdout, where -o json would stand: export to a file.")


def _target(targets: dict[str, object]) -> "Target | timedelta | FromFile":
    from reconciler.groups.offsets import ShiftBy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
    from reconciler.groups.workflow.reset_offsets import FromFile

    given = {name: value for name, value in targets.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(given or targets))
        raise click.UsageError(f"give one target of {names}." if not given else f"give one target only, not {names}.")
    target: Target | timedelta | FromFile = ToCurrent()
    match next(iter(given.items())):
        case "to_earliest", _:
            target = ToEarliest()
        case "to_latest", _:
            target = ToLatest()
        case "to_offset", int(offset):
            target = ToOffset(offset)
        case "to_datetime", datetime() as moment:
            target = ToTime((moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1))
        case "shift_by", int(records):
            target = ShiftBy(records)
        case "by_duration", timedelta() as back:
            target = back
        case "from_file", str(path):
            target = FromFile(path)
    return target


def _show(outcome: "ResetOutcome", asked: Asked, export: str | None) -> None:
    from reconciler.groups.render import as_state
    from reconciler.groups.workflow.reset_offsets import export_offsets, offsets_csv
    from reconciler.render import as_text
    from reconciler.render.as_json import document

    shown = as_state.resets(outcome.groups, is_done=outcome.is_done).text()
    if asked.is_json:
        write(document(outcome))
    elif export == STDOUT:
        write(offsets_csv(outcome))
        tell(shown, asked.color)
    else:
        write(shown, asked.color)
    if export is not None and export != STDOUT:
        export_offsets(outcome, export)
        tell(f"Wrote {export}.")
    asked.tell(as_text.problems(outcome.warnings))
