"""A journal that cannot be written stops a run before its next step; without one the plan still ends right."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.end_state import in_flight, shortcomings, throttles
from helpers.plans.small_runs import admin_of, cluster, whole_plan

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.files.journal import RunJournal
from reconciler.model.cluster import Cluster
from reconciler.model.run import RunFailed
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

CODES = (errno.ENOSPC, errno.EIO)


@dataclass(slots=True)
class FullDisk:
    """Fails the n-th write or fsync, of a file or of a folder, for good or once; a write leaves half of it."""

    at: int
    code: int
    is_for_good: bool
    calls: int = 0
    has_failed: bool = False

    def call(self) -> None:
        self.calls += 1
        if self.calls == self.at or (self.is_for_good and self.calls > self.at):
            self.has_failed = True
            raise OSError(self.code, os.strerror(self.code))


@contextmanager
def full(disk: FullDisk) -> Iterator[None]:
    opened, fsync = Path.open, os.fsync

    class File(FileIO):
        def write(self, content: object) -> int:
            assert isinstance(content, bytes)
            try:
                disk.call()
            except OSError:
                super().write(content[: len(content) // 2])
                raise
            return super().write(content)

    def open_(path: Path, mode: str = "r", buffering: int = -1, **options: object) -> object:
        if buffering != 0:
            return opened(path, mode, buffering, **options)  # type: ignore[call-overload]
        return File(path, mode.replace("b", ""))

    def fsync_(_handle: int) -> None:
        disk.call()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", open_)
        patch.setattr(os, "fsync", fsync_)
        yield
    assert fsync is os.fsync


@dataclass(slots=True)
class Watched:
    """A cluster whose requests are kept from the moment the disk has failed."""

    admin: SimulatedAdmin
    disk: FullDisk
    forward: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = whole_plan(cluster())
        starts = {
            (move.topic_partition, move.from_replicas)
            for stage in plan.stages
            if isinstance(stage, ReassignStage)
            for move in stage.moves
        }
        reassign, admin = self.admin.reassign, self.admin

        def watched(
            targets: Mapping[TopicPartition, Sequence[int] | None], **options: bool
        ) -> Mapping[TopicPartition, Answer]:
            onward = [key for key, to in targets.items() if to is not None and (key, tuple(to)) not in starts]
            if self.disk.has_failed:
                self.forward += [f"reassign {key}" for key in onward]
            return reassign(targets, **options)

        admin.reassign = watched  # type: ignore[method-assign]
        for name in ("create_topics", "create_partitions", "delete_topics"):
            setattr(admin, name, self._noted(name))

    def _noted(self, name: str) -> object:
        request = getattr(self.admin, name)

        def noted(*arguments: object, is_validated_only: bool = False) -> object:
            if is_validated_only:
                return request(*arguments, is_validated_only=True)
            self.forward += [name] if self.disk.has_failed else []
            return request(*arguments)

        return noted


def calls_of_a_run(folder: Path) -> int:
    """Return how many writes and fsyncs a whole run makes."""
    disk = FullDisk(0, 0, is_for_good=False)
    before = cluster()
    with full(disk):
        plan = whole_plan(before)
        run_plan(plan, admin_of(before), RunJournal(folder / "whole" / "j.jsonl", plan.id))
    return disk.calls


def stopped_and_gone_on(folder: Path, at: int, code: int, *, is_for_good: bool) -> None:
    before = cluster()
    plan, disk = whole_plan(before), FullDisk(at, code, is_for_good=is_for_good)
    watched = Watched(admin_of(before), disk)
    admin, where = watched.admin, f"{errno.errorcode[code]} at {at}"
    path = folder / f"{at}-{code}-{is_for_good}" / "j.jsonl"
    with full(disk), pytest.raises(RunFailed, match="the run journal cannot be written") as error:
        run_plan(plan, admin, RunJournal(path, plan.id))
    assert error.value.code == "KR721"
    assert "then run apply again: it goes on" in str(error.value)
    assert disk.has_failed, where
    assert watched.forward == [], where
    assert in_flight(admin.cluster) == [], where
    assert throttles(admin.cluster) == throttles(before), where
    run_plan(plan, admin, RunJournal(path, plan.id) if at % 2 else MemoryJournal())
    assert shortcomings(plan, before, admin.cluster) == [], where


@pytest.mark.long
@parts("every", 11, deep=1)
def test_each_write_and_fsync_may_fail(tmp_path: Path, figures: Tell, every: int) -> None:
    calls = calls_of_a_run(tmp_path)
    for at in range(1, calls + 1, every):
        for code in CODES:
            stopped_and_gone_on(tmp_path, at, code, is_for_good=bool(at % 3))
    figures(
        "journal on a full or broken disk",
        f"{2 * calls // every} runs, each write and fsync failed: 0 went on, 0 ended wrong",
    )


def test_a_run_without_a_journal_ends_right(before: Cluster, admin: SimulatedAdmin) -> None:
    class NoJournal(MemoryJournal):
        def append(self, _event: object, /) -> None:
            pass

    with suppress(RunFailed):
        run_plan(whole_plan(before), admin, NoJournal())
    assert shortcomings(whole_plan(before), before, admin.cluster) == []
