"""The page of the least rights says what the test on real brokers proves, no more and no less."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAID = {1: "needs", 0: "notes"}


@pytest.fixture(scope="module")
def proven() -> ModuleType:
    """Return the test of rights, as a module."""
    found = importlib.util.spec_from_file_location("proven_rights", ROOT / "tests" / "live" / "test_rights.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look themselves up there
    found.loader.exec_module(module)
    return module


def rows() -> list[list[str]]:
    """Return the cells of the page's table, its heading first."""
    lines = (ROOT / ".github" / "RIGHTS.md").read_text("utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in table]


def test_the_page_of_rights_is_what_the_brokers_showed(proven: ModuleType) -> None:
    heading, *found = rows()
    verbs = heading[2:]
    assert verbs == list(proven.CALLS)
    said = {
        f"{right} on {on}": {verb: cell for verb, cell in zip(verbs, cells, strict=True) if cell}
        for right, on, *cells in found
    }
    assert said == {
        resource(denied.shown): {verb: SAID[code] for verb, code in denied.told_by.items()} for denied in proven.DENIED
    }


def resource(shown: str) -> str:
    """Return how the page names what the test takes away."""
    named = {"Create on ": "Create on cluster or topic"}.get(shown, shown)
    return named.replace("on the cluster", "on cluster").replace("on topic orders", "on topic")
