"""Turns errors into exit codes and sentences; nowhere else. No traceback is shown unless it was asked for."""

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from reconciler.command.habits import answer_to_option
from reconciler.command.terminal import tell, without_secrets
from reconciler.model.gates import GateFailed
from reconciler.model.problem import (
    InvalidInput,
    PlacementInfeasible,
    Problem,
    ReconcilerError,
    Refused,
    Remedy,
    ReportedError,
    ReportedProblem,
    StalePlan,
)
from reconciler.model.run import StoppedEarly
from reconciler.render.escape import visible
from reconciler.workflow.inputs import NotNamed

if TYPE_CHECKING:
    import threading

USAGE_CODE = "KR002"
INTERNAL_CODE = "KR003"
_SHOWN = 200
"""How many characters of such a path are shown: ENAMETOOLONG may have thousands."""


class Exit(IntEnum):
    """The exit codes of all verbs."""

    DONE = 0
    ERROR = 1
    CHANGES = 2
    REFUSED = 3
    STALE = 4
    STOPPED = 5
    USAGE = 64
    INTERRUPTED = 130
    TERMINATED = 143


EPILOG = """\b
Exit codes:
  0    done, or no changes
  1    error
  2    plan or diff with --detailed-exitcode found differences
  3    refused by a limit, a policy or a lock (3 wins over 2)
  4    the plan is stale
  5    stopped early on purpose, with work left
  64   wrong usage
  130  interrupted (SIGINT)
  143  terminated (SIGTERM, SIGHUP, a closed output)"""


def exit_of(error: ReconcilerError) -> Exit:
    """Return the exit code of an error."""
    match error:
        case Refused():
            return Exit.REFUSED
        case StalePlan():
            return Exit.STALE
        case StoppedEarly():
            return Exit.STOPPED
        case NotNamed():
            return Exit.USAGE
        case _:
            return Exit.ERROR


def tell_error(
    error: ReconcilerError, exit_code: int, *, is_json: bool, root: str = "", cluster: str | None = None
) -> None:
    """Tell an error on stderr: every problem on its own line, with its stable code.

    `cluster`: of several, the one that it is about; a line that begins with a file of its folder says so already.
    """
    from reconciler.render.as_json import document
    from reconciler.render.as_text import input_problem
    from reconciler.render.supposed import remedy_lines

    problems = problems_of(error)
    root = "" if isinstance(error, InvalidInput) and not error.is_below_root else root
    if is_json:
        told = tuple(map(ReportedProblem.of, problems))
        tell(document(ReportedError(error.code, str(error), exit_code, told, tuple(remedies_of(error)), cluster)))
    elif problems:
        heads = (_about(None if _is_in(problem, cluster) else cluster) for problem in problems)
        lines = [f"{head}{input_problem(one, root=root)}" for head, one in zip(heads, problems, strict=True)]
        tell("\n".join([*lines, *remedy_lines(remedies_of(error), root=root)]), "auto")
    else:
        first, *more = (visible(line) for line in str(error).split("\n"))
        tell("\n".join([f"{_about(cluster)}{first} ({error.code})", *more]), "auto")


def _about(cluster: str | None) -> str:
    return "error: " if cluster is None else f"error: {visible(cluster)}: "


def _is_in(problem: Problem, cluster: str | None) -> bool:
    return problem.at is not None and problem.at.file.startswith(f"{cluster}/")


def tell_usage_error(error: click.UsageError, arguments: Sequence[str]) -> None:
    """Print what is wrong with the command line, and where its help is; if it is empty, print the help itself.

    The arguments show what a user of another tool meant.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        tell(error.format_message())
        return
    context = error.ctx
    message = answer_to_option(error, arguments) or error.format_message()
    lines = [f"error: {visible(message)} ({USAGE_CODE})"]
    if context is not None:
        lines = [context.get_usage(), *lines, f"Help: {context.command_path} --help"]
    tell("\n".join(lines), "auto")


def tell_internal_error(error: Exception, *, is_traceback_shown: bool) -> None:
    """Tell that the fault is ours; the traceback is for the report, so only with -v."""
    if is_traceback_shown:
        _tell_traceback(error)
    hint = "" if is_traceback_shown else " Run it again with -v to see the traceback."
    tell(f"error: {_internal(error)} ({INTERNAL_CODE}).{hint}", "auto")


def _internal(error: Exception) -> str:
    what = visible(without_secrets(f"{type(error).__name__}: {error}", is_ours=False).partition("\n")[0])
    return f"internal error, please report it: {what}"


def of_anything(error: Exception, *, is_traceback_shown: bool) -> ReconcilerError:
    """Return what to tell of an error of one cluster, where others go on; of a fault of ours the traceback is told."""
    known = error if isinstance(error, ReconcilerError) else of_a_path(error)
    if known is not None:
        return known
    if is_traceback_shown:
        _tell_traceback(error)
    return ReconcilerError(_internal(error), code=INTERNAL_CODE)


def tell_of_thread(ended: "threading.ExceptHookArgs") -> None:
    """Tell what ended a thread of a library, as Python would, but without what the library was given."""
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        _tell_traceback(ended.exc_value)


def _tell_traceback(error: BaseException) -> None:
    import traceback

    # Values go before it is cut into lines: a key in PEM has many.
    lines = without_secrets("".join(traceback.format_exception(error)), is_ours=False).splitlines()
    tell("\n".join(map(visible, lines)))


def of_a_path(error: Exception) -> ReconcilerError | None:
    """Return the system's sentence about a path, whichever code asked; None for other errors, and for a missing file.

    A user can mend the path, or the rights to it. If a file of our own is missing, the fault is ours.
    """
    if isinstance(error, FileNotFoundError) or not isinstance(error, OSError):
        return None
    if not isinstance(error.filename, str | bytes):
        return None
    name = os.fsdecode(error.filename)
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return ReconcilerError(f"{shown}: {error.strerror}: give another path, or the right to this one")


def problems_of(error: ReconcilerError) -> tuple[Problem, ...]:
    """Return the problems that an error carries."""
    return error.problems if isinstance(error, InvalidInput | PlacementInfeasible | GateFailed) else ()


def remedies_of(error: ReconcilerError) -> tuple[Remedy, ...]:
    """Return what would cure an error, where that is known."""
    return error.remedies if isinstance(error, PlacementInfeasible) else ()
