"""Assigns stickily to members with different subscriptions: Kafka's result without its cost (KIP-54, KIP-881).

Kafka's class walks all partitions to see whether anything is out of balance before each single move. Here each set of
members that share a topic keeps its least loaded one at hand, which answers the same question in one comparison.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

from reconciler.groups.assignors.numbered import NOBODY, Claims, GroupRacks, NumberedGroup
from reconciler.groups.model.simulation import pair_score
from reconciler.model.java_hash import FIRST_CAPACITY, bin_of, is_too_full

ROUNDS_OF_SWAPS = 100
"""After so many walks over all partitions none is swapped for another any more, only moves that even out go on.

Nothing in Kafka's class bounds them; each later walk has a strictly better balance, and so there is a last one.
"""


@dataclass(frozen=True, slots=True)
class _Potential:
    """Who may read what: each topic's set of members, by number, and each set's members, ascending."""

    set_of_topic: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    topics_of: tuple[frozenset[int], ...]

    def is_shared(self, topic: int) -> bool:
        """Whether more than one member may read it, so that its partitions may move."""
        return len(self.sets[self.set_of_topic[topic]]) > 1

    def may_read(self, member: int, topic: int) -> bool:
        """Whether a member subscribes to a topic."""
        return topic in self.topics_of[member]


def assign_unequal(group: NumberedGroup, claims: Claims, racks: GroupRacks) -> list[int]:
    """Return the owner of each partition; those of topics with the fewest subscribers are placed, and moved, first.

    What is owned stays; what is not goes to the least loaded subscriber, in its racks where they matter. Then
    partitions move while a subscriber has two less than the owner, one that has moved before rather than a second
    one; all moves are undone if the whole is no better balanced.
    """
    potential = _potential(group)
    ordered = [
        partition
        for topic in sorted(range(len(group.topics)), key=lambda topic: (_readers(potential, topic), topic))
        for partition in range(group.starts[topic], group.starts[topic] + group.topics[topic].partitions)
    ]
    owners = list(claims.keepers)
    is_revoking = _revoke(group, potential, racks, owners)
    is_first = all(owner == NOBODY for owner in owners)
    unowned = [partition for partition in ordered if owners[partition] == NOBODY]
    _place(group, potential, racks, owners, unowned)
    balance = _Balance(group, potential, owners, claims.stale)
    if not is_revoking:
        balance.even_out(partition for partition in unowned if potential.is_shared(group.topic_of[partition]))
    has_moved = balance.even_out(partition for partition in ordered if potential.is_shared(group.topic_of[partition]))
    if has_moved and not is_first and not _is_better(group, potential, owners, balance.owners):
        return owners
    return balance.owners


def _potential(group: NumberedGroup) -> _Potential:
    topics_of = tuple(group.topics_of(member) for member in range(len(group.members)))
    readers: list[list[int]] = [[] for _ in group.topics]
    for member, topics in enumerate(topics_of):
        for topic in topics:
            readers[topic].append(member)
    sets: dict[tuple[int, ...], int] = {}
    set_of_topic = tuple(sets.setdefault(tuple(members), len(sets)) for members in readers)
    return _Potential(set_of_topic, tuple(sets), topics_of)


def _readers(potential: _Potential, topic: int) -> int:
    return len(potential.sets[potential.set_of_topic[topic]])


def _revoke(group: NumberedGroup, potential: _Potential, racks: GroupRacks, owners: list[int]) -> bool:
    """Take away what its keeper may not read, or reads from another rack; return whether there was any."""
    revoked = [
        partition
        for partition, owner in enumerate(owners)
        if owner != NOBODY
        and (not potential.may_read(owner, group.topic_of[partition]) or racks.mismatch(owner, partition))
    ]
    for partition in revoked:
        owners[partition] = NOBODY
    return bool(revoked)


def _place(
    group: NumberedGroup, potential: _Potential, racks: GroupRacks, owners: list[int], unowned: Iterable[int]
) -> None:
    """Give each partition to the least loaded who may read it, first where racks match, then the others."""
    if racks.matter:
        unowned = _place_near(group, potential, racks, owners, unowned)
    loads = _loads(group, owners)
    least = LeastLoaded(potential.sets, loads)
    for partition in unowned:
        member = least.first(potential.set_of_topic[group.topic_of[partition]])
        owners[partition] = member
        loads[member] += 1


def _place_near(
    group: NumberedGroup, potential: _Potential, racks: GroupRacks, owners: list[int], unowned: Iterable[int]
) -> list[int]:
    """Place what somebody can read in its rack, or without a rack of its own; return the rest."""
    sets: dict[tuple[int, str | None], list[int]] = {}
    for number, members in enumerate(potential.sets):
        for member in members:
            sets.setdefault((number, racks.members[member]), []).append(member)
    numbers = {key: number for number, key in enumerate(sets)}
    loads = _loads(group, owners)
    least = LeastLoaded(list(sets.values()), loads)
    rest = []
    for partition in unowned:
        readers = potential.set_of_topic[group.topic_of[partition]]
        keys = [(readers, None), *((readers, rack) for rack in sorted(racks.partitions[partition]))]
        near = [least.first(numbers[key]) for key in keys if key in numbers]
        if not near:
            rest.append(partition)
            continue
        member = min(near, key=lambda candidate: (loads[candidate], candidate))
        owners[partition] = member
        loads[member] += 1
    return rest


def _loads(group: NumberedGroup, owners: Iterable[int]) -> list[int]:
    loads = [0] * len(group.members)
    for owner in owners:
        if owner != NOBODY:
            loads[owner] += 1
    return loads


def _is_better(group: NumberedGroup, potential: _Potential, before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether the members that could take part are better balanced than before."""
    loads = _loads(group, before)
    sizes = [topic.partitions for topic in group.topics]
    moving = {
        member
        for member, topics in enumerate(potential.topics_of)
        if loads[member] < sum(sizes[topic] for topic in topics)
    }
    moving.update(owner for partition, owner in enumerate(before) if potential.is_shared(group.topic_of[partition]))
    reached = _loads(group, after)
    return pair_score(reached[member] for member in moving) < pair_score(loads[member] for member in moving)


class _Balance:
    """Moves partitions from the loaded to the less loaded until none would even out anything."""

    def __init__(
        self, group: NumberedGroup, potential: _Potential, owners: Sequence[int], stale: dict[int, int]
    ) -> None:
        self.owners = list(owners)
        self._topic_of = group.topic_of
        self._set_of_topic = potential.set_of_topic
        self._loads = _loads(group, owners)
        self._least = LeastLoaded(potential.sets, self._loads)
        self._stale = {
            partition: member
            for partition, member in stale.items()
            if potential.may_read(member, group.topic_of[partition])
        }
        self._movements = Movements(group)
        self._walks = 0

    def even_out(self, partitions: Iterable[int]) -> bool:
        """Walk over the partitions again and again until none moves; return whether any has."""
        walked = list(partitions)
        has_moved = False
        while self._walk(walked):
            has_moved = True
        return has_moved

    def _walk(self, partitions: Sequence[int]) -> bool:
        self._walks += 1
        owners, loads = self.owners, self._loads
        has_moved = False
        for partition in partitions:
            load = loads[owners[partition]] - 1
            former = self._stale.get(partition, NOBODY)
            if former == NOBODY or loads[former] >= load:
                former = self._least.first(self._set_of_topic[self._topic_of[partition]])
                if loads[former] >= load:
                    continue
            self._move(partition, former)
            has_moved = True
        return has_moved

    def _move(self, wanted: int, member: int) -> None:
        partition = wanted
        if self._walks <= ROUNDS_OF_SWAPS:
            partition = self._movements.instead_of(wanted, self.owners[wanted], member)
        owner = self.owners[partition]
        self._movements.record(partition, owner, member)
        self.owners[partition] = member
        self._loads[member] += 1
        self._loads[owner] -= 1
        self._least.has_less(owner)


class LeastLoaded:
    """Answers who of a set has the least load, the lowest number first; reads `loads`, which its owner changes.

    A load that grows needs no word; of one that shrinks `has_less` must be told. Each answer costs about the logarithm
    of the set's size.
    """

    def __init__(self, sets: Sequence[Sequence[int]], loads: Sequence[int]) -> None:
        self._loads = loads
        self._members = len(loads)
        self._sets_of: list[list[int]] = [[] for _ in loads]
        # An entry is load * members + member. Each member of a set has one there that is no more than its load.
        self._heaps: list[list[int]] = []
        for number, members in enumerate(sets):
            for member in members:
                self._sets_of[member].append(number)
            self._heaps.append([loads[member] * self._members + member for member in members])
            heapify(self._heaps[-1])

    def first(self, number: int) -> int:
        """Return the least loaded member of a set that is not empty."""
        heap = self._heaps[number]
        while True:
            load, member = divmod(heap[0], self._members)
            if load == self._loads[member]:
                return member
            if load < self._loads[member]:
                heapreplace(heap, self._loads[member] * self._members + member)
            else:
                heappop(heap)

    def has_less(self, member: int) -> None:
        """Take note that a member's load has shrunk."""
        entry = self._loads[member] * self._members + member
        for number in self._sets_of[member]:
            heappush(self._heaps[number], entry)


class Movements:
    """For each topic and pair of members, the partitions that went from the one to the other."""

    def __init__(self, group: NumberedGroup) -> None:
        self._group = group
        self._way: dict[int, tuple[int, int]] = {}
        self._gone: dict[tuple[int, int, int], _HashSet] = {}

    def instead_of(self, partition: int, owner: int, taker: int) -> int:
        """Return the partition that rather moves to `taker`: one of the topic that had gone the way back, if any.

        Where several had, Kafka takes the first in hash order.
        """
        source = self._way[partition][0] if partition in self._way else owner
        back = self._gone.get((self._group.topic_of[partition], taker, source))
        return partition if back is None else back.first()

    def record(self, partition: int, owner: int, taker: int) -> None:
        """Take note of a move; several of one partition count as one, and none if it comes back to where it was."""
        topic = self._group.topic_of[partition]
        source = owner
        if partition in self._way:
            way = self._way.pop(partition)
            source = way[0]
            gone = self._gone[topic, *way]
            gone.remove(partition)
            if not gone:
                del self._gone[topic, *way]
        if source != taker:
            self._way[partition] = (source, taker)
            key = (topic, source, taker)
            if key not in self._gone:
                self._gone[key] = _HashSet()
            self._gone[key].add(partition, self._group.hash_of(partition))


class _HashSet:
    """Numbers in the order in which a `java.util.HashSet` of their partitions would be walked."""

    __slots__ = ("_capacity", "_hashes")

    def __init__(self) -> None:
        self._capacity = FIRST_CAPACITY
        self._hashes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, number: int, its_hash: int) -> None:
        self._hashes[number] = its_hash
        if is_too_full(len(self._hashes), self._capacity):
            self._capacity *= 2

    def remove(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        return min(self._hashes, key=lambda number: bin_of(self._hashes[number], self._capacity))
