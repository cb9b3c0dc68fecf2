from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.balance.files.ledger import Day, Ledger, TakenFile, Version, lake_lock, ledger_of, refuse_no_lake
from reconciler.model.problem import ReconcilerError

FIRST, SECOND, THIRD = (Day("prod", f"2026-11-{day}") for day in (20, 21, 22))
OTHER, NONE = Day("test", "2026-11-21"), Day(None, None)


def _taken(path: str, taking: int, *days: Day, evenings: tuple[Day, ...] = (), modified: int = 5) -> TakenFile:
    return TakenFile(path, Version(10, modified, None), taking, path, days, evenings)


def _ledger(*files: TakenFile) -> Ledger:
    return Ledger(bucket_seconds=60).with_files(files)


def test_a_day_is_pending_until_it_is_made_and_again_when_its_files_are_others() -> None:
    ledger = _ledger(_taken("/a", 1, FIRST, OTHER), _taken("/b", 1, NONE))
    assert ledger.pending == (NONE, FIRST, OTHER)
    made = ledger.with_all_made()
    assert made.pending == ()
    assert made.with_files([_taken("/c", 2, OTHER)]).pending == (OTHER,)
    assert replace(made, bucket_seconds=300).pending == (NONE, FIRST, OTHER)


def test_samples_of_an_evening_are_those_of_the_day_after_too() -> None:
    made = _ledger(_taken("/a", 1, FIRST), _taken("/b", 1, SECOND), _taken("/c", 1, OTHER)).with_all_made()
    assert made.with_files([_taken("/noon", 2, FIRST)]).pending == (FIRST,)
    evening = made.with_files([_taken("/night", 2, FIRST, evenings=(FIRST,))])
    assert evening.pending == (FIRST, SECOND)
    assert (evening.takings_of(FIRST), evening.takings_of(FIRST, evening=True)) == ((1, 2), (2,))


def test_a_file_that_changed_takes_the_place_of_its_older_rows() -> None:
    made = _ledger(_taken("/a", 1, FIRST, SECOND), _taken("/b", 1, SECOND)).with_all_made()
    assert made.has("/a", 10, 5, None)
    assert not made.has("/a", 10, 6, None)
    changed = made.with_files([_taken("/a", 2, SECOND, modified=6)])
    assert (changed.pending, changed.gone, changed.replaced) == ((SECOND,), (FIRST,), frozenset({(1, "/a")}))
    assert changed.with_all_made().gone == ()


def test_files_that_only_together_make_samples_are_taken_anew_together() -> None:
    one, two = (replace(_taken(path, 1, FIRST), source="prometheus") for path in ("/bytes", "/sizes"))
    ledger = _ledger(one, two, replace(_taken("/later", 2, SECOND), source="prometheus"))
    assert ledger.beside(["/sizes"]) == {"/bytes", "/sizes"}


def test_a_file_that_names_no_cluster_is_another_one_under_another_name() -> None:
    named = TakenFile("/a", Version(10, 5, "prod"), 1, "/a", (FIRST,))
    ledger = _ledger(named, _taken("/b", 1, FIRST))
    assert [ledger.has("/a", 10, 5, "prod"), ledger.has("/a", 10, 5, "test"), ledger.has("/b", 10, 5, "test")] == [
        True,
        False,
        True,
    ]
    unnamed = _ledger(TakenFile("/a", Version(10, 5, ""), 1, "/a", (NONE,)))
    assert [unnamed.has("/a", 10, 5, ""), unnamed.has("/a", 10, 5, "prod")] == [True, False]


def test_a_ledger_is_read_as_it_was_written_or_not_at_all() -> None:
    ledger = _ledger(_taken("/a b\n", 1, FIRST, NONE, evenings=(FIRST,)), _taken("/b", 1, THIRD))
    whole = replace(ledger.with_files([_taken("/b", 2, THIRD, modified=8)]).with_all_made(), number=7)
    assert ledger_of(whole.text()) == whole
    lines = whole.text().splitlines()
    assert [ledger_of("\n".join(lines[:count])) for count in range(len(lines))] == [None] * len(lines)


def test_a_folder_of_others_is_no_lake(tmp_path: Path) -> None:
    refuse_no_lake(tmp_path / "new")
    (tmp_path / "_lock").touch()
    (tmp_path / "bronze").mkdir()
    refuse_no_lake(tmp_path)
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ReconcilerError, match=r"holds other things, such as thesis\.txt"):
        refuse_no_lake(tmp_path)
    with pytest.raises(ReconcilerError, match="is a file"):
        refuse_no_lake(tmp_path / "thesis.txt")


def test_two_runs_do_not_work_on_one_lake(tmp_path: Path) -> None:
    with (
        lake_lock(tmp_path / "lake"),
        pytest.raises(ReconcilerError, match="another run is at work on this lake"),
        lake_lock(tmp_path / "lake"),
    ):
        pass
    with lake_lock(tmp_path / "lake"):
        pass
