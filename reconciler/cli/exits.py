"""Every way a verb can end, as a number; nowhere else are errors turned into exit codes."""

from enum import IntEnum

from reconciler.model.problem import ReconcilerError, Refused, StalePlan
from reconciler.model.run import StoppedEarly
from reconciler.workflow.inputs import NotNamed


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


class Terminated(BaseException):
    """SIGTERM or SIGHUP came; not an Exception, so that nothing on the way takes it for a failure to be handled."""


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
