"""Run journals: durable line by line; torn, full and damaged files."""

import errno
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.files.journal import RunJournal, event_text, journal_path, read_journal
from reconciler.model.problem import InvalidInput
from reconciler.model.run import Outcome, RunEvent, RunFailed

PLAN, OTHER = "9b21e07c", "0badcafe"


def event(number: int) -> RunEvent:
    time = datetime(2026, 11, 21, 14, 2, number, tzinfo=UTC)
    detail = {"throttles": {"1": {"a": "}"}}, "n": number, "text": 'ä "}\n{'}
    return RunEvent(time, number, f"step {number}", list(Outcome)[number % 4], detail, PLAN)


EVENTS = tuple(event(number) for number in range(3))
LINES = [event_text(each).encode() + b"\n" for each in EVENTS]
WHOLE = b"".join(LINES)


def test_events_read_back_in_order_after_reopening(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "prod-eu", "9b21e07c")
    assert path == tmp_path / "runs" / "prod-eu" / "9b21e07c.jsonl"
    assert RunJournal(path, PLAN).events == ()
    assert not path.exists()
    for number, each in enumerate(EVENTS):
        journal = RunJournal(path, PLAN)
        assert journal.events == EVENTS[:number]
        journal.append(each)
    assert read_journal(path) == EVENTS
    assert path.read_bytes() == WHOLE


def test_a_line_holds_time_stage_step_and_outcome() -> None:
    assert event_text(RunEvent(datetime(2026, 1, 2, tzinfo=UTC), 1, "x", Outcome.DONE, plan=PLAN)).startswith(
        '{"detail":{},"outcome":"done","plan":"9b21e07c","stage":1,"step":"x","sum":"'
    )


def test_a_plan_finds_its_own_events_among_those_of_others(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    one, two = RunJournal(path, PLAN), RunJournal(path, OTHER)
    for number in range(3):
        one.append(event(number))
        two.append(event(number + 3))
    assert RunJournal(path, PLAN).events == EVENTS
    others = tuple(replace(event(number), plan=OTHER) for number in range(3, 6))
    assert RunJournal(path, OTHER).events == read_journal(path, OTHER) == others
    assert RunJournal(path, "00000000").events == ()
    assert sorted(read_journal(path), key=lambda each: each.stage) == [*EVENTS, *others]


@pytest.mark.long
def test_a_tail_torn_at_any_byte_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    for length in range(len(WHOLE) + 1):
        path.write_bytes(WHOLE[:length])
        whole = WHOLE[:length].count(b"\n")
        assert read_journal(path) == EVENTS[:whole], length
        journal = RunJournal(path, PLAN)
        journal.append(event(7))
        journal.append(event(8))
        assert read_journal(path) == (*EVENTS[:whole], event(7), event(8)), length


@pytest.mark.parametrize("tail", [b"\0" * 50, b"\0" * 50 + b"\n", b"}\n", b"\xff\xfe\n", b"[" * 5000 + b"\n", b"5\n"])
def test_a_garbage_tail_is_left_out_and_written_over(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(WHOLE + tail)
    RunJournal(path, PLAN).append(event(7))
    assert read_journal(path) == (*EVENTS, event(7))
    assert path.read_bytes().startswith(WHOLE)


@pytest.mark.long
def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Each state reads as events that were written, from the first on, or is refused."""
    path = tmp_path / "j.jsonl"
    for position in range(len(WHOLE)):
        for bit in (0, 3, 5):
            changed = bytearray(WHOLE)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                found = read_journal(path)
            except InvalidInput as error:
                assert "is damaged. Move the file away" in str(error)  # noqa: PT017 # either end is right
            else:
                assert found == EVENTS[: len(found)]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(LINES[0] + b"{}\n" + LINES[1])
    with pytest.raises(InvalidInput, match=r"j.jsonl:2:1: this line of the run journal is damaged"):
        RunJournal(path, PLAN)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("written", [0, 1, 40])
@pytest.mark.parametrize("failing", ["write", "fsync"])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_full_disk_stops_the_run_and_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, code: int, written: int, failing: str, is_cut: bool
) -> None:
    path = tmp_path / "j.jsonl"
    journal = RunJournal(path, PLAN)
    journal.append(EVENTS[0])

    def fail(*_arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    def write_some(file: object, content: bytes) -> None:
        file.write(content[:written])  # type: ignore[attr-defined] # a FileIO
        fail()

    with monkeypatch.context() as faults:
        if failing == "write":
            faults.setattr("reconciler.files.journal._write_whole", write_some)
        else:
            faults.setattr("os.fsync", fail)
        if not is_cut:
            faults.setattr("reconciler.files.journal._taken_back", lambda *_arguments: None)
        with pytest.raises(RunFailed, match=r"the run journal cannot be written: .*--journal") as error:
            journal.append(EVENTS[1])
        assert error.value.code == "KR721"
    if is_cut:
        assert path.read_bytes() == LINES[0]
    journal.append(EVENTS[2])
    expected = EVENTS if not is_cut and failing == "fsync" else (EVENTS[0], EVENTS[2])
    assert read_journal(path) == expected


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match="the run journal cannot be written"):
        RunJournal(tmp_path / "file" / "j.jsonl", PLAN).append(EVENTS[0])
    with pytest.raises(InvalidInput, match="the run journal cannot be read: Is a directory"):
        RunJournal(tmp_path, PLAN)


def test_a_journal_that_vanished_begins_anew(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "j.jsonl", PLAN)
    journal.append(EVENTS[0])
    (tmp_path / "j.jsonl").unlink()
    journal.append(EVENTS[1])
    assert read_journal(tmp_path / "j.jsonl") == EVENTS[1:2]


def test_lines_that_another_program_added_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    one, two = RunJournal(path, PLAN), RunJournal(path, PLAN)
    one.append(EVENTS[0])
    two.append(EVENTS[1])
    one.append(EVENTS[2])
    assert read_journal(path) == EVENTS


def test_a_text_that_is_no_unicode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    odd = RunEvent(EVENTS[0].time, 1, "x", Outcome.FAILED, {"error": "\udcff"}, PLAN)
    RunJournal(path, PLAN).append(odd)
    assert read_journal(path) == (odd,)


PLAN_FILE = b'{"formatVersion":"1.0","id":"9b21e07c"}'


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", PLAN_FILE, PLAN_FILE + b"\n", b"{\n 1\n}\n", b"{}"])
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.jsonl"
    journal = RunJournal(path, PLAN)
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"no line of this file is an event of a run.* Move the file away"):
        journal.append(EVENTS[0])
    with pytest.raises(InvalidInput, match="no line of this file"):
        RunJournal(path, PLAN)
    with pytest.raises(InvalidInput, match="no line of this file"):
        read_journal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 4096, LINES[0][:1], LINES[0][:40], LINES[0][:40] + b"\0\0"])
def test_what_a_crash_may_leave_of_a_first_event_is_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    RunJournal(path, PLAN).append(EVENTS[0])
    assert path.read_bytes() == LINES[0]
