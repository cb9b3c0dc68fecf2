"""Commands as texts write them: found in help and README, and read by the command line's own parser, but not run."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from reconciler.cli.main import main, reconciler

PROGRAM = "reconciler"
ENDS = {"|", ">", ">>", "&&", ";"}


def commands_in(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each call of the program on a line of its own, without pipes and comments."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True) if re.search(rf"(^|\s){PROGRAM}\s", line) else []
        while PROGRAM in words:
            words = words[words.index(PROGRAM) + 1 :]
            end = next((index for index, word in enumerate(words) if word in ENDS), len(words))
            yield tuple(words[:end])
            words = words[end:]


def verbs(
    group: click.Group = reconciler, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each verb, and each verb of a verb, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from verbs(command, (*before, name))


def exit_code_of_reading(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how the program ends where it only reads these arguments: 0, or 64 for what it does not take."""
    with monkeypatch.context() as patched:
        patched.setattr(click.Command, "invoke", lambda _command, _context: 0)
        return main(arguments)
