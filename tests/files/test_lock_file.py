"""The lock beside a file: one process holds it, and the system frees it when that process is killed."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.waiting import HANG

from reconciler.files.lock_file import LockFile
from reconciler.model.lock import Holder, LockHeld, StopRequest
from reconciler.model.problem import Refused

ME = Holder("apply of plan 0badcafe", "kim", "here", 1, "2026-11-21T10:00:00Z")
HOLDING = """
import sys
from pathlib import Path
from reconciler.files.lock_file import LockFile
from reconciler.model.lock import Holder
held = LockFile(Path(sys.argv[1])).take(Holder("apply of plan 1", "alex", "there", 7, "2026-11-21T09:00:00Z"))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    command = [sys.executable, "-c", HOLDING, str(snapshot)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        locks = LockFile(snapshot)
        with pytest.raises(LockHeld) as refused:
            locks.take(ME)
        other_one = Holder("apply of plan 1", "alex", "there", 7, "2026-11-21T09:00:00Z")
        assert refused.value.holder == locks.holder == other_one
        other.send_signal(signal.SIGKILL)
        other.wait(HANG)
    assert locks.holder is None
    with_lock = locks.take(ME)
    assert locks.holder == ME
    with_lock.release()


@pytest.mark.parametrize("digest", ["", f"sha256:{64 * '0'}"])
def test_a_holder_and_a_request_are_never_taken_for_each_other(digest: str) -> None:
    holder = replace(ME, digest=digest)
    assert Holder.read(holder.written()) == holder
    assert StopRequest.read(holder.written()) is None
    request = StopRequest(ME.purpose, holder)
    assert StopRequest.read(request.written()) == request
    assert Holder.read(request.written()) is None
    assert Holder.read(f"{holder.written()}\nmore\nlines") is None


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    LockFile(tmp_path / "snapshot.json").take(ME).release()
    assert list(tmp_path.iterdir()) == []


def test_looking_who_holds_it_makes_no_file(tmp_path: Path) -> None:
    assert LockFile(tmp_path / "snapshot.json").holder is None
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_its_holder_removed_is_not_taken_for_the_present_one(tmp_path: Path) -> None:
    locks = LockFile(tmp_path / "snapshot.json")
    first = locks.take(ME)
    locks.path.unlink()  # somebody tidies up by hand
    second = locks.take(ME)
    first.release()
    assert locks.holder == ME
    second.release()
    assert locks.holder is None


def test_a_file_that_goes_between_opening_and_locking_is_no_lock(tmp_path: Path) -> None:
    locks = LockFile(tmp_path / "snapshot.json")
    first = locks.take(ME)

    class Late(LockFile):
        def _opened(self) -> int:
            descriptor = super()._opened()
            first.release()
            return descriptor

    second = Late(tmp_path / "snapshot.json").take(ME)
    with pytest.raises(LockHeld):
        locks.take(ME)
    second.release()


def test_what_is_no_holders_name_is_not_shown(tmp_path: Path) -> None:
    locks = LockFile(tmp_path / "snapshot.json")
    held = locks.take(ME)
    locks.path.write_text("a\nb\nc\nnot a number\ne")
    with pytest.raises(LockHeld, match="a process that does not say who it is") as refused:
        locks.take(ME)
    assert refused.value.holder is None
    held.release()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"cannot be locked: No such file or directory") as refused:
        LockFile(tmp_path / "missing" / "snapshot.json").take(ME)
    assert refused.value.code == "KR451"


def test_what_was_asked_of_a_holder_is_gone_with_its_lock(tmp_path: Path) -> None:
    locks = LockFile(tmp_path / "snapshot.json")
    held = locks.take(ME)
    locks.ask_to_stop(StopRequest(ME.purpose, ME))
    assert held.asked_by == ME
    held.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "apply of plan 0badcafe", f"apply of plan 1\n{ME.written()}", ME.written(), "\xff"]
)
def test_what_is_no_request_to_this_holder_stops_nobody(tmp_path: Path, text: str) -> None:
    held = LockFile(tmp_path / "snapshot.json").take(ME)
    (tmp_path / "snapshot.json.lock.stop").write_text(text, encoding="latin-1")
    assert held.asked_by is None
    held.release()


def test_a_request_that_came_too_late_is_not_for_the_next_holder(tmp_path: Path) -> None:
    locks = LockFile(tmp_path / "snapshot.json")
    locks.ask_to_stop(StopRequest(ME.purpose, ME))
    held = locks.take(ME)
    assert held.asked_by is None
    held.release()
