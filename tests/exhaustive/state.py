"""Holds one state of the model: the cluster, what others did to it, the process that runs the plan.

In its canonical form times are ages, which end at the thresholds that the executor looks at, and numbers that only grow
end at its limits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from helpers.plans.end_state import throttles

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in each state: what happened before is so much older."""
TICK = timedelta(seconds=60)
"""What passes when the executor waits: longer than it takes others' doings for unclear (5 s), and than it waits for a
dead broker (30 s). A wait without any time is in the model too: whatever happens before a look may happen at once."""


@dataclass(frozen=True, slots=True)
class World:
    """All but the process: the cluster, and what the checker must remember to judge."""

    cluster: Cluster
    kept: str = ""
    """The record of the run, in the cluster."""
    shown: Cluster | None = None
    """What brokers show of it, where their metadata is old."""
    shown_for: int = 0
    """For how many ticks it has been old."""
    late: tuple[object, ...] = ()
    """A request whose sender gave it up, and which has not had its effect yet."""
    touched: frozenset[TopicPartition] = frozenset()
    """The partitions that somebody else reassigned, or whose move somebody else cancelled."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """The throttles as they would be without us, by where they are set."""
    changed: frozenset[str] = frozenset()
    """The throttles that somebody else has changed."""
    contested: frozenset[str] = frozenset()
    """The throttles that somebody else set between a look of ours and our change: who can tell what they should be?"""
    answered: frozenset[tuple[str, tuple[int, ...]]] = frozenset()
    """The targets that the controller has taken from the process that is on."""
    excused: frozenset[str] = frozenset()
    """What may be copied without a throttle until a run has seen it: partitions that one has left so, and told of, and
    brokers that have come back."""
    spent: tuple[str, ...] = ()
    """What happened that is bounded, by kind, sorted."""


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """A process between two turns: what it knows, as the adapter takes it up again; `key` is its canonical form."""

    index: int
    """Of its stage."""
    session: tuple[object, ...]
    run: tuple[object, ...]
    key: tuple[object, ...]
    told: tuple[tuple[str, object], ...]
    """What a person is shown of it: the turns' memory."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One state: no process, one between two turns, or one that has `ended`, with that code."""

    world: World
    process: Process | None = None
    ended: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the plan was run to its end."""
        return self.ended == "done"

    @property
    def key(self) -> tuple[object, ...]:
        """The canonical form, but for what is behind it: equal for states from which the same can happen."""
        world = self.world
        return (
            cluster_key(world.cluster),
            world.kept,
            world.shown and cluster_key(world.shown),
            world.shown_for,
            world.late,
            tuple(sorted(world.touched)),
            tuple(sorted(world.theirs.items())),
            tuple(sorted(world.changed)),
            tuple(sorted(world.contested)),
            tuple(sorted(world.answered)),
            tuple(sorted(world.excused)),
            self.process and self.process.key,
            self.is_over,
        )

    @property
    def fingerprint(self) -> bytes:
        """The canonical form, in few bytes."""
        return blake2b(repr(self.key).encode(), digest_size=16).digest()


def cluster_key(cluster: Cluster) -> tuple[object, ...]:
    """Return all of a cluster that can change."""
    partitions = tuple(
        (
            one.leader,
            one.replicas,
            tuple(sorted(one.isr)),
            one.adding_replicas,
            one.removing_replicas,
            one.elr or (),
            one.last_known_elr or (),
        )
        for topic in cluster.topics.values()
        for one in topic.partitions
    )
    brokers = tuple((one.is_fenced, tuple(sorted(one.configs.items()))) for one in cluster.brokers.values())
    configs = tuple(tuple(sorted(topic.configs.items())) for topic in cluster.topics.values())
    return partitions, brokers, configs


def described(state: State) -> dict[str, str]:
    """Return a state in words, a line for each thing that can change."""
    world = state.world
    told = {str(key): _partition(one) for key, one in world.cluster.partitions()}
    if world.shown is not None:
        told |= {f"{key}, as brokers show it": _partition(one) for key, one in world.shown.partitions()}
    told["dead"] = ", ".join(str(b.id) for b in world.cluster.brokers.values() if b.is_fenced)
    told |= throttles(world.cluster)
    told["record"] = "kept" if world.kept else ""
    told["late request"] = str(world.late or "")
    told |= dict(_process(state))
    return told


def _partition(one: Partition) -> str:
    words = [f"{list(one.replicas)} isr {sorted(one.isr)} leader {one.leader}"]
    if one.is_reassigning:
        words.append(f"adding {list(one.adding_replicas)} removing {list(one.removing_replicas)}")
    return " ".join([*words, *([f"elr {list(one.elr)}"] if one.elr else [])])


def _process(state: State) -> Iterator[tuple[str, str]]:
    process = state.process
    yield "process", f"in stage {process.index + 1}" if process else f"ended: {state.ended}" if state.ended else "none"
    if process is not None:
        yield from ((f"it knows {name}", str(value)) for name, value in process.told if value)
