"""Lists what every plan has to place, in columns: one row a partition whose replicas are to be chosen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredTopic, Placement, Protection
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.basics import Ints
from reconciler.proof.rules import ELSEWHERE, Bounds, Brokers, Eligible, beside_kept, brokers_of, eligible, rack_bounds
from reconciler.proof.topics import TopicCase, assignment_of, topic_cases

NOBODY = -2
"""Fills a row of replicas that is shorter than the longest."""
Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """What partitions with the same rules share: how many replicas are to be chosen, from whom, within which bounds."""

    allowed: Eligible
    need: int
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Decided:
    """A partition whose replicas are decided: an explicit assignment (`is_assigned`), or nothing of it may change."""

    replicas: Replicas
    now: Replicas
    size: int | None
    topic: int
    is_assigned: bool


@dataclass(frozen=True, slots=True)
class Rows:
    """Partitions to choose replicas for.

    `now` are the present replicas, or those that a reassignment in flight leads to; `kept` those that no plan may move.
    `kinds` are positions in `Demands.kinds`, `topics` in `Demands.topics`; `sizes` are bytes of one copy, None unknown.
    """

    keys: list[TopicPartition] = field(default_factory=list)
    now: list[Replicas] = field(default_factory=list)
    kept: dict[int, Replicas] = field(default_factory=dict)
    kinds: list[int] = field(default_factory=list)
    topics: list[int] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Demands:
    """All partitions of a cluster: `rows` to choose for, and `decided` ones; the `doomed` topics are deleted.

    `allowed` runs parallel to `topics`: what the placement of each allows.
    """

    brokers: Brokers
    topics: tuple[str, ...]
    allowed: tuple[Eligible, ...]
    kinds: tuple[Kind, ...]
    rows: Rows
    decided: dict[TopicPartition, Decided]
    doomed: tuple[str, ...] = ()

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each partition that may be copied are known."""
        return None not in self.rows.sizes and None not in (e.size for e in self.decided.values() if e.is_assigned)

    @property
    def is_anything_open(self) -> bool:
        """Whether a plan has any say: a replica to choose or an assignment to reach."""
        return bool(self.rows.keys) or any(each.is_assigned for each in self.decided.values())

    @property
    def kind(self) -> Ints:
        """The kind of each row [rows]."""
        return np.array(self.rows.kinds, dtype=np.int64)

    @property
    def topic(self) -> Ints:
        """The topic of each row [rows]."""
        return np.array(self.rows.topics, dtype=np.int64)

    @property
    def is_copied(self) -> Ints:
        """1 where a new replica is copied, 0 for a partition that is yet to be created [rows]."""
        return np.array([1 if replicas else 0 for replicas in self.rows.now], dtype=np.int64)

    def need(self) -> Ints:
        """Return how many replicas are to be chosen for each row [rows]."""
        return np.array([kind.need for kind in self.kinds], dtype=np.int64)[self.kind]


def padded(lists: Sequence[Replicas], brokers: Brokers) -> Ints:
    """Return [lists, longest] columns: ELSEWHERE for a broker that takes no part, NOBODY beyond a list's end."""
    length = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    width = int(length.max(initial=0))
    table = np.full((len(lists), width), NOBODY, dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(length.sum()))
    ids = np.array([*brokers.ids, np.iinfo(np.int64).max])
    place = np.searchsorted(ids, flat)
    table[np.arange(width)[None, :] < length[:, None]] = np.where(ids[place] == flat, place, ELSEWHERE)
    return table


def demands_of(desired: Desired, observed: Cluster, only: Sequence[str] = ()) -> Demands:
    """Return what a plan for that desired state has to place, confined to topics that match one of `only`, if any."""
    reading = _Reading(brokers_of(desired, observed), observed)
    doomed = []
    for case in topic_cases(desired, observed, only):
        if case.is_doomed:
            doomed.append(case.name)
        else:
            reading.read(case)
    return Demands(
        brokers=reading.brokers,
        topics=tuple(reading.topics),
        allowed=tuple(reading.allowed),
        kinds=tuple(reading.kinds),
        rows=reading.rows,
        decided=reading.decided,
        doomed=tuple(doomed),
    )


@dataclass(slots=True)
class _Reading:
    """The demands so far."""

    brokers: Brokers
    observed: Cluster
    topics: list[str] = field(default_factory=list)
    allowed: list[Eligible] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)
    decided: dict[TopicPartition, Decided] = field(default_factory=dict)
    kind_numbers: dict[object, int] = field(default_factory=dict)
    placements: dict[Placement, tuple[int, Eligible]] = field(default_factory=dict)

    def read(self, case: TopicCase) -> None:
        """Add every partition of that topic, those to come included."""
        self.topics.append(case.name)
        written = case.written
        place = self._place(written)
        self.allowed.append(place.allowed)
        is_still = case.is_left_out or (written is not None and Protection.MOVE in written.protect)
        for partition in case.existing:
            now, size = partition.target_replicas, partition.bytes_to_copy
            key = TopicPartition(case.name, partition.partition)
            explicit = None if is_still else assignment_of(written, partition.partition)
            is_leaving = written is None and not self.brokers.leaving.isdisjoint(now)
            if explicit is not None:
                self._decide(key, explicit, now, size, is_assigned=True)
            elif is_still or (written is None and not is_leaving):
                self._decide(key, now, now, size, is_assigned=False)
            else:
                self._open(key, place, now, size, (written.replication_factor if written else None) or len(now))
        if written is not None:
            self._read_new(case, written, place)

    def _place(self, written: DesiredTopic | None) -> "_Place":
        placement = written.placement if written is not None else Placement()
        if placement not in self.placements:
            self.placements[placement] = len(self.placements), eligible(placement, self.brokers, self.observed)
        number, allowed = self.placements[placement]
        return _Place(number, allowed, placement, is_written=written is not None)

    def _read_new(self, case: TopicCase, written: DesiredTopic, place: "_Place") -> None:
        lists = [case.existing[0].target_replicas] if case.existing else written.placement.assignment
        like = (lists or ((),))[0]
        for number in range(len(case.existing), case.partitions):
            explicit = assignment_of(written, number)
            key = TopicPartition(case.name, number)
            if explicit is not None:
                self._decide(key, explicit, (), 0, is_assigned=True)
            else:
                self._open(key, place, (), 0, written.replication_factor or len(like))

    def _decide(
        self, key: TopicPartition, replicas: Replicas, now: Replicas, size: int | None, *, is_assigned: bool
    ) -> None:
        self.decided[key] = Decided(replicas, now, size, len(self.topics) - 1, is_assigned)

    def _open(self, key: TopicPartition, place: "_Place", now: Replicas, size: int | None, factor: int) -> None:
        kept = () if place.is_written else tuple(b for b in now if b in place.allowed.holders)
        rows = self.rows
        if kept:
            rows.kept[len(rows.keys)] = kept
        rows.keys.append(key)
        rows.now.append(now)
        rows.kinds.append(self._kind(place, factor, now, kept))
        rows.topics.append(len(self.topics) - 1)
        rows.sizes.append(size)

    def _kind(self, place: "_Place", factor: int, now: Replicas, kept: Replicas) -> int:
        """Return the number of the kind with these rules; whatever may differ in them is in the key."""
        spread, brokers, allowed = place.placement.racks_spread, self.brokers, place.allowed
        staying = tuple(sorted(b for b in now if b in brokers.cordoned)) if brokers.cordoned else ()
        held = tuple(sorted(brokers.rack_of.get(b, "") for b in now)) if spread is None else ()
        key = (place.number, factor, staying, held, kept, bool(now))
        if key not in self.kind_numbers:
            bounds = rack_bounds(spread, brokers, allowed, factor, now)
            if place.placement.racks_replicas is not None:
                counts = dict(place.placement.racks_replicas)
                exact = tuple(counts.get(name, 0) for name in brokers.racks)
                bounds = exact, exact
            if kept:
                numbers = brokers.rack.tolist()
                kept_racks = Counter(numbers[brokers.column[b]] for b in kept)
                room = Counter(numbers[brokers.column[b]] for b in allowed.takers - set(kept))
                bounds = beside_kept(bounds, room, kept_racks, factor - len(kept))
            self.kind_numbers[key] = len(self.kinds)
            self.kinds.append(Kind(allowed, factor - len(kept), bounds))
        return self.kind_numbers[key]


@dataclass(frozen=True, slots=True)
class _Place:
    """What a topic's placement allows, with the placement's number; nothing `is_written` of an undeclared topic."""

    number: int
    allowed: Eligible
    placement: Placement
    is_written: bool
