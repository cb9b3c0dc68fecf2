"""`server-uniform` where all members subscribe to the same topics: a quota for each, kept where it is met."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.groups.assignors.server_held import Held, target_before
from reconciler.groups.assignors.server_order import map_order, partitions_in_set_order, set_order
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


def equal_shares(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
    """Return what each member gets, members in Kafka's order (UniformHomogeneousAssignmentBuilder, 4.1.1).

    A member gives up only what exceeds its quota; what nobody holds, then what was given up, fills the others. The
    larger quota goes to the first who have so much already, else to the last.
    """
    if not members:
        return {}
    names = set_order(members[0].subscription, topics)
    minimum, larger = divmod(sum(topics[name].partitions for name in names), len(members))
    target = target_before(members, topics)
    supply = [(name, target.free(topics[name])) for name in names]
    wanting: list[tuple[Held, int]] = []
    for place, (member, own) in enumerate(zip(members, target.held, strict=True)):
        size = sum(map(len, own.values()))
        quota = minimum + (larger > 0)
        if size > quota:
            walked = map_order([name for name in names if name in own], len(member.owned), topics)
            supply.extend(_given_up(own, walked, quota))
            size = quota
        is_larger = larger > 0 and (size > minimum or larger >= len(members) - place)
        larger -= is_larger
        if size < minimum + is_larger:
            wanting.append((own, minimum + is_larger - size))
    _fill(wanting, supply)
    return {member.member_id: own for member, own in zip(members, target.held, strict=True)}


def _given_up(own: Held, walked: Iterable[str], quota: int) -> list[tuple[str, Sequence[int]]]:
    """Take from `own` what exceeds the quota, topic by topic, and return it."""
    given_up: list[tuple[str, Sequence[int]]] = []
    for name in walked:
        partitions = own[name]
        if len(partitions) > quota:
            ordered = partitions_in_set_order(partitions)
            given_up.append((name, ordered[quota:]))
            del own[name]
            if quota:
                own[name] = tuple(sorted(ordered[:quota]))
        quota -= min(quota, len(partitions))
    return given_up


def _fill(wanting: Iterable[tuple[Held, int]], supply: Iterable[tuple[str, Sequence[int]]]) -> None:
    """Hand the supply, in its order, to those who want, in theirs."""
    left = _Supply(supply)
    for own, quota in wanting:
        for name, partitions in left.take(quota):
            own[name] = tuple(sorted((*own.get(name, ()), *partitions)))


class _Supply:
    """Runs of partitions, handed out from the front."""

    def __init__(self, runs: Iterable[tuple[str, Sequence[int]]]) -> None:
        self._runs = iter(runs)
        self._name = ""
        self._run: Sequence[int] = ()
        self._start = 0

    def take(self, count: int) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield the next `count` partitions, a topic's run at a time; the supply must hold so many."""
        while count:
            if self._start == len(self._run):
                self._name, self._run = next(self._runs)
                self._start = 0
            taken = self._run[self._start : self._start + count]
            if taken:
                yield self._name, taken
            self._start += len(taken)
            count -= len(taken)
