"""Calls the program as the tests of every verb do: in an empty folder, or beside a demo with its plan."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from helpers.program.call import ROOT, Program
from helpers.program.receiver import Receiver, receiving


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the environment variables that change what the program does or prints."""
    for name in [name for name in os.environ if name.startswith("RECONCILER_")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def reconciler(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, _no_variables: None
) -> Program:
    """Return the program, called in an empty folder, with none of its variables set."""
    monkeypatch.chdir(tmp_path)
    return Program(capsys)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a webhook that takes messages."""
    with receiving() as server:
        yield server


@pytest.fixture(scope="session")
def planned_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo, with small logs, and its plan, made once: copy it, never change it."""
    from reconciler.cli.main import main

    folder = tmp_path_factory.mktemp("planned")
    shutil.copytree(ROOT / "desired-state", folder / "desired-state")
    with_small_logs(folder / "desired-state" / "demo" / "snapshot.json")
    with chdir(folder):
        assert main(["plan", "--out", "plan.json"]) == 0
    return folder


def with_small_logs(snapshot: Path, times: int = 1 << 10) -> None:
    """Make each log of a snapshot so many times as small, so that its simulated moves end soon."""
    found = json.loads(snapshot.read_text("utf-8"))
    for topic in found["topics"]:
        for partition in topic["partitions"]:
            partition["sizes"] = [size and size // times for size in partition["sizes"]]
    snapshot.write_text(json.dumps(found), "utf-8")
