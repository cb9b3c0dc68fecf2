"""`doctor` and `status` on a simulated cluster in a file: what a crashed run leaves, found and put right."""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program, on_a_terminal
from helpers.program.documents import document, write_simulated
from jsonschema import Draft7Validator

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.crash import Killed, planted
from reconciler.cli.main import main
from reconciler.files.lock_file import LockFile
from reconciler.files.schema_check import schema_folder
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.lock import Holder
from reconciler.model.problem import ClusterUnavailable
from reconciler.workflow.status import Watched

pytestmark = pytest.mark.long

SNAPSHOT = Path("desired-state/small/snapshot.json")
DECLARED = (
    document("Topic", "clicks", "{placement: {assignment: [[1, 2, 4], [2, 3, 4]]}}"),
    document("Topic", "orders", "{placement: {assignment: [[2, 1]]}}"),
)
OBSERVED = small_cluster(
    f"clicks-0: 1,2,3 size {10**9}", f"clicks-1: 2,3,1 size {10**9}", "orders-0: 1,2 size 5", "sessions-0: 3,4 size 5"
)
DISKS = (LogDir("/d1", 10**12, 9 * 10**11), LogDir("/d2", 10**12, 9 * 10**11))
OPERATORS = {
    1: {"leader.replication.throttled.rate": "7000000"},
    "clicks": {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "0:3,1:1"},
    "sessions": {"follower.replication.throttled.replicas": ""},
}


def lay_out() -> None:
    """Write a small cluster, on which an operator has set throttles of every kind, and what is declared for it."""
    write_simulated(with_operators(OBSERVED), *DECLARED, spec="moves: {throttle: 50MiB/s}")


@pytest.fixture(scope="module")
def crashed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the small cluster and a plan for it, whose apply died once moves were in flight."""
    folder = tmp_path_factory.mktemp("crashed")

    def kill(name: str) -> None:
        if name == "reassign.recorded" and any(one.is_reassigning for _, one in read_snapshot(SNAPSHOT).partitions()):
            raise Killed

    with chdir(folder):
        lay_out()
        assert main(["plan", "--out", "plan.json"]) == 0
        with pytest.raises(Killed), planted(kill):
            main(["apply", "plan.json", "--yes"])
    return folder


@pytest.fixture
def small(reconciler: Program) -> Program:
    """Return the program in a folder with the small cluster as it is before any run."""
    lay_out()
    return reconciler


@pytest.fixture
def crashed(tmp_path: Path, reconciler: Program, crashed_folder: Path) -> Program:
    """Return the program in that folder after a run of it has crashed, with moves in flight."""
    shutil.copytree(crashed_folder, tmp_path, dirs_exist_ok=True)
    return reconciler


def with_operators(cluster: Cluster) -> Cluster:
    brokers = {
        one.id: replace(one, configs={**one.configs, **OPERATORS.get(one.id, {})}, log_dirs=DISKS)
        for one in cluster.brokers.values()
    }
    topics = {
        name: replace(topic, configs={**topic.configs, **OPERATORS.get(name, {})})
        for name, topic in cluster.topics.items()
    }
    return replace(cluster, brokers=brokers, topics=topics)


def changed(change: Callable[[Cluster], Cluster]) -> None:
    write_snapshot(change(read_snapshot(SNAPSHOT)), SNAPSHOT)


def later(cluster: Cluster, seconds: float = 100_000) -> Cluster:
    admin = SimulatedAdmin(cluster)
    admin.clock.sleep(seconds)
    return admin.cluster


def throttles() -> dict[object, dict[str, str]]:
    cluster = read_snapshot(SNAPSHOT)
    found: dict[object, dict[str, str]] = {}
    for owner, configs in [
        *((one.id, one.configs) for one in cluster.brokers.values()),
        *((topic.name, topic.configs) for topic in cluster.topics.values()),
    ]:
        keys = {key: value for key, value in configs.items() if "throttled" in key}
        found |= {owner: keys} if keys else {}
    return found


def diagnosis(text: str) -> dict[str, object]:
    found = json.loads(text)
    Draft7Validator(json.loads((schema_folder() / "doctor.json").read_text("utf-8"))).validate(found)
    assert isinstance(found, dict)
    return found


def codes(text: str) -> list[str]:
    return [one["code"] for one in json.loads(text)["findings"]]


def test_a_crashed_runs_throttles_go_and_an_operators_stay_byte_for_byte(crashed: Program) -> None:
    on = throttles()
    assert on != OPERATORS
    looked = crashed("doctor", "-o", "json")
    assert looked.code == 0
    assert {"KR662", "KR670"} <= set(codes(looked.out))
    found = diagnosis(looked.out)
    assert {one["whose"] for one in found["throttles"]} == {"leftover", "other"}  # type: ignore[attr-defined]
    assert throttles() == on

    refused = crashed("doctor", "--fix", "throttles", "--yes")
    assert (refused.code, throttles()) == (3, on)
    assert "are in flight" in refused.err
    assert "KR455" in refused.err

    changed(later)
    unasked = crashed("doctor", "--fix", "throttles")
    assert (unasked.code, throttles()) == (64, on)
    fixed = crashed("doctor", "--fix", "throttles", "--yes")
    assert (fixed.code, throttles()) == (0, OPERATORS)
    assert "  ~ broker 1: leader.replication.throttled.rate 52428800 -> 7000000\n" in fixed.err
    assert "follower.replication.throttled.rate 52428800 -> not set" in fixed.err
    assert "KR670" not in fixed.out
    again = crashed("doctor", "--fix", "throttles")
    assert (again.code, throttles()) == (0, OPERATORS)
    assert "No throttles of runs known here are left" in again.err
    assert crashed("apply", "plan.json", "--yes").code == 0
    assert throttles() == OPERATORS


def test_nothing_is_fixed_while_the_cluster_is_locked(crashed: Program) -> None:
    changed(later)
    on = throttles()
    holder = Holder("apply of plan 51d0c2aa", "anna", "box", 4711, "2026-11-21T14:02:11Z")
    held = LockFile(SNAPSHOT).take(holder)
    looked = crashed("doctor", "-o", "json")
    found = diagnosis(looked.out)
    assert found["lockedBy"] == str(holder)
    assert {one["whose"] for one in found["throttles"]} == {"run", "other"}  # type: ignore[attr-defined]
    assert {"KR662", "KR670"}.isdisjoint(codes(looked.out))
    assert "locked by apply of plan 51d0c2aa (started by anna on box" in crashed("status").out
    refused = crashed("doctor", "--fix", "throttles", "--yes")
    assert (refused.code, "anna on box" in refused.err, throttles()) == (3, True, on)
    held.release()
    assert crashed("doctor", "--fix", "throttles", "--yes").code == 0


def test_with_the_plan_alone_another_machine_takes_off_what_looks_like_its_own(crashed: Program) -> None:
    changed(later)
    shutil.rmtree("runs")
    assert "KR671" in codes(crashed("doctor", "-o", "json").out)
    assert crashed("doctor", "plan.json", "--fix", "throttles", "--yes").code == 0
    assert throttles() == OPERATORS


@pytest.mark.parametrize(("answer", "code"), [(False, 5), (True, 0)])
def test_on_a_terminal_it_asks_first(
    crashed: Program, monkeypatch: pytest.MonkeyPatch, *, answer: bool, code: int
) -> None:
    changed(later)
    on_a_terminal(monkeypatch, answer=answer)
    assert crashed("doctor", "--fix", "throttles").code == code
    assert (throttles() == OPERATORS) is answer


def test_an_error_among_the_findings_ends_with_1_and_text_says_what_to_do_next(small: Program) -> None:
    changed(lambda cluster: killed(cluster, 4))
    looked = small("doctor")
    assert looked.code == 1
    assert "error: broker 4 is not alive (fenced) and holds 1 replica (KR650)" in looked.out
    assert "  next: start it; if it will not come back, declare it draining and plan" in looked.out
    assert "throttle on topic clicks: leader.replication.throttled.replicas=*\n" in looked.out
    assert small("doctor", "-o", "json").code == 1


def killed(cluster: Cluster, broker: int) -> Cluster:
    admin = SimulatedAdmin(cluster)
    admin.kill_broker(broker)
    return admin.cluster


def test_a_snapshot_tells_what_it_holds_and_names_what_it_does_not(small: Program) -> None:
    changed(lambda cluster: killed(cluster, 4))
    looked = small("doctor", "--state", str(SNAPSHOT), "-o", "json")
    found = diagnosis(looked.out)
    assert (looked.code, found["snapshot"], found["rights"], found["features"]) == (1, True, None, None)
    assert "KR650" in codes(looked.out)
    assert "not looked at: what a snapshot does not hold: rights" in small("doctor", "--state", str(SNAPSHOT)).out
    refused = small("doctor", "--state", str(SNAPSHOT), "--fix", "throttles")
    assert (refused.code, "not on a snapshot" in refused.err) == (64, True)


def test_a_damaged_journal_keeps_no_doctor_from_looking(crashed: Program) -> None:
    (journal,) = Path("runs/small").glob("*.jsonl")
    lines = journal.read_text("utf-8").split("\n")
    journal.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]), "utf-8")
    looked = crashed("doctor", "-o", "json")
    assert looked.code == 0
    assert any("this line of the run journal is damaged" in one for one in json.loads(looked.out)["unexamined"])


# Leftover throttles


def owe(crashed: Program) -> dict[object, dict[str, str]]:
    """Let a run end while broker 4, which has its rates, is dead; return what is left on once it is back."""
    changed(lambda cluster: killed(later(cluster), 4))
    ended = crashed("cancel")
    told = "leftover throttles: broker 4 keeps what this run set: follower.replication.throttled.rate (before: not set)"
    assert (ended.code, told in ended.out) == (0, True)
    return throttles()


def returned(cluster: Cluster, broker: int) -> Cluster:
    admin = SimulatedAdmin(cluster)
    admin.return_broker(broker)
    return later(admin.cluster)


def test_status_names_a_leftover_throttle_and_leaves_it_to_doctor(crashed: Program) -> None:
    left = owe(crashed)
    assert left == {**OPERATORS, 4: left[4]}
    assert "broker 4 may keep a throttle rate of the run of plan" in crashed("doctor").out
    assert "left over: broker 4, which is down" in crashed("status").out
    changed(lambda cluster: returned(cluster, 4))
    told = crashed("status")
    assert (throttles(), told.err) == (left, "")
    assert "left over: broker 4 follower.replication.throttled.rate" in told.out
    fixed = crashed("doctor", "--fix", "throttles", "--yes")
    assert (fixed.code, throttles()) == (0, OPERATORS)
    assert "broker 4: follower.replication.throttled.rate 52428800 -> not set" in fixed.err
    assert "left over" not in crashed("status").out


def test_a_watch_of_a_finished_run_waits_for_nothing(crashed: Program) -> None:
    changed(later)
    assert crashed("apply", "plan.json", "--yes").code == 0
    (line,) = crashed("status", "--watch", "-o", "json").out.splitlines()
    assert json.loads(line)["open"] is False
    assert "done: 1 stage, " in crashed("status", "--watch").out


def test_a_watch_prints_each_look_that_differs_and_ends_with_the_run(
    crashed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    def pass_time(_seconds: float) -> None:
        waits.append(len(waits))
        if len(waits) == 2:
            changed(lambda cluster: later(cluster, 5))
        if len(waits) == 3:
            changed(later)
            assert main(["apply", "plan.json", "--yes"]) == 0

    monkeypatch.setattr("reconciler.cli.status.time", SimpleNamespace(sleep=pass_time))
    ended = crashed("status", "--watch", "--journal", str(next(Path("runs/small").glob("*.jsonl"))))
    blocks = [block for block in ended.out.split("\n\n") if "UTC\n" in block]
    assert (ended.code, len(waits), len(blocks)) == (0, 3, 3)
    assert "copied" in blocks[1]
    assert "done: 1 stage, " in blocks[2]


def test_a_watched_cluster_that_does_not_answer_is_told_once_and_asked_again(
    crashed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, ClusterUnavailable("gone"), ClusterUnavailable("gone"), None])
    looks: list[object] = []
    look = Watched.look

    def flaky(run: Watched) -> object:
        answer = next(answers)
        looks.append(answer)
        if answer is not None:
            raise answer
        if len(looks) > 1:
            changed(later)
            assert main(["apply", "plan.json", "--yes"]) == 0
        return look(run)

    monkeypatch.setattr(Watched, "look", flaky)
    monkeypatch.setattr("reconciler.cli.status.time", SimpleNamespace(sleep=lambda _seconds: None))
    ended = crashed("status", "--watch")
    assert (ended.code, len(looks), ended.err.count("warning: gone (KR600)")) == (0, 4, 1)


def test_a_watch_on_a_terminal_is_drawn_in_place(crashed: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(_seconds: float) -> None:
        changed(later)
        assert main(["apply", "plan.json", "--yes"]) == 0

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("reconciler.cli.status.time", SimpleNamespace(sleep=finish))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    ended = crashed("status", "--watch")
    assert (ended.code, ended.out.count("done: 1 stage, ")) == (0, 2)  # the last look is drawn whole once more
    assert "UTC" not in ended.out


def test_ctrl_c_ends_a_watch_with_130(crashed: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reconciler.cli.status.time", SimpleNamespace(sleep=interrupted))
    ended = crashed("status", "--watch", "-o", "json")
    assert (ended.code, len(ended.out.splitlines())) == (130, 1)


def test_a_machine_that_has_nothing_sees_a_dead_run_and_ends_it(crashed: Program) -> None:
    shutil.rmtree("runs")
    Path("plan.json").unlink()
    seen = json.loads(crashed("status", "-o", "json").out)
    assert (seen["state"], seen["stage"], seen["lockedBy"], seen["startedAt"] is None) == ("dead", 1, None, False)
    told = crashed("status")
    assert "dead: stage 1 of 1" in told.out
    assert "started by " in told.out
    assert [finding["code"] for finding in json.loads(crashed("doctor", "-o", "json").out)["findings"]].count(
        "KR662"
    ) == 1
    before = throttles()
    asked = crashed("cancel")
    assert (asked.code, throttles()) == (64, before), "nobody can be asked"
    assert "its plan is not here, its record in the cluster is" in asked.err
    assert "others can write it:\n  ~ clicks-0 from [1, 2, 3] to [1, 2, 4]: taken back\n" in asked.err
    ended = crashed("cancel", "--yes")
    assert ended.code in {0, 5}, ended
    assert throttles().items() <= OPERATORS.items()
    assert crashed("doctor", "--fix", "throttles", "--yes").code == 0
    assert throttles() == OPERATORS
    again = crashed("cancel")
    assert again.code == 5, "nothing of a run is known, and an operator's own list could be one's"
    assert "topic clicks has follower.replication.throttled.replicas=0:3,1:1" in again.err
