"""The program as a list of verbs, each loaded from its own module when it is called."""

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import ClassVar, NoReturn

import click
from click.shell_completion import CompletionItem

from reconciler.cli.completion import complete_paths

VERBS = {
    "init": "Write a commented layout, or with --demo a simulated cluster to play with.",
    "import": "Write a cluster as it is, or another tool's topics, as desired state; a plan after it is empty.",
    "validate": "Check the files alone: syntax, schema, meaning.",
    "snapshot": "Write the observed state of a live cluster.",
    "diff": "Show what differs from the desired state, old -> new.",
    "plan": "Make the plan with the least movement; nothing is changed.",
    "show": "Show a saved plan in any form.",
    "apply": "Run a saved plan, move for move; run again to resume.",
    "throttle": "Change the rate of a running apply, from any machine.",
    "status": "Show the run in progress, its moves, bytes, rate and time left.",
    "cancel": "Stop a run on a legal state.",
    "doctor": "Show what is wrong with a cluster, and what to do next; take off throttles left behind.",
    "collect": "Sample a live cluster into Parquet: sizes, leaders, end offsets.",
    "loads": "Make each partition's load from samples, with Spark: what plan --loads balances on.",
    "balance": "Show who carries what, now and after a plan, in one cluster or all, with Spark.",
    "groups": "Consumer groups: who reads what, how far behind, and what a change would do.",
}


class VerbGroup(click.Group):
    """A group that knows its verbs by name, and loads one only to run it or to show its help.

    A verb `two-words` stands in the module `two_words`, after `module_prefix`, `import` in `import_`; its `command` is
    what runs.
    """

    verbs: ClassVar[Mapping[str, str]] = VERBS
    module_prefix: ClassVar[str] = "reconciler.cli."

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which they are used."""
        del ctx
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return that verb, None for an unknown one."""
        if cmd_name not in self.verbs:
            return None
        module = cmd_name.replace("-", "_") + ("_" if iskeyword(cmd_name) else "")
        command = import_module(f"{self.module_prefix}{module}").command
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
        verbs = [CompletionItem(name, help=text) for name, text in self.verbs.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without loading any."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.verbs.items()))


def _refuse_verb(ctx: click.Context, name: str, verbs: Mapping[str, str]) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(name, verbs, n=1)
    hint = f" Did you mean {near[0]}?" if near else f" Verbs: {', '.join(verbs)}."
    ctx.fail(f"There is no verb {name!r}.{hint}")
