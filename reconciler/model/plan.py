"""The reviewed thing: what will be done, in order, and everything needed to check, explain and undo it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.change import TopicChange, destruction
from reconciler.model.effect import Destruction
from reconciler.model.grounds import Grounds
from reconciler.model.problem import DRIFT, Problem, Remedy
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import WhatIf


@dataclass(frozen=True, slots=True)
class Source:
    """What a plan was made from; `only`: the shell patterns of the topics that it was confined to, none for all.

    `rolls_back`: the id of the plan that it undoes, None for a plan that reaches a desired state.
    """

    desired_digest: str
    observed_at: str | None = None
    commit: str | None = None
    only: tuple[str, ...] = ()
    rolls_back: str | None = None


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """One objective among those that earlier ones leave open: the plan's value, and the prices that prove it least.

    `prices` maps a broker to what one more replica there costs, `topic_prices` the same for one topic's replicas, both
    in the objective's unit and for this objective alone: decision 0007 says how a lower bound follows from them.
    `load_prices` maps a measured load (`disk`, `networkIn`, `networkOut`) and a broker to the same for one unit of that
    load. Where there are any, all prices are in 2^-`shift` of the unit, and the bound may be below the value.
    """

    objective: str
    value: int
    lower_bound: int
    prices: Mapping[int, int] = field(default_factory=dict)
    topic_prices: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    load_prices: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    shift: int = 0


class TieredBytes(StrEnum):
    """Which bytes of tiered topics count as copied: all on the leader's disk, or what is not tiered yet (KIP-1023)."""

    LOCAL = "local"
    UNTIERED = "untiered"


@dataclass(frozen=True, slots=True)
class Proof:
    """Why no plan copies less. `prices`: broker id -> dual price, in the objective's unit, of one replica there.

    `levels` are the objectives one by one, the most important first; each holds among the optima of those before it.
    `tiered`: which bytes of tiered topics it counts, None where none of them is copied.
    """

    objective: str = "bytes"
    value: int = 0
    lower_bound: int = 0
    prices: Mapping[int, int] = field(default_factory=dict)
    levels: tuple[PriceLevel, ...] = ()
    tiered: TieredBytes | None = None

    @property
    def gap_percent(self) -> float:
        """How far the plan is above the bound; 0.0 is proven least."""
        return 0.0 if self.value == self.lower_bound else round(100 * (self.value - self.lower_bound) / self.value, 4)


@dataclass(frozen=True, slots=True)
class BrokerShare:
    """What one broker holds: replicas, preferred leaders and, where every size is known, bytes.

    With measured loads also the bytes a second that it takes in and sends out, followers' traffic counted.
    """

    replicas: int
    leaders: int
    bytes: int | None = None
    bytes_in_per_second: int | None = None
    bytes_out_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class LogDirUse:
    """One log dir of a broker that has several: the bytes in it at the worst moment of the run, and its size."""

    path: str
    peak_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Restore:
    """The state of one touched partition before the plan."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    leader: int | None


@dataclass(frozen=True, slots=True)
class Rollback:
    """Everything needed to restore what was there before.

    `topic_throttles` and `broker_throttles` hold the throttle keys that were set when the cluster was observed.
    """

    assignments: tuple[Restore, ...] = ()
    topic_throttles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    broker_throttles: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `digest` is the SHA-256 over all the rest, `id` its start; `brokers_alive` must live for it to start.

    `topic_ids`: Kafka's ids of the topics that it changes, as far as they were known: one that was deleted and made
    again under the same name is another topic, and never touched.

    `disk_peak` maps a broker to the bytes on its disks at the worst moment of the run, `disk_capacity` to the bytes
    that they hold in all; where these are known. `least_seconds`: what its busiest broker's bytes, in or out, take at
    the rate that the estimates assume, however the stages are packed. `log_dirs`: how full each log dir becomes, on
    brokers that have several and tell what lies in them; `predicted_log_dirs`: where each new replica on them is taken
    to go, by partition and broker: Kafka's own rule, of which nothing is asked. `remedies`: what would make a plan with
    violations fit. `what_if`: what it supposes; such a plan is never applied. `grounds`: what explains its moves.
    `cordoned`: the brokers that it empties, and whose log dirs its run cordons as long (KIP-1066).
    """

    cluster_name: str
    cluster_id: str
    source: Source
    id: str = ""
    digest: str = ""
    brokers_alive: tuple[int, ...] = ()
    topic_changes: tuple[TopicChange, ...] = ()
    stages: tuple[Stage, ...] = ()
    rollback: Rollback = Rollback()
    proof: Proof = Proof()
    balance_before: Mapping[int, BrokerShare] = field(default_factory=dict)
    balance_after: Mapping[int, BrokerShare] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    violations: tuple[Problem, ...] = ()
    disk_peak: Mapping[int, int] = field(default_factory=dict)
    disk_capacity: Mapping[int, int] = field(default_factory=dict)
    election_batch: int = 100
    timeout_seconds: int = 7200
    least_seconds: int | None = None
    log_dirs: Mapping[int, tuple[LogDirUse, ...]] = field(default_factory=dict)
    predicted_log_dirs: Mapping[TopicPartition, Mapping[int, str]] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    what_if: WhatIf | None = None
    grounds: Grounds = field(default_factory=Grounds)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    cordoned: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.stages

    @property
    def drift(self) -> tuple[Problem, ...]:
        """The differences that stay whatever the plan does."""
        return tuple(problem for problem in (*self.violations, *self.warnings) if problem.code in DRIFT)

    @property
    def summary(self) -> "Summary":
        """The plan in numbers."""
        moves = [move for stage in self.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        first: dict[TopicPartition, tuple[int, ...]] = {}
        last: dict[TopicPartition, tuple[int, ...]] = {}
        for move in moves:
            first.setdefault(move.topic_partition, move.from_replicas)
            last[move.topic_partition] = move.to_replicas
        return Summary(
            replica_moves=sum(len(move.added) for move in moves),
            bytes=sum(move.bytes for move in moves),
            leader_changes=sum(first[key][:1] != last[key][:1] for key in first),
            elections=sum(len(stage.elections) for stage in self.stages if isinstance(stage, ElectStage)),
            topic_changes=len(self.topic_changes),
            partitions=len(first),
            stages=len(self.stages),
            estimated_seconds=sum(s.estimated_seconds for s in self.stages if isinstance(s, ReassignStage)),
            least_seconds=self.least_seconds,
            destroys=destruction(self.topic_changes),
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in numbers; `replica_moves` counts copies, `leader_changes` preferred leaders that differ at the end.

    `destroys`: None where no records are destroyed.
    """

    replica_moves: int
    bytes: int
    leader_changes: int
    elections: int
    topic_changes: int
    partitions: int
    stages: int
    estimated_seconds: int
    least_seconds: int | None = None
    destroys: Destruction | None = None
