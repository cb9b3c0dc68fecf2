"""Lists verbs, and loads the module of one only to run it or to show its help."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from reconciler.command.options import complete_paths


class Verb(NamedTuple):
    """A row of a table of verbs."""

    module: str
    """The module that holds the verb as `command`."""
    summary: str
    """What the verb does, in one line of the list."""


class VerbGroup(click.Group):
    """A group that knows its verbs by name, in the order in which they are used."""

    def __init__(self, *arguments: Any, verbs: Mapping[str, Verb], **attributes: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*arguments, **attributes)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which they are used."""
        del ctx
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return that verb, None for an unknown one."""
        if cmd_name not in self.verbs:
            return None
        command = import_module(self.verbs[cmd_name].module).command
        if ctx.resilient_parsing:
            complete_paths(command)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the arguments name; for an unknown one, name the nearest."""
        if args and args[0] not in self.verbs and not args[0].startswith("-") and not ctx.resilient_parsing:
            _refuse_verb(ctx, args[0], self.verbs)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs, or options, that begin so, without loading any verb."""
        found = [(name, verb) for name, verb in self.verbs.items() if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=verb.summary) for name, verb in found]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without loading any."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])


def _refuse_verb(ctx: click.Context, name: str, verbs: Mapping[str, Verb]) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(name, verbs, n=1)
    hint = f" Did you mean {near[0]}?" if near else f" Verbs: {', '.join(verbs)}."
    ctx.fail(f"There is no verb {name!r}.{hint}")
