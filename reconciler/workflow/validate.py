"""`validate`: the files alone; no cluster is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.files.load import read_declared
from reconciler.files.policies import read_policies
from reconciler.model.problem import InvalidInput, Location, Problem
from reconciler.workflow.inputs import CLUSTER_FILE, Inputs, NotNamed, cluster_name, cluster_names


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
    for name in names:
        # What is wrong with a whole folder is shown where its Cluster stands, or should.
        home = Location(f"{name}/{CLUSTER_FILE}", 1)
        try:
            read = read_declared(Path(inputs.root), name)
            topics += read.topics
            found |= {problem: problem.at or home for problem in read.problems}
        except InvalidInput as error:
            found |= {problem: problem.at or home for problem in error.problems}
        try:
            read_policies(Path(inputs.root), name)
        except InvalidInput as error:
            found |= {problem: problem.at or home for problem in error.problems}
    return Validated(tuple(names), topics, tuple(found.items()))


def _names(inputs: Inputs) -> Sequence[str]:
    try:
        return (cluster_name(inputs),)
    except NotNamed:
        names = cluster_names(inputs.root)
        if not names:
            raise
        return names
