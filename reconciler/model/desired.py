"""Describes what the YAML files ask for, with the place each field was written at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from fractions import Fraction

from reconciler.model.problem import Location

CLUSTER_FILE = "cluster.yaml"
"""The file that makes a folder of the root a cluster: it holds the Cluster document, and may hold others."""
POLICIES_FOLDER = "policies"
"""In the root it is never a cluster, however its letters are written: some file systems do not tell them apart."""

SOURCE, TOPIC = "{source}", "{topic}"
"""What stands in a mirror's `rename` for the cluster that is copied from, and for the topic's name there."""
MIRROR_MAKERS_RENAME = f"{SOURCE}.{TOPIC}"
"""The names that MirrorMaker 2 gives by default."""


class BrokerState(StrEnum):
    """What a broker may hold: contract, section 2."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    MAINTENANCE = "maintenance"
    DRAINING = "draining"
    ABSENT = "absent"


class LogDirState(StrEnum):
    """What a log dir may hold: everything, only what it has, or nothing in the end."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"


class Spread(StrEnum):
    """How replicas spread over racks: a rule, a wish that yields, or nothing."""

    STRICT = "strict"
    PREFER = "prefer"
    IGNORE = "ignore"


class Protection(StrEnum):
    """What a plan may never do to a topic."""

    DELETE = "delete"
    GROW = "grow"
    MOVE = "move"
    SHRINK = "shrink"


CAPACITIES = ("replicas", "leaders", "disk", "network")
"""What a broker's capacity may be written for one by one; `network` is for all rates."""

RATE_OF = {"networkIn": "networkIn", "networkOut": "networkOut", "leaderIn": "networkIn"}
"""The rates that can be limited, each with the rate of a broker that a limit in percent is a share of."""


@dataclass(frozen=True, slots=True)
class DesiredLogDir:
    """A log dir of a broker, by its path there."""

    path: str
    state: LogDirState = LogDirState.ACTIVE
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class DesiredBroker:
    """A broker that differs from active, capacity 1. `capacity` is a weight: its fair share is proportional.

    `has_state`: the state stands in the file. One that is written as active takes replicas even if Kafka cordons it.
    `log_dirs`: those that are written, in the file's order.
    `weights`: the weights that are written for one measure, of CAPACITIES. `rates`: bytes a second that it can take in
    (`networkIn`) and send (`networkOut`), where written.
    """

    id: int
    state: BrokerState = BrokerState.ACTIVE
    capacity: int = 1
    reason: str | None = None
    at: Location | None = None
    has_state: bool = False
    log_dirs: tuple[DesiredLogDir, ...] = ()
    weights: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, int] = field(default_factory=dict)

    def weight(self, measure: str) -> int:
        """Return the weight of its fair share of that measure, one of CAPACITIES."""
        return self.weights.get(measure, self.capacity)

    @property
    def is_disk_weighed(self) -> bool:
        """Whether the file weighs its disks; else their sizes do, where they are known."""
        return "disk" in self.weights or self.capacity != 1

    @property
    def is_active_written(self) -> bool:
        """Whether the file says that it is active."""
        return self.has_state and self.state is BrokerState.ACTIVE


@dataclass(frozen=True, slots=True)
class Off:
    """No balance is asked for."""


@dataclass(frozen=True, slots=True)
class Even:
    """The tightest balance that the rules allow."""


@dataclass(frozen=True, slots=True)
class Within:
    """Each broker within this fraction of its fair share (`10%` is 1/10)."""

    fraction: Fraction


BalanceTarget = Off | Even | Within


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance asked for, one target a measure; `at` maps a measure's name in the file to its place.

    `log_dirs`: how full the log dirs of one broker are, reached inside that broker.
    """

    replicas: BalanceTarget = Off()
    leaders: BalanceTarget = Off()
    topics: BalanceTarget = Off()
    disk: BalanceTarget = Off()
    network_in: BalanceTarget = Off()
    network_out: BalanceTarget = Off()
    log_dirs: BalanceTarget = Off()
    leader_in: BalanceTarget = Off()
    at: Mapping[str, Location] = field(default_factory=dict)

    @property
    def targets(self) -> Mapping[str, BalanceTarget]:
        """What is asked of each measure, by its name in the file."""
        return {
            "replicas": self.replicas,
            "leaders": self.leaders,
            "topics": self.topics,
            "disk": self.disk,
            "networkIn": self.network_in,
            "networkOut": self.network_out,
            "logDirs": self.log_dirs,
            "leaderIn": self.leader_in,
        }


@dataclass(frozen=True, slots=True)
class MovePolicy:
    """How fast and how much at once. `throttle_bytes_per_second`: per broker and direction, None for no throttle.

    `is_draining_cordoned`: while a run empties a broker, the log dirs of that broker are cordoned, where Kafka can.
    """

    throttle_bytes_per_second: int | None = None
    per_broker: int = 10
    per_partition: int = 1
    per_stage: int = 500
    election_batch: int = 100
    timeout_seconds: int = 7200
    is_draining_cordoned: bool = True
    at: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds over which `apply` refuses. `changed_partitions` is a count or, as a Fraction, a share of all.

    `deleted_bytes`: of all replicas, of topics deleted and of configs that destroy records; None for no limit.
    `replicas_per_broker`: a rule of every placement, None for none.
    `rates`: of those in RATE_OF, the most that a broker may carry in the end: bytes a second for each unit of its
    capacity or, as a Fraction, a share of its written rate.
    """

    changed_partitions: int | Fraction | None = None
    moved_bytes: int | None = None
    disk_use: Fraction | None = None
    deleted_topics: int = 1
    deleted_bytes: int | None = None
    rates: Mapping[str, int | Fraction] = field(default_factory=dict)
    replicas_per_broker: int | None = None
    at: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """When `apply` may work. `days` are `mon` … `sun`; a window that ends before it starts ends on the next day."""

    days: tuple[str, ...]
    start: str
    end: str
    timezone: str = "UTC"
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """Which topics are managed; `ignore` holds shell patterns of names; `at` maps a key in the file to its place."""

    is_all_managed: bool = False
    ignore: tuple[str, ...] = ("__*",)
    is_delete_allowed: bool = False
    at: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DesiredCluster:
    """The Cluster document. `client` holds resolved Kafka client properties; `simulation` a file beside it.

    `cluster_id_at`: where `clusterId` stands.
    `is_election_wanted` (`elections: preferred`): who should lead a declared partition, but does not, is elected.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    client: Mapping[str, str] | None = None
    simulation: str | None = None
    brokers: Mapping[int, DesiredBroker] = field(default_factory=dict)
    is_election_wanted: bool = True
    topics: TopicPolicy = TopicPolicy()
    balance: Balance = Balance()
    moves: MovePolicy = MovePolicy()
    limits: Limits = Limits()
    windows: tuple[Window, ...] = ()
    at: Location | None = None
    cluster_id_at: Location | None = None

    def broker(self, broker_id: int) -> DesiredBroker:
        """Return what is written of that broker, or the default: active, capacity 1."""
        return self.brokers.get(broker_id) or DesiredBroker(broker_id)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where replicas may stand. None: not written, so not compared.

    `racks_spread` is PREFER where `racks` is written without `spread`. `racks_replicas` is in its place: how many
    replicas stand in each rack, by name, and none elsewhere. `racks_leader` is preferred. `assignment` is one ordered
    list a partition.
    """

    racks_spread: Spread | None = None
    racks_replicas: tuple[tuple[str, int], ...] | None = None
    racks_only: frozenset[str] | None = None
    racks_leader: frozenset[str] | None = None
    brokers_only: frozenset[int] | None = None
    brokers_except: frozenset[int] = frozenset()
    assignment: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class DesiredTopic:
    """A topic as declared, its class and the patterns that match it already merged in (class < pattern < topic).

    None means not written. A config value of None removes an override. `at` maps the path of a field, as written in
    the file (`replicationFactor`, `config.retention.ms`, `placement.racks.spread`), to its place; the empty path is
    the document itself. `custom_configs`: keys whose names and values files do not judge.
    """

    name: str
    is_absent: bool = False
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str | None] = field(default_factory=dict)
    placement: Placement = Placement()
    protect: frozenset[Protection] = frozenset()
    custom_configs: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    at: Mapping[str, Location] = field(default_factory=dict)

    def where(self, path: str) -> Location | None:
        """Return the place of a field, or of the nearest enclosing one that was written."""
        while path and path not in self.at:
            path = path.rpartition(".")[0]
        return self.at.get(path)


@dataclass(frozen=True, slots=True)
class DesiredMirror:
    """Topics of another cluster of the root that are to exist here too, each as a copy (contract, section 9).

    `topics`: shell patterns of their names there. `rename`: a copy's name, with `{source}` and `{topic}` in it.
    `config`: the configs that follow those of the source. `like`: what its class and labels say of each copy.
    `at` maps the path of a field to its place; `topics.PATTERN` and `config.KEY` are those of the items.
    """

    name: str
    source: str
    topics: tuple[str, ...]
    rename: str = MIRROR_MAKERS_RENAME
    config: tuple[str, ...] = ()
    like: DesiredTopic = DesiredTopic("")
    at: Mapping[str, Location] = field(default_factory=dict)

    @property
    def is_source_told(self) -> bool:
        """Whether a copy's name tells which cluster it was copied from."""
        return SOURCE in self.rename

    def around(self, source: str | None = None) -> tuple[str, str]:
        """Return what stands before and behind a topic's name in that of its copy, from that cluster or its own."""
        before, _, behind = self.rename.replace(SOURCE, source or self.source).partition(TOPIC)
        return before, behind

    def copy_of(self, topic: str) -> str:
        """Return the name of that topic's copy."""
        before, behind = self.around()
        return f"{before}{topic}{behind}"

    def original_of(self, copy: str) -> str | None:
        """Return the topic whose copy has that name, None where none has."""
        before, behind = self.around()
        is_one = len(copy) > len(before) + len(behind) and copy.startswith(before) and copy.endswith(behind)
        return copy[len(before) : len(copy) - len(behind)] if is_one else None

    def pattern_for(self, topic: str) -> str | None:
        """Return the first pattern that matches that topic of the source, None where none does."""
        return next((pattern for pattern in self.topics if fnmatchcase(topic, pattern)), None)


OWNER = "owner"
"""The label that says who owns a topic."""


@dataclass(frozen=True, slots=True)
class ConfigBounds:
    """What a config may be, as Kafka takes it: at least, at most, one of these; None and empty: anything."""

    least: str | None = None
    most: str | None = None
    one_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredOwner:
    """Who owns topics, and what these may be.

    `topics`: shell patterns of names that are theirs. `limits`: the most of `topics`, `partitions`, `bytes` (of all
    replicas) together, and the largest `replicationFactor`. `names`: patterns of which each name must match one.
    `labels`: what each topic must have, with patterns of its value. `config`: the only keys that may be set; None: all.
    `at` maps the path of a field to its place.
    """

    name: str
    contact: str | None = None
    topics: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config: Mapping[str, ConfigBounds] | None = None
    at: Mapping[str, Location] = field(default_factory=dict)

    def where(self, path: str) -> Location | None:
        """Return the place of a field, or of the document."""
        return self.at.get(path, self.at.get(""))

    def __str__(self) -> str:
        return f"{self.name} ({self.contact})" if self.contact else self.name


@dataclass(frozen=True, slots=True)
class Desired:
    """All that is declared for one cluster.

    `topics` maps the names declared one by one; `patterns` are documents with `names`, in file order, whose `name` is
    one shell pattern each and which apply to observed topics that no document names. `mirrors` are in file order; their
    copies stand among `topics` once `diff.mirrors` has put them there. `owners` are by name. `digest` is over all files
    read.
    """

    cluster: DesiredCluster
    topics: Mapping[str, DesiredTopic] = field(default_factory=dict)
    patterns: tuple[DesiredTopic, ...] = ()
    mirrors: tuple[DesiredMirror, ...] = ()
    owners: tuple[DesiredOwner, ...] = ()
    digest: str = ""
