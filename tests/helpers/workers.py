"""Who runs which test: a few processes, each with its own brokers or Spark, and what is long first.

Brokers and Spark are dear to start and their tests mostly wait. So tests with brokers are two units, of about the same
time: those of `tests/live`, which kill and freeze them, and the others. Each goes to one process, all that start Spark
to another, and what only computes fills the rest. `-n 0` runs everything in one process.
"""

import gc
from collections.abc import Callable, Collection, Generator

import pytest

WORKERS, QUICK_WORKERS = 3, 2
"""Two cores, and one process more: tests of brokers wait for most of their time. Quick ones only compute."""
FAULTS = "steady"
"""The unit of all tests whose brokers die, freeze or run full, after the fixture of those that share brokers."""
QUIET = ("test_log_dirs.py", "test_rights.py", "test_import.py", "test_tls.py")
"""Files of `tests/live` that need none of these: they go to the other unit, so that both take about the same time."""
SHARED = (FAULTS, "kafka", "spark", "installed")
"""Fixtures that are dear: all tests of one go to one process."""
# A unit of work is begun in this order; whatever has no place here follows, file by file.
FIRST = (FAULTS, "kafka", "spark", "installed", "java", "simulation", "long")
_ENDS = pytest.StashKey[list[Callable[[], None]]]()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return no workers for a choice of files or for figures, else a few."""
    marks = config.getoption("markexpr") or ""
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    if not is_whole or "benchmark" in marks or config.getoption("collectonly"):
        return 0
    return QUICK_WORKERS if marks == "quick" else WORKERS


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: modules and tests stay to the end, and it took a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its unit of work, before xdist reads them, and put units that take long in front."""
    ranks = {}
    for item in items:
        marks, fixtures = {mark.name for mark in item.iter_markers()}, getattr(item, "fixturenames", ())
        unit = _unit(item, marks, fixtures)
        if "xdist_group" not in marks:
            item.add_marker(pytest.mark.xdist_group(unit))
        ranks[item] = _rank(unit, marks, fixtures)
    items.sort(key=ranks.__getitem__)


@pytest.fixture(scope="session")
def at_unit_end(pytestconfig: pytest.Config) -> Callable[[Callable[[], None]], None]:
    """Return what calls a function after the last test of the unit that runs now: brokers at rest are not free."""
    return pytestconfig.stash.setdefault(_ENDS, []).append


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """End what a unit shared once its last test is torn down."""
    yield
    if nextitem is not None and nextitem.get_closest_marker("xdist_group") != item.get_closest_marker("xdist_group"):
        ends = item.config.stash.get(_ENDS, [])
        while ends:
            ends.pop()()


def _unit(item: pytest.Item, marks: Collection[str], fixtures: Collection[str]) -> str:
    shared = next((fixture for fixture in SHARED if fixture in fixtures), None)
    if shared is None and "brokers" in marks:
        return FAULTS if item.path.parent.name == "live" and item.path.name not in QUIET else "kafka"
    # One Spark after the other, whether it is the session of all or a test's own.
    return shared or ("spark" if "spark" in marks else item.nodeid.partition("::")[0])


def _rank(unit: str, marks: Collection[str], fixtures: Collection[str]) -> tuple[int, bool]:
    """Return the place of a test's unit, and whether it is one of those in the unit that share what is dear.

    Those stand last: what they share is then started late, and costs nothing while others run.
    """
    reasons = {unit, *marks, *fixtures}
    place = next((rank for rank, name in enumerate(FIRST) if name in reasons), len(FIRST))
    return place, any(name in fixtures for name in SHARED)
