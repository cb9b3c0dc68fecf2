"""Lists what every plan has to place, in columns: one row a partition, whose replicas are to be chosen or fixed."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Placement, Protection, Spread
from reconciler.model.topic_partition import TopicPartition, named
from reconciler.proof.arithmetic import (
    NONE,
    Bools,
    Ints,
    is_new,
    kinds_of,
    lists_of,
    positions_in,
    stacked,
    table_of_lists,
)
from reconciler.proof.rules import ELSEWHERE, Bounds, Brokers, Eligible, beside_fixed, brokers_of, eligible, rack_bounds
from reconciler.proof.snapshot import Snapshot, snapshot_of
from reconciler.proof.topics import TopicCase, assignment_of, topic_cases

NOBODY = -2
"""Fills a row of columns that is shorter than the longest."""
Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """What partitions with the same rules share: how many replicas are to be chosen, from whom, within which bounds.

    `is_strict`: the bounds hold whatever happens; else they yield to limits.
    """

    allowed: Eligible
    need: int
    bounds: Bounds
    is_strict: bool


@dataclass(frozen=True, eq=False)
class Partitions:
    """Some partitions as columns, one row each. Lists of brokers end with NONE.

    `at`: the row in the table of what is observed, NONE of a partition that is yet to be created. `now` [rows, width]:
    present replicas, or those that a reassignment in flight leads to. `size`: bytes of one copy, NONE unknown.
    """

    topics: tuple[str, ...]
    topic: Ints  # [rows]: positions in `topics`
    number: Ints
    at: Ints
    now: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.topic)

    @cached_property
    def keys(self) -> Sequence[TopicPartition]:
        """The topic and number of each row."""
        return (*named(self.topics, self.topic.tolist(), self.number.tolist()),)

    def key(self, row: int) -> TopicPartition:
        """Return the topic and number of one row."""
        return TopicPartition(self.topics[self.topic[row]], int(self.number[row]))

    @property
    def is_there(self) -> Bools:
        """Which exist; the others are yet to be created."""
        found: Bools = self.now[:, 0] >= 0
        return found

    @property
    def sizes(self) -> list[int | None]:
        """The bytes of one copy of each, None unknown."""
        return [None if size < 0 else size for size in self.size.tolist()]

    def fields_of(self, rows: Ints) -> dict[str, Any]:
        """Return the fields of these rows."""
        columns = ("topic", "number", "at", "now", "size")
        return {"topics": self.topics, **{name: getattr(self, name)[rows] for name in columns}}


@dataclass(frozen=True, eq=False)
class Rows(Partitions):
    """Partitions to choose replicas for.

    `kind`: positions in `Demands.kinds`. `fixed` [rows, width]: replicas of now that no plan may move, NONE elsewhere.
    """

    kind: Ints
    fixed: Ints


@dataclass(frozen=True, eq=False)
class Fixed(Partitions):
    """Partitions whose replicas are fixed: an explicit assignment (`is_assigned`), or nothing of them may change."""

    replicas: Ints  # [rows, width]
    is_assigned: Bools

    @property
    def forced(self) -> Ints:
        """How many replicas are copied whatever the plan, for explicit assignments."""
        copies: Ints = is_new(self.replicas, self.now).sum(axis=1)
        return np.where(self.is_assigned & self.is_there, copies, 0)


@dataclass(frozen=True, eq=False)
class Demands:
    """All partitions of a cluster: `rows` to choose for, and `fixed` ones; the `doomed` topics are deleted.

    `allowed` and `placements` run parallel to `topics`.
    """

    snapshot: Snapshot
    brokers: Brokers
    allowed: tuple[Eligible, ...]
    placements: tuple[Placement, ...]
    kinds: tuple[Kind, ...]
    rows: Rows
    fixed: Fixed
    doomed: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that stay or are to be created."""
        return self.rows.topics

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each partition that may be copied are known."""
        return bool((self.rows.size >= 0).all() and (self.fixed.size[self.fixed.is_assigned] >= 0).all())

    @property
    def is_anything_open(self) -> bool:
        """Whether a plan has any say: a replica to choose or an assignment to reach."""
        return bool(len(self.rows) or self.fixed.is_assigned.any())

    @property
    def is_copied(self) -> Ints:
        """1 where a new replica is copied, 0 for a partition that is yet to be created [rows]."""
        return self.rows.is_there.astype(np.int64)

    @cached_property
    def now(self) -> Ints:
        """The columns of the present replicas [rows, width]."""
        return columns_of(self.rows.now, self.brokers)

    def who(self, tier: Literal["holders", "takers", "leaders", "stand_ins"]) -> Bools:
        """Return [kinds, brokers]: who is of that tier of `Eligible` for each kind."""
        return self.brokers.masks([getattr(kind.allowed, tier) for kind in self.kinds])

    @cached_property
    def racks(self) -> tuple[Ints, Ints, Bools]:
        """The fewest and the most replicas that each rack may hold [kinds, racks], and which kinds insist on it."""
        shape = len(self.kinds), len(self.brokers.racks)
        low, high = (np.array([each.bounds[end] for each in self.kinds], np.int64).reshape(shape) for end in (0, 1))
        return low, high, np.array([each.is_strict for each in self.kinds], dtype=np.bool_)

    def off_spread(self, table: Ints) -> Ints:
        """Return by how many replicas the racks of each row [rows] are beyond their bounds, too many or too few.

        `table` [rows, width] are the columns of the replicas that were chosen, NOBODY elsewhere.
        """
        low, high, _ = self.racks
        off, kind = np.zeros(len(table), dtype=np.int64), self.rows.kind
        for number in range(low.shape[1]):
            held = ((table >= 0) & (self.brokers.rack[np.maximum(table, 0)] == number)).sum(axis=1)
            off += np.maximum(low[kind, number] - held, 0) + np.maximum(held - high[kind, number], 0)
        return off

    def need(self) -> Ints:
        """Return how many replicas are to be chosen for each row [rows]."""
        return np.array([kind.need for kind in self.kinds], dtype=np.int64)[self.rows.kind]


def columns_of(replicas: Ints, brokers: Brokers) -> Ints:
    """Return the columns of brokers [lists, width]: ELSEWHERE if one takes no part, NOBODY beyond a list's end."""
    found = positions_in(np.array(brokers.ids, dtype=np.int64), replicas)
    return np.where(replicas < 0, NOBODY, np.where(found < 0, ELSEWHERE, found))


def demands_of(desired: Desired, observed: Cluster, only: Sequence[str] = (), spared: Collection[str] = ()) -> Demands:
    """Return what a plan for that desired state has to place, confined to topics that match one of `only`, if any.

    The topics in `spared` are not deleted, whatever the files say.
    """
    snapshot = snapshot_of(observed)
    brokers = brokers_of(desired, observed, snapshot)
    every = [*topic_cases(desired, observed, only, spared)]
    asked = _Asked.of([case for case in every if not case.is_doomed], brokers, observed)
    partitions = _partitions(asked.cases, snapshot)
    # NONE, the last row, stands for partitions that are yet to be created.
    has_source = np.append(snapshot.has_source, True)[partitions.at]
    explicit = _explicit(asked, partitions, has_source)
    is_still, is_written, is_placed = (
        asked.where(told)[partitions.topic] for told in (_is_still, _is_written, _is_placed)
    )
    is_leaving = np.isin(partitions.now, [*brokers.leaving]).any(axis=1)
    is_dead = ~np.isin(partitions.now, [NONE, *(b for b, one in observed.brokers.items() if not one.is_fenced)])
    is_open = is_placed | is_leaving | (is_written & ~is_dead.any(axis=1))
    is_fixed = partitions.is_there & (is_still | ~is_open | ~has_source)
    is_fixed[[*explicit]] = True
    rows, kinds = _rows(partitions, np.flatnonzero(~is_fixed), asked)
    return Demands(
        snapshot=snapshot,
        brokers=brokers,
        allowed=tuple(asked.allowed[place] for place in asked.place.tolist()),
        placements=tuple(map(_placement, asked.cases)),
        kinds=kinds,
        rows=rows,
        fixed=_fixed(partitions, np.flatnonzero(is_fixed), explicit),
        doomed=tuple(case.name for case in every if case.is_doomed),
    )


def _is_written(case: TopicCase) -> bool:
    return case.written is not None


def _is_placed(case: TopicCase) -> bool:
    """Whether the files say how many replicas it has, or where they are."""
    written = case.written
    return written is not None and (written.replication_factor is not None or written.placement != Placement())


def _is_still(case: TopicCase) -> bool:
    return case.is_left_out or (case.written is not None and Protection.MOVE in case.written.protect)


def _placement(case: TopicCase) -> Placement:
    return case.written.placement if case.written is not None else Placement()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of each topic: `place` [topics] numbers its placement, `allowed` is what each placement allows."""

    cases: Sequence[TopicCase]
    brokers: Brokers
    place: Ints
    allowed: Sequence[Eligible]

    @classmethod
    def of(cls, cases: Sequence[TopicCase], brokers: Brokers, observed: Cluster) -> "_Asked":
        numbers: dict[Placement, int] = {}
        place = [numbers.setdefault(_placement(case), len(numbers)) for case in cases]
        allowed = [eligible(placement, brokers, observed) for placement in numbers]
        return cls(cases, brokers, np.array(place, dtype=np.int64), allowed)

    def where(self, told: Callable[[TopicCase], bool]) -> Bools:
        """Return [topics] of which that is true."""
        return np.array([told(case) for case in self.cases], dtype=np.bool_)


def _partitions(cases: Sequence[TopicCase], snapshot: Snapshot) -> Partitions:
    """Return every partition of these topics: first those that are there, then those to come."""
    position = {case.name: place for place, case in enumerate(cases)}
    topic = np.array([position.get(name, NONE) for name in snapshot.topics], dtype=np.int64)[snapshot.topic]
    at = np.flatnonzero(topic >= 0)
    new = [
        (place, number)
        for place, case in enumerate(cases)
        if case.written is not None
        for number in range(len(case.existing), case.partitions)
    ]
    of_new = np.array(new, dtype=np.int64).reshape(-1, 2)
    return Partitions(
        topics=(*position,),
        topic=np.concatenate([topic[at], of_new[:, 0]]),
        number=np.concatenate([snapshot.number[at], of_new[:, 1]]),
        at=np.concatenate([at, np.full(len(new), NONE)]),
        now=stacked([snapshot.target[at], np.full((len(new), 1), NONE)]),
        size=np.concatenate([snapshot.size[at], np.zeros(len(new), dtype=np.int64)]),
    )


def _explicit(asked: _Asked, partitions: Partitions, has_source: Bools) -> dict[int, Replicas]:
    """Return the explicit assignments that are to be reached, by row."""
    is_asked = asked.where(lambda case: bool(_placement(case).assignment))[partitions.topic] & has_source
    is_there, found = partitions.is_there, {}
    for row in np.flatnonzero(is_asked).tolist():
        case = asked.cases[partitions.topic[row]]
        replicas = assignment_of(case.written, int(partitions.number[row]))
        if replicas is not None and not (_is_still(case) and is_there[row]):
            found[row] = replicas
    return found


def _fixed(partitions: Partitions, rows: Ints, explicit: Mapping[int, Replicas]) -> Fixed:
    is_assigned = np.isin(rows, [*explicit])
    assigned = table_of_lists([explicit[row] for row in rows[is_assigned].tolist()])
    replicas, written = np.split(stacked([partitions.now[rows], assigned]), [len(rows)])
    replicas[is_assigned] = written
    return Fixed(**partitions.fields_of(rows), replicas=replicas, is_assigned=is_assigned)


def _rows(partitions: Partitions, rows: Ints, asked: _Asked) -> tuple[Rows, tuple[Kind, ...]]:
    """Return these partitions to choose for, and their kinds: whatever may differ in the rules tells kinds apart."""
    topic, now, brokers = partitions.topic[rows], partitions.now[rows], asked.brokers
    place, factor, fixed = asked.place[topic], _factors(asked.cases, topic, now), _fixed_replicas(topic, now, asked)
    is_partly_known = np.array([each.is_partly_known for each in asked.allowed], dtype=np.bool_)[place]
    is_racked = asked.where(lambda case: _placement(case).racks_spread is None)[topic] | is_partly_known
    held = np.where(is_racked[:, None], racks_of(now, brokers), NONE)
    staying = np.where(np.isin(now, [*brokers.cordoned]), now, NONE)
    lists = [column for each in (staying, held, fixed) for column in np.sort(each, axis=1).T]
    first, kind = kinds_of([place, factor, (now[:, 0] >= 0).astype(np.int64), *lists])
    kinds = tuple(
        _kind(asked, of, need, replicas, stay)
        for of, need, replicas, stay in zip(
            topic[first].tolist(), factor[first].tolist(), lists_of(now[first]), lists_of(fixed[first]), strict=True
        )
    )
    return Rows(**partitions.fields_of(rows), kind=kind, fixed=fixed), kinds


def _factors(cases: Sequence[TopicCase], topic: Ints, now: Ints) -> Ints:
    """Return how many replicas each of these partitions is to have: as written, else as now, else as the first has."""
    written = [(case.written.replication_factor if case.written is not None else None) or 0 for case in cases]
    # Only new partitions take after the first.
    first = [_first(case) if case.partitions > len(case.existing) else 0 for case in cases]
    asked, like = (np.array(each, dtype=np.int64)[topic] for each in (written, first))
    there = (now >= 0).sum(axis=1)
    return np.where(asked > 0, asked, np.where(there > 0, there, like))


def _first(case: TopicCase) -> int:
    """Return how many replicas the topic's first partition has, or is to have."""
    if case.existing:
        first = case.existing[0]
        return len({*first.replicas} - {*first.removing_replicas})
    return len((_placement(case).assignment or ((),))[0])


def _fixed_replicas(topic: Ints, now: Ints, asked: _Asked) -> Ints:
    """Return the replicas that no plan may move: those of an undeclared topic, on brokers that may hold them."""
    fixed = np.full_like(now, NONE)
    is_foreign = ~asked.where(_is_written)[topic]
    for place in np.unique(asked.place[topic[is_foreign]]).tolist():
        is_here = (is_foreign & (asked.place[topic] == place))[:, None]
        fixed = np.where(is_here & np.isin(now, [*asked.allowed[place].holders]), now, fixed)
    return fixed


def rack_names(brokers: Brokers) -> list[str]:
    """Return the names of all racks, the empty name of no rack among them."""
    return sorted({"", *brokers.racks})


def racks_of(replicas: Ints, brokers: Brokers) -> Ints:
    """Return the position of each broker's rack in `rack_names`; NONE where there is no broker."""
    ids, names = sorted(brokers.rack_of), rack_names(brokers)
    number = [names.index(brokers.rack_of[broker_id]) for broker_id in ids]
    # A broker that is not registered has no rack: its position is NONE, the last.
    racks = np.array([*number, names.index("")], dtype=np.int64)[positions_in(np.array(ids, dtype=np.int64), replicas)]
    return np.where(replicas >= 0, racks, NONE)


def _kind(asked: _Asked, topic: int, factor: int, now: Replicas, fixed: Replicas) -> Kind:
    brokers, allowed, placement = asked.brokers, asked.allowed[asked.place[topic]], _placement(asked.cases[topic])
    bounds = rack_bounds(placement.racks_spread, brokers, allowed, factor, now)
    if placement.racks_replicas is not None:
        counts = dict(placement.racks_replicas)
        exact = tuple(counts.get(name, 0) for name in brokers.racks)
        bounds = exact, exact
    if fixed:
        numbers = brokers.rack.tolist()
        kept_racks = Counter(numbers[brokers.column[b]] for b in fixed)
        room = Counter(numbers[brokers.column[b]] for b in allowed.takers - set(fixed))
        bounds = beside_fixed(bounds, room, kept_racks, factor - len(fixed))
    is_strict = placement.racks_spread is Spread.STRICT or placement.racks_replicas is not None
    return Kind(allowed, factor - len(fixed), bounds, is_strict)
