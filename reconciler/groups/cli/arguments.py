"""Names the groups that a verb is about, and shows them: what list, describe, lag and the writing verbs share."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.command.options import Asked

if TYPE_CHECKING:
    from reconciler.groups.model.state import GroupState
    from reconciler.model.problem import Problem
    from reconciler.render.report import Report

Result = TypeVar("Result")


def group_arguments(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a verb the groups that it is about, one after the other or with `--group` as Kafka's own tool has it.

    The verb is called with `group_ids`, in order, each once.
    """

    @click.argument("named", metavar="[GROUP]...", nargs=-1)
    @click.option("--group", metavar="GROUP", multiple=True, show_envvar=True, help="The same, as an option.")
    @wraps(command)
    def with_groups(*arguments: object, named: tuple[str, ...], group: tuple[str, ...], **options: object) -> Result:
        return command(*arguments, group_ids=tuple(dict.fromkeys((*named, *group))), **options)

    return with_groups


def show_groups(
    asked: Asked,
    shown: "Callable[[Sequence[GroupState]], Report]",
    json: "Callable[[Sequence[GroupState], Iterable[Problem]], object]",
    group_ids: Sequence[str] = (),
    plan: str | None = None,
    *,
    topic: str | None = None,
) -> None:
    """Look at these groups, or all, and write them as text, or what `json` makes of them.

    With a plan, which of them get another coordinator by it; with a topic, those that read it.
    """
    from reconciler.command.progress import reading
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text
    from reconciler.render.as_json import document

    with reading():
        seen = groups_seen(asked.inputs, group_ids, plan_path=plan, topic=topic)
    asked.write(
        text=shown(seen.groups).text, json=lambda: document(json(seen.groups, (*seen.warnings, *seen.of_client)))
    )
    asked.tell(as_text.problems(seen.warnings))
