"""Whatever a power loss leaves of a journal and of the plan beside it is what was kept, or is refused in words."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from files.power_loss import Disk, Files, State, put, recorded, states_after_power_loss
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.small_runs import cluster, whole_plan

from reconciler.files import journal as journal_file
from reconciler.files.journal import RunJournal, event_text, read_journal
from reconciler.files.plan_file import with_id
from reconciler.model.plan import Plan, Rollback
from reconciler.model.problem import InvalidInput
from reconciler.model.run import Outcome, RunEvent
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import keep_plan, kept_plans, latest_plan

pytestmark = pytest.mark.long

PART, WHOLE = 9, 1
"""Of so many states with a torn write, or zeros in its place, one is tried in each run; of the others each."""
ENOUGH = 20
"""So many wrong states are enough to know, and more than anybody reads."""
Plant = Callable[[pytest.MonkeyPatch], None]

WHERE = Path("runs", "small", "0badcafe.jsonl")
RATES = [
    [broker, f"{side}.replication.throttled.rate", None] for broker in (1, 2, 3, 4) for side in ("leader", "follower")
]
LISTS = [["orders", "leader.replication.throttled.replicas", "0:1,2:3", "0:1,0:2,0:3,1:1,1:2,1:3"]]
PLAN = "9b21e07c"


def event(number: int) -> RunEvent:
    time = datetime(2026, 11, 21, 14, 2, number, tzinfo=UTC)
    steps = (("run", Outcome.STARTED), ("throttle", Outcome.STARTED), ("reassign", Outcome.DONE), ("run", Outcome.DONE))
    step, outcome = steps[number % len(steps)]
    return RunEvent(
        time, number, step, outcome, {"rates": RATES[: 2 + number], "lists": LISTS} if number % 2 else {}, PLAN
    )


EVENTS = tuple(event(number) for number in range(12))
NEXT = event(59)


@dataclass(slots=True)
class Tried:
    """How many states were looked at, and what was wrong with some."""

    states: int = 0
    refused: int = 0
    kinds: set[str] = field(default_factory=set)
    """What became of the write that was under way: it is there, torn, or zeros."""
    wrong: list[str] = field(default_factory=list)


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for states; there nothing is waited for: what is synced is the recorder's affair."""
    folder = tmp_path_factory.mktemp("after")
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    return folder


def tried(
    log: Disk,
    before: Files,
    scratch: Path,
    is_wrong: Callable[[Path, State], str | None],
    made: tuple[str, ...] = (),
    *,
    every: int = PART,
) -> Tried:
    """Return what became of the states: made as files, looked at, cleared away with what the look itself made."""
    found = Tried()
    numbers = count()
    for state in states_after_power_loss(log.log, before):
        kind = next((kind for kind in ("torn", "zeros") if kind in state.how), "whole")
        if kind != "whole" and next(numbers) % every:
            continue
        found.kinds.add(kind)
        if len(found.wrong) == ENOUGH:
            break
        put(state.files, scratch)
        try:
            wrong = is_wrong(scratch, state)
        except InvalidInput as error:
            found.refused += 1
            wrong = None if "Move the file away and run again" in str(error) else f"refused without a way out: {error}"
        found.states += 1
        found.wrong += [f"{state.how}: {wrong}"] if wrong else []
        for path in {*state.files, *made}:
            (scratch / path).unlink(missing_ok=True)
    return found


def keeps_what_was_told(first: int) -> Callable[[Path, State], str | None]:
    """Return the check of a journal that held the first events before: none that was told is lost, none made up."""

    def is_wrong(root: Path, state: State) -> str | None:
        journal = RunJournal(root / WHERE, PLAN)
        found, least = journal.events, first + state.told
        if found not in (EVENTS[:least], EVENTS[: least + 1]):
            return f"{least} events were kept, {len(found)} are read"
        journal.append(NEXT)
        again = read_journal(root / WHERE)
        return None if again == (*found, NEXT) else f"after one more event {len(again)} are read"

    return is_wrong


def journal_written(
    root: Path, events: tuple[RunEvent, ...], before: Files | None = None, plant: Plant = lambda _patch: None
) -> Disk:
    """Append these events, with a fault or without, and return what was done to files."""
    journal = RunJournal(root / WHERE, PLAN)
    with recorded(root, before) as disk, pytest.MonkeyPatch.context() as patch:
        plant(patch)
        for each in events:
            journal.append(each)
            disk.told()
    return disk


def lines(count: int) -> bytes:
    return b"".join(event_text(each).encode() + b"\n" for each in EVENTS[:count])


@parts("every", PART, deep=WHOLE)
def test_a_journal_keeps_every_event_it_was_told_to_keep(
    tmp_path: Path, scratch: Path, figures: Tell, every: int
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    log = journal_written(new, EVENTS)
    found = tried(log, {}, scratch, keeps_what_was_told(0), (str(WHERE),), every=every)
    assert found.wrong == []
    torn = 0
    for end in (7, 400):  # what a crash tore before is shorter, and longer, than the next event
        before = {str(WHERE): lines(3) + b'{"detail":' + b"x" * end}
        root = tmp_path / f"torn-{end}"
        put(before, root)
        log = journal_written(root, EVENTS[3:5], before)
        again = tried(log, before, scratch, keeps_what_was_told(3), every=every)
        assert again.wrong == []
        torn += again.states
    flipped = list(flips())[:: min(every, 5)]
    for content, which in flipped:
        put({str(WHERE): content}, scratch)
        try:
            events = read_journal(scratch / WHERE)
        except InvalidInput as error:
            assert "is damaged. Move the file away and run again" in str(error)  # noqa: PT017 # either end is right
        else:
            # A flipped byte in the last line cannot be told from a torn one.
            assert events == EVENTS[:-1], which
    states = found.states + torn + len(flipped)
    assert states >= 5_000 // every
    assert found.kinds == {"whole", "torn", "zeros"}
    told = f"{states:,} states: each is what was kept, or refused in words"
    figures("journal after power loss", told)


def flips() -> Iterator[tuple[bytes, str]]:
    """Yield the whole journal with one byte of one record flipped, at its ends and in between."""
    whole, start = lines(len(EVENTS)), 0
    for number, each in enumerate(EVENTS):
        length = len(event_text(each).encode()) + 1
        for place in (0, 1, length // 3, length // 2, length - 3, length - 2):
            changed = bytearray(whole)
            changed[start + place] ^= 1 << (number % 7)
            yield bytes(changed), f"byte {place} of record {number}"
        start += length


def plans_tried(
    root: Path, scratch: Path, patch: pytest.MonkeyPatch, plant: Plant = lambda _patch: None, every: int = PART
) -> Tried:
    """Keep two plans, one of them twice, beside a journal of both, and return what became of the states."""
    first, second = _two_plans()
    inputs = Inputs(cluster="small", journal="runs/small/here.jsonl")
    before = {"runs/small/here.jsonl": b""}
    put(before, root)
    patch.chdir(root)
    with recorded(root, before) as disk, pytest.MonkeyPatch.context() as faults:
        plant(faults)
        for plan in (first, first, second):
            keep_plan(inputs, plan)
            disk.told()
    patch.chdir(scratch)

    def is_wrong(_root: Path, state: State) -> str | None:
        found = [plan for one in (first, second) for plan in kept_plans(inputs, "small", holding=one.id)]
        allowed = {0: ([], [first]), 1: ([first],), 2: ([first], [first, second]), 3: ([first, second],)}[state.told]
        latest = latest_plan(inputs, "small")
        is_latest_wrong = latest not in found if found else latest is not None
        if found not in allowed or is_latest_wrong:
            return f"{state.told} were kept, found {[plan.id for plan in found]}"
        return None

    return tried(disk, before, scratch, is_wrong, every=every)


@parts("every", PART, deep=WHOLE)
def test_a_plan_kept_beside_a_journal_is_there_whole_or_not_yet(
    tmp_path: Path, scratch: Path, figures: Tell, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    found = plans_tried(tmp_path, scratch, monkeypatch, every=every)
    assert found.wrong == []
    assert found.refused == 0
    assert found.states >= 1_000 // every
    figures("plans beside the journal", f"{found.states:,} states after power loss: each whole, or not there yet")


def _two_plans() -> tuple[Plan, Plan]:
    plan = replace(whole_plan(cluster()), stages=(), topic_changes=(), rollback=Rollback())
    return with_id(plan), with_id(replace(plan, timeout_seconds=99))


# A checker that says yes to everything would pass too: these lay a hand on what it is there for.


def forgets(name: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(journal_file, name, lambda *_arguments: None)

    return plant


def makes_folders_and_leaves_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(journal_file, "make_folder", lambda folder: folder.mkdir(parents=True, exist_ok=True))


def never_syncs_the_file(patch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync
    patch.setattr(os, "fsync", lambda handle: fsync(handle) if Path(f"/proc/self/fd/{handle}").is_dir() else None)


def leaves_what_is_torn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunJournal, "_cut_torn_tail", lambda _self, file: file.seek(0, os.SEEK_END))


@pytest.mark.parametrize(
    "plant", [forgets("sync_folder"), makes_folders_and_leaves_them, never_syncs_the_file, leaves_what_is_torn]
)
def test_a_journal_that_does_not_sync_or_cut_is_found_out(tmp_path: Path, scratch: Path, plant: Plant) -> None:
    before = {} if plant is not leaves_what_is_torn else {str(WHERE): lines(3) + b'{"detail":'}
    first = 3 if before else 0
    put(before, tmp_path)
    log = journal_written(tmp_path, EVENTS[first : first + 2], before, plant)
    assert tried(log, before, scratch, keeps_what_was_told(first), (str(WHERE),)).wrong


def test_a_plan_that_is_named_before_it_is_synced_is_found_out(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plans_tried(tmp_path, scratch, monkeypatch, never_syncs_the_file)
    assert [wrong for wrong in found.wrong if "refused without a way out" in wrong]
