"""The program dies where it is told to, by a signal that nothing in it can catch."""

import shutil
from pathlib import Path

import pytest
from helpers.program.call import ROOT
from helpers.program.warm import reconciler
from live.killing import killed_at, killed_or_ended


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """Return a folder with the demo and a plan of it."""
    shutil.copytree(ROOT / "desired-state" / "demo", tmp_path / "desired-state" / "demo")
    reconciler("plan", "--out", "plan.json", cwd=tmp_path)
    return tmp_path


@pytest.mark.long
def test_it_dies_at_the_hit_asked_for_and_at_the_first_of_several_points(planned: Path) -> None:
    apply = ("apply", "plan.json", "--yes")
    assert killed_at("throttle.broker:2|stage.done:2", *apply, cwd=planned).died_at == "stage.done"
    assert killed_at("throttle.broker:2|end.before", *apply, cwd=planned).died_at == "throttle.broker"
    assert killed_or_ended("throttle.broker:99", *apply, cwd=planned) is None
    with pytest.raises(AssertionError, match="without passing"):
        killed_at("throttle.broker", *apply, cwd=planned)
