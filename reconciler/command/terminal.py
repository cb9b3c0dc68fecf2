"""Writes to the two streams: what was asked for to stdout, everything else to stderr; in colour where it is wanted."""

import math
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

import click

_COLORS = (
    (re.compile(r"^  \+ .*", re.MULTILINE), "green"),
    (re.compile(r"^  - .*", re.MULTILINE), "red"),
    (re.compile(r"^  ~ .*", re.MULTILINE), "yellow"),
    (re.compile(r"^(error|violation|Failed)\b", re.MULTILINE), "red"),
    (re.compile(r"^(warning|leftover throttles|Stopped|Cancelled)\b", re.MULTILINE), "yellow"),
    (re.compile(r"^(No changes\.|Done\b)", re.MULTILINE), "green"),
)
_COLUMNS = 80
# What a terminal obeys or does not show, and the older form of a command to GitHub's runner. Names are spelled out
# where they are rendered; this is for JSON, which may hold any character, and for what was forgotten there.
_OBEYED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]|#(?=#\\[)"
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


@dataclass(slots=True)
class _Choice:
    """When to colour what is told where nothing else is said."""

    color: str = "auto"


_CHOICE = _Choice()


def choose_color(choice: str) -> None:
    """Colour by this choice from now on, errors and progress included."""
    _CHOICE.color = choice


def is_stream_colored(stream: TextIO) -> bool:
    """Return whether what goes to that stream is coloured by what was chosen."""
    return is_colored(_CHOICE.color, is_terminal=stream.isatty())


def columns_shown(stream: TextIO) -> int | None:
    """Return how wide that stream is: COLUMNS, its terminal, 80 for one that does not say; None for a file or a pipe.

    A program that reads it finds a change in one line, and the same bytes, whoever started it: readline exports COLUMNS
    to all that its program starts.
    """
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except OSError:
        return _COLUMNS


def write(text: str, color: str = "never") -> None:
    """Write what was asked for."""
    _echo(text, color, err=False)


def tell(text: str, color: str = "never") -> None:
    """Write anything else: progress, summaries, warnings; secrets of client properties are taken out."""
    _echo(without_secrets(text), color, err=True)
    heard()


@dataclass(slots=True)
class _Last:
    """When somebody last heard of us."""

    at: float = field(default_factory=time.monotonic)


_LAST = _Last()


def heard() -> None:
    """Take note that something was shown just now."""
    _LAST.at = time.monotonic()


def silent_seconds() -> float:
    """Return for how long nothing was told."""
    return time.monotonic() - _LAST.at


_HIDDEN: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """Take these texts out of all that is told from now on."""
    _HIDDEN.update(secrets)


def without_secrets(text: str, *, is_ours: bool = True) -> str:
    """Return the text without what is hidden and secrets of client properties, nor any of their values if not ours.

    Where the Kafka client was never loaded no property was used, and there is nothing of it to take out.
    """
    for secret in sorted(_HIDDEN, key=len, reverse=True):
        text = text.replace(secret, "***")
    redact = sys.modules.get("reconciler.admin.client.redact")
    if redact is None:
        return text
    return str(redact.without_secrets(text) if is_ours else redact.without_values(text))


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


def require_answers(look: str) -> None:
    """Raise UsageError where nobody can be asked a question; `look`: what to look at before saying yes."""
    if not is_interactive():
        raise click.UsageError(f"nobody can be asked here: {look}, then give --yes.")


def is_confirmed(question: str) -> bool:
    """Return whether somebody says yes; the question goes to stderr, and no heartbeat is written into it."""
    _LAST.at = math.inf
    try:
        return click.confirm(question, err=True)
    finally:
        heard()


def _echo(text: str, choice: str, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    is_painted = is_stream_colored(stream) if choice == "auto" else is_colored(choice, is_terminal=stream.isatty())
    text = _OBEYED.sub(lambda found: _escaped(found.group()), text)
    text = _painted(text) if is_painted else text
    # click writes to the descriptor, past the stream that `rich` puts in place of sys.stderr to print above its bar.
    click.echo(text, stream if err else None, nl=not text.endswith("\n"), color=is_painted)


def _escaped(character: str) -> str:
    """Return the character as JSON may hold it in a text: it says the same to every program."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _painted(text: str) -> str:
    for pattern, color in _COLORS:
        text = pattern.sub(click.style(r"\g<0>", fg=color), text)
    return text
