"""Holds where to read from: the root, the cluster's name, and the snapshot or client to use in place of its files."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from reconciler.files.paths import expanded, is_folder
from reconciler.model.desired import CLUSTER_FILE, POLICIES_FOLDER
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError
from reconciler.model.words import MANY, named_some

DEFAULT_ROOT = "desired-state"
EVERY = "*"
"""The name that means all clusters of the root."""
_OF_SEVERAL = (",", "=")
"""No name has one: between several names, and in labels."""
_NAME = re.compile("[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What all verbs share: the root and the cluster's name, and what stands in for the cluster they describe."""

    root: str = DEFAULT_ROOT
    cluster: str | None = None
    state: str | None = None
    client: str | None = None
    bootstrap_server: str | None = None
    journal: str | None = None
    source_states: tuple[str, ...] = ()
    """Snapshots in place of the clusters that mirrors copy from: a file or, where there are several, `NAME=FILE`."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def are_several_named(self) -> bool:
        """Whether several clusters are named, or all of the root, or those with some labels."""
        return self.cluster == EVERY or any(sign in (self.cluster or "") for sign in _OF_SEVERAL)

    @property
    def is_one_given(self) -> bool:
        """Whether the caller gave one cluster, or a snapshot of it, so that several cannot be meant."""
        return self.is_client_given or self.state is not None

    @property
    def is_client_given(self) -> bool:
        """Whether the cluster is reached by what the caller gave, whatever its files say."""
        return bool(self.client or self.bootstrap_server)


class NotNamed(ReconcilerError):
    """Which cluster, or how to reach it, was not said, or two things were."""

    code = "KR004"


def checked_name(name: str) -> str:
    """Return a cluster's name; raises InvalidInput for one that is no folder's and no document's."""
    if name in {".", ".."} or name.casefold() == POLICIES_FOLDER or not _NAME.fullmatch(name):
        message = (
            f"{name!r} is no cluster's name: it is that of a folder, of a-z A-Z 0-9 . _ -, and not {POLICIES_FOLDER}"
        )
        raise InvalidInput([Problem("KR100", message)])
    return name


def cluster_names(root: str) -> tuple[str, ...]:
    """Return the clusters of that root: its folders that hold a cluster.yaml, but for that of policies."""
    names = (file.parent.name for file in expanded(Path(root), ("*", CLUSTER_FILE)))
    return tuple(sorted(name for name in names if name.casefold() != POLICIES_FOLDER))


def require_cluster(root: str, name: str) -> None:
    """Raise InvalidInput where the root has other clusters, but no folder of that name."""
    if cluster_names(root) and _NAME.fullmatch(name) and not is_folder(Path(root) / name):
        raise InvalidInput([Problem("KR100", unknown_cluster(root, name))])


def unknown_cluster(root: str, name: str) -> str:
    """Return, in words, that the root has no cluster of that name, and which ones it has, the closest name first."""
    closest = sorted(cluster_names(root), key=lambda known: -SequenceMatcher(None, name, known).ratio())
    known = f"; it has {named_some(closest, MANY)}" if closest else ""
    return f"{root} has no cluster {name!r}{known}: check --cluster and -C"


def cluster_name(inputs: Inputs) -> str:
    """Return the cluster that is named, or the only one there is."""
    if inputs.cluster:
        return inputs.cluster
    names = cluster_names(inputs.root)
    if len(names) == 1:
        return names[0]
    if names:
        raise NotNamed(f"{inputs.root} describes {len(names)} clusters: name one with --cluster: {', '.join(names)}")
    raise NotNamed(
        f"{inputs.root} holds no NAME/{CLUSTER_FILE}: name the right folder with -C, or begin with: reconciler init"
    )


def name_meant(inputs: Inputs) -> str | None:
    """Return the cluster that is named, or the only declared one; None where the caller brings a cluster, or a file."""
    if inputs.cluster or not (inputs.is_client_given or inputs.state):
        return cluster_name(inputs)
    names = cluster_names(inputs.root)
    return names[0] if len(names) == 1 and inputs.state else None
