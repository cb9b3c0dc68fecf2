"""How groups are named on the command line: one after the other, or with `--group` as Kafka's own tool has it."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click

Result = TypeVar("Result")


def group_arguments(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a verb the groups that it is about; it is called with `group_ids`, in order, each once."""

    @click.argument("named", metavar="[GROUP]...", nargs=-1)
    @click.option("--group", metavar="GROUP", multiple=True, show_envvar=True, help="The same, as an option.")
    @wraps(command)
    def with_groups(*arguments: object, named: tuple[str, ...], group: tuple[str, ...], **options: object) -> Result:
        return command(*arguments, group_ids=tuple(dict.fromkeys((*named, *group))), **options)

    return with_groups
