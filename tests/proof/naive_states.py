"""Tries states of a stage one by one: some moves done, some in flight, some not begun. Slow, obvious, and apart."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from random import Random

from helpers.plans.oracle import declared_topic

from reconciler.model.change import CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Placement, Spread
from reconciler.model.move import Election, Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

Lists = dict[TopicPartition, tuple[int, ...]]
TRIED = 300
"""States of a stage, drawn where there are more: always with those in which all is in flight, and all done."""


def complaints(plan: Plan, desired: Desired, observed: Cluster, random: Random) -> Iterator[str]:
    """Yield what is wrong in the states of a plan's stages, each as the stage's number and a rule.

    A broker that the plan itself names as too full is not named again.
    """
    world = _World(desired, observed)
    words = {"KR413": "disk", "KR419": "replicasPerBroker"}
    said = {f"{words[each.code]} {each.message.split()[1]}" for each in plan.violations if each.code in words}
    for stage in plan.stages:
        rules = world.broken(stage.moves, random) if isinstance(stage, ReassignStage) else set[str]()
        if isinstance(stage, TopicsStage):
            rules |= world.crowded_by(plan.topic_changes[place] for place in stage.changes)
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            world.end(move)
        if isinstance(stage, ReassignStage | ElectStage) and world.has_bad_election(stage.elections):
            rules.add("election")
        yield from (f"{stage.number} {rule}" for rule in sorted(rules - said))


class _World:
    """The partitions as they are before a stage."""

    def __init__(self, desired: Desired, observed: Cluster) -> None:
        self.desired, self.observed = desired, observed
        self.lists: Lists = {key: partition.target_replicas for key, partition in observed.partitions()}
        self.isr = {key: {b for b in p.isr if observed.is_alive(b)} for key, p in observed.partitions()}
        self.beside: Counter[int] = Counter()
        self.sizes = {key: partition.bytes_to_copy or 0 for key, partition in observed.partitions()}
        self.bytes = {
            (key, b): (size if (size := partition.size_on(b)) is not None else self.sizes[key])
            for key, partition in observed.partitions()
            for b in partition.replicas
        }
        held = Counter[int]()
        for (_, b), size in self.bytes.items():
            held[b] += size
        self.other = {b: (broker.used_bytes or held[b]) - held[b] for b, broker in observed.brokers.items()}

    def end(self, move: Move) -> None:
        key = move.topic_partition
        self.isr[key] = self._in_sync_after(move)
        for b in move.added:
            self.bytes[key, b] = self.sizes[key]
        for b in move.removed:
            self.bytes.pop((key, b), None)
        self.lists[key] = move.to_replicas

    def crowded_by(self, changes: Iterable[TopicChange]) -> set[str]:
        """Make the new partitions of these changes; return which brokers are above the limit by them."""
        made = Counter[int]()
        for change in changes:
            if isinstance(change, CreateTopic | CreatePartitions):
                made.update(b for replicas in change.assignment.values() for b in replicas)
        self.beside.update(made)
        counts = Counter(b for ids in self.lists.values() for b in ids) + self.beside
        most = self.desired.cluster.limits.replicas_per_broker
        return {f"replicasPerBroker {b}" for b in made if most is not None and counts[b] > most}

    def has_bad_election(self, elections: Sequence[Election]) -> bool:
        pairs = [(self.lists[one.topic_partition], one) for one in elections]
        return any(ids[0] != one.leader or one.leader not in self.isr[one.topic_partition] for ids, one in pairs)

    def _in_sync_after(self, move: Move) -> set[int]:
        """All living replicas of the target where something is copied: else those that were in sync and stay."""
        if move.added:
            return {b for b in move.to_replicas if self.observed.is_alive(b)}
        return self.isr[move.topic_partition] & {*move.to_replicas}

    def broken(self, moves: Sequence[Move], random: Random) -> set[str]:
        found = set[str]()
        counts = Counter(b for ids in self.lists.values() for b in ids) + self.beside
        if len({move.topic_partition for move in moves}) < len(moves):
            found.add("twice")
        if len(moves) > self.desired.cluster.moves.per_stage:
            found.add("perStage")
        if 3 ** len(moves) <= TRIED:
            states: list[tuple[int, ...]] = [*product(range(3), repeat=len(moves))]
        else:
            drawn = [tuple(random.randrange(3) for _ in moves) for _ in range(TRIED)]
            states = [(1,) * len(moves), (2,) * len(moves), *drawn]
        for state in states:
            now = {m.topic_partition: (m, how) for m, how in zip(moves, state, strict=True) if how}
            found |= self._of_partitions(now) | self._of_brokers(now, counts)
        return found

    def _of_partitions(self, now: dict[TopicPartition, tuple[Move, int]]) -> set[str]:
        found = set[str]()
        for key, (move, how) in now.items():
            dead = any(not self.observed.is_alive(b) for b in move.removed)
            if len(move.added) > self.desired.cluster.moves.per_partition and not dead:
                found.add("perPartition")
            if how == 2:
                before, after = self.isr[key], self._in_sync_after(move)
                if before and not after:
                    found.add("leader")
                if len(after) < min(self._needed(key), len(before), len(move.to_replicas)):
                    found.add("min ISR")
                if self._excess(key, move.to_replicas) > self._excess(key, move.from_replicas):
                    found.add("racks")
        return found

    def _needed(self, key: TopicPartition) -> int:
        written = self.observed.topics[key.topic].configs.get("min.insync.replicas")
        return int(written) if written else 1

    def _excess(self, key: TopicPartition, ids: Sequence[int]) -> int:
        declared = declared_topic(self.desired, key.topic)
        placement = declared.placement if declared else Placement()
        if placement.racks_spread is not Spread.STRICT:
            return 0
        rack = {b: broker.rack or "" for b, broker in self.observed.brokers.items()}
        states = {b: self.desired.cluster.broker(b).state for b in self.observed.brokers}
        counted = {
            rack[b]
            for b in self.observed.brokers
            if states[b] not in {"draining", "absent"}
            and (placement.brokers_only is None or b in placement.brokers_only)
            and b not in placement.brokers_except
            and (placement.racks_only is None or rack[b] in placement.racks_only)
        }
        held, racks = Counter(rack.get(b, "") for b in ids), max(1, len(counted))
        over = sum(max(0, count - -(-len(ids) // racks)) for count in held.values())
        return max(over, sum(max(0, len(ids) // racks - held[name]) for name in counted))

    def _of_brokers(self, now: dict[TopicPartition, tuple[Move, int]], before: Counter[int]) -> set[str]:
        found, limits = set[str](), self.desired.cluster.limits
        ends = {**self.lists}
        for key, (move, how) in now.items():
            ends[key] = tuple({*move.from_replicas, *move.to_replicas}) if how == 1 else move.to_replicas
        counts = Counter(b for ids in ends.values() for b in ids) + self.beside
        most = limits.replicas_per_broker
        if most is not None:
            found.update(f"replicasPerBroker {b}" for b, count in counts.items() if count > max(most, before[b]))
        if limits.disk_use is not None:
            arriving = {b for move, _ in now.values() for b in move.added if self.sizes[move.topic_partition]}
            after = self._loads(now)
            for b in arriving & self.observed.brokers.keys():
                total = self.observed.brokers[b].total_bytes
                if total is not None and after[b] > int(total * limits.disk_use):
                    found.add(f"disk {b}")
        return found

    def _loads(self, now: dict[TopicPartition, tuple[Move, int]]) -> Counter[int]:
        """Return the bytes on each broker: what arrives is there, what leaves stays until all its stage has ended."""
        held = Counter(self.other)
        for (_, b), size in self.bytes.items():
            held[b] += size
        for key, (move, _) in now.items():
            for b in move.added:
                held[b] += self.sizes[key]
        return held
