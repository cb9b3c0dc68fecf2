"""Files of format 1.0, as an earlier release wrote them: a snapshot, a plan, its rollback and a journal still serve."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.program.call import Program

from reconciler.files.journal import event_text, read_journal

FILES = Path(__file__).parent / "formats_1_0"
ID, ROLLBACK_ID = "c39dcec5", "2cfbfee7"
RATE = str(50 * 1024**2)
"""The plan's throttle, in bytes per second."""


@pytest.fixture
def shop(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The cluster of these files, simulated, as it was when the plan was made."""
    folder = tmp_path / "shop"
    shutil.copytree(FILES, folder)
    shutil.copy(folder / "snapshot.json", folder / "desired-state" / "shop" / "state.json")
    monkeypatch.chdir(folder)
    return Program(capsys)


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_plan_is_shown(shop: Program, form: str) -> None:
    ended = shop("show", "plan.json", "-o", form)
    assert ended.code == 0, ended.err
    assert ID in ended.out
    for part in ("carts", "retention.ms", "15.0 GiB", "orders"):
        assert part in ended.out


def test_a_plan_is_shown_as_json_with_the_moves_it_was_reviewed_with(shop: Program) -> None:
    ended = shop("show", "plan.json", "-o", "json")
    shown, stored = json.loads(ended.out), json.loads((FILES / "plan.json").read_text("utf-8"))
    assert shown["stages"] == stored["stages"]
    assert shown["topicChanges"] == stored["topicChanges"]
    assert (shown["id"], shown["digest"]) == (stored["id"], stored["digest"])


def test_a_plan_is_proved_with_its_snapshot(shop: Program) -> None:
    ended = shop("show", "plan.json", "--prove", "--state", "snapshot.json", "--cluster", "shop")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Proved: no plan copies fewer than 15.0 GiB")


@pytest.mark.long
def test_a_plan_runs_and_its_rollback_after_it(shop: Program) -> None:
    applied = shop("apply", "plan.json", "--yes")
    assert applied.code == 0, applied.err
    assert "5 of 5 stages, all 10 moves done" in applied.out
    again = shop("plan", "--cluster", "shop", "--detailed-exitcode")
    assert again.code == 0, again.out
    back = shop("apply", "rollback.json", "--yes")
    assert back.code == 0, back.err
    state = json.loads(Path("desired-state/shop/state.json").read_text("utf-8"))
    before = json.loads((FILES / "snapshot.json").read_text("utf-8"))
    wanted = {topic["name"]: [one["replicas"] for one in topic["partitions"]] for topic in before["topics"]}
    found = {topic["name"]: [one["replicas"] for one in topic["partitions"]] for topic in state["topics"]}
    assert {name: lists[: len(wanted[name])] for name, lists in found.items() if name in wanted} == wanted


def test_a_journal_tells_that_its_run_has_ended(shop: Program) -> None:
    journal = Path(f"runs/shop/{ID}.jsonl")
    journal.parent.mkdir(parents=True)
    shutil.copy(FILES / "journal.jsonl", journal)
    ended = shop("status", "plan.json")
    assert ended.code == 0, ended.err
    assert f"run {ID}" in ended.out


def test_a_journals_lines_are_written_as_they_were() -> None:
    lines = (FILES / "journal.jsonl").read_text("utf-8").splitlines()
    assert [event_text(event) for event in read_journal(FILES / "journal.jsonl")] == lines


@pytest.mark.long
def test_a_run_that_died_is_taken_up_and_its_throttles_taken_off(shop: Program) -> None:
    """The cluster is as stage 4 left it: throttled, nothing moved; the journal alone knows what was before."""
    lines = (FILES / "journal.jsonl").read_text("utf-8").splitlines(keepends=True)
    throttling = next(number for number, line in enumerate(lines) if '"step":"throttle"' in line)
    detail = json.loads(lines[throttling])["detail"]
    state = json.loads(Path("desired-state/shop/state.json").read_text("utf-8"))
    for broker_id, key, _ in detail["rates"]:
        next(one for one in state["brokers"] if one["id"] == broker_id).setdefault("configs", {})[key] = RATE
    for topic, key, _, items in detail["lists"]:
        next(one for one in state["topics"] if one["name"] == topic).setdefault("configs", {})[key] = items
    Path("desired-state/shop/state.json").write_text(json.dumps(state), "utf-8")
    journal = Path(f"runs/shop/{ID}.jsonl")
    journal.parent.mkdir(parents=True)
    journal.write_text("".join(lines[: throttling + 1]), "utf-8")
    assert "throttled: " in shop("status", "plan.json").out
    applied = shop("apply", "plan.json", "--yes")
    assert applied.code == 0, applied.err
    assert "5 of 5 stages, all 10 moves done" in applied.out
    assert "throttled" not in Path("desired-state/shop/state.json").read_text("utf-8")


def test_a_plan_that_was_changed_by_hand_is_refused(shop: Program) -> None:
    path = Path("plan.json")
    path.write_text(path.read_text("utf-8").replace('"bytes": 4294967296', '"bytes": 4294967295', 1), "utf-8")
    ended = shop("show", "plan.json")
    assert (ended.code, "KR213" in ended.err) == (1, True)
