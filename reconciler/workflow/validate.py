"""`validate`: the files alone; no cluster is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.files.policies import read_policies
from reconciler.model.problem import InvalidInput, Problem
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_name, cluster_names
from reconciler.workflow.sources import desired_state


@dataclass(frozen=True, slots=True)
class Validated:
    """What was read, and everything that is wrong with it."""

    clusters: tuple[str, ...]
    topics: int
    problems: tuple[Problem, ...]


def validate_files(inputs: Inputs) -> Validated:
    """Return every problem in every file of the cluster that is named, or of all clusters of the root.

    Of policies it is seen that they only ask; what they ask, Spark alone understands.
    """
    names = _names(inputs)
    topics = 0
    problems: list[Problem] = []
    for name in names:
        try:
            topics += len(desired_state(replace(inputs, cluster=name)).topics)
        except InvalidInput as error:
            problems += error.problems
        try:
            read_policies(Path(inputs.root), name)
        except InvalidInput as error:
            problems += error.problems
    return Validated(tuple(names), topics, tuple(dict.fromkeys(problems)))


def _names(inputs: Inputs) -> Sequence[str]:
    try:
        return (cluster_name(inputs),)
    except NotNamed:
        names = cluster_names(inputs.root)
        if not names:
            raise
        return names
