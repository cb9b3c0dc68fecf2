"""Paths stay below the root that they begin in: those of documents, of journals, and of requests to stop."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.sample_plan import sample_plan

from reconciler.files.inside import inside
from reconciler.files.journal import journal_path
from reconciler.files.lock_file import LockFile, asking
from reconciler.files.plan_file import plan_from_json
from reconciler.model.codec import Malformed, to_json
from reconciler.model.lock import Holder, StopRequest
from reconciler.model.problem import Refused

STEPS_UP = ("..", "../x", "a/../../x", "/x")
LIKE_THEM = ("..\\x", "\u2025", "\uff0e\uff0e", "..\uff0fx", "..\u2044x", "%2e%2e", "..\0", "..\u200b")
ODD = ("...", "~", "-x", " ", "x" * 5000)


@pytest.mark.parametrize("way", ["state.json", "nosuch", "nosuch/further", ".", "../prod/state.json"])
def test_a_path_below_the_root_is_told_without_links(tmp_path: Path, way: str) -> None:
    (tmp_path / "prod").mkdir()
    found = inside(tmp_path, tmp_path / "prod" / way)
    assert found is not None
    assert found.is_relative_to(tmp_path)
    assert os.path.realpath(found) == str(found)


def test_the_journal_of_any_plan_that_can_be_read_is_in_a_folder_of_runs(tmp_path: Path) -> None:
    read = []
    for name in (*STEPS_UP, *LIKE_THEM, *ODD):
        try:
            plan = plan_from_json(to_json(replace(sample_plan(), cluster_name=name)))
        except Malformed:
            continue
        journal = journal_path(tmp_path, plan.cluster_name, plan.id)
        assert os.path.normpath(journal) == str(journal)
        assert journal.parent.parent == tmp_path / "runs"
        read.append(name)
    assert not {*STEPS_UP} & {*read}
    assert len(read) > len(ODD)


def test_who_asks_a_run_to_stop_writes_through_no_link(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "state.json")
    asking(lock.path).symlink_to(tmp_path / "outside")
    with pytest.raises(Refused):
        lock.ask_to_stop(StopRequest("apply", Holder("cancel", "me", "here", 1, "now")))
    assert not (tmp_path / "outside").exists()
