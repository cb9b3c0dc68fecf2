"""Assigns stickily to members who all subscribe to the same topics: to each its quota (KIP-54, KIP-881)."""

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from reconciler.groups.assignors.numbered import NOBODY, Claims, GroupRacks, NumberedGroup


def assign_equal(group: NumberedGroup, claims: Claims, racks: GroupRacks) -> tuple[list[int], frozenset[int]]:
    """Return the owner of each partition, and the partitions that change hands while somebody may still own them.

    Every member gets P // n partitions or one more, and keeps of its own what fits into that, as Kafka's class does:
    those with racks that match, and of these the lowest numbers.
    """
    quotas = _Quotas(group, claims, racks)
    quotas.keep_owned()
    rest = quotas.unowned()
    if racks.matter:
        rest = quotas.give_near(_scarcest_first(rest, racks))
    quotas.give_in_turn(rest)
    return quotas.owners, frozenset(quotas.changing_hands)


def _scarcest_first(partitions: Iterable[int], racks: GroupRacks) -> list[int]:
    """Return the partitions with those that have fewest members in their racks first."""
    members_in: dict[str, int] = defaultdict(int)
    for rack in racks.members:
        if rack is not None:
            members_in[rack] += 1
    return sorted(
        partitions, key=lambda partition: sum(members_in.get(rack, 0) for rack in racks.partitions[partition])
    )


class _Quotas:
    """Partitions on their way to members.

    A member is short below `low` and full with so many; `larger_left` full ones may still take one more.
    """

    def __init__(self, group: NumberedGroup, claims: Claims, racks: GroupRacks) -> None:
        self.group = group
        self.claims = claims
        self.racks = racks
        self.low, self.larger_left = divmod(group.size, len(group.members))
        self.owners = [NOBODY] * group.size
        self.counts = [0] * len(group.members)
        self.given_up: dict[int, int] = {}
        self.changing_hands: set[int] = set()
        self.short: list[int] = []
        self.full: list[int] = []

    def keep_owned(self) -> None:
        """Let each member keep what its quota allows; who comes first in hash order keeps the larger quota."""
        held = self._held()
        for member in self.group.walk:
            owned = held[member]
            if len(owned) < self.low:
                self._keep(member, owned)
                self.short.append(member)
            elif len(owned) > self.low and self.larger_left:
                self._keep(member, owned, self.low + 1)
                self.larger_left -= 1
            else:
                self._keep(member, owned, self.low)
                self.full.append(member)
        self.short.sort()
        self.full.sort()

    def _held(self) -> list[list[int]]:
        """Return what each member may keep, by number and then by topic."""
        held: list[list[int]] = [[] for _ in self.group.members]
        for partition, keeper in enumerate(self.claims.keepers):
            if keeper == NOBODY or partition in self.claims.contested:
                continue
            if self.racks.mismatch(keeper, partition):
                self.given_up[partition] = keeper
            else:
                held[keeper].append(partition)
        for owned in held:
            owned.sort(key=lambda partition: (self.group.number_in_topic(partition), partition))
        return held

    def _keep(self, member: int, owned: Sequence[int], most: int | None = None) -> None:
        kept = owned[:most]
        for partition in kept:
            self.owners[partition] = member
        self.counts[member] = len(kept)
        for partition in owned[len(kept) :]:
            self.given_up[partition] = member

    def unowned(self) -> list[int]:
        """Return the partitions that nobody has yet, by topic and number."""
        return [partition for partition, owner in enumerate(self.owners) if owner == NOBODY]

    def give_near(self, partitions: Sequence[int]) -> list[int]:
        """Give partitions in turn to short members in their racks, then to full ones that may grow; return the rest."""
        short = _RackRing(self.racks, self.short)
        full = _RackQueue(self.racks, self.full)
        rest = []
        for partition in partitions:
            racks = self.racks.partitions[partition]
            member = short.following(racks)
            if member != NOBODY:
                self._give(partition, member)
                if self.counts[member] >= self.low:
                    short.remove(member)
                    full.add(member)
                continue
            member = full.first(racks) if self.larger_left else NOBODY
            if member == NOBODY:
                rest.append(partition)
            else:
                self._give(partition, member)
                full.remove(member)
                self.larger_left -= 1
        self.short = short.members
        self.full = list(full.members)
        return rest

    def give_in_turn(self, partitions: Iterable[int]) -> None:
        """Give the partitions to the short members in turn, then one each to full ones that may grow."""
        turn, full = deque(self.short), deque(self.full)
        for partition in partitions:
            if not turn:
                self._give(partition, full.popleft())
                continue
            member = turn.popleft()
            self._give(partition, member)
            (full if self.counts[member] == self.low else turn).append(member)

    def _give(self, partition: int, member: int) -> None:
        self.owners[partition] = member
        self.counts[member] += 1
        if self.given_up.get(partition, member) != member or partition in self.claims.contested:
            self.changing_hands.add(partition)


class _RackRing:
    """Members in order of their ids, asked in turn for the next one in some racks."""

    def __init__(self, racks: GroupRacks, members: Iterable[int]) -> None:
        self._racks = racks
        self._last = NOBODY
        self._in: dict[str, list[int]] = defaultdict(list)
        self.members = list(members)
        for member in self.members:
            rack = racks.members[member]
            if rack is not None:
                self._in[rack].append(member)

    def following(self, racks: Iterable[str]) -> int:
        """Return who is next after the one returned last, of those in these racks, or NOBODY."""
        seated = [self._in[rack] for rack in racks if self._in.get(rack)]
        after = [ring[place] for ring in seated if (place := bisect_right(ring, self._last)) < len(ring)]
        found = min(after) if after else min((ring[0] for ring in seated), default=NOBODY)
        if found != NOBODY:
            self._last = found
        return found

    def remove(self, member: int) -> None:
        """Leave a member out from now on."""
        rack = self._racks.members[member]
        for ring in (self.members, [] if rack is None else self._in[rack]):
            place = bisect_right(ring, member) - 1
            if place >= 0:
                del ring[place]


class _RackQueue:
    """Members in order of arrival, asked for the first one in some racks."""

    def __init__(self, racks: GroupRacks, members: Iterable[int]) -> None:
        self._racks = racks
        self._in: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.members: dict[int, None] = {}
        self._arrivals = 0
        for member in members:
            self.add(member)

    def add(self, member: int) -> None:
        """Queue a member."""
        rack = self._racks.members[member]
        self.members[member] = None
        self._arrivals += 1
        if rack is not None:
            insort(self._in[rack], (self._arrivals, member))

    def first(self, racks: Iterable[str]) -> int:
        """Return the first member in these racks, or NOBODY."""
        heads = [self._in[rack][0] for rack in racks if self._in.get(rack)]
        return min(heads)[1] if heads else NOBODY

    def remove(self, member: int) -> None:
        """Take out a member that is first in its rack."""
        rack = self._racks.members[member]
        del self.members[member]
        if rack is not None:
            del self._in[rack][0]
