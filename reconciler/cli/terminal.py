"""The two streams: what was asked for goes to stdout, everything else to stderr; and colour, where it is wanted."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import click

_COLORS = (
    (re.compile(r"^  \+ .*", re.MULTILINE), "green"),
    (re.compile(r"^  - .*", re.MULTILINE), "red"),
    (re.compile(r"^  ~ .*", re.MULTILINE), "yellow"),
    (re.compile(r"^(error|violation|Failed)\b", re.MULTILINE), "red"),
    (re.compile(r"^(warning|owed|Stopped|Cancelled)\b", re.MULTILINE), "yellow"),
    (re.compile(r"^(No changes\.|Done\b)", re.MULTILINE), "green"),
)


def is_colored(choice: str, *, is_terminal: bool, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether to colour: the option first, then NO_COLOR, then FORCE_COLOR, then whether people read it."""
    variables = os.environ if environ is None else environ
    if choice != "auto":
        return choice == "always"
    if variables.get("NO_COLOR"):
        return False
    if any(variables.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal and variables.get("TERM") != "dumb"


def write(text: str, color: str = "never") -> None:
    """Write what was asked for."""
    _echo(text, color, err=False)


def tell(text: str, color: str = "never") -> None:
    """Write anything else: progress, summaries, warnings."""
    _echo(text, color, err=True)


@dataclass(slots=True)
class Teller:
    """Tells each text at once, and remembers it, so that the error it was for does not tell it again."""

    texts: set[str] = field(default_factory=set)

    def __call__(self, text: str) -> None:
        """Tell it."""
        self.texts.add(text)
        tell(text)

    def once(self, text: str) -> None:
        """Tell it, unless it was told."""
        if text not in self.texts:
            self(text)


def is_interactive() -> bool:
    """Return whether somebody can be asked a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _echo(text: str, choice: str, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    is_painted = is_colored(choice, is_terminal=stream.isatty())
    click.echo(_painted(text) if is_painted else text, nl=not text.endswith("\n"), err=err, color=is_painted)


def _painted(text: str) -> str:
    for pattern, color in _COLORS:
        text = pattern.sub(click.style(r"\g<0>", fg=color), text)
    return text
