"""`cancel`, and `cancel --rollback`, as an operator calls them: shown, asked, saved, run, refused."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program, all_of, on_a_terminal
from helpers.program.documents import document, write_simulated
from helpers.program.held_runs import HeldRun
from helpers.waiting import wait_for

from reconciler.apply.crash import Killed, planted
from reconciler.files.lock_file import LockFile
from reconciler.files.plan_file import read_plan
from reconciler.files.snapshot import read_snapshot
from reconciler.model.lock import Holder

pytestmark = pytest.mark.long

DECLARED = document("Topic", "orders", "{config: {retention.ms: 7d}, placement: {assignment: [[1, 2, 4], [5, 6, 1]]}}")


@pytest.fixture
def small(tmp_path: Path, reconciler: Program) -> Path:
    """Return the simulated cluster's file: a plan of two partitions has run, and stands in plan.json."""
    before = small_cluster("orders-0: 1,2,3 size 90000000", "orders-1: 2,3,1 size 90000000")
    snapshot = write_simulated(before, DECLARED, spec="moves: {throttle: 50MiB/s}")
    assert reconciler("plan", "--out", "plan.json").code == 0
    return tmp_path / snapshot


@pytest.fixture
def applied(small: Path, reconciler: Program) -> Path:
    """Return the same once the plan has run."""
    assert reconciler("apply", "plan.json", "--yes").code == 0
    return small


def lists(path: Path) -> list[tuple[int, ...]]:
    return [partition.replicas for _, partition in read_snapshot(path).partitions()]


BEFORE, AFTER = [(1, 2, 3), (2, 3, 1)], [(1, 2, 4), (5, 6, 1)]


def test_cancel_of_a_finished_run_says_that_it_has_ended_and_changes_nothing(
    reconciler: Program, applied: Path
) -> None:
    (journal,) = Path("runs/small").glob("*.jsonl")
    before = applied.read_bytes(), journal.read_bytes()
    ended = reconciler("cancel")
    assert ended.code == 0
    told = f"Nothing to cancel: the run of plan {read_plan('plan.json').id} has ended, all 3 moves done.\n"
    assert (ended.out, ended.err) == (told, "cancel --rollback undoes it.\n")
    assert lists(applied) == AFTER
    assert reconciler("cancel").out == ended.out
    value = json.loads(reconciler("cancel", "-o", "json").out)
    assert (value["state"], value["writes"], value["moves"]["done"], value["left"]) == ("done", 0, 3, [])
    assert (applied.read_bytes(), journal.read_bytes()) == before
    assert "done: " in reconciler("status").out


def test_cancel_of_a_plan_that_never_ran_changes_nothing(reconciler: Program, small: Path) -> None:
    before = small.read_bytes()
    ended = reconciler("cancel", "plan.json", "--yes")
    assert (ended.code, ended.err) == (0, "")
    told = f"Nothing to cancel: nothing of plan {read_plan('plan.json').id} is on the cluster.\n"
    assert ended.out == told
    assert small.read_bytes() == before
    assert not list(Path("runs").rglob("*.jsonl"))


def test_a_rollback_is_saved_shown_in_every_form_and_run_by_apply(reconciler: Program, applied: Path) -> None:
    before = applied.read_bytes()
    saved = reconciler("cancel", "--rollback", "--out", "back.json")
    assert saved.code == 0
    assert saved.err == "Saved to back.json: nothing has been changed.\n"
    undone = read_plan("plan.json").id
    parts = [
        f"A rollback: undoes plan {undone}.",
        "back: 2 partitions to where the plan found them",
        "[1, 2, 4] -> [1, 2, 3]",
        "retention.ms 604800000 -> ",
        "(no way back copies less)",
        "Min ISR kept at every stage",
    ]
    assert all_of(saved.out, parts) == []
    assert reconciler("show", "back.json").out == saved.out
    assert applied.read_bytes() == before
    markdown = reconciler("show", "back.json", "-o", "markdown").out
    assert (
        all_of(markdown, ["<!-- reconciler rollback small -->", f"undoes `{undone}`", "no way back copies less"]) == []
    )
    assert json.loads(reconciler("show", "back.json", "-o", "json").out)["source"]["rollsBack"] == undone
    assert reconciler("show", "back.json", "-o", "kafka-json", "--out", "files").code == 0
    assert list(Path("files").glob("*-rollback.json"))
    explained = reconciler("show", "back.json", "--explain", "orders-0")
    assert (explained.code, f"it goes back to what plan {undone} found" in explained.err) == (1, True)
    proved = reconciler("show", "back.json", "--prove")
    assert (proved.code, "there is nothing to prove (KR509)" in proved.err) == (1, True)
    assert reconciler("apply", "back.json", "--yes").code == 0
    assert lists(applied) == BEFORE
    assert read_snapshot(applied).topics["orders"].configs == {}


def test_a_dry_run_shows_the_same_and_changes_nothing(reconciler: Program, applied: Path) -> None:
    before = applied.read_bytes()
    for form, words in (
        ("text", "to where the plan found them"),
        ("json", "rollsBack"),
        ("markdown", "to where the plan found them"),
    ):
        ended = reconciler("cancel", "--rollback", "--dry-run", "-o", form)
        assert (ended.code, ended.err) == (0, "Dry run: nothing has been changed.\n")
        assert words in ended.out, ended
    assert applied.read_bytes() == before


def test_a_rollback_runs_with_yes_and_a_second_one_has_nothing_to_do(reconciler: Program, applied: Path) -> None:
    undone = read_plan("plan.json").id
    ended = reconciler("cancel", "--rollback", "--yes")
    assert ended.code == 0
    assert all_of(ended.out, [f"undoes plan {undone}.", "Done in ", "(simulated ", "all 3 moves done."]) == []
    assert lists(applied) == BEFORE
    snapshot = applied.read_bytes()
    again = reconciler("cancel", "--rollback", "--yes", "-o", "json")
    assert again.code == 0
    told = json.loads(again.out)
    assert (told["undoes"], told["runs"], told["cancelled"]["writes"]) == (undone, [], 0)
    assert f"Nothing of plan {undone} is left to undo." in reconciler("cancel", "--rollback", "--yes", "plan.json").out
    assert applied.read_bytes() == snapshot
    assert reconciler("plan", "--detailed-exitcode").code == 2
    assert reconciler("apply", "plan.json", "--yes").code == 0
    assert lists(applied) == AFTER
    told = json.loads(reconciler("cancel", "--rollback", "--yes", "-o", "json").out)
    assert [run["state"] for run in told["runs"]] == ["done"]
    assert lists(applied) == BEFORE


@pytest.mark.parametrize(("answer", "code"), [(False, 5), (True, 0)])
def test_on_a_terminal_the_rollback_is_shown_and_asked_for(
    reconciler: Program, applied: Path, monkeypatch: pytest.MonkeyPatch, *, answer: bool, code: int
) -> None:
    asked = on_a_terminal(monkeypatch, answer=answer)
    ended = reconciler("cancel", "--rollback")
    assert ended.code == code
    assert asked == ["Run this rollback on small (simulated)?"]
    assert "back: 2 partitions to where the plan found them" in ended.err
    assert ("What had ended stays as it is." in ended.err) is not answer
    assert lists(applied) == (BEFORE if answer else AFTER)


def test_what_cannot_go_back_is_named_and_the_exit_code_is_1(reconciler: Program, applied: Path) -> None:
    document = json.loads(applied.read_text("utf-8"))
    partition = document["topics"][0]["partitions"][0]
    partition["replicas"] = partition["isr"] = [1, 2, 6]
    applied.write_text(json.dumps(document))
    predicted = reconciler("cancel", "--rollback", "--dry-run")
    assert (predicted.code, "would end with exit code 1" in predicted.err) == (1, True)
    ended = reconciler("cancel", "--rollback", "--yes")
    told = "orders-0 is on [1, 2, 6], where this plan never put it"
    assert (ended.code, "KR717" in ended.err, told in ended.err) == (1, True, True), ended
    assert lists(applied) == [(1, 2, 6), (2, 3, 1)]


def test_a_locked_cluster_is_rolled_back_neither_in_earnest_nor_dry(reconciler: Program, applied: Path) -> None:
    held = LockFile(applied).take(Holder("apply of plan 5ca1ab1e", "kim", "build-7", 1, "now"))
    assert [reconciler("cancel", "--rollback", how).code for how in ("--dry-run", "--yes")] == [3, 3]
    held.release()


def test_a_rollback_over_a_limit_is_shown_and_refused_with_3(reconciler: Program, applied: Path) -> None:
    yaml = applied.parent / "cluster.yaml"
    yaml.write_text(yaml.read_text().replace("moves:", "limits: {movedBytes: 1MiB}, moves:"))
    shown = reconciler("cancel", "--rollback", "--dry-run")
    assert (shown.code, "limits.movedBytes is 1.0 MiB: raise it (KR412" in shown.out) == (3, True)
    assert reconciler("cancel", "--rollback", "--yes").code == 3
    assert lists(applied) == AFTER


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--out", "x.json"], "are for cancel --rollback"),
        (["--dry-run"], "are for cancel --rollback"),
        (["-o", "markdown"], "has no output markdown but"),
        (["--rollback"], "nobody can be asked here"),
        (["--rollback", "--yes", "-o", "markdown"], "needs --dry-run or --out FILE"),
        (["--rollback", "--state", "x.json"], "leave --state"),
    ],
)
def test_wrong_usage_is_told_and_changes_nothing(reconciler: Program, arguments: list[str], hint: str) -> None:
    ended = reconciler("cancel", *arguments)
    assert (ended.code, hint in ended.err) == (64, True), ended.err


def test_without_a_run_the_plan_must_be_named(reconciler: Program, small: Path) -> None:
    ended = reconciler("cancel", "--rollback", "--yes")
    assert (ended.code, "no run of small is known on this machine" in ended.err) == (1, True)
    assert reconciler("cancel", "--rollback", "--yes", "plan.json").code == 0
    assert lists(small) == BEFORE


def test_a_plan_of_a_supposed_state_has_nothing_to_undo(reconciler: Program, small: Path) -> None:
    assert small.exists()
    assert reconciler("plan", "--what-if", "add=9@c", "--out", "if.json").code == 0
    assert reconciler("cancel", "--rollback", "--yes", "if.json").code == 3


def test_a_signal_ends_a_rollback_in_order_and_the_next_one_goes_on(
    reconciler: Program, applied: Path, tmp_path: Path
) -> None:
    cancelling = HeldRun(tmp_path / "held", "cancel", "--rollback", "--yes", at="poll", has_own_journal=False)
    wait_for(lambda: cancelling.is_there or cancelling.is_over, "the moves")
    cancelling.signal(signal.SIGHUP)
    cancelling.go_on()
    ended, told = cancelling.ended()
    assert ended == 143, told
    assert "stage 2/" in told
    assert "Traceback" not in told
    undone = read_plan("plan.json").id
    assert "; run cancel --rollback again to go on" in told
    assert f"cancel --rollback goes on with it; an apply of plan {undone} would undo it." in told
    assert "run apply" not in told
    status = reconciler("status").out
    assert (
        all_of(status, [f"the rollback of plan {undone}, stopped: ", "next: cancel --rollback goes on with it"]) == []
    )
    plain = reconciler("cancel")
    assert "apply goes on" not in plain.err
    assert "throttled" not in applied.read_text("utf-8")
    again = reconciler("cancel", "--rollback", "--yes")
    assert again.code == 0
    assert lists(applied) == BEFORE


@pytest.mark.parametrize(
    ("number", "code", "point"),
    [
        (signal.SIGINT, 130, "withdraw.before"),
        (signal.SIGTERM, 143, "unthrottle.broker"),
        (signal.SIGHUP, 143, "unthrottle.broker"),
    ],
)
def test_a_signal_does_not_stop_a_cancel_on_its_way_back(
    reconciler: Program, small: Path, number: signal.Signals, code: int, point: str
) -> None:
    with planted(_at("poll", _killed)), pytest.raises(Killed):
        reconciler("apply", "plan.json", "--yes")
    assert "throttled" in small.read_text("utf-8")
    with planted(_at(point, lambda: os.kill(os.getpid(), number))):
        ended = reconciler("cancel", "plan.json")
    assert (ended.code, "2 taken back (orders-0, orders-1)" in ended.out) == (code, True)
    assert "throttled" not in small.read_text("utf-8")
    assert lists(small) == BEFORE


def _at(point: str, act: Callable[[], None]) -> Callable[[str], None]:
    left = [act]

    def hook(name: str) -> None:
        if name == point and left:
            left.pop()()

    return hook


def _killed() -> None:
    raise Killed


NEVER_NOW = "windows: [{days: [mon], from: '01:00', to: '02:00', timezone: UTC}], moves:"


def test_outside_its_windows_a_rollback_is_predicted_and_only_its_cancel_runs(reconciler: Program, small: Path) -> None:
    with planted(_at("poll", _killed)), pytest.raises(Killed):
        reconciler("apply", "plan.json", "--yes")
    yaml = small.parent / "cluster.yaml"
    yaml.write_text(yaml.read_text().replace("moves:", NEVER_NOW))
    topics = read_snapshot(small).topics
    predicted = reconciler("cancel", "--rollback", "--dry-run")
    assert (predicted.code, "outside the windows" in predicted.err, "(KR423)" in predicted.err) == (3, True, True)
    assert read_snapshot(small).topics == topics
    ended = reconciler("cancel", "--rollback", "--yes")
    parts = [
        "outside the windows (mon 01:00-02:00 UTC; the next opens at Mon ",
        "before it, cancel: 3 moves: 2 taken back",
        "cancel --rollback goes on with it",
    ]
    assert (ended.code, all_of(ended.err, parts), "run apply" in ended.err) == (3, [], False)
    assert lists(small) == BEFORE
