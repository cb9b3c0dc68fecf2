"""Numbers a group's members, topics and partitions, so that assignors compare integers instead of names.

Here is also what several of Kafka's assignors share: the order of members and topics, who may keep what, and whether
racks count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber
from reconciler.model.java_hash import hash_map_order, java_order, partition_hash, text_hash

NOBODY = -1  # in place of a member's number


@dataclass(frozen=True, slots=True)
class NumberedGroup:
    """Members in Java's order of their ids, topics in Java's order of their names; a number is a place in them.

    Only topics that exist and have a subscriber are here, under `topic_numbers` by name. Partition `starts[t] + p` is
    partition p of topic t, and `topic_of` leads back. `walk` holds the members as Kafka's hash maps walk them, `joined`
    their ids as they came.
    """

    members: tuple[Subscriber, ...]
    walk: tuple[int, ...]
    topics: tuple[SubscribedTopic, ...]
    starts: tuple[int, ...]
    topic_numbers: Mapping[str, int]
    topic_of: Sequence[int]
    joined: tuple[str, ...]

    @property
    def size(self) -> int:
        """Return the number of partitions."""
        return len(self.topic_of)

    def number_in_topic(self, partition: int) -> int:
        """Return what Kafka calls the partition."""
        return partition - self.starts[self.topic_of[partition]]

    def claims(self, member: int) -> list[int]:
        """Return the partitions that a member brings from before and that still exist."""
        found: list[int] = []
        for name, partitions in self.members[member].owned.items():
            number = self.topic_numbers.get(name, NOBODY)
            if number != NOBODY:
                start, count = self.starts[number], self.topics[number].partitions
                found.extend(start + partition for partition in set(partitions) if 0 <= partition < count)
        return sorted(found)

    def topics_of(self, member: int) -> frozenset[int]:
        """Return the topics that a member subscribes to."""
        names = self.members[member].subscription
        return frozenset(self.topic_numbers[name] for name in names if name in self.topic_numbers)

    def hash_of(self, partition: int) -> int:
        """Return the hash that Java gives the partition."""
        return partition_hash(text_hash(self.topics[self.topic_of[partition]].name), self.number_in_topic(partition))

    def assignment(self, owners: Sequence[int]) -> Assignment:
        """Return who owns what in Kafka's words; owners[p] is a member, or NOBODY."""
        given: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in self.joined}
        hands = [given[member.member_id] for member in self.members]
        for partition, owner in enumerate(owners):
            if owner != NOBODY:
                topic = self.topic_of[partition]
                hands[owner].setdefault(self.topics[topic].name, []).append(partition - self.starts[topic])
        return {
            member_id: {topic: tuple(held) for topic, held in sorted(topics.items())}
            for member_id, topics in given.items()
        }


@dataclass(frozen=True, slots=True)
class GroupRacks:
    """The racks of members and of partitions, by number; None and the empty set where unknown or of no influence."""

    members: tuple[str | None, ...]
    partitions: Sequence[frozenset[str]]

    @property
    def matter(self) -> bool:
        """Whether racks have any influence."""
        return bool(self.partitions)

    def mismatch(self, member: int, partition: int) -> bool:
        """Whether a member would read from another rack; never true of one whose rack is unknown."""
        rack = self.members[member]
        return rack is not None and rack not in self.partitions[partition]


def numbered(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> NumberedGroup:
    """Return the group under numbers."""
    by_id = {member.member_id: member for member in members}
    ids = sorted(by_id, key=java_order)
    place = {member_id: number for number, member_id in enumerate(ids)}
    subscribed = subscribed_topics(members, topics)
    starts, topic_of = [], list[int]()
    for number, topic in enumerate(subscribed):
        starts.append(len(topic_of))
        topic_of.extend([number] * topic.partitions)
    return NumberedGroup(
        members=tuple(by_id[member_id] for member_id in ids),
        walk=tuple(place[member_id] for member_id in hash_map_order(by_id)),
        topics=subscribed,
        starts=tuple(starts),
        topic_numbers={topic.name: number for number, topic in enumerate(subscribed)},
        topic_of=topic_of,
        joined=tuple(by_id),
    )


def group_racks(group: NumberedGroup) -> GroupRacks:
    """Return the racks of the group, if they have any influence over all its topics together."""
    members = tuple(member.rack or None for member in group.members)
    if any(rack is not None for rack in members):
        partitions = [racks for topic in group.topics for racks in _racks_of(topic)]
        if meets_racks(members, partitions, len(partitions)):
            return GroupRacks(members, partitions)
    return GroupRacks((None,) * len(members), ())


def _racks_of(topic: SubscribedTopic) -> list[frozenset[str]]:
    known = list(topic.racks[: topic.partitions])
    return known + [frozenset()] * (topic.partitions - len(known))


@dataclass(frozen=True, slots=True)
class Claims:
    """Who may keep what.

    `keepers[p]` is the member that may keep partition p, or NOBODY. `contested` holds the partitions that two members
    of one generation claimed. `stale[p]` is who owned p in an older generation than the group's newest.
    """

    keepers: list[int]
    contested: frozenset[int]
    stale: dict[int, int]


def claims_of(group: NumberedGroup) -> Claims:
    """Return who may keep what: of two claims the newer generation's holds, of two in one generation neither."""
    keepers = [NOBODY] * group.size
    latest = [NOBODY] * group.size
    contested: set[int] = set()
    for member in group.walk:
        generation = group.members[member].generation
        for partition in group.claims(member):
            other = latest[partition]
            if other != NOBODY and generation < group.members[other].generation:
                continue
            is_tie = other != NOBODY and generation == group.members[other].generation
            latest[partition] = member
            keepers[partition] = NOBODY if is_tie else member
            if is_tie:
                contested.add(partition)
    return Claims(keepers, frozenset(contested), _stale(group))


def is_equally_subscribed(group: NumberedGroup) -> bool:
    """Whether all members subscribe to the same topics, those that do not exist included."""
    return len({frozenset(member.subscription) for member in group.members}) == 1


def _stale(group: NumberedGroup) -> dict[int, int]:
    newest = max((member.generation for member in group.members), default=-1)
    found: dict[int, int] = {}
    for member in group.walk:
        generation = group.members[member].generation
        if generation < newest:
            for partition in group.claims(member):
                other = found.get(partition)
                if other is None or group.members[other].generation < generation:
                    found[partition] = member
    return found


def static_first(member: Subscriber) -> tuple[bool, bytes, bytes]:
    """Return the sort key of `range` and `roundrobin`: static members by instance id, then the others by member id."""
    by_id = java_order(member.member_id)
    if member.instance_id is None:
        return True, b"", by_id
    return False, java_order(member.instance_id), by_id


def subscribed_topics(
    members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]
) -> tuple[SubscribedTopic, ...]:
    """Return the topics that have partitions and a subscriber, as Java sorts their names."""
    wanted = {name for member in members for name in member.subscription}
    known = (topics[name] for name in wanted if name in topics)
    return tuple(sorted((topic for topic in known if topic.partitions), key=lambda topic: java_order(topic.name)))


def meets_racks(member_racks: Iterable[str | None], partition_racks: Sequence[frozenset[str]], partitions: int) -> bool:
    """Whether Kafka takes racks into account: some member shares one with a replica, and not all partitions are alike.

    `partition_racks` may be shorter than the number of partitions: the racks of the others are unknown.
    """
    wanted = {rack for rack in member_racks if rack}
    distinct = set(partition_racks[:partitions])
    if len(partition_racks) < partitions:
        distinct.add(frozenset())
    everywhere = frozenset[str]().union(*distinct)
    return not wanted.isdisjoint(everywhere) and distinct != {everywhere}
