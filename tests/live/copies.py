"""Tells from the brokers' disks whether a replica was copied more than once."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

Lists = Mapping[str, Mapping[int, tuple[int, ...]]]


class Disks(Protocol):
    """What is asked of a cluster: the brokers that run, and the data folders of each."""

    @property
    def alive(self) -> tuple[int, ...]: ...

    def log_dirs(self, broker_id: int, /) -> tuple[Path, ...]: ...


class Copies:
    """The data folders of some topics' replicas, as seen in each look."""

    def __init__(self, disks: Disks, *topics: str) -> None:
        self._disks = disks
        self._name = re.compile(rf"((?:{'|'.join(map(re.escape, topics))})-\d+)(\..*)?")
        self._made: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        self._removed: set[tuple[str, int]] = set()

    def look(self) -> None:
        """Remember each replica's folder, and those on their way out, which Kafka keeps for a minute."""
        for broker in self._disks.alive:
            for found in (one for log_dir in self._disks.log_dirs(broker) for one in log_dir.iterdir()):
                name = self._name.fullmatch(found.name)
                if name and name[2]:
                    self._removed.add((name[1], broker))
                elif name:
                    self._made[name[1], broker].add(found.stat().st_ino)

    def made_more_than_once(self, before: Lists, after: Lists) -> list[tuple[str, int]]:
        """Return the replicas that are in `after` alone and were not made exactly once: they came, went and came."""
        self.look()
        new = [
            (f"{topic}-{number}", broker)
            for topic, lists in after.items()
            for number, replicas in lists.items()
            for broker in sorted(set(replicas) - set(before[topic][number]))
        ]
        return [key for key in new if len(self._made[key]) != 1 or key in self._removed]
