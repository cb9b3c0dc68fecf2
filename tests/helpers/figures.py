"""Figures that a test run prints at its end: how many states, seeds, crash points, records were tried."""

from collections.abc import Callable

import pytest

LINES: pytest.StashKey[dict[str, str]] = pytest.StashKey()

Tell = Callable[[str, str], None]
"""Takes what was counted, and its figures in words: `figures("journal", "5,321 states after power loss in 3.1 s")`."""


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Tell:
    """Return a function that keeps one line for the end of the run; the same name again replaces its line."""
    lines = pytestconfig.stash.setdefault(LINES, {})

    def tell(name: str, told: str) -> None:
        lines[name] = told

    return tell


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's lines to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = session.config.stash.get(LINES, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Keep the lines that a worker told."""
    told = getattr(node, "workeroutput", {}).get("figures", {})
    node.config.stash.setdefault(LINES, {}).update(told)  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the lines, sorted by what was counted."""
    lines = config.stash.get(LINES, {})
    if lines:
        terminalreporter.write_sep("=", "figures")
    for name in sorted(lines):
        terminalreporter.write_line(f"{name}: {lines[name]}")
