"""Declares verbs, each in one place, and lists them so that a verb's module is loaded only when the verb runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.habits import answer_to
from reconciler.command.options import asked_for, complete_paths, refuse_state, verb_options
from reconciler.command.stopping import Ended

option = partial(click.option, show_envvar=True)
"""An option of a verb's own; its help names its variable."""


def verb(
    name: str, *, outputs: Sequence[str], examples: str, notes: str = "", is_live: bool = False
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a verb of a function: it is called with what was asked for and the verb's own options.

    `outputs`: the forms that the verb has; any other is refused. `examples`, `notes`: for the end of its help.
    `is_live`: it works on a cluster alone, so a snapshot (--state) is refused. The function returns the exit code, None
    for 0; an error, or Ended, has its own.
    """

    def declared(run: Callable[..., int | None]) -> click.Command:
        @verb_options(*outputs)
        def called(*arguments: object, **values: object) -> int:
            context = click.get_current_context()
            asked = asked_for(context)
            if is_live:
                refuse_state(asked, context.command_path.partition(" ")[2])
            from reconciler.command.progress import heartbeat

            try:
                with heartbeat():
                    return run(asked, *arguments, **values) or Exit.DONE
            except Ended as ended:
                return ended.code

        called.__doc__ = run.__doc__
        called.__click_params__ += getattr(run, "__click_params__", [])  # type: ignore[attr-defined] # click's own notes
        return click.command(name, epilog=epilog(examples, notes))(called)

    return declared


def epilog(examples: str, notes: str = "") -> str:
    """Return the end of a verb's help: examples, notes and the exit codes."""
    written = cleandoc(examples).replace("\n", "\n  ")
    more = f"\n{cleandoc(notes)}\n" if notes else ""
    return f"\b\nExamples:\n  {written}\n{more}\n{EPILOG}"


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
        """Return the verb that the arguments name; for an unknown one, name the right or nearest one."""
        if args and args[0] not in self.verbs and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.verbs, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Verbs: {', '.join(self.verbs)}."
            ctx.fail(f"There is no verb {args[0]!r}. {answer_to(args[0]) or hint}")
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
