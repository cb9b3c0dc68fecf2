"""Holds what an import found and wrote: classes, topics, balance, and all that stands against the rules found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.desired import Balance, DesiredTopic, Placement
from reconciler.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that an import could not write as the rule has it, and why. `topic` None: it is about the cluster.

    `is_left_out`: the topic is not declared at all, so that no plan touches it.
    """

    code: str
    message: str
    topic: str | None = None
    is_left_out: bool = False


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
    """Topics as they are to be declared: whole, by name, and the class of each that has one."""

    topics: Mapping[str, DesiredTopic]
    classes: tuple[FoundClass, ...] = ()
    class_of: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, DesiredTopic] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote: the cluster's folder and the files in it.

    `source` says what was read: `cluster`, `snapshot` or `files`. `kept` is the balance that was found, also
    where a cluster.yaml that was there already says otherwise (`is_cluster_file_kept`). `is_plan_empty` is None where
    no cluster was there to plan against. `warnings`: what of another tool's files has no counterpart, with its place.
    """

    cluster: str
    folder: str
    files: tuple[str, ...]
    source: str
    adopted: Adopted
    kept: Balance
    ignored: int = 0
    is_cluster_file_kept: bool = False
    is_plan_empty: bool | None = None
    warnings: tuple[Problem, ...] = ()
