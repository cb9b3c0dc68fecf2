"""Finds which racks a topic, or its leaders, keep to, where that can hardly be by chance."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.cluster import Cluster, Topic

CHANCE = Fraction(1, 1_000_000)
"""A rule that random placement would keep more often than this is not taken for one."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the brokers stand that hold anything: a broker that is new and empty says nothing about a topic."""

    rack_of: Mapping[int, str | None]
    brokers_in: Mapping[str, int]
    is_racked: bool

    def leader_racks(self, topic: Topic) -> frozenset[str] | None:
        """Return the racks of all preferred leaders, where replicas stand in others too and chance is ruled out."""
        lists = [partition.target_replicas for partition in topic.partitions if partition.target_replicas]
        led = self._racks(replicas[0] for replicas in lists)
        held = self._racks(replica for replicas in lists for replica in replicas)
        if led is None or held is None or led == held:
            return None
        chance = Fraction(1)
        for replicas in lists:
            chance *= Fraction(sum(self.rack_of.get(replica) in led for replica in replicas), len(replicas))
            if chance <= CHANCE:
                return led
        return None

    def only_racks(self, topic: Topic) -> frozenset[str] | None:
        """Return the racks of all replicas, where brokers in others hold something and chance is ruled out."""
        replicas = [replica for partition in topic.partitions for replica in partition.target_replicas]
        held = self._racks(replicas)
        if held is None or held >= self.brokers_in.keys():
            return None
        share = Fraction(sum(self.brokers_in.get(rack, 0) for rack in held), sum(self.brokers_in.values()))
        chance = Fraction(1)
        for _ in replicas:
            chance *= share
            if chance <= CHANCE:
                return held
        return None

    def _racks(self, brokers: Iterable[int]) -> frozenset[str] | None:
        """Return the racks of these brokers; None where one has none, or a name that no file could hold."""
        racks = {self.rack_of.get(broker) for broker in brokers}
        named = frozenset(rack for rack in racks if rack and rack.isprintable())
        return named if len(named) == len(racks) else None


def evidence_of(observed: Cluster) -> Evidence:
    """Return where the brokers stand that hold replicas of any topic."""
    rack_of = {broker.id: broker.rack for broker in observed.brokers.values()}
    used = {replica for _, partition in observed.partitions() for replica in partition.target_replicas}
    return Evidence(
        rack_of=rack_of,
        brokers_in=Counter(rack for broker, rack in rack_of.items() if rack and broker in used),
        is_racked=len(set(rack_of.values())) > 1,
    )
