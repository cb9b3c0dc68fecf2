"""What members bring to a rebalance of a sticky assignor: who may keep which partition (KIP-54, KIP-341, KIP-792)."""

from dataclasses import dataclass

from reconciler.groups.assignors.numbered import NOBODY, NumberedGroup


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
