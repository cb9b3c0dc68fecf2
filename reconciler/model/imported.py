"""Holds what an import found and wrote: classes, topics, balance, and all that stands against the rules found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from reconciler.model.codec import REQUIRED, Key, Pattern
from reconciler.model.desired import Balance, BalanceTarget, DesiredTopic, Even, Placement, Spread, Within
from reconciler.model.problem import Problem, ReportedProblem
from reconciler.model.words import percent


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that an import could not write as the rule has it, and why."""

    code: Annotated[str, Pattern("^KR[0-9]{3}$"), "Stable code of the reason."]
    message: Annotated[str, "What it is."]
    topic: Annotated[str | None, REQUIRED, "The topic; null for the cluster."] = None
    is_left_out: Annotated[bool, REQUIRED, "The topic is not declared at all, so that no plan touches it."] = False


@dataclass(frozen=True, slots=True)
class FoundClass:
    """What several topics have in common, under a name made of what sets it apart; `topics` is how many they are."""

    name: str
    replication_factor: int | None
    placement: Placement
    config: Mapping[str, str]
    topics: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """Topics as they are to be declared: whole, by name, and the class of each that has one.

    `classes` are found, and to be declared too; `joined` are declared already, and take some of these topics.
    """

    topics: Mapping[str, DesiredTopic]
    classes: tuple[FoundClass, ...] = ()
    joined: tuple[FoundClass, ...] = ()
    class_of: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, DesiredTopic] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of a file, by its path below the cluster's folder; `before` None: it is new.

    `classes`: those that are declared in it now.
    """

    name: str
    before: bytes | None
    after: bytes
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddedTopic:
    """A topic that is declared now, and where."""

    topic: Annotated[str, "The topic's name."]
    file: Annotated[str, "The file that its document is in, below the folder."]
    topic_class: Annotated[str | None, Key("class"), REQUIRED, "Its TopicClass; null for none."]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote, or would write (`is_dry`): the cluster's folder and the files in it.

    `source` says what was read: `cluster`, `snapshot` or `files`. `kept` is the balance that was found, also
    where a cluster.yaml that was there already says otherwise (`is_cluster_file_kept`). `is_plan_empty` is None where
    no cluster was there to plan against. `warnings`: what of another tool's files has no counterpart, with its place.
    `declared`: how many of the topics that were read were declared before; None where nothing was declared at all.
    `are_schemas_missing`: new files point editors to schemas that nobody has written yet.
    """

    cluster: str
    folder: str
    changes: tuple[FileChange, ...]
    added: tuple[AddedTopic, ...]
    source: str
    adopted: Adopted
    kept: Balance
    declared: int | None = None
    is_dry: bool = False
    are_schemas_missing: bool = False
    ignored: int = 0
    is_cluster_file_kept: bool = False
    is_plan_empty: bool | None = None
    warnings: tuple[Problem, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were written or added to."""
        return tuple(sorted(change.name for change in self.changes))

    @property
    def targets(self) -> Mapping[str, str]:
        """The balance that was found, by measure, as the files write it."""
        kept = self.kept
        measures = {"replicas": kept.replicas, "leaders": kept.leaders, "topics": kept.topics}
        return {name: _target(target) for name, target in measures.items()}


@dataclass(frozen=True, slots=True)
class ReportedClass:
    """A TopicClass that was found."""

    name: Annotated[str, "The name that topics refer to."]
    topics: Annotated[tuple[str, ...], "The topics of the class."]
    replication_factor: Annotated[int | None, "Replicas of each partition; null where partitions differ."]
    spread: Annotated[
        Spread | None, Key("racks/spread", "The rack rules; null is not written."), "How replicas spread over racks."
    ]
    only: Annotated[tuple[str, ...] | None, Key("racks/only"), "The racks that may hold replicas."]
    leader: Annotated[tuple[str, ...] | None, Key("racks/leader"), "The racks that may hold the preferred leader."]
    config: Annotated[Mapping[str, str], "The configs that all its topics share."]

    @classmethod
    def of(cls, found: FoundClass, adopted: Adopted) -> Self:
        """Return a class of these topics as JSON tells it."""
        racks, topics = found.placement, (name for name, each in adopted.class_of.items() if each == found.name)
        return cls(
            name=found.name,
            topics=tuple(sorted(topics)),
            replication_factor=found.replication_factor,
            spread=racks.racks_spread,
            only=None if racks.racks_only is None else tuple(sorted(racks.racks_only)),
            leader=None if racks.racks_leader is None else tuple(sorted(racks.racks_leader)),
            config=found.config,
        )


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was written, which rules the cluster keeps, and what stands against them; lists of topics are whole."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^2\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "2.1"
    cluster: Annotated[str, "The cluster's name, that of its folder."]
    folder: Annotated[str, "Where the files are."]
    source: Annotated[str, "What was read: cluster, snapshot, or files, which are those of another tool."]
    files: Annotated[tuple[str, ...], "The files written or added to, below the folder."]
    is_dry_run: Annotated[bool, "Nothing was written: --dry-run."]
    added: Annotated[tuple[AddedTopic, ...], "The topics that were added, each with its file; none: nothing was."]
    declared: Annotated[int, "How many of the topics that were read were declared before, and stay as they are."]
    is_cluster_file_kept: Annotated[
        bool, "A cluster.yaml was there and stays as it is: the balance found is not in it."
    ]
    is_plan_empty: Annotated[bool | None, "Whether a plan of these files does nothing; null where no cluster was read."]
    topics: Annotated[int, "How many topics were added."]
    partitions: Annotated[int, "How many partitions these have, as far as it is known."]
    ignored: Annotated[int, "How many topics are Kafka's own, or match topics.ignore, and are not declared."]
    left_out: Annotated[tuple[str, ...], "Topics that stand in the files as comments only; exceptions says why."]
    classes: Annotated[tuple[ReportedClass, ...], "The TopicClasses, that of most topics first."]
    balance: Annotated[
        Mapping[str, str], "By measure (replicas, leaders, topics) the tightest balance kept: off, even, `within 5%`."
    ]
    exceptions: Annotated[tuple[Deviation, ...], "What could not be written as a rule has it, and why."]
    warnings: Annotated[
        tuple[ReportedProblem, ...], "What of another tool's files has no counterpart, or was left out."
    ]

    @classmethod
    def of(cls, made: Imported) -> Self:
        """Return the report of an import."""
        adopted = made.adopted
        return cls(
            cluster=made.cluster,
            folder=made.folder,
            source=made.source,
            files=made.files,
            is_dry_run=made.is_dry,
            added=made.added,
            declared=made.declared or 0,
            is_cluster_file_kept=made.is_cluster_file_kept,
            is_plan_empty=made.is_plan_empty,
            topics=len(adopted.topics),
            partitions=sum(topic.partitions or 0 for topic in adopted.topics.values()),
            ignored=made.ignored,
            left_out=tuple(sorted(adopted.left_out)),
            classes=tuple(ReportedClass.of(each, adopted) for each in adopted.classes),
            balance=made.targets,
            exceptions=adopted.deviations,
            warnings=tuple(map(ReportedProblem.of, made.warnings)),
        )


def _target(target: BalanceTarget) -> str:
    match target:
        case Even():
            return "even"
        case Within(fraction):
            return f"within {percent(fraction)}"
        case _:
            return "off"
