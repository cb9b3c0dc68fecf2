"""`validate`: the files alone; no cluster is asked."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.files.load import load_cluster, read_declared
from reconciler.files.policies import read_policies
from reconciler.model.desired import CLUSTER_FILE, DesiredCluster
from reconciler.model.problem import InvalidInput, Location, Problem
from reconciler.workflow.inputs import EVERY, Inputs, cluster_name, cluster_names

SAME_ID = "KR134"


@dataclass(frozen=True, slots=True)
class Validated:
    """What was read, and everything that is wrong with it; `topics`: how many are named, rightly written or not."""

    clusters: tuple[str, ...]
    topics: int
    found: tuple[tuple[Problem, Location], ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem, as it was found; one of a whole folder has no place."""
        return tuple(problem for problem, _ in self.found)


def validate_files(inputs: Inputs) -> Validated:
    """Return every problem in every file, and its place, of the cluster that is named, or of all clusters of the root.

    Of policies it is seen that they only ask; what they ask, Spark alone understands.
    """
    names = _names(inputs)
    topics = 0
    found: dict[Problem, Location] = {}
    clusters: dict[str, DesiredCluster] = {}
    for name in names:
        # What is wrong with a whole folder is shown where its Cluster stands, or should.
        home = Location(f"{name}/{CLUSTER_FILE}", 1)
        try:
            read = read_declared(Path(inputs.root), name)
            topics += read.topics
            clusters[name] = read.desired.cluster
            found |= {problem: problem.at or home for problem in read.problems}
        except InvalidInput as error:
            found |= {problem: problem.at or home for problem in error.problems}
        try:
            read_policies(Path(inputs.root), name)
        except InvalidInput as error:
            found |= {problem: problem.at or home for problem in error.problems}
    found |= {problem: at for problem in _same_ids(inputs.root, clusters) if (at := problem.at) is not None}
    return Validated(tuple(names), topics, tuple(found.items()))


def _names(inputs: Inputs) -> Sequence[str]:
    if inputs.cluster and inputs.cluster != EVERY:
        return (inputs.cluster,)
    return cluster_names(inputs.root) or (cluster_name(replace(inputs, cluster=None)),)


def _same_ids(root: str, clusters: Mapping[str, DesiredCluster]) -> Iterator[Problem]:
    """Yield each of these clusters whose clusterId another folder of the root has; of two of these, the later one.

    A folder whose Cluster has another name is left out: that is told, and it may be a link to the right one.
    """
    every = dict(clusters)
    for name in set(cluster_names(root)) - clusters.keys():
        with suppress(InvalidInput):
            every[name] = load_cluster(Path(root), name)
    first: dict[str, Location] = {}
    for name in sorted(every, key=lambda name: (name in clusters, name)):
        declared = every[name]
        at = declared.cluster_id_at
        if declared.cluster_id is None or at is None or declared.name != name:
            continue
        there = first.setdefault(declared.cluster_id, at)
        if there != at and name in clusters:
            message = f"{there} has this clusterId too: a cluster is declared in one folder, keep one of the two"
            yield Problem(SAME_ID, message, at, beside=(there,))
