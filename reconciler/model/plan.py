"""Defines the plan: what will be done, in order, and everything needed to check, explain and undo it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, cast

from reconciler.model.budget import Budget, Budgeted
from reconciler.model.change import TopicChange, destruction
from reconciler.model.codec import (
    ALWAYS,
    FILLED,
    HIDDEN,
    INLINE,
    OBJECT,
    REQUIRED,
    AtLeast,
    Check,
    Ids,
    Integer,
    Key,
    Malformed,
    Pattern,
    Value,
    When,
)
from reconciler.model.effect import Destruction
from reconciler.model.grounds import Grounds
from reconciler.model.problem import DRIFT, Problem, Remedy, ReportedProblem
from reconciler.model.several import Outcomes
from reconciler.model.stage import CopyingStage, LogDirsStage, Stage, elections_of, moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import WhatIf

if TYPE_CHECKING:
    from reconciler.model.move_table import Moves

Prices = Mapping[int, Integer]
"""Broker to a dual price: a charge for each replica there. The joint prices of a proof may be larger than 64 bits."""


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """A cluster that mirrors copy from, as it was when the plan was made."""

    cluster: Annotated[str, "Its name in the desired state."]
    cluster_id: Annotated[str, "Its id."]
    digest: Annotated[
        str,
        Pattern("^sha256:[0-9a-f]{64}$"),
        "The SHA-256 over what the plan takes from it: each copy with its topic, partitions and configs that follow.",
    ]
    observed_at: Annotated[str | None, "When it was observed, ISO 8601 in UTC."] = None


OF_RECORD = "record"
"""In place of the desired state's digest: this is no plan, but what a run's record in the cluster says."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a plan was made from."""

    desired_digest: Annotated[str, "Over all files of the desired state."]
    observed_at: Annotated[str | None, REQUIRED, "When the cluster was observed, ISO 8601 in UTC."] = None
    commit: Annotated[str | None, REQUIRED, "The commit of the desired state, where there is one."] = None
    only: Annotated[
        tuple[str, ...], "Shell patterns of topic names: the plan was confined to these topics. Not there: all topics."
    ] = ()
    rolls_back: Annotated[
        str | None,
        Pattern("^[0-9a-f]{8}$"),
        "The id of the plan that this one undoes. Not there: it reaches a desired state.",
    ] = None
    budget: Annotated[Budget | None, "What the plan may copy. Not there: as much as the balance takes."] = None
    mirrors: Annotated[
        tuple[MirrorSource, ...], "The clusters that mirrors copy from, as they were. Not there: there are no mirrors."
    ] = ()


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """One objective with the prices that prove it; decision 0007 says how the bound follows from them."""

    objective: Annotated[
        str,
        "What is least: racks spread, replicas balance, topics balance, bytes, replicas, evenness, leaders balance, "
        "topic leaders balance, leaders changed.",
    ]
    value: Annotated[Integer, "What this plan reaches."]
    lower_bound: Annotated[Integer, "What the prices prove: no plan that is best in those before it goes below."]
    prices: Annotated[
        Prices, REQUIRED, "Broker to what one more replica there costs, in this objective's unit and for it alone."
    ] = field(default_factory=dict)
    topic_prices: Annotated[
        Mapping[str, Annotated[Prices, "Broker to price."]],
        "Topic to broker to what one more replica of that topic there costs.",
    ] = field(default_factory=dict)
    load_prices: Annotated[
        Mapping[str, Annotated[Prices, "Broker to price."]],
        "Load (disk, networkIn, networkOut) to broker to what one more unit of that load there costs. With these the "
        "bound may be below the value.",
    ] = field(default_factory=dict)
    shift: Annotated[
        int, AtLeast(1), "With loadPrices: all prices of this level are in 2^-shift of the objective's unit."
    ] = 0
    weight: Annotated[
        int,
        AtLeast(1),
        "In a plan within a budget: the prices are those of weight x this balance + byteWeight x bytes. They bound the "
        "balance of all plans within the budget, and the bound may be below the value.",
    ] = 0
    byte_weight: Annotated[int, AtLeast(1), "See weight."] = 0


class TieredBytes(StrEnum):
    """Which bytes of tiered topics count as copied: all on the leader's disk, or what is not tiered yet (KIP-1023)."""

    LOCAL = "local"
    UNTIERED = "untiered"


_GAP_PARTS = 10_000
"""A gap is told in such parts of a percent: of 1 TB, in 1 MB."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Why no plan that is as even copies less."""

    objective: Annotated[str, REQUIRED, "What is least."] = "bytes"
    value: Annotated[int, REQUIRED, "What this plan copies."] = 0
    lower_bound: Annotated[int, REQUIRED, "What any plan must copy."] = 0
    joint_prices: Annotated[
        Prices,
        REQUIRED,
        Key("prices"),
        "Broker to the dual price of one replica there, for the balance of replicas and the copies together.",
    ] = field(default_factory=dict)
    levels: Annotated[
        tuple[PriceLevel, ...],
        "The objectives one by one, the most important first: each is least among the optima of those before it, those "
        "of leaders among the plans with this plan's replicas.",
    ] = ()
    tiered: Annotated[
        TieredBytes | None,
        Key("tieredBytes"),
        "Which bytes of tiered topics count: local, all on the leader's disk; untiered, what is not in the remote tier "
        "yet (KIP-1023). Left out: none of them is copied.",
    ] = None

    @property
    def gap_percent(self) -> Annotated[float, "How much of the value is above the bound; 0 is proven least."]:
        """How much of the value is above the bound; 0.0 is proven least."""
        return gap_percent(self.value, self.lower_bound)


def gap_percent(value: int, lower_bound: int) -> float:
    """Return how much of a value is above its bound, rounded up: 0.0 for no gap at all, never for a small one."""
    return -(-100 * _GAP_PARTS * (value - lower_bound) // value) / _GAP_PARTS if value else 0.0


def _refuse_impossible_bound(proof: Proof) -> None:
    if proof.lower_bound > proof.value:
        message = f"must not be above the value, {proof.value}: no plan beats its bound"
        raise Malformed("/lowerBound", message)


@dataclass(frozen=True, slots=True)
class BrokerShare:
    """What one broker holds."""

    replicas: Annotated[int, "Replicas."]
    leaders: Annotated[int, "Preferred leaders."]
    bytes: Annotated[int | None, REQUIRED, "Bytes; null where a size is not known."] = None
    bytes_in_per_second: Annotated[
        int | None, "Bytes a second that it takes in, followers' included; only with measured loads."
    ] = None
    bytes_out_per_second: Annotated[
        int | None, "Bytes a second that it sends to consumers and followers; only with measured loads."
    ] = None
    leader_bytes_in_per_second: Annotated[
        int | None, "Bytes a second that producers send to it; only where leaderIn is balanced or limited."
    ] = None


@dataclass(frozen=True, slots=True)
class LogDirUse:
    """One log dir of a broker that has several."""

    path: Annotated[str, "The log dir."]
    peak_bytes: Annotated[int, "The bytes in it at the worst moment of the run."]
    total_bytes: Annotated[int, "The bytes that it has room for in all."]


class Restore(NamedTuple):
    """A partition as it was."""

    topic_partition: Annotated[TopicPartition, INLINE]
    replicas: Annotated[Ids, FILLED, "Its ordered replicas."]
    leader: Annotated[int | None, "Its leader; null: none."]


@dataclass(frozen=True, slots=True)
class Rollback:
    """Everything needed to restore what was there before."""

    assignments: Annotated[Sequence[Annotated[Restore, OBJECT]], REQUIRED, "Each touched partition as it was."] = ()
    topic_throttles: Annotated[
        Mapping[str, Mapping[str, str]],
        Key("throttles/topics", "The throttle keys that were set when the cluster was observed."),
        REQUIRED,
        "Topic to its keys.",
    ] = field(default_factory=dict)
    broker_throttles: Annotated[
        Mapping[int, Mapping[str, str]], Key("throttles/brokers"), REQUIRED, "Broker to its keys."
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in numbers."""

    replica_moves: Annotated[int, "Replicas copied."]
    bytes: Annotated[int, "Bytes copied between brokers."]
    leader_changes: Annotated[int, "Preferred leaders that differ at the end."]
    elections: Annotated[int, "Elections."]
    topic_changes: Annotated[int, "Changes of topics."]
    partitions: Annotated[int, "Partitions that are moved."]
    stages: Annotated[int, "Stages."]
    estimated_seconds: Annotated[int, "How long all stages will take at the throttle."]
    least_seconds: Annotated[int | None, HIDDEN] = None
    """The plan's own."""
    destroys: Annotated[
        Destruction | None,
        When(lambda summary: summary.has_effects and summary.destroys is not None),
        "What is destroyed in all; not there: no records are.",
    ] = None
    drift: Annotated[
        int,
        AtLeast(1),
        "Differences that stay whatever the plan does, among the warnings and violations; not there: none.",
    ] = 0
    dir_moves: Annotated[
        int, Key("logDirMoves"), AtLeast(1), "Replicas moved between log dirs of their brokers; not there: none."
    ] = 0
    dir_bytes: Annotated[
        int, Key("logDirBytes"), AtLeast(1), "Bytes copied between log dirs of one broker; not there: none."
    ] = 0
    is_size_known: Annotated[bool, HIDDEN] = True
    """Whether the size of everything that is copied between brokers is known."""
    has_effects: Annotated[bool, HIDDEN] = True
    """Whether the plan says what its changes destroy: plan files of the first versions do not."""


def _refuse_no_folder(name: str) -> None:
    """Refuse a name that is not one folder: the files of a run lie under it, and it must lead nowhere else."""
    if name in {"", ".", ".."} or not name.isprintable() or any(each in name for each in "/\\:"):
        raise Malformed("", "must be the name of a cluster, which is that of one folder")


def _refuse_disorder(stages: tuple[Stage, ...]) -> None:
    for index, stage in enumerate(stages):
        if stage.number != index + 1:
            raise Malformed(f"/{index}/number", f"must be {index + 1}: stages are numbered in order")


_HexId = Annotated[str, Pattern("^[0-9a-f]{8}$")]
_Problems = tuple[Problem, ...]
_Shares = Mapping[int, BrokerShare]
_Bytes = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: what was reviewed, and exactly what runs."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1(\.[0-9]+)?$"), "The version of this format; a reader of 1.0 reads every 1.x."]
    ] = "1.0"
    cluster_name: Annotated[
        str,
        Key("cluster/name", "The cluster that it is for."),
        Check(_refuse_no_folder),
        "Its name in the desired state.",
    ]
    cluster_id: Annotated[str, Key("cluster/clusterId"), "Its id; on any other cluster the plan is refused."]
    source: Annotated[Source, "What it was made from."]
    id: Annotated[_HexId, REQUIRED, "The start of the digest."] = ""
    digest: Annotated[
        str,
        ALWAYS,
        Pattern("^sha256:[0-9a-f]{64}$"),
        "The SHA-256 over everything but id and digest, as UTF-8 JSON with sorted keys, no spaces, and no escapes that "
        "JSON does not need; a file that was changed does not match it. Files of earlier versions have none.",
    ] = ""
    brokers_alive: Annotated[
        Ids, Key("requires/brokersAlive", "What must hold before it starts."), REQUIRED, "Brokers that must be alive."
    ] = ()
    topic_changes: Annotated[
        tuple[TopicChange, ...], REQUIRED, "What topics need; stages name these by their position."
    ] = ()
    stages: Annotated[
        tuple[Stage, ...], REQUIRED, Check(_refuse_disorder), "The steps in order, each safe to stop after."
    ] = ()
    rollback: Annotated[Rollback, REQUIRED, "Everything needed to restore what was there before."] = Rollback()
    proof: Annotated[Proof, REQUIRED, Check(_refuse_impossible_bound), "Why no plan copies less."] = Proof()
    balance_before: Annotated[_Shares, Key("balance/before", "What each broker holds."), REQUIRED, "As observed."] = (
        field(default_factory=dict)
    )
    balance_after: Annotated[_Shares, Key("balance/after"), REQUIRED, "When the plan has run."] = field(
        default_factory=dict
    )
    warnings: Annotated[_Problems, REQUIRED, "What to know before it runs."] = ()
    violations: Annotated[_Problems, REQUIRED, "Limits that it breaks; apply refuses while there are any."] = ()
    disk_peak: Annotated[
        _Bytes, REQUIRED, "Broker to the bytes on its disks at the worst moment of the run, where they are known."
    ] = field(default_factory=dict)
    disk_capacity: Annotated[
        _Bytes, REQUIRED, "Broker to the bytes that its disks hold in all, where they are known."
    ] = field(default_factory=dict)
    election_batch: Annotated[
        int, Key("run/electionBatch", "How it runs."), AtLeast(1), REQUIRED, "Partitions in one election request."
    ] = 100
    per_broker: Annotated[
        int | None,
        Key("run/perBroker"),
        AtLeast(1),
        "Copies in flight at one broker at most: those that it receives and, counted apart, those that it serves. Not "
        "there, as in files of earlier versions: all moves of a stage at once.",
    ] = None
    timeout_seconds: Annotated[
        int, Key("run/timeoutSeconds"), AtLeast(1), REQUIRED, "A stage without progress for so long stops the run."
    ] = 7200
    least_seconds: Annotated[
        int | None,
        Key("summary/leastSeconds"),
        "How long the busiest broker's bytes, in or out, take at the throttle, however stages are packed.",
    ] = None
    least_dir_bytes: Annotated[
        int | None,
        Key("summary/logDirBytesLowerBound"),
        "What moves between log dirs copy at least in any plan that comes as near to limits and balance; not there: "
        "nothing moves between them.",
    ] = None
    log_dirs: Annotated[
        Mapping[int, tuple[LogDirUse, ...]], "Broker to its log dirs, where it has several and tells what lies in each."
    ] = field(default_factory=dict)
    predicted_log_dirs: Annotated[
        Mapping[TopicPartition, Mapping[int, str]],
        Key("foretoldLogDirs"),
        Value("logDirs", "Broker to the log dir."),
        "Where new replicas are taken to go on brokers with several log dirs; Kafka decides, and nothing is asked of "
        "it.",
    ] = field(default_factory=dict)
    remedies: Annotated[tuple[Remedy, ...], "What would make a plan with violations fit; each remedy alone does."] = ()
    what_if: Annotated[WhatIf | None, "What the plan supposes. A plan with this member is never applied."] = None
    grounds: Annotated[Grounds, "What explains the moves, each thing once: `show --explain` reads nothing else."] = (
        field(default_factory=Grounds)
    )
    topic_ids: Annotated[
        Mapping[str, str],
        Key("requires/topicIds"),
        "Kafka's ids of the topics that it changes, where they are known: another topic under the same name is not "
        "touched.",
    ] = field(default_factory=dict)
    cordoned: Annotated[
        Ids,
        Key("run/cordon"),
        "The brokers that it empties, whose log dirs are cordoned as long (KIP-1066); not there: none.",
    ] = ()
    budgeted: Annotated[
        Budgeted | None, Key("budget"), "What the budget comes to, beside the whole plan; not there: no budget."
    ] = None
    made_text: Annotated[str | None, HIDDEN, "Its file, once it was made."] = field(
        default=None, init=False, compare=False, repr=False
    )
    made_summary: Annotated[Summary | None, HIDDEN, "Its summary, once it was asked for."] = field(
        default=None, init=False, compare=False, repr=False
    )
    made_moves: Annotated[Any, HIDDEN, "Its moves as columns, once they were asked for."] = field(
        default=None, init=False, compare=False, repr=False
    )

    def every_move(self) -> "Moves":
        """Return the moves between brokers of all stages, in order, as columns."""
        if self.made_moves is None:
            from reconciler.model.move_table import table_of_moves  # loads numpy

            # What follows from a frozen value may be kept in it.
            object.__setattr__(self, "made_moves", table_of_moves(self.stages))
        return cast("Moves", self.made_moves)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.stages

    @property
    def new_log_dirs(self) -> Mapping[TopicPartition, Mapping[int, str]]:
        """The log dir of each new replica on brokers with several, as asked for or as Kafka is taken to choose."""
        found = {key: dict(dirs) for key, dirs in self.predicted_log_dirs.items()}
        for move in moves_of(self.stages):
            if move.log_dirs:
                found.setdefault(move.topic_partition, {}).update(move.log_dirs)
        return found

    @property
    def drift(self) -> tuple[Problem, ...]:
        """The differences that stay whatever the plan does."""
        return tuple(problem for problem in (*self.violations, *self.warnings) if problem.code in DRIFT)

    @property
    def summary(self) -> Annotated[Summary, Key("summary/", "The plan in numbers.")]:
        """The plan in numbers."""
        if self.made_summary is None:
            # What follows from a frozen value may be kept in it.
            object.__setattr__(self, "made_summary", self._summed())
        return self.made_summary  # type: ignore[return-value] # just made

    def _summed(self) -> Summary:
        moves = self.every_move()
        first, last = moves.ends
        inside = [move for stage in self.stages if isinstance(stage, LogDirsStage) for move in stage.moves]
        return Summary(
            is_size_known=bool(moves.is_size_known.all()),
            replica_moves=int(moves.copies.sum()),
            bytes=sum(moves.bytes.tolist()),
            leader_changes=int((moves.before[first, 0] != moves.after[last, 0]).sum()),
            elections=sum(len(elections_of(stage)) for stage in self.stages),
            topic_changes=len(self.topic_changes),
            partitions=len(first),
            stages=len(self.stages),
            estimated_seconds=sum(s.estimated_seconds for s in self.stages if isinstance(s, CopyingStage)),
            least_seconds=self.least_seconds,
            destroys=destruction(self.topic_changes),
            drift=len(self.drift),
            dir_moves=len(inside),
            dir_bytes=sum(move.bytes for move in inside),
            has_effects=any(change.effects for change in self.topic_changes),
        )


@dataclass(frozen=True, slots=True)
class PlansReport:
    """The plans of several clusters, as `plan --cluster A,B -o json` prints them."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "1.0"
    order: Annotated[tuple[str, ...], REQUIRED, "The clusters in an order in which their plans are safe to apply."]
    reasons: Annotated[
        tuple[str, ...], REQUIRED, "Which copy grows before its topic, one a text; none: any order will do."
    ]
    plans: Annotated[tuple[Plan, ...], REQUIRED, "The plans, in that order."]
    failed: Annotated[
        Mapping[str, Annotated[str, "What, where and what next, in words."]],
        REQUIRED,
        "The clusters that no plan could be made for, and why.",
    ]
    warnings: Annotated[tuple[ReportedProblem, ...], REQUIRED, "What no order can keep."] = ()
    summary: Annotated[Outcomes, REQUIRED] = ()


BYTES = "bytes"
"""The objective of a plan that knows every size."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One objective, computed anew with the plan's prices."""

    objective: Annotated[str, "What is least: see the levels of the plan's proof."]
    value: Annotated[Integer, "The plan's value."]
    lower_bound: Annotated[Integer, "No plan that is best in the objectives before it has less."]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan's proof holds; what is not known where it does not is None, which is null in JSON."""

    wrong: Annotated[str | None, "One sentence about the first thing that is wrong; null: nothing is."]
    levels: Annotated[tuple[Bound, ...], REQUIRED, "Each objective, the first the most important."] = ()
    objective: Annotated[str, REQUIRED, "Which of them says what is copied: bytes, or replicas."] = BYTES
    copied_partitions: Annotated[int | None, REQUIRED, "Partitions with a replica to copy."] = None
    is_within_bands: Annotated[
        bool, REQUIRED, "Measured loads are balanced: the bound holds for the plans that keep each load in its band."
    ] = False
    notes: Annotated[
        tuple[str, ...],
        REQUIRED,
        "What narrows the other plans; and where what was checked is not quite what the plan was made from.",
    ] = ()
    budget_bytes: Annotated[
        int | None,
        "The bytes that every plan in question copies at the most: the levels of a balance hold among these plans, "
        "what is copied among those with the same counts. Not there: no budget binds.",
    ] = None
    is_limit_broken: Annotated[
        bool, "What is wrong is that a state of a stage breaks one of `limits`: such a plan is made, with a violation."
    ] = False
    unproved: Annotated[
        tuple[str, ...],
        "Objectives that the plan may be worse in than others: a budget, disks, bands or racks that are to lead allow "
        "that it has no prices for them. Not there: none.",
    ] = ()

    @property
    def is_proved(
        self,
    ) -> Annotated[bool, "The levels hold and are all there are; without a gap, no plan is better in them, in order."]:
        """Whether what is in `levels` holds, and nothing else was asked for."""
        return self.wrong is None and not self.unproved

    @property
    def value(self) -> Annotated[int | None, "What the plan copies: bytes, or replicas where a size is unknown."]:
        """The bytes that the plan copies, or the replicas where a size is unknown; None if the plan is wrong."""
        return None if self.wrong is not None else self._of_objective().value

    @property
    def gap_percent(
        self,
    ) -> Annotated[
        float | None, "How much of that is above what the prices prove; 0 but for plans that balance measured loads."
    ]:
        """How much of what is copied is above what the prices prove."""
        if self.wrong is not None:
            return None
        copied = self._of_objective()
        return gap_percent(copied.value, copied.lower_bound)

    def _of_objective(self) -> Bound:
        none = Bound(self.objective, 0, 0)
        return next((level for level in self.levels if level.objective == self.objective), none)
