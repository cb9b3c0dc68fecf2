"""Each broker's bytes from stage to stage: an old replica's space is free only after its move has ended."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from fractions import Fraction

from reconciler.model.cluster import Broker, Cluster
from reconciler.staging.step import Step

WHOLE = Fraction(1)


def capacity(broker: Broker) -> int | None:
    """Return the bytes of all the broker's log dirs, None unless each is known."""
    sizes = [log_dir.total_bytes for log_dir in broker.log_dirs]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


class DiskUse:
    """The bytes that each broker holds while steps are placed, and the most it ever held.

    A broker is watched where its capacity is known and its copies could fill it beyond the share allowed. One that
    ends above that share anyway is watched against what it ends with: then the excess is the least there can be.
    """

    def __init__(self, observed: Cluster, steps: Sequence[Step], share: Fraction | None) -> None:
        """Take the state before the first stage; no share means that only a full disk is too much."""
        self._observed = observed
        arriving = _sum_of_arrivals(steps)
        self.held = _bytes_held(observed)
        self.allowed = {
            broker_id: int(total * (share or WHOLE))
            for broker_id, total in ((id_, capacity(broker)) for id_, broker in observed.brokers.items())
            if total is not None and broker_id in self.held
        }
        self.peak = dict(self.held)
        self._ceiling = self._ceilings(steps, arriving)

    def copy(self) -> "DiskUse":
        """Return the same state, to be changed apart."""
        other = copy(self)
        other.held, other.peak = dict(self.held), dict(self.peak)
        other._ceiling = dict(self._ceiling)  # noqa: SLF001 - its own class
        return other

    @property
    def excess(self) -> int:
        """The bytes by which brokers were, at their worst moment, above what is allowed."""
        return sum(max(0, self.peak[broker_id] - allowed) for broker_id, allowed in self.allowed.items())

    def shortfall(self, step: Step) -> int:
        """Return by how many bytes the step, begun now, would overfill the fullest of its destinations; 0: it fits."""
        ceiling = self._ceiling
        if not ceiling:
            return 0
        return max((self._excess(broker_id, step.load) for broker_id in step.added if broker_id in ceiling), default=0)

    def begin(self, step: Step) -> None:
        """Take the step's copies in."""
        for broker_id in step.added:
            if broker_id in self.held:
                self.held[broker_id] += step.load
                self.peak[broker_id] = max(self.peak[broker_id], self.held[broker_id])

    def end(self, steps: Iterable[Step]) -> None:
        """Free what the steps of an ended stage removed."""
        for step in steps:
            for broker_id in step.removed:
                if broker_id in self.held:
                    self.held[broker_id] -= self._freed(step, broker_id)

    def yield_to(self, step: Step) -> None:
        """Let a step pass that nothing can make fit: its destinations may hold that much from now on."""
        for broker_id in step.added:
            if broker_id in self._ceiling:
                needed = self.held[broker_id] + step.load
                self._ceiling[broker_id] = max(self._ceiling[broker_id], needed)

    def _excess(self, broker_id: int, load: int) -> int:
        return max(0, self.held[broker_id] + load - self._ceiling[broker_id])

    def _freed(self, step: Step, broker_id: int) -> int:
        partition = self._observed.partition(step.move.topic_partition)
        if partition is None:
            return 0
        size = partition.size_on(broker_id)
        return size if size is not None else partition.bytes_to_copy or 0

    def _ceilings(self, steps: Sequence[Step], arriving: Mapping[int, int]) -> dict[int, int]:
        tight = {
            broker_id: allowed
            for broker_id, allowed in self.allowed.items()
            if arriving.get(broker_id) and self.held[broker_id] + arriving[broker_id] > allowed
        }
        if not tight:
            return tight
        leaving: Counter[int] = Counter()
        for step in steps:
            for broker_id in step.removed:
                if broker_id in tight:
                    leaving[broker_id] += self._freed(step, broker_id)
        return {
            broker_id: max(allowed, self.held[broker_id] + arriving[broker_id] - leaving[broker_id])
            for broker_id, allowed in tight.items()
        }


def _sum_of_arrivals(steps: Iterable[Step]) -> Counter[int]:
    arriving: Counter[int] = Counter()
    for step in steps:
        for broker_id in step.added:
            arriving[broker_id] += step.load
    return arriving


def _bytes_held(observed: Cluster) -> dict[int, int]:
    """Return the bytes on each broker: what its log dirs say is used, else its replicas' sum, where all are known."""
    held: dict[int, int] = {}
    silent: set[int] = set()
    for broker_id, broker in observed.brokers.items():
        used = _used(broker)
        if used is None:
            silent.add(broker_id)
        else:
            held[broker_id] = used
    if silent:
        held |= _replica_bytes(observed, silent)
    return {broker_id: held[broker_id] for broker_id in sorted(held)}


def _used(broker: Broker) -> int | None:
    if not broker.log_dirs:
        return None
    used = 0
    for log_dir in broker.log_dirs:
        if log_dir.total_bytes is None or log_dir.usable_bytes is None:
            return None
        used += log_dir.total_bytes - log_dir.usable_bytes
    return used


def _replica_bytes(observed: Cluster, brokers: Iterable[int]) -> dict[int, int]:
    held = dict.fromkeys(brokers, 0)
    unknown: set[int] = set()
    for topic in observed.topics.values():
        for partition in topic.partitions:
            sizes = partition.sizes or (None,) * len(partition.replicas)
            for broker_id, size in zip(partition.replicas, sizes, strict=True):
                if size is None:
                    unknown.add(broker_id)
                elif broker_id in held:
                    held[broker_id] += size
    return {broker_id: size for broker_id, size in held.items() if broker_id not in unknown}
