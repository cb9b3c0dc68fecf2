"""Describes what can be wrong, as data: where it is, what it is, what to do next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from reconciler.model.codec import FILLED, HIDDEN, REQUIRED, AtLeast, Key, Pattern
from reconciler.model.several import ClusterOutcome

TOO_LARGE = "KR343"
"""The error of a size, a load or a sum of them that cannot be planned exactly."""
CHANGED_PARTITIONS, MOVED_BYTES, DISK_USE = "KR411", "KR412", "KR413"
"""The violations of `limits`, for those that find them and those that look for a way out."""
RATE = "KR356"
"""The violation of a limit of a rate: raised or not, what would fit is for the operator to say."""
LIMITS = (CHANGED_PARTITIONS, MOVED_BYTES, DISK_USE)
STAGE_LIMIT = "KR419"
"""The violation of a limit in a state between, though the plan ends within it."""
DELETED_TOPICS, DELETED_BYTES, STILL_READ, RENAMED = "KR415", "KR416", "KR417", "KR418"
DELETIONS = (DELETED_TOPICS, DELETED_BYTES, STILL_READ, RENAMED)
"""The violations of what may be deleted: no other placement helps, somebody has to say what is meant."""
MISSING_BROKER, BROKER_LEFT, UNDECLARED_TOPIC, TOPIC_LEFT = "KR241", "KR242", "KR245", "KR247"
OVERFULL_BROKER, LEADERLESS = "KR362", "KR817"
UNEVEN_REPLICAS, UNEVEN_LEADERS = UNEVEN = ("KR803", "KR804")
"""The warnings that counts end less even than asked."""
MIN_ISR_REFUSED, BELOW_MIN_ISR = "KR126", "KR881"
"""A min ISR that the files declare above the replication factor, and one in force that no file declares."""
DRIFT = frozenset(
    {MISSING_BROKER, BROKER_LEFT, UNDECLARED_TOPIC, TOPIC_LEFT, STILL_READ, RENAMED, OVERFULL_BROKER, LEADERLESS}
)
"""What is declared and is not so, or undeclared where all is managed, and what no plan mends."""


class Location(NamedTuple):
    """A place in a file; lines and columns count from 1, the file is relative to the desired-state root."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @staticmethod
    def pattern() -> str:
        """Return the regular expression of its text, as schemas have it."""
        return "^.*:[0-9]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place of a text such as `topics/orders.yaml:18`; a ValueError says that it is none."""
        file, colon, line = text.rpartition(":")
        if not colon or not (line.isascii() and line.isdigit()) or len(line) > _LONGEST_LINE_NUMBER:
            raise ValueError("must be a file and a line, such as topics/orders.yaml:18")
        return cls(file, int(line))


_LONGEST_LINE_NUMBER = len(str(1 << 31))
"""Digits of more lines than a file has: what is longer is no line, and slow to read as a number."""


class Severity(StrEnum):
    """How much a problem or a finding weighs, the gravest first.

    An error stops the verb, and ends `doctor` with exit code 1; a violation stops `apply`; a warning, or a note that
    only tells, stops nothing.
    """

    ERROR = "error"
    VIOLATION = "violation"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding."""

    code: Annotated[str, "Its stable code."]
    message: Annotated[str, "What, and what next."]
    at: Annotated[Location | None, "File and line that ask for it."] = None
    severity: Annotated[Severity, HIDDEN] = Severity.ERROR
    """In a plan's file the list that a problem stands in says it."""
    beside: Annotated[tuple[Location, ...], HIDDEN] = ()
    """Other places that the message names."""

    def __str__(self) -> str:
        place = f"{self.at.file}:{self.at.line}:{self.at.column}: " if self.at else ""
        return f"{place}{self.message} ({self.code})"


def lines_of(problems: Sequence[Problem]) -> list[str]:
    """Return each problem in a line, for an error that has the code of the first: it is not said twice."""
    lines = [str(problem) for problem in problems]
    return [lines[0].removesuffix(f" ({problems[0].code})"), *lines[1:]]


def warning(code: str, message: str, at: Location | None = None) -> Problem:
    """Return what somebody must know, and what stops nothing."""
    return Problem(code, message, at, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class ReportedProblem:
    """A problem as `-o json` tells it, where no list in a plan says how much it weighs."""

    code: Annotated[str, Pattern("^KR[0-9]{3}$"), "Its stable code."]
    message: Annotated[str, "What, where and what next, in words."]
    severity: Annotated[Severity, "How much it weighs."]
    file: Annotated[str | None, "The file that it is in; null where it is in none, as the two below."]
    line: Annotated[int | None, AtLeast(1), "Its line, from 1."]
    column: Annotated[int | None, AtLeast(1), "Its column, from 1."]

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the problem in that form."""
        at = problem.at
        place = (at.file, at.line, at.column) if at is not None else (None, None, None)
        return cls(problem.code, problem.message, problem.severity, *place)


@dataclass(frozen=True, slots=True)
class Reported:
    """What `validate -o json` prints."""

    problems: Annotated[
        tuple[ReportedProblem, ...], "Every problem in every file, in the order of files and lines; none: all is well."
    ]
    summary: Annotated[
        tuple[ClusterOutcome, ...] | None,
        "What came of each cluster, where several are named; not there: they are not.",
    ] = None


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of the desired state."""

    words: Annotated[str, Key("change"), "What to change, in words."]
    at: Annotated[Location | None, "File and line to change; not there: it is written nowhere."] = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that, together, would make a refused plan fit."""

    edits: Annotated[tuple[Edit, ...], FILLED, "The changes of the desired state that belong together."]
    is_planned: Annotated[
        bool, REQUIRED, "Whether a whole plan was made with these changes; else it is known of the rules alone."
    ] = True


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error that ended a verb."""

    code: Annotated[str, Key("error/code", "The error."), Pattern("^KR[0-9]{3}$"), "Its stable code."]
    message: Annotated[str, Key("error/message"), "What, where and what next, in words."]
    exit_code: Annotated[int, Key("error/exitCode"), "The exit code of the verb."]
    problems: Annotated[
        tuple[ReportedProblem, ...], Key("error/problems"), "Every problem found, not the first alone."
    ] = ()
    remedies: Annotated[tuple[Remedy, ...], Key("error/remedies"), "What would make it fit, where that is known."] = ()
    cluster: Annotated[str | None, Key("error/cluster"), "Of several clusters, the one; not there: one was meant."] = (
        None
    )


class ReconcilerError(Exception):
    """Root of all errors that a user can cause or cure; its text says what, where and what next."""

    code = "KR001"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).code


def first_line(error: Exception) -> str:
    """Return the first line of what an error of others says, to stand in a sentence."""
    return str(error).partition("\n")[0].rstrip(".")


class InvalidInput(ReconcilerError):
    """A file or an argument does not mean anything; every problem found is in `problems`.

    `is_below_root` false: places name files as the caller did, and not from the desired-state root on.
    """

    code = "KR100"

    def __init__(self, problems: Iterable[Problem], *, is_below_root: bool = True) -> None:
        self.problems = tuple(problems)
        self.is_below_root = is_below_root
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlacementInfeasible(ReconcilerError):
    """No placement keeps every rule; each problem names a smallest set of rules in conflict, each remedy a way out."""

    code = "KR300"

    def __init__(self, problems: Iterable[Problem], remedies: Iterable[Remedy] = ()) -> None:
        self.problems = tuple(problems)
        self.remedies = tuple(remedies)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Refused(ReconcilerError):
    """A limit, a policy or a lock forbids it (exit code 3)."""

    code = "KR400"


class WouldBeRefused(ReconcilerError):
    """Kafka was asked, and would refuse some of it: nothing is changed."""

    code = "KR611"


class StalePlan(ReconcilerError):
    """The cluster is no longer as the plan saw it (exit code 4)."""

    code = "KR500"


class ClusterUnavailable(ReconcilerError):
    """The cluster does not answer, or not in time. `is_passing`: another try may succeed."""

    code = "KR600"
    is_passing = True


class NamesDiffer(ClusterUnavailable):
    """One answer of the cluster lists topics that another does not know: nothing may follow from either."""

    code = "KR612"


class CheckFailed(ClusterUnavailable):
    """Brokers and client refuse each other: no certificate, login or token will do; nothing is tried again.

    `is_passing`: only the connection broke off, as it does when such a check fails, or when a broker ends.
    """

    is_passing = False

    def __init__(self, message: str, *, code: str | None = None, is_passing: bool = False) -> None:
        super().__init__(message, code=code)
        self.is_passing = is_passing


class NotOffered(ClusterUnavailable):
    """The brokers do not take that request at all: a service that leaves it out, or a Kafka that is too old."""

    code = "KR604"
    is_passing = False

    @classmethod
    def of(cls, request: str) -> "NotOffered":
        """Return the error for a request by its name (`ElectLeaders`)."""
        return cls(f"these brokers do not take {request}")


class OutcomeUnknown(ClusterUnavailable):
    """A write got no answer and may have had its effect: look at the cluster before you repeat it."""

    code = "KR601"


class MissingRight(ReconcilerError):
    """The cluster answered that a right is missing; the text names it.

    `names`: every topic, or group, that it is missing on, where the cluster named them; empty for one on the cluster.
    """

    code = "KR610"

    def __init__(self, message: str, *, code: str | None = None, names: Iterable[str] = ()) -> None:
        super().__init__(message, code=code)
        self.names = frozenset(names)


@dataclass(frozen=True, slots=True)
class CodePage:
    """A code in words: what it means, an example (YAML that raises it, or the sentence as it is told), what to do."""

    code: str
    title: str
    severity: Severity
    meaning: str
    example: str
    is_yaml: bool
    remedy: str


@dataclass(frozen=True, slots=True)
class PlacedProblem:
    """A problem and its place in the repository.

    `path` has slashes, and is absolute where the file is outside of the repository. Lines and columns count from 1,
    columns in characters; `end_column` is that behind the line's last character. `fingerprint` stays the same while
    the line, and what follows it closely, does, wherever the line moves.
    """

    problem: Problem
    path: str
    line: int
    column: int
    end_column: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule of the user's own: a query over a plan, each row of whose answer is a violation.

    `title`: the rule in words; `query` keeps the file's lines, `at` is where it begins.
    """

    title: str
    query: str
    at: Location
