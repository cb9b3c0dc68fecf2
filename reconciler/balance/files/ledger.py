"""Keeps what a lake has taken and made, as lines of JSON, and says which of its days have to be made anew.

A day of silver and gold is a pure function of the files whose samples lie in it, or in the last hours of the day
before. The ledger keeps a fingerprint of the files that each day was made from. A day with another fingerprint, or
with none, has to be made. So the next run finds by itself which days a killed run left undone.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.model.problem import ReconcilerError

LEDGER = "_ledger"
NOT_A_LAKE, IN_USE, OTHER_BUCKET = "KR295", "KR296", "KR297"
# Raise it where silver or gold change, or how they are made of bronze: all days are made anew then.
_FORM = 1
_TABLES = ("bronze", "silver", "gold")


class Day(NamedTuple):
    """One day (UTC) of one cluster; both are null for samples without a time or a cluster."""

    cluster: str | None
    date: str | None

    @property
    def before(self) -> "Day | None":
        """The day before."""
        if self.date is None:
            return None
        return Day(self.cluster, (date.fromisoformat(self.date) - timedelta(days=1)).isoformat())

    @property
    def order(self) -> tuple[bool, str, bool, str]:
        """Key to sort days by: null first."""
        return self.cluster is not None, self.cluster or "", self.date is not None, self.date or ""


@dataclass(frozen=True, slots=True)
class Version:
    """What a file looks like at a moment; it has changed where one of these has."""

    size: int
    modified: int
    """In microseconds since 1970."""
    named: str | None = None
    """The cluster that was named for samples which name none, empty without one; None: the file names its clusters."""


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file whose samples are in bronze."""

    path: str
    version: Version
    taking: int
    """The number of the run that took it, which is the name of its folder in bronze."""
    source: str
    """The source that its rows in bronze name; files that make samples only together share one."""
    days: tuple[Day, ...] = ()
    """The days that its samples lie in."""
    evenings: tuple[Day, ...] = ()
    """Those of them in whose last hours it has samples, which the day after looks back on."""


@dataclass(frozen=True)
class Ledger:
    """What a lake has taken and made."""

    number: int = 0
    """How often the ledger was written; of two ledgers the one with the higher number counts."""
    takings: int = 0
    """How many runs took files."""
    bucket_seconds: int | None = None
    """Length of the time buckets of silver; None for a lake that is not there yet."""
    files: Mapping[str, TakenFile] = field(default_factory=dict)
    """The files by path."""
    replaced: frozenset[tuple[int, str]] = frozenset()
    """Takings and sources whose rows no longer count: their file was taken anew."""
    made: Mapping[Day, str] = field(default_factory=dict)
    """The days that are whole in silver and gold, and the fingerprint of what each was made from."""
    mark: str = ""
    """Tells two runs apart that wrote a ledger of one number; empty where a lock keeps a second run away."""

    @cached_property
    def wanted(self) -> Mapping[Day, str]:
        """Every day that has samples, and the fingerprint of the files that it has to be made from."""
        of_day: defaultdict[Day, list[str]] = defaultdict(list)
        of_evening: defaultdict[Day, list[str]] = defaultdict(list)
        for path in sorted(self.files):
            file = self.files[path]
            told = json.dumps([path, *asdict(file.version).values()])
            for day in file.days:
                of_day[day].append(told)
            for day in file.evenings:
                of_evening[day].append(told)
        return {
            day: self._fingerprint(of_day[day], of_evening.get(day.before, []) if day.before else [])
            for day in sorted(of_day, key=lambda day: day.order)
        }

    def _fingerprint(self, day: list[str], evening_before: list[str]) -> str:
        told = json.dumps([_FORM, self.bucket_seconds, day, evening_before])
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def pending(self) -> tuple[Day, ...]:
        """The days to be made, in order."""
        return tuple(day for day, fingerprint in self.wanted.items() if self.made.get(day) != fingerprint)

    @property
    def gone(self) -> tuple[Day, ...]:
        """The days that were made, and have no samples any more."""
        return tuple(sorted(self.made.keys() - self.wanted.keys(), key=lambda day: day.order))

    def has(self, path: str, size: int, modified: int, named: str | None) -> bool:
        """Return whether the file was taken, and has not changed since; `named` as in Version."""
        file = self.files.get(path)
        return file is not None and file.version in {Version(size, modified), Version(size, modified, named)}

    def beside(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths of all files that make samples only together with one of these, and of these themselves."""
        gone = {(self.files[path].taking, self.files[path].source) for path in paths if path in self.files}
        return frozenset(path for path, file in self.files.items() if (file.taking, file.source) in gone)

    def with_files(self, files: Iterable[TakenFile]) -> "Ledger":
        """Return the ledger after a taking of these files; rows of their older versions no longer count."""
        taken = {file.path: file for file in files}
        left = self.beside(taken)
        replaced = {(self.files[path].taking, self.files[path].source) for path in left}
        kept = {path: file for path, file in self.files.items() if path not in left}
        new = replace(self, takings=self.takings + 1, files=kept | taken, replaced=self.replaced | replaced)
        # A run may die after it has begun to write over a day. So the day is due, even where its files are later
        # again what they were.
        wanted = new.wanted
        return replace(new, made={day: each for day, each in self.made.items() if wanted.get(day, each) == each})

    def with_all_made(self) -> "Ledger":
        """Return the ledger once every day is made."""
        return replace(self, made=self.wanted)

    def without_made(self, days: Iterable[Day]) -> "Ledger":
        """Return the ledger with these days to be made anew."""
        undone = frozenset(days)
        return replace(self, made={day: each for day, each in self.made.items() if day not in undone})

    def takings_of(self, day: Day, *, evening: bool = False) -> tuple[int, ...]:
        """Return the takings that have samples of that day, or of its evening."""
        return self._takings[evening].get(day, ())

    @cached_property
    def _takings(self) -> Mapping[bool, Mapping[Day, tuple[int, ...]]]:
        found: dict[bool, defaultdict[Day, set[int]]] = {False: defaultdict(set), True: defaultdict(set)}
        for file in self.files.values():
            for is_evening, days in ((False, file.days), (True, file.evenings)):
                for day in days:
                    found[is_evening][day].add(file.taking)
        return {key: {day: tuple(sorted(each)) for day, each in days.items()} for key, days in found.items()}

    def text(self) -> str:
        """Return the ledger as lines of JSON; the first one says how many follow."""
        lines = [json.dumps(["file", *_of_file(self.files[path])]) for path in sorted(self.files)]
        lines += [json.dumps(["replaced", *each]) for each in sorted(self.replaced)]
        lines += [json.dumps(["made", self.made[day], *day]) for day in sorted(self.made, key=lambda day: day.order)]
        head = [_FORM, self.number, self.takings, self.bucket_seconds, len(lines), self.mark]
        return "\n".join([json.dumps(["ledger", *head]), *lines])


def ledger_of(text: str) -> Ledger | None:
    """Return the ledger that the text holds; None where it is not whole."""
    lines = [json.loads(line) for line in text.splitlines() if line]
    if not lines or lines[0][0] != "ledger" or lines[0][5] != len(lines) - 1:
        return None
    _, _, number, takings, bucket_seconds, _, *mark = lines[0]
    files = (_file_of(*values) for kind, *values in lines if kind == "file")
    replaced = ((taking, source) for kind, taking, source, *_ in lines if kind == "replaced")
    return Ledger(
        number,
        takings,
        bucket_seconds,
        {file.path: file for file in files},
        frozenset(replaced),
        {Day(*day): fingerprint for kind, fingerprint, *day in lines if kind == "made"},
        "".join(mark),
    )


def _of_file(file: TakenFile) -> tuple[object, ...]:
    version = (file.version.size, file.version.modified, file.version.named)
    return file.path, version, file.taking, file.source, file.days, file.evenings


def _file_of(path: str, version: Any, taking: int, source: str, *days: Any) -> TakenFile:
    whole, evenings = (tuple(Day(*day) for day in each) for each in days)
    return TakenFile(path, Version(*version), taking, source, whole, evenings)


def refuse_no_lake(folder: Path) -> None:
    """Raise ReconcilerError where that is a file, or a folder that holds anything but a lake."""
    if folder.exists() and not folder.is_dir():
        raise ReconcilerError(f"{folder}: is a file; name the folder of a lake, or a new one", code=NOT_A_LAKE)
    if folder.is_dir() and not (folder / LEDGER).is_dir():
        strange = [path.name for path in folder.iterdir() if path.name[0] not in "._" and path.name not in _TABLES]
        if strange:
            message = f"{folder}: holds other things, such as {min(strange)}: name the folder of a lake, or a new one"
            raise ReconcilerError(message, code=NOT_A_LAKE)


@contextmanager
def lake_lock(folder: Path) -> Iterator[None]:
    """Keep other runs on this machine from the lake; the system frees the lock when the run ends, even by a kill.

    Temporary files that Spark left of a killed run are removed first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "_lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{folder}: another run is at work on this lake; start again when it has ended"
            raise ReconcilerError(message, code=IN_USE) from None
        for table in ("silver", "gold/loads", "gold/report"):
            for left in (*(folder / table).glob(".spark-staging-*"), folder / table / "_temporary"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)
