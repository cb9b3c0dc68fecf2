"""Kafka's own assignors, asked through the small Java program in tests/groups/java: scenarios in, results out.

The program is started from its source (`java Program.java`, JEP 330), so nothing is built beforehand. It needs a JDK,
because a bare JRE has no compiler, and Kafka's jars, which are fetched once.
"""

import functools
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from groups.scenarios import ScenarioForm, scenarios
from helpers.brokers.kafka_jars import QUICK_JAVA, jars, java
from helpers.waiting import HANG

VERSION = "4.1.1"
PROGRAM = Path(__file__).parent / "java" / "Assignors.java"
GROUPS, ALL_GROUPS = 22, 600
"""How many random groups are tried in each run, two of each class, and in all."""
ASSIGNORS = ("cooperative-sticky", "range", "roundrobin", "server-range", "server-uniform", "sticky")

AssignmentForm = Mapping[str, Mapping[str, list[int]]]


class StatsForm(TypedDict):
    max: int
    min: int
    pair_score: int
    moved_from_survivors: NotRequired[int]


class ResultForm(TypedDict):
    """One step: `rounds` for cooperative-sticky, `assignment` for the others."""

    assignment: NotRequired[AssignmentForm]
    rounds: NotRequired[list[AssignmentForm]]
    stats: StatsForm


class AnswerForm(TypedDict):
    """What Kafka's classes say of one scenario.

    `cpuSeconds` holds, where asked for, one list for each repetition, with the CPU seconds of each step.
    """

    id: str
    expected: dict[str, list[ResultForm]]
    insertion_order_sensitive_from_step: dict[str, int]
    failed: NotRequired[dict[str, str]]
    cpuSeconds: NotRequired[dict[str, list[list[float]]]]


class Question(TypedDict):
    """What to ask of every scenario: which assignors, how many orders of the members, how often to time it."""

    assignors: NotRequired[list[str]]
    orders: NotRequired[int]
    timed: NotRequired[int]


@functools.cache
def why_not() -> str | None:
    """Return why the program cannot run here, None where it can; no Java at all is an error, as for the brokers."""
    modules = subprocess.run([java(), "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" in modules:
        return None
    return "Kafka's assignors are asked through a Java program, which needs a JDK: this Java is a JRE without compiler"


@functools.cache
def random_groups(count: int) -> tuple[tuple[ScenarioForm, AnswerForm], ...]:
    """Return random groups, each with what all of Kafka's classes answer; Java is started once for all tests."""
    made = scenarios(count)
    return tuple(zip(made, ask(made, {"orders": 1}), strict=True))


def ask(asked: Iterable[ScenarioForm], question: Question | None = None) -> list[AnswerForm]:
    """Return what Kafka's classes answer to each scenario, in order."""
    lines = "".join(json.dumps({**scenario, **(question or {})}) + "\n" for scenario in asked)
    libraries = jars(VERSION)
    command = [java(), *QUICK_JAVA, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command += ["-cp", f"{libraries}/*", str(PROGRAM)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=HANG)
    if done.returncode != 0:
        raise RuntimeError(f"{PROGRAM.name} failed: {done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
