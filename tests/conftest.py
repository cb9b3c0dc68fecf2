"""What all tests share: marks, the options, and real Kafka brokers."""

import faulthandler
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster

# Hundreds of processes import the program and the tests: both are compiled once, whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

pytest.register_assert_rewrite(*sorted(area.name for area in Path(__file__).parent.iterdir() if area.is_dir()))
pytest_plugins = ("helpers.figures", "helpers.program.fixtures", "helpers.samples.spark_session", "helpers.workers")

SLOW_MARKS = ("long", "simulation", "brokers", "java", "spark", "deep", "benchmark")
ASKED_FOR = ("deep", "benchmark")
ALL_SLOW = re.compile(rf"^pytestmark = .*\bmark\.(?:{'|'.join(SLOW_MARKS)})\b", re.MULTILINE)
"""The line of a file that holds no quick test."""
HANG_OF_HOURS = 6 * 3600
"""Seconds after which a deep test or a benchmark has hung: some take hours. pyproject.toml limits all other tests."""
_CASES: pytest.StashKey[Counter[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--kafka-version`, and which seeds the simulation plays."""
    from helpers.brokers.kafka_jars import DEFAULT_VERSION

    version = os.environ.get("KAFKA_VERSION") or DEFAULT_VERSION
    parser.addoption("--kafka-version", default=version, help="Kafka version of the real brokers, such as 3.9.1")
    parser.addoption("--seeds", help="how many seeds the simulation plays, in place of its own")
    parser.addoption("--first-seed", help="the first of them")


def pytest_configure() -> None:
    """Draw the same examples in each run, on slow machines too; take SIGINT and SIGHUP as a terminal's processes do.

    Whoever was started in the background ignores SIGINT, under nohup SIGHUP, and so would every child.
    """
    settings.register_profile("repeatable", derandomize=True, deadline=None)
    settings.load_profile("repeatable")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without a quick test unread if quick tests alone are asked for."""
    if config.getoption("markexpr") != "quick" or collection_path.suffix != ".py":
        return None
    return ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) is not None or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count all cases; mark what needs nothing special as quick; keep out what nobody asked for by its mark."""
    config.stash[_CASES] = Counter(item.nodeid.partition("[")[0] for item in items)
    asked = config.getoption("markexpr") or ""
    unasked = {mark for mark in ASKED_FOR if mark not in asked}
    left_out = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks.isdisjoint(SLOW_MARKS):
            item.add_marker("quick")
        if not marks.isdisjoint(ASKED_FOR):
            item.add_marker(pytest.mark.timeout(HANG_OF_HOURS))
        if not marks.isdisjoint(unasked):
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Take back pytest's order to print all stacks: a test of hours has not hung, and printing may crash Python."""
    if any(item.get_closest_marker(mark) for mark in ASKED_FOR):
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def cases(pytestconfig: pytest.Config) -> Counter[str] | None:
    """Return how many cases each test has, by its id without parameters; None if a file was not collected."""
    cases = pytestconfig.stash[_CASES]
    files = {path.relative_to(pytestconfig.rootpath).as_posix() for path in Path(__file__).parent.rglob("test_*.py")}
    return cases if {test.partition("::")[0] for test in cases} == files else None


@pytest.fixture(scope="session")
def kafka_version(request: pytest.FixtureRequest) -> str:
    """Return the Kafka version that the real brokers run."""
    return str(request.config.getoption("--kafka-version"))


@pytest.fixture(scope="session")
def kafka(kafka_version: str, at_unit_end: Callable[[Callable[[], None]], None]) -> Iterator["KafkaCluster"]:
    """Six brokers in three racks for the whole unit: leave them alive, and use topic names of your own."""
    from helpers.brokers.cluster import KafkaCluster

    with KafkaCluster(version=kafka_version) as cluster:
        at_unit_end(cluster.close)
        yield cluster


@pytest.fixture
def new_kafka(kafka_version: str) -> Iterator[Callable[..., "KafkaCluster"]]:
    """Return a function that starts a private cluster; its arguments are KafkaCluster's. It ends with the test."""
    from helpers.brokers.cluster import KafkaCluster

    with ExitStack() as started:
        yield lambda **options: started.enter_context(KafkaCluster(version=kafka_version, **options))
