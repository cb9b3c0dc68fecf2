"""Looks at the topics that a verb is about and shows them: what list and describe share."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.command.exits import Exit
from reconciler.command.options import Asked
from reconciler.command.verbs import option

if TYPE_CHECKING:
    from reconciler.workflow.topics import TopicsSeen

Result = TypeVar("Result")
LOADS_HELP = "What `loads` made of the cluster's samples: tells growth a day, and which topics were idle meanwhile."
SINCE_HELP = "An earlier snapshot of the same cluster: tells growth a day, and which topics were idle since."


def topic_arguments(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a verb the topics that it is about, and what growth is told by: an earlier snapshot, or loads."""

    @click.argument("patterns", metavar="[TOPIC|PATTERN]...", nargs=-1)
    @option("--since", metavar="FILE", help=SINCE_HELP)
    @option("--loads", metavar="DIR|URI", help=LOADS_HELP)
    @wraps(command)
    def with_topics(*arguments: object, **options: object) -> Result:
        return command(*arguments, **options)

    return with_topics


def show_topics(
    asked: Asked,
    patterns: tuple[str, ...],
    since: str | None,
    loads: str | None,
    *,
    has_settings: bool,
    text: "Callable[[TopicsSeen], str]",
    report: "Callable[[Iterable[TopicsSeen], Mapping[str, str]], object]",
    csv: "Callable[[Iterable[TopicsSeen]], str]",
) -> int:
    """Look at the topics of the cluster that is meant, or of each, write them, and return the worst exit code."""
    from reconciler.command.progress import reading
    from reconciler.command.several import of_one_or_each, tell_failed, tell_of
    from reconciler.render.as_json import document
    from reconciler.workflow.inputs import Inputs
    from reconciler.workflow.topics import no_such_topics, topics_seen

    if since is not None and loads is not None:
        raise click.UsageError("--since and --loads both tell growth: give one of them.")
    if since is not None and asked.inputs.are_several_named:
        raise click.UsageError("--since is a snapshot of one cluster: name that cluster alone.")

    def look(inputs: Inputs) -> "TopicsSeen":
        with reading() as progress:
            return topics_seen(inputs, patterns, since=since, loads=loads, has_settings=has_settings, progress=progress)

    found = of_one_or_each(asked, look)
    seen = found.made.values()
    asked.write(
        text=lambda: "\n".join(f"{name}\n{text(one)}" if name else text(one) for name, one in found.made.items()),
        json=lambda: document(report(seen, found.reasons)),
        csv=lambda: csv(seen),
    )
    for name, one in found.made.items():
        tell_of(asked, name, one.warnings)
    code = tell_failed(asked, found.failed)
    unmatched = {one: at for each in seen for one, at in each.unmatched.items()}
    missing = {one: at for one, at in unmatched.items() if all(one in each.unmatched for each in seen)}
    if missing and not found.failed:
        raise no_such_topics(missing, [each.observed for each in seen], root=asked.inputs.root)
    return code or Exit.DONE
