"""No test can fail because a machine is slow: outside the benchmarks none reads a clock or bounds a wait of its own.

`helpers/waiting.py` is the one place that does. A time that the product works with is a value of a simulated clock.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent
WAITING, BENCHMARKS = "helpers/waiting.py", "benchmarks/"
ALLOWED = {
    "conftest.py pytest_collection_modifyitems": "a test that takes six hours has hung",
    "helpers/program/warm.py main": "figures are printed of it: the processor time of each verb",
    "helpers/outputs/record.py record": "it replaces the moments of the day on which it runs",
    "helpers/brokers/delivery.py _told": "a figure is told of it: the longest time without an acknowledgement",
    "live/worlds.py _moment": "a figure is told of it: how long a run took, and the longest time without a word",
    "scenarios/skewed_load.py _produce": "a producer keeps to a rate",
    "live/test_refused_login.py token": "a token says until when it holds",
    "live/test_faults.py test_a_destination_that_is_frozen_for_a_while_gets_its_replicas": "so long it is frozen",
}
CLOCKS = frozenset(
    f"{name}{unit}" for name in ("monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
) | {"time_ns", "clock_gettime", "getrusage", "ru_utime", "ru_stime", "utcnow", "RLIMIT_CPU"}
OF_A_MODULE = {"time": {"time", "sleep"}, "os": {"times"}, "datetime": {"now", "today"}, "date": {"today"}}
MEASURED = frozenset({"cpu", "cpu_seconds", "elapsed", "took", "wall_seconds"})
"""Names under which a child process, or a helper, would hand on what a clock said."""
LIMITS = frozenset({"HANG", "ATTEMPT"})
WAITS = {"wait": 0, "join": 0, "result": 0, "communicate": 1, "flush": 0, "settimeout": 0, "alarm": 0, "Timer": 0}
"""Calls that take a limit in seconds, and at which place."""
HINTS = re.compile(
    r"timeout|deadline|import time|from time|timeit|datetime|\bos\.times|settimeout|alarm\(|Timer\(|select\.select"
    rf"|\.(?:wait|join|result|communicate|flush)\((?=\s*[\dA-Z])|\b(?:{'|'.join(sorted(CLOCKS | MEASURED))})\b"
)
"""What a file holds that may be flagged: the others need not be parsed."""


class Finding(NamedTuple):
    """One thing that depends on the speed of the machine."""

    line: int
    where: str
    what: str


def findings(source: str) -> list[Finding]:
    """Return what a test file reads off a clock, compares with a time that was measured, or waits for so long."""
    if not HINTS.search(source):
        return []
    tree = ast.parse(source)
    constants = {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    return sorted(set(_Reader(constants).read(tree, "")))


class _Reader:
    """Walks one file; `constants` are the values that it gives to names of the whole module."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def read(self, node: ast.AST, where: str, *, is_pace: bool = False) -> Iterator[Finding]:
        """Yield what is found in a node; `where`: the function around it. A wait that a loop runs by is a pace."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            where = node.name
        for what in self._wrong(node, is_pace=is_pace):
            yield Finding(getattr(node, "lineno", 0), where, what)
        for name, value in ast.iter_fields(node):
            is_test = isinstance(node, ast.While) and name == "test"
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.read(child, where, is_pace=is_test or (is_pace and isinstance(node, ast.UnaryOp)))

    def _wrong(self, node: ast.AST, *, is_pace: bool) -> Iterator[str]:
        match node:
            case ast.ImportFrom(module="time" | "timeit") | ast.Import(names=[ast.alias(name="timeit")]):
                yield "imports a clock"
            case ast.Import(names=names):
                if any(alias.name == "time" and alias.asname for alias in names):
                    yield "hides a clock behind another name"
            case ast.Attribute(attr=attr) if attr in CLOCKS:
                yield f"reads a clock: {attr}"
            case ast.Attribute(value=ast.Name(id=module), attr=attr) if attr in OF_A_MODULE.get(module, ()):
                yield (
                    f"reads a clock: {module}.{attr}" if attr != "sleep" else "sleeps instead of waiting for something"
                )
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr="timeout"):
                yield "bounds the time of a test"
            case ast.Compare(left=left, comparators=others):
                measured = sorted({name for each in (left, *others) for name in _names(each)} & MEASURED)
                if measured:
                    yield f"compares a time that was measured: {', '.join(measured)}"
            case ast.Call():
                yield from self._limits(node, is_pace=is_pace)

    def _limits(self, call: ast.Call, *, is_pace: bool) -> Iterator[str]:
        function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for keyword in call.keywords:
            is_bound = keyword.arg == "timeout" or (keyword.arg == "deadline" and function == "settings")
            if is_bound and not (_is_none(keyword.value) or _names(keyword.value) & LIMITS):
                yield f"has a limit of its own: {keyword.arg}={ast.unparse(keyword.value)}"
        place = 3 if function == "select" else WAITS.get(function)
        if place is not None and len(call.args) > place and not is_pace:
            limit = call.args[place]
            if self._is_number(limit):
                yield f"has a limit of its own: {function}({ast.unparse(limit)})"

    def _is_number(self, node: ast.expr) -> bool:
        value: object = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name) and node.id not in LIMITS:
            value = self._constants.get(node.id)
        return isinstance(value, int | float) and value > 0


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _names(node: ast.expr) -> set[str]:
    """Return the names, attributes and keys in an expression, but for what is only an argument of a call."""
    found = set()
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            found.add(name)
        case ast.BinOp(left=left, right=right):
            found |= _names(left) | _names(right)
        case ast.Call(func=function):
            found |= _names(function)
    return found


def _of_all_tests() -> Iterator[tuple[str, Finding]]:
    for file in sorted(TESTS.rglob("*.py")):
        name = file.relative_to(TESTS).as_posix()
        if name != WAITING and not name.startswith(BENCHMARKS):
            yield from ((name, found) for found in findings(file.read_text("utf-8")))


@pytest.mark.long
def test_no_test_reads_a_clock_or_bounds_a_wait_of_its_own() -> None:
    found = list(_of_all_tests())
    wrong = [f"tests/{name}:{each.line} {each.what}" for name, each in found if f"{name} {each.where}" not in ALLOWED]
    assert wrong == [], "what should be fast is a figure of tests/benchmarks; a wait is one of helpers/waiting.py"
    assert {f"{name} {each.where}" for name, each in found} == set(ALLOWED), "an exception that nothing needs any more"


@pytest.mark.parametrize(
    "planted",
    [
        "import time\nbegan = time.monotonic()\nwork()\nassert time.monotonic() - began < 30",
        "import time\nend = time.time() + 20\nwhile not done():\n    assert time.time() < end",
        "import time as clock\nbegan = clock.time()",
        "from time import perf_counter\nbegan = perf_counter()",
        "from time import sleep\nsleep(2)\nassert done()",
        "import time\ntime.sleep(2.5)\nassert done()",
        "import resource\nassert resource.getrusage(resource.RUSAGE_SELF).ru_utime < 2",
        "import os\nassert os.times().user < 2",
        "import timeit\nassert timeit.timeit(work) < 1",
        "from datetime import datetime, UTC\nassert (datetime.now(UTC) - began).seconds < 60",
        "assert spent.cpu < 2.0",
        "checks = {'dear': told['cpu'] < LIMIT}",
        "if outcome.elapsed > 3 * expected:\n    raise AssertionError",
        "import subprocess\nsubprocess.run(command, timeout=20)",
        "PATIENCE = 30\nprocess.communicate(timeout=PATIENCE)",
        "def ended(self, timeout=60):\n    return self.process.wait(timeout=timeout)",
        "process.wait(10)",
        "SECONDS = 30\nassert event.wait(SECONDS)",
        "future.result(30)",
        "thread.join(5)\nassert not thread.is_alive()",
        "producer.flush(60)",
        "kafka.wait_for(lambda: done(), 'it', timeout=10)",
        "import signal\nsignal.alarm(5)",
        "import threading\nthreading.Timer(20, process.kill)",
        "import select\nassert select.select([stream], [], [], 5)[0]",
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (20, 20))",
        "from hypothesis import settings\n@settings(deadline=200)\ndef test_it(): ...",
        "import pytest\n@pytest.mark.timeout(30)\ndef test_it(): ...",
        "while True:\n    assert is_over.wait(5)",
    ],
)
def test_what_depends_on_the_speed_of_the_machine_is_found(planted: str) -> None:
    assert findings(planted) != []


@pytest.mark.parametrize(
    "innocent",
    [
        "from helpers.waiting import HANG, wait_for\nwait_for(done, 'it')\nprocess.communicate(timeout=HANG)",
        "from helpers.waiting import HANG\nimport signal\nsignal.alarm(HANG)\nthread.join(HANG)",
        "from helpers.waiting import ATTEMPT\nadmin.list_topics(timeout=ATTEMPT)",
        "assert run_plan(plan, admin).seconds < 60",
        "assert admin.clock.now() + timedelta(seconds=5) < deadline",
        "admin.clock.sleep(60)\nassert status.eta_seconds == 5",
        "assert [event.time for event in events] == sorted(event.time for event in events)",
        "from datetime import UTC, datetime\nassert datetime(2026, 11, 21, tzinfo=UTC) < window.end",
        "monkeypatch.setattr(wire, 'time', SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))",
        "run_plan(plan, admin, deadline=admin.clock.now())\nMovePolicy(timeout_seconds=9)",
        "from hypothesis import settings\nsettings(max_examples=300, deadline=None)",
        "while not self.is_over.wait(0.1):\n    produce()",
        "sock.settimeout(0)\nassert ', '.join(names) == 'a, b'",
        "assert spent.megabytes < 256",
        "figures('starts', f'{cpu:.2f} CPU seconds')",
        "client = {'request.timeout.ms': '5000', 'sess.timeout': 3}",
        "text = 'subprocess.run(command, timeout=5)'",
    ],
)
def test_what_does_not_is_left_alone(innocent: str) -> None:
    assert findings(innocent) == []
