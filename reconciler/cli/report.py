"""Errors as a person, or a program, reads them; never a traceback unless one was asked for."""

import errno
import os
import sys

import click

from reconciler.cli.terminal import tell
from reconciler.model.problem import InvalidInput, PlacementInfeasible, Problem, ReconcilerError, Remedy
from reconciler.render.escape import visible

USAGE_CODE = "KR002"
INTERNAL_CODE = "KR003"
_NO_PATH = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
_SHOWN = 200


def tell_error(error: ReconcilerError, exit_code: int, *, is_json: bool, root: str = "") -> None:
    """Tell an error on stderr: every problem on its own line, with its stable code."""
    from reconciler.render import as_json
    from reconciler.render.as_text import input_problem
    from reconciler.render.supposed import remedy_lines

    problems = problems_of(error)
    root = "" if isinstance(error, InvalidInput) and not error.is_below_root else root
    if is_json:
        tell(as_json.error(error.code, str(error), exit_code, problems, remedies_of(error)))
    elif problems:
        lines = [f"error: {input_problem(problem, root=root)}" for problem in problems]
        tell("\n".join([*lines, *remedy_lines(remedies_of(error), root=root)]), "auto")
    else:
        first, *more = (visible(line) for line in str(error).split("\n"))
        tell("\n".join([f"error: {first} ({error.code})", *more]), "auto")


def tell_usage_error(error: click.UsageError) -> None:
    """Tell what is wrong with the command line, and where its help is; where nothing was asked, the help itself."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        tell(error.format_message())
        return
    context = error.ctx
    lines = [f"error: {visible(error.format_message())} ({USAGE_CODE})"]
    if context is not None:
        lines = [context.get_usage(), *lines, f"Help: {context.command_path} --help"]
    tell("\n".join(lines), "auto")


def tell_internal_error(error: Exception, *, is_traceback_shown: bool) -> None:
    """Tell that the fault is ours; the traceback is for the report, so only with -v."""
    if is_traceback_shown:
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
        tell("\n".join(visible(_without_secrets(line)) for line in lines))
    what = visible(_without_secrets(f"{type(error).__name__}: {error}".partition("\n")[0]))
    hint = "" if is_traceback_shown else " Run it again with -v to see the traceback."
    tell(f"error: internal error, please report it: {what} ({INTERNAL_CODE}).{hint}", "auto")


def of_a_path(error: Exception) -> ReconcilerError | None:
    """Return what to tell where a path that was given cannot be one, whoever came upon it; None for anything else."""
    if not isinstance(error, OSError) or error.errno not in _NO_PATH or not isinstance(error.filename, str | bytes):
        return None
    name = os.fsdecode(error.filename)
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return ReconcilerError(f"{shown}: {error.strerror}: give another path")


def _without_secrets(text: str) -> str:
    """Return the text without what the Kafka client was told to keep; where it was never loaded, there is nothing."""
    redact = sys.modules.get("reconciler.admin.client.redact")
    return text if redact is None else str(redact.without_secrets(text))


def problems_of(error: ReconcilerError) -> tuple[Problem, ...]:
    """Return the problems that an error carries."""
    return error.problems if isinstance(error, InvalidInput | PlacementInfeasible) else ()


def remedies_of(error: ReconcilerError) -> tuple[Remedy, ...]:
    """Return what would cure an error, where that is known."""
    return error.remedies if isinstance(error, PlacementInfeasible) else ()
