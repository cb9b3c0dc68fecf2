"""Asks policies in Spark SQL over a plan's tables, in a closed room: each row that a query returns is a violation.

`open_judge` is what the verb `plan` hands to the house. Nothing here loads Spark: the room (`room`) is another process.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.balance.spark.java import require_java
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Location, Policy, Problem, ReconcilerError, Severity
from reconciler.workflow.plan import Judge

if TYPE_CHECKING:
    from reconciler.balance.files.arrow_tables import ArrowTable

BROKEN = "KR430"
MORE = "KR431"
NOT_ASKED = "KR183"
NOT_ANSWERED = "KR184"
NOT_ALLOWED = "KR185"
NOT_STARTED = "KR023"
NO_SPARK = "KR013"
OLD_SPARK = "KR294"
_OLDEST = (4, 1)
SECONDS = 300.0
"""How long one policy may take, and how long the room may take to open."""
# What Java needs, and Spark's own scripts to find it.
_ENVIRONMENT = ("PATH", "JAVA_HOME")
_ENTER = "import sys; sys.path[:] = sys.argv[1:-2]; from reconciler.balance.policies.room import main; main()"
# Spark: `(line 2, pos 7)`, `line 2 pos 7` or `== SQL (line 2, position 8) ==`
_PLACE = re.compile(r"line (\d+),? pos(?:ition)? \d+")
_NOISE = re.compile(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+.*$")


def open_judge(policies: Sequence[Policy]) -> Judge:
    """Return what asks these policies about a plan; it returns the plan with a violation for each row of an answer.

    Raises ReconcilerError where there is nothing to ask them with: none is ever left out.
    """
    _require_spark(policies)
    return partial(_judged, policies)


def _judged(policies: Sequence[Policy], plan: Plan, desired: Desired, observed: Cluster, loads: str | None) -> Plan:
    from reconciler.balance.policies.plan_tables import plan_tables, state_after
    from reconciler.diff.managed import managed_topics
    from reconciler.files.loads import loads_table
    from reconciler.files.plan_file import with_id

    declared = managed_topics(desired, observed)
    tables = {
        **plan_tables(plan, desired, observed, state_after(plan, observed), declared),
        "loads": loads_table(loads, desired.cluster.name),
    }
    with policy_room(os.environ) as room:
        found = room.violations(policies, tables)
    return with_id(replace(plan, violations=(*plan.violations, *found))) if found else plan


def _require_spark(policies: Sequence[Policy]) -> None:
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        more = f" (and {len(policies) - 1} more)" if len(policies) > 1 else ""
        message = f"the policy {policies[0].at.file}{more} is asked by Spark, which is not installed"
        raise ReconcilerError(f"{message}: pip install 'WHEEL[spark]'", code=NO_SPARK)
    _require_known_words(policies)
    require_java(os.environ)


def _require_known_words(policies: Sequence[Policy]) -> None:
    """Refuse a PySpark whose parser `closed_words` were not checked with; Spark Connect is never asked."""
    installed = _installed()
    if tuple(map(int, installed.split(".")[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        message = (
            f"the policy {policies[0].at.file} is asked by PySpark {oldest} or newer, and {installed} is installed"
        )
        raise ReconcilerError(f"{message}: install a newer one, or plan without policies", code=OLD_SPARK)


def _installed() -> str:
    """Return the version of PySpark; one that comes with a Spark, on PYTHONPATH, is not known to Python's packages."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        from pyspark.version import __version__

        return str(__version__)


class Silent(Exception):
    """The room has ended, or has not answered in time; the text says which."""


class Room:
    """A process that answers queries over the tables it was given, and can reach nothing else."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: Connection, folder: Path) -> None:
        self._process, self._pipe, self._folder = process, pipe, folder

    def violations(
        self, policies: Sequence[Policy], tables: Mapping[str, "ArrowTable"], seconds: float = SECONDS
    ) -> tuple[Problem, ...]:
        """Return a violation for each row that a policy returns, policies in their order, rows sorted by their columns.

        Of a policy 20 rows are told, and how many more there are. Raises InvalidInput with every policy that is no
        query of the closed kind, that Spark cannot ask, or that is not answered in that time or that memory.
        """
        from reconciler.balance.files.arrow_tables import write_arrow

        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for name, table in tables.items():
                write_arrow(table, Path(folder) / f"{name}.arrow")
            try:
                self._ask({"tables": folder}, SECONDS)
            except Silent as silent:
                raise self._not_started(str(silent)) from None
        found: list[Problem] = []
        wrong: list[Problem] = []
        for policy in policies:
            try:
                answer = self._ask({"query": policy.query}, seconds)
            except Silent as silent:
                wrong.append(Problem(NOT_ANSWERED, f"this policy was not answered: {silent}", policy.at))
                break
            (found if "rows" in answer else wrong).extend(_problems(policy, answer))
        if wrong:
            raise InvalidInput(wrong)
        return tuple(found)

    def opened(self) -> None:
        """Wait until queries can be asked."""
        try:
            self._answer(SECONDS)
        except Silent as silent:
            raise self._not_started(str(silent)) from None

    def _ask(self, message: Mapping[str, str], seconds: float) -> Mapping[str, Any]:
        with suppress(BrokenPipeError):
            self._pipe.send_bytes(json.dumps(message).encode())
        return self._answer(seconds)

    def _answer(self, seconds: float) -> Mapping[str, Any]:
        try:
            if not self._pipe.poll(seconds):
                raise Silent(f"it took more than {seconds:.0f} s; ask for less")
            answer: Mapping[str, Any] = json.loads(self._pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            raise Silent("Spark ended over it, most likely for want of memory; ask for less") from None
        return answer

    def _not_started(self, why: str) -> ReconcilerError:
        lines = (self._folder / "stderr.txt").read_text("utf-8", "replace").strip().splitlines()
        return ReconcilerError(f"Spark did not start for the policies: {lines[-1] if lines else why}", code=NOT_STARTED)


@contextmanager
def policy_room(environ: Mapping[str, str]) -> Iterator[Room]:
    """Yield a room, and end it afterwards with all that it has started.

    Of the environment it gets where Java is, and nothing else. Raises ReconcilerError where Java is missing or too old,
    or Spark does not start.
    """
    require_java(environ)
    with tempfile.TemporaryDirectory(prefix="reconciler-") as name:
        folder = Path(name)
        ours, theirs = Pipe()
        with ours, (folder / "stderr.txt").open("wb") as stderr:
            process = subprocess.Popen(  # noqa: S603 - this very Python
                [sys.executable, "-I", "-c", _ENTER, *sys.path, str(theirs.fileno()), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=folder,
                env=_environment(environ, folder),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            try:
                room = Room(process, ours, folder)
                room.opened()
                yield room
            finally:
                _end(process)


def _environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    kept = {name: environ[name] for name in _ENVIRONMENT if environ.get(name)}
    own = dict.fromkeys(("HOME", "TMPDIR", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"), str(folder))
    return {**kept, **own, "LC_ALL": "C.UTF-8", "SPARK_LOCAL_IP": "127.0.0.1"}


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _problems(policy: Policy, answer: Mapping[str, Any]) -> Iterator[Problem]:
    if "refused" in answer:
        yield Problem(NOT_ALLOWED, answer["refused"], Location(policy.at.file, max(1, answer["line"])))
    elif "failed" in answer:
        yield _not_asked(policy, answer["failed"])
    else:
        for row in answer["rows"]:
            yield Problem(BROKEN, f"{policy.title}: {row}", policy.at, Severity.VIOLATION)
        if answer["more"]:
            least = "at least " if answer["is_more_still"] else ""
            more = f"{policy.title}: {least}{answer['more']:,} more rows"
            yield Problem(MORE, more, policy.at, Severity.VIOLATION)


def _not_asked(policy: Policy, said: str) -> Problem:
    """Return what Spark said in one sentence, at the line that it names."""
    place = _PLACE.search(said)
    line = max(1, int(place[1]) - 1) if place else policy.at.line
    first = next(filter(None, (each.strip() for each in said.split("\n"))), "no reason given")
    reason = _NOISE.sub("", first).rstrip(". ;")
    return Problem(NOT_ASKED, f"Spark cannot ask this policy: {reason}", Location(policy.at.file, line))
